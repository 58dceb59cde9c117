//! One connection: its requests, its time limits, and its end.

use std::{convert::Infallible, net::IpAddr, sync::Arc};

use http::{HeaderValue, Request, header};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::{Instant, sleep_until},
};

use super::{
    io::Activity,
    shared::{Respond, Shared},
};

const CLOSE: HeaderValue = HeaderValue::from_static("close");

/// Serves the requests of one connection. The stream is generic, so that the way of plain bytes has
/// no step for TLS.
pub(super) async fn serve<R: Respond, S: AsyncRead + AsyncWrite + Unpin>(
    shared: Arc<Shared<R>>,
    sender: IpAddr,
    stream: S,
    activity: Arc<Activity>,
) {
    let service = service_fn(|request: Request<Incoming>| {
        activity.request();
        let (answering, leaving) =
            (shared.router.respond(request, sender), &shared.options.leaving);
        async move {
            let mut answer = answering.await;
            if leaving.has_begun() {
                answer.headers_mut().insert(header::CONNECTION, CLOSE);
            }
            Ok::<_, Infallible>(answer)
        }
    });
    let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    // Each connection has a child token: every poll locks its token, and one shared lock would slow
    // down all connections.
    let shutdown = shared.shutdown.child_token();
    let options = &shared.options;
    let mut deadline = Instant::now() + options.header_timeout;
    let mut seen = activity.look();
    let mut is_ending = false;
    loop {
        tokio::select! {
            biased;
            () = shutdown.cancelled(), if !is_ending => {
                is_ending = true;
                deadline = Instant::now() + options.grace;
                connection.as_mut().graceful_shutdown();
            }
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection failed");
                }
                return;
            }
            () = sleep_until(deadline) => {
                let now = activity.look();
                if is_ending || now.is_idle_since_start() || now.is_stuck_since(&seen) {
                    return;
                }
                if now.has_no_request_since(&seen) {
                    // Closes an idle connection now, and a busy one after its answer.
                    connection.as_mut().graceful_shutdown();
                }
                seen = now;
                deadline = Instant::now() + options.idle_timeout;
            }
        }
    }
}
