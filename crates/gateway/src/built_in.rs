//! The server that every run has without attaching it (X-M1). What is asked of it is answered here:
//! it costs no process, no link and no task. It has no tools.

use std::sync::Arc;

use bytes::Bytes;
use narthex_upstream::ServerCapabilities;
use narthex_wire::Message;

use crate::{
    Answering, Caller,
    gateway::Shared,
    method::Handling,
    pipeline::result,
    refusal::Refusal,
    route::{not_found, own_item},
};

/// What it says that it has.
pub(crate) const BUILT_IN: ServerCapabilities = ServerCapabilities {
    tools: true,
    prompts: false,
    resources: false,
    subscribe: false,
    completions: false,
    logging: false,
    tasks: false,
    list_changed: true,
};

impl Shared {
    /// Answers what is asked at its endpoint.
    pub(crate) async fn built_in(
        self: &Arc<Self>,
        caller: &Caller,
        handling: Handling,
        request: Message,
    ) -> Result<Answering, Refusal> {
        match handling {
            Handling::Ping => Ok(result(&request, &Bytes::from_static(b"{}"))),
            Handling::Discover => {
                let body = self.own_discover(&BUILT_IN, &self.options.server_info, None);
                Ok(result(&request, &body))
            }
            Handling::List(kind) => Self::page(&self.build_view(0, &[]), caller, kind, &request),
            Handling::Listen => self.listen(caller, request).await,
            Handling::Tool | Handling::Prompt | Handling::Resource | Handling::Task => {
                let item = own_item(handling, &request)?;
                let refusal = not_found(handling, item.name());
                Err(self.refused(caller, handling, &request, refusal))
            }
            Handling::Subscribe { .. }
            | Handling::Complete
            | Handling::SetLevel
            | Handling::TaskList
            | Handling::Vendor => Err(Refusal::unknown_method(request.method())),
        }
    }
}
