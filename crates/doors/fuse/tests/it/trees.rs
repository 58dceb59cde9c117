//! The results that processes find, with the programs that people and agents use.

use std::{process::Stdio, sync::atomic::Ordering};

use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::world::World;

/// An agent that starts a shell for each command: what a shell has started counts as its own.
const AGENT: &str = r#"
import subprocess
def sh(command):
    done = subprocess.run(['bash', '-c', command], capture_output=True, text=True, **OPTIONS)
    return done.stdout + done.stderr
said = sh("echo '{\"w\":1}' > tools/echo") + sh('cat tools/echo')
for command in [
    "jq -nc '{w:2}' > tools/echo",
    "cd tools && jq -nc '{w:3}' > echo",
    "printf '{\"w\":4}\n' | tee tools/echo >/dev/null",
    "printf '{\"w\":5}\n' | timeout 60 tee tools/echo >/dev/null",
    "echo \"$(printf '{\"w\":6}\n' | timeout 60 dd of=tools/echo status=none)\" >/dev/null",
]:
    said += sh(command) + sh('cat tools/echo; true') + sh('exec cat tools/echo')
print(said, end='')
"#;

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_starts_a_shell_for_each_command_finds_the_last_result() {
    let Some(world) = World::new() else { return };
    let wanted: String = "{\"w\":1}\n".to_owned()
        + &(2..=6).map(|n| format!("{{\"w\":{n}}}\n").repeat(2)).collect::<String>();
    for options in ["{}", "{'start_new_session': True}"] {
        let said = world.python(&format!("OPTIONS = {options}\n{AGENT}")).await;
        assert_eq!(said, wanted, "{options}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shell_finds_results_of_nested_programs() {
    let Some(world) = World::new() else { return };
    let request = tempfile::NamedTempFile::new().expect("there is room");
    fs_err::write(request.path(), "{\"n\":1}\n").expect("it is ours");
    let file = request.path().display();
    for written in [
        format!("timeout 60 cp {file} tools/echo"),
        "echo tools/echo | xargs cp FILE".replace("FILE", &file.to_string()),
        format!("(cd tools; cp {file} echo; true)"),
        format!("timeout 60 timeout 60 bash -c 'cp {file} tools/echo; true'; true"),
        // In a session of its own, as daemons and agents start programs.
        format!("setsid -w cp {file} tools/echo"),
    ] {
        // The result that was left there before is older.
        let script = format!("echo '{{}}' > tools/echo; {written}; cat tools/echo");
        assert_eq!(world.bash(&script).await, "{\"n\":1}\n", "{written}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_canceled_call_replaces_the_result_before() {
    let Some(world) = World::new() else { return };
    world.fake.go.add_permits(1);
    let script = "echo '{}' > tools/slow; read; printf '{}' | timeout 600 tee tools/slow >&2 &
        echo $!; wait; exec cat tools/slow";
    let mut command = world.command("bash", &["-c", script]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    world.within(world.fake.began.notified()).await;
    drop(child.stdin.take());
    let pid = world.within(lines.next_line()).await.expect("it can be read").expect("it says");
    world.within(world.fake.began.notified()).await;
    // The writer itself: `timeout` ends without passing a signal on before it knows its child.
    world.bash(&format!("pkill -P {pid}")).await;
    let done = world.within(child.wait_with_output()).await.expect("it ran");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(!done.status.success() && said.contains("canceled"), "{said}");
    assert_eq!(world.fake.asked.load(Ordering::SeqCst), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_terminals_of_one_program_do_not_share_results() {
    let Some(world) = World::new() else { return };
    let script = r#"
import os, pty
def terminal(command):
    child, end = pty.fork()
    if child == 0:
        os.execvp('bash', ['bash', '-c', command])
    said = b''
    while True:
        try: said += os.read(end, 4096)
        except OSError: break
        if b'done\r\n' in said: break
    return end, said.decode()
one, said = terminal("echo '{\"n\":1}' > tools/echo; cat tools/echo; echo done; read")
print(said, end='')
print(terminal("cat tools/echo; echo done")[1], end='')
print(open('tools/echo').read(), end='')
"#;
    let said = world.python(script).await.replace('\r', "");
    let wanted = "{\"n\":1}\ndone\ncat: tools/echo: Invalid argument\ndone\n{\"n\":1}\n";
    assert_eq!(said, wanted);
}
