//! Sizes of files: programs that take them for how much there is to read find all of it, or fail.

use std::{process::Stdio, sync::atomic::Ordering};

use crate::world::World;

/// Copies by everything that looks at sizes, of a result of 3 MB, into a folder of the test's own.
const COPIES: &str = r#"
import errno, os, shutil, subprocess, sys, tarfile
into = sys.argv[1]
size, text = 3 << 20, b'x' * (3 << 20)
def at(name): return os.path.join(into, name)
def told(name, found): print(name, 'ok' if found == text else f'{len(found)} bytes', flush=True)
def read(name):
    with open(at(name), 'rb') as file: return file.read()

with open('tools/big', 'wb', buffering=0) as tool: tool.write(b'{}')
for fast in [shutil.copyfile, shutil.copy]:
    fast('tools/big', at('copied'))
    told(fast.__name__, read('copied'))
with open('tools/big', 'rb') as one, open(at('other'), 'wb') as other:
    shutil.copyfileobj(one, other)
told('copyfileobj', read('other'))
with open('tools/big', 'rb') as one, open(at('sent'), 'wb') as other:
    at_byte = 0
    while sent := os.sendfile(other.fileno(), one.fileno(), at_byte, 1 << 20): at_byte += sent
told('sendfile', read('sent'))
with open('tools/big', 'rb') as one, open(at('ranged'), 'wb') as other:
    # Kernels that copy between file systems have all of it, and others say that they do not.
    try:
        while os.copy_file_range(one.fileno(), other.fileno(), 1 << 20): pass
        told('copy_file_range', read('ranged'))
    except OSError as error:
        print('copy_file_range', 'ok' if error.errno == errno.EXDEV else error, flush=True)
def run(name, *words):
    done = subprocess.run(words, capture_output=True)
    if done.returncode: print(name, done.stderr.decode())
    return done.stdout
run('cp', 'cp', 'tools/big', at('cp'))
told('cp', read('cp'))
told('cat', run('cat', 'cat', 'tools/big'))
told('dd', run('dd', 'dd', 'if=tools/big', 'bs=5000', 'status=none'))
run('tar', 'tar', '-C', 'tools', '-cf', at('tar'), 'big')
told('tar', tarfile.open(at('tar')).extractfile('big').read())
run('install', 'install', '-m', '600', 'tools/big', at('installed'))
told('install', read('installed'))
print('wc', run('wc', 'wc', '-c', 'tools/big').split()[0].decode())
print('head', len(run('head', 'head', '-c', '1000000', 'tools/big')))
print('tail', len(run('tail', 'tail', '-c', '1000', 'tools/big')))
print('from', len(run('tail', 'tail', '-c', '+1001', 'tools/big')))
print('grep', run('grep', 'grep', '-c', 'x', 'tools/big').decode().strip())
if shutil.which('rsync'):
    run('rsync', 'rsync', 'tools/big', at('rsynced'))
    told('rsync', read('rsynced'))
if shutil.which('rg'): print('rg', run('rg', 'rg', '-c', 'x', 'tools/big').decode().strip())
"#;

/// R-O4: whatever copies a file has all of it.
#[tokio::test(flavor = "multi_thread")]
async fn r_o4_programs_that_trust_sizes_copy_all_of_a_result() {
    let Some(world) = World::new() else { return };
    let into = tempfile::tempdir().expect("there is room");
    let script = format!("import sys; sys.argv.append({:?})\n{COPIES}", into.path());
    let said = world.python(&script).await;
    let all = (3 << 20).to_string();
    let mut expected = Vec::new();
    for name in ["copyfile", "copy", "copyfileobj", "sendfile", "copy_file_range", "cp", "cat"] {
        expected.push(format!("{name} ok"));
    }
    expected.extend(["dd ok", "tar ok", "install ok"].map(str::to_owned));
    expected.push(format!("wc {all}"));
    expected.extend(["head 1000000", "tail 1000"].map(str::to_owned));
    expected.push(format!("from {}", (3 << 20) - 1000));
    expected.push("grep 1".to_owned());
    let said: Vec<_> = said.lines().filter(|line| !line.starts_with('r')).collect();
    assert_eq!(said, expected);
    assert_eq!(world.fake.asked.load(Ordering::SeqCst), 1, "looking at a file calls nothing");
}

/// R-O4: so it is with small results, with one after another, and with what is only read.
#[tokio::test(flavor = "multi_thread")]
async fn r_o4_the_size_of_a_tool_file_is_the_size_of_the_last_result() {
    let Some(world) = World::new() else { return };
    let script = r#"
import os, shutil, sys
for text in ['{"a":"long enough"}', '{}', '{"b":[1,2,3,4,5,6,7,8,9]}']:
    with open('tools/echo', 'w') as tool: tool.write(text)
    shutil.copyfile('tools/echo', '/dev/fd/1')
    with open('tools/echo') as tool: print('', os.fstat(tool.fileno()).st_size == len(text))
"#;
    // A pipe takes no `sendfile`; so into files.
    let into = tempfile::tempdir().expect("there is room");
    let script = script.replace("'/dev/fd/1'", &format!("{:?}", into.path().join("copy")));
    let script =
        format!("{script}    print(open({:?}).read() == text)\n", into.path().join("copy"));
    assert_eq!(world.python(&script).await.split_whitespace().collect::<Vec<_>>(), ["True"; 6]);
    let copies = format!(
        "tar -cf {0}/tar resources tools/echo.md prompts ctl && tar -xOf {0}/tar resources tools",
        into.path().display()
    );
    assert_eq!(world.bash(&copies).await, "notes# echo\n");
}

/// R-O9: what has no content is no empty file: copying it fails.
#[tokio::test(flavor = "multi_thread")]
async fn r_o9_copying_a_tool_file_without_a_result_fails() {
    let Some(world) = World::new() else { return };
    let into = tempfile::tempdir().expect("there is room");
    let into = into.path().display();
    for command in [
        format!("cp tools/echo {into}/cp"),
        format!("tar -cf {into}/tar tools/echo"),
        format!("python3 -c 'import shutil; shutil.copyfile(\"tools/echo\", \"{into}/copied\")'"),
        format!("cat tools/echo > {into}/cat"),
        "test ! -s tools/echo".to_owned(),
    ] {
        let done = world.run("bash", &["-c", &command]).await;
        assert!(!done.status.success(), "{command}: {done:?}");
    }
    let padded = world.bash(&format!("wc -c < {into}/tar")).await;
    assert!(padded.trim().parse::<u64>().is_ok_and(|bytes| bytes < 100_000), "{padded}");
    let listed = world.bash("stat -c '%s' tools/echo resources/*").await;
    assert_eq!(listed, "1073741824\n1073741824\n", "not known before they are open");
    assert_eq!(world.fake.fetched.load(Ordering::SeqCst), 0, "looking fetches nothing");
}

/// A caller that asks for the size of a result waits for it, like a reader.
#[tokio::test(flavor = "multi_thread")]
async fn a_stat_waits_for_the_size_of_the_result() {
    let Some(world) = World::new() else { return };
    let script = r#"
import os, sys, threading
tool = os.open('tools/slow', os.O_WRONLY)
os.write(tool, b'{}')
threading.Thread(target=os.close, args=[tool]).start()
sys.stdin.readline()
other = os.open('tools/slow', os.O_RDONLY)
print(os.fstat(other).st_size, os.read(other, 100))
"#;
    let mut command = world.command("python3", &["-c", script]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    // Without a call no size is known.
    world.within(world.fake.began.notified()).await;
    drop(child.stdin.take());
    world.until_reads(&child).await;
    world.fake.go.add_permits(1);
    let output = world.within(child.wait_with_output()).await.expect("it ran");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "8 b'at last\\n'\n");
}
