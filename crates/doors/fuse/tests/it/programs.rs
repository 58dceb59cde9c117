//! The file operations of programs, and their outcomes.

use std::{process::Stdio, sync::atomic::Ordering};

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use narthex_model::Pid;
use narthex_vfs::MountName;

use crate::world::{World, name};

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_is_called_by_echo_and_its_result_is_read_by_cat() {
    let Some(world) = World::new() else { return };
    let said = world.bash(r#"echo '{"message":"hi"}' > tools/echo; cat tools/echo"#).await;
    assert_eq!(said, "{\"message\":\"hi\"}\n");
    let said = world.bash(r#"/bin/echo '{"n":1}' > tools/echo; cat tools/echo tools/echo"#).await;
    assert_eq!(said, "{\"n\":1}\n{\"n\":1}\n", "it stays until something else is written");
    let said = world.bash(r#"printf '{"n":2}' | dd of=tools/echo 2>/dev/null; cat tools/echo"#);
    assert_eq!(said.await, r#"{"n":2}"#);
    let said = world.bash(r#"echo '{"n":3}' | tee tools/echo >/dev/null; head -c 4 tools/echo"#);
    assert_eq!(said.await, r#"{"n""#);
    assert_eq!(world.fake.asked.load(Ordering::SeqCst), 4, "each write is one call");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_shells_find_their_own_results() {
    let Some(world) = World::new() else { return };
    let script = |n: u8| format!("echo '{{\"n\":{n}}}' > tools/echo; cat tools/echo");
    let (one, other) = (script(1), script(2));
    let (one, other) = tokio::join!(world.bash(&one), world.bash(&other));
    assert_eq!((one.as_str(), other.as_str()), ("{\"n\":1}\n", "{\"n\":2}\n"));
    // A result that a child process left belongs to its tree.
    let script = "bash -c 'echo {} > tools/echo'; cat tools/echo";
    assert_eq!(world.bash(script).await, "{}\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_descriptor_writes_the_request_and_reads_the_result() {
    let Some(world) = World::new() else { return };
    let script = r#"exec 3<>tools/echo; echo '{"a":1}' >&3; cat <&3; echo '{"b":2}' >&3; cat <&3"#;
    assert_eq!(world.bash(script).await, "{\"a\":1}\n{\"b\":2}\n");
    for (how, script) in [
        (
            "buffered",
            "f = open('tools/echo', 'r+b'); f.write(b'{\"p\":1}'); f.seek(0); print(f.read())",
        ),
        (
            "unbuffered",
            "f = open('tools/echo', 'r+b', buffering=0); f.write(b'{\"p\":1}'); print(f.read())",
        ),
        (
            "by the system",
            "import os; f = os.open('tools/echo', os.O_RDWR); os.write(f, b'{\"p\":1}'); \
             print(os.read(f, 4) + os.read(f, 100))",
        ),
    ] {
        assert_eq!(world.python(script).await, "b'{\"p\":1}'\n", "{how}");
    }
    let large = "
f = open('tools/big', 'r+b', buffering=0)
f.write(b'{\"a\":\"' + b'y' * (2 << 20) + b'\"}')
f.seek(0)
import io
print(len(io.BufferedReader(f).read()))
";
    assert_eq!(world.python(large).await.trim(), (3 << 20).to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_written_by_several_programs_is_one_call() {
    let Some(world) = World::new() else { return };
    let script = r#"(printf '{"a":'; /bin/true; /bin/printf '"b"'; printf '}') > tools/echo
        cat tools/echo"#;
    assert_eq!(world.bash(script).await, r#"{"a":"b"}"#);
    let script = r#"exec 3>tools/echo; printf '{"n":' >&3; printf '1}' >&3; exec 3>&-
        cat tools/echo"#;
    assert_eq!(world.bash(script).await, r#"{"n":1}"#);
    assert_eq!(world.fake.asked.load(Ordering::SeqCst), 2, "each is one call");
    let script = "
import errno, os
f = os.open('tools/echo', os.O_WRONLY)
os.write(f, b'{\"a\":')
try: os.close(f); print('none')
except OSError as error: print(errno.errorcode[error.errno])
try: open('tools/echo').read(); print('none')
except OSError as error: print(errno.errorcode[error.errno])
";
    assert_eq!(world.python(script).await, "EINVAL\nEINVAL\n", "what stays without its end");
    assert!(world.bash("cat ctl/error").await.contains("INVALID"));
    assert_eq!(world.fake.asked.load(Ordering::SeqCst), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tree_of_files_is_shown() {
    let Some(world) = World::new() else { return };
    assert_eq!(world.bash("ls ..").await, "1-files\n");
    assert_eq!(world.bash("ls").await, "ctl\nprompts\nresources\ntools\n");
    let tools = world.bash("ls tools").await;
    assert!(tools.starts_with("a%2Fb\na%2Fb.md\na%2Fb.schema.json\nbig\n"), "{tools}");
    assert_eq!(world.bash("cat tools/echo.schema.json").await, "{\"type\":\"object\"}\n");
    assert_eq!(world.bash("cat tools/echo.md").await, "# echo\n");
    assert_eq!(world.bash("ls resources").await, "file:%2F%2F%2Fnotes.txt\n");
    assert_eq!(world.bash("cat resources/file:%2F%2F%2Fnotes.txt").await, "notes");
    assert_eq!(world.bash("cat prompts/greet").await, "greet {}");
    let said = world.bash(r#"echo '{"who":"me"}' > prompts/greet; cat prompts/greet"#).await;
    assert_eq!(said, "greet {\"who\":\"me\"}\n");
    assert_eq!(world.bash("cat ctl/status ctl/logs").await, "{\"state\":\"ready\"}said\n");
    let said = world.bash(r#"echo '{}' > tools/a%2Fb; cat tools/a%2Fb; test -w tools/echo"#).await;
    assert_eq!(said, "{}\n");
    let modes = world.bash("stat -c '%A %s %F' tools tools/echo tools/echo.md").await;
    let wanted = "dr-x------ 0 directory\n-rw------- 1073741824 regular file\n\
        -r-------- 1073741824 regular file\n";
    assert_eq!(modes, wanted);
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_are_numbers_of_the_system_and_can_be_read_whole() {
    let Some(world) = World::new() else { return };
    let numbers = "
import errno, os
def number(path, data, flags=os.O_RDWR):
    try:
        f = os.open(path, flags)
        if data is not None: os.write(f, data)
        if flags == os.O_WRONLY: os.close(f)
        else: os.read(f, 10)
        return 'none'
    except OSError as error: return errno.errorcode[error.errno]
print(number('tools/gated', b'{}'), number('tools/gated', b'{}', os.O_WRONLY))
print(number('tools/fails', b'{}'), number('tools/echo', b'no json'))
print(number('tools/echo', None), number('tools/nothing', b'{}'))
print(number('resources/x:nothing', None, os.O_RDONLY), number('tools', None))
print(number('ctl/logs', b'{}'), number('tools/echo', b' ' * (5 << 20)))
";
    let wanted = "EACCES EACCES\nEREMOTEIO EINVAL\nEINVAL ENOENT\nENOENT EISDIR\n";
    let said = world.python(numbers).await;
    let (first, last) = said.split_at(wanted.len());
    assert_eq!(first, wanted);
    // For root the kernel forwards writes to read-only files to us.
    assert_eq!(last, "EACCES EFBIG\n");
    let gated = world.run("bash", &["-c", "/bin/echo '{}' > tools/gated"]).await;
    assert!(!gated.status.success() && !gated.stderr.is_empty(), "coreutils tell");
    let whole = world.bash("cat ctl/error").await;
    let error: serde_json::Value = serde_json::from_str(&whole).expect("it is JSON");
    assert_eq!(error["kind"], "permission_required");
    assert_eq!(error["details"]["scopes"][0], "files.write");
    let script = "import os; print(os.getxattr('tools/gated', 'user.narthex.error').decode())";
    assert_eq!(world.python(script).await, whole);
    // The built-in `echo` of bash does not report the failure: the next reader gets it.
    let read = world.run("bash", &["-c", "echo '{}' > tools/gated; cat tools/gated"]).await;
    let said = String::from_utf8_lossy(&read.stderr).into_owned();
    assert!(said.contains("Permission denied"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_in_the_folder_itself_is_shown_as_the_last_failure() {
    let Some(world) = World::new() else { return };
    let told = |script: &'static str| {
        let world = &world;
        async move {
            let failed = world.run("bash", &["-c", script]).await;
            assert!(!failed.status.success(), "{script}");
            let error = world.bash("cat ctl/error").await;
            serde_json::from_str::<serde_json::Value>(&error).expect("it is JSON")
        }
    };
    assert_eq!(world.bash("cat ctl/error").await, "null\n");
    let error = told("cat tools/nothing").await;
    assert_eq!((&error["code"], &error["kind"]), (&"NOT_FOUND".into(), &"not_found".into()));
    assert!(error["message"].as_str().is_some_and(|text| text.contains("`nothing`")), "{error}");
    // Also where nothing is listed.
    for (script, name) in [("cat nowhere", "`nowhere`"), ("cat ctl/nowhere", "`nowhere`")] {
        let error = told(script).await;
        assert_eq!(error["code"], "NOT_FOUND", "{script}");
        let said = error["message"].as_str().is_some_and(|text| text.contains(name));
        assert!(said, "{script}: {error}");
    }
    let error = told("head -c 5000000 /dev/zero > tools/echo").await;
    assert_eq!(error["code"], "RESOURCE_EXHAUSTED");
    let text = error["message"].as_str().expect("there is one");
    assert!(text.contains("at most 4194304 bytes"), "{error}");
    let still = told("cat .git/config tools/.git").await;
    assert_eq!(still, error, "what programs look for by themselves hides nothing");
    assert_eq!(world.fake.asked.load(Ordering::SeqCst), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn r_o7_a_request_that_is_too_large_fails_the_next_read() {
    let Some(world) = World::new() else { return };
    let large = tempfile::NamedTempFile::new().expect("there is room");
    fs_err::write(large.path(), vec![b'x'; 5_000_000]).expect("there is room");
    for written in ["cp LARGE tools/echo", "cat LARGE | tee tools/echo"] {
        let written = written.replace("LARGE", &large.path().display().to_string());
        let script = format!("echo '{{}}' > tools/echo; {written} > /dev/null; cat tools/echo");
        let said = world.run("bash", &["-c", &script]).await;
        assert!(!said.status.success() && said.stdout.is_empty(), "{written}: {said:?}");
        let last = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(last.ends_with("cat: tools/echo: File too large\n"), "{last}");
    }
    assert_eq!(world.bash("echo '{}' > tools/echo; cat tools/echo").await, "{}\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn r_g5_a_closed_mount_of_the_parent_run_is_denied_and_not_hidden() {
    let Some(world) = World::new() else { return };
    let closed = MountName { pid: Pid::new(7), ..name() };
    world.process.close_off([closed].into());
    for (path, wanted) in [
        ("../7-files", "Permission denied"),
        ("../7-files/tools/echo", "Permission denied"),
        ("../8-files", "No such file or directory"),
        ("../7-other", "No such file or directory"),
    ] {
        let said = world.run("stat", &[path]).await;
        let told = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(told.contains(wanted), "{path}: {told}");
    }
    assert_eq!(world.bash("ls ..").await, "1-files\n", "no list has it");
}

/// A run that continues another one has its files at two paths.
#[tokio::test(flavor = "multi_thread")]
async fn r_d1_a_result_is_found_by_both_paths_of_its_file() {
    let Some(world) = World::new() else { return };
    let old = MountName { pid: Pid::new(7), ..name() };
    world.process.also(old, name());
    for (writes, reads) in
        [("../7-files/tools/echo", "tools/echo"), ("tools/a%2Fb", "../7-files/tools/a%2Fb")]
    {
        let script = format!("echo '{{}}' > {writes}; cat {reads}");
        assert_eq!(world.bash(&script).await, "{}\n", "{writes}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_during_the_call_is_shown_as_the_last_failure() {
    let Some(world) = World::new() else { return };
    let script = "
import errno, os
f = os.open('tools/slow', os.O_RDWR | os.O_NONBLOCK)
os.write(f, b'{}')
try: os.read(f, 1)
except BlockingIOError: pass
try: os.write(f, b'{}'); print('none')
except OSError as error: print(errno.errorcode[error.errno])
";
    assert_eq!(world.python(script).await, "EBUSY\n");
    let error = world.bash("cat ctl/error").await;
    assert!(error.contains(r#""kind":"busy""#) && error.contains("read its result"), "{error}");
    world.fake.go.add_permits(1);
}

#[tokio::test(flavor = "multi_thread")]
async fn white_space_behind_a_request_does_not_remove_its_result() {
    let Some(world) = World::new() else { return };
    let script = r#"{ /bin/printf '{"n":1}'; echo; } > tools/echo; cat tools/echo"#;
    assert_eq!(world.bash(script).await, r#"{"n":1}"#);
    let script = r#"(/bin/printf '{"n":1}'; echo) > tools/echo; cat tools/echo"#;
    assert_eq!(
        world.bash(script).await,
        r#"{"n":1}"#,
        "each program that opened the file finds the result"
    );
    let script = r#"exec 3<>tools/echo; printf '{"n":2}' >&3; head -c 1 <&3; echo >&3; cat <&3
        { printf ' \n'; /bin/printf '{"n":3}'; } > tools/echo; cat tools/echo
        echo > tools/echo; echo >> tools/echo; cat tools/echo"#;
    let wanted = "{\"n\":2} \n{\"n\":3} \n{\"n\":3}";
    assert_eq!(world.bash(script).await, wanted, "what is blank alone is no request");
    assert_eq!(world.fake.asked.load(Ordering::SeqCst), 4, "each request is one call");
    assert_eq!(world.bash("cat ctl/error").await, "null\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn appended_text_goes_to_the_end_even_after_a_stat() {
    let Some(world) = World::new() else { return };
    let script = r#"exec 3>>tools/echo; printf '{"n":' >&3; stat -L -c %s /dev/fd/3
        stat -c %s tools/echo; printf '1}' >&3; exec 3>&-; cat tools/echo"#;
    assert_eq!(world.bash(script).await, "1073741824\n1073741824\n{\"n\":1}");
    assert_eq!(world.fake.asked.load(Ordering::SeqCst), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_never_read_is_shown_as_the_last_failure() {
    let Some(world) = World::new() else { return };
    world.bash("exec 3<>tools/echo; echo '{}' >&3; cat <&3; exec 3>&-").await;
    world.bash("exec 3<>tools/echo; echo >&3; exec 3>&-").await;
    assert_eq!(world.fake.asked.load(Ordering::SeqCst), 1);
    // The kernel closes behind the program's back.
    let told = async |written: &str, told: &str| {
        let script = format!("exec 3<>tools/echo; echo '{written}' >&3; exec 3>&-");
        loop {
            world.bash(&script).await;
            let error = world.bash("cat ctl/error").await;
            if error.contains(told) {
                return error;
            }
            assert!(error == "null\n" || error.contains("never read"), "{error}");
        }
    };
    let half = world.within(told(r#"{"n":"#, "no call was made")).await;
    assert!(half.contains("INVALID") && half.contains("never read"), "{half}");
    assert_eq!(world.fake.asked.load(Ordering::SeqCst), 1, "nothing was called");
    let whole = world.within(told("{}", "no reader got the result of the call")).await;
    assert!(whole.contains("INVALID") && whole.contains("never read"), "{whole}");
    assert!(world.fake.asked.load(Ordering::SeqCst) > 1);
}

/// A call was made of it, and its result made way for another.
#[tokio::test(flavor = "multi_thread")]
async fn an_unread_result_that_is_replaced_is_reported() {
    let Some(world) = World::new() else { return };
    let script = "
import os, select
f = os.open('tools/echo', os.O_RDWR)
poll = select.poll(); poll.register(f, select.POLLIN)
os.write(f, b'{\"a\":1}')
poll.poll()
os.write(f, b'{\"b\":2}')
print(open('ctl/error').read(), os.read(f, 100), sep='')
";
    let said = world.python(script).await;
    assert!(said.contains("no reader got the result of the call"), "{said}");
    assert!(said.contains(r#"b'{"b":2}'"#), "{said}");
    assert_eq!(world.fake.asked.load(Ordering::SeqCst), 2);
}

/// The call is under way before any read: it starts with the write that ends the object, in any
/// pieces, and not before.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_starts_with_the_write_that_ends_the_json_object() {
    let Some(world) = World::new() else { return };
    let script = r#"
import os, sys
f = os.open('tools/slow', os.O_RDWR)
for piece in (b' {"a":', b'["}', b'"]', b'}'):
    print('writes', flush=True)
    sys.stdin.readline()
    os.write(f, piece)
sys.stdin.readline()
print(os.read(f, 100))
"#;
    let mut command = world.command("python3", &["-c", script]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let mut input = child.stdin.take().expect("it is piped");
    for _ in 0..4 {
        let said = world.within(lines.next_line()).await.expect("it can be read");
        assert_eq!(said.as_deref(), Some("writes"));
        assert_eq!(world.fake.asked.load(Ordering::SeqCst), 0, "it is not whole");
        input.write_all(b"\n").await.expect("it reads");
    }
    world.within(world.fake.began.notified()).await;
    world.fake.go.add_permits(1);
    input.write_all(b"\n").await.expect("it reads");
    let said = world.within(lines.next_line()).await.expect("it can be read");
    assert_eq!(said.as_deref(), Some("b'at last\\n'"));
    assert_eq!(world.fake.asked.load(Ordering::SeqCst), 1);
}

/// `grep -r` opens what it finds with `O_NONBLOCK`.
#[tokio::test(flavor = "multi_thread")]
async fn read_only_files_can_be_searched_with_grep() {
    let Some(world) = World::new() else { return };
    let said = world.bash("grep -r . ctl prompts resources | LC_ALL=C sort").await;
    let wanted = "ctl/error:null\nctl/status:{\"state\":\"ready\"}\n\
        prompts/greet:greet {}\nresources/file:%2F%2F%2Fnotes.txt:notes\n";
    assert_eq!(said, wanted);
    let said = world.bash("grep -r object tools --include='echo.*'").await;
    assert_eq!(said, "tools/echo.schema.json:{\"type\":\"object\"}\n");
    let called = world.run("grep", &["-r", "x", "tools/echo", "tools/echo.md"]).await;
    let said = String::from_utf8_lossy(&called.stderr).into_owned();
    assert!(said.contains("tools/echo: Invalid argument"), "there is no result yet: {said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_nonblocking_reader_can_poll_for_a_fetched_resource() {
    let Some(world) = World::new() else { return };
    let script = "
import errno, os, select
f = os.open('resources/x:nothing', os.O_RDONLY | os.O_NONBLOCK)
poll = select.poll(); poll.register(f, select.POLLIN)
for _ in range(2):
    poll.poll(60000)
    try: os.read(f, 1); print('read')
    except OSError as error: print(errno.errorcode[error.errno])
";
    assert_eq!(world.python(script).await, "ENOENT\nENOENT\n");
    assert_eq!(world.fake.fetched.load(Ordering::SeqCst), 2, "a failure is told before the next");
}
