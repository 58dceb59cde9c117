//! Servers in files of clients, as servers of the catalog (X-M12, D7).
//!
//! Placeholders are rewritten where their meaning is clear, and refused otherwise. Each rewritten
//! part, and each part that is not kept, is a notice for people. The values have no literal secret
//! of a client's own file.

mod of_client;
mod pasted;
mod snippet;

use serde_json::Value;

pub use of_client::OfClient;
pub use pasted::{HEADERS, Pasted, PastedFault, PastedServer};
pub use snippet::{Snippet, SnippetError, Taken, may_hold_secret, snippet};

/// Converts the servers of `{"mcpServers": {…}}`; `None` if the document is a single server of the
/// catalog.
#[must_use]
pub fn of_document(document: &Value) -> Option<Pasted> {
    pasted::take_out(document)
}

/// Converts the servers of a client's file. What cannot be kept is a notice.
#[must_use]
pub fn of_client(file: &OfClient) -> Pasted {
    of_client::take_out(file)
}
