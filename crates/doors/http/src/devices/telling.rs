//! Reports a run's file operations to its watchers.

use std::{
    borrow::Cow,
    sync::{Arc, Weak},
};

use narthex_gateway::{Gateway, RunView};
use narthex_model::Pid;
use narthex_run_events::{FileOperation, TOOL_ERROR};
use narthex_vfs::{Code, Done, Observer, Place, name};

/// The runs by the pids of their processes. An entry stays for as long as other code holds the run.
pub(crate) type Runs = Arc<papaya::HashMap<Pid, Weak<RunView>>>;

/// Reports the file operations of runs to their watchers.
#[derive(Debug)]
pub(crate) struct OfRuns {
    pub(crate) gateway: Gateway,
    pub(crate) runs: Runs,
}

impl Observer for OfRuns {
    fn ended(&self, done: Done<'_>) {
        if !self.is_watched() {
            return;
        }
        // An unfinished operation holds its run, even after the run has ended.
        let run = self.runs.pin().get(&done.pid).and_then(Weak::upgrade);
        if let Some(run) = run {
            tell(&self.gateway, &run, done);
        }
    }

    fn is_watched(&self) -> bool {
        self.gateway.tap().is_watched()
    }
}

/// Reports a finished operation of a run to its watchers.
pub(crate) fn tell(gateway: &Gateway, run: &RunView, done: Done<'_>) {
    if !gateway.tap().is_watched() {
        return;
    }
    let alias = match Place::parse(done.path) {
        Ok(Place::In(name, _)) => Some(name.alias),
        Ok(Place::Mounts) | Err(_) => None,
    };
    let Done { operation, path, fd, size, result, is_tool_error, is_told: _, duration, pid: _ } =
        done;
    let error = result.err().map(Code::as_str).or(is_tool_error.then_some(TOOL_ERROR));
    let (name, result, took) = (operation.as_str(), result.ok(), duration);
    let path = &*clean(path, |text| gateway.without_secrets(run, text));
    let done = FileOperation { name, path, fd, size, result, error, took };
    gateway.tap().file(run.id, alias.as_ref(), done);
}

/// A path without values of secrets, also where a name in it contains a percent-encoded value
/// (D22).
fn clean<'p>(path: &'p str, without_secrets: impl Fn(&str) -> Cow<'_, str>) -> Cow<'p, str> {
    let clean = match without_secrets(path) {
        Cow::Borrowed(_) => Cow::Borrowed(path),
        Cow::Owned(clean) => Cow::Owned(clean),
    };
    let decoded = name::decoded(&clean);
    match without_secrets(&decoded) {
        Cow::Borrowed(_) => clean,
        Cow::Owned(told) => Cow::Owned(told),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d22_secrets_in_a_path_are_redacted_in_every_spelling() {
        fn without(text: &str) -> Cow<'_, str> {
            match text.contains("topsecret99") {
                true => Cow::Owned(text.replace("topsecret99", "[redacted]")),
                false => Cow::Borrowed(text),
            }
        }
        for (path, told) in [
            ("/mnt/mcp/1-a/tools/a%2Fb", "/mnt/mcp/1-a/tools/a%2Fb"),
            ("/mnt/mcp/1-a/tools/call_topsecret99", "/mnt/mcp/1-a/tools/call_[redacted]"),
            ("/mnt/mcp/1-a/tools/call_tops%65cret99", "/mnt/mcp/1-a/tools/call_[redacted]"),
            ("/mnt/mcp/1-a/resources/x:%74opsecret99", "/mnt/mcp/1-a/resources/x:[redacted]"),
        ] {
            assert_eq!(clean(path, without), told);
        }
    }
}
