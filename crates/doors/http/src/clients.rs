//! Registered MCP clients: each client can reach only the endpoints of its own run.

use std::sync::Arc;

use http::request::Parts;
use narthex_audit::{AuditEvent, kind};
use narthex_control::KnownClient;
use narthex_gateway::RunView;
use narthex_model::ErrorKind;

use crate::{door::Door, problem::Problem, respond::Response};

impl Door {
    /// Returns the run that a client acts for, and creates one if none is active. On failure
    /// returns the answer to the client.
    pub(crate) async fn run_of(
        &self,
        client: &KnownClient,
        parts: &Parts,
    ) -> Result<Arc<RunView>, Response> {
        let Some(runs) = &self.options.runs else {
            let text = "this process creates no runs";
            return Err(Problem::new(ErrorKind::Conflict, text).answer());
        };
        if let Some(run) = runs.live_run_of(client) {
            return Ok(run);
        }
        // Boxed: this rare path must not enlarge the future of every call.
        match Box::pin(runs.run_of(client)).await {
            Ok(Some(run)) => Ok(run),
            Ok(None) => {
                self.refused("token");
                Err(self.unauthorized(parts))
            }
            // The cause may reveal facts that outside clients should not know.
            Err(error) => {
                let id = &client.row.id;
                tracing::warn!(
                    client.id = %id,
                    "the run of a registered client cannot be created: {error}"
                );
                let text = "the run of this client cannot be created now; the cause is in the \
                            daemon's log, for an admin";
                Err(Problem::new(ErrorKind::Unavailable, text).answer())
            }
        }
    }

    /// Refuses a client's request for a route that is no MCP endpoint.
    pub(crate) fn no_client(&self, client: &KnownClient, path: &str) -> Response {
        let event = AuditEvent::new(kind::ACCESS_DENIED, client.account.actor());
        self.note_denied(event.in_workspace(&client.row.workspace), path);
        let text = "the token of a registered client opens MCP endpoints only, such as /mcp; use \
                    it there, or ask an admin of the workspace for the token of a service";
        Problem::new(ErrorKind::Denied, text).answer()
    }
}
