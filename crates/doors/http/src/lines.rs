//! An export as the body of an answer: lines, made as fast as the client reads them.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body, Frame};
use narthex_control::{AuditExport, ControlError};
use narthex_gateway::metrics::OpenCount;
use tokio_util::sync::ReusableBoxFuture;

type Next = (AuditExport, Result<Option<String>, ControlError>);

/// The lines of an export. If the export fails midway, the stream ends without its last line.
pub(crate) struct LinesStream {
    /// `None` when all lines were read.
    next: Option<ReusableBoxFuture<'static, Next>>,
    _open: OpenCount,
}

impl LinesStream {
    pub(crate) fn new(export: AuditExport, open: OpenCount) -> Self {
        Self { next: Some(ReusableBoxFuture::new(step(export))), _open: open }
    }
}

async fn step(mut export: AuditExport) -> Next {
    let next = export.next().await;
    (export, next)
}

impl Body for LinesStream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(next) = &mut self.next else { return Poll::Ready(None) };
        let (export, read) = ready!(next.poll(cx));
        match read {
            Ok(Some(lines)) => {
                next.set(step(export));
                Poll::Ready(Some(Ok(Frame::data(lines.into()))))
            }
            Ok(None) => {
                self.next = None;
                Poll::Ready(None)
            }
            Err(error) => {
                tracing::warn!("an export of the audit failed before its end: {error}");
                self.next = None;
                Poll::Ready(None)
            }
        }
    }
}
