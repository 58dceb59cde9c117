//! The executors in a daemon's settings. Only the writer of that file decides which programs are
//! started: no agent, no run and no workspace does.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::{Path, PathBuf},
    time::Duration,
};

use narthex_model::{ExecutorName, KnownExecutors, WorkspaceId};
use toml::{Table, Value};

/// Most runs at a time of an executor without a setting.
const AT_ONCE: usize = 8;
/// Time in which a program must end after it was asked to.
const STOP_GRACE: Duration = Duration::from_secs(5);
/// All members of an executor.
const MEMBERS: [&str; 7] = ["command", "args", "cwd", "env", "workspaces", "at_once", "stop_grace"];

/// A program that carries runs out. `Debug` shows neither arguments nor values.
#[derive(Clone, PartialEq, Eq)]
pub struct CommandExecutor {
    /// A name to search in the PATH, or a path.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// The folder in which the program is started; `None` for the folder of the run.
    pub cwd: Option<PathBuf>,
    /// Variables in addition to those that identify the run.
    pub env: BTreeMap<String, String>,
    /// The workspaces whose runs it carries out.
    pub workspaces: BTreeSet<WorkspaceId>,
    /// Maximum number of its runs at a time.
    pub at_once: usize,
    /// Time in which the program must end after it was asked to.
    pub stop_grace: Duration,
}

/// All executors of a daemon.
#[derive(Debug, Clone, Default)]
pub struct Executors {
    /// The executors by name.
    pub all: BTreeMap<ExecutorName, CommandExecutor>,
}

impl Executors {
    /// Reads the table of a settings file. Faults are added to `faults`, each with its place.
    /// `duration` parses a duration of the settings.
    #[must_use]
    pub fn read(
        file: &str,
        table: &Table,
        duration: &dyn Fn(&str) -> Option<Duration>,
        faults: &mut Vec<String>,
    ) -> Self {
        let mut all = BTreeMap::new();
        for (name, value) in table {
            let place = format!("{file}: `executors.{name}`");
            let name = match ExecutorName::new(name) {
                Ok(name) => name,
                Err(error) => {
                    faults.push(format!("{place}: {error}"));
                    continue;
                }
            };
            let Value::Table(table) = value else {
                faults.push(format!("{place} is a section: write it as [executors.{name}]"));
                continue;
            };
            let mut reading = Reading { place, table, faults };
            if let Some(executor) = reading.executor(duration) {
                all.insert(name, executor);
            }
        }
        Self { all }
    }

    /// The names of all executors, with their workspaces.
    #[must_use]
    pub fn known(&self) -> KnownExecutors {
        let of = self.all.iter().map(|(name, one)| (name.clone(), one.workspaces.clone()));
        KnownExecutors::new(of.collect())
    }
}

struct Reading<'a> {
    place: String,
    table: &'a Table,
    faults: &'a mut Vec<String>,
}

impl Reading<'_> {
    fn executor(&mut self, duration: &dyn Fn(&str) -> Option<Duration>) -> Option<CommandExecutor> {
        for member in self.table.keys().filter(|member| !MEMBERS.contains(&member.as_str())) {
            let known = MEMBERS.join("`, `");
            self.faults.push(format!(
                "{}: `{member}` is not a setting; the settings here are `{known}`",
                self.place
            ));
        }
        let command = self.text("command");
        if !self.table.contains_key("command") {
            self.faults
                .push(format!("{}: `command` is missing: name the program to start", self.place));
        }
        let cwd = self.text("cwd").map(PathBuf::from);
        if cwd.as_deref().is_some_and(|path| !Path::is_absolute(path)) {
            self.faults.push(format!("{}: `cwd` must be an absolute path", self.place));
        }
        let stop_grace = self.text("stop_grace").map(|text| duration(&text));
        if stop_grace == Some(None) {
            let text = "`stop_grace` must be a duration such as \"500ms\", \"30s\" or \"5m\"";
            self.faults.push(format!("{}: {text}", self.place));
        }
        let args = self.texts("args").unwrap_or_default();
        let (workspaces, at_once, env) = (self.workspaces(), self.at_once(), self.env());
        Some(CommandExecutor {
            command: command?,
            args,
            cwd,
            env,
            workspaces,
            at_once,
            stop_grace: stop_grace.flatten().unwrap_or(STOP_GRACE),
        })
    }

    fn must(&mut self, member: &str, what: &str) {
        self.faults.push(format!("{}: `{member}` must be {what}", self.place));
    }

    fn text(&mut self, member: &str) -> Option<String> {
        match self.table.get(member)? {
            Value::String(text) if !text.is_empty() => Some(text.clone()),
            _ => {
                self.must(member, "a text");
                None
            }
        }
    }

    fn texts(&mut self, member: &str) -> Option<Vec<String>> {
        let value = self.table.get(member)?;
        let items = value.as_array().map(|items| items.iter().map(Value::as_str).collect());
        let texts: Option<Option<Vec<_>>> = items;
        let Some(texts) = texts.flatten() else {
            self.must(member, "a list of texts");
            return None;
        };
        Some(texts.into_iter().map(str::to_owned).collect())
    }

    /// Every author of agents in a workspace can have the program started, so each workspace is
    /// named.
    fn workspaces(&mut self) -> BTreeSet<WorkspaceId> {
        let Some(texts) = self.texts("workspaces") else {
            return BTreeSet::from([WorkspaceId::default()]);
        };
        let mut workspaces = BTreeSet::new();
        for text in texts {
            match WorkspaceId::new(&text) {
                Ok(workspace) => drop(workspaces.insert(workspace)),
                Err(error) => {
                    self.faults.push(format!("{}: `workspaces`: {error}", self.place));
                }
            }
        }
        workspaces
    }

    fn at_once(&mut self) -> usize {
        let Some(value) = self.table.get("at_once") else { return AT_ONCE };
        let number = value.as_integer().and_then(|number| usize::try_from(number).ok());
        match number {
            Some(number @ 1..=1000) => number,
            _ => {
                self.must("at_once", "a whole number from 1 to 1000");
                AT_ONCE
            }
        }
    }

    fn env(&mut self) -> BTreeMap<String, String> {
        let mut env = BTreeMap::new();
        let Some(value) = self.table.get("env") else { return env };
        let Value::Table(table) = value else {
            self.must("env", "a section of texts");
            return env;
        };
        for (name, value) in table {
            match value {
                Value::String(text) => drop(env.insert(name.clone(), text.clone())),
                _ => self.must(&format!("env.{name}"), "a text"),
            }
        }
        env
    }
}

impl fmt::Debug for CommandExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommandExecutor")
            .field("command", &self.command)
            .field("workspaces", &self.workspaces)
            .field("at_once", &self.at_once)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Executors, Vec<String>) {
        let mut faults = Vec::new();
        let seconds = |text: &str| Some(Duration::from_secs(text.strip_suffix('s')?.parse().ok()?));
        let table: Table = text.parse().unwrap();
        let read = Executors::read("f", &table, &seconds, &mut faults);
        (read, faults)
    }

    #[test]
    fn executors_are_read_with_default_settings() {
        let (read, faults) = read(
            "[plain]\ncommand = 'agent'\n\
             [whole]\ncommand = '/bin/agent'\nargs = ['-p']\ncwd = '/work'\nat_once = 2\n\
             workspaces = ['team']\nstop_grace = '9s'\nenv = { KEY = 'hunter2' }",
        );
        assert_eq!(faults, [""; 0]);
        let (plain, whole) = (&read.all["plain"], &read.all["whole"]);
        assert_eq!((plain.at_once, plain.stop_grace, &plain.cwd), (AT_ONCE, STOP_GRACE, &None));
        assert_eq!((whole.at_once, whole.stop_grace), (2, Duration::from_secs(9)));
        assert_eq!(whole.env["KEY"], "hunter2");
        assert!(!format!("{read:?}").contains("hunter2"));
        let (known, team) = (read.known(), WorkspaceId::new("team").unwrap());
        let has = |name: &str, of: &WorkspaceId| known.has(&ExecutorName::new(name).unwrap(), of);
        // Authors of agents can have it started: only in the workspaces that are named.
        assert!(has("plain", &WorkspaceId::default()) && !has("plain", &team));
        assert!(has("whole", &team) && !has("whole", &WorkspaceId::default()));
    }

    #[test]
    fn all_faults_of_executors_are_reported_with_their_places() {
        let (read, faults) = read(
            "one = 1\n[Two]\ncommand = 'x'\n[three]\nargs = 'x'\nenv = { A = 1 }\nmore = 1\n\
             [four]\ncommand = 'x'\ncwd = 'here'\nat_once = 0\nstop_grace = 'soon'\n\
             workspaces = ['Not']",
        );
        assert!(read.all.keys().all(|name| name.as_str() == "four"));
        for (place, word) in [
            ("one", "section"),
            ("Two", "executor"),
            ("three", "`command` is missing"),
            ("three", "`args`"),
            ("three", "`env.A`"),
            ("three", "`more`"),
            ("four", "`cwd`"),
            ("four", "`at_once`"),
            ("four", "`stop_grace`"),
            ("four", "`workspaces`"),
        ] {
            let place = format!("f: `executors.{place}`");
            let is_told = |one: &String| one.starts_with(&place) && one.contains(word);
            assert!(faults.iter().any(is_told), "{place} {word} in {faults:?}");
        }
        assert_eq!(faults.len(), 10, "{faults:?}");
    }
}
