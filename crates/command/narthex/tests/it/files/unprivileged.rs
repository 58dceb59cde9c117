//! `narthex mount` by a user who is not root: through `fusermount3`, which gets nothing of
//! narthex's environment.

use std::{
    ffi::OsStr,
    io::{BufRead, BufReader},
    os::unix::fs::{PermissionsExt, chown},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use fs_err as fs;
use serde_json::Value;
use tempfile::TempDir;

use super::{has_fuse, is_mounted, place, until_unmounted};
use crate::support::{Done, PROGRAM, Place, descendants};

/// A user who has nothing.
const USER: u32 = 65534;

/// A folder of another user's, who holds the token of the daemon's own run.
struct Theirs {
    dir: TempDir,
    /// This program, where they may run it.
    program: PathBuf,
    token: String,
    url: String,
}

/// A mount of theirs.
struct TheirMount {
    child: Child,
    folder: PathBuf,
}

impl Theirs {
    fn new(place: &Place) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("mcp")).unwrap();
        fs::create_dir(dir.path().join("bin")).unwrap();
        for path in ["", "mcp", "bin"] {
            chown(dir.path().join(path), Some(USER), Some(USER)).unwrap();
        }
        let open = std::fs::Permissions::from_mode(0o755);
        fs::set_permissions(dir.path(), open).unwrap();
        let state = fs::read_to_string(place.path("data/daemon.json")).unwrap();
        let state: Value = serde_json::from_str(&state).unwrap();
        let url = state["url"].as_str().unwrap().to_owned();
        let token = fs::read_to_string(place.path("data/client.token")).unwrap().trim().to_owned();
        let mut theirs = Self { dir, program: PROGRAM.into(), token, url };
        if !theirs.command(PROGRAM).arg("--version").output().unwrap().status.success() {
            theirs.program = theirs.path("bin/narthex");
            fs::copy(PROGRAM, &theirs.program).unwrap();
        }
        theirs
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A program of theirs in their folder.
    fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("setpriv");
        let (uid, gid) = (format!("--reuid={USER}"), format!("--regid={USER}"));
        command.args([&uid, &gid, "--clear-groups", "--"]).arg(program);
        command.current_dir(self.dir.path());
        command.env_clear().env("HOME", self.dir.path()).stdin(Stdio::null());
        // Before all others the programs of the test.
        let path = std::env::var_os("PATH").unwrap();
        let bin = self.path("bin").into_os_string();
        command.env("PATH", [bin, path].join(OsStr::new(":")));
        command
    }

    fn shell(&self, script: &str) -> Done {
        Done::from(self.command("bash").args(["-c", script]).output().unwrap())
    }

    fn mounting(&self) -> Command {
        let mut command = self.command(&self.program);
        command.args(["mount", "mcp", "--json", "--daemon-url", &self.url]);
        command.env("NARTHEX_TOKEN", &self.token);
        command
    }

    fn mount(&self) -> TheirMount {
        let mut child = self.mounting().stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let told: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(told["ok"], true, "{told}");
        let folder = self.path("mcp");
        assert!(is_mounted(&folder));
        TheirMount { child, folder }
    }
}

impl TheirMount {
    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    }

    fn ends(mut self, code: Option<i32>) {
        assert_eq!(self.child.wait().unwrap().code(), code);
        until_unmounted(&self.folder);
    }
}

impl Drop for TheirMount {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A script that gives all users the device for FUSE, as udev does. It works in a namespace of its
/// own, so that nothing of the machine is changed.
const WITH_DEVICE: &str = r#"
set -e
mount -t tmpfs tmpfs "$1"
mknod -m 666 "$1/fuse" c 10 229
mount --bind "$1/fuse" /dev/fuse
shift
exec "$@"
"#;

/// True if a test is done here. Where the device is for root alone, the test is done by another
/// process, which has its own.
#[expect(clippy::print_stderr, reason = "a skipped test must say so")]
fn goes_on(test: &str) -> bool {
    let can = |script: &str| {
        Command::new("sh").args(["-c", script]).stdout(Stdio::null()).status().unwrap().success()
    };
    if !has_fuse() {
        return false;
    }
    let programs = "command -v setpriv && command -v fusermount3 && command -v unshare";
    if !can(&format!("{programs} && test \"$(id -u)\" = 0")) {
        eprintln!("SKIPPED: mounting as another user takes root, fusermount3, setpriv and unshare");
        return false;
    }
    let open =
        format!("setpriv --reuid={USER} --regid={USER} --clear-groups sh -c '<>/dev/fuse' 2>&1");
    if can(&open) {
        return true;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut again = Command::new("unshare");
    again.args(["--mount", "--propagation", "private", "sh", "-c", WITH_DEVICE, "sh"]);
    again.arg(dir.path()).arg(std::env::current_exe().unwrap());
    again.args(["--exact", test, "--nocapture"]);
    let done = Done::from(again.output().unwrap());
    assert!(done.code == Some(0) && done.stdout.contains("1 passed"), "{done:?}");
    false
}

/// S29: their files are theirs alone, and the folder is free on every exit.
#[test]
fn s29_a_user_who_is_not_root_mounts_a_private_folder() {
    if !goes_on("files::unprivileged::s29_a_user_who_is_not_root_mounts_a_private_folder") {
        return;
    }
    let place = place();
    let _daemon = place.up();
    let theirs = Theirs::new(&place);
    let mount = theirs.mount();
    let script = r#"echo '{"message":"hi"}' > mcp/0-demo/tools/echo; cat mcp/0-demo/tools/echo"#;
    assert!(theirs.shell(script).succeeded().stdout.contains(r#""text":"hi""#));
    // Root is another user here, too.
    let path = mount.folder.join("0-demo/tools/echo");
    for refused in [fs::metadata(&path).map(drop), fs::read_dir(&mount.folder).map(drop)] {
        let error = refused.expect_err("it is not ours");
        assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied, "{error}");
    }
    let others = Command::new("setpriv")
        .args(["--reuid=65533", "--regid=65533", "--clear-groups", "--", "ls", "mcp"])
        .current_dir(theirs.dir.path())
        .output();
    let others = Done::from(others.unwrap());
    assert!(others.stderr.contains("Permission denied"), "{others:?}");
    // Neither this user nor root can mount over the folder.
    let again = Done::from(theirs.mounting().output().unwrap());
    assert!(again.stdout.contains("[ALREADY_MOUNTED]"), "{again:?}");
    let ours = place.command(["mount"]).arg(&mount.folder).output().unwrap();
    Done::from(ours).failed(1, &["[ALREADY_MOUNTED]"]);
    mount.signal("TERM");
    mount.ends(Some(0));
    assert_eq!(fs::read_dir(theirs.path("mcp")).unwrap().count(), 0);
}

/// S29: also where it, or its watcher, is killed.
#[test]
fn s29_a_killed_mount_of_a_user_who_is_not_root_is_unmounted() {
    if !goes_on("files::unprivileged::s29_a_killed_mount_of_a_user_who_is_not_root_is_unmounted") {
        return;
    }
    let place = place();
    let daemon = place.up();
    let theirs = Theirs::new(&place);
    let mount = theirs.mount();
    mount.signal("KILL");
    mount.ends(None);
    // Without its watcher no process is left that could free the folder; the next mount frees it.
    let mut mount = theirs.mount();
    let pid = mount.child.id();
    for watcher in descendants(pid).into_iter().filter(|one| *one != pid) {
        let killed = Command::new("kill").args(["-9", &watcher.to_string()]).status();
        assert!(killed.unwrap().success());
    }
    mount.signal("KILL");
    assert_eq!(mount.child.wait().unwrap().code(), None);
    assert!(is_mounted(&mount.folder), "it is dead, and there");
    drop(mount);
    let first = theirs.mount();
    assert!(theirs.shell("ls mcp/0-demo").succeeded().stdout.contains("tools"));
    // The user may also free the folder by hand.
    theirs.shell("fusermount3 -u -z mcp").succeeded();
    first.ends(Some(0));
    let mount = theirs.mount();
    daemon.signal("KILL");
    mount.ends(Some(1));
}

/// S29: the system's program that mounts gets neither the token nor other variables of narthex.
#[test]
fn the_mount_helper_gets_no_variable_of_narthex() {
    if !goes_on("files::unprivileged::the_mount_helper_gets_no_variable_of_narthex") {
        return;
    }
    let place = place();
    let _daemon = place.up();
    let theirs = Theirs::new(&place);
    let real = Command::new("sh").args(["-c", "command -v fusermount3"]).output().unwrap();
    let real = String::from_utf8(real.stdout).unwrap();
    let said = theirs.path("environment");
    let shim = format!(
        "#!/bin/sh\nenv >> '{}'\necho \"$@\" >> '{}'\nexec {} \"$@\"\n",
        said.display(),
        said.display(),
        real.trim()
    );
    let program = theirs.path("bin/fusermount3");
    write_program(&program, &shim);
    let mount = theirs.mount();
    mount.signal("INT");
    mount.ends(Some(0));
    let said = fs::read_to_string(&said).unwrap();
    let names: Vec<_> = said.lines().filter_map(|line| line.split_once('=')).collect();
    let known = ["PATH", "_FUSE_COMMFD", "PWD", "SHLVL", "_", "OLDPWD"];
    for (name, _) in names.iter().filter(|(name, _)| !name.starts_with('-')) {
        assert!(known.contains(name), "{name}: {said}");
    }
    assert!(said.contains("_FUSE_COMMFD=0") && said.contains("-u -z"), "{said}");
    assert!(!said.contains(&theirs.token), "the token is in its environment");
}

fn write_program(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}
