//! Tests of the index, and of refused messages.

use super::*;

fn parse(text: &str) -> Result<Message, MessageError> {
    Message::parse(Bytes::copy_from_slice(text.as_bytes()), &Limits::default())
}

#[test]
fn indexes_a_request() {
    let text = r#"{"jsonrpc":"2.0","id":"a","method":"tools/call",
        "params":{"name":"x","_meta":{"progressToken":7},"arguments":{}},"zz":1}"#;
    let message = parse(text).unwrap();
    assert_eq!(message.kind(), MessageKind::Request);
    assert_eq!(message.method(), "tools/call");
    assert_eq!(message.id().unwrap().as_bytes(), br#""a""#);
    assert_eq!(message.get("name").unwrap().as_str().unwrap(), "x");
    assert_eq!(message.meta_value("progressToken").unwrap().as_u64(), Some(7));
    assert_eq!(message.body_raw().unwrap().get("arguments").unwrap().as_bytes(), b"{}");
}

/// S12: envelopes that peers could read in two ways.
#[test]
fn s12_ambiguous_envelopes_are_refused() {
    let (twice, other) = ("the same key twice", "a key that could be read as another one");
    let syntax = "not valid JSON";
    let bad = [
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"a"}"#, twice),
        (r#"{"jsonrpc":"2.0","id":1,"method":"a","Method":"b"}"#, other),
        (r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"name":"x","name":"y"}}"#, twice),
        (r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"name":"x","NAME":"y"}}"#, other),
        (r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"name":"x","n\u0061me":"y"}}"#, twice),
        (r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"name\u0000":"x"}}"#, other),
        (r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"_meta":{"a":1,"a":2}}}"#, twice),
        (r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#, "exactly one of"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"a","result":{}}"#, "`method` together with"),
        (r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#, "must not be null"),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"a"}"#, "`id` must be a string or an integer"),
        (r#"{"jsonrpc":"2.0","id":{},"method":"a"}"#, "`id` must be a string or an integer"),
        (r#"{"jsonrpc":"1.0","id":1,"method":"a"}"#, "`jsonrpc` must be"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"to\u006fls/list"}"#, "`method` must be"),
        (r#"{"jsonrpc":"2.0","id":1,"method":""}"#, "`method` must be"),
        (r#"{"jsonrpc":"2.0","id":1,"params":{}}"#, "`params` without `method`"),
        (r#"{"jsonrpc":"2.0","result":{}}"#, "a result needs an `id`"),
        (r#"{"jsonrpc":"2.0","id":1,"error":7}"#, "`error` must be an object"),
        (r#"{"jsonrpc":"2.0","id":1}"#, "exactly one of"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"a"} x"#, syntax),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"a"}]"#, "a batch is not accepted"),
        (r#"7"#, syntax),
    ];
    for (text, why) in bad {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.contains(why), "{text}: {error}");
    }
}

#[test]
fn s12_size_is_limited() {
    let limits = Limits { message_bytes: 10 };
    let error = Message::parse(Bytes::from_static(b"{\"jsonrpc\":\"2.0\"}"), &limits);
    assert_eq!(error.unwrap_err(), MessageError::TooLarge { limit: 10 });
}

#[test]
fn errors_may_have_a_null_id() {
    let text = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}"#;
    let message = parse(text).unwrap();
    assert_eq!((message.kind(), message.error_code()), (MessageKind::Error, Some(-32700)));
}

#[test]
fn batches_are_split_on_request_only() {
    let text = r#"[{"jsonrpc":"2.0","id":1,"method":"a"}, {"jsonrpc":"2.0","method":"b"}]"#;
    let bytes = Bytes::from_static(text.as_bytes());
    let limits = Limits::default();
    assert_eq!(Message::parse(bytes.clone(), &limits).unwrap_err(), MessageError::Batch);
    let messages = Message::parse_batch(&bytes, &limits, 10).unwrap();
    assert_eq!(messages.iter().map(Message::method).collect::<Vec<_>>(), ["a", "b"]);
    let wrong = MessageError::Envelope("an empty batch, or one with too many members");
    assert_eq!(Message::parse_batch(&bytes, &limits, 1).unwrap_err(), wrong);
    let empty = Bytes::from_static(b"[]");
    assert_eq!(Message::parse_batch(&empty, &limits, 10).unwrap_err(), wrong);
}

/// Parameters and `_meta` that are null are absent, also once the message is rewritten.
#[test]
fn null_is_absent() {
    let table = [
        (r#"{"jsonrpc":"2.0","id":1,"method":"a","params":null}"#, r#""params":{}"#),
        (r#"{"jsonrpc":"2.0","method":"a","params" : null }"#, r#""params" : {} "#),
        (r#"{"params":null,"method":"a","id":"x","jsonrpc":"2.0"}"#, r#"{"params":{},"#),
        (r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"_meta":null}}"#, r#"{"_meta":{}}"#),
        (r#"{"jsonrpc":"2.0","id":1,"result":{"_meta":null,"x":1}}"#, r#"{"_meta":{},"x":1}"#),
    ];
    for (text, written) in table {
        let message = parse(text).unwrap();
        let bytes = String::from_utf8(message.bytes().to_vec()).unwrap();
        assert!(bytes.contains(written), "{bytes}");
        let mut rewrite = crate::Rewrite::default();
        rewrite.meta.set("k", &b"1"[..]);
        let changed = rewrite.apply(&message).into_bytes();
        let changed = Message::parse(changed, &Limits::default()).unwrap();
        assert_eq!(changed.meta_value("k").unwrap().as_bytes(), b"1", "{text}");
    }
    for wrong in [r#""x""#, "7", "true"] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"a","params":{wrong}}}"#);
        let error = MessageError::Envelope("`params` must be an object");
        assert_eq!(parse(&text).unwrap_err(), error, "{text}");
    }
    let null = parse(r#"{"jsonrpc":"2.0","id":1,"result":null}"#).unwrap();
    assert_eq!(null.body_raw().unwrap().as_bytes(), b"null", "a result may be null");
}

/// An error about a request carries its id wherever that can be read, and no other id.
#[test]
fn the_id_of_a_refused_request_is_read() {
    let id = |text: &str| {
        assert!(parse(text).is_err(), "{text}");
        Message::refused_id(text.as_bytes()).map(|id| String::from_utf8(id.0.to_vec()).unwrap())
    };
    assert_eq!(id(r#"{"id":7,"method":"a"}"#).as_deref(), Some("7"));
    assert_eq!(
        id(r#"{"jsonrpc":"2.0","id":"x","method":"a","params":3}"#).as_deref(),
        Some(r#""x""#)
    );
    assert_eq!(
        id(r#"{"jsonrpc":"2.0","id":7,"method":"a","params":{"a":1,"a":2}}"#).as_deref(),
        Some("7")
    );
    for unreadable in [
        r#"{"id":7,"result":1}"#,
        r#"{"id":7,"id":8,"method":"a","jsonrpc":"2.0"}"#,
        r#"{"id":3.0,"method":"a","jsonrpc":"2.0"}"#,
        r#"{"id":null,"method":"a","jsonrpc":"2.0"}"#,
        r#"{"id":7,"method":"a""#,
        r#"[{"id":7,"method":"a"}]"#,
        "7",
        "",
    ] {
        assert_eq!(id(unreadable), None, "{unreadable}");
    }
}

/// S31: an object that is searched for each name has a limited number of members. Members inside
/// arguments and results are not counted.
#[test]
fn s31_members_of_a_message_are_limited() {
    let members = |count: usize| {
        let all: Vec<_> = (0..count).map(|one| format!(r#""k{one}":{one}"#)).collect();
        all.join(",")
    };
    let parsed = |text: String| Message::parse(text.into(), &Limits::default());
    let of = |envelope: usize, body: usize, meta: usize| {
        let more =
            |count: usize| if count == 0 { String::new() } else { format!(",{}", members(count)) };
        parsed(format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"a","params":{{"_meta":{{{}}}{}}}{}}}"#,
            members(meta),
            more(body),
            more(envelope)
        ))
    };
    of(96, 9_999, 1_000).unwrap();
    for (envelope, body, meta, most) in
        [(97, 0, 0, 100), (0, 10_000, 0, 10_000), (0, 0, 1_001, 1_000)]
    {
        let error = of(envelope, body, meta).unwrap_err();
        assert_eq!(error, MessageError::Json(JsonError::TooManyMembers { most }));
    }
    let arguments = members(20_000);
    parsed(format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"a","params":{{"arguments":{{{arguments}}}}}}}"#
    ))
    .unwrap();
}

/// S31: an array is counted no further than it is asked for.
#[test]
fn s31_arrays_are_counted_up_to_a_limit() {
    for (text, most, count) in [
        ("[]", 0, Some(0)),
        ("[1,[2,3],{}]", 3, Some(3)),
        ("[1,[2,3],{}]", 2, None),
        // Behind the second element nothing is looked at.
        ("[1,2,3,no JSON", 2, None),
        ("{}", 0, Some(0)),
        ("7", 0, Some(0)),
    ] {
        assert_eq!(Raw::new(text.as_bytes()).count_up_to(most), count, "{text}");
    }
}
