//! Operations: running ones, and ended ones.

use std::{
    borrow::Cow,
    future::Future,
    sync::Arc,
    time::{Duration, SystemTime},
};

use narthex_model::{Alias, RunId};
use tokio::time::Instant;

use crate::{Tap, tally::Tally, tap::Watchers};

/// The longest name that is reported, in characters; a client may make it as long as a message.
const NAME_CHARS: usize = 1024;
/// The folder in front of the URI in the path of a resource's file.
const RESOURCES: &str = "/resources/";
/// The outcome of an operation that its caller gave up.
const ABANDONED: &str = "abandoned";
/// The outcome of a call whose tool itself reports a failure (R-O12).
pub const TOOL_ERROR: &str = "tool_error";
/// The outcome of a successful operation.
const OK: &str = "ok";

tokio::task_local! {
    /// Set while work is done for an operation that is reported itself.
    static INSIDE: ();
}

/// Runs the work of an operation that has its own report, such as the call behind a written file.
/// Reports of that work are marked as inner ones.
pub async fn inside<T>(work: impl Future<Output = T>) -> T {
    INSIDE.scope((), work).await
}

pub(crate) fn is_inside() -> bool {
    INSIDE.try_with(|()| ()).is_ok()
}

/// The server, method and item of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The server; `None` for all servers of the run.
    pub alias: Option<Alias>,
    /// The MCP method.
    pub method: Cow<'static, str>,
    /// The kind of the item, and the server's own name for it: `tool`, `prompt`, `resource` or
    /// `task`.
    pub item: Option<(&'static str, Arc<str>)>,
    /// Number of bytes of the arguments; `None` if the method has none.
    pub size: Option<u64>,
}

/// An ended operation of a mount, for [`Tap::file`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileOperation<'a> {
    /// `Open`, `Read`, `Write`, `Close`, `Stat`, `List`, `Mount` or `Unmount`.
    pub name: &'static str,
    /// Path of the file, also for an operation on a descriptor.
    pub path: &'a str,
    /// File descriptor, if the operation has one.
    pub fd: Option<u64>,
    /// Number of bytes written, or requested at most; `None` for all.
    pub size: Option<i64>,
    /// Result of the operation: a descriptor or a number of bytes; `None` if it failed.
    pub result: Option<u64>,
    /// Code of the error, or fault of the result.
    pub error: Option<&'static str>,
    /// Duration of the operation.
    pub took: Duration,
}

/// An operation that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// The action.
    pub what: What,
    /// Start time of the operation.
    pub began: SystemTime,
    /// Number of bytes that went in, or were requested at most.
    pub size: Option<i64>,
    /// Result of the operation: a descriptor, or a number of bytes.
    pub result: Option<u64>,
    /// Code of the error, if the operation failed.
    pub error: Option<&'static str>,
    /// Duration of the operation.
    pub took: Duration,
    /// True if the operation served another reported operation.
    pub is_inner: bool,
}

/// The action of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A call, by whichever door.
    Call {
        /// The server; `None` for all servers of the run.
        alias: Option<Alias>,
        /// The MCP method.
        method: Cow<'static, str>,
        /// Kind and name of the item.
        item: Option<(&'static str, Arc<str>)>,
    },
    /// An operation with a file of a mount.
    File {
        /// The name of the operation.
        name: &'static str,
        /// The path of the file.
        path: Box<str>,
        /// The descriptor.
        fd: Option<u64>,
    },
}

/// A watched call, until its end. A call that is dropped before counts as abandoned.
#[derive(Debug)]
pub struct Open {
    tap: Tap,
    run: RunId,
    call: Call,
    began: SystemTime,
    started: Instant,
    result: Option<u64>,
    outcome: &'static str,
    is_inner: bool,
    tally: Option<Arc<Tally>>,
    /// The watchers that get the report if the run has ended by then.
    watchers: Watchers,
}

impl Open {
    pub(crate) fn new(
        tap: Tap,
        run: RunId,
        call: Call,
        tally: Option<Arc<Tally>>,
        watchers: Watchers,
    ) -> Self {
        let (began, started) = (SystemTime::now(), Instant::now());
        let (result, outcome, is_inner) = (None, ABANDONED, is_inside());
        Self { tap, run, call, began, started, result, outcome, is_inner, tally, watchers }
    }

    /// Sets the number of bytes of the answer.
    pub fn answered(&mut self, bytes: usize) {
        self.result = Some(u64::try_from(bytes).unwrap_or(u64::MAX));
    }

    /// Reports the end; `ok` is a success.
    pub fn end(mut self, outcome: &'static str) {
        self.outcome = outcome;
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let took = self.started.elapsed();
        let error = Some(self.outcome).filter(|outcome| *outcome != OK);
        if let Some(tally) = &self.tally {
            tally.count(took, error.is_some());
        }
        self.tap.tell(self.run, self.call.alias.as_ref(), &self.watchers, || Operation {
            what: What::Call {
                alias: self.call.alias.clone(),
                method: cut(self.call.method.clone()),
                item: self.call.item.as_ref().map(|(kind, name)| (*kind, told(kind, name))),
            },
            began: self.began,
            size: self.call.size.map(|size| i64::try_from(size).unwrap_or(i64::MAX)),
            result: self.result,
            error,
            took,
            is_inner: self.is_inner,
        });
    }
}

/// The beginning of a text that a client may have made long.
pub(crate) fn shortened(text: &str) -> &str {
    text.char_indices().nth(NAME_CHARS).map_or(text, |(at, _)| &text[..at])
}

fn cut(method: Cow<'static, str>) -> Cow<'static, str> {
    match method {
        Cow::Borrowed(known) => Cow::Borrowed(known),
        Cow::Owned(text) => Cow::Owned(shortened(&text).to_owned()),
    }
}

/// The name of a call's item, as it is reported.
fn told(kind: &str, name: &Arc<str>) -> Arc<str> {
    let clean = match kind {
        "resource" => without_secrets(name),
        _ => Cow::Borrowed(&**name),
    };
    let short = shortened(&clean);
    if *short == **name { name.clone() } else { short.into() }
}

/// A path of a mount, as it is reported: of a resource's file the rest is a URI.
pub(crate) fn told_path(path: &str) -> Box<str> {
    let Some((folder, uri)) = path.split_once(RESOURCES) else { return shortened(path).into() };
    shortened(&format!("{folder}{RESOURCES}{}", without_secrets(uri))).into()
}

/// A URI without parts that are no name and may be a secret: its user, its query and its fragment.
fn without_secrets(uri: &str) -> Cow<'_, str> {
    let end = uri.find(['?', '#']);
    let (head, rest) = uri.split_at(end.unwrap_or(uri.len()));
    let mut clean = String::new();
    let spoken_for = head.find("://").and_then(|at| {
        let begin = at + 3;
        let end = head[begin..].find('/').map_or(head.len(), |at| begin + at);
        Some((begin, begin + head[begin..end].rfind('@')? + 1))
    });
    match spoken_for {
        None if end.is_none() => return Cow::Borrowed(uri),
        None => clean.push_str(head),
        Some((begin, end)) => {
            clean.push_str(&head[..begin]);
            clean.push_str(&head[end..]);
        }
    }
    if let Some(mark) = rest.get(..1) {
        clean.push_str(mark);
        clean.push('…');
    }
    Cow::Owned(clean)
}
