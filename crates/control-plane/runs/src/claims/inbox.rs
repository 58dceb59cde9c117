//! Acknowledgement of a session's messages by the platform that carries the session out.

use narthex_catalog::Acknowledgement;
use narthex_control::{CatalogError, ControlError, MessageError};
use narthex_model::{SessionId, WorkspaceId};

use crate::{RunError, Runs};

impl Runs {
    /// Notes that all messages of a session are read up to the event that a document names. Returns
    /// the sequence number up to which they are read, and the number of unread messages.
    ///
    /// # Errors
    /// When the document is faulty, there is no such session, or no such event yet; or the store
    /// fails.
    pub async fn acknowledge(
        &self,
        workspace: &WorkspaceId,
        session: SessionId,
        text: &[u8],
    ) -> Result<(u64, u64), RunError> {
        let asked = Acknowledgement::parse(text).map_err(RunError::Unfit)?.value;
        self.control().catalog_store(workspace).await?;
        let events = self.control().events().ok_or(CatalogError::NoStore);
        let events = events.map_err(ControlError::from)?;
        let done = events.acknowledge(workspace, session, asked.sequence).await;
        done.map_err(|error| RunError::Control(MessageError::Events(error).into()))
    }
}
