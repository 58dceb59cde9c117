//! What can be watched: servers as they change, and a test while it runs.

use narthex_registry::Registry;
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
    pub(super) fn events(&self) -> Response {
        let registry = self.door.gateway.registry().clone();
        let (principal, has_tools) = (self.principal.clone(), self.has_tools());
        self.stream(move |events| follow(registry, principal, has_tools, events))
    }

    /// Tries a server. Whoever prefers a stream hears of each stage as it ends.
    pub(super) async fn test(&self) -> Answered {
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

    fn stream<F>(&self, work: impl FnOnce(Events) -> F) -> Response
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let options = &self.door.options;
        let end = Box::pin(options.closing.clone().cancelled_owned());
        let open = self.door.gateway.metrics().stream_opened();
        event_stream(FeedStream::new(work, end, options.keep_alive, open))
    }
}

/// Puts out the rows whenever they differ from those before: what happens to servers that the
/// caller may not see does not show (D5).
async fn follow(registry: Registry, principal: Principal, has_tools: bool, events: Events) {
    let mut updates = registry.subscribe();
    let mut last = Value::Null;
    let mut seq = 0_u64;
    while let Some(update) = updates.next().await {
        let rows = rows::all(&update.snapshot, &principal, has_tools);
        if rows == last {
            continue;
        }
        let mut event = rows.clone();
        event["seq"] = seq.into();
        events.put(&event).await;
        last = rows;
        seq += 1;
    }
}
