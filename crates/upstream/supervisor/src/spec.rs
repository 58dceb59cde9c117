//! Specification of a child: the program to start, and its limits.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use narthex_model::Confinement;

use crate::shim::Shim;
use crate::{BaseEnvironment, LogRing};

/// Removes known secret values from a line before the line is stored or printed.
pub type Redact = Arc<dyn for<'line> Fn(&'line str) -> Cow<'line, str> + Send + Sync>;

/// The parameters for starting one child. `Debug` shows neither arguments nor values, because both
/// may hold secrets.
#[derive(Clone)]
pub struct ProcessSpec {
    /// A name to search in the child's PATH, or a path.
    pub command: String,
    pub args: Vec<String>,
    /// The declared variables. They override the base environment.
    pub env: Vec<(String, String)>,
    pub base_environment: BaseEnvironment,
    /// The child's working directory; `None` for the daemon's own.
    pub working_dir: Option<PathBuf>,
    /// The program that controls all processes that the child starts.
    pub shim: Shim,
    /// The parts of the machine that the child may reach. `None` for all that the daemon may reach.
    /// Needs a shim.
    pub confinement: Option<Confinement>,
    /// Time between SIGTERM and SIGKILL.
    pub stop_grace: Duration,
    /// Stores the last lines of stderr. A ring that outlives the child serves the next child, too.
    pub log: LogRing,
    /// Redacts every line of stderr.
    pub redact: Option<Redact>,
    /// Value of the field `server.name` in log records.
    pub server_name: Option<String>,
}

impl ProcessSpec {
    /// A spec with the default limits: 5 s grace, and a new log with the default limits.
    #[must_use]
    pub fn new(command: impl Into<String>, base_environment: BaseEnvironment) -> Self {
        Self {
            command: command.into(),
            args: Vec::new(),
            env: Vec::new(),
            base_environment,
            working_dir: None,
            shim: Shim::default(),
            confinement: None,
            stop_grace: Duration::from_secs(5),
            log: LogRing::default(),
            redact: None,
            server_name: None,
        }
    }

    /// The PATH in which the command is searched: the declared one, else the daemon's.
    pub(crate) fn search_path(&self) -> Option<OsString> {
        self.variable("PATH")
    }

    /// A variable as the child will see it.
    pub(crate) fn variable(&self, name: &str) -> Option<OsString> {
        let declared = self.env.iter().rev().find(|(declared, _)| declared == name);
        declared
            .map(|(_, value)| value.into())
            .or_else(|| self.base_environment.get(name).map(OsString::from))
    }
}

impl fmt::Debug for ProcessSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.env.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("ProcessSpec")
            .field("command", &self.command)
            .field("args", &format_args!("{} hidden", self.args.len()))
            .field("env", &names)
            .field("working_dir", &self.working_dir)
            .field("shim", &self.shim)
            .field("confinement", &self.confinement)
            .field("stop_grace", &self.stop_grace)
            .field("server_name", &self.server_name)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_hides_values_and_arguments() {
        let mut spec = ProcessSpec::new("tool", BaseEnvironment::default());
        spec.env.push(("TOKEN".into(), "hunter2".into()));
        spec.args.push("--key=hunter2".into());
        let shown = format!("{spec:?}");
        assert!(shown.contains("TOKEN") && !shown.contains("hunter2"), "{shown}");
    }
}
