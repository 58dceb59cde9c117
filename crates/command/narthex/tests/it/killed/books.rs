//! Requests and their answers, and the facts that follow from them.

use std::collections::{BTreeMap, BTreeSet};

/// The books of everything that was asked for, over all lives.
#[derive(Default)]
pub(super) struct Books {
    pub(super) asked: Vec<Asked>,
    /// Ends of sessions that were asked for; `true` if that was answered.
    session_ends: BTreeMap<String, bool>,
    numbers: usize,
}

/// A requested creation.
pub(super) struct Asked {
    pub(super) session: String,
    pub(super) agent: &'static str,
    pub(super) what: What,
    pub(super) answer: Answer,
    /// The state of its end: not asked for, asked for, or answered.
    pub(super) end: End,
    /// True if its token was shown since the daemon was killed.
    pub(super) is_checked: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// A session that begins.
    New,
    /// A creation by a parent, with its token.
    Child,
    /// A further run of a session.
    Resumed,
    /// A request that must be refused.
    Faulty,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    None,
    Refused,
    Begun { run: String, token: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    No,
    Asked,
    Done,
}

/// The runs and sessions of the store.
#[derive(Debug, Default)]
pub(super) struct Stored {
    pub(super) runs: BTreeMap<String, StoredRun>,
    pub(super) sessions: BTreeMap<String, StoredSession>,
}

#[derive(Debug)]
pub(super) struct StoredRun {
    pub(super) session: String,
    pub(super) pid: u64,
    pub(super) parent: Option<String>,
    pub(super) is_running: bool,
}

#[derive(Debug)]
pub(super) struct StoredSession {
    /// The numbers of its runs, if they were looked at.
    pub(super) pids: Option<Vec<u64>>,
    pub(super) is_running: bool,
}

impl Asked {
    pub(super) fn begun(&self) -> Option<(&str, &str)> {
        match &self.answer {
            Answer::Begun { run, token } => Some((run, token)),
            Answer::None | Answer::Refused => None,
        }
    }
}

impl Books {
    pub(super) fn creations(&self) -> usize {
        self.asked.len()
    }

    /// The id of a new session.
    pub(super) fn new_session(&mut self) -> String {
        self.numbers += 1;
        format!("ses_{:012x}", self.numbers)
    }

    /// Notes a creation that is sent, and returns its number here.
    pub(super) fn ask(&mut self, session: String, agent: &'static str, what: What) -> usize {
        let (answer, end) = (Answer::None, End::No);
        self.asked.push(Asked { session, agent, what, answer, end, is_checked: false });
        self.asked.len() - 1
    }

    /// The sessions of whatever was asked for in the life before, or of everything.
    pub(super) fn sessions(&self, is_all: bool) -> BTreeSet<String> {
        let wanted = self.asked.iter().filter(|asked| is_all || !asked.is_checked);
        wanted.map(|asked| asked.session.clone()).collect()
    }

    /// The creations whose runs live, as far as the answers show.
    pub(super) fn living(&self) -> Vec<usize> {
        let all = self.asked.iter().enumerate();
        let living =
            all.filter(|(_, asked)| asked.begun().is_some() && !self.may_have_ended(asked));
        living.map(|(index, _)| index).collect()
    }

    pub(super) fn may_have_ended(&self, asked: &Asked) -> bool {
        asked.end != End::No || self.session_ends.contains_key(&asked.session)
    }

    pub(super) fn must_have_ended(&self, asked: &Asked) -> bool {
        asked.end == End::Done || self.session_ends.get(&asked.session) == Some(&true)
    }

    pub(super) fn session_may_have_ended(&self, session: &str) -> bool {
        self.session_ends.contains_key(session)
    }

    pub(super) fn end_session(&mut self, session: &str, is_done: bool) {
        self.session_ends.insert(session.to_owned(), is_done);
    }

    pub(super) fn was_told_of(&self, run: &str) -> bool {
        self.asked.iter().any(|asked| asked.begun().is_some_and(|begun| begun.0 == run))
    }

    /// Number of requests of each kind, and with which answers.
    pub(super) fn summary(&self) -> String {
        let count =
            |test: &dyn Fn(&Asked) -> bool| self.asked.iter().filter(|one| test(one)).count();
        format!(
            "{} begun, {} refused, {} without an answer, {} children, {} resumed, {} ended, \
             {} sessions ended",
            count(&|one| one.begun().is_some()),
            count(&|one| one.answer == Answer::Refused),
            count(&|one| one.answer == Answer::None),
            count(&|one| one.what == What::Child),
            count(&|one| one.what == What::Resumed),
            count(&|one| one.end == End::Done),
            self.session_ends.len()
        )
    }

    /// Fails if the test has missed one of the situations that it is for.
    pub(super) fn tell_everything_happened(&self) {
        for what in [What::New, What::Child, What::Resumed] {
            let has = |one: &Asked| one.what == what && one.begun().is_some();
            assert!(self.asked.iter().any(has), "no request of the kind {what:?} was answered");
        }
        assert!(self.asked.iter().any(|one| one.answer == Answer::None), "nothing was broken off");
        assert!(self.asked.iter().any(|one| one.answer == Answer::Refused), "nothing was refused");
        assert!(self.asked.iter().any(|one| one.end == End::Done), "nothing was ended");
    }

    /// Every answer holds, and all that is stored is whole and was asked for.
    pub(super) fn hold_against(&self, stored: &Stored) {
        for asked in &self.asked {
            let Some((run, _)) = asked.begun() else { continue };
            let row = stored.runs.get(run).unwrap_or_else(|| panic!("{run} was told and is lost"));
            assert_eq!(row.session, asked.session, "{run}");
            let (may, must) = (self.may_have_ended(asked), self.must_have_ended(asked));
            assert!(row.is_running || may, "{run} has ended, and no request asked for its end");
            assert!(!row.is_running || !must, "{run} was ended, and lives");
        }
        let mut pids = BTreeSet::new();
        for (id, run) in &stored.runs {
            assert!(pids.insert(run.pid), "{id} has the number of another run: {run:?}");
            let session = stored.sessions.get(&run.session);
            let session = session.unwrap_or_else(|| panic!("{id} has no session: {run:?}"));
            let is_in = session.pids.as_ref().is_none_or(|pids| pids.contains(&run.pid));
            assert!(is_in, "{id} {run:?} {session:?}");
            assert!(session.is_running || !run.is_running, "{id} lives and its session does not");
            if let Some(parent) = &run.parent {
                assert!(stored.runs.contains_key(parent), "{id} has no parent {parent}");
            }
        }
        for (id, session) in &stored.sessions {
            let runs = stored.runs.iter().filter(|(_, run)| run.session == *id);
            let runs: Vec<_> = runs.map(|(run, _)| run).collect();
            assert!(!runs.is_empty(), "{id} has no run");
            let count = session.pids.as_ref().map_or(runs.len(), Vec::len);
            assert_eq!(count, runs.len(), "{id} {session:?} {runs:?}");
            let asked = self.asked.iter().filter(|asked| asked.session == *id);
            // A run without an answer may be stored whole, or not at all.
            let possible = asked.filter(|one| match one.answer {
                Answer::Begun { .. } => true,
                Answer::None => one.what != What::Faulty,
                Answer::Refused => false,
            });
            assert!(
                runs.len() <= possible.count(),
                "{id}: more runs than were asked for: {runs:?}"
            );
        }
    }
}
