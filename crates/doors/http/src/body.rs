//! Reads request bodies, up to a limit of bytes and time.
//!
//! A body that is longer than [`FREE`] reserves bytes in a buffer that all runs share; each run may
//! reserve only a part of it. The reservation lasts until the whole body is read, and for as long
//! as any part of the body is referenced after that. Bodies of the API reserve bytes from their
//! first byte on, so that one principal cannot send many slow bodies.

use std::{convert::Infallible, time::Duration};

use bytes::{Bytes, BytesMut};
use http_body::Body as _;
use http_body_util::{BodyExt as _, Either, combinators::UnsyncBoxBody};
use hyper::body::Incoming;
use narthex_gateway::{Full, Gateway, Holder, Place, Places, RunView};

/// The body of a request: of a connection, or of a caller in this process.
///
/// One type, so that the door is compiled once.
pub type RequestBody = Either<Incoming, UnsyncBoxBody<Bytes, Infallible>>;

/// The most bytes that are allocated for a body before it has arrived.
const FIRST_CAPACITY: u64 = 64 * 1024;
/// Number of bytes of a run's body that need no reservation.
const FREE: usize = 64 * 1024;
/// Number of bytes that one reservation of a run's body covers.
const STEP: usize = 1024 * 1024;
/// Number of bytes that one reservation of an API body covers; these bodies are shorter.
const API_STEP: usize = 64 * 1024;

/// The reason why a body is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyFault {
    TooLarge,
    TooSlow,
    Broken,
    /// Other bodies, or bodies of the same run, have reserved all bytes of the buffer.
    NoRoom(Full),
}

/// The buffer in which a body reserves its bytes.
pub(crate) enum Room<'a> {
    /// The buffer for long bodies of a run.
    Run(&'a Gateway, &'a RunView),
    /// The buffer for bodies of the API.
    Api(&'a Places, Holder),
}

impl Room<'_> {
    /// Number of bytes of a body that need no reservation.
    fn free(&self) -> usize {
        match self {
            Self::Run(..) => FREE,
            Self::Api(..) => 0,
        }
    }

    fn step(&self) -> usize {
        match self {
            Self::Run(..) => STEP,
            Self::Api(..) => API_STEP,
        }
    }

    /// Adds reservations until they cover `bytes` bytes.
    fn cover(&self, taken: &mut Vec<Place>, bytes: usize) -> Result<(), BodyFault> {
        while self.free() + taken.len() * self.step() < bytes {
            taken.push(self.take()?);
        }
        Ok(())
    }

    fn take(&self) -> Result<Place, BodyFault> {
        let taken = match self {
            Self::Run(gateway, run) => gateway.bodies().take(run, STEP),
            Self::Api(places, holder) => places.take_as(holder.clone(), None, API_STEP),
        };
        taken.map_err(BodyFault::NoRoom)
    }
}

/// A whole body, and the reservations that cover it.
struct Kept {
    whole: Bytes,
    _room: Vec<Place>,
}

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        &self.whole
    }
}

/// Reads the whole body. Its reservations last for as long as any part of it is referenced. A body
/// that declares a length above the limit is not read at all.
pub(crate) async fn read_in(
    body: RequestBody,
    limit: usize,
    within: Duration,
    room: Option<Room<'_>>,
) -> Result<Bytes, BodyFault> {
    let (whole, taken) = read_and_hold(body, limit, within, room).await?;
    Ok(match taken.is_empty() {
        true => whole,
        false => Bytes::from_owner(Kept { whole, _room: taken }),
    })
}

/// Reads the whole body, and returns it with its reservations.
pub(crate) async fn read_and_hold(
    body: RequestBody,
    limit: usize,
    within: Duration,
    room: Option<Room<'_>>,
) -> Result<(Bytes, Vec<Place>), BodyFault> {
    if body.size_hint().lower() > limit as u64 {
        return Err(BodyFault::TooLarge);
    }
    let whole = tokio::time::timeout(within, collect(body, limit, room)).await;
    whole.unwrap_or(Err(BodyFault::TooSlow))
}

async fn collect(
    mut body: RequestBody,
    limit: usize,
    room: Option<Room<'_>>,
) -> Result<(Bytes, Vec<Place>), BodyFault> {
    let mut taken = Vec::new();
    let from_the_first = room.as_ref().filter(|room| room.free() == 0);
    if let Some(room) = from_the_first
        && !body.is_end_stream()
    {
        room.cover(&mut taken, 1)?;
    }
    let first = data(&mut body).await?.unwrap_or_default();
    if let Some(room) = from_the_first {
        room.cover(&mut taken, first.len())?;
    }
    if first.len() > limit {
        return Err(BodyFault::TooLarge);
    }
    if body.is_end_stream() {
        return Ok((first, taken));
    }
    let expected = body.size_hint().lower().min(FIRST_CAPACITY);
    let mut whole = BytesMut::with_capacity(first.len() + usize::try_from(expected).unwrap_or(0));
    whole.extend_from_slice(&first);
    drop(first);
    while let Some(chunk) = data(&mut body).await? {
        if whole.len() + chunk.len() > limit {
            return Err(BodyFault::TooLarge);
        }
        if let Some(room) = &room {
            room.cover(&mut taken, whole.len() + chunk.len())?;
        }
        whole.extend_from_slice(&chunk);
    }
    Ok((whole.freeze(), taken))
}

async fn data(body: &mut RequestBody) -> Result<Option<Bytes>, BodyFault> {
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            tracing::debug!(%error, "the connection ended before the end of a body");
            BodyFault::Broken
        })?;
        if let Ok(data) = frame.into_data() {
            return Ok(Some(data));
        }
    }
    Ok(None)
}
