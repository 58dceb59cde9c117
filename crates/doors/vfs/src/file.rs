//! One open descriptor: what was written last, and what of the answer has not been read.

use std::{
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use serde_json::value::RawValue;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::{Code, Failure, Limits, Node, device::Answer, mounted::Mount, tools};

/// The content of a place that can be read without a request to a device.
pub(crate) type Known = Option<Bytes>;

/// An open descriptor.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) mount: Arc<Mount>,
    pub(crate) node: Node,
    /// The path by which the file was opened.
    pub(crate) path: String,
    limits: Limits,
    state: Mutex<State>,
    /// Held by the first reader while it fetches; other readers wait for it.
    fetching: tokio::sync::Mutex<()>,
    /// Cancelled with the descriptor, with the process's permission, or with the mount.
    over: CancellationToken,
}

#[derive(Debug)]
struct State {
    /// Number of writes so far: the answer of an earlier write is dropped.
    turn: u64,
    content: Content,
    ended: Option<Ended>,
}

#[derive(Debug)]
enum Content {
    /// No content was written or fetched.
    Nothing,
    /// The unread rest.
    Rest(Bytes),
    /// The last write failed.
    Failed(Failure),
}

/// The outcome of a write and its call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Written {
    /// Number of bytes.
    pub(crate) size: usize,
    /// True if the tool itself reports a failure; determined only while an observer watches.
    pub(crate) is_tool_error: bool,
}

/// Why a descriptor is of no use any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    Closed,
    Revoked,
    /// The process ended.
    Over,
}

impl File {
    pub(crate) fn new(
        mount: Arc<Mount>,
        node: Node,
        path: String,
        known: Known,
        limits: Limits,
    ) -> Self {
        let content = known.map_or(Content::Nothing, Content::Rest);
        Self {
            over: mount.gone.child_token(),
            mount,
            node,
            path,
            limits,
            state: Mutex::new(State { turn: 0, content, ended: None }),
            fetching: tokio::sync::Mutex::default(),
        }
    }

    /// Gives up to `length` bytes of what has not been read; all of it for 0 or less (R-O4), and
    /// nothing once all was read (R-O5).
    pub(crate) async fn read(&self, length: i64) -> Result<Bytes, Failure> {
        if let Some(read) = self.take(length)? {
            return Ok(read);
        }
        if !matches!(self.node, Node::Tool(_)) {
            let _first = self.unless_over(async { Ok(self.fetching.lock().await) }).await?;
            if let Some(read) = self.take(length)? {
                return Ok(read);
            }
            // A failure is not stored: a second read tries again (R-O9).
            let fetched = self.within(self.limits.fetch, self.fetch()).await?;
            let mut state = self.alive()?;
            // The answer of a write in the meantime has precedence.
            if matches!(state.content, Content::Nothing) {
                state.content = Content::Rest(fetched);
            }
            drop(state);
            return Ok(self.take(length)?.unwrap_or_default());
        }
        Err(Failure::invalid("there is no result yet: write the arguments first, a JSON object"))
    }

    /// Takes readable bytes; `None` if they have to be fetched first.
    fn take(&self, length: i64) -> Result<Option<Bytes>, Failure> {
        let mut state = self.alive()?;
        match &mut state.content {
            Content::Nothing => Ok(None),
            Content::Failed(failure) => Err(failure.clone()),
            Content::Rest(rest) => {
                let wanted = usize::try_from(length).ok().filter(|length| *length > 0);
                let length = wanted.map_or(rest.len(), |length| length.min(rest.len()));
                Ok(Some(rest.split_to(length)))
            }
        }
    }

    /// Makes the call that the bytes are the arguments of, and waits for its result (R-O2). Returns
    /// the number of bytes taken: all. If `is_watched`, the tool's own report of a failure is read.
    pub(crate) async fn write(&self, bytes: Bytes, is_watched: bool) -> Result<Written, Failure> {
        if !self.node.is_writable() {
            drop(self.alive()?);
            return Err(Failure::invalid(format!("`{}` is read-only", self.node.sub_path())));
        }
        let size = bytes.len();
        let turn = {
            let mut state = self.alive()?;
            state.turn += 1;
            state.content = Content::Nothing;
            state.turn
        };
        let answered = match self.arguments(bytes) {
            Ok(arguments) => self.within(self.limits.call, self.ask(arguments)).await,
            Err(failure) => Err(failure),
        };
        // The file may have been closed meanwhile: then the answer is dropped (R-O11).
        let mut state = self.alive()?;
        let is_last = state.turn == turn;
        match answered {
            Ok(result) => {
                let is_tool_error = is_watched && matches!(self.node, Node::Tool(_));
                let is_tool_error = is_tool_error && tools::is_error(&result);
                if is_last {
                    state.content = Content::Rest(result);
                }
                Ok(Written { size, is_tool_error })
            }
            Err(failure) => {
                if is_last {
                    state.content = Content::Failed(failure.clone());
                }
                Err(failure)
            }
        }
    }

    fn arguments(&self, bytes: Bytes) -> Result<Bytes, Failure> {
        if bytes.len() > self.limits.write_bytes {
            let most = self.limits.write_bytes;
            let text = format!("arguments have at most {most} bytes");
            return Err(Failure::new(Code::ResourceExhausted, "limit_exceeded", text));
        }
        let parsed: Result<&RawValue, _> = serde_json::from_slice(&bytes);
        match parsed {
            Ok(value) if value.get().starts_with('{') => Ok(bytes),
            Ok(_) => {
                Err(Failure::invalid("arguments must be a JSON object; without any, write `{}`"))
            }
            Err(error) => Err(Failure::invalid(format!(
                "arguments must be a JSON object, and this is not JSON: {error}"
            ))),
        }
    }

    fn ask(&self, arguments: Bytes) -> Answer<'_> {
        match &self.node {
            Node::Prompt(name) => self.mount.device.prompt(name, arguments),
            Node::Tool(name) => self.mount.device.call(name, arguments),
            _ => Box::pin(async { Err(Failure::invalid("it is read-only")) }),
        }
    }

    fn fetch(&self) -> Answer<'_> {
        let device = &self.mount.device;
        match &self.node {
            Node::List(kind) => device.list(*kind),
            Node::Resource(uri) => device.read(uri),
            Node::Prompt(name) => device.prompt(name, Bytes::from_static(b"{}")),
            Node::Schema(tool) => device.schema(tool),
            Node::Description(tool) => device.description(tool),
            Node::Status => device.status(),
            Node::Logs => device.logs(),
            Node::Root | Node::Control | Node::Error | Node::Tool(_) => {
                Box::pin(async { Ok(Bytes::new()) })
            }
        }
    }

    /// Ends the descriptor, and what is under way for it. `false` if it had been closed before.
    pub(crate) fn end(&self, ended: Ended) -> bool {
        let mut state = self.state();
        let was_open = state.ended != Some(Ended::Closed);
        if was_open {
            state.ended = Some(ended);
            state.content = Content::Nothing;
        }
        drop(state);
        self.over.cancel();
        was_open
    }

    async fn within<T>(
        &self,
        limit: std::time::Duration,
        step: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        self.unless_over(async {
            timeout(limit, step).await.unwrap_or_else(|_late| {
                let text = format!("there was no answer within {} s", limit.as_secs());
                Err(Failure::new(Code::Timeout, "timeout", text))
            })
        })
        .await
    }

    async fn unless_over<T>(
        &self,
        step: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        tokio::select! {
            biased;
            () = self.over.cancelled() => {
                drop(self.alive()?);
                Err(Failure::new(Code::Internal, "bug", "the descriptor ended unexpectedly"))
            }
            done = step => done,
        }
    }

    /// The state of a descriptor that can be used, or why it cannot.
    fn alive(&self) -> Result<MutexGuard<'_, State>, Failure> {
        let state = self.state();
        match state.ended {
            Some(Ended::Closed) => Err(closed()),
            Some(Ended::Over) => Err(over()),
            Some(Ended::Revoked) => Err(revoked()),
            None if self.mount.gone.is_cancelled() => Err(unmounted()),
            None => Ok(state),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The failure of an operation on a descriptor after it was closed (R-O10).
pub(crate) fn closed() -> Failure {
    Failure::new(Code::Driver, "closed", "the descriptor is not open")
}

/// The failure of an operation by a process that has ended.
pub(crate) fn over() -> Failure {
    Failure::new(Code::DeviceDisconnected, "transport_error", "the process has ended")
}

/// The failure of an operation on a mount that was revoked from the process.
pub(crate) fn revoked() -> Failure {
    Failure::new(Code::Permission, "denied", "this process may not use the mount any more")
}

/// The failure of an operation on a mount that does not exist any more, or is another server's now.
pub(crate) fn unmounted() -> Failure {
    Failure::new(Code::DeviceDisconnected, "transport_error", "the server is not mounted any more")
}
