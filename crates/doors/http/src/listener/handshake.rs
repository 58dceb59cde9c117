//! The way of an encrypted connection up to its first request.

use std::{io, net::IpAddr, sync::Arc};

use narthex_tls::{ServerTls, TlsStream};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::OwnedSemaphorePermit,
    time::timeout,
};

use super::{
    connection,
    io::{Activity, Watched},
    shared::{Respond, Shared, watched},
};

/// The answer to a client that sends plain HTTP.
const PLAIN_HTTP: &[u8] = b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\
    content-type: text/plain; charset=utf-8\r\ncontent-length: 61\r\n\r\n\
    this address takes encrypted connections only: use https://.\n";

/// Number of bytes of a plain request that are read after the answer: with bytes unread, the system
/// would reset the connection, and the client could lose the answer.
const DISCARDED_MAX: u64 = 64 * 1024;

/// A connection without TLS.
enum Fault {
    /// The client has left, as checks of an open port do.
    Left,
    /// The client speaks plain HTTP.
    Plain,
    /// The client speaks another TLS, or does not trust the certificate.
    Failed(io::Error),
}

/// Makes the handshake within its time, and serves the connection.
///
/// `waiting` is a place among the handshakes, which is free again when the handshake ends.
pub(super) async fn serve<R: Respond>(
    shared: Arc<Shared<R>>,
    tls: ServerTls,
    sender: IpAddr,
    stream: TcpStream,
    waiting: OwnedSemaphorePermit,
) {
    let limit = shared.options.handshake_timeout;
    let made = tokio::select! {
        biased;
        () = shared.shutdown.cancelled() => return,
        made = timeout(limit, shake(&tls, stream)) => made,
    };
    drop(waiting);
    let (stream, activity) = match made {
        Ok(Ok(made)) => made,
        Ok(Err(Fault::Left)) => return,
        Ok(Err(Fault::Plain)) => return shared.router.handshake_failed("tls_plain_http"),
        Ok(Err(Fault::Failed(error))) => {
            tracing::debug!(%error, "a TLS handshake failed");
            return shared.router.handshake_failed("tls_handshake");
        }
        Err(_elapsed) => return shared.router.handshake_failed("tls_timeout"),
    };
    let Some(_slot) = shared.connections.take() else { return };
    connection::serve(shared, sender, stream, activity).await;
}

async fn shake(
    tls: &ServerTls,
    mut stream: TcpStream,
) -> Result<(TlsStream<Watched>, Arc<Activity>), Fault> {
    let mut first = [0];
    match stream.peek(&mut first).await {
        Ok(1) => {}
        Ok(_) | Err(_) => return Err(Fault::Left),
    }
    // The first byte of a handshake is no letter, and the methods of HTTP are in capitals.
    if first[0].is_ascii_uppercase() {
        // The client may have left before the answer.
        drop(refuse_plain(&mut stream).await);
        return Err(Fault::Plain);
    }
    let (stream, activity) = watched(stream);
    let stream = tls.accept(stream).await.map_err(Fault::Failed)?;
    Ok((stream, activity))
}

async fn refuse_plain(stream: &mut TcpStream) -> io::Result<()> {
    stream.write_all(PLAIN_HTTP).await?;
    stream.shutdown().await?;
    tokio::io::copy(&mut stream.take(DISCARDED_MAX), &mut tokio::io::sink()).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_to_plain_http_has_its_own_length() {
        let text = std::str::from_utf8(PLAIN_HTTP).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.ends_with(&format!("content-length: {}", body.len())), "{text}");
    }
}
