//! Takes in a body, up to a limit of bytes and time.

use std::{fmt, time::Duration};

use bytes::{Bytes, BytesMut};
use http_body::Body;
use http_body_util::BodyExt;

/// The most that is set aside before it has arrived.
const FIRST_CAPACITY: u64 = 64 * 1024;

/// Why a body is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyFault {
    TooLarge,
    TooSlow,
    Broken,
}

/// The whole body. One that says that it is too large is not read at all.
pub(crate) async fn read<B>(body: B, limit: usize, within: Duration) -> Result<Bytes, BodyFault>
where
    B: Body<Data = Bytes, Error: fmt::Display> + Unpin,
{
    if body.size_hint().lower() > limit as u64 {
        return Err(BodyFault::TooLarge);
    }
    let whole = tokio::time::timeout(within, collect(body, limit)).await;
    whole.unwrap_or(Err(BodyFault::TooSlow))
}

async fn collect<B>(mut body: B, limit: usize) -> Result<Bytes, BodyFault>
where
    B: Body<Data = Bytes, Error: fmt::Display> + Unpin,
{
    let first = data(&mut body).await?.unwrap_or_default();
    if first.len() > limit {
        return Err(BodyFault::TooLarge);
    }
    if body.is_end_stream() {
        return Ok(first);
    }
    let expected = body.size_hint().lower().min(FIRST_CAPACITY);
    let mut whole = BytesMut::with_capacity(first.len() + usize::try_from(expected).unwrap_or(0));
    whole.extend_from_slice(&first);
    drop(first);
    while let Some(chunk) = data(&mut body).await? {
        if whole.len() + chunk.len() > limit {
            return Err(BodyFault::TooLarge);
        }
        whole.extend_from_slice(&chunk);
    }
    Ok(whole.freeze())
}

async fn data<B>(body: &mut B) -> Result<Option<Bytes>, BodyFault>
where
    B: Body<Data = Bytes, Error: fmt::Display> + Unpin,
{
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            tracing::debug!(%error, "a body broke off");
            BodyFault::Broken
        })?;
        if let Ok(data) = frame.into_data() {
            return Ok(Some(data));
        }
    }
    Ok(None)
}
