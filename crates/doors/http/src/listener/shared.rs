//! The parts that the ways of a connection share.

use std::{convert::Infallible, net::IpAddr, sync::Arc};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use super::{
    io::{Activity, Watched},
    options::ServeOptions,
    room::Room,
};

/// Answers the requests that a listener receives.
pub trait Respond: Send + Sync + 'static {
    /// The type of its answers' bodies.
    type Body: Body<Data = Bytes, Error = Infallible> + Send + 'static;

    /// Answers one request, from the other end of a connection at this address. The connection
    /// stores the future, so it should be small.
    fn respond(
        &self,
        request: Request<Incoming>,
        sender: IpAddr,
    ) -> impl Future<Output = Response<Self::Body>> + Send;

    /// Notes that a client made no TLS connection. The reason is one of the program's own words.
    fn handshake_failed(&self, reason: &'static str) {
        tracing::debug!(reason, "a TLS handshake failed");
    }
}

/// The parts of a listener that its connections share.
pub(super) struct Shared<R> {
    pub(super) router: R,
    pub(super) options: ServeOptions,
    pub(super) shutdown: CancellationToken,
    pub(super) connections: Room,
    /// The connections that are not encrypted yet.
    pub(super) handshakes: Room,
}

/// A socket that sends small answers at once, with the record of its activity.
pub(super) fn watched(stream: TcpStream) -> (Watched, Arc<Activity>) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "could not set TCP_NODELAY");
    }
    let activity = Arc::<Activity>::default();
    (Watched::new(stream, activity.clone()), activity)
}
