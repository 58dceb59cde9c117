//! One HTTP/1.1 connection that is driven by the task which uses it.
//!
//! Without a task of its own an exchange costs no wake-up across tasks, so that what is measured
//! is the other side.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use anyhow::Context as _;
use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

type Driver = http1::Connection<TokioIo<TcpStream>, Full<Bytes>>;

pub(super) struct Connection {
    sender: http1::SendRequest<Full<Bytes>>,
    /// `None` once the connection has ended.
    driver: Option<Pin<Box<Driver>>>,
}

/// The outcome of a request.
pub(super) enum Exchanged {
    Answered(Response<Vec<Bytes>>),
    /// The other side had closed the connection and has not seen the request.
    Unsent,
    Failed(hyper::Error),
}

impl Connection {
    pub(super) async fn open(url: &Uri) -> anyhow::Result<Self> {
        let authority = url.authority().context("the URL has no host")?;
        let stream = TcpStream::connect(authority.as_str()).await;
        let stream = stream.with_context(|| format!("cannot connect to {authority}"))?;
        stream.set_nodelay(true)?;
        let (sender, driver) = http1::handshake(TokioIo::new(stream)).await?;
        Ok(Self { sender, driver: Some(Box::pin(driver)) })
    }

    /// Closes it at once.
    pub(super) fn close(&mut self) {
        self.driver = None;
    }

    /// Sends a request and reads its whole answer.
    pub(super) async fn exchange(&mut self, request: Request<Full<Bytes>>) -> Exchanged {
        let response = match self.start(request).await {
            Ok(response) => response,
            Err(error) if error.is_canceled() => return Exchanged::Unsent,
            Err(error) => return Exchanged::Failed(error),
        };
        let (parts, mut body) = response.into_parts();
        let mut pieces = Vec::new();
        loop {
            match drive(&mut self.driver, body.frame()).await {
                None => return Exchanged::Answered(Response::from_parts(parts, pieces)),
                Some(Ok(frame)) => pieces.extend(frame.into_data()),
                Some(Err(error)) => return Exchanged::Failed(error),
            }
        }
    }

    /// Sends a request and leaves its body to come.
    pub(super) async fn start(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, hyper::Error> {
        let Self { sender, driver } = self;
        drive(driver, sender.ready()).await?;
        let sent = sender.send_request(request);
        drive(driver, sent).await
    }
}

/// Completes a future that needs its connection to move on.
async fn drive<F: Future>(driver: &mut Option<Pin<Box<Driver>>>, future: F) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|cx| {
        if let ready @ Poll::Ready(_) = future.as_mut().poll(cx) {
            return ready;
        }
        move_on(driver, cx);
        future.as_mut().poll(cx)
    })
    .await
}

fn move_on(driver: &mut Option<Pin<Box<Driver>>>, cx: &mut Context<'_>) {
    let is_over = driver.as_mut().is_some_and(|driver| driver.as_mut().poll(cx).is_ready());
    if is_over {
        // The drop reports the end, and its reason, to the waiting request.
        *driver = None;
    }
}
