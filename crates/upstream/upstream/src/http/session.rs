//! Finds out that a session is over at the server, and checks this with a ping.
//!
//! The specification knows one way: 404. Servers of the SDKs and their examples also answer 400,
//! 401, 410, 500, or 200 with an error, JSON-RPC or not. A tool's own error may use the same words.
//! So answers other than 404 and 410 count only after the server refused a ping of the session,
//! too. After a failure without such words, the link pings by itself: a session in which no answer
//! of the server is MCP is over. All links over HTTP do so, shared or not.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use narthex_http_client::HttpResponse;
use narthex_wire::{Message, MessageKind, Raw, method, rpc};

use super::{HttpCall, HttpLink};
use crate::{Frame, LinkError};

/// Longest wait for the answer to the request that checks the session.
const CHECK_DEADLINE: Duration = Duration::from_secs(5);
/// Number of bytes of an answer that are searched for the words.
const WORDS_BYTES: usize = 4096;
/// The largest answer to the request that checks the session. A longer answer is no refusal.
const CHECK_BODY_BYTES: usize = 64 * 1024;

/// Words of servers about a session that they do not know. The word `session` must occur, too.
const WORDS: [&str; 20] = [
    "not found",
    "no valid",
    "invalid",
    "unknown",
    "expired",
    "terminated",
    "missing",
    "required",
    "does not exist",
    "doesn't exist",
    "no such",
    "not exist",
    "not recognized",
    "unrecognized",
    "closed",
    "ended",
    "gone",
    "no longer",
    "not active",
    "no session",
];
/// Words of servers that were started anew and have one session, which no client has opened. The
/// last words come from the Python SDK, which answers a ping all the same.
const UNINITIALIZED: [&str; 3] =
    ["not initialized", "not been initialized", "before initialization was complete"];

/// The hint of an answer about its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hint {
    /// The answer has no sign of a lost session.
    None,
    /// The session is over.
    Over,
    /// Words of a server that does not know the session, or of a tool.
    Words,
    /// A refusal without a reason: a lost session may be the cause.
    Unclear,
}

impl Hint {
    /// The hint of the answer to a POST within a session.
    pub(super) fn of(status: StatusCode, body: &[u8]) -> Self {
        match status {
            StatusCode::NOT_FOUND | StatusCode::GONE => Self::Over,
            _ if names_lost_session(body) => Self::Words,
            StatusCode::BAD_REQUEST | StatusCode::INTERNAL_SERVER_ERROR => Self::Unclear,
            _ => Self::None,
        }
    }
}

/// True if an error reads like an error of a server that does not know the session. Codes such as
/// `session_not_found` count like words.
pub(super) fn names_lost_session(body: &[u8]) -> bool {
    let start = start_of(body);
    let has = |word: &&str| start.contains(*word);
    (start.contains("session") && WORDS.iter().any(has)) || has_no_handshake(body)
}

/// True if an error reads like an error of a server that waits for a handshake.
fn has_no_handshake(body: &[u8]) -> bool {
    let start = start_of(body);
    UNINITIALIZED.iter().any(|word| start.contains(*word))
}

/// The start of a body, in small letters and with blanks between its words.
fn start_of(body: &[u8]) -> String {
    let start = String::from_utf8_lossy(&body[..body.len().min(WORDS_BYTES)]);
    start.to_ascii_lowercase().replace(['_', '-'], " ")
}

/// True if a body holds a result of JSON-RPC, alone or as an event. Words in a result are no
/// refusal.
fn is_result(body: &[u8]) -> bool {
    let start = body.trim_ascii_start();
    let json = match start.starts_with(b"{") {
        true => Some(start),
        false => start.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"data:")),
    };
    json.is_some_and(|json| Raw::new(json.trim_ascii()).get("result").is_some())
}

impl HttpLink {
    /// Checks an answer with words about a lost session. If the session is lost, ends the link and
    /// returns the error for a request that the server refused because of this.
    pub(super) async fn lost_session(&self, words: &[u8]) -> Option<LinkError> {
        let is_lost = match has_no_handshake(words) {
            // A ping needs no handshake.
            true => self.refuses(method::TOOLS_LIST, Refused::WithoutHandshake).await,
            false => self.refuses(method::PING, Refused::ByWords).await,
        };
        if is_lost { self.end_lost() } else { None }
    }

    /// Ends the link because the server does not know its session. `None` if the link was stopped
    /// before: the stop itself ends the session at the server.
    pub(super) fn end_lost(&self) -> Option<LinkError> {
        self.outlet.close(LinkError::SessionEnded);
        matches!(self.outlet.end(), LinkError::SessionEnded).then_some(LinkError::SessionEnded)
    }

    /// Notes the failure of a request in the session. If a lost session may be the cause, checks
    /// the session in the background. The server may have acted on the request, so the request
    /// stays failed. The next request waits for the check, and gets a new session if this session
    /// is over.
    pub(super) fn note_failure(self: &Arc<Self>, error: &LinkError) {
        if error.may_be_of_session() {
            self.check_session_later();
        }
    }

    /// As [`Self::note_failure`], for an answer: an error without an id may come from the server's
    /// transport, which does not know the session.
    pub(super) fn note_answer(self: &Arc<Self>, answer: &Message) {
        let is_nameless = answer.id().is_some_and(|id| id.as_bytes() == b"null");
        if is_nameless && answer.kind() == MessageKind::Error {
            self.check_session_later();
        }
    }

    fn check_session_later(self: &Arc<Self>) {
        let is_open = self.session().is_some() && !self.closed().is_cancelled();
        if !is_open || self.is_checking.swap(true, Ordering::AcqRel) {
            return;
        }
        let link = self.clone();
        self.tasks.spawn(async move {
            let is_lost = tokio::select! {
                biased;
                () = link.closed().cancelled() => false,
                is_lost = link.refuses_all() => is_lost,
            };
            if is_lost && link.end_lost().is_some() {
                tracing::info!("the server refuses everything in this session");
            }
            link.is_checking.store(false, Ordering::Release);
            link.checked.notify_waiters();
        });
    }

    /// True while a check of the session runs.
    pub(crate) fn is_checking(&self) -> bool {
        self.is_checking.load(Ordering::Acquire)
    }

    /// Waits for the check of the session that runs now.
    ///
    /// # Errors
    /// When the link has ended, by the check or before.
    pub(crate) async fn checked(&self) -> Result<(), LinkError> {
        loop {
            let done = self.checked.notified();
            tokio::pin!(done);
            done.as_mut().enable();
            if self.closed().is_cancelled() {
                return Err(self.outlet.end());
            }
            if !self.is_checking() {
                return Ok(());
            }
            tokio::select! {
                () = done => {}
                () = self.closed().cancelled() => {}
            }
        }
    }

    /// True if the server answers none of two harmless requests in the session. False if a request
    /// gets no answer in time, does not reach the server, or has its credential refused: this
    /// proves nothing.
    async fn refuses_all(self: &Arc<Self>) -> bool {
        for method in [method::PING, method::TOOLS_LIST] {
            let asked = tokio::time::timeout(CHECK_DEADLINE, self.is_answered(method)).await;
            match asked {
                Ok(Err(error)) if error.may_be_of_session() => {}
                Ok(Ok(false)) => {}
                Ok(Ok(true) | Err(_)) | Err(_) => return false,
            }
        }
        true
    }

    /// True if the server answers a request of narthex with a message for that request.
    async fn is_answered(self: &Arc<Self>, method: &str) -> Result<bool, LinkError> {
        let id = self.next_id();
        let body = rpc::request(Raw::new(id.to_string().as_bytes()), method, None);
        let answer = match Box::pin(self.try_call(id, body, HeaderMap::new())).await? {
            HttpCall::Single(answer) => answer,
            HttpCall::Stream(mut stream) => loop {
                if let Frame::Answer(answer) = stream.next().await? {
                    break Some(answer);
                }
            },
        };
        Ok(answer.and_then(|answer| answer.id()?.as_u64()) == Some(id))
    }

    /// True if the server refuses a harmless request in the session, by 404, by 410 or with words
    /// of this kind.
    async fn refuses(&self, method: &str, how: Refused) -> bool {
        let id = self.next_id().to_string();
        let body = rpc::request(Raw::new(id.as_bytes()), method, None);
        let asking = async {
            let response = self.post(body, HeaderMap::new()).await.ok()?;
            let HttpResponse { status, body, .. } = response;
            Some((status, body.collect(CHECK_BODY_BYTES).await.unwrap_or_default()))
        };
        let asked = tokio::time::timeout(CHECK_DEADLINE, asking).await;
        let Ok(Some((status, body))) = asked else { return false };
        status == StatusCode::NOT_FOUND || status == StatusCode::GONE || how.is(&body)
    }
}

/// The way in which a server refused a request.
#[derive(Debug, Clone, Copy)]
enum Refused {
    ByWords,
    WithoutHandshake,
}

impl Refused {
    fn is(self, body: &Bytes) -> bool {
        match self {
            Self::ByWords => names_lost_session(body),
            Self::WithoutHandshake => has_no_handshake(body) && !is_result(body),
        }
    }
}

impl LinkError {
    /// True if the cause may be a session that the server does not know any more.
    fn may_be_of_session(&self) -> bool {
        match self {
            // A server that names a time until it takes requests again knows the session.
            Self::Status { status, retry_after, .. } => *status != 429 && retry_after.is_none(),
            Self::Protocol(_) => true,
            Self::Client(error) => error.may_have_arrived(),
            Self::BrokenOff(error) => error.may_be_of_session(),
            // No check is needed for a session that is known to be over.
            Self::SessionEnded
            | Self::AuthRejected { .. }
            | Self::SignIn { .. }
            | Self::Closed(_)
            | Self::Unread(_)
            | Self::Cut(_)
            | Self::Refused { .. }
            | Self::Deadline(_)
            | Self::Request(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R-E45: narthex recognizes the words of SDK servers and example servers about a lost session,
    /// and no words of other refusals.
    #[test]
    fn r_e45_texts_of_servers_about_a_lost_session_are_recognized() {
        for words in [
            "Bad Request: No valid session ID provided",
            "Session not found",
            r#"{"error":"Session not found"}"#,
            "Session has been terminated",
            "Invalid session ID",
            "Invalid or missing session ID",
            "Bad Request: Missing session ID",
            "Bad Request: Mcp-Session-Id header is required",
            "Internal Server Error: unknown session",
            "Unauthorized: Session not found",
            "session expired",
            "Bad Request: Server not initialized",
            "Received request before initialization was complete",
            "No session for 5b0e",
            r#"{"error":"session_not_found"}"#,
            r#"{"code":"INVALID_SESSION"}"#,
            "session-expired",
        ] {
            assert!(names_lost_session(words.as_bytes()), "{words}");
        }
        for words in ["", "Bad Request", "Internal Server Error", "tool not found", "session"] {
            assert!(!names_lost_session(words.as_bytes()), "{words}");
        }
        // A list of tools may have such words in a tool's description.
        let text = "before initialization was complete";
        for (result, error) in [
            (r#"{"id":1,"result":"#, r#"{"id":1,"error":"#),
            ("event: message\r\ndata: {\"result\":", "id: 1\ndata:{\"error\":"),
        ] {
            let body = |start: &str| Bytes::from(format!("{start}{{\"m\":\"{text}\"}}}}\r\n\r\n"));
            assert!(!Refused::WithoutHandshake.is(&body(result)), "{result}");
            assert!(Refused::WithoutHandshake.is(&body(error)), "{error}");
        }
        let status = |code: u16| Hint::of(StatusCode::from_u16(code).unwrap(), b"no");
        assert_eq!([status(404), status(410)], [Hint::Over; 2]);
        assert_eq!([status(400), status(500)], [Hint::Unclear; 2]);
        assert_eq!([status(401), status(403), status(405), status(429)], [Hint::None; 4]);
        assert_eq!(Hint::of(StatusCode::UNAUTHORIZED, b"Session not found"), Hint::Words);
    }
}
