//! What can be watched: servers as they change, and a test while it runs.

use narthex_gateway::{Gateway, RunView};
use narthex_registry::Snapshot;
use serde_json::{Value, json};

use super::{Answered, Asked, ok};
use crate::{
    auth::Principal,
    feed::{Events, FeedStream},
    post::prefers_stream,
    respond::{Response, event_stream},
    rows,
};

impl Asked<'_> {
    /// Every state of the rows that the caller may see, the present one first, until the end of the
    /// daemon.
    pub(super) fn events(&self) -> Answered {
        let gateway = self.door.gateway.clone();
        let (principal, has_tools) = (self.principal.clone(), self.has_tools()?);
        Ok(self.stream(move |events| async move {
            let watching = Watching { gateway, principal, has_tools };
            match watching.principal.clone() {
                Principal::Run(run) => watching.run(&run, &events).await,
                Principal::Known(_) | Principal::Human(_) | Principal::LocalAdmin => {
                    watching.everything(&events).await
                }
            }
        }))
    }

    /// Tries a server. Whoever prefers a stream hears of each stage as it ends.
    pub(super) async fn test(&self) -> Answered {
        self.query(&[])?;
        let probing = self.control()?.probe(&self.name()?)?;
        if !prefers_stream(&self.parts.headers) {
            return Ok(ok(&json!(probing.run(|_stage| {}).await)));
        }
        Ok(self.stream(async move |events: Events| {
            let probe = probing.run(|stage| events.put_now(&json!({ "stage": stage }))).await;
            events.put(&json!({ "result": probe })).await;
        }))
    }

    /// The last lines; whoever prefers a stream gets the further ones, too.
    pub(super) fn logs(&self) -> Answered {
        self.query(&[])?;
        let (name, control) = (self.name()?, self.control()?);
        if !prefers_stream(&self.parts.headers) {
            return Ok(ok(&json!({ "name": name, "lines": control.logs(&name)? })));
        }
        let mut follower = control.follow_logs(&name)?;
        Ok(self.stream(async move |events: Events| {
            while let Some(part) = follower.next().await {
                if part.missed > 0 {
                    events.put(&json!({ "missed": part.missed })).await;
                }
                for line in part.lines {
                    events.put(&json!({ "line": line })).await;
                }
            }
        }))
    }

    pub(super) fn stream<F>(&self, work: impl FnOnce(Events) -> F) -> Response
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let options = &self.door.options;
        let end = Box::pin(options.closing.clone().cancelled_owned());
        let open = self.door.gateway.metrics().stream_opened();
        event_stream(FeedStream::new(work, end, options.keep_alive, open))
    }
}

/// Who watches rows.
struct Watching {
    gateway: Gateway,
    principal: Principal,
    has_tools: bool,
}

impl Watching {
    /// Every state of the shared rows.
    async fn everything(&self, events: &Events) {
        let mut updates = self.gateway.registry().subscribe();
        let mut shown = Shown::default();
        while let Some(update) = updates.next().await {
            self.put(&update.snapshot, &mut shown, events).await;
        }
    }

    /// What a run sees, until it ends. States that follow each other fast may be put out as one.
    async fn run(&self, run: &RunView, events: &Events) {
        let mut changes = self.gateway.changes(run);
        let mut shown = Shown::default();
        loop {
            changes.mark_seen();
            let snapshot = self.gateway.snapshot(run);
            self.put(&snapshot, &mut shown, events).await;
            let is_over = tokio::select! {
                biased;
                () = run.ended() => true,
                has_changed = changes.next() => !has_changed,
            };
            if is_over {
                return;
            }
        }
    }

    /// Puts out the rows if they differ from those before: what happens to servers that the caller
    /// may not see does not show (D5).
    async fn put(&self, snapshot: &Snapshot, shown: &mut Shown, events: &Events) {
        let rows = rows::all(snapshot, &self.principal, self.has_tools);
        if rows == shown.last {
            return;
        }
        let mut event = rows.clone();
        event["seq"] = shown.seq.into();
        events.put(&event).await;
        shown.last = rows;
        shown.seq += 1;
    }
}

/// What was put out.
#[derive(Default)]
struct Shown {
    last: Value,
    seq: u64,
}
