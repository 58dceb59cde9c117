//! Reads a server's lists, page by page.

use memchr::memmem;
use narthex_wire::{Message, MessageKind, Pages, Raw};

use super::{Asking, Link};
use crate::{LinkError, aside::is_large};

/// Size in bytes from which on another thread reads a page with schemas to compile.
const SCHEMAS_LARGE: usize = 32 * 1024;

impl Link {
    /// Reads a list of the server to its last page: `read` reads each page, and `take` gets the
    /// result. Another thread reads a large page.
    ///
    /// # Errors
    /// When no answer arrives, the server refuses ([`LinkError::Refused`]), the pages do not end,
    /// or `take` fails.
    pub async fn each_page<P: Send + 'static>(
        &self,
        method: &'static str,
        read: impl Fn(&Message) -> P + Copy + Send + 'static,
        mut take: impl FnMut(P) -> Result<(), LinkError>,
    ) -> Result<(), LinkError> {
        let is_none = || LinkError::Request(format!("{method} did not return a list"));
        let list = Asking::list(method).ok_or_else(is_none)?;
        let mut pages = Pages::new(self.facts.revision.era());
        loop {
            let answer = self.ask(list, &pages.members()).await?;
            accepted(&answer)?;
            take(match takes_long(&answer) {
                false => read(&answer),
                true => {
                    let answer = answer.clone();
                    self.outlet().aside().run(move || read(&answer)).await
                }
            })?;
            match pages.turn(&answer) {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(error) => return Err(LinkError::Protocol(format!("{method} {error}"))),
            }
        }
    }
}

/// True if reading a page delays other calls: the page is large, or has output schemas to compile.
fn takes_long(answer: &Message) -> bool {
    let bytes = answer.bytes();
    is_large(bytes)
        || (bytes.len() >= SCHEMAS_LARGE && memmem::find(bytes, b"\"outputSchema\"").is_some())
}

/// Returns an answer that is an error as [`LinkError::Refused`].
pub(super) fn accepted(answer: &Message) -> Result<(), LinkError> {
    if answer.kind() != MessageKind::Error {
        return Ok(());
    }
    let text = answer.get("message").and_then(Raw::as_str).unwrap_or_default().into_owned();
    Err(LinkError::Refused { code: answer.error_code().unwrap_or_default(), text })
}
