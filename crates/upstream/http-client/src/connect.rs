//! Opening a connection: name, address race, TLS, and the HTTP/1.1 handshake.

use std::{
    future::{Future, poll_fn},
    io,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};
use tokio_rustls::client::TlsStream;
use url::Host;

use super::{AllowedAddresses, ClientError, origin::Origin};

/// Time for an address before the next one is tried in parallel (RFC 8305).
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// A byte stream to a server.
#[derive(Debug)]
pub(super) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
    /// TLS inside of TLS: the proxy itself is reached by TLS.
    Nested(Box<TlsStream<Box<Stream>>>),
}

/// Resolves the host and connects to the first of its addresses that answers.
pub(super) async fn tcp(
    origin: &Origin,
    reach: AllowedAddresses,
) -> Result<TcpStream, ClientError> {
    let addresses = permitted(origin, reach).await?;
    let stream = race(interleave(addresses)).await.map_err(|cause| {
        let address = origin.address.clone();
        if cause.kind() == io::ErrorKind::ConnectionRefused {
            ClientError::Refused { address }
        } else {
            ClientError::Connect { address, cause }
        }
    })?;
    stream
        .set_nodelay(true)
        .map_err(|cause| ClientError::Connect { address: origin.address.clone(), cause })?;
    Ok(stream)
}

/// The addresses of the host that may be connected to, at least one.
pub(super) async fn permitted(
    origin: &Origin,
    reach: AllowedAddresses,
) -> Result<Vec<SocketAddr>, ClientError> {
    let mut addresses = resolve(origin).await?;
    addresses.retain(|address| reach.permits(address.ip()));
    if addresses.is_empty() {
        return Err(ClientError::NotPublic { address: origin.address.clone() });
    }
    Ok(addresses)
}

async fn resolve(origin: &Origin) -> Result<Vec<SocketAddr>, ClientError> {
    let name = match &origin.host {
        Host::Ipv4(ip) => return Ok(vec![(IpAddr::V4(*ip), origin.port).into()]),
        Host::Ipv6(ip) => return Ok(vec![(IpAddr::V6(*ip), origin.port).into()]),
        Host::Domain(name) => name,
    };
    let failed = |cause| ClientError::Dns { host: name.clone(), cause };
    let found: Vec<_> =
        tokio::net::lookup_host((name.as_str(), origin.port)).await.map_err(failed)?.collect();
    if found.is_empty() {
        return Err(failed(io::Error::from(io::ErrorKind::NotFound)));
    }
    Ok(found)
}

/// Alternates the two address families, starting with the resolver's first one.
fn interleave(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let preferred = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (first, second): (Vec<_>, Vec<_>) =
        addresses.into_iter().partition(|address| address.is_ipv6() == preferred);
    let mut second = second.into_iter();
    let mut mixed = Vec::new();
    for address in first {
        mixed.push(address);
        mixed.extend(second.next());
    }
    mixed.extend(second);
    mixed
}

/// Connects to one address after the other, the next one starting when the one before failed or
/// is slow; the first to answer wins and the others are dropped.
async fn race(addresses: Vec<SocketAddr>) -> io::Result<TcpStream> {
    let mut waiting = addresses.into_iter();
    let mut running: Vec<Pin<Box<dyn Future<Output = io::Result<TcpStream>> + Send>>> = Vec::new();
    let mut delay = Box::pin(tokio::time::sleep(Duration::ZERO));
    let mut last_error = io::Error::from(io::ErrorKind::AddrNotAvailable);
    poll_fn(|cx| {
        loop {
            let before = running.len();
            let mut index = 0;
            while index < running.len() {
                match running[index].as_mut().poll(cx) {
                    Poll::Ready(Ok(stream)) => return Poll::Ready(Ok(stream)),
                    Poll::Ready(Err(error)) => {
                        last_error = error;
                        drop(running.swap_remove(index));
                    }
                    Poll::Pending => index += 1,
                }
            }
            let failed = running.len() < before;
            if !failed && !running.is_empty() && delay.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            match waiting.next() {
                Some(address) => {
                    running.push(Box::pin(TcpStream::connect(address)));
                    delay.as_mut().reset(tokio::time::Instant::now() + ATTEMPT_DELAY);
                }
                None if running.is_empty() => return Poll::Ready(Err(take(&mut last_error))),
                None => return Poll::Pending,
            }
        }
    })
    .await
}

fn take(error: &mut io::Error) -> io::Error {
    std::mem::replace(error, io::ErrorKind::Other.into())
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Nested(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, buf),
            Self::Nested(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
            Self::Nested(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Nested(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Self::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Self::Nested(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::Tls(stream) => stream.is_write_vectored(),
            Self::Nested(stream) => stream.is_write_vectored(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_families_take_turns() {
        let parse = |text: &str| -> SocketAddr { text.parse().unwrap() };
        let (a, b, c) = (parse("[::1]:1"), parse("[::2]:1"), parse("[::3]:1"));
        let (x, y) = (parse("127.0.0.1:1"), parse("127.0.0.2:1"));
        assert_eq!(interleave(vec![a, b, c, x]), [a, x, b, c]);
        assert_eq!(interleave(vec![x, y, a]), [x, a, y]);
        assert_eq!(interleave(vec![]), []);
    }

    #[tokio::test]
    async fn a_refusing_address_does_not_prevent_using_a_reachable_address() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let good = listener.local_addr().unwrap();
        let closed = {
            let other = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            other.local_addr().unwrap()
        };
        let stream = race(vec![closed, good]).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), good);
        let error = race(vec![closed, closed]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }
}
