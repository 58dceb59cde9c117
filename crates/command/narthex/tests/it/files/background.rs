//! `narthex mount --detach`.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use fs_err as fs;
use serde_json::Value;

use super::{has_fuse, is_mounted, of_run, place, run_of, shell, until_unmounted};
use crate::support::{Done, descendants};

/// The command ends once it is mounted, and holds nothing of its caller then; the process that it
/// names frees the folder.
#[test]
fn a_detached_mount_survives_the_end_of_its_command() {
    if !has_fuse() {
        return;
    }
    let place = place();
    let _daemon = place.up();
    let folder = place.path("mcp");
    fs::create_dir(&folder).unwrap();
    // Reads the output to its end: a caller that waits for the end has the answer as well.
    let told = place.run(["mount", "mcp", "--detach", "--json"]).succeeded().json();
    assert!(is_mounted(&folder), "{told}");
    let process = told["data"]["process"].as_u64().unwrap().to_string();
    assert_eq!(told["data"]["servers"][0], "0-demo", "{told}");
    assert!(shell(&place, "ls mcp/0-demo").succeeded().stdout.contains("tools"));
    let session = Command::new("ps").args(["-o", "sid=", "-p", &process]).output().unwrap();
    assert_eq!(String::from_utf8(session.stdout).unwrap().trim(), process, "its own");
    let again = place.run(["mount", "mcp", "--detach"]);
    again.failed(1, &["error: conflict: [ALREADY_MOUNTED]"]);
    assert!(Command::new("kill").arg(&process).status().unwrap().success());
    until_unmounted(&folder);
    let quiet = place.run(["mount", "mcp", "--detach", "--quiet"]).succeeded();
    assert_eq!(quiet.stderr, "");
    assert!(is_mounted(&folder));
    let process: u32 = quiet.stdout.trim().parse().unwrap();
    assert!(Path::new(&format!("/proc/{process}")).exists());
    shell(&place, "umount mcp || fusermount3 -u mcp").succeeded();
    until_unmounted(&folder);
}

/// Two that fail at once write to one log; each caller gets its own failure.
#[test]
fn failures_of_detached_mounts_are_reported_to_their_caller() {
    let place = place();
    let _daemon = place.up();
    let script = r#"for round in 1 2 3 4 5; do
        for one in first second; do
            "$NARTHEX" mount "$one" --data data --detach 2> "$one.$round" &
        done
    done; wait; grep -l second first.*; grep -l first second.*; cat first.1 second.1"#;
    let mut shell = Command::new("bash");
    shell.args(["-c", script]).current_dir(place.path("")).env_remove("NARTHEX_TOKEN");
    shell.env("NARTHEX", env!("CARGO_BIN_EXE_narthex"));
    let said = Done::from(shell.output().unwrap()).stdout;
    let lines: Vec<_> = said.lines().collect();
    let is_of = |line: &str, name| line.contains(&format!("{name}` is not a folder"));
    assert_eq!(lines.len(), 2, "{said}");
    assert!(is_of(lines[0], "/first") && is_of(lines[1], "/second"), "{said}");
}

/// The mount's end is in its log, and an earlier failure is reported where it was asked for.
#[test]
fn a_mount_in_the_background_has_a_log() {
    let place = place();
    let _daemon = place.up();
    place.run(["mount", "absent", "--detach"]).failed(1, &["error: ", "absent", "is not a folder"]);
    let told = place.run(["mount", "absent", "--detach", "--json"]);
    assert_eq!((told.code, &told.json()["ok"]), (Some(1), &Value::Bool(false)), "{told:?}");
    assert_eq!(place.mode("data/mount.log"), 0o600);
    place.run(["mount", "absent", "--log", "x"]).failed(2, &["--detach"]);
    let lost = ["mount", "absent", "--detach", "--log", "nowhere/said.log"];
    place.run(lost).failed(1, &["not_found", "nowhere/said.log", "create its folder"]);
    assert!(!place.path("nowhere").exists());
    place
        .run(["mount", "absent", "--detach", "--log", "."])
        .failed(1, &["name a file of your own"]);
    if !has_fuse() {
        return;
    }
    let (run, token) = run_of(&place);
    let folder = place.path("mcp");
    fs::create_dir(&folder).unwrap();
    let words = ["mount", "mcp", "--detach", "--log", "said.log"];
    let told = of_run(&place, &token, &words).succeeded().stdout;
    assert!(told.contains("`kill ") && told.contains("said.log"), "{told}");
    // Editors set access lists of files; only they hear that there are none here.
    let script = "import os, glob; os.setxattr(glob.glob('mcp/*')[0], 'user.x', b'1')";
    let mut editor = Command::new("python3");
    let done = editor.args(["-c", script]).current_dir(place.path("")).output().unwrap();
    assert!(String::from_utf8_lossy(&done.stderr).contains("OSError"), "{done:?}");
    place.run(["runs", "end", &run]).succeeded();
    until_unmounted(&folder);
    assert!(!fs::read_to_string(place.path("said.log")).unwrap().contains("setxattr"));
    let mut tail = Command::new("tail");
    tail.args(["-n", "+1", "-f", "said.log"]).current_dir(place.path(""));
    let mut tail = tail.stdout(Stdio::piped()).spawn().unwrap();
    let lines = std::io::BufRead::lines(std::io::BufReader::new(tail.stdout.take().unwrap()));
    let said = lines.map(Result::unwrap).find(|line| line.contains("the run has ended"));
    assert!(said.is_some());
    tail.kill().unwrap();
    tail.wait().unwrap();
}

/// Neither it nor its watcher holds anything of its caller: no lock, and no folder.
#[test]
fn a_detached_mount_keeps_no_lock_and_no_folder_of_its_caller() {
    if !has_fuse() {
        return;
    }
    let place = place();
    let _daemon = place.up();
    let folder = place.path("mcp");
    fs::create_dir(&folder).unwrap();
    // The lock is held by a descriptor that its programs inherit.
    let mut locked = place.command([""; 0]);
    let program = locked.get_program().to_owned();
    let mut detaching = Command::new("bash");
    let script = r#"exec 9>lock; flock 9; "$0" mount mcp --detach --log said.log --json"#;
    detaching.args(["-c", script]).arg(program).current_dir(place.path(""));
    for (name, value) in locked.stdin(Stdio::null()).get_envs() {
        match value {
            Some(value) => detaching.env(name, value),
            None => detaching.env_remove(name),
        };
    }
    let told = Done::from(detaching.output().unwrap()).succeeded().json();
    let process = u32::try_from(told["data"]["process"].as_u64().unwrap()).unwrap();
    let all = [vec![process], descendants(process)].concat();
    assert_eq!(all.len(), 2, "the process and its watcher: {all:?}");
    shell(&place, "flock -n lock true").succeeded();
    for process in all {
        let at = fs::read_link(format!("/proc/{process}/cwd")).unwrap();
        assert_eq!(at, Path::new("/"), "{process}");
    }
    assert!(is_mounted(&folder));
    assert_eq!(place.mode("said.log"), 0o600, "where the caller was");
    assert!(Command::new("kill").arg(process.to_string()).status().unwrap().success());
    until_unmounted(&folder);
}

/// A process that is killed leaves its mount to its watcher, which takes away that very one.
#[test]
fn a_mount_at_the_place_of_a_killed_mount_is_not_unmounted() {
    if !has_fuse() {
        return;
    }
    let place = place();
    let _daemon = place.up();
    fs::create_dir_all(place.path("w1/mcp")).unwrap();
    let told = place.run(["mount", "w1/mcp", "--detach", "--json"]).succeeded().json();
    let process = told["data"]["process"].as_u64().unwrap();
    shell(&place, "mv w1 w2; mkdir -p w1/mcp").succeeded();
    let other = shell(&place, "mount -t tmpfs other w1/mcp");
    assert!(is_mounted(&place.path("w2/mcp")));
    assert!(Command::new("kill").args(["-9", &process.to_string()]).status().unwrap().success());
    until_unmounted(&place.path("w2/mcp"));
    // A user who is not root cannot mount another one; then it was only found where it is.
    if other.code == Some(0) {
        assert!(is_mounted(&place.path("w1/mcp")));
        shell(&place, "umount w1/mcp").succeeded();
    }
}
