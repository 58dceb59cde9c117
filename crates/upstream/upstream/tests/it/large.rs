//! Another thread reads large answers, while other calls continue. No later message overtakes a
//! large one.

use std::{
    future::Future,
    pin::{Pin, pin},
    sync::mpsc::{SyncSender, sync_channel},
    time::Duration,
};

use narthex_upstream::{Dialect, Frame, Inventory, Link};
use serde_json::{Value, json};
use tokio::task::{JoinHandle, spawn_blocking};

use super::{
    peer::{Peer, Seen, event, events_of, text},
    world::{World, call, call_to_end, finish, http, in_time, initializes, shell},
};

/// Number of bytes that make a message large.
const PAD: usize = 2 * 1024 * 1024;
/// Number of calls within which an answer would have been read.
const CALLS: usize = 20;

/// Blocks the only thread for blocking work until the test releases it.
struct Busy {
    release: SyncSender<()>,
    thread: JoinHandle<()>,
}

impl Busy {
    fn now() -> Self {
        let (release, released) = sync_channel::<()>(1);
        let thread = spawn_blocking(move || released.recv().unwrap());
        Self { release, thread }
    }

    async fn release(self) {
        self.release.send(()).unwrap();
        self.thread.await.unwrap();
    }
}

/// Runs a test on one thread, with one more thread for blocking work.
fn on_one_thread(test: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().max_blocking_threads(1).build().unwrap().block_on(test);
}

fn padding(seen: &Seen) -> String {
    let is_large = seen.body["params"]["name"] == "large";
    "x".repeat(if is_large { PAD } else { 1 })
}

/// Small calls are answered while a large answer waits to be read. Returns the result of the large
/// call.
async fn beside<T>(mut large: Pin<&mut impl Future<Output = T>>, small: &Link, busy: Busy) -> T {
    for _ in 0..CALLS {
        tokio::select! {
            biased;
            _ = &mut large => panic!("it was read on the thread of calls"),
            answer = call_to_end(small, "small", json!({})) => drop(answer.unwrap()),
        }
    }
    busy.release().await;
    in_time(large).await
}

/// S31: other calls are answered while a large answer of their server is read, alone or in a
/// stream.
#[test]
fn s31_other_calls_are_answered_while_a_large_answer_is_read() {
    for is_stream in [false, true] {
        on_one_thread(async {
            let peer = Peer::session(move |seen| {
                let answer = || {
                    let result = json!({"content": [], "pad": padding(seen)});
                    json!({"jsonrpc": "2.0", "id": seen.body["id"], "result": result})
                };
                (seen.rpc() == "tools/call").then(|| match is_stream {
                    true => events_of(&[event(&answer())]),
                    false => text(200, "application/json", answer().to_string()),
                })
            })
            .await;
            let link = World::new().link(&http(&peer.url)).await;
            let busy = Busy::now();
            let large = pin!(call_to_end(&link, "large", json!({})));
            let (_, answer) = beside(large, &link, busy).await.unwrap();
            assert_eq!(answer["result"]["pad"].as_str().unwrap().len(), PAD);
        });
    }
}

/// S31: later messages of a stream come after a large message. A large message is not lost if it is
/// read while its caller waits for another event.
#[test]
fn s31_later_messages_do_not_overtake_a_large_message() {
    on_one_thread(async {
        let peer = Peer::session(|seen| {
            (seen.rpc() == "tools/call").then(|| {
                let progress = |text: String| {
                    let params = json!({"progressToken": seen.body["id"], "message": text});
                    let method = "notifications/progress";
                    event(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
                };
                let answer = json!({"jsonrpc": "2.0", "id": seen.body["id"], "result": {}});
                events_of(&[progress(padding(seen)), progress(String::new()), event(&answer)])
            })
        })
        .await;
        let link = World::new().link(&http(&peer.url)).await;
        let busy = Busy::now();
        let mut forwarded = in_time(call(&link, "large", json!({}))).await.unwrap();
        for _ in 0..CALLS {
            tokio::select! {
                biased;
                frame = forwarded.next() => panic!("it cannot have been read: {frame:?}"),
                answer = call_to_end(&link, "small", json!({})) => drop(answer.unwrap()),
            }
            assert!(forwarded.buffered().is_none(), "what follows has overtaken it");
        }
        busy.release().await;
        let mut lengths = Vec::new();
        while let Frame::Notification(message) = in_time(forwarded.next()).await.unwrap() {
            lengths.push(message.get("message").unwrap().as_str().unwrap().len());
        }
        assert_eq!(lengths, [PAD, 0]);
    });
}

/// S31: calls to another server are answered while a large line of a child process is read.
#[test]
fn s31_other_calls_are_answered_while_a_large_line_of_a_child_is_read() {
    on_one_thread(async {
        let place = tempfile::tempdir().unwrap();
        let mark = place.path().join("written");
        let large = format!(
            r#"*tools/call*)
            printf '{{"jsonrpc":"2.0","method":"notifications/progress",'
            printf '"params":{{"progressToken":%s,"progress":1,"message":"' "$id"
            head -c {PAD} /dev/zero | tr '\0' x; printf '"}}}}\n'
            printf '{{"jsonrpc":"2.0","id":%s,"result":{{"is":"there"}}}}\n' "$id"
            : > {};;"#,
            mark.display()
        );
        let child = World::new().knowing(Dialect::Legacy);
        let link = child.link(&shell(&format!("{} {large}", initializes()))).await;
        let peer = Peer::session(|seen| {
            let answer = json!({"jsonrpc": "2.0", "id": seen.body["id"], "result": {}});
            let answer = || text(200, "application/json", answer.to_string());
            (seen.rpc() == "tools/call").then(answer)
        })
        .await;
        let other = World::new().link(&http(&peer.url)).await;
        let busy = Busy::now();
        let mut forwarded = in_time(call(&link, "large", json!({}))).await.unwrap();
        {
            let mut large = pin!(finish(&mut forwarded));
            while !mark.exists() {
                tokio::select! {
                    biased;
                    _ = &mut large => panic!("it was read on the thread of calls"),
                    answer = call_to_end(&other, "small", json!({})) => drop(answer.unwrap()),
                }
            }
            let (notifications, answer) = beside(large, &other, busy).await.unwrap();
            let message = notifications[0]["params"]["message"].as_str().unwrap();
            assert_eq!((message.len(), &answer["result"]["is"]), (PAD, &json!("there")));
        }
        link.stop().await;
        drop((forwarded, link));
        child.drain().await;
    });
}

/// S31: a list of one large page is read completely, and other calls are answered meanwhile.
#[test]
fn s31_other_calls_are_answered_while_a_large_list_is_read() {
    on_one_thread(async {
        let tool = |n: usize| {
            let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
            json!({"name": format!("t{n}"), "description": "d".repeat(60), "inputSchema": schema})
        };
        let tools: Value = (0..20_000).map(tool).collect();
        let peer = Peer::session(move |seen| {
            let result = match seen.rpc() {
                "tools/list" => json!({"tools": tools}),
                "tools/call" => json!({}),
                _ => return None,
            };
            let answer = json!({"jsonrpc": "2.0", "id": seen.body["id"], "result": result});
            Some(text(200, "application/json", answer.to_string()))
        })
        .await;
        let link = World::new().link(&http(&peer.url)).await;
        let busy = Busy::now();
        let listing = pin!(Inventory::fetch(&link, Duration::from_secs(600)));
        let inventory = beside(listing, &link, busy).await.unwrap();
        assert_eq!(inventory.entries().count(), 20_000);
        assert!(inventory.warnings().is_empty() && inventory.tool("t19999").is_some());
    });
}
