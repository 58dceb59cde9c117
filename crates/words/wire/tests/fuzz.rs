//! Fuzz targets of all parsers of this crate for texts of other programs.
//!
//! As tests they run a bounded number of rounds; `cargo bolero test NAME` runs one for longer. Each
//! round takes a text that is nearly right and changes a few of its bytes, as random bytes alone
//! hardly ever get past the first one.

#![expect(
    clippy::tests_outside_test_module,
    reason = "this whole program is tests; clippy looks for the module of unit tests"
)]

use bytes::Bytes;

use narthex_testkit::{
    rounds,
    shapes::{Grammar, JSON, survives},
};
use narthex_wire::{
    Limits, LineParser, Message, MessageError, MessageKind, Raw, Rewrite, SseParser, Template,
    headers::{HeaderParams, decode_value, encode_value},
};
use serde_json::value::RawValue;

const ROUNDS: usize = 4000;

/// Messages from which the rounds start.
const MESSAGES: [&str; 8] = [
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x",
        "arguments":{"a":[1.10,1e400]},"_meta":{"progressToken":"t"}}}"#,
    r#" { "id" : "a\u0062" , "jsonrpc" : "2.0" , "method" : "x/y" ,
        "params" : { "_meta" : { } } } "#,
    r#"{"jsonrpc":"2.0","id":-3,"result":{"content":[{"type":"text","text":"\ud83d\ude00\u0000"}],
        "_meta":{"a":{"b":[[]]}}}}"#,
    r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"é","data":null}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/x","params":{"progressToken":1,"progress":0.5}}"#,
    r#"{"method":"a","jsonrpc":"2.0","id":12345678901234567890123,"params":[1,2,{"k":"v"}]}"#,
    r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"n"}]"#,
    "{\"jsonrpc\":\"2.0\",\r\n\t\"id\":7,\"result\":{\"requestState\":\"s\"}}",
];

/// The inserted pieces: bytes that mean something to some parser here, then arbitrary ones.
const PIECES: [&str; 16] = [
    "\"",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\\",
    "\\u0000",
    "\n",
    "\r",
    "null",
    "\"id\":2,",
    "-0",
    "1e9",
    "\u{17f}",
];

/// One change: the place, the byte, and a flag that is true if it replaces the byte there.
type Change = (u16, u8, bool);

fn changed(text: &[u8], changes: &[Change]) -> Vec<u8> {
    let mut text = text.to_vec();
    for (at, what, replaces) in changes {
        let at = usize::from(*at) % (text.len() + 1);
        let end = (at + usize::from(*replaces)).min(text.len());
        match PIECES.get(usize::from(*what)) {
            Some(piece) => drop(text.splice(at..end, piece.bytes())),
            None => drop(text.splice(at..end, [*what])),
        }
    }
    text
}

fn message_of((seed, changes): &(u8, Vec<Change>)) -> Bytes {
    changed(MESSAGES[usize::from(*seed) % MESSAGES.len()].as_bytes(), changes).into()
}

/// An independent reading of an envelope.
#[derive(serde::Deserialize)]
struct Envelope<'a> {
    jsonrpc: &'a str,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

fn text_of(raw: Option<&RawValue>) -> Option<&str> {
    raw.map(RawValue::get)
}

/// S12: whatever is accepted, another parser reads in the same way.
#[test]
fn s12_accepted_messages_are_read_equally_by_serde_json() {
    let target = bolero::check!().with_iterations(rounds(ROUNDS));
    target.with_type::<(u8, Vec<Change>)>().for_each(|input| {
        let bytes = message_of(input);
        let Ok(message) = Message::parse(bytes.clone(), &Limits::default()) else { return };
        let other: Envelope<'_> = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(other.jsonrpc, "2.0");
        let id = message.id().map(|id| std::str::from_utf8(id.as_bytes()).unwrap());
        // For the other parser, null and absence are the same.
        assert_eq!(id.filter(|id| *id != "null"), text_of(other.id).filter(|id| *id != "null"));
        let method = other.method.map(|raw| serde_json::from_str::<String>(raw.get()).unwrap());
        assert_eq!(message.method(), method.unwrap_or_default());
        let is_result = message.kind() == MessageKind::Result;
        assert!(!is_result || other.error.is_none());
        assert!(message.kind() != MessageKind::Error || other.result.is_none());
        if let Some(body) = message.body_raw().filter(|_| is_result) {
            assert_eq!(body.as_bytes(), other.result.map_or("null", RawValue::get).as_bytes());
        }
    });
}

/// S12: a batch is refused as a whole, or split into messages that stand alone.
#[test]
fn s12_batches_split_into_messages() {
    let target = bolero::check!().with_iterations(rounds(ROUNDS));
    target.with_type::<(u8, Vec<Change>)>().for_each(|input| {
        let bytes = message_of(input);
        let whole = Message::parse(bytes.clone(), &Limits::default());
        let Ok(parts) = Message::parse_batch(&bytes, &Limits::default(), 4) else {
            assert!(whole.is_err());
            return;
        };
        assert!(whole.is_ok() || matches!(whole, Err(MessageError::Batch)));
        for part in parts {
            let alone = Message::parse(part.bytes().clone(), &Limits::default()).unwrap();
            assert_eq!(alone.kind(), part.kind());
        }
    });
}

/// D2: a rewrite of an accepted message is accepted, and has the requested changes.
#[test]
fn d2_rewritten_messages_are_messages() {
    let target = bolero::check!().with_iterations(rounds(ROUNDS));
    target.with_type::<((u8, Vec<Change>), u8)>().for_each(|(input, how)| {
        let Ok(message) = Message::parse(message_of(input), &Limits::default()) else { return };
        let mut rewrite = Rewrite::default();
        if how & 1 != 0 && message.id().is_some() {
            rewrite.id = Some(b"99".into());
        }
        if how & 2 != 0 {
            rewrite.meta.set("progressToken", &b"\"new\""[..]);
        }
        if how & 4 != 0 {
            rewrite.body.set("name", &b"\"renamed\""[..]);
        }
        if how & 8 != 0 {
            rewrite.body.remove("arguments");
            rewrite.meta.remove("progressToken");
        }
        let written = rewrite.apply(&message).into_bytes();
        let again = Message::parse(written.clone(), &Limits::default())
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&written)));
        assert_eq!((again.kind(), again.method()), (message.kind(), message.method()));
        if let Some(id) = &rewrite.id {
            assert_eq!(again.id().map(Raw::as_bytes), Some(&id[..]));
        }
        // In a body that is no object, no member can be changed.
        if how & 4 != 0 && again.body().is_some() {
            assert_eq!(again.get("name").unwrap().as_bytes(), b"\"renamed\"");
        }
        if rewrite.is_empty() {
            assert_eq!(written, message.bytes());
        }
    });
}

/// Feeds a text in pieces of these sizes.
fn pieces<'a>(text: &'a [u8], sizes: &'a [u8]) -> impl Iterator<Item = Bytes> + 'a {
    let mut rest = text;
    let mut sizes =
        sizes.iter().map(|size| usize::from(*size)).chain(std::iter::repeat(usize::MAX));
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let size = sizes.next().unwrap_or(usize::MAX).min(rest.len());
        let (piece, after) = rest.split_at(size);
        rest = after;
        Some(Bytes::copy_from_slice(piece))
    })
}

const STREAM: &str = concat!(
    "\u{feff}id: 1\ndata: {\"a\":\ndata: 1}\n\n: hi\n\nevent: x\rdata\r\r\n",
    "retry: 10\nid\n\ndata:é\n\n"
);

/// S31: events do not depend on how the stream was cut, and none is longer than allowed.
#[test]
fn s31_events_do_not_depend_on_the_cuts() {
    let target = bolero::check!().with_iterations(rounds(ROUNDS));
    target.with_type::<(Vec<Change>, Vec<u8>)>().for_each(|(changes, sizes)| {
        let text = changed(STREAM.as_bytes(), changes);
        let read = |sizes: &[u8]| {
            let mut parser = SseParser::new(40);
            let mut events = Vec::new();
            for piece in pieces(&text, sizes) {
                parser.push(piece);
                loop {
                    match parser.next_event() {
                        Ok(Some(event)) => events.push(event),
                        Ok(None) => break,
                        Err(_too_long) => return (events, true),
                    }
                }
            }
            (events, false)
        };
        let (cut, whole) = (read(sizes), read(&[]));
        assert_eq!(cut, whole);
        assert!(cut.0.iter().all(|event| event.data.len() <= 40));
    });
}

/// S31: the same for lines: a line that is too long is the only one lost.
#[test]
fn s31_lines_do_not_depend_on_the_cuts() {
    let target = bolero::check!().with_iterations(rounds(ROUNDS));
    target.with_type::<(Vec<Change>, Vec<u8>)>().for_each(|(changes, sizes)| {
        let text = changed(b"{\"a\":1}\n\r\n\n{}\r\nlong long long long line\n1\n", changes);
        let read = |sizes: &[u8]| {
            let mut parser = LineParser::new(16);
            let mut lines = Vec::new();
            for piece in pieces(&text, sizes) {
                parser.push(piece);
                while let Some(line) = parser.next_line().transpose() {
                    lines.push(line.ok());
                }
            }
            lines
        };
        let expected: Vec<Option<Bytes>> = text
            .split_inclusive(|byte| *byte == b'\n')
            .filter_map(|line| line.strip_suffix(b"\n"))
            .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
            .filter(|line| !line.is_empty())
            .map(|line| (line.len() <= 16).then(|| Bytes::copy_from_slice(line)))
            .collect();
        let mut cut = read(sizes);
        // The last line has no end; it may be refused for its length before one comes.
        if cut.len() > expected.len() {
            assert_eq!(cut.pop(), Some(None));
        }
        assert_eq!(cut, expected);
    });
}

/// S13: a value that was encoded is decoded to itself, and nothing is decoded by panicking.
#[test]
fn s13_header_values_survive_a_round_trip() {
    let target = bolero::check!().with_iterations(rounds(ROUNDS));
    target.with_type::<(String, Vec<Change>)>().for_each(|(text, changes)| {
        assert_eq!(decode_value(&encode_value(text)).unwrap(), text.as_str());
        let value = changed(b"=?base64?SGk=?=", changes);
        if let Ok(value) = http::HeaderValue::from_bytes(&value)
            && let Ok(decoded) = decode_value(&value)
        {
            let again = encode_value(&decoded);
            assert_eq!(decode_value(&again).unwrap(), decoded);
        }
    });
}

/// S13: no schema stops the search for annotations.
#[test]
fn s13_annotations_are_found_or_refused() {
    const SCHEMA: &str = r#"{"type":"object","properties":{
        "a":{"type":"string","x-mcp-header":"A"},
        "b":{"properties":{"c":{"type":"integer","x-mcp-header":"B-c"}}},
        "d":{"items":{"x-mcp-header":"D"}}},"$defs":{"x":{"enum":["x-mcp-header"]}}}"#;
    let target = bolero::check!().with_iterations(rounds(ROUNDS));
    target.with_type::<Vec<Change>>().for_each(|changes| {
        let text = changed(SCHEMA.as_bytes(), changes);
        if serde_json::from_slice::<&RawValue>(&text).is_err() {
            return;
        }
        let mut headers = http::HeaderMap::new();
        if let Ok(params) = HeaderParams::parse(Raw::new(&text)) {
            params.fill(Raw::new(br#"{"a":"1","b":{"c":2}}"#), &mut headers);
        }
        assert!(headers.len() <= 2);
    });
}

/// S12: messages of any shape are read within the stack of a thread, and so are the values made
/// from them.
#[test]
fn s12_messages_of_any_shape_leave_the_process_alive() {
    let message = Grammar {
        around: (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":"#,
            "}}",
        ),
        ..JSON
    };
    let schema = Grammar {
        brackets: &[("{\"properties\":{\"a\":", "}}"), ("{\"items\":", "}")],
        leaf: "{\"type\":\"string\",\"x-mcp-header\":\"A\"}",
        around: ("{\"type\":\"object\",\"properties\":{\"p\":", "}}"),
        ..JSON
    };
    let template = Grammar {
        brackets: &[("{", "}"), ("{+", "*}"), ("{?", "}")],
        prefixes: &["{", "/", "%"],
        infixes: &["/", ",", "é"],
        leaf: "a",
        around: ("test://", "/x"),
    };
    let test = "s12_messages_of_any_shape_leave_the_process_alive";
    survives(test, &[JSON, message, schema, template], Vec::new, 200_000, |text| {
        let bytes = Bytes::copy_from_slice(text.as_bytes());
        drop(Message::parse(bytes.clone(), &Limits::default()));
        drop(HeaderParams::parse(Raw::new(&bytes)));
        drop(narthex_wire::with_object_schema(&bytes));
        let template = Template::parse(text);
        std::hint::black_box(template.matches(text));
        let mut parser = SseParser::new(1 << 20);
        parser.push(bytes);
        while let Ok(Some(_)) = parser.next_event() {}
    });
}
