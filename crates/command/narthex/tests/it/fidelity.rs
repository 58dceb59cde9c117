//! Issue point 6, D2: through a transparent endpoint every byte survives but the JSON-RPC id, the
//! progress token and the sealed request state.
//!
//! A bare server keeps the bytes that reach it and answers with given ones. Both are compared as
//! texts, after nothing but filling those three holes anew. Streams and lines carry a message in
//! one line, so there a raw line end between two tokens is a blank. Servers are reached over all
//! three transports, and clients come through all three doors.

use std::process::Stdio;

use proptest::{prelude::*, test_runner::TestRunner};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::{
    recorder::{Era, Recorder, Reply, holes_of},
    support::Place,
    template::{self, Holes, Request, fill, one_line},
    world::{Client, Socket, World, initialize, modern_headers},
};

type Members = &'static [(&'static str, &'static str)];

const VERSION: (&str, &str) = ("io.modelcontextprotocol/protocolVersion", r#""2026-07-28""#);
const MODERN: Members =
    &[VERSION, ("io.modelcontextprotocol/clientCapabilities", r#"{"elicitation":{"x":1.10}}"#)];

fn meta(era: Era) -> Members {
    match era {
        Era::Legacy => &[],
        Era::Modern => MODERN,
    }
}

/// Runs rounds of a property on one world.
fn rounds<S: Strategy>(count: u32, strategy: S, mut round: impl FnMut(S::Value)) {
    // A failed round leaves messages behind, so that a second one could not be judged.
    let config = ProptestConfig {
        failure_persistence: None,
        max_shrink_iters: 0,
        ..ProptestConfig::with_cases(count)
    };
    let round = std::cell::RefCell::new(&mut round);
    let tested = TestRunner::new(config).run(&strategy, |value| {
        (*round.borrow_mut())(value);
        Ok(())
    });
    if let Err(error) = tested {
        panic!("{error}");
    }
}

/// A request, the messages before its answer, its answer, and true if that is a stream.
#[derive(Debug, Clone)]
struct Exchange {
    request: Request,
    before: Vec<String>,
    answer: String,
    is_stream: bool,
    holes: Holes,
}

impl Exchange {
    fn reply(&self) -> Reply {
        match self.is_stream {
            false => Reply::Json(self.answer.clone()),
            true => Reply::Events(self.before.iter().chain([&self.answer]).cloned().collect()),
        }
    }

    /// The messages that the client should get.
    fn expected(&self) -> Vec<String> {
        let before = self.before.iter().filter(|_| self.is_stream);
        before.chain([&self.answer]).map(|template| fill(template, &self.holes)).collect()
    }
}

fn holes() -> impl Strategy<Value = Holes> {
    let tokens = template::id();
    (template::id(), tokens).prop_map(|(id, token)| Holes { id, token, state: String::new() })
}

fn exchange(era: Era) -> impl Strategy<Value = Exchange> {
    let vendor = template::notification(&[]);
    let before = prop::collection::vec((vendor, template::progress(), any::<bool>()), 0..3);
    (template::request(meta(era)), before, template::answer(), any::<bool>(), holes()).prop_map(
        |(request, before, answer, is_stream, holes)| {
            let reports = request.template.contains(template::TOKEN);
            let choose = |(vendor, progress, is_progress)| {
                if is_progress && reports { progress } else { vendor }
            };
            let before = before.into_iter().map(choose).collect();
            Exchange { request, before, answer, is_stream, holes }
        },
    )
}

/// Checks the message that arrived at the server.
async fn check_arrived(server: &mut Recorder, template: &str, shown: impl Fn(&str) -> String) {
    let got = server.next().await;
    let arrived = String::from_utf8(got.body.to_vec()).unwrap();
    let expected = fill(template, &holes_of(&got.body));
    assert_eq!(arrived, shown(&expected));
    assert_eq!(server.waiting(), 0);
}

async fn client(world: &World, era: Era) -> Client {
    match era {
        Era::Legacy => world.legacy("/mcp/raw", json!({})).await,
        Era::Modern => world.client("/mcp/raw"),
    }
}

fn headers<'a>(era: Era, method: &'a str, name: Option<&'a str>) -> Vec<(&'static str, &'a str)> {
    match era {
        Era::Legacy => vec![("mcp-protocol-version", "2025-11-25")],
        Era::Modern => modern_headers(method, name),
    }
}

fn over_http(era: Era) {
    let setup = Runtime::new().unwrap();
    let (mut server, world, mut client) = setup.block_on(async {
        let server = Recorder::start(era).await;
        let world = World::over_raw(&server.url).await;
        let client = client(&world, era).await;
        (server, world, client)
    });
    rounds(256, exchange(era), |exchange| {
        setup.block_on(async {
            server.answer_with(exchange.reply());
            let headers = headers(era, exchange.request.method, exchange.request.name);
            let reply = client.post(&headers, fill(&exchange.request.template, &exchange.holes));
            let reply = reply.await;
            let is_exact =
                !exchange.is_stream && reply.headers["content-type"] != "text/event-stream";
            let shown = |text: &String| if is_exact { text.clone() } else { one_line(text) };
            let got: Vec<_> = reply.messages.iter().map(shown).collect();
            assert_eq!(got, exchange.expected().iter().map(shown).collect::<Vec<_>>());
            check_arrived(&mut server, &exchange.request.template, str::to_owned).await;
        });
    });
    setup.block_on(world.app.drain());
}

/// X-M49.
#[test]
fn d2_requests_and_answers_survive_over_http_between_legacy_peers() {
    over_http(Era::Legacy);
}

/// X-M49.
#[test]
fn d2_requests_and_answers_survive_over_http_between_modern_peers() {
    over_http(Era::Modern);
}

async fn socket(world: &World, era: Era) -> Socket {
    let mut socket = world.socket("raw").await;
    if era == Era::Legacy {
        let answer = socket.ask(&initialize(json!({}))).await;
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{answer}");
    }
    socket
}

fn over_a_socket(era: Era) {
    let setup = Runtime::new().unwrap();
    let (mut server, world, mut socket) = setup.block_on(async {
        let server = Recorder::start(era).await;
        let world = World::over_raw(&server.url).await;
        let socket = socket(&world, era).await;
        (server, world, socket)
    });
    rounds(256, exchange(era), |exchange| {
        setup.block_on(async {
            server.answer_with(exchange.reply());
            socket.send(&one_line(&fill(&exchange.request.template, &exchange.holes))).await;
            check_arrived(&mut server, &exchange.request.template, one_line).await;
            for expected in exchange.expected() {
                assert_eq!(socket.next().await, one_line(&expected));
            }
        });
    });
    setup.block_on(world.app.drain());
}

#[test]
fn d2_requests_and_answers_survive_over_sockets_between_legacy_peers() {
    over_a_socket(Era::Legacy);
}

/// X-M49.
#[test]
fn d2_requests_and_answers_survive_over_sockets_between_modern_peers() {
    over_a_socket(Era::Modern);
}

/// The messages of a server over one channel with a call: its other messages belong to no call
/// there.
fn exchange_over_a_channel(era: Era) -> impl Strategy<Value = Exchange> {
    let before = prop::collection::vec(template::progress(), 0..3);
    (template::request(meta(era)), before, template::answer(), holes()).prop_map(
        |(request, mut before, answer, holes)| {
            if !request.template.contains(template::TOKEN) {
                before.clear();
            }
            Exchange { request, before, answer, is_stream: true, holes }
        },
    )
}

/// A client of one of the doors that a test goes through.
enum Door {
    Http(Box<Client>),
    Lines(Socket),
}

impl Door {
    /// Sends a request and reads as many messages as are expected, as lines show them.
    async fn exchange(&mut self, era: Era, exchange: &Exchange) -> Vec<String> {
        let request = fill(&exchange.request.template, &exchange.holes);
        let mut got = Vec::new();
        match self {
            Self::Http(client) => {
                let headers = headers(era, exchange.request.method, exchange.request.name);
                let reply = client.post(&headers, request).await;
                got.extend(reply.messages.iter().map(|text| one_line(text)));
            }
            Self::Lines(socket) => {
                socket.send(&one_line(&request)).await;
                for _ in exchange.expected() {
                    got.push(socket.next().await);
                }
            }
        }
        got
    }
}

/// Requests and answers through both doors of one program.
fn over_a_channel(era: Era, server: impl AsyncFnOnce() -> Recorder) {
    let setup = Runtime::new().unwrap();
    let (mut server, world, doors) = setup.block_on(async {
        let server = server().await;
        let world = World::over_entry(&server.entry).await;
        let http = Door::Http(Box::new(client(&world, era).await));
        let lines = Door::Lines(socket(&world, era).await);
        (server, world, [http, lines])
    });
    for mut door in doors {
        rounds(128, exchange_over_a_channel(era), |exchange| {
            setup.block_on(async {
                server.answer_with(exchange.reply());
                let got = door.exchange(era, &exchange).await;
                // A body from a POST goes into a POST unchanged.
                let is_exact = !server.url.is_empty() && matches!(door, Door::Http(_));
                let shown = |text: &str| if is_exact { text.to_owned() } else { one_line(text) };
                // The answer first: a refusal of the gateway says why nothing arrived.
                let expected = exchange.expected();
                assert_eq!(got, expected.iter().map(|text| one_line(text)).collect::<Vec<_>>());
                check_arrived(&mut server, &exchange.request.template, shown).await;
            });
        });
    }
    setup.block_on(world.app.drain());
}

#[test]
fn d2_requests_and_answers_survive_to_legacy_servers_over_stdio() {
    over_a_channel(Era::Legacy, async || Recorder::stdio(Era::Legacy));
}

#[test]
fn d2_requests_and_answers_survive_to_modern_servers_over_stdio() {
    over_a_channel(Era::Modern, async || Recorder::stdio(Era::Modern));
}

#[test]
fn d2_requests_and_answers_survive_to_servers_over_http_and_sse() {
    over_a_channel(Era::Legacy, Recorder::sse);
}

/// A client that uses the built program, with a daemon of its own.
fn over_connect(era: Era) {
    let setup = Runtime::new().unwrap();
    let mut server = setup.block_on(Recorder::start(era));
    let place = Place::with(&json!({ "raw": server.entry }));
    let daemon = place.up();
    let mut socket = setup.block_on(async {
        let mut command =
            tokio::process::Command::from(place.command(["connect", "--server", "raw"]));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let mut socket = Socket::of(child.stdout.take().unwrap(), child.stdin.take().unwrap());
        if era == Era::Legacy {
            let answer = socket.ask(&initialize(json!({}))).await;
            assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{answer}");
        }
        (socket, child)
    });
    rounds(128, exchange(era), |exchange| {
        setup.block_on(async {
            server.answer_with(exchange.reply());
            socket.0.send(&one_line(&fill(&exchange.request.template, &exchange.holes))).await;
            check_arrived(&mut server, &exchange.request.template, one_line).await;
            for expected in exchange.expected() {
                assert_eq!(socket.0.next().await, one_line(&expected));
            }
        });
    });
    drop(daemon);
}

#[test]
fn d2_requests_and_answers_survive_over_connect_between_legacy_peers() {
    over_connect(Era::Legacy);
}

#[test]
fn d2_requests_and_answers_survive_over_connect_between_modern_peers() {
    over_connect(Era::Modern);
}

/// Notifications of clients have nothing that may change, where they reach a server: on a link of
/// the client's own.
#[test]
fn d2_notifications_of_clients_survive() {
    let setup = Runtime::new().unwrap();
    let capabilities = json!({"sampling": {}});
    let (mut server, world, mut client, mut socket) = setup.block_on(async {
        let server = Recorder::start(Era::Legacy).await;
        let world = World::over_raw(&server.url).await;
        let mut client = world.legacy("/mcp/raw", capabilities.clone()).await;
        let mut socket = world.socket("raw").await;
        socket.ask(&initialize(capabilities)).await;
        // A link of one's own is opened with the first request.
        let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
        client.post(&[], list.to_string()).await;
        socket.ask(&list).await;
        (server, world, client, socket)
    });
    server.answer_with(Reply::Status(202));
    rounds(128, template::notification(&[]), |template| {
        setup.block_on(async {
            let headers = headers(Era::Legacy, "notifications/vendor-odd", None);
            let reply = client.post(&headers, template.clone()).await;
            assert_eq!(reply.status, 202, "{reply:?}");
            check_arrived(&mut server, &template, str::to_owned).await;
            socket.send(&one_line(&template)).await;
            check_arrived(&mut server, &template, one_line).await;
        });
    });
    setup.block_on(world.app.drain());
}

fn template_free_request(era: Era) -> String {
    let meta: String = meta(era)
        .iter()
        .map(|(key, value)| format!("{key:?}:{value}"))
        .collect::<Vec<_>>()
        .join(",");
    format!(r#"{{"jsonrpc":"2.0","id":0,"method":"x","params":{{"_meta":{{{meta}}}}}}}"#)
}

/// Messages of a server by itself, on the link that sessions share and on one of a session's own.
#[test]
fn d2_notifications_of_servers_survive() {
    for capabilities in [json!({}), json!({"sampling": {}})] {
        notifications_of(async || Recorder::start(Era::Legacy).await, &capabilities);
        notifications_of(Recorder::sse, &capabilities);
    }
    notifications_of(async || Recorder::stdio(Era::Legacy), &json!({}));
}

fn notifications_of(server: impl AsyncFnOnce() -> Recorder, capabilities: &Value) {
    let setup = Runtime::new().unwrap();
    let (server, world, _client, mut stream, mut socket) = setup.block_on(async {
        let server = server().await;
        let world = World::over_entry(&server.entry).await;
        let mut client = world.legacy("/mcp/raw", capabilities.clone()).await;
        let stream = client.listen().await;
        let mut socket = world.socket("raw").await;
        socket.ask(&initialize(capabilities.clone())).await;
        // A link of one's own is opened with the first request.
        let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
        client.post(&[], list.to_string()).await;
        socket.ask(&list).await;
        // That of the link that all share, and one for each of these two.
        server.has_streams(if capabilities["sampling"].is_object() { 3 } else { 1 }).await;
        (server, world, client, stream, socket)
    });
    rounds(128, template::notification(&[]), |template| {
        setup.block_on(async {
            server.say(&template).await;
            assert_eq!(stream.next().await.unwrap(), one_line(&template));
            assert_eq!(socket.next().await, one_line(&template));
        });
    });
    setup.block_on(world.app.drain());
}

/// A server's question on a call's stream, and the client's answer to it.
#[test]
fn d2_questions_of_servers_and_their_answers_survive() {
    let setup = Runtime::new().unwrap();
    let capabilities = json!({"sampling": {}, "elicitation": {}, "roots": {}});
    let (mut server, world, mut client) = setup.block_on(async {
        let server = Recorder::start(Era::Legacy).await;
        let world = World::over_raw(&server.url).await;
        let mut client = world.legacy("/mcp/raw", capabilities).await;
        let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
        client.post(&[], list.to_string()).await;
        (server, world, client)
    });
    let end = r#"{"jsonrpc":"2.0","id":ID,"result":{}}"#.replace("ID", template::ID);
    const METHODS: [&str; 4] =
        ["sampling/createMessage", "elicitation/create", "roots/list", "vendor/ask"];
    let question = prop::sample::select(&METHODS[..]).prop_flat_map(template::question);
    let all = (question, template::id(), template::answer());
    let call = json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "t"}});
    rounds(128, all, |(question, id, answer)| {
        setup.block_on(async {
            let theirs = Holes { id, ..Holes::default() };
            let asked = fill(&question, &theirs);
            server.answer_with(Reply::Events(vec![asked, end.clone()]));
            let reply = client.post(&[], call.to_string()).await;
            server.next().await;
            let seen = &reply.messages[0];
            let ours = holes_of(seen.as_bytes());
            assert_eq!(*seen, one_line(&fill(&question, &ours)));
            let accepted = client.post(&[], fill(&answer, &ours)).await;
            assert_eq!(accepted.status, 202);
            let got = server.next().await;
            assert_eq!(got.body, fill(&answer, &theirs));
        });
    });
    setup.block_on(world.app.drain());
}

/// §1.3: the server's state goes to the client sealed and comes back as it was written.
#[test]
fn d2_request_state_is_sealed_and_comes_back_byte_for_byte() {
    let setup = Runtime::new().unwrap();
    let (mut server, world, mut client) = setup.block_on(async {
        let server = Recorder::start(Era::Modern).await;
        let world = World::over_raw(&server.url).await;
        let client = world.client("/mcp/raw");
        (server, world, client)
    });
    let first = template_free_request(Era::Modern)
        .replace(r#""method":"x","params":{"#, r#""method":"tools/call","params":{"name":"t","#);
    let states = prop::sample::select(vec![r#""plain""#, r#""\u0041\/\ud83d\ude00""#, r#""""#]);
    let all = (template::interim(), template::retry(MODERN), states, template::answer());
    rounds(128, all, |(interim, retry, state, answer)| {
        setup.block_on(async {
            let theirs = Holes { state: state.to_owned(), ..Holes::default() };
            let with_state = interim.replace(template::STATE, &theirs.state);
            server.answer_with(Reply::Json(with_state));
            let headers = modern_headers("tools/call", Some("t"));
            let reply = client.post(&headers, first.clone()).await;
            server.next().await;
            let sealed = sealed(&reply.messages[0]);
            let ours = Holes { id: "0".into(), state: sealed, ..Holes::default() };
            assert_eq!(reply.messages[0], fill(&interim, &ours));
            server.answer_with(Reply::Json(answer.clone()));
            let reply = client.post(&headers, fill(&retry, &ours)).await;
            let got = server.next().await;
            let there = Holes { state: state.to_owned(), ..holes_of(&got.body) };
            assert_eq!(got.body, fill(&retry, &there));
            assert_eq!(reply.messages, [fill(&answer, &ours)]);
        });
    });
    setup.block_on(world.app.drain());
}

/// The sealed state in an interim result, as JSON.
fn sealed(result: &str) -> String {
    let start = result.find("\"n0.").expect("a state with the node's id");
    let length = result[start + 1..].find('"').unwrap();
    result[start..start + length + 2].to_owned()
}
