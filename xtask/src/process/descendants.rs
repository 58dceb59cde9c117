//! The processes that a process has started, directly or not, as far as the system shows them.
#![expect(clippy::disallowed_types, reason = "synchronous: there is no tokio clock to pause here")]

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use super::POLL;

/// A set of processes at one moment. Empty where there is no `/proc`.
pub(crate) struct Descendants {
    processes: Vec<Process>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Process {
    id: u32,
    parent: u32,
    name: String,
    /// Distinguishes a process from a later one with the same id.
    started: u64,
    is_zombie: bool,
}

impl Descendants {
    pub(crate) fn of(root: u32) -> Self {
        Self { processes: below(root, &all()) }
    }

    pub(crate) fn ids(&self) -> Vec<u32> {
        self.processes.iter().map(|process| process.id).collect()
    }

    /// The processes that still run after a while. A killed process needs a moment to be gone.
    pub(crate) fn left_after(&self, within: Duration) -> Vec<String> {
        let deadline = Instant::now() + within;
        loop {
            let alive = self.alive();
            if alive.is_empty() || Instant::now() >= deadline {
                return alive;
            }
            thread::park_timeout(POLL);
        }
    }

    fn alive(&self) -> Vec<String> {
        let now: BTreeMap<u32, Process> = all().into_iter().map(|p| (p.id, p)).collect();
        let is_alive = |process: &&Process| {
            let found = now.get(&process.id);
            found.is_some_and(|found| found.started == process.started && !found.is_zombie)
        };
        let alive = self.processes.iter().filter(is_alive);
        alive.map(|process| format!("{} ({})", process.name, process.id)).collect()
    }
}

fn below(root: u32, processes: &[Process]) -> Vec<Process> {
    let mut found: Vec<Process> = Vec::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        for process in processes.iter().filter(|process| process.parent == parent) {
            parents.push(process.id);
            found.push(process.clone());
        }
    }
    found
}

fn all() -> Vec<Process> {
    let Ok(entries) = fs_err::read_dir("/proc") else { return Vec::new() };
    let read = |entry: fs_err::DirEntry| {
        // Processes come and go while this looks; one that is gone has no file.
        parse(&fs_err::read_to_string(entry.path().join("stat")).ok()?)
    };
    entries.filter_map(|entry| read(entry.ok()?)).collect()
}

/// Reads `/proc/ID/stat`, in which the name may contain blanks and parentheses.
fn parse(stat: &str) -> Option<Process> {
    let (id, rest) = stat.split_once(" (")?;
    let (name, rest) = rest.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split(' ').collect();
    Some(Process {
        id: id.parse().ok()?,
        parent: fields.get(1)?.parse().ok()?,
        name: name.to_owned(),
        started: fields.get(19)?.parse().ok()?,
        is_zombie: *fields.first()? == "Z",
    })
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::Duration;

    use super::super::Service;
    use super::{Descendants, below, parse};

    fn stat(id: u32, name: &str, parent: u32) -> String {
        format!("{id} ({name}) S {parent} 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0 0")
    }

    #[test]
    fn names_of_processes_may_contain_any_character() {
        let process = parse(&stat(7, "a) b (c", 3)).unwrap();
        assert_eq!((process.id, process.parent, process.started), (7, 3, 4711));
        assert_eq!(process.name, "a) b (c");
        assert!(parse("nonsense").is_none());
    }

    #[test]
    fn grandchildren_are_descendants_and_siblings_are_not() {
        let all: Vec<_> = [(2, 1), (3, 2), (4, 3), (5, 1)]
            .map(|(id, parent)| parse(&stat(id, "p", parent)).unwrap())
            .into();
        let found: Vec<u32> = below(2, &all).iter().map(|p| p.id).collect();
        assert_eq!(found, [3, 4]);
    }

    #[test]
    fn a_descendant_is_listed_until_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 600 & echo started; wait"]);
        let service = Service::start("it", &mut command, &dir.path().join("log")).unwrap();
        let soon = Duration::from_secs(60);
        service.wait_for("start", soon, |line| (line == "started").then_some(())).unwrap();
        let descendants = Descendants::of(service.pid());
        let left = descendants.left_after(Duration::ZERO);
        assert_eq!(left.len(), 1, "{left:?}");
        drop(service);
        assert_eq!(descendants.left_after(soon), Vec::<String>::new());
    }
}
