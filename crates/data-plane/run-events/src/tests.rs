//! The tap with callers and watchers.

use std::{sync::Arc, time::Duration};

use narthex_model::{Alias, RunId};

use crate::{Call, Counted, FileOperation, Tap, What, inside};

fn run(number: u8) -> RunId {
    RunId::new([number; RunId::BYTES])
}

fn call(alias: &str, tool: &str) -> Call {
    Call {
        alias: Some(Alias::new(alias).unwrap()),
        method: "tools/call".into(),
        item: Some(("tool", tool.into())),
        size: Some(45),
    }
}

fn made(tap: &Tap, number: u8, alias: &str, tool: &str) {
    let mut open = tap.begin(run(number), || call(alias, tool)).unwrap();
    open.answered(2048);
    open.end("ok");
}

/// The name of the next tool that a watcher sees, and how many operations it has lost.
async fn next(watcher: &mut crate::Watcher) -> (String, u64) {
    let seen = watcher.next().await.unwrap();
    let What::Call { item, .. } = seen.operation.what else { panic!("no call") };
    (item.unwrap().1.to_string(), seen.lost)
}

/// R-M35: without a watcher, a report is not even put together.
#[test]
fn r_m35_operations_without_a_watcher_are_not_reported() {
    let tap = Tap::default();
    assert!(tap.begin(run(1), || panic!("no watcher asked")).is_none());
    let watcher = tap.watch(run(1), Vec::new());
    assert!(tap.is_watched() && tap.is_watching(run(1)) && !tap.is_watching(run(2)));
    assert!(tap.begin(run(2), || panic!("of another run")).is_none());
    drop(watcher);
    assert!(!tap.is_watched() && !tap.is_watching(run(1)));
    assert!(tap.begin(run(1), || panic!("no watcher asked")).is_none());
}

/// R-M35: sizes, durations and the word for an error.
#[tokio::test(start_paused = true)]
async fn r_m35_an_operation_is_reported_at_its_end() {
    let tap = Tap::default();
    let mut watcher = tap.watch(run(1), Vec::new());
    let mut open = tap.begin(run(1), || call("github", "search")).unwrap();
    tokio::time::advance(Duration::from_millis(350)).await;
    open.answered(2048);
    open.end("tool_error");
    let seen = watcher.next().await.unwrap();
    let told = seen.operation;
    assert_eq!((told.size, told.result, told.error), (Some(45), Some(2048), Some("tool_error")));
    assert_eq!((told.took, told.is_inner, seen.lost), (Duration::from_millis(350), false, 0));
    drop(tap.begin(run(1), || call("github", "search")));
    let told = watcher.next().await.unwrap().operation;
    assert_eq!((told.result, told.error), (None, Some("abandoned")));
}

/// A slow watcher blocks no caller, loses operations without a place, and learns their number.
#[tokio::test]
async fn a_full_queue_drops_new_operations_and_counts_them() {
    let tap = Tap::default();
    let mut slow = tap.watch_with_room(run(1), Vec::new(), 2);
    let mut other = tap.watch(run(1), Vec::new());
    for tool in ["a", "b", "c", "d", "e"] {
        made(&tap, 1, "x", tool);
    }
    assert_eq!(next(&mut slow).await, ("a".to_owned(), 3));
    assert_eq!(next(&mut slow).await, ("b".to_owned(), 0));
    made(&tap, 1, "x", "f");
    assert_eq!(next(&mut slow).await, ("f".to_owned(), 0));
    for tool in ["a", "b", "c", "d", "e", "f"] {
        assert_eq!(next(&mut other).await, (tool.to_owned(), 0), "each has a queue of its own");
    }
    drop(slow);
    made(&tap, 1, "x", "g");
    assert_eq!(next(&mut other).await, ("g".to_owned(), 0), "the other goes on");
}

#[tokio::test]
async fn a_watcher_may_name_servers() {
    let tap = Tap::default();
    let mut watcher = tap.watch(run(1), vec![Alias::new("one").unwrap()]);
    made(&tap, 1, "two", "hidden");
    tap.begin(run(1), || Call { alias: None, ..call("one", "of all") }).unwrap().end("ok");
    made(&tap, 1, "one", "shown");
    assert_eq!(next(&mut watcher).await, ("shown".to_owned(), 0));
}

#[tokio::test]
async fn the_end_of_a_run_ends_a_watch_after_its_last_report() {
    let tap = Tap::default();
    let (mut one, mut other) = (tap.watch(run(1), Vec::new()), tap.watch(run(2), Vec::new()));
    made(&tap, 1, "x", "last");
    tap.run_ended(run(1));
    assert_eq!(next(&mut one).await.0, "last");
    assert_eq!(one.next().await, None);
    made(&tap, 2, "x", "goes on");
    assert_eq!(next(&mut other).await.0, "goes on");
    drop(one);
    assert!(tap.is_watched());
    drop(other);
    assert!(!tap.is_watched());
}

/// A call for a file is marked as an inner one, and so is a file for another file.
#[tokio::test]
async fn operations_for_a_file_are_marked_as_inner() {
    let tap = Tap::default();
    let mut watcher = tap.watch(run(1), Vec::new());
    inside(async { made(&tap, 1, "x", "inner") }).await;
    assert!(watcher.next().await.unwrap().operation.is_inner);
    let (path, took) = ("/mnt/mcp/1-x/tools/inner", Duration::from_millis(2));
    let (name, result, error) = ("Open", Some(5), None);
    let done = FileOperation { name, path, fd: None, size: None, result, error, took };
    tap.file(run(1), Some(&Alias::new("x").unwrap()), done);
    let told = watcher.next().await.unwrap().operation;
    assert_eq!(told.what, What::File { name: "Open", path: path.into(), fd: None });
    assert_eq!((told.result, told.error, told.is_inner), (Some(5), None, false));
    tap.file(run(1), None, FileOperation { result: None, error: Some("PERMISSION"), ..done });
    let told = watcher.next().await.unwrap().operation;
    assert_eq!((told.result, told.error), (None, Some("PERMISSION")));
}

/// URIs are reported without parts that may be secret; names of other things stay as they are.
#[tokio::test]
async fn uris_are_reported_without_parts_that_may_be_secret() {
    let tap = Tap::default();
    let mut watcher = tap.watch(run(1), Vec::new());
    let cases = [
        ("db://ada:canary@host/table", "db://host/table"),
        ("https://host/a?key=canary#x", "https://host/a?…"),
        ("https://ada:c@nary@host?canary", "https://host?…"),
        ("note://one#canary", "note://one#…"),
        ("file:///home/a@b", "file:///home/a@b"),
        ("plain", "plain"),
        // The text has the length of its report.
        ("a?key", "a?…"),
    ];
    for (uri, shown) in cases {
        let item = Some(("resource", Arc::from(uri)));
        let read = Call { item, ..call("x", "") };
        tap.begin(run(1), || read).unwrap().end("ok");
        let What::Call { item, .. } = watcher.next().await.unwrap().operation.what else {
            panic!("it is a call");
        };
        assert_eq!(item, Some(("resource", Arc::from(shown))));
        let (path, took) = (format!("/mnt/mcp/1-x/resources/{uri}"), Duration::ZERO);
        let (name, path) = ("Read", &*path);
        let (result, error) = (Some(5), None);
        let done = FileOperation { name, path, fd: None, size: None, result, error, took };
        tap.file(run(1), None, done);
        let told = watcher.next().await.unwrap().operation.what;
        let path = format!("/mnt/mcp/1-x/resources/{shown}").into();
        assert_eq!(told, What::File { name, path, fd: None });
    }
    made(&tap, 1, "x", "what?");
    assert_eq!(next(&mut watcher).await.0, "what?");
}

/// A long name by a client takes no room.
#[tokio::test]
async fn long_names_are_cut() {
    let tap = Tap::default();
    let mut watcher = tap.watch(run(1), Vec::new());
    made(&tap, 1, "x", &"ä".repeat(100_000));
    assert_eq!(next(&mut watcher).await.0, "ä".repeat(1024));
}

#[test]
fn calls_are_counted_while_a_counter_exists() {
    let tap = Tap::default();
    let (one, two) = (tap.count(), tap.count());
    made(&tap, 1, "x", "a");
    tap.begin(run(1), || call("x", "b")).unwrap().end("timeout");
    let rates = two.of(run(1)).since(&Counted::nothing());
    assert_eq!((rates.calls, rates.errors), (2, 1));
    assert_eq!(two.of(run(2)), Counted::nothing());
    drop(one);
    assert!(tap.is_watched());
    tap.run_ended(run(1));
    assert_eq!(two.of(run(1)), Counted::nothing(), "what has ended takes no room");
    drop(two);
    assert!(!tap.is_watched());
    assert_eq!(tap.count().of(run(1)), Counted::nothing(), "nothing of before");
}

/// R-M35: operations under way when their run ends are reported before the end is.
#[tokio::test]
async fn operations_in_progress_are_reported_before_the_end_of_their_run() {
    let tap = Tap::default();
    let mut watcher = tap.watch(run(1), Vec::new());
    let open = tap.begin(run(1), || call("github", "search")).unwrap();
    let file = |name| FileOperation {
        name,
        path: "/mnt/mcp/1-github/tools/search",
        fd: Some(3),
        size: None,
        result: None,
        error: Some("DEVICE_DISCONNECTED"),
        took: Duration::from_millis(1),
    };
    let (going_on, ended) = tokio::sync::oneshot::channel::<()>();
    let working = tap.holding(run(1), async {
        ended.await.unwrap();
        tap.file(run(1), None, file("Write"));
    });
    let mut working = std::pin::pin!(working);
    assert!(is_pending(&mut working).await, "it waits for the end");
    tap.run_ended(run(1));
    assert!(tap.begin(run(1), || call("github", "late")).is_none(), "no watcher is left");
    tap.file(run(1), None, file("Late"));
    open.end("upstream");
    going_on.send(()).unwrap();
    working.await;
    let told = watcher.next().await.unwrap().operation;
    assert_eq!(told.error, Some("upstream"));
    let told = watcher.next().await.unwrap().operation;
    assert!(matches!(told.what, What::File { name: "Write", .. }), "{told:?}");
    assert_eq!(watcher.next().await, None, "no source of events is left");
}

/// Looks at work once; `true` if it is not done.
async fn is_pending(work: &mut (impl Future<Output = ()> + Unpin)) -> bool {
    std::future::poll_fn(|cx| std::task::Poll::Ready(std::pin::Pin::new(&mut *work).poll(cx)))
        .await
        .is_pending()
}
