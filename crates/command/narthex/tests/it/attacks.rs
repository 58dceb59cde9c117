//! Messages that two readers could read in two ways: refused, and nothing reaches a server.

use narthex_gateway::GatewayOptions;
use narthex_wire::Limits;
use serde_json::{Value, json};

use crate::{
    recorder::{Era, Recorder, Reply},
    world::{Socket, World, call, http_entry, initialize, modern, modern_headers},
};

/// The longest message that these worlds take.
const MESSAGE_MAX: usize = 100_000;
const DONE: &str = "{\"jsonrpc\":\"2.0\",\"id\":\u{1},\"result\":{\"content\":[]}}";
const META: &str = concat!(
    r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
    r#""io.modelcontextprotocol/clientCapabilities":{}}"#
);

/// The changes of a good call: the part that is replaced, and its replacement.
const CHANGES: [(&str, &str); 27] = [
    // Keys that come twice, also under another spelling.
    (r#""id":1"#, r#""id":1,"id":2"#),
    (r#""id":1"#, r#""id":1,"\u0069d":2"#),
    (r#""method":"tools/call""#, r#""method":"tools/call","method":"tools/list""#),
    (r#""method":"tools/call""#, r#""method":"tools/list","m\u0065thod":"tools/call""#),
    (r#""jsonrpc":"2.0""#, r#""jsonrpc":"2.0","jsonrpc":"2.0""#),
    (r#""params":{"#, r#""params":{},"params":{"#),
    (r#""name":"@""#, r#""name":"h","name":"@""#),
    (r#""name":"@""#, r#""n\u0061me":"h","name":"@""#),
    (r#""arguments":{}"#, r#""arguments":{},"arguments":{"a":1}"#),
    (r#""_meta":{"#, r#""_meta":{},"_meta":{"#),
    (r#""_meta":{"#, r#""_meta":{"progressToken":1,"progressToken":2,"#),
    // Keys that readers who ignore case take for others.
    (r#""method":"tools/call""#, r#""method":"tools/call","Method":"tools/list""#),
    (r#""params":{"#, r#""PARAMS":{},"params":{"#),
    (r#""id":1"#, r#""id":1,"iD":2"#),
    (r#""name":"@""#, r#""name":"@","Name":"h""#),
    (r#""name":"@""#, r#""NAME":"h","name":"@""#),
    (r#""arguments":{}"#, r#""arguments":{},"argumentſ":{"a":1}"#),
    (r#""_meta":{"#, r#""_Meta":{},"_meta":{"#),
    // NUL, which ends a text for some.
    (r#""name":"@""#, r#""name":"@","name\u0000x":"h""#),
    (r#""method":"tools/call""#, r#""method":"tools/call","\u0000":1"#),
    // Shapes that are no request.
    (r#""id":1"#, r#""id":null"#),
    (r#""id":1"#, r#""id":1.5"#),
    (r#""id":1"#, r#""id":{"a":1}"#),
    (r#""method":"tools/call""#, r#""method":"tools\u002fcall""#),
    (r#""jsonrpc":"2.0""#, r#""jsonrpc":"2.0","result":{}"#),
    (r#""jsonrpc":"2.0""#, r#""jsonrpc":"1.0""#),
    // Numbers that only lenient readers take.
    (r#""arguments":{}"#, r#""arguments":{"a":NaN}"#),
];

/// Bodies to refuse, each with its fault, which the message of a failed test shows.
fn corpus(name: &str) -> Vec<Vec<u8>> {
    let good = good(name);
    let change = |(part, instead): &(&str, &str)| {
        let (part, instead) = (part.replace('@', name), instead.replace('@', name));
        let changed = good.replacen(&part, &instead, 1);
        assert_ne!(changed, good);
        changed.into_bytes()
    };
    let mut all: Vec<_> = CHANGES.iter().map(change).collect();
    let with = |value: &str| good.replace(r#""arguments":{}"#, &format!(r#""arguments":{value}"#));
    let nested = |open: &str, close: &str| with(&(open.repeat(200) + "1" + &close.repeat(200)));
    all.extend([
        nested("[", "]").into_bytes(),
        nested(r#"{"a":"#, "}").into_bytes(),
        nested("[", "").into_bytes(),
        with(&format!("{:?}", "x".repeat(MESSAGE_MAX))).into_bytes(),
        format!("[{good}]").into_bytes(),
        format!("{good}{good}").into_bytes(),
        format!("\u{feff}{good}").into_bytes(),
        with("{'a':1}").into_bytes(),
        with("{\"a\":1,}").into_bytes(),
        with("{\"a\":\"\u{1}\"}").into_bytes(),
        with("/* */{}").into_bytes(),
        good.as_bytes()[..good.len() - 1].to_vec(),
        [good.as_bytes(), b"\xff"].concat(),
    ]);
    // Invalid UTF-8 inside a string.
    let mut broken = with(r#"{"a":"~"}"#).into_bytes();
    let at = broken.iter().position(|byte| *byte == b'~').unwrap();
    broken[at] = 0xc0;
    all.push(broken);
    all
}

fn good(name: &str) -> String {
    let params = format!(r#"{{"name":"{name}","arguments":{{}},"_meta":{META}}}"#);
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#)
}

async fn world(server: &Recorder) -> World {
    let limits = Limits { message_bytes: MESSAGE_MAX };
    let options = GatewayOptions { limits, ..GatewayOptions::default() };
    let world = World::with(&json!({ "raw": http_entry(&server.url) }), options).await;
    server.answer_with(Reply::Json(DONE.to_owned()));
    world
}

/// Sends each body over a connection of its own, since such a body may end the connection.
async fn refuses_all(world: &World, path: &str, name: &str, session: Option<&str>) {
    let headers = modern_headers("tools/call", Some(name));
    for body in corpus(name) {
        let mut client = world.client(path);
        client.session = session.map(str::to_owned);
        let shown = String::from_utf8_lossy(&body[..body.len().min(300)]).into_owned();
        let headers = if session.is_none() { &headers[..] } else { &[] };
        let reply = client.post(headers, body).await;
        assert!(matches!(reply.status.as_u16(), 400 | 413), "{path} {session:?} {shown}");
        assert!(matches!(reply.code(), Some(-32700 | -32600)), "{reply:?} {shown}");
    }
}

/// S12, over HTTP: at both kinds of endpoints, for clients and servers of both eras.
#[tokio::test]
async fn s12_ambiguous_messages_reach_no_server_over_http() {
    for era in [Era::Legacy, Era::Modern] {
        let mut server = Recorder::start(era).await;
        let world = world(&server).await;
        for (path, name) in [("/mcp/raw", "t"), ("/mcp", "mcp__raw__t")] {
            let session = world.legacy(path, json!({})).await.session;
            refuses_all(&world, path, name, None).await;
            refuses_all(&world, path, name, session.as_deref()).await;
            assert_eq!(server.waiting(), 0, "{era:?} {path}");
            let headers = modern_headers("tools/call", Some(name));
            let reply = world.client(path).post(&headers, good(name)).await;
            assert!(reply.json()["result"].is_object(), "{reply:?}");
            server.next().await;
        }
        world.app.drain().await;
    }
}

/// Checks that each message gets one error answer, and that the connection stays open. Only after a
/// line that is too long nothing is read; the door's own tests show that.
async fn socket_refuses_all(socket: &mut Socket, name: &str) {
    for body in corpus(name).into_iter().filter(|body| body.len() <= MESSAGE_MAX) {
        socket.send_bytes(&body).await;
        let answer: Value = serde_json::from_str(&socket.next().await).unwrap();
        let code = &answer["error"]["code"];
        let shown = String::from_utf8_lossy(&body);
        assert!(*code == -32700 || *code == -32600, "{answer} {shown}");
    }
}

/// S12, over a socket.
#[tokio::test]
async fn s12_ambiguous_messages_reach_no_server_over_sockets() {
    let mut server = Recorder::start(Era::Modern).await;
    let world = world(&server).await;
    for (place, name) in [("raw", "t"), ("mcp", "mcp__raw__t")] {
        for is_legacy in [true, false] {
            let mut socket = world.socket(place).await;
            if is_legacy {
                socket.ask(&initialize(json!({}))).await;
            }
            socket_refuses_all(&mut socket, name).await;
            assert_eq!(server.waiting(), 0);
            socket.send(&good(name)).await;
            let answer: Value = serde_json::from_str(&socket.next().await).unwrap();
            assert!(answer["result"].is_object(), "{answer}");
            server.next().await;
        }
    }
    world.app.drain().await;
}

/// Headers in place of the right ones; an empty value leaves the header out.
type Instead = &'static [(&'static str, &'static str)];

const VERSION: &str = "mcp-protocol-version";
const MISMATCHES: [Instead; 22] = [
    &[(VERSION, "")],
    &[(VERSION, "2025-11-25")],
    &[(VERSION, "2099-01-01")],
    &[(VERSION, "2026-07-28x")],
    &[(VERSION, "2026-07-28"), (VERSION, "2026-07-28")],
    &[("mcp-method", "")],
    &[("mcp-method", "tools/list")],
    &[("mcp-method", "Tools/Call")],
    &[("mcp-method", "=?base64?dG9vbHMvY2FsbA==?=")],
    &[("mcp-method", "tools/call"), ("mcp-method", "tools/list")],
    &[("mcp-name", "")],
    &[("mcp-name", "t")],
    &[("mcp-name", "mcp__raw__t")],
    &[("mcp-name", "H")],
    &[("mcp-name", "=?base64?dA==?=")],
    &[("mcp-name", "=?base64?!?=")],
    &[("mcp-name", "h"), ("mcp-name", "t")],
    &[("mcp-param-region", "")],
    &[("mcp-param-region", "us")],
    &[("mcp-param-region", "EU")],
    &[("mcp-param-region", "=?base64?dXM=?=")],
    &[("mcp-param-region", "eu"), ("mcp-param-region", "us")],
];

/// S13: every pair that disagrees is refused before anything is decided or sent.
#[tokio::test]
async fn s13_headers_that_belie_the_body_reach_no_server() {
    let mut server = Recorder::start(Era::Modern).await;
    let world = world(&server).await;
    for (path, name) in [("/mcp/raw", "h"), ("/mcp", "mcp__raw__h")] {
        let right = [
            (VERSION, "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", name),
            ("mcp-param-region", "eu"),
        ];
        let body = modern(1, "tools/call", call(name, json!({"region": "eu"}))).to_string();
        let mut client = world.client(path);
        for instead in MISMATCHES {
            let replaced = instead[0].0;
            let kept = right.into_iter().filter(|(header, _)| *header != replaced);
            let given = instead.iter().copied().filter(|(_, value)| !value.is_empty());
            let headers: Vec<_> = kept.chain(given).collect();
            let reply = client.post(&headers, body.clone()).await;
            assert_eq!(reply.status, 400, "{path} {instead:?} {reply:?}");
            assert!(matches!(reply.code(), Some(-32020 | -32022)), "{path} {instead:?} {reply:?}");
        }
        for region in [r#""eu","region":"us""#, r#""us","r\u0065gion":"eu""#, r#"["eu"]"#, "null"] {
            let odd = body.replace(r#""eu""#, region);
            let reply = client.post(&right, odd).await;
            assert_eq!((reply.status.as_u16(), reply.code()), (400, Some(-32020)), "{region}");
        }
        assert_eq!(server.waiting(), 0, "{path}");
        let reply = client.post(&right, body).await;
        assert!(reply.json()["result"].is_object(), "{reply:?}");
        server.next().await;
    }
    assert!(world.audit().await.iter().filter(|record| record["outcome"] == "ok").count() == 2);
}

/// The endings of the names of the gateway's own tools.
const OWN_TOOLS: [&str; 4] =
    ["__list_resources", "__read_resource", "__list_prompts", "__get_prompt"];

/// S24: names that look like others, or that joining or cutting would make equal, each reach their
/// own server under its own name. A name that is in no list reaches no server.
#[tokio::test]
async fn s24_look_alike_names_never_reach_another_server() {
    let long = "n".repeat(200);
    let longer = format!("{}x", "n".repeat(199));
    let names: [&[&str]; 3] = [
        &["echo", "Echo", "__echo", "b__echo", "\u{435}cho", "echo ", &long],
        &["echo", "_echo", "ech\u{3bf}", &longer],
        &["echo", "a__echo", "mcp__a__echo"],
    ];
    let aliases = ["a", "a_", "b"];
    let mut servers = Vec::new();
    let mut entries = json!({});
    for (alias, names) in aliases.iter().zip(names) {
        let server = Recorder::with_tools(Era::Modern, names).await;
        entries[*alias] = http_entry(&server.url);
        servers.push(server);
    }
    let world = World::over(&entries).await;
    let mut client = world.client("/mcp");
    let list = client.modern(&modern(1, "tools/list", json!({}))).await.json();
    let listed: Vec<String> = list["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        // The gateway's own tools call methods of other names.
        .filter(|name| !OWN_TOOLS.iter().any(|own| name.contains(own)))
        .collect();
    servers.iter().for_each(|server| server.answer_with(Reply::Json(DONE.to_owned())));
    let mut reached = std::collections::BTreeSet::new();
    for name in &listed {
        let reply = client.modern(&modern(2, "tools/call", call(name, json!({})))).await;
        assert!(reply.json()["result"]["content"].is_array(), "{name} {reply:?}");
        let hit: Vec<_> = (0..servers.len()).filter(|at| servers[*at].waiting() > 0).collect();
        assert_eq!(hit.len(), 1, "{name}");
        let got = servers[hit[0]].next().await;
        let body: Value = serde_json::from_slice(&got.body).unwrap();
        let own = body["params"]["name"].as_str().unwrap().to_owned();
        assert!(name.starts_with(&format!("mcp__{}__", aliases[hit[0]])), "{name} {own}");
        assert!(own == "h" || names[hit[0]].contains(&own.as_str()), "{name} {own}");
        assert!(reached.insert((hit[0], own.clone())), "{name} {own} is reached twice");
    }
    let all: usize = names.iter().map(|names| names.len() + 1).sum();
    assert_eq!((reached.len(), listed.len()), (all, all));
    for name in [
        "mcp__A__echo",
        "mcp__a__ECHO",
        "echo",
        "a__echo",
        "mcp__\u{430}__echo",
        "mcp__c__echo",
        "mcp__a__echo\u{0}",
        "mcp__a__ech",
        "mcp__a__",
        "MCP__a__echo",
        " mcp__a__echo",
    ] {
        let request = modern(3, "tools/call", call(name, json!({})));
        let wrapped = format!("=?base64?{}?=", base64(name));
        let headers = modern_headers("tools/call", Some(&wrapped));
        let reply = client.post(&headers, request.to_string()).await;
        assert_eq!(reply.kind(), "tool_not_found", "{name}");
    }
    assert!(servers.iter().all(|server| server.waiting() == 0));
    world.app.drain().await;
}

fn base64(text: &str) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for three in text.as_bytes().chunks(3) {
        let at = |index: usize| three.get(index).map_or(0, |byte| usize::from(*byte));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for index in 0..4 {
            let letter = LETTERS[bits >> (18 - 6 * index) & 63] as char;
            out.push(if index <= three.len() { letter } else { '=' });
        }
    }
    out
}
