//! Takes in a body, up to a limit of bytes and time.
//!
//! A body longer than the first part takes room that all runs share, of which each run may have a
//! part. The room is taken until the body is whole, and for as long as any of the body is held
//! after that. Bodies of the API take such room from their first byte on, so that the slow ones of
//! one principal are few.

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
/// Bytes of a body that take no room.
const FREE: usize = 64 * 1024;
/// Bytes of room that are taken at a time.
const STEP: usize = 1024 * 1024;
/// The same for bodies of the API, which are shorter.
const API_STEP: usize = 64 * 1024;

/// Why a body is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyFault {
    TooLarge,
    TooSlow,
    Broken,
    /// The bodies of others, or those of the same run, take all room.
    NoRoom(Full),
}

/// The room for bodies of one run or of another principal.
pub(crate) enum Room<'a> {
    /// For long bodies of a run.
    Run(&'a Gateway, &'a RunView),
    /// For bodies of the API.
    Api(&'a Places, Holder),
}

impl Room<'_> {
    /// Bytes of a body that take no room.
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

    /// Takes further steps until they cover so many bytes.
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

/// The whole body, whose room is taken for as long as anything of it is held. One that says that it
/// is too large is not read at all.
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

/// The whole body, and the room that it takes.
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
