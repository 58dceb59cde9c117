//! Takes in a body, up to a limit of bytes and time.
//!
//! What is longer than the first part takes room that all runs share, of which each may have a
//! part: until it is whole, and for as long as anything of it is held after that.

use std::{fmt, time::Duration};

use bytes::{Bytes, BytesMut};
use http_body::Body;
use http_body_util::BodyExt;
use narthex_gateway::{Full, Gateway, Place, RunView};

/// The most that is set aside before it has arrived.
const FIRST_CAPACITY: u64 = 64 * 1024;
/// How many bytes of a body take no room.
const FREE: usize = 64 * 1024;
/// How many bytes of room are taken at a time.
const STEP: usize = 1024 * 1024;

/// Why a body is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyFault {
    TooLarge,
    TooSlow,
    Broken,
    /// The bodies of others, or those of the same run, take all room.
    NoRoom(Full),
}

/// The room for long bodies of one run.
#[derive(Clone, Copy)]
pub(crate) struct Room<'a> {
    pub(crate) gateway: &'a Gateway,
    pub(crate) run: &'a RunView,
}

/// A body, and its room.
struct Kept {
    whole: Bytes,
    _room: Vec<Place>,
}

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        &self.whole
    }
}

/// The whole body, which has no room of its own: for what is short. One that says that it is too
/// large is not read at all.
pub(crate) async fn read<B>(body: B, limit: usize, within: Duration) -> Result<Bytes, BodyFault>
where
    B: Body<Data = Bytes, Error: fmt::Display> + Unpin,
{
    read_in(body, limit, within, None).await
}

/// The same in the room of a run.
pub(crate) async fn read_in<B>(
    body: B,
    limit: usize,
    within: Duration,
    room: Option<Room<'_>>,
) -> Result<Bytes, BodyFault>
where
    B: Body<Data = Bytes, Error: fmt::Display> + Unpin,
{
    if body.size_hint().lower() > limit as u64 {
        return Err(BodyFault::TooLarge);
    }
    let whole = tokio::time::timeout(within, collect(body, limit, room)).await;
    whole.unwrap_or(Err(BodyFault::TooSlow))
}

async fn collect<B>(mut body: B, limit: usize, room: Option<Room<'_>>) -> Result<Bytes, BodyFault>
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
    let mut taken = Vec::new();
    while let Some(chunk) = data(&mut body).await? {
        if whole.len() + chunk.len() > limit {
            return Err(BodyFault::TooLarge);
        }
        while let Some(room) = room
            && FREE + taken.len() * STEP < whole.len() + chunk.len()
        {
            let step = room.gateway.bodies().take(room.run, STEP);
            taken.push(step.map_err(BodyFault::NoRoom)?);
        }
        whole.extend_from_slice(&chunk);
    }
    let whole = whole.freeze();
    Ok(match taken.is_empty() {
        true => whole,
        false => Bytes::from_owner(Kept { whole, _room: taken }),
    })
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
