//! A fake server that follows its script, and counts its requests.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;
use narthex_model::{Alias, CallErrorKind, Pid};
use narthex_vfs::{Answer, Device, Failure, Kind, Limits, MountName, Namespace, Process};
use tokio::sync::Semaphore;

/// The behaviour of a fake server for the next requests.
#[derive(Debug, Clone, Default)]
pub(crate) enum Mood {
    /// It echoes.
    #[default]
    Well,
    /// Each request fails with this failure.
    Fails(Failure),
    /// Each request waits until the test lets one more go.
    Waits,
}

/// A fake server.
#[derive(Debug)]
pub(crate) struct Fake {
    pub(crate) mood: Mutex<Mood>,
    pub(crate) asked: AtomicUsize,
    /// Requests that were given up before they were answered.
    pub(crate) given_up: AtomicUsize,
    pub(crate) go: Semaphore,
}

impl Fake {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            mood: Mutex::default(),
            asked: AtomicUsize::new(0),
            given_up: AtomicUsize::new(0),
            go: Semaphore::new(0),
        })
    }

    pub(crate) fn set(&self, mood: Mood) {
        *self.mood.lock().unwrap_or_else(PoisonError::into_inner) = mood;
    }

    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    pub(crate) fn given_up(&self) -> usize {
        self.given_up.load(Ordering::SeqCst)
    }

    fn answer(&self, text: String) -> Answer<'_> {
        Box::pin(async move {
            self.asked.fetch_add(1, Ordering::SeqCst);
            let mood = self.mood.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let mut waiting = GivenUp { counter: &self.given_up, is_done: false };
            let answer = match mood {
                Mood::Well => Ok(Bytes::from(text)),
                Mood::Fails(failure) => Err(failure),
                Mood::Waits => {
                    self.go.acquire().await.expect("it is never closed").forget();
                    Ok(Bytes::from(text))
                }
            };
            waiting.is_done = true;
            answer
        })
    }
}

struct GivenUp<'a> {
    counter: &'a AtomicUsize,
    is_done: bool,
}

impl Drop for GivenUp<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            self.counter.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// The list of tools that fake servers have.
pub(crate) const TOOLS: &str = concat!(
    r#"{"tools":[{"name":"echo","description":"Says it again.","#,
    r#""inputSchema":{"type":"object","required":["message"]}},"#,
    r#"{"name":"notes.md"},{"name":"a/b"}]}"#
);

impl Device for Fake {
    fn list(&self, kind: Kind) -> Answer<'_> {
        self.answer(match kind {
            Kind::Tools => TOOLS.to_owned(),
            Kind::Resources => r#"{"resources":[{"uri":"file:///a%20b","name":"a b"}]}"#.to_owned(),
            Kind::Prompts => r#"{"prompts":[{"name":"greet"}]}"#.to_owned(),
        })
    }

    fn call<'a>(&'a self, tool: &'a str, arguments: Bytes) -> Answer<'a> {
        let arguments = String::from_utf8_lossy(&arguments).into_owned();
        self.answer(match tool {
            "fail" => r#"{"content":[],"isError":true}"#.to_owned(),
            _ => format!("{tool}:{arguments}"),
        })
    }

    fn read<'a>(&'a self, uri: &'a str) -> Answer<'a> {
        self.answer(format!("resource:{uri}"))
    }

    fn prompt<'a>(&'a self, name: &'a str, arguments: Bytes) -> Answer<'a> {
        let arguments = String::from_utf8_lossy(&arguments).into_owned();
        self.answer(format!("prompt:{name}:{arguments}"))
    }

    fn status(&self) -> Answer<'_> {
        self.answer(r#"{"state":"ready"}"#.to_owned())
    }

    fn logs(&self) -> Answer<'_> {
        self.answer("said\n".to_owned())
    }
}

pub(crate) fn pid(number: u64) -> Pid {
    Pid::new(number)
}

pub(crate) fn name(of: u64, alias: &str) -> MountName {
    MountName { pid: pid(of), alias: Alias::new(alias).expect("it is one") }
}

/// A namespace with process 1, for which a fake server is mounted as `files`.
pub(crate) fn one() -> (Namespace, Arc<Process>, Arc<Fake>) {
    let namespace = Namespace::new(Limits::default(), None);
    let process = namespace.begin(pid(1), None, &[]).expect("it is the first");
    let fake = Fake::new();
    namespace.mount(name(1, "files"), fake.clone()).expect("nothing is there");
    (namespace, process, fake)
}

pub(crate) fn refused() -> Failure {
    Failure::of_call(CallErrorKind::PermissionRequired, "`files.write` is needed")
}
