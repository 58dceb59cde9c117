//! Children that misbehave, and the search for processes that are left of them.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use narthex_model::ServerDefinition;
use narthex_policy::{Item, Request};
use narthex_testkit::unruly::{VARIABLE, run_if_asked};
use narthex_upstream::{Booked, Frame, Hop, Link, LinkError};
use narthex_wire::{Limits, Message, Raw};
use serde_json::{Value, json};
use tokio_util::task::TaskTracker;

use crate::world::{booking, in_time, permitted, program, with_env};

/// Not a test: servers are this program, started again by this name.
#[test]
fn child() {
    run_if_asked();
}

/// A server in a process of its own that misbehaves by these words.
pub(crate) fn unruly(name: &str, words: &str) -> ServerDefinition {
    let program_file = std::env::current_exe().unwrap();
    let args = ["--exact", "unruly::child", "--nocapture", "--test-threads=2"];
    with_env(program(name, program_file.to_str().unwrap(), &args), VARIABLE, words)
}

/// The variable by which processes are found.
const MARK: &str = "NARTHEX_TEST_MARK";

/// Marks the children of one test, and all processes that they start.
pub(crate) struct Mark(String);

impl Mark {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        Self(format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)))
    }

    pub(crate) fn on(&self, definition: ServerDefinition) -> ServerDefinition {
        with_env(definition, MARK, &self.0)
    }

    /// A marked server, as [`unruly`] makes it.
    pub(crate) fn server(&self, name: &str, words: &str) -> ServerDefinition {
        self.on(unruly(name, words))
    }

    /// The marked processes that are alive.
    pub(crate) fn alive(&self) -> Vec<u32> {
        let mark = format!("{MARK}={}\0", self.0);
        let is_marked = |process: &u32| {
            let environment = fs_err::read(format!("/proc/{process}/environ")).unwrap_or_default();
            environment.windows(mark.len()).any(|window| window == mark.as_bytes())
        };
        processes().filter(is_marked).collect()
    }

    /// Waits until `count` marked processes are alive.
    pub(crate) async fn until(&self, count: usize) {
        let mut ticks = tokio::time::interval(Duration::from_millis(5));
        in_time(async {
            while self.alive().len() != count {
                ticks.tick().await;
            }
        })
        .await;
    }
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs_err::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Number of this process's children that have ended and were not reaped.
pub(crate) fn zombies() -> usize {
    let own = std::process::id().to_string();
    let is_zombie = |process: &u32| {
        let stat = fs_err::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        let fields = stat.rsplit_once(')').map(|(_, fields)| fields).unwrap_or_default();
        let mut fields = fields.split_ascii_whitespace();
        fields.next() == Some("Z") && fields.next() == Some(own.as_str())
    };
    processes().filter(is_zombie).count()
}

/// Calls a tool over a link: the text of the answer.
pub(crate) async fn ask(link: &Link, tool: &str, arguments: Value) -> Result<String, LinkError> {
    let params = json!({"name": tool, "arguments": arguments});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let message = Message::parse(body.to_string().into(), &Limits::default()).unwrap();
    let request = Request::new(link.alias().clone(), message, Item::Tool(tool.into()));
    let (slot, admission) = booking();
    let booked = Booked::new(&slot, &admission);
    let forwarding = link.forward(permitted(request), Hop::default(), booked);
    let mut forwarded = in_time(forwarding).await?;
    loop {
        if let Frame::Answer(answer) = in_time(forwarded.next()).await? {
            let content = answer.get("content").map(Raw::items).unwrap_or_default();
            let text = content.first().and_then(|item| item.get("text")?.as_str());
            return Ok(text.unwrap_or_default().into_owned());
        }
    }
}

/// Asks in the background, over a link that is in use meanwhile.
pub(crate) fn ask_in_background(
    link: &std::sync::Arc<Link>,
    tool: &'static str,
    arguments: Value,
) -> tokio::task::JoinHandle<Result<String, LinkError>> {
    let in_use = link.enter().unwrap();
    TaskTracker::new().spawn(async move { ask(&in_use, tool, arguments).await })
}
