//! Answers of the gateway itself, without a call to a server.

use std::{pin::Pin, sync::Arc};

use bytes::Bytes;
use narthex_wire::{Message, Raw, rpc};

use crate::{Answering, Caller, call::refusal::Refusal, gateway::Shared, view::Handling};

/// A boxed future.
type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

impl Shared {
    /// Answers requests that need no server. The future is boxed, so that forwarded calls do not
    /// carry the memory that it needs.
    pub(crate) fn answer_itself<'a>(
        self: &'a Arc<Self>,
        caller: &'a Caller,
        handling: Handling,
        request: Message,
    ) -> Boxed<'a, Result<Answering, Refusal>> {
        Box::pin(async move {
            match handling {
                Handling::Ping => Ok(result(&request, &Bytes::from_static(b"{}"))),
                Handling::Discover => self.discover(caller, &request).await,
                Handling::List(kind) => self.list(caller, kind, &request).await,
                Handling::SetLevel => self.set_level(caller, request).await,
                Handling::Subscribe { is_start } => self.subscribe(caller, is_start, request).await,
                Handling::Listen => self.listen(caller, request).await,
                Handling::TaskList => self.task_list(caller, &request).await,
                Handling::Tool
                | Handling::Prompt
                | Handling::Resource
                | Handling::Complete
                | Handling::Task
                | Handling::Vendor => self.call_server(caller, handling, request).await,
            }
        })
    }
}

/// The answer with this result, as JSON.
pub(crate) fn result(request: &Message, body: &Bytes) -> Answering {
    let id = request.id().unwrap_or(Raw::new(b"null"));
    Answering::ready(rpc::result_response(id, body), 200)
}
