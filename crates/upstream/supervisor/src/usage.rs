//! Memory and processor use of children, with all processes that they started.

use std::{
    collections::{BTreeSet, HashMap},
    io,
    time::Duration,
};

/// The use by a leader and its tree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TreeUse {
    /// Number of processes.
    pub processes: usize,
    /// Resident memory in bytes. Shared pages are counted for each process.
    pub memory_bytes: u64,
    /// Processor time of the living processes.
    pub computed: Duration,
}

/// The current use by the trees of these leaders.
///
/// A tree is the leader's process group with all its descendants. A leader that does not run has no
/// entry. Reads all of `/proc`: call this on a thread that may block.
///
/// # Errors
/// When `/proc` cannot be read, as on systems other than Linux.
#[cfg(target_os = "linux")]
pub fn trees(leaders: &BTreeSet<u32>) -> io::Result<HashMap<u32, TreeUse>> {
    if leaders.is_empty() {
        return Ok(HashMap::new());
    }
    let all = crate::proc::processes()?;
    let parents: HashMap<_, _> = all.iter().map(|one| (one.id, (one.parent, one.group))).collect();
    let page = u64::try_from(rustix::param::page_size()).unwrap_or(4096);
    let ticks = rustix::param::clock_ticks_per_second().max(1);
    let mut found: HashMap<u32, TreeUse> = HashMap::new();
    for one in all.iter().filter(|one| !one.is_dead) {
        let Some(leader) = leader_of(one.id, &parents, leaders) else { continue };
        let tree = found.entry(leader).or_default();
        tree.processes += 1;
        tree.memory_bytes += one.resident.saturating_mul(page);
        let millis = one.computed.saturating_mul(1000) / ticks;
        tree.computed += Duration::from_millis(millis);
    }
    Ok(found)
}

/// Fails: other systems than Linux do not report the use.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn trees(_leaders: &BTreeSet<u32>) -> io::Result<HashMap<u32, TreeUse>> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "this is known only on Linux"))
}

/// The leader of a process's tree; `None` if it is in no tree.
#[cfg(target_os = "linux")]
fn leader_of(id: i32, parents: &HashMap<i32, (i32, i32)>, leaders: &BTreeSet<u32>) -> Option<u32> {
    let is_leader = |id: i32| u32::try_from(id).ok().filter(|id| leaders.contains(id));
    let mut at = id;
    // Data that is read while processes come and go may lead in a circle.
    for _ in 0..parents.len() {
        let (parent, group) = *parents.get(&at)?;
        if let Some(leader) = is_leader(at).or_else(|| is_leader(group)) {
            return Some(leader);
        }
        at = parent;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_tree_has_its_group_and_all_descendants() {
        // 10 leads a group, 11 is in it, 12 has a group of its own below, 20 is a stranger.
        let parents = HashMap::from([
            (10, (1, 10)),
            (11, (10, 10)),
            (12, (11, 12)),
            (13, (1, 10)),
            (20, (1, 20)),
            (30, (31, 30)),
            (31, (30, 31)),
        ]);
        let of = |id| leader_of(id, &parents, &BTreeSet::from([10]));
        for id in [10, 11, 12, 13] {
            assert_eq!(of(id), Some(10), "{id}");
        }
        for id in [1, 20, 30, 99] {
            assert_eq!(of(id), None, "{id}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_uses_memory() {
        let own = std::process::id();
        let group = rustix::process::getpgrp().as_raw_nonzero().get();
        let leaders = BTreeSet::from([own, u32::try_from(group).unwrap(), u32::MAX]);
        let found = trees(&leaders).unwrap();
        assert!(!found.contains_key(&u32::MAX));
        let used: u64 = found.values().map(|tree| tree.memory_bytes).sum();
        assert!(used > 100_000, "{found:?}");
        assert_eq!(trees(&BTreeSet::new()).unwrap(), HashMap::new());
    }

    #[cfg(not(target_os = "linux"))]
    #[test]
    fn usage_is_unknown_on_other_systems() {
        assert!(trees(&BTreeSet::new()).is_err());
    }
}
