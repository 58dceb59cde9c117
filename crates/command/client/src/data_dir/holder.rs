//! The process of the directory's daemon: `daemon.lock`.
//!
//! The lock counts across containers that share the directory, and the number of a process does
//! not: in another container it is another process. So the file also has the namespace of the
//! number and the start of the process, and both are compared before a signal is sent.

use std::{
    os::unix::fs::{FileExt, MetadataExt},
    path::{Path, PathBuf},
};

use fs_err as fs;
use narthex_model::{ErrorKind, command::quoted};

use super::{DaemonLock, DataDir, STATE_MAX};
use crate::Failure;

/// Members of the file after the number of the process.
const START: &str = "start=";
const NAMESPACE: &str = "pid_namespace=";

/// The process that holds the lock, as the file names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder {
    /// The number of the process, in its own namespace.
    pub pid: u32,
    /// The start of the process, in ticks since the start of the machine. `None` where the system
    /// does not say it, and for an older daemon.
    start: Option<u64>,
    /// The namespace of the number.
    namespace: Option<u64>,
}

impl Holder {
    fn of_this_process() -> Self {
        let has_proc = has_proc();
        Self {
            pid: std::process::id(),
            start: has_proc.then(|| start_of("self")).flatten(),
            namespace: namespace(),
        }
    }

    fn parse(text: &str) -> Result<Self, std::num::ParseIntError> {
        let mut words = text.split_whitespace();
        let pid = words.next().unwrap_or_default().parse()?;
        let mut holder = Self { pid, start: None, namespace: None };
        for word in words {
            if let Some(start) = word.strip_prefix(START) {
                holder.start = start.parse().ok();
            } else if let Some(namespace) = word.strip_prefix(NAMESPACE) {
                holder.namespace = namespace.parse().ok();
            }
        }
        Ok(holder)
    }

    fn to_text(self) -> String {
        let mut text = self.pid.to_string();
        let members = [(START, self.start), (NAMESPACE, self.namespace)];
        for (name, value) in members.into_iter().filter_map(|(name, value)| Some((name, value?))) {
            text.push_str(&format!(" {name}{value}"));
        }
        text
    }

    /// Checks that the number means the daemon in this process's namespace, so that a signal
    /// reaches no other process.
    ///
    /// # Errors
    /// When it means another process, or it cannot be found out.
    pub fn check(&self, data: &DataDir) -> Result<(), Failure> {
        if let (Some(theirs), Some(ours)) = (self.namespace, namespace())
            && theirs != ours
        {
            return Err(self.elsewhere(data));
        }
        if !has_proc() {
            return Ok(());
        }
        let is_it = match (self.start, start_of(&self.pid.to_string())) {
            (Some(recorded), Some(found)) => recorded == found,
            (None, _) | (_, None) => has_lock(self.pid, &data.lock_file()),
        };
        if is_it { Ok(()) } else { Err(self.elsewhere(data)) }
    }

    /// The failure of a number that means no process here, or another one.
    pub(crate) fn elsewhere(&self, data: &DataDir) -> Failure {
        let text = format!(
            "the daemon of {} runs in another container, or in another namespace of processes; \
             stop or restart it there: process {} here is not the daemon, and got no signal",
            data.path().display(),
            self.pid
        );
        Failure::new(ErrorKind::Conflict, text)
    }
}

impl DaemonLock {
    /// Writes this process into the file. A reader finds the process before it or this one.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn sign(&self) -> Result<(), Failure> {
        let text = Holder::of_this_process().to_text();
        self.file.file().write_all_at(text.as_bytes(), 0)?;
        self.file.set_len(text.len() as u64)?;
        Ok(())
    }
}

impl DataDir {
    /// Process id of the daemon that uses the directory, even if it does not answer; `None` if
    /// there is none. It is one of the daemon's own namespace: see [`Holder::check`].
    pub fn holder(&self) -> Result<Option<u32>, Failure> {
        Ok(self.holding()?.map(|holder| holder.pid))
    }

    /// The process that holds the directory's lock; `None` if there is none.
    pub fn holding(&self) -> Result<Option<Holder>, Failure> {
        if !self.is_locked()? {
            return Ok(None);
        }
        let path = self.lock_file();
        let text = narthex_private::read(&path, STATE_MAX)?;
        Holder::parse(&String::from_utf8_lossy(&text)).map(Some).map_err(|error| {
            let text = format!(
                "a daemon holds {}, but the file does not say which process it is ({error}); find \
                 the process with `fuser {}`",
                path.display(),
                quoted(&path.to_string_lossy())
            );
            Failure::new(ErrorKind::Invalid, text)
        })
    }
}

/// True if `/proc` is there and of this process's namespace.
fn has_proc() -> bool {
    let own = PathBuf::from(std::process::id().to_string());
    fs::read_link("/proc/self").is_ok_and(|link| link == own)
}

/// The namespace of the numbers of processes; `None` where there is none.
fn namespace() -> Option<u64> {
    fs::metadata("/proc/self/ns/pid").map(|found| found.ino()).ok()
}

/// The start of a process, in ticks since the start of the machine: the 22nd field of its status
/// line. The name of the program, the second one, may have spaces and brackets.
fn start_of(process: &str) -> Option<u64> {
    let line = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, after) = line.rsplit_once(')')?;
    after.split_whitespace().nth(19)?.parse().ok()
}

/// True if a process has locked the file, or has it open: for a daemon that wrote no start.
fn has_lock(pid: u32, lock: &Path) -> bool {
    let Ok(wanted) = fs::metadata(lock) else { return false };
    // The files of another user's process cannot be read, and the list of locks can. The devices
    // in it are not those of `stat` on each file system.
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    let is_its_lock = |line: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        words.get(1) == Some(&"FLOCK")
            && words.get(4).is_some_and(|word| *word == pid.to_string())
            && words.get(5).and_then(|file| file.rsplit(':').next()?.parse().ok())
                == Some(wanted.ino())
    };
    if locks.lines().any(is_its_lock) {
        return true;
    }
    let Ok(open) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    open.flatten().any(|entry| {
        let file = fs::metadata(entry.path());
        file.is_ok_and(|file| (file.dev(), file.ino()) == (wanted.dev(), wanted.ino()))
    })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn write(data: &DataDir, text: &str) -> Holder {
        fs::write(data.lock_file(), text).unwrap();
        data.holding().unwrap().unwrap()
    }

    #[test]
    fn only_the_process_that_holds_the_lock_is_the_daemon() {
        if !has_proc() {
            eprintln!("SKIPPED: there is no /proc");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let data = DataDir::open(dir.path()).unwrap();
        let lock = data.lock().unwrap();
        let own = data.holding().unwrap().unwrap();
        assert_eq!(own, Holder::of_this_process());
        assert!(own.start.is_some() && own.namespace.is_some(), "{own:?}");
        own.check(&data).unwrap();
        let elsewhere = |holder: Holder| {
            let failure = holder.check(&data).unwrap_err();
            assert!(failure.message.contains("another container"), "{failure}");
        };
        elsewhere(Holder { namespace: Some(1), ..own });
        elsewhere(Holder { start: own.start.map(|start| start + 1), ..own });
        // An older daemon wrote its number alone.
        let pid = std::process::id();
        write(&data, &pid.to_string()).check(&data).unwrap();
        let mut other = Command::new("sleep").arg("1000").spawn().unwrap();
        elsewhere(write(&data, &other.id().to_string()));
        other.kill().unwrap();
        other.wait().unwrap();
        lock.sign().unwrap();
        assert_eq!(data.holding().unwrap(), Some(own));
    }

    #[test]
    fn a_lock_file_that_names_no_process_has_a_remedy_that_can_be_pasted() {
        let dir = tempfile::tempdir().unwrap();
        let data = DataDir::open(&dir.path().join("it's")).unwrap();
        let _lock = data.lock().unwrap();
        fs::write(data.lock_file(), "").unwrap();
        let failure = data.holder().unwrap_err();
        let command = format!("`fuser {}`", quoted(&data.lock_file().to_string_lossy()));
        assert!(command.contains('"') && failure.message.contains(&command), "{failure}");
    }
}
