//! All processes below the shim, and signals to all of them.
//!
//! A process whose parent ends becomes the shim's own child, so no process leaves the tree by a new
//! session or a double fork. `/proc` is read anew each time, since a tree changes while it is read.
//! Signals that did not arrive are ignored: a remaining process gets the next one, and the daemon
//! reports a tree that does not end.

use std::collections::{HashMap, HashSet};
use std::io;

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getpid, kill_process, kill_process_group,
    pidfd_open, pidfd_send_signal,
};

use crate::proc::{self, Stat};

/// Most looks for processes that were born meanwhile, before all are killed.
const FREEZE_LOOKS: usize = 16;

/// The result of reaping.
pub(super) struct Reaped {
    /// The leader's wait status, if it ended just now.
    pub(super) leader: Option<WaitStatus>,
    /// True if no process is left.
    pub(super) is_empty: bool,
}

/// Reaps all ended processes.
pub(super) fn reap(leader: Option<Pid>) -> Reaped {
    let mut ended = None;
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some((id, status))) => {
                if leader == Some(id) {
                    ended = Some(status);
                }
            }
            Err(Errno::INTR) => {}
            Ok(None) => return Reaped { leader: ended, is_empty: false },
            // No children. No other error is possible with these arguments.
            Err(_) => return Reaped { leader: ended, is_empty: true },
        }
    }
}

/// Asks all processes to end. The leader's group gets the signal at once, the others one by one.
pub(super) fn terminate(leader: Option<Pid>) {
    let group = leader.map(|leader| leader.as_raw_nonzero().get());
    if let Some(leader) = leader {
        kill_process_group(leader, Signal::TERM).ok();
    }
    let members = descendants().unwrap_or_default();
    for member in members.iter().filter(|member| Some(member.group) != group) {
        signal(member, Signal::TERM);
    }
}

/// Kills all processes that are found once; to be repeated until none is left.
///
/// The shim's own children come first, and at once: a process that forks and ends repeatedly is
/// always one of them. The others are stopped before they are killed: a running process may fork,
/// or restart a killed process below it.
pub(super) fn kill() {
    for child in children() {
        kill_process(child, Signal::KILL).ok();
    }
    let mut stopped = HashSet::new();
    let mut members = Vec::new();
    for _ in 0..FREEZE_LOOKS {
        let Ok(found) = descendants() else { break };
        members = found;
        members.retain(|member| !member.is_dead);
        let mut is_new = false;
        for member in &members {
            if stopped.insert((member.id, member.started)) {
                is_new = true;
                signal(member, Signal::STOP);
            }
        }
        if !is_new {
            break;
        }
    }
    for member in &members {
        signal(member, Signal::KILL);
    }
}

/// This process's own children. Their numbers are theirs until they are reaped.
fn children() -> Vec<Pid> {
    match fs_err::read_to_string("/proc/thread-self/children") {
        Ok(list) => {
            let ids = list.split_ascii_whitespace().filter_map(|id| id.parse().ok());
            ids.filter_map(proc::pid).collect()
        }
        // A kernel without this file.
        Err(_) => {
            let own = getpid().as_raw_nonzero().get();
            let all = descendants().unwrap_or_default();
            let own = all.iter().filter(|member| member.parent == own);
            own.filter_map(|member| proc::pid(member.id)).collect()
        }
    }
}

/// All below this process, parents before their children.
fn descendants() -> io::Result<Vec<Stat>> {
    let mut children: HashMap<i32, Vec<Stat>> = HashMap::new();
    for process in proc::processes()? {
        children.entry(process.parent).or_default().push(process);
    }
    let mut found = children.remove(&getpid().as_raw_nonzero().get()).unwrap_or_default();
    let mut at = 0;
    while let Some(parent) = found.get(at) {
        // Taken out, so that a picture that was blurred by changes cannot hold a circle.
        let below = children.remove(&parent.id).unwrap_or_default();
        found.extend(below);
        at += 1;
    }
    Ok(found)
}

/// Sends a signal to exactly the process of this `stat`: unless it is the shim's own child, its id
/// may belong to another process by now.
fn signal(member: &Stat, signal: Signal) {
    let Some(id) = proc::pid(member.id) else { return };
    let handle = match pidfd_open(id, PidfdFlags::empty()) {
        Ok(handle) => handle,
        // An old kernel.
        Err(Errno::NOSYS) => {
            kill_process(id, signal).ok();
            return;
        }
        Err(_) => return,
    };
    let is_same = proc::stat(member.id).is_some_and(|now| now.started == member.started);
    if is_same {
        pidfd_send_signal(handle, signal).ok();
    }
}
