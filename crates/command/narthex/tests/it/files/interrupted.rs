//! Ctrl-C in a program that waits for a tool of a folder.

use std::{
    os::unix::process::ExitStatusExt,
    process::{Command, Stdio},
};

use fs_err as fs;
use narthex_testkit::fixture::{Counts, Options, Running};
use serde_json::json;

use super::{Mount, has_fuse, shell};
use crate::support::{Place, SOON};

/// Waits until the server's counts satisfy `is_so`.
pub(super) async fn until(server: &Running, is_so: impl Fn(Counts) -> bool) {
    let counting = async {
        while !is_so(server.fixture.counts()) {
            tokio::task::yield_now().await;
        }
    };
    let counted = tokio::time::timeout(SOON, counting).await;
    counted.unwrap_or_else(|_late| panic!("it stays at {:?}", server.fixture.counts()));
}

/// Waits until a process has become this program.
pub(super) async fn until_it_is(pid: &str, name: &str) {
    let becoming = async {
        while fs::read_to_string(format!("/proc/{pid}/comm")).unwrap().trim_end() != name {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SOON, becoming).await.expect("the shell becomes a program");
}

/// S29: SIGINT ends a program that waits for a slow tool, whether it reads the result or closes its
/// written file. The server gets the call's cancellation, and a later call is answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s29_an_interrupted_program_cancels_its_call_at_the_server() {
    if !has_fuse() {
        return;
    }
    let server = Running::http(Options::default()).await.unwrap();
    // Longer than the test may take, as the call: nothing but the signal ends it.
    let slow = json!({ "transport": "http", "url": server.url, "timeoutMs": 600_000 });
    let place = Place::with(&json!({ "slow": slow }));
    let _daemon = place.up();
    let _mount = Mount::new(&place, None);
    place.write("request", r#"{"ms":600000}"#);
    let reads = "exec 3<>mcp/0-slow/tools/sleep; cat request >&3; exec cat <&3";
    let closes = "exec cp request mcp/0-slow/tools/sleep";
    for (count, (name, script)) in (1..).zip([("cat", reads), ("cp", closes)]) {
        let mut program = Command::new("bash");
        program.args(["-c", script]).current_dir(place.path(""));
        let mut program = program.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        until(&server, |counts| counts.calls == count).await;
        let pid = program.id().to_string();
        until_it_is(&pid, name).await;
        assert_eq!(program.try_wait().unwrap(), None, "{script}: it waits");
        assert_eq!(server.fixture.counts().cancelled, count - 1, "{script}");
        assert!(Command::new("kill").args(["-s", "INT", &pid]).status().unwrap().success());
        until(&server, |counts| counts.cancelled == count).await;
        let done = program.wait_with_output().unwrap();
        assert_eq!(done.status.signal(), Some(2), "{script}: {done:?}");
        assert!(done.stdout.is_empty(), "{script}: {done:?}");
        assert_eq!(server.fixture.counts().calls, count, "{script}: it is not made again");
    }
    let after = r#"echo '{"message":"after"}' > mcp/0-slow/tools/echo
        jq -r '.content[0].text' mcp/0-slow/tools/echo"#;
    assert_eq!(shell(&place, after).succeeded().stdout, "after\n");
    assert_eq!(server.fixture.counts().cancelled, 2);
}

/// A daemon that stops lets open calls end first, also a call from a folder: the folder is
/// unmounted only after that, though no new connection is taken by then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_at_a_folder_is_answered_while_the_daemon_stops() {
    if !has_fuse() {
        return;
    }
    let server = Running::http(Options::default()).await.unwrap();
    let place = Place::with(&json!({ "slow": { "transport": "http", "url": server.url } }));
    let _daemon = place.up();
    let _mount = Mount::new(&place, None);
    // The folder looks for the daemon several times meanwhile.
    place.write("request", r#"{"ms":3000}"#);
    let mut copying = Command::new("cp");
    copying.args(["request", "mcp/0-slow/tools/sleep"]).current_dir(place.path(""));
    let copying = copying.stderr(Stdio::piped()).spawn().unwrap();
    until(&server, |counts| counts.calls == 1).await;
    place.run(["daemon", "stop"]).succeeded();
    let done = copying.wait_with_output().unwrap();
    assert!(done.status.success(), "{done:?}");
}
