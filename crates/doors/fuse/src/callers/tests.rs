//! Trees of processes, and what is found in them.

use super::*;

/// A process of the session of a terminal.
fn of(pid: u32, session: u32, terminal: u32) -> Caller {
    Caller { identity: Identity { pid, began: 7 }, session, terminal }
}

fn caller(pid: u32) -> Caller {
    of(pid, 1, 0)
}

fn pids(lineage: &[Caller]) -> Vec<u32> {
    lineage.iter().map(Caller::pid).collect()
}

#[test]
fn the_lineage_of_this_process_begins_with_its_own_pid() {
    let own = std::process::id();
    let lineage = lineage(own);
    assert_eq!(pids(&lineage).first(), Some(&own));
    assert!(lineage.len() > 1, "{lineage:?}");
    assert!(!is_interrupted(own));
    assert!(is_interrupted(u32::MAX), "it is gone");
    assert!(!is_interrupted(0), "it cannot be seen");
    assert_eq!(pids(&super::lineage(0)), [0], "what it leaves is found by others like it");
}

#[test]
fn processes_adopted_by_a_manager_are_not_related() {
    let lineage = |process| {
        let stat = |parent, session| {
            let (terminal, flags, began, exit_code) = (0, 0, 7, 0);
            Some(Stat { parent, session, terminal, flags, began, exit_code })
        };
        let lineage = lineage_of(process, |pid| match pid {
            1 => stat(0, 1),
            // A manager of the user, and two that it has taken in, one with a child.
            5 => stat(1, 5),
            6 | 7 => stat(5, pid),
            8 => stat(6, 6),
            // A daemon of the first process, with children in its session.
            20 => stat(1, 20),
            21 => stat(20, 20),
            // In a container: an agent, and what it has started in a session of its own.
            30 => stat(1, 1),
            31 => stat(30, 31),
            _ => None,
        });
        pids(&lineage)
    };
    assert_eq!(lineage(8), [8, 6], "its shell, and no further");
    assert_eq!(lineage(7), [7]);
    assert_eq!(lineage(21), [21, 20]);
    assert_eq!(lineage(31), [31, 30, 1]);
    assert!(lineage(99).is_empty());
}

#[test]
fn a_program_with_a_name_that_is_not_utf8_is_found() {
    use std::{
        ffi::OsStr,
        os::unix::{ffi::OsStrExt, fs::symlink},
        process::{Command, Stdio},
    };

    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join(OsStr::from_bytes(b"c\xff) S 7"));
    symlink("/bin/cat", &program).expect("a link");
    let mut child = Command::new(program).stdin(Stdio::piped()).spawn().expect("it runs");
    let pid = child.id();
    assert_eq!(process_of(pid), Some(pid));
    assert!(!is_interrupted(pid));
    assert_eq!(pids(&lineage(pid)).get(1), Some(&std::process::id()));
    drop(child.stdin.take());
    assert!(child.wait().expect("it ends").success());
}

#[test]
fn a_process_ended_by_a_signal_is_distinguished_from_a_normal_exit() {
    let stat = |flags: u32, exit_code: u32| {
        let until_session = "7 (a ) b) D 1 7 3 34817 -1";
        let zeros = "0 ".repeat(12);
        let text = format!("{until_session} {flags} {zeros}99 {}{exit_code}\n", "0 ".repeat(29));
        Stat::parse(&text).expect("it is one")
    };
    let running = stat(0x40_0000, 0);
    assert_eq!((running.parent, running.session, running.began), (1, 3, 99));
    assert_eq!(running.terminal, 34817);
    assert!(!running.is_killed() && !running.is_exiting());
    assert!(stat(0x4, 0).is_exiting());
    assert!(!stat(0x4, 0).is_killed(), "it has ended by itself");
    assert!(!stat(0x4, 1 << 8).is_killed(), "with a status");
    assert!(stat(0x4, 9).is_killed());
    assert!(stat(0x4, 2 | 0x80).is_killed(), "and left a core");
}

#[test]
fn a_result_is_found_by_processes_of_the_same_tree() {
    let (shell, other, agent) = (caller(10), caller(20), caller(1));
    let mut left = ByTree::default();
    // `echo` of the shell itself, then `cat` as its child.
    left.leave(&[shell, agent], 1, "builtin");
    assert_eq!(left.nearest(&[caller(11), shell, agent]), Some(&"builtin"));
    // A program of the other shell, then another program of it.
    left.leave(&[caller(21), other, agent], 2, "program");
    assert_eq!(left.nearest(&[caller(22), other, agent]), Some(&"program"));
    // The first shell still has its own.
    assert_eq!(left.nearest(&[caller(12), shell, agent]), Some(&"builtin"));
    // The last result of a shell counts, from either process.
    left.leave(&[caller(13), shell, agent], 3, "later");
    assert_eq!(left.nearest(&[caller(14), shell, agent]), Some(&"later"));
    // An unrelated process finds nothing.
    assert_eq!(left.nearest(&[caller(30), caller(31)]), None);
    assert_eq!(left.nearest(&[]), None);
    let reused = Caller { identity: Identity { pid: 10, began: 8 }, ..shell };
    assert_eq!(left.nearest(&[reused]), None, "another process of the same number");
}

#[test]
fn a_result_is_found_by_ancestors_of_its_process_session() {
    let (agent, shell) = (of(1, 1, 0), of(10, 10, 0));
    let mut left = ByTree::default();
    // A program of a program of a shell that an agent has started in a session of its own.
    left.leave(&[of(12, 10, 0), of(11, 10, 0), shell, agent, of(2, 2, 0)], 1, "deep");
    for reader in [&[shell, agent][..], &[of(21, 20, 0), of(20, 20, 0), agent], &[agent]] {
        assert_eq!(left.nearest(reader), Some(&"deep"), "{reader:?}");
    }
    assert_eq!(left.nearest(&[of(30, 2, 0), of(2, 2, 0)]), None, "above the one above");
    // The last one of the nearest ancestor, however deep it was left.
    left.leave(&[shell, agent], 2, "builtin");
    assert_eq!(left.nearest(&[of(13, 10, 0), shell, agent]), Some(&"builtin"));
    left.leave(&[of(15, 10, 0), of(14, 10, 0), shell, agent], 3, "deeper");
    assert_eq!(left.nearest(&[of(13, 10, 0), shell, agent]), Some(&"deeper"));
}

#[test]
fn two_terminals_of_one_program_do_not_share_results() {
    let (program, one, other) = (of(1, 1, 5), of(10, 10, 6), of(20, 20, 7));
    let mut left = ByTree::default();
    left.leave(&[one, program], 1, "one");
    assert_eq!(left.nearest(&[of(21, 20, 7), other, program]), None);
    assert_eq!(left.nearest(&[program]), Some(&"one"), "it has opened both");
    assert_eq!(left.nearest(&[of(30, 30, 0), program]), Some(&"one"), "without a terminal");
    // A result that a program leaves itself is for all processes that it starts.
    left.leave(&[program], 2, "own");
    assert_eq!(left.nearest(&[of(21, 20, 7), other, program]), Some(&"own"));
}
