//! Servers of a run as files: by commands, and at a folder for any program.

mod background;
mod documented;
mod ending;
mod interrupted;
mod low_latency;
mod manifest;
mod results;
mod strace;
mod tokens;
mod unprivileged;

use std::{
    io::{BufRead, BufReader},
    os::fd::AsFd,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use fs_err as fs;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};

use crate::support::{Daemon, Done, Place, SOON, fixture_entry};

/// A running `narthex mount`.
pub(crate) struct Mount {
    child: Child,
    pub(crate) folder: PathBuf,
}

/// True if this machine has FUSE; prints a note if it has none.
#[expect(clippy::print_stderr, reason = "a skipped test must say so")]
pub(crate) fn has_fuse() -> bool {
    let is_there = Path::new("/dev/fuse").exists();
    if !is_there {
        eprintln!("SKIPPED: this machine has no /dev/fuse, so no folder is mounted");
    }
    is_there
}

impl Mount {
    /// Has the files of the daemon's own run at `mcp`, or of the run of a token.
    pub(crate) fn new(place: &Place, token: Option<&str>) -> Self {
        Self::told(place, |command| {
            if let Some(token) = token {
                command.env("NARTHEX_TOKEN", token);
            }
        })
        .0
    }

    /// Mounts by a command that `change` has changed; also returns the command's report.
    fn told(place: &Place, change: impl FnOnce(&mut Command)) -> (Self, Value) {
        let folder = place.path("mcp");
        if fs::read_dir(&folder).is_err() && !is_mounted(&folder) {
            fs::create_dir(&folder).unwrap();
        }
        let mut command = place.command(["mount", "mcp", "--json"]);
        change(&mut command);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let mut told: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(told["ok"], true, "{told}");
        assert!(is_mounted(&folder));
        (Self { child, folder }, told["data"].take())
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    }

    fn ends(&mut self, code: Option<i32>) {
        assert_eq!(self.child.wait().unwrap().code(), code);
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // The mount may have ended already. The watcher of a killed mount frees the folder.
        drop(self.child.kill());
        drop(self.child.wait());
        until_unmounted(&self.folder);
    }
}

fn is_mounted(folder: &Path) -> bool {
    let folder = fs::canonicalize(folder.parent().unwrap()).unwrap().join("mcp");
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    mounts.lines().any(|line| line.split(' ').nth(1) == folder.to_str())
}

/// Waits until the kernel says that something has changed, for as long as it is mounted.
fn until_unmounted(folder: &Path) {
    let mounts = fs::File::open("/proc/self/mounts").unwrap();
    while is_mounted(folder) {
        let mut changes = [PollFd::from_borrowed_fd(mounts.as_fd(), PollFlags::PRI)];
        let soon = Timespec { tv_sec: SOON.as_secs().try_into().unwrap(), tv_nsec: 0 };
        assert!(poll(&mut changes, Some(&soon)).unwrap() > 0, "it stays mounted");
    }
}

/// A place with a server `demo`.
fn place() -> Place {
    Place::with(&json!({ "demo": fixture_entry() }))
}

fn shell(place: &Place, script: &str) -> Done {
    let output = Command::new("bash").args(["-c", script]).current_dir(place.path("")).output();
    Done::from(output.unwrap())
}

#[test]
fn commands_have_the_files_of_the_daemons_own_run() {
    let place = place();
    let _daemon = place.up();
    let done = place.run(["vfs", "ls"]).succeeded();
    assert_eq!(done.stdout, "0-demo/\n0-narthex/\n");
    let done = place.run(["vfs", "ls", "0-demo/tools", "--json"]).succeeded().json();
    let entries = done["data"]["entries"].as_array().unwrap();
    assert!(entries.iter().any(|entry| entry["name"] == "echo.md"), "{done}");
    let done = place.run(["vfs", "cat", "0-demo/tools/echo.md"]).succeeded();
    assert!(done.stdout.starts_with("# echo\n"), "{done:?}");
    let call = ["vfs", "call", "/mnt/mcp/0-demo/tools/echo", "message=42"];
    let done = place.run(call).succeeded().json();
    assert_eq!(done["content"][0]["text"], "42", "the schema says that it is a text");
    let prompt = ["vfs", "call", "0-demo/prompts/test_prompt_with_arguments", "arg1=5", "arg2=x"];
    let done = place.run(prompt).succeeded();
    assert!(done.stdout.contains("arg1='5'"), "arguments of prompts are texts: {done:?}");
    let write = ["vfs", "write", "0-demo/tools/echo", "--json"];
    let done = place.pipe(&write, r#"{"message":"x"}"#).succeeded().json();
    assert_eq!(done["data"]["content"][0]["text"], "x");
    let done = place.run(["vfs", "stat", "0-demo/tools/echo"]).succeeded();
    assert_eq!(
        done.stdout,
        "/tools/echo of /mnt/mcp/0-demo is a file that can be written and read\n"
    );
}

#[test]
fn a_failure_has_its_code_operation_and_path() {
    let place = place();
    let _daemon = place.up();
    let path = "/mnt/mcp/0-demo/tools/echo";
    let told = format!("[INVALID] Read: {path} (");
    place.run(["vfs", "cat", path]).failed(1, &[&told, "write the arguments first"]);
    let call = place.printed("vfs call 0-demo/tools/echo KEY=VALUE");
    place.run(["vfs", "cat", path]).failed(1, &[&call]);
    place.run(["vfs", "ls", "2-demo"]).failed(1, &["[NOT_FOUND]", "/mnt/mcp/2-demo"]);
    let done = place.run(["vfs", "ls", "2-demo", "--json"]);
    let failure = &done.json()["error"]["details"]["failure"];
    assert_eq!((done.code, &failure["code"]), (Some(1), &json!("NOT_FOUND")), "{done:?}");
}

/// R-G3: a path that leads nowhere is answered with the names that exist and the next command.
#[test]
fn r_g3_an_absent_path_is_told_the_names_that_exist() {
    let place = place();
    let _daemon = place.up();
    let tools = place.printed("vfs ls 0-demo/tools");
    for file in ["ecko", "ecko.md", "ecko.schema.json"] {
        let done = place.run(["vfs", "cat", &format!("0-demo/tools/{file}")]);
        done.failed(1, &["not_found", "did you mean echo?", &tools]);
    }
    place.run(["vfs", "call", "0-demo/tools/zzzzzzzzz", "{}"]).failed(1, &[&tools]);
    let mounts = place.printed("vfs ls");
    for path in ["2-zzzzzz", "2-zzzzzz/tools/echo", "zzzzzz"] {
        let done = place.run(["vfs", "cat", path]);
        done.failed(1, &["[NOT_FOUND]", "0-demo, 0-narthex", &mounts]);
    }
    let prompts = place.printed("vfs ls 0-demo/prompts");
    place.run(["vfs", "cat", "0-demo/prompts/zzzzzzzzz"]).failed(1, &["[NOT_FOUND]", &prompts]);
}

#[test]
fn a_folder_is_unmounted_when_its_process_gets_a_signal() {
    if !has_fuse() {
        return;
    }
    let place = place();
    let _daemon = place.up();
    for signal in ["INT", "TERM", "HUP"] {
        let mut mount = Mount::new(&place, None);
        let said = shell(&place, "cat mcp/0-demo/ctl/status").succeeded();
        assert!(said.stdout.contains(r#""state":"ready""#), "{said:?}");
        mount.signal(signal);
        mount.ends(Some(0));
        assert!(!is_mounted(&mount.folder), "{signal}");
    }
    assert_eq!(fs::read_dir(place.path("mcp")).unwrap().count(), 0);
}

/// S29: a killed process leaves no dead folder.
#[test]
fn s29_a_folder_is_unmounted_when_its_process_or_the_daemon_is_killed() {
    if !has_fuse() {
        return;
    }
    let place = place();
    let daemon = place.up();
    let mut mount = Mount::new(&place, None);
    mount.signal("KILL");
    mount.ends(None);
    until_unmounted(&mount.folder);
    // The same folder can be mounted again, and an open call is answered.
    let mut mount = Mount::new(&place, None);
    let script =
        r#"exec 3<>mcp/0-demo/tools/sleep; echo '{"ms":600000}' >&3; echo written; cat <&3"#;
    let mut reader = Command::new("bash");
    reader.args(["-c", script]).current_dir(place.path(""));
    let mut reader = reader.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(reader.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "written\n");
    daemon.signal("KILL");
    let done = Done::from(reader.wait_with_output().unwrap());
    assert_ne!(done.code, Some(0), "{done:?}");
    mount.ends(Some(1));
    assert!(!is_mounted(&mount.folder));
}

#[test]
fn only_a_dead_mount_of_narthex_is_cleaned_up() {
    if !has_fuse() {
        return;
    }
    let place = place();
    let _daemon = place.up();
    let mut mount = Mount::new(&place, None);
    // Together with the process that watches over it.
    let pid = mount.child.id();
    for watcher in crate::support::descendants(pid).into_iter().filter(|one| *one != pid) {
        assert!(
            Command::new("kill").args(["-9", &watcher.to_string()]).status().unwrap().success()
        );
    }
    mount.signal("KILL");
    mount.ends(None);
    assert!(is_mounted(&mount.folder));
    let again = Mount::new(&place, None);
    assert!(shell(&place, "ls mcp/0-demo").succeeded().stdout.contains("tools"));
    let told = ["[ALREADY_MOUNTED] Mount: ", "end the process of that mount", "fusermount3 -u mcp"];
    place.run(["mount", "mcp"]).failed(1, &told);
    drop(again);
    place.write("mcp/mine", "");
    place.run(["mount", "mcp"]).failed(1, &["is not empty"]);
    place.run(["mount", "absent"]).failed(1, &["absent", "is not a folder"]);
    place.run(["mount", "mcp", "--pid", "no"]).failed(2, &["--pid"]);
    place.run(["mount", "mcp", "--pid", "7"]).failed(1, &["belongs to run 0", "not to run 7"]);
}

/// R-M25, R-M22, R-M2, R-M3: a run has its own number, and its files are gone with it.
#[test]
fn r_m22_the_folder_of_a_run_is_removed_with_the_run() {
    let place = place();
    let daemon = place.up();
    let (run, token) = run_of(&place);
    let listed = of_run(&place, &token, &["vfs", "ls", "--json"]).json();
    let pid = listed["data"]["pid"].as_u64().unwrap();
    let own = format!("{pid}-mine");
    let entries = listed["data"]["entries"].as_array().unwrap();
    assert!(entries.iter().any(|entry| entry["name"] == own.as_str()), "{listed}");
    // Neither sees the other.
    of_run(&place, &token, &["vfs", "ls", &format!("{}-mine", pid + 1)])
        .failed(1, &["[NOT_FOUND]"]);
    if !has_fuse() {
        return;
    }
    let mut mount = Mount::new(&place, Some(&token));
    assert!(shell(&place, &format!("ls mcp/{own}")).succeeded().stdout.contains("tools"));
    let logs = shell(&place, &format!("cat mcp/{own}/ctl/logs"));
    assert!(logs.stderr.contains("Permission denied"), "A-9: {logs:?}");
    place.run(["runs", "end", &run]).succeeded();
    mount.ends(Some(0));
    assert!(!is_mounted(&mount.folder));
    drop(daemon);
}

/// A run with a server of its own, and its token.
fn run_of(place: &Place) -> (String, String) {
    let servers = json!({ "servers": { "mine": fixture_entry() } }).to_string();
    place.write("run.json", &servers);
    let created = place.run(["runs", "create", "run.json", "--json"]).succeeded().json();
    let text = |name: &str| created["data"][name].as_str().unwrap().to_owned();
    (text("run_id"), text("token"))
}

fn of_run(place: &Place, token: &str, words: &[&str]) -> Done {
    Done::from(place.command(words).env("NARTHEX_TOKEN", token).output().unwrap())
}

/// Keeps a daemon for a module below.
pub(crate) fn daemon(place: &Place) -> Daemon {
    place.up()
}
