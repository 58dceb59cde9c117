//! Who asks: processes of the system, by what `/proc` says of them.

use std::collections::HashMap;

/// A process, and when it began: its number alone is given to another one some day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Caller {
    pub(crate) pid: u32,
    began: u64,
}

/// How far up a tree of processes is looked.
const GENERATIONS: usize = 64;

/// The signals that end a call which waits: hang-up, interrupt, quit, kill, terminate.
const ENDING: u64 = bit(1) | bit(2) | bit(3) | bit(9) | bit(15);

const fn bit(signal: u32) -> u64 {
    1 << (signal - 1)
}

/// A caller and the processes above it, itself first. Empty if it is gone.
pub(crate) fn lineage(thread: u32) -> Vec<Caller> {
    let mut lineage = Vec::new();
    let mut next = process_of(thread);
    while let Some(pid) = next.filter(|pid| *pid != 0) {
        let Some((caller, parent)) = stat(pid) else { break };
        lineage.push(caller);
        if lineage.len() >= GENERATIONS {
            break;
        }
        next = Some(parent);
    }
    lineage
}

/// The process of a thread.
fn process_of(thread: u32) -> Option<u32> {
    field(&status(thread)?, "Tgid:")?.parse().ok()
}

fn stat(pid: u32) -> Option<(Caller, u32)> {
    let stat = fs_err::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses and may have any characters.
    let (_, rest) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split(' ').collect();
    let parent = fields.get(1)?.parse().ok()?;
    let began = fields.get(19)?.parse().ok()?;
    Some((Caller { pid, began }, parent))
}

fn status(thread: u32) -> Option<String> {
    fs_err::read_to_string(format!("/proc/{thread}/status")).ok()
}

fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

/// Whether a thread that waits for us has been sent a signal that should end it: it cannot act on
/// it before we answer. One that is gone is, too.
pub(crate) fn is_interrupted(thread: u32) -> bool {
    let Some(status) = status(thread) else { return true };
    let mask = |name| u64::from_str_radix(field(&status, name).unwrap_or("0"), 16).unwrap_or(0);
    let pending = mask("SigPnd:") | mask("ShdPnd:");
    pending & !mask("SigBlk:") & ENDING != 0
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
