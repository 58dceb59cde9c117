//! Reads processes from `/proc` (Linux).

use std::io;

use rustix::process::Pid;

/// The state of one process in its `stat` file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) id: i32,
    pub(crate) is_dead: bool,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    pub(crate) session: i32,
    /// Start time in clock ticks since boot: with the id, this identifies a process for ever.
    pub(crate) started: u64,
    /// Its computing time in clock ticks, without that of the children that it has reaped.
    pub(crate) computed: u64,
    /// Number of its pages in memory.
    pub(crate) resident: u64,
}

/// All processes that can be seen now.
pub(crate) fn processes() -> io::Result<Vec<Stat>> {
    let ids = fs_err::read_dir("/proc")?.flatten().filter_map(|entry| {
        let name = entry.file_name();
        name.to_str().and_then(|name| name.parse().ok())
    });
    Ok(ids.filter_map(stat).collect())
}

/// The state of one process; `None` if no process has this id.
pub(crate) fn stat(id: i32) -> Option<Stat> {
    let text = fs_err::read(format!("/proc/{id}/stat")).ok()?;
    parse(id, &String::from_utf8_lossy(&text))
}

/// The id for signals. Ids that mean other users' or all processes (0, negative) are none.
pub(crate) fn pid(id: i32) -> Option<Pid> {
    (id > 0).then(|| Pid::from_raw(id)).flatten()
}

/// Reads `id (name) state parent group session …`. The name may hold anything, so the fields are
/// counted from its last parenthesis.
fn parse(id: i32, text: &str) -> Option<Stat> {
    let (_, fields) = text.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().take(22).collect();
    let number = |at: usize| fields.get(at)?.parse().ok();
    let ticks = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some(Stat {
        id,
        is_dead: matches!(fields.first(), Some(&("Z" | "X"))),
        parent: number(1)?,
        group: number(2)?,
        session: number(3)?,
        started: fields.get(19)?.parse().ok()?,
        computed: ticks(11)?.saturating_add(ticks(12)?),
        resident: ticks(21)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_counted_after_the_name() {
        let rest = "41 42 43 0 -1 0 1 2 3 4 5 6 7 8 9 10 11 12 777 0 99";
        let found = parse(7, &format!("7 (a) b) S {rest}")).unwrap();
        let expected = Stat {
            id: 7,
            is_dead: false,
            parent: 41,
            group: 42,
            session: 43,
            started: 777,
            computed: 5 + 6,
            resident: 99,
        };
        assert_eq!(found, expected);
        assert!(parse(7, &format!("7 (a) Z {rest}")).unwrap().is_dead);
        assert_eq!(parse(7, "7 (a) S 1 2"), None);
    }

    #[test]
    fn the_list_of_processes_contains_this_process() {
        let own = i32::try_from(std::process::id()).unwrap();
        let all = processes().unwrap();
        assert_eq!(all.iter().find(|found| found.id == own).copied(), stat(own));
    }
}
