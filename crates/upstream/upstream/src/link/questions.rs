//! Refuses a server's questions to its client.

use std::time::Duration;

use narthex_wire::{Message, rpc};
use tokio::time::timeout;

use super::Link;

/// Longest wait until a server accepts the refusal of its question.
const REFUSE_DEADLINE: Duration = Duration::from_secs(5);

impl Link {
    /// Refuses a question for which the server was offered no capability. The link stays as it is
    /// if the server does not accept the refusal.
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
