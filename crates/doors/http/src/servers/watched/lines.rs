//! Operations as watchers receive them. A call that used no file is shown as the file operation in
//! a mount that would do the same.

use std::time::{Duration, SystemTime};

use narthex_run_events::{Operation, What};
use narthex_vfs::{Kind, Node, ROOT};

use crate::shapes::{OperationName, RunOperation};

/// Facts that all lines of one watcher share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shown {
    /// The number of the run.
    pub(super) pid: u64,
    /// The time at which the watcher started.
    pub(super) since: SystemTime,
}

impl Shown {
    /// Starts to watch now.
    pub(super) fn new(pid: u64) -> Self {
        Self { pid, since: SystemTime::now() }
    }
}

/// An operation as watchers receive it.
pub(super) fn line(operation: &Operation, shown: &Shown) -> RunOperation {
    let (name, path, fd, source, method) = match &operation.what {
        What::File { name, path, fd } => (*name, path.to_string(), *fd, "file", None),
        What::Call { alias, method, item } => {
            let item = item.as_ref().map(|(kind, name)| (*kind, &**name));
            let (name, node) = as_file(method, item);
            let alias = alias.as_ref().map_or("*", |alias| alias.as_str());
            let path = format!("{ROOT}/{}-{alias}{node}", shown.pid);
            (name, path, None, "call", Some(method.to_string()))
        }
    };
    RunOperation {
        event: RunOperation::TYPE,
        at: operation.began.into(),
        after_us: micros(operation.began.duration_since(shown.since).unwrap_or_default()),
        operation: OperationName(name.to_owned()),
        path,
        fd,
        size: operation.size,
        result: operation.result,
        error: operation.error.map(str::to_owned),
        duration_us: micros(operation.took),
        source,
        method,
        is_inner: operation.is_inner,
    }
}

/// The file operation that would do the same as a call, and the file's path in its mount.
fn as_file(method: &str, item: Option<(&str, &str)>) -> (&'static str, String) {
    let list = |kind| ("Read", Node::List(kind).sub_path());
    match (method, item) {
        (_, Some(("tool", name))) => ("Write", Node::Tool(name.to_owned()).sub_path()),
        ("prompts/get" | "tools/call", Some(("prompt", name))) => {
            ("Write", Node::Prompt(name.to_owned()).sub_path())
        }
        (_, Some(("prompt", name))) => ("Stat", Node::Prompt(name.to_owned()).sub_path()),
        ("resources/read" | "resources/directory/read" | "tools/call", Some(("resource", uri))) => {
            ("Read", Node::Resource(uri.to_owned()).sub_path())
        }
        (_, Some(("resource", uri))) => ("Stat", Node::Resource(uri.to_owned()).sub_path()),
        // A mount has no files for tasks.
        (_, Some((kind, name))) => ("Read", format!("/{kind}s/{name}")),
        ("tools/list", None) => list(Kind::Tools),
        ("prompts/list", None) => list(Kind::Prompts),
        ("resources/list" | "resources/templates/list", None) => list(Kind::Resources),
        (_, None) => ("Stat", String::new()),
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use narthex_model::Alias;

    use super::*;

    fn told(
        alias: Option<&str>,
        method: &'static str,
        item: Option<(&'static str, &str)>,
    ) -> RunOperation {
        let shown = Shown::new(3);
        let operation = Operation {
            what: What::Call {
                alias: alias.map(|alias| Alias::new(alias).unwrap()),
                method: method.into(),
                item: item.map(|(kind, name)| (kind, name.into())),
            },
            began: shown.since + Duration::from_millis(1234),
            size: None,
            result: Some(7),
            error: None,
            took: Duration::from_millis(2),
            is_inner: false,
        };
        line(&operation, &shown)
    }

    /// R-M35: each call has one line, with the path of the same object in a mount.
    #[test]
    fn r_m35_a_call_is_shown_as_the_operation_of_a_mount() {
        let git = Some("git");
        let cases = [
            (git, "tools/call", Some(("tool", "a.md")), "Write", "3-git/tools/a%2Emd"),
            (git, "tools/list", None, "Read", "3-git/tools"),
            (None, "tools/list", None, "Read", "3-*/tools"),
            (git, "prompts/get", Some(("prompt", "p")), "Write", "3-git/prompts/p"),
            (git, "completion/complete", Some(("prompt", "p")), "Stat", "3-git/prompts/p"),
            (git, "resources/read", Some(("resource", "f:/x")), "Read", "3-git/resources/f:/x"),
            (git, "tools/call", Some(("resource", "f:/x")), "Read", "3-git/resources/f:/x"),
            (git, "resources/subscribe", Some(("resource", "f")), "Stat", "3-git/resources/f"),
            (git, "resources/templates/list", None, "Read", "3-git/resources"),
            (git, "tasks/get", Some(("task", "t1")), "Read", "3-git/tasks/t1"),
            (git, "vendor/thing", None, "Stat", "3-git"),
        ];
        for (alias, method, item, name, path) in cases {
            let line = told(alias, method, item);
            assert_eq!(line.operation.0, name, "{method}");
            assert_eq!(line.path, format!("/mnt/mcp/{path}"), "{method}");
            assert_eq!((line.after_us, line.duration_us), (1_234_000, 2000));
            assert_eq!(line.method.as_deref(), Some(method));
        }
    }
}
