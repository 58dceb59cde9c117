//! The end of a link over HTTP: waiting requests fail, and the session is ended at the server.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use http::{HeaderMap, HeaderValue, Method};
use narthex_wire::{Payload, headers::MCP_SESSION_ID};

use super::HttpLink;
use crate::{Frame, LinkError};

impl HttpLink {
    /// The result of a step of a call; an error if the link is stopped before the result. A session
    /// that the server has forgotten does not stop a step: the server may still answer requests
    /// that it took before.
    pub(super) async fn while_open<T>(
        &self,
        step: impl Future<Output = Result<T, LinkError>>,
    ) -> Result<T, LinkError> {
        tokio::pin!(step);
        tokio::select! {
            biased;
            done = &mut step => return done,
            () = self.closed().cancelled() => {}
        }
        match self.outlet.end() {
            LinkError::SessionEnded => step.await,
            end => Err(end),
        }
    }

    /// The frame that was read; an error if the link has ended and the frame is no answer. A server
    /// that sends frames without an end must not keep a call open on a closed link.
    pub(super) fn before_the_end(
        &self,
        read: Result<Frame, LinkError>,
    ) -> Result<Frame, LinkError> {
        if matches!(read, Ok(Frame::Answer(_)) | Err(_)) || !self.closed().is_cancelled() {
            return read;
        }
        match self.outlet.end() {
            LinkError::SessionEnded => read,
            end => Err(end),
        }
    }

    /// Ends the session at the server, if there is one, and the link.
    pub(crate) async fn stop(&self, deadline: Duration) {
        self.outlet.close(LinkError::Closed("it was stopped".into()));
        let is_ours = !matches!(self.outlet.end(), LinkError::SessionEnded);
        let is_first = !self.is_given_back.swap(true, Ordering::AcqRel);
        if let Some(session) = self.session().cloned().filter(|_| is_ours && is_first) {
            // If the caller stops waiting, the next caller ends the session.
            let unless_done = GiveBackLater(&self.is_given_back);
            self.end_session(session, deadline).await;
            std::mem::forget(unless_done);
        }
    }

    /// Ends a session at the server.
    pub(crate) async fn end_session(&self, session: HeaderValue, deadline: Duration) {
        let mut extra = HeaderMap::new();
        extra.insert(MCP_SESSION_ID, session);
        let ending = async {
            let value = self.authorization.value().await?;
            let mut headers = self.headers().common.clone();
            self.headers().authorize(&mut headers, value.as_ref());
            let request = self.request(Method::DELETE, Payload::default(), headers, &extra);
            Ok::<_, LinkError>(self.client.send(request).await?)
        };
        // Servers may refuse DELETE (405); the session then ends by its own timeout.
        match tokio::time::timeout(deadline, ending).await {
            Ok(Ok(response)) => tracing::debug!(status = %response.status, "session ended"),
            Ok(Err(error)) => {
                let error = self.outlet.redacted(error);
                tracing::debug!(%error, "could not end the session");
            }
            Err(_) => tracing::debug!("the server did not answer to the end of the session"),
        }
    }
}

/// On drop, notes that the session must still be ended at the server.
struct GiveBackLater<'a>(&'a AtomicBool);

impl Drop for GiveBackLater<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}
