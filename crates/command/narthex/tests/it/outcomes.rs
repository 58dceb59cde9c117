//! Failures of calls (D16), and the record of every one of them (S32).

use narthex_model::ServerState;
use narthex_testkit::fixture::{Bearer, Eras, Options, Quirk, Running};
use serde_json::{Value, json};

use crate::{
    recorder::{Era, Recorder, Reply},
    support::fixture,
    world::{Client, World, call, http_entry, legacy, modern, modern_headers},
};

/// A record's server, method, item and outcome.
fn shown(record: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let [server, method, outcome] = ["server", "method", "outcome"].map(|key| text(&record[key]));
    format!("{server} {method} {} {outcome}", text(&record["item"]["name"]))
}

async fn call_as(client: &mut Client, id: u64, name: &str, arguments: Value) -> String {
    let params = call(name, arguments);
    let reply = match client.session {
        Some(_) => client.post(&[], legacy(id, "tools/call", params).to_string()).await,
        None => client.modern(&modern(id, "tools/call", params)).await,
    };
    reply.kind()
}

async fn until(is_done: impl Fn() -> bool) {
    let waiting = async {
        while !is_done() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(crate::world::SOON, waiting).await.expect("it does not happen");
}

/// D16: each way in which a call fails has its kind, for both eras at both kinds of endpoint.
#[tokio::test]
async fn d16_every_failure_has_its_kind() {
    let slow = Running::http(Options::default()).await.unwrap();
    let locked =
        Options { required_bearer: Some(Bearer("other".to_owned())), ..Options::default() };
    let locked = Running::http(locked).await.unwrap();
    let refusing = Recorder::start(Era::Modern).await;
    let odd = |quirk| async move {
        Running::http(Options { quirks: vec![quirk], ..Options::default() }).await.unwrap()
    };
    let (bad, twice) = (odd(Quirk::BadJson).await, odd(Quirk::DuplicateKeysResult).await);
    let mut slow_entry = http_entry(&slow.url);
    // Time enough for each call to reach the server, which hears then that it is given up.
    slow_entry["timeoutMs"] = json!(3000);
    let mut off = http_entry(&slow.url);
    off["disabled"] = json!(true);
    let servers = json!({"slow": slow_entry, "quick": http_entry(&slow.url), "off": off,
        "locked": http_entry(&locked.url), "refusing": http_entry(&refusing.url),
        "bad": http_entry(&bad.url), "twice": http_entry(&twice.url)});
    let world = World::over(&servers).await;
    refusing.answer_with(Reply::Status(401));
    let table = [
        ("quick", "no_such_tool", "tool_not_found"),
        ("slow", "sleep", "timeout"),
        ("off", "echo", "server_disabled"),
        ("locked", "echo", "auth_unavailable"),
        ("refusing", "t", "auth_unavailable"),
        ("bad", "echo", "transport_error"),
        ("twice", "echo", "transport_error"),
    ];
    let mut calls = 0;
    for (server, tool, kind) in table {
        let path = format!("/mcp/{server}");
        let arguments = json!({"ms": 600_000, "message": "m"});
        let mut clients = vec![world.client(&path)];
        if world.app.registry().snapshot().get(server).unwrap().is_ready() {
            clients.push(world.legacy(&path, json!({})).await);
        }
        for mut client in clients {
            let got = call_as(&mut client, 1, tool, arguments.clone()).await;
            assert_eq!(got, kind, "{server} {tool} {:?}", client.session);
            calls += 1;
        }
    }
    let timed_out = || slow.fixture.counts().cancelled;
    until(|| timed_out() == 2).await;
    let records = world.audit().await;
    let records: Vec<_> =
        records.iter().filter(|record| record["method"] == "tools/call").collect();
    assert_eq!(records.len(), calls, "{records:?}");
}

/// D16, R-: a server that dies in a call fails that call at once, and is started again.
#[tokio::test]
async fn d16_a_crash_in_a_call_is_a_transport_error() {
    let quirks = ["--stdio", "--quirks", "crash-on-call"];
    let entry = json!({"transport": "stdio", "command": fixture(), "args": quirks});
    for is_legacy in [false, true] {
        let world = World::over(&json!({ "one": entry })).await;
        for (path, name) in [("/mcp/one", "echo"), ("/mcp", "mcp__one__echo")] {
            let is_ready = || world.app.registry().snapshot().servers[0].is_ready();
            until(is_ready).await;
            let mut client = world.client(path);
            if is_legacy {
                client.open_session(json!({})).await;
            }
            let got = call_as(&mut client, 1, name, json!({"message": "m"})).await;
            assert_eq!(got, "transport_error", "{path}");
        }
        let records = world.audit().await;
        let records: Vec<_> = records.iter().map(shown).collect();
        assert_eq!(records, ["one tools/call echo transport_error"; 2], "{records:?}");
    }
}

/// R-O7: files distinguish a server that died in a call from a server that was gone before, also
/// while it is started again, and after it was given up.
#[tokio::test]
async fn r_o7_files_distinguish_a_dead_server_from_a_server_gone_before() {
    // From its second start on the server answers nothing, so that it keeps starting.
    let dir = tempfile::tempdir().unwrap();
    let started = dir.path().join("started");
    let script = r#"mkdir "$0" && exec "$@"; exec cat >&2"#;
    let args = json!(["-c", script, started, fixture(), "--stdio", "--quirks", "crash-on-call"]);
    // A call waits for it as long as it may take.
    let crashing = json!({"transport": "stdio", "command": "sh", "args": args, "timeoutMs": 3000});
    let never = json!({"transport": "stdio", "command": "false"});
    let servers = json!({ "one": crashing, "never": never });
    let world = World::over(&servers).await;
    let write = async |server: &str| {
        let mut client = world.client(&format!("/vfs/mnt/mcp/0-{server}/tools/echo"));
        let reply = client.post(&[], r#"{"message":"m"}"#).await;
        assert_eq!(reply.status, 503, "{reply:?}");
        let told: Value = serde_json::from_slice(&reply.body).unwrap();
        told["failure"]["code"].as_str().unwrap().to_owned()
    };
    assert_eq!(write("one").await, "SERVICE_UNAVAILABLE", "it has seen the call");
    assert_eq!(write("one").await, "DEVICE_DISCONNECTED", "it is started again");
    let is_given_up = || {
        let row = world.app.registry().snapshot().get("never").cloned();
        row.is_some_and(|row| row.state == ServerState::Error)
    };
    until(is_given_up).await;
    assert_eq!(write("never").await, "DEVICE_DISCONNECTED", "it was given up");
}

/// D16: an answer over stdio that cannot be used ends its own call at once, and no other.
#[tokio::test]
async fn d16_an_unusable_answer_line_ends_only_its_call() {
    let quirks = ["--stdio", "--quirks", "duplicate-keys-result"];
    let entry = json!({"transport": "stdio", "command": fixture(), "args": quirks});
    let world = World::over(&json!({ "one": entry })).await;
    let got = call_as(&mut world.client("/mcp/one"), 1, "echo", json!({"message": "m"})).await;
    assert_eq!(got, "transport_error");
    assert!(world.app.registry().snapshot().servers[0].is_ready());
}

/// S13: revision 2026-07-28: the server's list of tools says which arguments are mirrored in
/// headers. A server that changes it without a word is listed anew, and the call made once more.
#[tokio::test]
async fn a_call_with_stale_headers_is_repeated_after_listing_the_tools() {
    let names = [("/mcp/one", "test_custom_headers"), ("/mcp", "mcp__one__test_custom_headers")];
    for ((path, name), is_legacy) in names.into_iter().flat_map(|at| [(at, false), (at, true)]) {
        let quirks = vec![Quirk::StaleHeaders];
        let options = Options { eras: Eras::Modern, quirks, ..Options::default() };
        let fixture = Running::http(options).await.unwrap();
        let world = World::over(&json!({ "one": http_entry(&fixture.url) })).await;
        let mut client = world.client(path);
        if is_legacy {
            client.open_session(json!({})).await;
        }
        let params = call(name, json!({"region": "eu"}));
        for (id, header) in [(1, "mcp-param-zone"), (2, "mcp-param-region")] {
            let modern_request = modern(id, "tools/call", params.clone());
            let legacy_request = legacy(id, "tools/call", params.clone());
            let (request, headers) = match is_legacy {
                true => (legacy_request, vec![]),
                false => (modern_request, modern_headers("tools/call", Some(name))),
            };
            let own = (!is_legacy).then_some((header, "eu"));
            let headers: Vec<_> = headers.into_iter().chain(own).collect();
            let reply = client.post(&headers, request.to_string()).await;
            assert!(reply.json()["result"]["content"].is_array(), "{path} {reply:?}");
        }
        // The refused call is counted, too.
        assert_eq!(fixture.fixture.counts().calls, 3, "{path}");
        let records = world.audit().await;
        let records: Vec<_> = records.iter().map(shown).collect();
        assert_eq!(records, ["one tools/call test_custom_headers ok"; 2], "{path}");
    }
}

/// S13: the same with a server that refuses every call: the gateway stops trying, and the caller is
/// not blamed for a fault of the gateway.
#[tokio::test]
async fn headers_that_are_refused_again_are_a_server_error() {
    let mut server = Recorder::start(Era::Modern).await;
    let world = World::over_raw(&server.url).await;
    let error = r#"{"jsonrpc":"2.0","id":@ID@,"error":{"code":-32020,"message":"no"}}"#;
    server.answer_with(Reply::Json(error.replace("@ID@", crate::template::ID)));
    let mut client = world.client("/mcp/raw");
    assert_eq!(call_as(&mut client, 1, "t", json!({})).await, "server_error");
    let mut calls = 0;
    while server.waiting() > 0 {
        let got = server.next().await;
        calls += usize::from(String::from_utf8_lossy(&got.body).contains("tools/call"));
    }
    assert_eq!(calls, 2);
}

/// S32, X-M64: every call has one record, whatever became of it, and a record names no argument.
#[tokio::test]
async fn s32_every_call_has_exactly_one_record() {
    let fixture =
        Running::http(Options { eras: Eras::Legacy, ..Options::default() }).await.unwrap();
    let world = World::over(&json!({ "one": http_entry(&fixture.url) })).await;
    let mut client = world.legacy("/mcp/one", json!({})).await;
    let message = json!({"message": "canary-argument"});
    client.post(&[], legacy(1, "tools/call", call("echo", message.clone())).to_string()).await;
    client.post(&[], legacy(2, "tools/call", call("fail", message)).to_string()).await;
    call_as(&mut client, 3, "no_such_tool", json!({})).await;
    let read = json!({"uri": "test://no-such-resource"});
    client.post(&[], legacy(4, "resources/read", read).to_string()).await;
    // Cancelled by its client.
    let calls = fixture.fixture.counts().calls;
    let sleeping = legacy(5, "tools/call", call("sleep", json!({"ms": 600_000}))).to_string();
    let mut second = world.legacy("/mcp/one", json!({})).await;
    let other = world.client("/mcp/one").in_session(client.session.as_ref().unwrap());
    let cancelled = async {
        until(|| fixture.fixture.counts().calls > calls).await;
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": {"requestId": 5}});
        client.post(&[], cancel.to_string()).await;
    };
    tokio::join!(other.whole("POST", &[], sleeping.clone()), cancelled);
    // Given up by the end of its session.
    let gone = world.client("/mcp/one").in_session(second.session.as_ref().unwrap());
    let ended = async {
        until(|| fixture.fixture.counts().calls > calls + 1).await;
        second.end_session().await;
    };
    let (told, ()) = tokio::join!(gone.whole("POST", &[], sleeping), ended);
    // Its client has not taken it back, so it has an answer.
    assert!(told.json()["error"]["message"].as_str().unwrap().contains("has ended"), "{told:?}");
    // Never forwarded.
    let mut modern_client = world.client("/mcp/one");
    assert_eq!(call_as(&mut modern_client, 7, "nothing", json!({})).await, "tool_not_found");
    until(|| fixture.fixture.counts().cancelled == 2).await;
    let records = world.audit().await;
    let mut lines: Vec<_> = records.iter().map(shown).collect();
    lines.sort();
    let expected = [
        "one resources/read test://no-such-resource rpc_error",
        "one tools/call echo ok",
        "one tools/call fail tool_error",
        "one tools/call no_such_tool tool_not_found",
        "one tools/call nothing tool_not_found",
        "one tools/call sleep cancelled",
        "one tools/call sleep cancelled",
    ];
    assert_eq!(lines, expected);
    let text = world.audit_text();
    assert!(!text.contains("canary"), "{text}");
}

/// S32: a caller's requests on links that several callers share are recorded like its calls.
#[tokio::test]
async fn s32_subscriptions_and_levels_are_recorded() {
    let options = Options { eras: Eras::Legacy, ..Options::default() };
    let fixture = Running::http(options).await.unwrap();
    let world = World::over(&json!({ "one": http_entry(&fixture.url) })).await;
    let uri = "test://watched-resource";
    let mut client = world.legacy("/mcp/one", json!({})).await;
    for (id, method, params) in [
        (1, "resources/subscribe", json!({ "uri": uri })),
        (2, "resources/unsubscribe", json!({ "uri": uri })),
        (3, "logging/setLevel", json!({ "level": "error" })),
    ] {
        let reply = client.post(&[], legacy(id, method, params).to_string()).await;
        assert_eq!(reply.json()["result"], json!({}), "{reply:?}");
    }
    let mut client = world.legacy("/mcp", json!({})).await;
    let level = legacy(4, "logging/setLevel", json!({ "level": "debug" }));
    assert_eq!(client.post(&[], level.to_string()).await.json()["result"], json!({}));
    let filter = json!({ "notifications": { "resourceSubscriptions": [uri] } });
    let listen = modern(5, "subscriptions/listen", filter).to_string();
    let headers = modern_headers("subscriptions/listen", None);
    let mut stream = world.client("/mcp").open("POST", &headers, &listen).await;
    let first = stream.next().await.unwrap();
    assert!(first.contains(uri), "{first}");
    drop(stream);
    let mut lines: Vec<_> = world.audit().await.iter().map(shown).collect();
    lines.sort();
    let expected = [
        "one logging/setLevel - ok",
        "one logging/setLevel - ok",
        "one resources/subscribe test://watched-resource ok",
        "one resources/unsubscribe test://watched-resource ok",
        "one subscriptions/listen test://watched-resource ok",
    ];
    assert_eq!(lines, expected);
}
