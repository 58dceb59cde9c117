//! Refuses a server's questions to its client.

use std::time::Duration;

use narthex_wire::{Message, rpc};
use tokio::time::timeout;

use super::Link;

/// Longest time that a server gets to hear that its question is refused.
const REFUSE_DEADLINE: Duration = Duration::from_secs(5);

impl Link {
    /// Refuses a question of a server that was offered no capability for it. A server that does not
    /// take the answer does not affect the link.
    pub async fn refuse_undeclared(&self, question: &Message) {
        let why = "no client can be asked on this connection: it did not declare this capability";
        self.refuse(question, rpc::code::METHOD_NOT_FOUND, why).await;
    }

    /// Refuses a question of the server with a JSON-RPC error code.
    pub async fn refuse(&self, question: &Message, code: i64, why: &str) {
        let answer = rpc::error_response(question.id(), code, why, None);
        let (server, method) = (self.name(), question.method());
        match timeout(REFUSE_DEADLINE, self.respond(answer)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::debug!(server.name = server, %error, method, "could not refuse");
            }
            Err(_late) => tracing::debug!(server.name = server, method, "could not refuse in time"),
        }
    }
}
