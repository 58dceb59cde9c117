//! Who asks: processes of the system, by what `/proc` says of them.

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
    /// Its number.
    pub(crate) fn pid(&self) -> u32 {
        self.identity.pid
    }
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
const UNSEEN: Caller = Caller { identity: Identity { pid: 0, began: 0 }, session: 0, terminal: 0 };

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

/// What `/proc/PID/stat` says.
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
            // Of a process of another namespace it is -1 or 0.
            session: small(3).unwrap_or(0),
            terminal: small(4).unwrap_or(0),
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
    left: HashMap<Identity, Left<T>>,
}

#[derive(Debug)]
struct Left<T> {
    /// Who left it, those above it in its session, and the one above that.
    tree: Vec<Identity>,
    /// The terminal of who left it.
    terminal: u32,
    what: T,
    at: u64,
}

impl<T> Left<T> {
    /// Whether an ancestor has it in common with a reader so many processes below. What was left in
    /// another terminal is for whoever has opened that, and for whoever has left it.
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

    /// What is nearest to a caller: the last one of what it left itself or what was left below it,
    /// then the same of the process above it, and so on upwards. What stands between who left it
    /// and the ancestor is of one session.
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
