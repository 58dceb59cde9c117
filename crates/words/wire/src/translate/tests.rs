//! Each message of one era as the other era gets it.

use super::*;
use crate::{Limits, rpc};

fn parse(text: &str) -> Message {
    Message::parse(text.to_owned().into(), &Limits::default()).unwrap()
}

fn call(params: &str) -> Message {
    parse(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#))
}

fn result(body: &str) -> Message {
    parse(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{body}}}"#))
}

fn error(body: &str) -> Message {
    parse(&format!(r#"{{"jsonrpc":"2.0","id":1,"error":{body}}}"#))
}

/// The body after a rewrite; the outcome must be a message again.
#[track_caller]
fn applied(rewrite: &Rewrite<'_>, message: &Message) -> String {
    let bytes = rewrite.apply(message).into_bytes();
    let changed = Message::parse(bytes, &Limits::default()).unwrap();
    String::from_utf8(changed.body_raw().unwrap().as_bytes().to_vec()).unwrap()
}

fn raw(text: &str) -> Raw<'_> {
    Raw::new(text.as_bytes())
}

#[test]
fn legacy_requests_are_stamped() {
    let stamp = ClientStamp {
        info: Some(br#"{"name":"c","version":"1"}"#.into()),
        capabilities: b"{}".into(),
        log_level: Some(br#""info""#.into()),
    };
    let stamps = concat!(
        r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
        r#""io.modelcontextprotocol/clientCapabilities":{},"#,
        r#""io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"#,
        r#""io.modelcontextprotocol/logLevel":"info""#
    );
    let rewrite = request_to_modern(stamp);
    let table = [
        (r#"{"name":"t"}"#, format!(r#"{{"name":"t","_meta":{{{stamps}}}}}"#)),
        (
            r#"{"_meta":{"progressToken":7},"name":"t"}"#,
            format!(r#"{{"_meta":{{"progressToken":7,{stamps}}},"name":"t"}}"#),
        ),
    ];
    for (before, after) in table {
        assert_eq!(applied(&rewrite, &call(before)), after);
    }
    let bare = parse(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    assert_eq!(applied(&rewrite, &bare), format!(r#"{{"_meta":{{{stamps}}}}}"#));
}

#[test]
fn stamps_replace_the_claims_of_a_request() {
    let stamp = ClientStamp { info: None, capabilities: b"{}".into(), log_level: None };
    let claims = call(
        r#"{"name":"t","_meta":{"io.modelcontextprotocol/clientCapabilities":{"sampling":{}},
            "io.modelcontextprotocol/clientInfo":{},"io.modelcontextprotocol/logLevel":"debug"}}"#,
    );
    let changed = applied(&request_to_modern(stamp), &claims);
    let meta = raw(&changed).get("_meta").unwrap();
    assert_eq!(meta.get(meta_key::CLIENT_CAPABILITIES).unwrap().as_bytes(), b"{}");
    assert!(meta.get(meta_key::CLIENT_INFO).is_none() && meta.get(meta_key::LOG_LEVEL).is_none());
}

#[test]
fn listed_tools_lose_their_legacy_tasks_for_modern_clients() {
    let list =
        result(r#"{"tools":[{"name":"a","execution":{"taskSupport":"optional"}},{"name":"b"}]}"#);
    let changed = applied(&answer_to_modern("tools/list", &list, None), &list);
    assert!(changed.starts_with(r#"{"tools":[{"name":"a"},{"name":"b"}]"#), "{changed}");
}

/// Only members for modern servers alone are removed; keys of vendors and extensions stay.
#[test]
fn modern_requests_are_stripped() {
    let request = call(
        r#"{"name":"t","requestState":"s","inputResponses":{},"_meta":{"progressToken":"p",
            "io.modelcontextprotocol/protocolVersion":"2026-07-28",
            "io.modelcontextprotocol/clientCapabilities":{},
            "io.modelcontextprotocol/related-task":{"taskId":"1"},"com.example/x":1}}"#,
    );
    let kept = r#""io.modelcontextprotocol/related-task":{"taskId":"1"},"com.example/x":1"#;
    assert_eq!(
        applied(&request_to_legacy(), &request),
        format!(r#"{{"name":"t","_meta":{{"progressToken":"p",{kept}}}}}"#)
    );
    let only = r#"{"name":"t","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#;
    assert_eq!(applied(&request_to_legacy(), &call(only)), r#"{"name":"t"}"#);
}

#[test]
fn modern_results_lose_members_unknown_to_legacy_clients() {
    let meta = r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s"}}"#;
    let table = [
        (
            "tools/list",
            format!(
                r#"{{"tools":[],"resultType":"complete","ttlMs":1,"cacheScope":"public",{meta}}}"#
            ),
            r#"{"tools":[]}"#,
        ),
        (
            "tools/list",
            r#"{"tools":[{"name":"a", "outputSchema":{"type":"array"}}, {"name":"b" }],"x":1}"#
                .into(),
            r#"{"tools":[{"name":"a"},{"name":"b" }],"x":1}"#,
        ),
        (
            "tools/list",
            r#"{"tools":[ {"name":"a","outputSchema":{"type":"object"}} ]}"#.into(),
            r#"{"tools":[ {"name":"a","outputSchema":{"type":"object"}} ]}"#,
        ),
        (
            "tools/call",
            r#"{"resultType":"complete","content":[],"ttlMs":"a vendor's"}"#.into(),
            r#"{"content":[],"ttlMs":"a vendor's"}"#,
        ),
        (
            "tools/call",
            r#"{"content":[],"structuredContent":[1],"resultType":"complete"}"#.into(),
            r#"{"content":[]}"#,
        ),
        (
            "tools/call",
            r#"{"content":[],"structuredContent":{"a":1.10},"resultType":"complete"}"#.into(),
            r#"{"content":[],"structuredContent":{"a":1.10}}"#,
        ),
        (
            "prompts/get",
            r#"{"messages":[],"_meta":{"x":1,"io.modelcontextprotocol/subscriptionId":"l"}}"#
                .into(),
            r#"{"messages":[],"_meta":{"x":1}}"#,
        ),
    ];
    for (method, before, after) in table {
        let message = result(&before);
        assert_eq!(applied(&answer_to_legacy(method, &message), &message), after);
    }
}

#[test]
fn legacy_results_gain_members_that_modern_clients_need() {
    let info = br#"{"name":"s","version":"1"}"#;
    let meta = r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}"#;
    let hints = r#""resultType":"complete","ttlMs":0,"cacheScope":"private""#;
    for method in [
        "server/discover",
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "resources/read",
    ] {
        let message = result(r#"{"x":1}"#);
        let changed = applied(&answer_to_modern(method, &message, Some(info)), &message);
        assert_eq!(changed, format!(r#"{{"x":1,{hints},{meta}}}"#), "{method}");
    }
    let message = result(r#"{"content":[],"resultType":"input_required"}"#);
    assert_eq!(
        applied(&answer_to_modern("tools/call", &message, None), &message),
        r#"{"content":[],"resultType":"complete"}"#
    );
}

/// Some legacy servers end a list with an empty cursor, which modern clients would follow.
#[test]
fn an_empty_cursor_of_a_legacy_list_is_removed() {
    for (before, after) in [
        (r#"{"nextCursor":"","x":1}"#, r#"{"x":1,"resultType":"complete"}"#),
        (r#"{"nextCursor":"a"}"#, r#"{"nextCursor":"a","resultType":"complete"}"#),
    ] {
        let message = result(before);
        assert_eq!(applied(&answer_to_modern("x/list", &message, None), &message), after);
    }
}

#[test]
fn error_codes_are_translated_to_the_era_of_the_reader() {
    let uri = r#""data":{"uri":"a:b"}"#;
    let to_legacy = [
        ("resources/read", -32602, uri, -32002),
        ("resources/read", -32602, r#""data":{}"#, -32602),
        ("tools/call", -32602, uri, -32602),
        ("tools/call", -32020, uri, -32603),
        ("tools/call", -32021, uri, -32603),
        ("tools/call", -32022, uri, -32603),
        ("tools/call", -32601, uri, -32601),
        ("tools/call", 7, uri, 7),
    ];
    for (method, before, data, after) in to_legacy {
        let message = error(&format!(r#"{{"code":{before},"message":"m",{data}}}"#));
        let changed = answer_to_legacy(method, &message).apply(&message).into_bytes();
        let changed = Message::parse(changed, &Limits::default()).unwrap();
        assert_eq!(changed.error_code(), Some(after), "{method} {before}");
        if after == code::INTERNAL_ERROR {
            let data = changed.get("data").unwrap().parse().unwrap();
            let own = rpc::own_error(after, Some(data));
            assert_eq!(own, (before, Some(serde_json::json!({"uri": "a:b"}))));
        }
    }
    let to_modern = [
        (-32002, -32602),
        (-32041, -32603),
        (-32020, -32603),
        (-32099, -32603),
        (-32019, -32019),
        (-32000, -32000),
        (-32602, -32602),
        (-31403, -31403),
    ];
    for (before, after) in to_modern {
        let message = error(&format!(r#"{{"code":{before},"message":"m"}}"#));
        let changed = applied(&answer_to_modern("tools/call", &message, None), &message);
        let details = format!(r#"{{"kind":"server_error","details":{{"code":{before}}}}}"#);
        let data = if after == -32603 { format!(r#","data":{details}"#) } else { String::new() };
        assert_eq!(changed, format!(r#"{{"code":{after},"message":"m"{data}}}"#));
    }
    // The server's own data of an error stays beside the code.
    let message = error(r#"{"code":-32041,"message":"m","data":7.0}"#);
    let changed = applied(&answer_to_modern("tools/call", &message, None), &message);
    let details = r#"{"kind":"server_error","details":{"code":-32041,"data":7.0}}"#;
    assert_eq!(changed, format!(r#"{{"code":-32603,"message":"m","data":{details}}}"#));
    // A URL that must be visited is an ability that the client lacks.
    let message = error(r#"{"code":-32042,"message":"m","data":{"elicitations":[]}}"#);
    let changed = applied(&answer_to_modern("tools/call", &message, None), &message);
    let required = r#"{"requiredCapabilities":{"elicitation":{"url":{}}}}"#;
    assert_eq!(changed, format!(r#"{{"code":-32021,"message":"m","data":{required}}}"#));
}

#[test]
fn a_missing_ability_is_named_to_legacy_clients() {
    let needs = r#""data":{"requiredCapabilities":{"elicitation":{},"sampling":{}}}"#;
    let message = error(&format!(r#"{{"code":-32021,"message":"m",{needs}}}"#));
    let changed = applied(&error_to_legacy("tools/call", &message), &message);
    assert!(
        changed.contains("another protocol era does not have: elicitation, sampling"),
        "{changed}"
    );
}

/// E175: of a legacy client's capabilities, a modern server may use those whose questions can cross
/// the eras, with the parts that the client's revision knows.
#[test]
fn e175_capabilities_are_limited_to_questions_that_cross_the_eras() {
    let all = r#"{"roots":{"listChanged":true},"sampling":{"tools":{}},
        "elicitation":{"form":{},"url":{}},"tasks":{"list":{}},"experimental":{"a":1.0},
        "extensions":{"io.modelcontextprotocol/tasks":{},"io.modelcontextprotocol/ui":{}}}"#;
    let with = |elicitation: &str| {
        format!(r#"{{"roots":{{}},"sampling":{{"tools":{{}}}},"elicitation":{elicitation}}}"#)
    };
    for (revision, elicitation) in [
        (Revision::V2025_06_18, r#"{"form":{}}"#),
        (Revision::V2025_11_25, r#"{"form":{},"url":{}}"#),
    ] {
        let changed = capabilities_to_modern(raw(all), revision);
        assert_eq!(String::from_utf8(changed).unwrap(), with(elicitation));
    }
    for nothing in ["{}", r#"{"sampling":null,"roots":true}"#] {
        assert_eq!(capabilities_to_modern(raw(nothing), Revision::V2024_11_05), b"{}");
    }
}

/// E176: a question loses the members of modern requests, and its mode if the client knows only one
/// mode; the rest stays byte for byte.
#[test]
fn e176_questions_lose_members_unknown_to_the_revision() {
    let meta = r#""_meta":{"io.modelcontextprotocol/logLevel":"info","a": 1.0}"#;
    let params = format!(r#"{{"mode":"form","message": "m",{meta}}}"#);
    let question = |method: &str| {
        parse(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#))
    };
    for (method, revision, has_mode) in [
        ("elicitation/create", Revision::V2025_11_25, true),
        ("elicitation/create", Revision::V2025_06_18, false),
        ("sampling/createMessage", Revision::V2025_06_18, true),
    ] {
        let question = question(method);
        let changed = applied(&question_to_legacy(&question, revision), &question);
        assert_eq!(raw(&changed).get("mode").is_some(), has_mode, "{changed}");
        assert_eq!(raw(&changed).get("_meta").unwrap().as_bytes(), br#"{"a": 1.0}"#);
    }
    let messages = r#"{"messages":[{"role":"user","content":[{"a":1},{"b":2}]},
        {"role":"user","content":{"c": 3}}]}"#;
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{messages}}}"#
    );
    let sampling = parse(&text);
    let applied = |revision| applied(&question_to_legacy(&sampling, revision), &sampling);
    assert_eq!(applied(Revision::V2025_11_25), messages);
    assert_eq!(
        applied(Revision::V2025_06_18),
        concat!(
            r#"{"messages":[{"role":"user","content":{"a":1}},{"role":"user","content":{"b":2}},"#,
            r#"{"role":"user","content":{"c": 3}}]}"#
        )
    );
    let bare = r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#;
    let rewrite = question_to_legacy(&parse(bare), Revision::V2025_06_18);
    assert_eq!(rewrite.apply(&parse(bare)).into_bytes(), bare);
}

#[test]
fn tools_lose_only_members_of_the_other_era() {
    let legacy = [
        (r#"{"name":"t", "outputSchema":{"type":"object"}}"#, None),
        (r#"{"name":"t", "outputSchema":{"type":"array"}}"#, Some(r#"{"name":"t"}"#)),
        (r#"{"name":"t", "outputSchema":true}"#, Some(r#"{"name":"t"}"#)),
        (r#"{"name":"t" }"#, None),
    ];
    for (before, after) in legacy {
        assert_eq!(*tool_to_legacy(raw(before)), *after.unwrap_or(before).as_bytes());
    }
    let modern = [
        (r#"{"name":"t", "execution":{"taskSupport":"optional"}}"#, Some(r#"{"name":"t"}"#)),
        (
            r#"{"execution":{"taskSupport":"optional","x":1},"name":"t"}"#,
            Some(r#"{"execution":{"x":1},"name":"t"}"#),
        ),
        (r#"{"name":"t", "execution":{"x":1}}"#, None),
    ];
    for (before, after) in modern {
        assert_eq!(*tool_to_modern(raw(before)), *after.unwrap_or(before).as_bytes());
    }
}
