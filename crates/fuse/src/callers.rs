//! Who asks: processes of the system, by what `/proc` says of them.

use std::{collections::HashMap, io::Read};

use fs_err::File;

/// A process, and when it began: its number alone is given to another one some day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Caller {
    pub(crate) pid: u32,
    began: u64,
}

/// How far up a tree of processes is looked.
const GENERATIONS: usize = 64;

/// What a file of a process most often fits into, and the most that is read of one.
const PROC_BYTES: usize = 4096;
const PROC_BYTES_MAX: u64 = 1 << 20;

/// The signals that end a call which waits: hang-up, interrupt, quit, kill, terminate; and those by
/// which a program is ended that has failed: illegal instruction, trap, abort, bus, floating point,
/// segment, processor time, file size, bad system call.
const ENDING: u64 = bit(1)
    | bit(2)
    | bit(3)
    | bit(9)
    | bit(15)
    | bit(4)
    | bit(5)
    | bit(6)
    | bit(7)
    | bit(8)
    | bit(11)
    | bit(24)
    | bit(25)
    | bit(31);

const fn bit(signal: u32) -> u64 {
    1 << (signal - 1)
}

/// All callers whose processes cannot be seen from here, as those of another container. The kernel
/// says 0 for each, so that they are one.
const UNSEEN: Caller = Caller { pid: 0, began: 0 };

/// The first process. Whoever loses its parent becomes its child, and is no relative for that.
const INIT: u32 = 1;

/// A caller and the processes above it, itself first. Empty if it is gone.
pub(crate) fn lineage(thread: u32) -> Vec<Caller> {
    if thread == 0 {
        return vec![UNSEEN];
    }
    process_of(thread).map_or_else(Vec::new, |pid| lineage_of(pid, Stat::of))
}

/// A process and those above it.
fn lineage_of(process: u32, stat_of: impl Fn(u32) -> Option<Stat>) -> Vec<Caller> {
    let mut lineage: Vec<Caller> = Vec::new();
    let mut child: Option<Stat> = None;
    let mut next = process;
    while lineage.len() < GENERATIONS
        && let Some(stat) = stat_of(next)
    {
        // A manager of the user takes in who has lost its parent, as the first process does.
        let is_taken_in = child.is_some_and(|child| stat.takes_in(&child));
        if is_taken_in {
            break;
        }
        lineage.push(Caller { pid: next, began: stat.began });
        // A shell that is the first process, as in containers, has its children in its session.
        let is_child = stat.parent != INIT || stat.session == INIT;
        if !is_child || stat.parent == 0 {
            break;
        }
        next = stat.parent;
        child = Some(stat);
    }
    lineage
}

/// The process of a thread.
pub(crate) fn process_of(thread: u32) -> Option<u32> {
    field(&status(thread)?, "Tgid:")?.parse().ok()
}

/// What `/proc/PID/stat` says.
#[derive(Debug)]
struct Stat {
    parent: u32,
    session: u32,
    flags: u32,
    began: u64,
    exit_code: u32,
}

impl Stat {
    fn of(pid: u32) -> Option<Self> {
        Self::parse(&of_proc(pid, "stat")?)
    }

    fn parse(stat: &str) -> Option<Self> {
        // The name is in parentheses and may have any characters.
        let (_, rest) = stat.trim_end().rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split(' ').collect();
        let number = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok());
        let small = |at| number(at).and_then(|number| u32::try_from(number).ok());
        Some(Self {
            parent: small(1)?,
            // Of a process of another namespace it is -1 or 0.
            session: small(3).unwrap_or(0),
            flags: small(6)?,
            began: number(19)?,
            exit_code: small(49).unwrap_or(0),
        })
    }

    /// Whether it may be the parent of a process only since that has lost its own: it is a child of
    /// the first process, in a session of its own, and the process is in another one.
    fn takes_in(&self, child: &Self) -> bool {
        self.parent == INIT && self.session != INIT && self.session != child.session
    }

    /// Whether it ends, and the kernel closes what it had open.
    fn is_exiting(&self) -> bool {
        /// `PF_EXITING` of the kernel.
        const EXITING: u32 = 0x4;
        self.flags & EXITING != 0
    }

    /// Whether a signal has ended it, and the kernel now closes what it had open.
    fn is_killed(&self) -> bool {
        self.is_exiting() && self.exit_code & 0x7f != 0
    }
}

fn status(thread: u32) -> Option<String> {
    of_proc(thread, "status")
}

/// What a file of a thread says. Its size is not known before, and as it is asked for while a call
/// waits, it is read at once. Names of programs are any bytes.
fn of_proc(thread: u32, file: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(PROC_BYTES);
    let file = File::open(format!("/proc/{thread}/{file}")).ok()?;
    file.take(PROC_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

/// Whether a thread that waits for us has been sent a signal that should end it: it cannot act on
/// it before we answer. One that is gone, or that a signal has ended, is, too. Of one that cannot
/// be seen from here nothing is known.
pub(crate) fn is_interrupted(thread: u32) -> bool {
    if thread == 0 {
        return false;
    }
    let Some(status) = status(thread) else { return true };
    let mask = |name| u64::from_str_radix(field(&status, name).unwrap_or("0"), 16).unwrap_or(0);
    let pending = mask("SigPnd:") | mask("ShdPnd:");
    let is_pending = pending & !mask("SigBlk:") & ENDING != 0;
    is_pending || Stat::of(thread).is_some_and(|stat| stat.is_killed())
}

/// Whether a thread ends, by itself or by a signal: what it waits for tells nobody anything, and
/// the kernel has it act on no signal any more, nor says that one was sent. Of one that cannot be
/// seen from here nothing is known.
pub(crate) fn is_exiting(thread: u32) -> bool {
    thread != 0 && Stat::of(thread).is_some_and(|stat| stat.is_exiting())
}

/// What processes left for others of their tree, each under who left it.
#[derive(Debug)]
pub(crate) struct ByTree<T> {
    left: HashMap<Caller, Left<T>>,
}

#[derive(Debug)]
struct Left<T> {
    parent: Option<Caller>,
    what: T,
    at: u64,
}

impl<T> Default for ByTree<T> {
    fn default() -> Self {
        Self { left: HashMap::new() }
    }
}

impl<T> ByTree<T> {
    /// Leaves something in place of what the process left before. `at` orders what is left.
    pub(crate) fn leave(&mut self, lineage: &[Caller], at: u64, what: T) {
        if let Some(own) = lineage.first() {
            let parent = lineage.get(1).copied();
            self.left.insert(*own, Left { parent, what, at });
        }
    }

    /// What is nearest to a caller: what it left itself, then what the process above it left, or a
    /// child of that, the last one; and so on upwards.
    pub(crate) fn nearest(&self, lineage: &[Caller]) -> Option<&T> {
        lineage.iter().find_map(|ancestor| {
            let own = self.left.get(ancestor);
            let of_children = self.left.values().filter(|left| left.parent == Some(*ancestor));
            let found = own.into_iter().chain(of_children).max_by_key(|left| left.at);
            found.map(|left| &left.what)
        })
    }

    /// Looks at all that was left, in no order.
    pub(crate) fn each(&self, look: impl FnMut(&T)) {
        self.left.values().map(|left| &left.what).for_each(look);
    }

    /// Forgets all that is not to be kept.
    pub(crate) fn retain(&mut self, is_kept: impl Fn(&T) -> bool) {
        self.left.retain(|_, left| is_kept(&left.what));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.left.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(pid: u32) -> Caller {
        Caller { pid, began: 7 }
    }

    #[test]
    fn our_own_lineage_begins_with_us_and_ends_at_the_first_process() {
        let own = std::process::id();
        let lineage = lineage(own);
        assert_eq!(lineage.first().map(|caller| caller.pid), Some(own));
        assert!(lineage.len() > 1, "{lineage:?}");
        assert!(!is_interrupted(own));
        assert!(is_interrupted(u32::MAX), "it is gone");
        assert!(!is_interrupted(0), "it cannot be seen");
        assert_eq!(super::lineage(0), [UNSEEN], "what it leaves is found by others like it");
    }

    #[test]
    fn processes_that_a_manager_has_taken_in_are_no_relatives() {
        let lineage = |process| {
            let stat =
                |parent, session| Some(Stat { parent, session, flags: 0, began: 7, exit_code: 0 });
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
            lineage.into_iter().map(|caller| caller.pid).collect::<Vec<_>>()
        };
        assert_eq!(lineage(8), [8, 6], "its shell, and no further");
        assert_eq!(lineage(7), [7]);
        assert_eq!(lineage(21), [21, 20]);
        assert_eq!(lineage(31), [31, 30, 1]);
        assert!(lineage(99).is_empty());
    }

    #[test]
    fn a_program_whose_name_is_no_text_is_seen_all_the_same() {
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
        assert_eq!(lineage(pid).get(1).map(|above| above.pid), Some(std::process::id()));
        drop(child.stdin.take());
        assert!(child.wait().expect("it ends").success());
    }

    #[test]
    fn a_process_that_a_signal_has_ended_is_known_from_one_that_ended_by_itself() {
        let stat = |flags: u32, exit_code: u32| {
            let until_session = "7 (a ) b) D 1 7 3 0 -1";
            let zeros = "0 ".repeat(12);
            let text =
                format!("{until_session} {flags} {zeros}99 {}{exit_code}\n", "0 ".repeat(29));
            Stat::parse(&text).expect("it is one")
        };
        let running = stat(0x40_0000, 0);
        assert_eq!((running.parent, running.session, running.began), (1, 3, 99));
        assert!(!running.is_killed() && !running.is_exiting());
        assert!(stat(0x4, 0).is_exiting());
        assert!(!stat(0x4, 0).is_killed(), "it has ended by itself");
        assert!(!stat(0x4, 1 << 8).is_killed(), "with a status");
        assert!(stat(0x4, 9).is_killed());
        assert!(stat(0x4, 2 | 0x80).is_killed(), "and left a core");
    }

    #[test]
    fn a_result_is_found_by_the_tree_that_it_was_left_in() {
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
        // The last one of a shell counts, whoever of both wrote it.
        left.leave(&[caller(13), shell, agent], 3, "later");
        assert_eq!(left.nearest(&[caller(14), shell, agent]), Some(&"later"));
        // A stranger finds nothing.
        assert_eq!(left.nearest(&[caller(30), caller(31)]), None);
        assert_eq!(left.nearest(&[]), None);
        let reused = Caller { pid: 10, began: 8 };
        assert_eq!(left.nearest(&[reused]), None, "another process of the same number");
    }
}
