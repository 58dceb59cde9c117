//! Forbidden outcomes: hanging, leaving the tree, continuing after a revocation (S29).

use std::{
    os::unix::process::ExitStatusExt, process::Stdio, sync::atomic::Ordering, time::Duration,
};

use narthex_fuse::MountError;
use narthex_vfs::Limits;
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::{
    device::Fake,
    world::{World, name},
};

/// Begins to read a slow tool, and waits until the server has been asked.
async fn slow(world: &World) -> tokio::process::Child {
    let script = "f = open('tools/slow', 'r+b', buffering=0); f.write(b'{}'); print(f.read())";
    let mut command = world.command("python3", &["-c", script]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("it starts");
    world.within(world.fake.began.notified()).await;
    world.until_reads(&child).await;
    child
}

fn signal(child: &tokio::process::Child, signal: rustix::process::Signal) {
    let pid = child.id().and_then(|id| i32::try_from(id).ok());
    let pid = pid.and_then(rustix::process::Pid::from_raw).expect("it runs");
    rustix::process::kill_process(pid, signal).expect("it is ours");
}

/// R-E11.
#[tokio::test(flavor = "multi_thread")]
async fn s29_a_slow_tool_blocks_nothing_else() {
    let Some(world) = World::new() else { return };
    let slow = slow(&world).await;
    assert_eq!(world.bash("echo '{}' > tools/echo; cat tools/echo").await, "{}\n");
    assert!(world.bash("ls tools; cat ctl/status").await.contains("ready"));
    world.fake.go.add_permits(1);
    let output = world.within(slow.wait_with_output()).await.expect("it ran");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "b'at last\\n'\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_and_kill_cancel_the_call() {
    let Some(world) = World::new() else { return };
    use rustix::process::Signal;
    for sent in [Signal::INT, Signal::KILL, Signal::ABORT, Signal::SEGV] {
        let slow = slow(&world).await;
        signal(&slow, sent);
        world.within(world.fake.given_up.notified()).await;
        let output = world.within(slow.wait_with_output()).await.expect("it ran");
        let by_signal = output.status.signal() == Some(sent.as_raw());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(by_signal || said.contains("KeyboardInterrupt"), "{}: {said}", output.status);
    }
}

/// A program that waits for an answer cannot be killed: it gets one within a deadline, whatever the
/// server does.
#[tokio::test(flavor = "multi_thread")]
async fn s29_a_server_that_never_answers_is_given_up_at_its_deadline() {
    let soon = Duration::from_millis(50);
    // Names are looked up in lists, which are fetched.
    let fetch = Duration::from_secs(1);
    let limits = Limits { call: soon, fetch, ..Limits::default() };
    let Some(world) = World::bounded(Fake::new(), limits) else { return };
    let script = "
import errno, os
both = os.open('tools/slow', os.O_RDWR); os.write(both, b'{}')
written = os.open('tools/slow', os.O_WRONLY); os.write(written, b'{}')
fetched = os.open('resources/slow:%2F%2F%2Fnotes.txt', os.O_RDONLY)
for do in (lambda: os.read(both, 100), lambda: os.close(written), lambda: os.read(fetched, 100),
           lambda: open('tools/slow').read()):
    try: print(do())
    except OSError as error: print(errno.errorcode[error.errno])
";
    assert_eq!(world.python(script).await, "ETIMEDOUT\n".repeat(4));
    assert!(world.bash("cat ctl/error").await.contains(r#""code":"TIMEOUT""#));
    let limits = Limits { fetch: soon, ..limits };
    let Some(world) = World::bounded(Fake::with_tools(Vec::new()), limits) else { return };
    let output = world.run("ls", &["tools"]).await;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("timed out"), "{said}");
}

/// A program that may make a file waits in the kernel for each look-up there, and cannot be killed
/// meanwhile: no look-up waits for a server.
#[tokio::test(flavor = "multi_thread")]
async fn s29_a_server_that_lists_no_tools_delays_no_call_by_name() {
    // Without tools its lists never end.
    let Some(world) = World::of(Fake::with_tools(Vec::new())) else { return };
    let mut listing = world.command("ls", &["tools"]).spawn().expect("it starts");
    let script = r#"for n in 1 2 3; do
        (echo "{\"n\":$n}" > tools/echo$n; cat tools/echo$n) &
    done; wait"#;
    let said = world.bash(script).await;
    let mut lines: Vec<_> = said.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, [r#"{"n":1}"#, r#"{"n":2}"#, r#"{"n":3}"#]);
    signal(&listing, rustix::process::Signal::KILL);
    world.within(listing.wait()).await.expect("it ran");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_of_a_call_that_a_poll_started_can_be_killed() {
    let Some(world) = World::new() else { return };
    let script = "
import os, select
f = os.open('tools/slow', os.O_RDWR)
os.write(f, b'{}')
poll = select.poll(); poll.register(f, select.POLLIN); poll.poll(0)
print('reads', flush=True)
os.read(f, 100)
";
    let mut command = world.command("python3", &["-c", script]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let said = world.within(lines.next_line()).await.expect("it can be read");
    assert_eq!(said.as_deref(), Some("reads"));
    signal(&child, rustix::process::Signal::KILL);
    let status = world.within(child.wait()).await.expect("it ran");
    assert_eq!(status.signal(), Some(9));
}

#[tokio::test(flavor = "multi_thread")]
async fn killing_one_of_two_readers_leaves_the_result_to_the_other() {
    let Some(world) = World::new() else { return };
    // Not by `read`: the kernel lets one at a time read where a descriptor is.
    let script = "
import os, sys, threading
f = os.open('tools/slow', os.O_RDWR)
os.write(f, b'{}')
r, w = os.pipe()
child = os.fork()
if child == 0:
    sys.stdin.readline()
    print(os.getpid(), flush=True)
    os.pread(f, 100, 2)
    os._exit(0)
os.close(w)
def watch():
    os.read(r, 1)
    print('dead', flush=True)
threading.Thread(target=watch).start()
print(os.pread(f, 100, 2))
";
    let mut command = world.command("python3", &["-c", script]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    world.within(world.fake.began.notified()).await;
    world.until_reads(&child).await;
    drop(child.stdin.take());
    let pid = world.within(lines.next_line()).await.expect("it can be read").expect("it says");
    let pid = rustix::process::Pid::from_raw(pid.parse().expect("a number")).expect("no 0");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it is ours");
    let said = world.within(lines.next_line()).await.expect("it can be read");
    assert_eq!(said.as_deref(), Some("dead"));
    world.fake.go.add_permits(1);
    let said = world.within(lines.next_line()).await.expect("it can be read");
    assert_eq!(said.as_deref(), Some("b'at last\\n'"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_killed_before_closing_makes_no_call() {
    let Some(world) = World::new() else { return };
    let script = "
import os, sys
f = os.open('tools/echo', os.O_WRONLY)
os.write(f, b'{}')
print('wrote', flush=True)
sys.stdin.readline()
";
    for sent in [rustix::process::Signal::TERM, rustix::process::Signal::KILL] {
        let mut command = world.command("python3", &["-c", script]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let said = world.within(lines.next_line()).await.expect("it can be read");
        assert_eq!(said.as_deref(), Some("wrote"));
        signal(&child, sent);
        let status = world.within(child.wait()).await.expect("it ran");
        assert_eq!(status.signal(), Some(sent.as_raw()));
        let read = world.run("cat", &["tools/echo"]).await;
        let said = String::from_utf8_lossy(&read.stderr).into_owned();
        assert!(said.contains("canceled"), "{said}");
    }
    assert_eq!(world.fake.asked.load(Ordering::SeqCst), 0);
}

/// Writes by a program that closes by ending, and does not wait for it.
const PRINT: &str = r#"python3 -c 'print("{}")' > tools/slow"#;

#[tokio::test(flavor = "multi_thread")]
async fn s29_a_program_that_ends_after_writing_leaves_the_result_to_its_tree() {
    let Some(world) = World::new() else { return };
    for ends in [PRINT, "echo '{}' > tools/slow & wait"] {
        // The server answers nothing before all of that is over.
        let script = format!("{ends}; echo ended; exec cat tools/slow");
        let mut command = world.command("bash", &["-c", &script]);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let said = world.within(lines.next_line()).await.expect("it can be read");
        assert_eq!(said.as_deref(), Some("ended"), "{ends}");
        world.within(world.fake.began.notified()).await;
        world.fake.go.add_permits(1);
        let said = world.within(lines.next_line()).await.expect("it can be read");
        assert_eq!(said.as_deref(), Some("at last"), "{ends}");
        assert!(world.within(child.wait()).await.expect("it ran").success(), "{ends}");
    }
    assert_eq!(world.fake.asked.load(Ordering::SeqCst), 2, "each write is one call");
}

#[tokio::test(flavor = "multi_thread")]
async fn s29_an_interrupted_reader_cancels_the_call_of_an_ended_program() {
    let Some(world) = World::new() else { return };
    let script = format!(
        "{PRINT}
exec python3 -c \"
import errno, os, signal
f = os.open('tools/slow', os.O_RDONLY | os.O_NONBLOCK)
try: os.read(f, 100)
except BlockingIOError: print('waits', flush=True)
os.set_blocking(f, True)
signal.signal(signal.SIGINT, lambda *_: None)
print('reads', flush=True)
try: print(os.read(f, 100), flush=True)
except OSError as error: print(errno.errorcode[error.errno], flush=True)
\""
    );
    let mut command = world.command("bash", &["-c", &script]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    for wanted in ["waits", "reads"] {
        let said = world.within(lines.next_line()).await.expect("it can be read");
        assert_eq!(said.as_deref(), Some(wanted));
    }
    let interrupting = async {
        loop {
            signal(&child, rustix::process::Signal::INT);
            tokio::task::yield_now().await;
        }
    };
    let interrupted = async {
        tokio::select! {
            () = world.fake.given_up.notified() => {}
            () = interrupting => {}
        }
    };
    world.within(interrupted).await;
    let said = world.within(lines.next_line()).await.expect("it can be read");
    assert_eq!(said.as_deref(), Some("ECANCELED"));
    // The last of the signals may have met it at its end.
    world.within(child.wait()).await.expect("it ran");
}

#[tokio::test(flavor = "multi_thread")]
async fn s29_unmounting_cancels_the_call_of_an_ended_program() {
    let Some(mut world) = World::new() else { return };
    world.bash(PRINT).await;
    world.within(world.fake.began.notified()).await;
    let mounted = world.mounted.take().expect("it is mounted");
    let unmounting = tokio::task::spawn_blocking(move || mounted.unmount());
    world.within(unmounting).await.expect("it ran").expect("it is unmounted");
    world.within(world.fake.given_up.notified()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s29_a_waiting_lister_can_be_killed_and_is_answered_by_unmounting() {
    let Some(mut world) = World::of(Fake::with_tools(Vec::new())) else { return };
    let mut ls = world.command("ls", &["tools"]).spawn().expect("it starts");
    world.within(world.fake.began.notified()).await;
    signal(&ls, rustix::process::Signal::KILL);
    let status = world.within(ls.wait()).await.expect("it ran");
    assert_eq!(status.signal(), Some(9));
    world.within(world.fake.given_up.notified()).await;
    let mut ls = world.command("ls", &["tools"]).spawn().expect("it starts");
    world.within(world.fake.began.notified()).await;
    let mounted = world.mounted.take().expect("it is mounted");
    let unmounting = tokio::task::spawn_blocking(move || mounted.unmount());
    world.within(unmounting).await.expect("it ran").expect("it is unmounted");
    assert!(!world.within(ls.wait()).await.expect("it ran").success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_in_use_as_working_directory_can_be_unmounted() {
    let Some(mut world) = World::new() else { return };
    let mut cat = world.command("cat", &[]).stdin(Stdio::piped()).spawn().expect("it starts");
    let mounted = world.mounted.take().expect("it is mounted");
    let unmounting = tokio::task::spawn_blocking(move || mounted.unmount());
    world.within(unmounting).await.expect("it ran").expect("it is unmounted");
    assert_eq!(world.root().read_dir().expect("it is a folder").count(), 0);
    drop(cat.stdin.take());
    world.within(cat.wait()).await.expect("it ran");
}

#[tokio::test(flavor = "multi_thread")]
async fn s29_unmounting_answers_waiting_callers() {
    let Some(mut world) = World::new() else { return };
    let slow = slow(&world).await;
    let mounted = world.mounted.take().expect("it is mounted");
    let unmounting = tokio::task::spawn_blocking(move || mounted.unmount());
    world.within(unmounting).await.expect("it ran").expect("it is unmounted");
    world.within(world.fake.given_up.notified()).await;
    let output = world.within(slow.wait_with_output()).await.expect("it ran");
    assert!(!output.status.success(), "its call was given up");
    assert!(!world.server().exists(), "the folder is empty again");
    assert_eq!(world.root().read_dir().expect("it is a folder").count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn s29_an_open_descriptor_fails_after_its_mount_is_revoked() {
    let Some(world) = World::new() else { return };
    let script = "
import errno, sys, os
f = open('tools/echo', 'r+b', buffering=0)
f.write(b'{}'); f.read()
print('ready', flush=True)
sys.stdin.readline()
for do in (lambda: f.write(b'{}'), lambda: f.read(), lambda: os.open('tools/big', os.O_RDWR)):
    try: do(); print('none')
    except OSError as error: print(errno.errorcode[error.errno])
";
    let mut command = world.command("python3", &["-c", script]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut out = child.stdout.take().expect("it is piped");
    let mut begin = [0; 6];
    let reading = tokio::io::AsyncReadExt::read_exact(&mut out, &mut begin);
    world.within(reading).await.expect("it says so");
    world.process.revoke(&name());
    drop(child.stdin.take());
    let mut rest = String::new();
    let reading = tokio::io::AsyncReadExt::read_to_string(&mut out, &mut rest);
    world.within(reading).await.expect("it says so");
    assert_eq!(rest, "EACCES\nEACCES\nEACCES\n");
    assert_eq!(world.fake.asked.load(Ordering::SeqCst), 1, "the server was not asked again");
}

/// Results that are read after the answer: next to an earlier result, half read, called and not
/// read, fetched and half read, and by a new open.
const READS_LATER: &str = "
import errno, os, sys
open('tools/echo', 'w').write('{\"n\":1}')
kept = os.open('tools/echo', os.O_RDONLY)
half = os.open('tools/echo', os.O_RDWR); os.write(half, b'{}'); os.read(half, 1)
called = os.open('tools/echo', os.O_RDWR); os.write(called, b'{}')
fetched = os.open('tools/echo.md', os.O_RDONLY); os.read(fetched, 1)
print('ready', flush=True)
sys.stdin.readline()
def anew(): return os.read(os.open('tools/echo', os.O_RDONLY), 100)
for do in (*(lambda f=f: os.read(f, 100) for f in (kept, half, called, fetched)),
           lambda: os.write(half, b'{}'), anew):
    try: print(do())
    except OSError as error: print(errno.errorcode[error.errno])
";

#[tokio::test(flavor = "multi_thread")]
async fn s29_a_stored_result_is_not_readable_after_its_server_is_gone() {
    type Change = fn(&World) -> bool;
    let changes: [(Change, &str, &str); 3] = [
        (|world| world.namespace.unmount(&world.of_server), "ENODEV", "ENOENT"),
        (|world| world.namespace.renew(&world.of_server), "ENODEV", "EINVAL"),
        (
            |world| {
                world.process.revoke(&name());
                true
            },
            "EACCES",
            "EACCES",
        ),
    ];
    for (change, before, anew) in changes {
        let Some(world) = World::new() else { return };
        let mut command = world.command("python3", &["-c", READS_LATER]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let said = world.within(lines.next_line()).await.expect("it can be read");
        assert_eq!(said.as_deref(), Some("ready"));
        assert!(change(&world));
        drop(child.stdin.take());
        for wanted in [before, before, before, before, before, anew] {
            let said = world.within(lines.next_line()).await.expect("it can be read");
            assert_eq!(said.as_deref(), Some(wanted), "before: {before}");
        }
        assert!(world.within(child.wait()).await.expect("it ran").success());
        assert_eq!(world.fake.asked.load(Ordering::SeqCst), 3, "nothing more was called");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn s29_the_folder_creates_no_files_and_no_path_leads_out() {
    let Some(world) = World::new() else { return };
    for script in [
        "mkdir tools/x",
        "touch tools/new",
        "echo '{}' > tools/new",
        "ln -s /etc/passwd tools/link",
        "ln tools/echo tools/hard",
        "mv tools/echo tools/other",
        "rm tools/echo",
        "rmdir tools",
        "chmod 777 tools/echo",
        "chown 1 tools/echo",
        "mknod tools/dev c 1 3",
        "cat tools/..%2F..%2F..%2Fetc%2Fpasswd",
        "cat resources/..%2F..%2Fetc%2Fpasswd",
        "cat ../2-files/tools/echo",
        "cat ../1-other/tools/echo",
        "cat tools/echo/../../../etc/passwd",
    ] {
        let output = world.run("bash", &["-c", script]).await;
        assert!(!output.status.success(), "`{script}` should fail");
    }
    let deep = format!("cat {}", "tools/../".repeat(200) + "tools/echo.md");
    assert_eq!(world.bash(&deep).await, "# echo\n", "the kernel walks the tree");
    let long = format!("cat tools/{}", "x".repeat(300));
    assert!(!world.run("bash", &["-c", &long]).await.status.success());
    assert_eq!(world.fake.asked.load(Ordering::SeqCst), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn s29_the_kernel_denies_another_user() {
    let Some(world) = World::new() else { return };
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: only root can become another user to try it");
        return;
    }
    let script = "
import errno, os
os.setgid(65534); os.setuid(65534)
for path in ('.', '..', 'tools/echo'):
    try: os.stat(path); print('seen')
    except OSError as error: print(errno.errorcode[error.errno])
try: os.listdir('/proc/self/cwd'); print('listed')
except OSError as error: print(errno.errorcode[error.errno])
";
    let said = world.python(script).await;
    assert!(said.lines().all(|line| line == "EACCES"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_nonblocking_caller_can_poll_for_the_result() {
    let Some(world) = World::new() else { return };
    let script = "
import os, select
f = os.open('tools/slow', os.O_RDWR | os.O_NONBLOCK)
os.write(f, b'{}')
try: os.read(f, 100); print('read')
except BlockingIOError: print('not yet', flush=True)
poll = select.poll(); poll.register(f, select.POLLIN)
print(bool(poll.poll(60000)), os.read(f, 100))
";
    let mut command = world.command("python3", &["-c", script]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let said = world.within(lines.next_line()).await.expect("it can be read");
    assert_eq!(said.as_deref(), Some("not yet"));
    world.fake.go.add_permits(1);
    let said = world.within(lines.next_line()).await.expect("it can be read");
    assert_eq!(said.as_deref(), Some("True b'at last\\n'"));
    world.within(child.wait()).await.expect("it ran");
}

/// Programs with a loop of events ask before each piece whether they may write.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_can_poll_between_pieces_of_a_request() {
    let Some(world) = World::new() else { return };
    let script = "
import os, select, threading
f = os.open('tools/echo', os.O_RDWR | os.O_NONBLOCK)
def poll(events, wait=0):
    poll = select.poll(); poll.register(f, events)
    return [found for _, found in poll.poll(wait)]
os.write(f, b'{\"a\":')
print(poll(select.POLLOUT | select.POLLIN), poll(select.POLLIN))
told = []
waits = threading.Thread(target=lambda: told.extend(poll(select.POLLIN, 60000)))
waits.start()
os.write(f, b'1}')
waits.join()
print(told, os.read(f, 100))
text = b'{\"a\":\"' + b'y' * 300000 + b'\"}'
epoll = select.epoll(); epoll.register(f, select.EPOLLOUT)
for at in range(0, len(text), 65536):
    assert epoll.poll(60) == [(f, select.EPOLLOUT)]
    os.write(f, text[at:at + 65536])
poll(select.POLLIN, 60000)
print(sum(map(len, iter(lambda: os.read(f, 65536), b''))) - len(text))
os.write(f, b'no object')
print(bool(poll(select.POLLIN, 60000)[0] & select.POLLERR))
";
    let said = world.python(script).await;
    assert_eq!(said, "[4] []\n[1] b'{\"a\":1}'\n0\nTrue\n");
    assert_eq!(world.fake.asked.load(Ordering::SeqCst), 2);
}

/// Programs that use one file at once, each by a descriptor of its own.
#[tokio::test(flavor = "multi_thread")]
async fn descriptors_of_one_file_have_separate_calls() {
    let Some(world) = World::new() else { return };
    let script = "
import os
from concurrent.futures import ThreadPoolExecutor
def call(n):
    f = os.open('tools/echo', os.O_RDWR)
    for turn in range(20):
        text = b'{\"n\":%d,\"turn\":%d,\"pad\":\"%s\"}' % (n, turn, b'x' * (n * 37))
        half = len(text) // 2
        os.write(f, text[:half])
        os.write(f, text[half:])
        if os.read(f, 1 << 16) != text: return (n, turn)
    os.close(f)
with ThreadPoolExecutor(16) as pool:
    print([wrong for wrong in pool.map(call, range(16)) if wrong])
";
    assert_eq!(world.python(script).await, "[]\n");
    assert_eq!(world.fake.asked.load(Ordering::SeqCst), 16 * 20);
}

/// Loops of events often want to hear of changes alone (`EPOLLET`).
#[tokio::test(flavor = "multi_thread")]
async fn each_result_wakes_an_edge_triggered_poll() {
    let Some(world) = World::new() else { return };
    let script = "
import os, select
f = os.open('tools/echo', os.O_RDWR | os.O_NONBLOCK)
epoll = select.epoll(); epoll.register(f, select.EPOLLIN | select.EPOLLET)
print(epoll.poll(60) == [(f, select.EPOLLIN)], epoll.poll(0))
for number in (b'1', b'2', b'3'):
    os.write(f, b'{\"n\":' + number + b'}')
    print(epoll.poll(60) == [(f, select.EPOLLIN)], os.read(f, 100))
    # What is forgotten is one, too.
    os.ftruncate(f, 0)
    print(epoll.poll(60) == [(f, select.EPOLLIN)])
";
    let said = world.python(script).await;
    let results = ["1", "2", "3"].map(|n| format!("True b'{{\"n\":{n}}}'\nTrue\n"));
    assert_eq!(said, format!("True []\n{}", results.concat()));
}

/// Loops of events that wait for changes alone would wait for ever.
#[tokio::test(flavor = "multi_thread")]
async fn a_poll_is_woken_when_its_server_is_gone() {
    let Some(world) = World::new() else { return };
    let script = "
import os, select
f = os.open('tools/echo', os.O_RDWR | os.O_NONBLOCK)
epoll = select.epoll(); epoll.register(f, select.EPOLLIN | select.EPOLLET)
epoll.poll(60)
print(epoll.poll(0), flush=True)
print(epoll.poll(60) == [(f, select.EPOLLIN | select.EPOLLERR)])
";
    let mut command = world.command("python3", &["-c", script]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let said = world.within(lines.next_line()).await.expect("it can be read");
    assert_eq!(said.as_deref(), Some("[]"));
    world.mounted.as_ref().expect("it is mounted").look_again();
    assert!(world.namespace.unmount(&world.of_server));
    world.mounted.as_ref().expect("it is mounted").look_again();
    let said = world.within(lines.next_line()).await.expect("it can be read");
    assert_eq!(said.as_deref(), Some("True"));
    world.within(child.wait()).await.expect("it ran");
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_tools_are_listed() {
    let tools: Vec<_> = (0..10_000).map(|n| format!("tool_{n}")).collect();
    let Some(world) = World::of(Fake::with_tools(tools)) else { return };
    let count = world.bash("ls -U tools | wc -l").await;
    assert_eq!(count.trim(), "30000", "each has its schema and description");
    assert_eq!(world.bash("cat tools/tool_9999.md").await, "# tool_9999\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unmounted_server_is_gone_from_the_folder() {
    let Some(world) = World::new() else { return };
    assert!(world.namespace.end(name().pid));
    let root = world.root();
    let listing = tokio::task::spawn_blocking(move || root.read_dir().map(Iterator::count));
    let count = world.within(listing).await.expect("it ran").expect("it can be read");
    assert_eq!(count, 0, "nothing is mounted");
}

#[tokio::test(flavor = "multi_thread")]
async fn mounting_over_an_existing_mount_is_refused() {
    let Some(world) = World::new() else { return };
    // Also where it shows nothing that could be in the way.
    world.process.revoke(&name());
    let again = world.mount_again();
    let Err(error @ MountError::AlreadyMounted { .. }) = again else { panic!("{again:?}") };
    let text = error.to_string();
    let remedy = format!("fusermount3 -u {}", world.root().display());
    assert!(text.starts_with("[ALREADY_MOUNTED] Mount: ") && text.contains(&remedy), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_mount_at_the_same_place_is_not_unmounted() {
    let Some(mut world) = World::new() else { return };
    let first = world.mounted.take().expect("it is mounted");
    assert!(!first.is_over() && first.is_mounted().expect("it can be read"));
    narthex_fuse::free(first.device()).expect("the device can be freed");
    while !first.is_over() {
        tokio::task::yield_now().await;
    }
    world.mounted = Some(world.mount_again().expect("it is free"));
    // Also if the newer mount has the same device.
    assert!(!first.is_mounted().expect("it can be read"));
    let unmounting = tokio::task::spawn_blocking(move || first.unmount());
    world.within(unmounting).await.expect("it ran").expect("there is nothing to do");
    assert_eq!(world.bash("ls").await, "ctl\nprompts\nresources\ntools\n");
}

/// No reader can read the outcome any more.
#[tokio::test(flavor = "multi_thread")]
async fn closing_before_reading_cancels_the_call() {
    let Some(world) = World::new() else { return };
    world.bash("exec 3<>tools/slow; echo '{}' >&3; exec 3>&-").await;
    world.within(world.fake.given_up.notified()).await;
    // A process that has only polled for a result gives up no call of another process.
    let script = format!("{PRINT}; true 3<>tools/slow; exec cat tools/slow");
    let mut command = world.command("bash", &["-c", &script]);
    let cat = command.stdout(Stdio::piped()).spawn().expect("it starts");
    world.until_reads(&cat).await;
    world.fake.go.add_permits(1);
    let output = world.within(cat.wait_with_output()).await.expect("it ran");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "at last\n");
    assert_eq!(world.fake.asked.load(Ordering::SeqCst), 2);
}
