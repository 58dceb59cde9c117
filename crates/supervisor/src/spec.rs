//! What to start, and within which limits.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::BaseEnvironment;

/// Takes known secret values out of a line before anything keeps or prints it.
pub type Redact = Arc<dyn for<'line> Fn(&'line str) -> Cow<'line, str> + Send + Sync>;

/// Everything needed to start one child. `Debug` shows neither arguments nor values, because both
/// may hold secrets.
#[derive(Clone)]
pub struct ProcessSpec {
    /// A name searched in the child's PATH, or a path.
    pub command: String,
    pub args: Vec<String>,
    /// The declared variables. They win over the base environment.
    pub env: Vec<(String, String)>,
    pub base_environment: BaseEnvironment,
    /// `None`: the daemon's own directory.
    pub working_dir: Option<PathBuf>,
    /// Time between SIGTERM and SIGKILL.
    pub stop_grace: Duration,
    /// How many lines of stderr are kept.
    pub log_lines: usize,
    /// Length at which one line is cut.
    pub log_line_bytes: usize,
    /// How much memory all kept lines may take together; the oldest go first.
    pub log_total_bytes: usize,
    /// Applied to every line of stderr.
    pub redact: Option<Redact>,
    /// The `server.name` of log records.
    pub server_name: Option<String>,
}

impl ProcessSpec {
    /// A spec with the default limits: 5 s grace, 256 lines of at most 256 KiB, 1 MiB in all.
    #[must_use]
    pub fn new(command: impl Into<String>, base_environment: BaseEnvironment) -> Self {
        Self {
            command: command.into(),
            args: Vec::new(),
            env: Vec::new(),
            base_environment,
            working_dir: None,
            stop_grace: Duration::from_secs(5),
            log_lines: 256,
            log_line_bytes: 256 * 1024,
            log_total_bytes: 1024 * 1024,
            redact: None,
            server_name: None,
        }
    }

    /// The PATH in which the command is searched: the declared one, else the daemon's.
    pub(crate) fn search_path(&self) -> Option<OsString> {
        let declared = self.env.iter().rev().find(|(name, _)| name == "PATH");
        declared
            .map(|(_, value)| value.into())
            .or_else(|| self.base_environment.get("PATH").map(OsString::from))
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
