//! Callers: processes of the system, as `/proc` describes them.

use std::{collections::HashMap, io::Read};

use fs_err::File;

/// A process, and when it began: its number alone is given to another one some day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Identity {
    pid: u32,
    began: u64,
}

/// A process as it was when it asked for something.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller {
    identity: Identity,
    session: u32,
    /// The number of its terminal; 0 without one.
    terminal: u32,
}

impl Caller {
    /// The process's number.
    pub(crate) fn pid(&self) -> u32 {
        self.identity.pid
    }
}

/// Most generations of a tree of processes that are examined.
const GENERATIONS: usize = 64;

/// The usual size of a file of a process, and the most bytes read of one.
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
/// reports 0 for each, so that they are one.
const UNSEEN: Caller = Caller { identity: Identity { pid: 0, began: 0 }, session: 0, terminal: 0 };

/// The first process. A process that loses its parent becomes its child, and is no relative for
/// that.
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
        let identity = Identity { pid: next, began: stat.began };
        lineage.push(Caller { identity, session: stat.session, terminal: stat.terminal });
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

/// The contents of `/proc/PID/stat`.
#[derive(Debug)]
struct Stat {
    parent: u32,
    session: u32,
    terminal: u32,
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
            // For a process of another namespace the number is -1 or 0.
            session: small(3).unwrap_or(0),
            terminal: small(4).unwrap_or(0),
            flags: small(6)?,
            began: number(19)?,
            exit_code: small(49).unwrap_or(0),
        })
    }

    /// True if the process may have become the parent only when the child lost its own. Such a
    /// process is a child of the first process, in a session of its own, and the child is in
    /// another session.
    fn takes_in(&self, child: &Self) -> bool {
        self.parent == INIT && self.session != INIT && self.session != child.session
    }

    /// True if the process is exiting, and the kernel closes its files.
    fn is_exiting(&self) -> bool {
        /// `PF_EXITING` of the kernel.
        const EXITING: u32 = 0x4;
        self.flags & EXITING != 0
    }

    /// True if a signal has ended the process, and the kernel now closes its files.
    fn is_killed(&self) -> bool {
        self.is_exiting() && self.exit_code & 0x7f != 0
    }
}

fn status(thread: u32) -> Option<String> {
    of_proc(thread, "status")
}

/// Reads a file of a thread. Its size is not known before, and as a call may wait for it, it is
/// read at once. Names of programs are any bytes.
fn of_proc(thread: u32, file: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(PROC_BYTES);
    let file = File::open(format!("/proc/{thread}/{file}")).ok()?;
    file.take(PROC_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

/// True if a thread that waits for us has been sent a signal that should end it: the thread cannot
/// act on the signal before we answer. Also true for a thread that is gone, or that a signal has
/// ended. False for a thread that cannot be seen from here.
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

/// True if a thread is exiting, by itself or by a signal. No program reads the result of its call
/// any more, the kernel delivers it no signal, and does not show that one was sent. False for a
/// thread that cannot be seen from here.
pub(crate) fn is_exiting(thread: u32) -> bool {
    thread != 0 && Stat::of(thread).is_some_and(|stat| stat.is_exiting())
}

/// The results that processes left for others of their tree, each under the process that left it.
#[derive(Debug)]
pub(crate) struct ByTree<T> {
    left: HashMap<Identity, Left<T>>,
}

#[derive(Debug)]
struct Left<T> {
    /// The process that left it, the processes above that in its session, and the next one above.
    tree: Vec<Identity>,
    /// The terminal of the process that left it.
    terminal: u32,
    what: T,
    at: u64,
}

impl<T> Left<T> {
    /// True if an ancestor shares the result with a reader `below` generations down. A result left
    /// in another terminal is only for the process that opened that terminal, and for the process
    /// that left the result.
    fn is_met_at(&self, ancestor: &Caller, (below, reader): (usize, &Caller)) -> bool {
        let is_apart = ![self.terminal, reader.terminal].contains(&0)
            && self.terminal != reader.terminal
            && below > 0
            && self.tree.first() != Some(&ancestor.identity);
        !is_apart && self.tree.contains(&ancestor.identity)
    }
}

impl<T> Default for ByTree<T> {
    fn default() -> Self {
        Self { left: HashMap::new() }
    }
}

impl<T> ByTree<T> {
    /// Leaves something in place of what the process left before. `at` orders what is left.
    pub(crate) fn leave(&mut self, lineage: &[Caller], at: u64, what: T) {
        let Some(own) = lineage.first() else { return };
        let in_session = lineage.iter().take_while(|above| above.session == own.session).count();
        let tree = lineage.iter().take(in_session + 1).map(|above| above.identity).collect();
        self.left.insert(own.identity, Left { tree, terminal: own.terminal, what, at });
    }

    /// Returns the result that is nearest to a caller: the last one that the caller or a process
    /// below it left, then the same for the caller's parent, and so on upwards. All processes
    /// between the one that left it and the ancestor are of one session.
    pub(crate) fn nearest(&self, lineage: &[Caller]) -> Option<&T> {
        let reader = lineage.first()?;
        lineage.iter().enumerate().find_map(|(below, ancestor)| {
            let is_met = |left: &&Left<T>| left.is_met_at(ancestor, (below, reader));
            let last = self.left.values().filter(is_met).max_by_key(|left| left.at);
            last.map(|left| &left.what)
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
mod tests;
