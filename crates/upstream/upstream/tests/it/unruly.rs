//! Links to a child that misbehaves: each fault affects only its own call.

use std::time::Duration;

use narthex_upstream::{ConnectError, Dialect, Ended, LinkError, LinkEvent};
use serde_json::{Value, json};

use super::world::{World, call, call_to_end, finish, forward, in_time, text_of, unruly};

async fn seen(link: &narthex_upstream::Link) -> Value {
    serde_json::from_str(&text_of(link, "seen", json!({})).await).unwrap()
}

/// R-E9: the link finds the request of an answer by its id. It skips other answers, and lines that
/// are no messages.
#[tokio::test]
async fn r_e9_unknown_and_duplicate_answers_disturb_no_call() {
    let mut world = World::new();
    let link = world.link(&unruly("garbage")).await;
    assert_eq!(text_of(&link, "strangers", json!({})).await, "proper");
    let LinkEvent::Notification(odd) = world.event().await else { panic!("no notification") };
    assert_eq!(odd.method(), "notifications/odd");
    assert_eq!(text_of(&link, "twice", json!({})).await, "first");
    assert_eq!(text_of(&link, "echo", json!({"text": "next"})).await, "next");
    link.stop().await;
    drop(link);
    world.drain().await;
}

/// E44, R-E9: a call that its caller drops is cancelled at the server under the link's id. The link
/// drops a later answer.
#[tokio::test]
async fn e44_an_answer_that_comes_after_the_cancellation_is_dropped() {
    let world = World::new();
    let link = world.link(&unruly("")).await;
    for _ in 0..3 {
        drop(call(&link, "late", json!({})).await.unwrap());
        assert_eq!(text_of(&link, "echo", json!({"text": "own"})).await, "own");
    }
    let seen = seen(&link).await;
    assert_eq!(seen["cancelled"].as_array().unwrap().len(), 3, "{seen}");
    link.stop().await;
    drop(link);
    world.drain().await;
}

/// E85: a real child sends progress under a token of the link that is new for each call. A call
/// whose caller wants no progress gets none.
#[tokio::test]
async fn e85_each_call_has_a_unique_progress_token() {
    let world = World::new();
    let link = world.link(&unruly("")).await;
    let mut tokens = Vec::new();
    for _ in 0..2 {
        let mut forwarded = call(&link, "progress", json!({"steps": 4})).await.unwrap();
        let (told, answer) = finish(&mut forwarded).await.unwrap();
        let steps: Vec<_> = told.iter().map(|one| one["params"]["progress"].clone()).collect();
        assert_eq!(steps, [json!(1), json!(2), json!(3), json!(4)]);
        tokens.push(answer["result"]["content"][0]["text"].clone());
    }
    assert_ne!(tokens[0], tokens[1]);
    assert!(tokens.iter().all(|token| token != "\"theirs\"" && token != "null"), "{tokens:?}");
    let params = json!({"name": "progress", "arguments": {}});
    let mut forwarded = forward(&link, "tools/call", params).await.unwrap();
    let (told, answer) = finish(&mut forwarded).await.unwrap();
    assert_eq!((told.len(), &answer["result"]["content"][0]["text"]), (0, &json!("null")));
    link.stop().await;
    drop(link);
    world.drain().await;
}

/// E86: the link itself never ends a call; the caller decides how long the call may take.
#[tokio::test]
async fn e86_no_limit_of_a_link_ends_a_long_call() {
    let folder = tempfile::tempdir().unwrap();
    let go_on = folder.path().join("go-on");
    let world = World::new();
    let link = world.link(&unruly("")).await;
    let mut calling = call(&link, "hold", json!({ "until": go_on })).await.unwrap();
    tokio::time::pause();
    let long = tokio::time::timeout(Duration::from_secs(600), calling.next()).await;
    assert!(long.is_err(), "{long:?}");
    tokio::time::resume();
    fs_err::write(&go_on, "").unwrap();
    let (_, answer) = finish(&mut calling).await.unwrap();
    assert_eq!(answer["result"]["content"][0]["text"], "held");
    link.stop().await;
    drop(link);
    world.drain().await;
}

/// R-E12: a call to a child that is known to be dead fails at once, without a message.
#[tokio::test]
async fn r_e12_a_call_to_a_dead_child_fails_at_once() {
    let mut world = World::new();
    let link = world.link(&unruly("")).await;
    let error = call_to_end(&link, "die", json!({"code": 9})).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("exit code 9") && text.contains("it dies in a call"), "{text}");
    world.closed().await;
    tokio::time::pause();
    let before = tokio::time::Instant::now();
    let error = call(&link, "echo", json!({})).await.unwrap_err();
    assert!(matches!(error, LinkError::Closed(_)), "{error}");
    assert_eq!(before.elapsed(), Duration::ZERO);
    tokio::time::resume();
    drop(link);
    world.drain().await;
}

/// R-E16: the link uses the revision of the server, down to the first revision.
#[tokio::test]
async fn r_e16_the_revision_is_the_servers() {
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let world = World::new();
        let link = world.link(&unruly(&format!("revision={revision}"))).await;
        assert_eq!(link.facts().revision.as_str(), revision);
        assert_eq!(text_of(&link, "echo", json!({"text": "x"})).await, "x");
        link.stop().await;
        drop(link);
        world.drain().await;
    }
    let world = World::new();
    let error = world.connect(&unruly("revision=1999-01-01")).await.unwrap_err();
    assert!(matches!(&error, ConnectError::Refused(why) if why.contains("1999-01-01")), "{error}");
    world.drain().await;
}

/// R-E17, R-M27: only the end of stderr is stored, and no line without a limit.
#[tokio::test]
async fn r_e17_a_flood_on_stderr_is_limited_and_delays_no_call() {
    let world = World::new();
    let link = world.link(&unruly("flood")).await;
    for number in 0..20 {
        let text = number.to_string();
        assert_eq!(text_of(&link, "echo", json!({ "text": text })).await, text);
    }
    let tail = link.log_tail();
    assert!(tail.len() <= 256, "{}", tail.len());
    assert!(tail.iter().map(String::len).sum::<usize>() <= 1024 * 1024);
    link.stop().await;
    drop(link);
    world.drain().await;
    let world = World::new();
    let link = world.link(&unruly("")).await;
    let long = json!({"lines": 3, "bytes": 300 * 1024});
    assert_eq!(text_of(&link, "flood", long).await, "written");
    let cut = |line: &String| line.ends_with(" bytes cut]") && line.len() < 257 * 1024 + 64;
    while link.log_tail().iter().filter(|line| cut(line)).count() < 3 {
        tokio::task::yield_now().await;
    }
    assert!(link.log_tail()[0].contains('\u{fffd}'), "what is no UTF-8 is replaced");
    link.stop().await;
    drop(link);
    world.drain().await;
}

/// R-E10, S12: a line of 4 MiB is a message like any other.
#[tokio::test]
async fn r_e10_a_line_of_four_mebibytes_is_read() {
    let world = World::new();
    let link = world.link(&unruly("")).await;
    let text = "x".repeat(4 * 1024 * 1024);
    assert_eq!(text_of(&link, "echo", json!({ "text": &text })).await.len(), text.len());
    link.stop().await;
    drop(link);
    world.drain().await;
}

/// R-E18, R-M19: the way in which a child ended is reported, and a grandchild in its group ends
/// with it.
#[tokio::test]
async fn r_e18_the_end_of_a_child_is_reported_as_graceful_or_forced() {
    let world = World::new().knowing(Dialect::Legacy);
    let polite = world.link(&unruly("child")).await;
    let deaf = world.link(&unruly("ignores-term,child")).await;
    let [(child, one), (deaf_child, other)] = [
        (text_of(&polite, "breed", json!({})).await, polite.process_id().unwrap()),
        (text_of(&deaf, "breed", json!({})).await, deaf.process_id().unwrap()),
    ];
    assert_eq!(tokio::join!(polite.stop(), deaf.stop()), (Ended::Gracefully, Ended::Killed));
    for process in [child, deaf_child, one.to_string(), other.to_string()] {
        assert!(!is_running(&process), "{process} is left");
    }
    drop((polite, deaf));
    world.drain().await;
}

/// True if a process exists and is no zombie. Its parent, which is the system by now, may reap a
/// zombie late.
fn is_running(process: &str) -> bool {
    let stat = fs_err::read_to_string(format!("/proc/{process}/stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

/// E75, S31: a child that stops reading fails only the calls that it has not read.
#[tokio::test]
async fn s31_a_child_that_stops_reading_fails_only_unread_calls() {
    let world = World::new();
    let link = world.link(&unruly("deaf-after=tools/call")).await;
    assert_eq!(text_of(&link, "echo", json!({"text": "last"})).await, "last");
    let large = json!({"text": "x".repeat(1024 * 1024)});
    let waiting = async { call_to_end(&link, "echo", large).await };
    let (called, ended) = tokio::join!(waiting, async {
        tokio::task::yield_now().await;
        in_time(link.stop()).await
    });
    assert!(matches!(called, Err(LinkError::Closed(_))), "{called:?}");
    assert_eq!(ended, Ended::Gracefully, "SIGTERM is enough");
    drop(link);
    world.drain().await;
}
