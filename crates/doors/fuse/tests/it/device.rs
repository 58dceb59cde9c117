//! A scripted server.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;
use narthex_model::CallErrorKind;
use narthex_vfs::{Answer, Device, Failure, Kind};
use tokio::sync::{Notify, Semaphore};

/// A fake server with the tools `echo`, `big` (3 MB), `slow` (waits for [`Fake::go`]), `gated` and
/// `fails`. Without any tool its lists are as slow.
#[derive(Debug)]
pub(crate) struct Fake {
    pub(crate) asked: AtomicUsize,
    /// Number of requests for resources.
    pub(crate) fetched: AtomicUsize,
    pub(crate) began: Notify,
    pub(crate) given_up: Notify,
    pub(crate) go: Semaphore,
    pub(crate) tools: Vec<String>,
}

impl Fake {
    pub(crate) fn new() -> Arc<Self> {
        Self::with_tools(["echo", "big", "slow", "gated", "fails", "a/b"].map(str::to_owned).into())
    }

    pub(crate) fn with_tools(tools: Vec<String>) -> Arc<Self> {
        Arc::new(Self {
            asked: AtomicUsize::new(0),
            fetched: AtomicUsize::new(0),
            began: Notify::new(),
            given_up: Notify::new(),
            go: Semaphore::new(0),
            tools,
        })
    }

    async fn slow(&self) -> Bytes {
        struct GivenUp<'a>(&'a Notify, bool);
        impl Drop for GivenUp<'_> {
            fn drop(&mut self) {
                if !self.1 {
                    self.0.notify_one();
                }
            }
        }
        let mut watch = GivenUp(&self.given_up, false);
        self.began.notify_one();
        self.go.acquire().await.expect("it is never closed").forget();
        watch.1 = true;
        Bytes::from_static(b"at last\n")
    }
}

fn named(member: &str, key: &str, names: &[String]) -> Bytes {
    let items: Vec<_> = names.iter().map(|name| serde_json::json!({ key: name })).collect();
    serde_json::json!({ member: items }).to_string().into()
}

impl Device for Fake {
    fn list(&self, kind: Kind) -> Answer<'_> {
        Box::pin(async move {
            if self.tools.is_empty() {
                return Ok(self.slow().await);
            }
            Ok(match kind {
                Kind::Tools => named("tools", "name", &self.tools),
                Kind::Resources => named("resources", "uri", &["file:///notes.txt".to_owned()]),
                Kind::Prompts => named("prompts", "name", &["greet".to_owned()]),
            })
        })
    }

    fn call<'a>(&'a self, tool: &'a str, arguments: Bytes) -> Answer<'a> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            match tool {
                "slow" => Ok(self.slow().await),
                "big" => Ok(Bytes::from(vec![b'x'; 3 << 20])),
                "gated" => {
                    let text = "`files.write` is needed";
                    let mut failure = Failure::of_call(CallErrorKind::PermissionRequired, text);
                    failure.details = Some(r#"{"scopes":["files.write"]}"#.to_owned());
                    Err(failure)
                }
                "fails" => Err(Failure::of_call(CallErrorKind::ServerError, "it broke")),
                _ => Ok(arguments),
            }
        })
    }

    fn read<'a>(&'a self, uri: &'a str) -> Answer<'a> {
        self.fetched.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            match uri {
                "file:///notes.txt" => Ok(Bytes::from_static(b"notes")),
                "slow:///notes.txt" => Ok(self.slow().await),
                _ => Err(Failure::new(
                    narthex_vfs::Code::NotFound,
                    "not_found",
                    "there is no such resource",
                )),
            }
        })
    }

    fn prompt<'a>(&'a self, name: &'a str, arguments: Bytes) -> Answer<'a> {
        Box::pin(async move {
            let arguments = String::from_utf8_lossy(&arguments).into_owned();
            Ok(Bytes::from(format!("{name} {arguments}")))
        })
    }

    fn status(&self) -> Answer<'_> {
        Box::pin(async { Ok(Bytes::from_static(br#"{"state":"ready"}"#)) })
    }

    fn logs(&self) -> Answer<'_> {
        Box::pin(async { Ok(Bytes::from_static(b"said\n")) })
    }
}
