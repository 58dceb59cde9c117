//! Headers and body must agree: each pair that does not is refused.

use super::*;
use crate::{Limits, Raw};

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;

/// A `tools/call` with these arguments.
fn call(arguments: &str) -> Message {
    request("tools/call", &format!(r#""name":"t","arguments":{arguments},{META}"#))
}

fn request(method: &str, params: &str) -> Message {
    let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}}}}}"#);
    Message::parse(text.into(), &Limits::default()).unwrap()
}

/// The headers of a right `tools/call`, changed: an empty value removes, others are added.
fn headers(changes: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let right =
        [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "t")];
    for (name, value) in right {
        headers.insert(name, value.parse().unwrap());
    }
    for (name, value) in changes {
        let name = HeaderName::try_from(*name).unwrap();
        match *value {
            "" => drop(headers.remove(name)),
            value => drop(headers.insert(name, HeaderValue::from_bytes(value.as_bytes()).unwrap())),
        }
    }
    headers
}

fn params(schema: &str) -> HeaderParams {
    HeaderParams::parse(Raw::new(schema.as_bytes())).unwrap()
}

fn example() -> HeaderParams {
    params(
        r#"{"type":"object","properties":{
            "region":{"type":"string","x-mcp-header":"Region"},
            "limit":{"type":"integer","x-mcp-header":"Limit"},
            "dry":{"type":"boolean","x-mcp-header":"Dry-Run"},
            "where":{"type":"object","properties":{
                "zone":{"type":["string","null"],"x-mcp-header":"Zone"}}}}}"#,
    )
}

fn checked(changes: &[(&str, &str)], arguments: &str) -> Result<(), HeaderFault> {
    check_request(&headers(changes), &call(arguments), Some(&example()))
}

#[track_caller]
fn refused(changes: &[(&str, &str)], arguments: &str, why: &str) {
    let fault = checked(changes, arguments).unwrap_err();
    assert!(fault.to_string().contains(why), "{fault}");
    assert_eq!(fault.code(), -32020);
}

#[test]
fn header_values_are_encoded_only_when_necessary() {
    let table = [
        ("us-west1", "us-west1"),
        ("", ""),
        ("a b\"c\\", "a b\"c\\"),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("a\tb", "=?base64?YQli?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ("=?base64?=", "=?base64?PT9iYXNlNjQ/PQ==?="),
        ("=?base64?open", "=?base64?open"),
        ("=?BASE64?eA==?=", "=?BASE64?eA==?="),
    ];
    for (text, header) in table {
        let value = encode_value(text);
        assert_eq!(value, header);
        assert_eq!(decode_value(&value).unwrap(), text);
    }
}

#[test]
fn values_are_read_strictly() {
    let read = |bytes: &[u8]| {
        decode_value(&HeaderValue::from_bytes(bytes).unwrap()).map(std::borrow::Cow::into_owned)
    };
    assert_eq!(read(b" \tx y\t ").unwrap(), "x y");
    assert_eq!(read(b"=?base64?=").unwrap(), "=?base64?=");
    assert_eq!(read(b"=?base64??=").unwrap(), "");
    assert_eq!(read(b"=?base64?SGVsbG8?="), Err(ValueFault::Base64), "no padding");
    assert_eq!(read(b"=?base64?SGVs!!!bG8=?="), Err(ValueFault::Base64));
    assert_eq!(read(b"=?base64?SGVsbG9=?="), Err(ValueFault::Base64), "trailing bits");
    assert_eq!(read(b"=?base64?_-8=?="), Err(ValueFault::Base64), "URL alphabet");
    assert_eq!(read(b"=?base64?/w==?="), Err(ValueFault::Utf8));
    assert_eq!(read("é".as_bytes()), Err(ValueFault::Characters));
    assert_eq!(read(b"\xff"), Err(ValueFault::Characters));
}

#[test]
fn s13_requests_with_matching_headers_are_accepted() {
    let all = r#"{"region":"us","limit":42,"dry":true,"where":{"zone":"z"},"more":[1]}"#;
    let sent = [
        ("mcp-param-region", "us"),
        ("mcp-param-limit", "42.0"),
        ("mcp-param-dry-run", "true"),
        ("mcp-param-zone", "=?base64?eg==?="),
        ("mcp-param-unknown", "ignored"),
    ];
    checked(&sent, all).unwrap();
    checked(&[], "{}").unwrap();
    checked(&[], r#"{"region":null,"where":null}"#).unwrap();
    checked(&[], r#"{"where":"no object"}"#).unwrap();
    checked(&[("mcp-name", "  t  "), ("mcp-param-other", "\u{e9}")], "{}").unwrap();
    checked(&[("mcp-name", "=?base64?dA==?=")], "{}").unwrap();
    check_request(&headers(&[]), &call(r#"{"region":"us"}"#), None).unwrap();
}

#[test]
fn s13_version_header_and_meta_must_agree() {
    refused(&[("mcp-protocol-version", "")], "{}", "MCP-Protocol-Version is missing");
    refused(&[("mcp-protocol-version", "2025-11-25")], "{}", r#"is "2026-07-28""#);
    let unstamped = request("tools/list", "");
    let sent = headers(&[("mcp-method", "tools/list"), ("mcp-name", "")]);
    check_request(&sent, &unstamped, None).unwrap();
}

#[test]
fn s13_method_header_and_method_must_agree() {
    refused(&[("mcp-method", "")], "{}", "Mcp-Method is missing");
    refused(&[("mcp-method", "tools/list")], "{}", r#"method is "tools/call""#);
    refused(&[("mcp-method", "TOOLS/CALL")], "{}", "Mcp-Method");
    let wrapped = "=?base64?dG9vbHMvY2FsbA==?=";
    refused(&[("mcp-method", wrapped)], "{}", "Mcp-Method");
}

#[test]
fn s13_name_header_and_name_must_agree() {
    refused(&[("mcp-name", "")], "{}", "Mcp-Name is missing");
    refused(&[("mcp-name", "T")], "{}", r#"Mcp-Name is "T" but params.name is "t""#);
    refused(&[("mcp-name", "=?base64?VA==?=")], "{}", "Mcp-Name");
    refused(&[("mcp-name", "=?base64?VA?=")], "{}", "base64");
    refused(&[("mcp-name", "\u{e9}")], "{}", "ASCII");
    let nameless = request("tools/call", META);
    let error = check_request(&headers(&[]), &nameless, None).unwrap_err();
    assert!(error.to_string().contains(r#"Mcp-Name is "t" but params.name is absent"#), "{error}");
    check_request(&headers(&[("mcp-name", "")]), &nameless, None).unwrap();
}

/// Each method mirrors its own member, and no other one.
#[test]
fn s13_name_header_mirrors_the_member_of_the_method() {
    let table = [
        ("tools/call", "name"),
        ("prompts/get", "name"),
        ("resources/read", "uri"),
        ("tasks/get", "taskId"),
        ("tasks/update", "taskId"),
        ("tasks/cancel", "taskId"),
    ];
    for (method, member) in table {
        for other in ["name", "uri", "taskId"] {
            let message = request(method, &format!(r#""{other}":"x",{META}"#));
            let sent = headers(&[("mcp-method", method), ("mcp-name", "x")]);
            assert_eq!(check_request(&sent, &message, None).is_ok(), other == member, "{method}");
        }
    }
}

#[test]
fn s13_param_headers_and_arguments_must_agree() {
    let us = r#"{"region":"us"}"#;
    refused(&[], us, "Mcp-Param-Region is missing; send the value of params.arguments.region");
    refused(&[("mcp-param-region", "eu")], us, r#"is "eu" but params.arguments.region is "us""#);
    refused(&[("mcp-param-region", "US")], us, "Mcp-Param-Region");
    refused(&[("mcp-param-region", "\u{e9}")], r#"{"region":"é"}"#, "ASCII");
    refused(&[("mcp-param-region", "=?base64?dXM?=")], us, "base64");
    refused(&[("mcp-param-region", "us")], "{}", "absent");
    refused(&[("mcp-param-region", "null")], r#"{"region":null}"#, "absent");
    refused(&[("mcp-param-zone", "a")], r#"{"where":{"zone":"b"}}"#, "arguments.where.zone");
    refused(&[("mcp-param-dry-run", "1")], r#"{"dry":true}"#, "true");
    refused(&[("mcp-param-dry-run", "True")], r#"{"dry":true}"#, "true");
}

#[test]
fn s13_ambiguous_or_composite_arguments_are_refused() {
    refused(&[("mcp-param-region", "a")], r#"{"region":"a","region":"b"}"#, "cannot be copied");
    refused(&[], r#"{"where":{"zone":"a","zone":"b"}}"#, "cannot be copied");
    refused(&[], r#"{"region":["us"]}"#, "cannot be copied");
    refused(&[], r#"{"region":"\ud800"}"#, "cannot be copied");
}

#[test]
fn s13_duplicate_headers_are_refused_even_if_equal() {
    for (name, value) in [
        (MCP_PROTOCOL_VERSION, "2026-07-28"),
        (MCP_METHOD, "tools/call"),
        (MCP_NAME, "t"),
        (HeaderName::from_static("mcp-param-region"), "us"),
    ] {
        let mut sent = headers(&[("mcp-param-region", "us")]);
        sent.append(&name, HeaderValue::from_static(value));
        let fault = check_request(&sent, &call(r#"{"region":"us"}"#), Some(&example()));
        assert!(matches!(fault, Err(HeaderFault::Duplicate { .. })), "{name}");
    }
}

#[test]
fn s13_integers_are_compared_as_numbers() {
    let equal = [
        ("42", "42.0"),
        ("42", "4.2e1"),
        ("42.0", "42"),
        ("-0", "0"),
        ("1e2", "100"),
        ("9007199254740993", "9007199254740993"),
        ("0.0", "0e999999999"),
    ];
    for (body, header) in equal {
        let sent = [("mcp-param-limit", header)];
        checked(&sent, &format!(r#"{{"limit":{body}}}"#)).unwrap();
    }
    let different = [
        ("42", "43"),
        ("42", "-42"),
        ("42", "042"),
        ("42", "+42"),
        ("42", "0x2a"),
        ("42", "42 0"),
        ("9007199254740993", "9007199254740992"),
        ("1", "1e99999999999999999999"),
        ("\"42\"", "42.0"),
    ];
    for (body, header) in different {
        let arguments = format!(r#"{{"limit":{body}}}"#);
        refused(&[("mcp-param-limit", header)], &arguments, "Mcp-Param-Limit");
    }
}

/// Notifications need no headers, but given headers must match the body.
#[test]
fn s13_notifications_may_omit_headers_but_not_contradict_the_body() {
    let text = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}"#;
    let message = Message::parse(text.into(), &Limits::default()).unwrap();
    check_request(&HeaderMap::new(), &message, None).unwrap();
    let mut sent = HeaderMap::new();
    sent.insert(MCP_METHOD, HeaderValue::from_static("tools/call"));
    let error = check_request(&sent, &message, None).unwrap_err().to_string();
    assert!(error.contains(r#"Mcp-Method is "tools/call" but method is"#), "{error}");
}

#[test]
fn faults_name_the_remedy_and_stay_short() {
    let long = "x".repeat(1000);
    let fault = checked(&[("mcp-name", long.as_str())], "{}").unwrap_err().to_string();
    assert!(fault.len() < 250 && fault.contains("send the value of the body"), "{fault}");
}

#[test]
fn annotations_that_break_a_rule_are_refused() {
    let property = |text: &str| format!(r#"{{"type":"object","properties":{{"a":{text}}}}}"#);
    let named = |name: &str| property(&format!(r#"{{"type":"string","x-mcp-header":{name}}}"#));
    let typed = |kind: &str| property(&format!(r#"{{"type":{kind},"x-mcp-header":"A"}}"#));
    let annotated = r#"{"type":"string","x-mcp-header":"A"}"#;
    let inside = |wrap: &str| property(&wrap.replace('@', annotated));
    let at = || "a".to_owned();
    let table = [
        (named("\"\""), ParamFault::Name { at: at() }),
        (named("\"My Region\""), ParamFault::Name { at: at() }),
        (named("\"A:B\""), ParamFault::Name { at: at() }),
        (named("\"Région\""), ParamFault::Name { at: at() }),
        (named("\"A\\t1\""), ParamFault::Name { at: at() }),
        (named("\"A\\r\\nX: y\""), ParamFault::Name { at: at() }),
        (named("7"), ParamFault::Name { at: at() }),
        (named("null"), ParamFault::Name { at: at() }),
        (typed("\"number\""), ParamFault::Type { at: at() }),
        (typed("\"object\""), ParamFault::Type { at: at() }),
        (typed("\"array\""), ParamFault::Type { at: at() }),
        (typed("\"null\""), ParamFault::Type { at: at() }),
        (typed("[\"string\",\"integer\"]"), ParamFault::Type { at: at() }),
        (typed("[\"null\"]"), ParamFault::Type { at: at() }),
        (property(r#"{"x-mcp-header":"A"}"#), ParamFault::Type { at: at() }),
        (annotated.to_owned(), ParamFault::Unreachable { at: String::new() }),
        (inside(r#"{"items":@}"#), ParamFault::Unreachable { at: "a/items".into() }),
        (inside(r#"{"anyOf":[{},@]}"#), ParamFault::Unreachable { at: "a/anyOf".into() }),
        (inside(r#"{"if":@}"#), ParamFault::Unreachable { at: "a/if".into() }),
        (inside(r#"{"$defs":{"d":@}}"#), ParamFault::Unreachable { at: "a/$defs/d".into() }),
        (
            inside(r#"{"items":{"properties":{"p":@}}}"#),
            ParamFault::Unreachable { at: "a/items/p".into() },
        ),
        (
            r#"{"properties":{"a":{"x\u002dmcp-header":"A"}}}"#.to_owned(),
            ParamFault::Type { at: at() },
        ),
        (
            property(r#"{"type":"string","x-mcp-header":"A","x-mcp-header":"B"}"#),
            ParamFault::Ambiguous { at: at() },
        ),
    ];
    for (schema, fault) in table {
        let found = HeaderParams::parse(Raw::new(schema.as_bytes()));
        assert_eq!(found, Err(vec![fault]), "{schema}");
    }
    let pair = |one: &str, two: &str| {
        format!(
            r#"{{"properties":{{"a":{{"type":"string","x-mcp-header":"{one}"}},
                "b":{{"type":"string","x-mcp-header":"{two}"}}}}}}"#
        )
    };
    for (one, two) in [("Region", "Region"), ("MyField", "myfield")] {
        let found = HeaderParams::parse(Raw::new(pair(one, two).as_bytes()));
        assert_eq!(found, Err(vec![ParamFault::Duplicate { at: at() }]));
    }
    assert!(HeaderParams::parse(Raw::new(pair("A", "B").as_bytes())).is_ok());
}

/// RFC 9110 5.6.2: the characters of a token.
#[test]
fn annotation_names_are_tokens() {
    for c in '!'..='~' {
        let name = serde_json::to_string(&c.to_string()).unwrap();
        let schema =
            format!(r#"{{"properties":{{"a":{{"type":"string","x-mcp-header":{name}}}}}}}"#);
        let is_token = c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        assert_eq!(HeaderParams::parse(Raw::new(schema.as_bytes())).is_ok(), is_token, "{c}");
    }
}

#[test]
fn schemas_without_annotations_mirror_nothing() {
    for schema in [
        "{}",
        r#"{"properties":{"x-mcp-header":{"type":"string"}}}"#,
        r#"{"properties":{"a":{"default":{"x-mcp-header":"A"},"enum":[{"x-mcp-header":"A"}]}}}"#,
        r#"{"properties":{"a":{"description":"say \"x-mcp-header\" \u0041"}}}"#,
    ] {
        assert!(params(schema).is_empty(), "{schema}");
    }
}

#[test]
fn s31_many_annotations_are_refused() {
    let properties: Vec<_> =
        (0..100).map(|i| format!(r#""p{i}":{{"type":"string","x-mcp-header":"P{i}"}}"#)).collect();
    let schema = format!(r#"{{"properties":{{{}}}}}"#, properties.join(","));
    let found = HeaderParams::parse(Raw::new(schema.as_bytes()));
    assert_eq!(found, Err(vec![ParamFault::Excessive]));
}

#[test]
fn composed_headers_pass_the_check() {
    let arguments = r#"{"region":" 世 ","limit":4.2e1,"dry":false,"where":{"zone":null},"x":{}}"#;
    let message = call(arguments);
    let composed = compose_request_headers(&message, Revision::V2026_07_28, Some(&example()));
    check_request(&composed, &message, Some(&example())).unwrap();
    let shown: Vec<_> =
        composed.iter().map(|(n, v)| format!("{n}: {}", v.to_str().unwrap())).collect();
    let mut expected = [
        "mcp-protocol-version: 2026-07-28",
        "mcp-method: tools/call",
        "mcp-name: t",
        "mcp-param-region: =?base64?IOS4liA=?=",
        "mcp-param-limit: 42",
        "mcp-param-dry-run: false",
    ];
    let mut found: Vec<_> = shown.iter().map(String::as_str).collect();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
}

#[test]
fn legacy_requests_carry_the_version_alone() {
    let message = call("{}");
    let count = |version| compose_request_headers(&message, version, None).len();
    assert_eq!(Revision::ALL.map(count), [0, 0, 1, 1, 3]);
}

proptest::proptest! {
    #[test]
    fn any_string_survives_a_round_trip_through_a_header(
        text in "\\PC{0,20}|[ \t\r\n=?a-z\u{0}é]{0,20}",
    ) {
        let value = encode_value(&text);
        proptest::prop_assert_eq!(decode_value(&value).unwrap(), text);
    }

    #[test]
    fn any_arguments_agree_with_their_headers(
        region in "\\PC{0,12}", limit in proptest::num::i64::ANY, scale in -3i32..4,
    ) {
        let region = String::from_utf8(crate::json::encode_string(&region)).unwrap();
        let message = call(&format!(r#"{{"region":{region},"limit":{limit}e{scale}}}"#));
        let sent = compose_request_headers(&message, Revision::LATEST, Some(&example()));
        proptest::prop_assert_eq!(check_request(&sent, &message, Some(&example())), Ok(()));
    }
}

/// Media types compare without case, and without parameters.
#[test]
fn media_types_compare_without_case() {
    let is_stream = |value: &'static str| {
        let headers = [(header::CONTENT_TYPE, HeaderValue::from_static(value))];
        has_media_type(&headers.into_iter().collect(), "text/event-stream")
    };
    for good in [
        "text/event-stream",
        "Text/Event-Stream",
        "TEXT/EVENT-STREAM; charset=utf-8",
        "text/event-stream ; charset=utf-8",
        "text/event-stream;charset=UTF-8",
    ] {
        assert!(is_stream(good), "{good}");
    }
    for bad in ["text/event-streams", "text/event", "application/json", ""] {
        assert!(!is_stream(bad), "{bad}");
    }
    assert!(!has_media_type(&HeaderMap::new(), "text/event-stream"));
}
