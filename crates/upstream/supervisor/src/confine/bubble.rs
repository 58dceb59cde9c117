//! The command line of `bwrap`, which gives a child namespaces of its own.

use std::ffi::{OsStr, OsString};

use rustix::thread::CapabilitySet;

use super::plan::{Paths, Plan, Privileges, Sockets};
use super::privileges;

/// The words in front of the child's own command. `filters` are the numbers of open files that hold
/// the filters: `bwrap` itself needs calls that they deny. It leaves the child those privileges
/// that are `kept`.
pub(super) fn arguments(
    plan: &Plan,
    working_dir: Option<&OsStr>,
    filters: &[i32],
    kept: CapabilitySet,
) -> Vec<OsString> {
    let mut words = Words(Vec::new());
    words.say(["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]);
    if plan.sockets == Sockets::None {
        words.say(["--unshare-net"]);
    }
    if plan.privileges != Privileges::All {
        words.say(["--cap-drop", "ALL"]);
        for name in privileges::names(kept) {
            words.say(["--cap-add", name]);
        }
    }
    match &plan.files {
        None => words.say(["--bind", "/", "/", "--dev-bind", "/dev", "/dev", "--proc", "/proc"]),
        Some(paths) => words.files(paths),
    }
    if let Some(folder) = working_dir {
        words.pair("--chdir", folder);
    }
    for filter in filters {
        words.pair("--add-seccomp-fd", OsStr::new(&filter.to_string()));
    }
    words.say(["--"]);
    words.0
}

struct Words(Vec<OsString>);

impl Words {
    fn say<const N: usize>(&mut self, words: [&str; N]) {
        self.0.extend(words.map(OsString::from));
    }

    fn pair(&mut self, word: &str, value: &OsStr) {
        self.0.extend([word.into(), value.to_owned()]);
    }

    fn bind(&mut self, how: &str, paths: &[OsString]) {
        for path in paths {
            self.0.extend([how.into(), path.clone(), path.clone()]);
        }
    }

    /// Only the named paths are there. Temporary files are its own.
    fn files(&mut self, paths: &Paths) {
        // First, so that a working folder below it is seen all the same.
        self.pair("--tmpfs", &paths.temporary);
        self.bind("--ro-bind-try", &paths.base_read);
        self.say(["--dev", "/dev", "--proc", "/proc"]);
        self.bind("--bind-try", &paths.base_write);
        self.bind("--ro-bind", &paths.read);
        self.bind("--bind", &paths.write);
    }
}
