//! Operations that meet: the order is the test's, step by step.

use bytes::Bytes;
use narthex_vfs::Code;
use tokio::task::yield_now;

use crate::device::{Mood, name, one, pid};

const ECHO: &str = "/mnt/mcp/1-files/tools/echo";

async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        yield_now().await;
    }
}

#[tokio::test]
async fn r_o11_closing_cancels_a_call_in_progress() {
    let (_namespace, process, fake) = one();
    fake.set(Mood::Waits);
    let fd = process.open(ECHO).expect("it opens");
    let writer = process.clone();
    let writing = tokio::spawn(async move { writer.write(fd, Bytes::from_static(b"{}")).await });
    until(|| fake.asked() == 1).await;
    process.close(fd).expect("it is open");
    let written = writing.await.expect("it ends").expect_err("it was closed");
    assert_eq!(written.code(), Code::Driver);
    assert_eq!(fake.given_up(), 1, "the call is given up");
    let again = process.open(ECHO).expect("it opens");
    assert_eq!(again, fd, "the number is free");
    assert_eq!(process.read(again, 0).await.expect_err("nothing of before").code(), Code::Invalid);
}

#[tokio::test]
async fn the_later_of_two_writes_counts() {
    let (_namespace, process, fake) = one();
    fake.set(Mood::Waits);
    let fd = process.open(ECHO).expect("it opens");
    let write = |text: &'static str| {
        let process = process.clone();
        tokio::spawn(async move { process.write(fd, Bytes::from_static(text.as_bytes())).await })
    };
    let first = write(r#"{"n":1}"#);
    until(|| fake.asked() == 1).await;
    let second = write(r#"{"n":2}"#);
    until(|| fake.asked() == 2).await;
    fake.go.add_permits(2);
    assert!(first.await.expect("it ends").is_ok() && second.await.expect("it ends").is_ok());
    assert_eq!(process.read(fd, 0).await.expect("a result"), r#"echo:{"n":2}"#);
}

#[tokio::test]
async fn unmounting_and_revoking_end_operations_in_progress() {
    for by_unmount in [true, false] {
        let (namespace, process, fake) = one();
        let mounted = namespace.mount(name(1, "other"), fake.clone()).expect("nothing is there");
        fake.set(Mood::Waits);
        let fd = process.open("/mnt/mcp/1-other/tools").expect("it opens");
        let reader = process.clone();
        let reading = tokio::spawn(async move { reader.read(fd, 0).await });
        until(|| fake.asked() == 1).await;
        let code = match by_unmount {
            true => {
                assert!(namespace.unmount(&mounted));
                Code::DeviceDisconnected
            }
            false => {
                process.revoke(mounted.name());
                Code::Permission
            }
        };
        assert_eq!(reading.await.expect("it ends").expect_err("it is over").code(), code);
        assert_eq!(fake.given_up(), 1);
    }
}

#[tokio::test]
async fn the_end_of_a_process_ends_all_its_open_calls() {
    let (namespace, process, fake) = one();
    fake.set(Mood::Waits);
    let fds: Vec<_> = (0..10).map(|_| process.open(ECHO).expect("it opens")).collect();
    let calls: Vec<_> = fds
        .into_iter()
        .map(|fd| {
            let process = process.clone();
            tokio::spawn(async move { process.write(fd, Bytes::from_static(b"{}")).await })
        })
        .collect();
    until(|| fake.asked() == 10).await;
    assert!(namespace.end(pid(1)));
    for call in calls {
        let code = call.await.expect("it ends").expect_err("ended").code();
        assert_eq!(code, Code::DeviceDisconnected);
    }
    assert_eq!(fake.given_up(), 10);
    let opened = process.open(ECHO).expect_err("it has ended");
    let read = process.read(3, 0).await.expect_err("it has ended");
    let listed = process.list("/mnt/mcp/1-files/tools").await.expect_err("it has ended");
    for error in [opened, read, listed] {
        assert_eq!(error.code(), Code::DeviceDisconnected, "{error}");
    }
    assert_eq!(fake.asked(), 10);
}

#[tokio::test]
async fn concurrent_first_reads_fetch_once() {
    let (_namespace, process, fake) = one();
    fake.set(Mood::Waits);
    let fd = process.open("/mnt/mcp/1-files/tools").expect("it opens");
    let read = || {
        let process = process.clone();
        tokio::spawn(async move { process.read(fd, 5).await })
    };
    let (one, other) = (read(), read());
    until(|| fake.asked() == 1).await;
    fake.go.add_permits(2);
    let mut parts = vec![
        one.await.expect("it ends").expect("a part"),
        other.await.expect("it ends").expect("a part"),
    ];
    parts.sort();
    assert_eq!(parts, ["ls\":[", "{\"too"]);
    assert_eq!(fake.asked(), 1);
}

#[tokio::test]
async fn listing_a_directory_ends_with_its_process_or_mount() {
    for by_end in [true, false] {
        let (namespace, process, fake) = one();
        fake.set(Mood::Waits);
        let lister = process.clone();
        let listing = tokio::spawn(async move { lister.list("/mnt/mcp/1-files/tools").await });
        until(|| fake.asked() == 1).await;
        let code = match by_end {
            true => {
                assert!(namespace.end(pid(1)));
                Code::DeviceDisconnected
            }
            false => {
                process.revoke(&name(1, "files"));
                Code::Permission
            }
        };
        assert_eq!(listing.await.expect("it ends").expect_err("it is over").code(), code);
        assert_eq!(fake.given_up(), 1);
    }
}

#[tokio::test]
async fn a_written_prompt_is_not_replaced_by_an_earlier_fetch() {
    let (_namespace, process, fake) = one();
    fake.set(Mood::Waits);
    let fd = process.open("/mnt/mcp/1-files/prompts/greet").expect("it opens");
    let reader = process.clone();
    let reading = tokio::spawn(async move { reader.read(fd, 0).await });
    until(|| fake.asked() == 1).await;
    fake.set(Mood::Well);
    process.write(fd, Bytes::from_static(br#"{"a":1}"#)).await.expect("it is asked");
    fake.go.add_permits(1);
    let read = reading.await.expect("it ends").expect("there is something");
    assert_eq!(read, r#"prompt:greet:{"a":1}"#, "the last write counts");
}

/// R-E11: calls on one mount wait for none of each other: a later one may be answered first.
#[tokio::test]
async fn r_e11_calls_on_one_mount_run_concurrently() {
    let (_namespace, process, fake) = one();
    fake.set(Mood::Waits);
    let fds = [0, 1].map(|_| process.open(ECHO).expect("it opens"));
    let write = |fd| {
        let process = process.clone();
        tokio::spawn(async move { process.write(fd, Bytes::from_static(b"{}")).await })
    };
    let first = write(fds[0]);
    until(|| fake.asked() == 1).await;
    let second = write(fds[1]);
    until(|| fake.asked() == 2).await;
    process.close(fds[0]).expect("it is open");
    let first = first.await.expect("it ends").expect_err("it was given up");
    assert_eq!(first.code(), Code::Driver);
    assert!(!second.is_finished(), "the other one goes on");
    fake.set(Mood::Well);
    let third = write(process.open(ECHO).expect("it opens"));
    assert_eq!(third.await.expect("it ends").ok(), Some(2), "a later one is answered first");
    assert!(!second.is_finished(), "the one before it goes on");
    fake.go.add_permits(1);
    assert_eq!(second.await.expect("it ends").ok(), Some(2));
}
