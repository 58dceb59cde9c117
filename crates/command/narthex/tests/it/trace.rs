//! Issue points 5 and 8: W3C trace context from headers and `_meta` to headers and `_meta`.

use serde_json::{Value, json};

use crate::{
    recorder::{Era, Recorder, Reply},
    template::ID,
    world::{World, call, legacy, modern, modern_headers},
};

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const CONTEXT: [(&str, &str); 3] =
    [("traceparent", PARENT), ("tracestate", "vendor=1"), ("baggage", "user=ada")];

/// Answers every call with the `_meta` that it came with.
const TELLTALE: &str = r#"
import sys, json
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    answers = {
        "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                       "serverInfo": {"name": "telltale", "version": "1"}},
        "tools/list": {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [{"type": "text",
                                    "text": json.dumps(m.get("params", {}).get("_meta", {}))}]},
    }
    answer = answers.get(m["method"])
    end = {"result": answer} if answer else {"error": {"code": -32601, "message": "no"}}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], **end}), flush=True)
"#;

/// Headers reach a server over HTTP as headers, in both eras.
#[tokio::test]
async fn trace_headers_are_forwarded_as_headers() {
    for era in [Era::Legacy, Era::Modern] {
        let mut server = Recorder::start(era).await;
        let world = World::over_raw(&server.url).await;
        let answer = r#"{"jsonrpc":"2.0","id":@,"result":{"content":[]}}"#.replace('@', ID);
        server.answer_with(Reply::Json(answer));
        let mut client = world.client("/mcp/raw");
        let request = match era {
            Era::Legacy => {
                client.open_session(json!({})).await;
                legacy(1, "tools/call", call("t", json!({})))
            }
            Era::Modern => modern(1, "tools/call", call("t", json!({}))),
        };
        let mut headers = match era {
            Era::Legacy => vec![],
            Era::Modern => modern_headers("tools/call", Some("t")),
        };
        headers.extend(CONTEXT);
        client.post(&headers, request.to_string()).await;
        let got = server.next().await;
        for (name, value) in CONTEXT {
            assert_eq!(got.headers[name], value, "{era:?}");
        }
        assert!(!String::from_utf8_lossy(&got.body).contains(PARENT), "{era:?}");
    }
}

/// Trace context in the `_meta` of a request is used, also in headers to servers; the caller's
/// headers beside it are not.
#[tokio::test]
async fn trace_context_in_meta_comes_before_headers() {
    let mut server = Recorder::start(Era::Legacy).await;
    let world = World::over_raw(&server.url).await;
    let answer = r#"{"jsonrpc":"2.0","id":@,"result":{"content":[]}}"#.replace('@', ID);
    server.answer_with(Reply::Json(answer));
    let mut client = world.legacy("/mcp/raw", json!({})).await;
    let own = PARENT.replace("0af7", "1af7");
    let mut params = call("t", json!({}));
    params["_meta"] = json!({"traceparent": own});
    client.post(&CONTEXT, legacy(1, "tools/call", params).to_string()).await;
    let got = server.next().await;
    assert_eq!(got.headers["traceparent"], own);
    assert!(!got.headers.contains_key("tracestate") && !got.headers.contains_key("baggage"));
}

/// Over stdio there are no headers, so they are sent in `_meta`.
#[tokio::test]
async fn trace_headers_reach_a_program_in_meta() {
    let entry = json!({"transport": "stdio", "command": "python3", "args": ["-c", TELLTALE]});
    let world = World::over(&json!({ "raw": entry })).await;
    let mut client = world.legacy("/mcp/raw", json!({})).await;
    let request = legacy(1, "tools/call", call("t", json!({}))).to_string();
    let reply = client.post(&CONTEXT, request).await.json();
    let text = reply["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{reply}"));
    let meta: Value = serde_json::from_str(text).unwrap();
    for (name, value) in CONTEXT {
        assert_eq!(meta[name], value, "{meta}");
    }
}
