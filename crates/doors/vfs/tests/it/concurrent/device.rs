//! A server that answers after it was looked at a few times, that can crash and come back, and that
//! counts what is under way.

use std::{
    cell::RefCell,
    pin::Pin,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use narthex_vfs::{Answer, Code, Device, Failure, Kind};
use tokio_util::sync::CancellationToken;

thread_local! {
    /// The requests and answers of servers on this thread since the last look.
    static SEEN: RefCell<Seen> = RefCell::default();
}

#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// True if a server was asked.
    pub(crate) is_asked: bool,
    /// The last answer of a server.
    pub(crate) answered: Option<Vec<u8>>,
}

impl Seen {
    pub(crate) fn take() -> Self {
        SEEN.take()
    }
}

/// One server. Each of its answers is unlike every other answer of any server.
#[derive(Debug)]
pub(crate) struct Tagged {
    number: usize,
    /// True if the server leaves some requests without an answer.
    does_hang: bool,
    asked: AtomicU64,
    under_way: AtomicUsize,
    life: Mutex<Life>,
}

#[derive(Debug, Default)]
struct Life {
    is_down: bool,
    /// Cuts off what is under way.
    cut: CancellationToken,
}

impl Tagged {
    pub(crate) fn new(number: usize, does_hang: bool) -> Self {
        let (asked, under_way) = (AtomicU64::new(0), AtomicUsize::new(0));
        Self { number, does_hang, asked, under_way, life: Mutex::default() }
    }

    /// From here on it is gone; what is under way fails.
    pub(crate) fn crash(&self) {
        let mut life = self.life();
        life.is_down = true;
        life.cut.cancel();
    }

    pub(crate) fn come_back(&self) {
        *self.life() = Life::default();
    }

    pub(crate) fn under_way(&self) -> usize {
        self.under_way.load(Ordering::SeqCst)
    }

    fn life(&self) -> MutexGuard<'_, Life> {
        self.life.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, text: String) -> Answer<'_> {
        Box::pin(async move {
            let _under_way = UnderWay::new(&self.under_way);
            SEEN.with_borrow_mut(|seen| seen.is_asked = true);
            let asked = self.asked.fetch_add(1, Ordering::SeqCst);
            let cut = {
                let life = self.life();
                if life.is_down {
                    return Err(gone(Code::DeviceDisconnected));
                }
                life.cut.clone()
            };
            let looks = match asked % 23 {
                5 if self.does_hang => u64::MAX,
                _ => (asked * 7 + self.number as u64) % 5,
            };
            tokio::select! {
                biased;
                () = cut.cancelled() => Err(gone(Code::ServiceUnavailable)),
                () = Looks(looks) => {
                    let answer = format!("server {} answer {asked} {text}", self.number);
                    SEEN.with_borrow_mut(|seen| seen.answered = Some(answer.clone().into()));
                    Ok(Bytes::from(answer))
                }
            }
        })
    }
}

fn gone(code: Code) -> Failure {
    Failure::new(code, "transport_error", "the server is gone")
}

/// Is ready once it was looked at so often.
struct Looks(u64);

impl Future for Looks {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<()> {
        match self.0.checked_sub(1) {
            None => Poll::Ready(()),
            Some(left) => {
                self.0 = left;
                Poll::Pending
            }
        }
    }
}

struct UnderWay<'a>(&'a AtomicUsize);

impl<'a> UnderWay<'a> {
    fn new(counter: &'a AtomicUsize) -> Self {
        counter.fetch_add(1, Ordering::SeqCst);
        Self(counter)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Device for Tagged {
    /// A list needs the form of one; its only name tells it from others.
    fn list(&self, kind: Kind) -> Answer<'_> {
        Box::pin(async move {
            let answer = self.answer(kind.as_str().to_owned()).await?;
            let name = String::from_utf8_lossy(&answer).into_owned();
            let key = if kind == Kind::Resources { "uri" } else { "name" };
            let list = serde_json::json!({ kind.as_str(): [{ key: name }] }).to_string();
            SEEN.with_borrow_mut(|seen| seen.answered = Some(list.clone().into()));
            Ok(Bytes::from(list))
        })
    }

    fn call<'a>(&'a self, tool: &'a str, arguments: Bytes) -> Answer<'a> {
        self.answer(format!("{tool} {}", String::from_utf8_lossy(&arguments)))
    }

    fn read<'a>(&'a self, uri: &'a str) -> Answer<'a> {
        self.answer(uri.to_owned())
    }

    fn prompt<'a>(&'a self, name: &'a str, arguments: Bytes) -> Answer<'a> {
        self.answer(format!("{name} {}", String::from_utf8_lossy(&arguments)))
    }

    fn status(&self) -> Answer<'_> {
        self.answer("status".to_owned())
    }

    fn logs(&self) -> Answer<'_> {
        self.answer("logs".to_owned())
    }
}
