//! The ways in which servers report that a session is over, and the request that makes sure of it.
//!
//! The specification knows one way: 404. Servers of the SDKs and their examples also answer 400,
//! 401, 410, 500, or 200 with an error, JSON-RPC or not. A tool's own error may use the same words.
//! So all but 404 and 410 count only after the server refused a ping of the session, too.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use narthex_wire::{Raw, method, rpc};

use super::HttpLink;
use crate::{LinkError, client::HttpResponse};

/// Time for the answer to the request that makes sure.
const CHECK_DEADLINE: Duration = Duration::from_secs(5);
/// Bytes of an answer in which the words are looked for.
const WORDS_BYTES: usize = 4096;
/// The largest answer to the request that makes sure. A longer one is no refusal.
const CHECK_BODY_BYTES: usize = 64 * 1024;

/// Words of servers about a session that they do not know, besides the word `session`.
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
/// Words of servers that were started anew and hold one session, which no client has opened. The
/// last are those of the Python SDK, which answers a ping all the same.
const UNINITIALIZED: [&str; 3] =
    ["not initialized", "not been initialized", "before initialization was complete"];

/// The hint of an answer about its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hint {
    /// Nothing.
    None,
    /// The session is over.
    Over,
    /// The words of a server that does not know the session; or of a tool.
    Words,
    /// A refusal without a reason: the session may be the reason.
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

/// True if an error reads as that of a server that does not know a session.
pub(super) fn names_lost_session(body: &[u8]) -> bool {
    let start = start_of(body);
    let has = |word: &&str| start.contains(*word);
    (start.contains("session") && WORDS.iter().any(has)) || has_no_handshake(body)
}

/// True if an error reads as that of a server that waits for a handshake.
fn has_no_handshake(body: &[u8]) -> bool {
    let start = start_of(body);
    UNINITIALIZED.iter().any(|word| start.contains(*word))
}

/// The start of a body, in small letters.
fn start_of(body: &[u8]) -> String {
    String::from_utf8_lossy(&body[..body.len().min(WORDS_BYTES)]).to_ascii_lowercase()
}

/// True if a body holds a result of JSON-RPC, alone or as an event: its words are no refusal.
fn is_result(body: &[u8]) -> bool {
    let start = body.trim_ascii_start();
    let json = match start.starts_with(b"{") {
        true => Some(start),
        false => start.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"data:")),
    };
    json.is_some_and(|json| Raw::new(json.trim_ascii()).get("result").is_some())
}

impl HttpLink {
    /// Makes sure of words about a lost session. If it is lost, this ends the link and gives the
    /// error of a request that the server refused because of it.
    pub(super) async fn lost_session(&self, words: &[u8]) -> Option<LinkError> {
        let is_lost = match has_no_handshake(words) {
            // A ping needs no handshake.
            true => self.refuses(method::TOOLS_LIST, Refused::WithoutHandshake).await,
            false => self.refuses(method::PING, Refused::ByWords).await,
        };
        if is_lost { self.end_lost() } else { None }
    }

    /// Ends the link because the server does not know its session. `None` if it was stopped before:
    /// then the link has given the session back itself.
    pub(super) fn end_lost(&self) -> Option<LinkError> {
        self.outlet.close(LinkError::SessionEnded);
        matches!(self.outlet.end(), LinkError::SessionEnded).then_some(LinkError::SessionEnded)
    }

    /// Checks if the session is the reason why a server refused a request without one. That request
    /// may have been acted on, so it stays failed; the next one gets a new session.
    pub(super) fn check_session_later(self: &std::sync::Arc<Self>, status: StatusCode) {
        if self.is_checking.swap(true, std::sync::atomic::Ordering::AcqRel) {
            return;
        }
        let link = self.clone();
        self.tasks.spawn(async move {
            let checking = link.refuses(method::TOOLS_LIST, Refused::ByStatus(status));
            let is_lost = tokio::select! {
                biased;
                () = link.closed().cancelled() => false,
                is_lost = checking => is_lost,
            };
            link.is_checking.store(false, std::sync::atomic::Ordering::Release);
            if is_lost && link.end_lost().is_some() {
                tracing::info!(%status, "the server refuses everything in this session");
            }
        });
    }

    /// True if the server refuses a harmless request within the session as it refused another one.
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
        status == StatusCode::NOT_FOUND || status == StatusCode::GONE || how.is(status, &body)
    }
}

/// The way in which a server refused a request.
#[derive(Debug, Clone, Copy)]
enum Refused {
    ByWords,
    WithoutHandshake,
    ByStatus(StatusCode),
}

impl Refused {
    fn is(self, status: StatusCode, body: &Bytes) -> bool {
        match self {
            Self::ByWords => names_lost_session(body),
            Self::WithoutHandshake => has_no_handshake(body) && !is_result(body),
            Self::ByStatus(refused) => status == refused,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R-E45: the words that servers of the SDKs and examples use, and none of other refusals.
    #[test]
    fn r_e45_the_words_of_servers_about_a_lost_session_are_known() {
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
        ] {
            assert!(names_lost_session(words.as_bytes()), "{words}");
        }
        for words in ["", "Bad Request", "Internal Server Error", "tool not found", "session"] {
            assert!(!names_lost_session(words.as_bytes()), "{words}");
        }
        // A list of tools may have such words in a description.
        let text = "before initialization was complete";
        for (result, error) in [
            (r#"{"id":1,"result":"#, r#"{"id":1,"error":"#),
            ("event: message\r\ndata: {\"result\":", "id: 1\ndata:{\"error\":"),
        ] {
            let body = |start: &str| Bytes::from(format!("{start}{{\"m\":\"{text}\"}}}}\r\n\r\n"));
            assert!(!Refused::WithoutHandshake.is(StatusCode::OK, &body(result)), "{result}");
            assert!(Refused::WithoutHandshake.is(StatusCode::OK, &body(error)), "{error}");
        }
        let status = |code: u16| Hint::of(StatusCode::from_u16(code).unwrap(), b"no");
        assert_eq!([status(404), status(410)], [Hint::Over; 2]);
        assert_eq!([status(400), status(500)], [Hint::Unclear; 2]);
        assert_eq!([status(401), status(403), status(405), status(429)], [Hint::None; 4]);
        assert_eq!(Hint::of(StatusCode::UNAUTHORIZED, b"Session not found"), Hint::Words);
    }
}
