//! The cases that are measured: eras, kinds of work, numbers of connections, ways to the server.

use std::fmt;

use anyhow::{Result, bail};
use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) enum Era {
    Legacy,
    Modern,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) enum Work {
    /// A small call of `echo`.
    Echo,
    /// A result of 100 KB.
    Blob100k,
    /// A result of 5 MB.
    Blob5m,
    /// A call with ten messages of progress.
    Progress,
    /// The whole list of tools.
    List,
}

/// The way of a call to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) enum Way {
    Direct,
    Nginx,
    /// narthex's endpoint of one server.
    Transparent,
    /// narthex's endpoint of all servers.
    Aggregated,
}

/// The measurements besides calls over HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extra {
    /// Calls to a server over stdio.
    Stdio,
    /// A registry with many rows.
    Registry,
    /// Decisions of policy, with grants and rules.
    Decisions,
    /// Sessions that do nothing.
    Idle,
    /// Runs: their creation, their memory, and calls beside many of them.
    Runs,
    /// Servers as files.
    Mounts,
    /// Pages of the console of a large site.
    Console,
}

impl Extra {
    const ALL: [Self; 7] = [
        Self::Stdio,
        Self::Registry,
        Self::Decisions,
        Self::Idle,
        Self::Runs,
        Self::Mounts,
        Self::Console,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Registry => "registry",
            Self::Decisions => "decisions",
            Self::Idle => "idle",
            Self::Runs => "runs",
            Self::Mounts => "mounts",
            Self::Console => "console",
        }
    }
}

/// Tools of each server.
pub(super) const TOOLS: usize = 100;

impl Era {
    pub(super) const ALL: [Self; 2] = [Self::Legacy, Self::Modern];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }
}

impl Work {
    pub(super) const ALL: [Self; 5] =
        [Self::Echo, Self::List, Self::Progress, Self::Blob100k, Self::Blob5m];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Echo => "echo",
            Self::Blob100k => "100k",
            Self::Blob5m => "5m",
            Self::Progress => "progress",
            Self::List => "list",
        }
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Echo => "Small call (`echo`)",
            Self::Blob100k => "Result of 100 KB",
            Self::Blob5m => "Result of 5 MB",
            Self::Progress => "Call with 10 progress messages",
            Self::List => "Cached list of 200 tools",
        }
    }

    /// The load generator's name for the work, with its size.
    pub(super) fn for_load(self) -> (&'static str, usize) {
        match self {
            Self::Echo => ("echo", 0),
            Self::Blob100k => ("blob", 100_000),
            Self::Blob5m => ("blob", 5_000_000),
            Self::Progress => ("progress", 10),
            Self::List => ("list", 2 * TOOLS),
        }
    }

    fn connections(self) -> &'static [usize] {
        match self {
            Self::Echo => &[1, 8, 64],
            Self::List => &[8, 64],
            Self::Blob100k | Self::Progress => &[8],
            Self::Blob5m => &[1, 8],
        }
    }
}

impl Way {
    pub(super) const ALL: [Self; 4] =
        [Self::Direct, Self::Nginx, Self::Transparent, Self::Aggregated];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Nginx => "nginx",
            Self::Transparent => "transparent",
            Self::Aggregated => "aggregated",
        }
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Nginx => "nginx",
            Self::Transparent => "narthex, one server",
            Self::Aggregated => "narthex, all servers",
        }
    }

    pub(super) fn is_narthex(self) -> bool {
        matches!(self, Self::Transparent | Self::Aggregated)
    }
}

/// A case that is measured by all ways in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Case {
    pub(super) era: Era,
    pub(super) work: Work,
    pub(super) connections: usize,
}

impl Case {
    /// All cases of an era, those that use much memory last.
    pub(super) fn all(era: Era) -> Vec<Self> {
        let of = |work: Work| {
            let connections = work.connections().iter();
            connections.map(move |connections| Self { era, work, connections: *connections })
        };
        Work::ALL.into_iter().flat_map(of).collect()
    }

    pub(super) fn ways(&self) -> Vec<Way> {
        match self.work {
            Work::List => vec![Way::Aggregated],
            _ => Way::ALL.to_vec(),
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:<8} {:>2}", self.era.name(), self.work.name(), self.connections)
    }
}

/// The selection by words. Words of one kind are alternatives. If no word is of a kind, all of that
/// kind is selected.
#[derive(Debug, Default)]
pub(super) struct Selection {
    eras: Vec<Era>,
    works: Vec<Work>,
    connections: Vec<usize>,
    ways: Vec<Way>,
    extras: Vec<Extra>,
}

impl Selection {
    pub(super) fn read(words: &[String]) -> Result<Self> {
        let mut selection = Self::default();
        for word in words {
            if let Some(era) = Era::ALL.into_iter().find(|era| era.name() == word) {
                selection.eras.push(era);
            } else if let Some(work) = Work::ALL.into_iter().find(|work| work.name() == word) {
                selection.works.push(work);
            } else if let Some(way) = Way::ALL.into_iter().find(|way| way.name() == word) {
                selection.ways.push(way);
            } else if let Ok(connections) = word.parse() {
                selection.connections.push(connections);
            } else if let Some(extra) = Extra::ALL.into_iter().find(|extra| extra.name() == word) {
                selection.extras.push(extra);
            } else {
                bail!(
                    "--only {word}: there is legacy, modern; echo, list, progress, 100k, 5m; \
                     1, 8, 64; direct, nginx, transparent, aggregated; stdio, registry, decisions, \
                     idle, runs, mounts, console"
                );
            }
        }
        Ok(selection)
    }

    pub(super) fn has_era(&self, era: Era) -> bool {
        !self.is_only_extra() && self.names_era(era)
    }

    pub(super) fn has_case(&self, case: &Case) -> bool {
        !self.is_only_extra()
            && self.names_era(case.era)
            && is_chosen(&self.works, &case.work)
            && self.names_connections(case.connections)
    }

    /// True if an era is among the named ones, or none was named.
    pub(super) fn names_era(&self, era: Era) -> bool {
        is_chosen(&self.eras, &era)
    }

    /// True if a number of connections is among the named ones, or none was named.
    pub(super) fn names_connections(&self, connections: usize) -> bool {
        is_chosen(&self.connections, &connections)
    }

    /// True if a selected measurement needs the programs; the others are examples of crates.
    pub(super) fn needs_programs(&self) -> bool {
        let is_example = |extra| matches!(extra, &Extra::Registry | &Extra::Decisions);
        !self.is_only_extra() || !self.extras.iter().all(is_example)
    }

    fn is_only_extra(&self) -> bool {
        !self.extras.is_empty() && self.works.is_empty()
    }

    pub(super) fn has_way(&self, way: Way) -> bool {
        is_chosen(&self.ways, &way)
    }

    /// True if the measurement `extra` is chosen, or if no measurement is.
    pub(super) fn has_extra(&self, extra: Extra) -> bool {
        let Self { eras, works, connections, ways, extras } = self;
        let is_all = works.is_empty() && connections.is_empty() && ways.is_empty();
        extras.contains(&extra) || (is_all && eras.is_empty() && extras.is_empty())
    }
}

fn is_chosen<T: PartialEq>(chosen: &[T], one: &T) -> bool {
    chosen.is_empty() || chosen.contains(one)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn select(words: &[&str]) -> Selection {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        Selection::read(&words).unwrap()
    }

    #[test]
    fn words_of_a_kind_are_alternatives() {
        let selection = select(&["echo", "5m", "8", "nginx"]);
        let chosen: Vec<_> =
            Case::all(Era::Modern).into_iter().filter(|case| selection.has_case(case)).collect();
        let chosen: Vec<_> = chosen.iter().map(|case| (case.work, case.connections)).collect();
        assert_eq!(chosen, [(Work::Echo, 8), (Work::Blob5m, 8)]);
        assert!(selection.has_way(Way::Nginx) && !selection.has_way(Way::Direct));
        assert!(selection.has_era(Era::Legacy) && !selection.has_extra(Extra::Idle));
    }

    #[test]
    fn examples_of_crates_need_no_programs() {
        for (words, expected) in [
            (&["decisions"][..], false),
            (&["registry", "decisions"], false),
            (&["decisions", "runs"], true),
            (&["echo", "decisions"], true),
            (&["modern"], true),
            (&[], true),
        ] {
            assert_eq!(select(words).needs_programs(), expected, "{words:?}");
        }
    }

    #[test]
    fn selecting_an_extra_selects_no_other_case() {
        for extra in Extra::ALL {
            let selection = select(&[extra.name(), "8"]);
            let has: Vec<_> =
                Extra::ALL.into_iter().filter(|one| selection.has_extra(*one)).collect();
            assert_eq!(has, [extra]);
            assert!(!Case::all(Era::Legacy).iter().any(|case| selection.has_case(case)));
            assert!(selection.names_connections(8) && !selection.names_connections(64));
            assert!(select(&[]).has_extra(extra) && !select(&["modern"]).has_extra(extra));
        }
        assert!(Selection::read(&["nonsense".to_owned()]).is_err());
    }
}
