//! Makes a canary of every secret that a test sets: what is answered from then on is searched for
//! its value.
//!
//! Kept by the thread, which each test has for itself: one test's secret may be another's text.

use std::cell::{Cell, RefCell};

use serde_json::Value;

use crate::{
    canary::{Canary, Everything},
    contract::Seen,
};

/// Shorter values may well appear for another reason.
const SHORTEST: usize = 8;
/// Number of characters of a value that are searched for.
const LONGEST: usize = 200;
/// The members that report values of secrets, once, to the creator of a run.
const TOLD_TO_CREATORS: &[&str] = &["agent_env", "resolved_mcp_servers"];
/// The member that reports values of secrets to the process that claims a run in direct mode.
const TOLD_TO_CLAIMERS: &[&str] = &["resolved_mcp_servers"];

thread_local! {
    static PLANTED: RefCell<Vec<Canary>> = const { RefCell::new(Vec::new()) };
    static NEXT_CLAIM_TELLS: Cell<bool> = const { Cell::new(false) };
}

/// Lets one answer reveal values: the next one to a claim of a run, in `resolved_mcp_servers`
/// alone.
/// For a test that asks for direct mode; the answer after it is searched as any other.
pub fn lets_next_claim_tell() {
    NEXT_CLAIM_TELLS.set(true);
}

/// Remembers the value of a secret that is about to be set.
pub fn remember(value: &str) {
    // The beginning of a long value is enough: it would appear with the rest.
    let value: String = value.trim_end().chars().take(LONGEST).collect();
    PLANTED.with_borrow_mut(|planted| {
        if value.len() >= SHORTEST && planted.iter().all(|known| known.value != value) {
            planted.push(Canary::of("a secret that this test has set", &value));
        }
    });
}

/// Takes out a value that the test's own agent holds and sends: a server may send it back.
pub fn is_told(value: &str) {
    PLANTED.with_borrow_mut(|planted| planted.retain(|known| known.value != value));
}

/// Remembers the value in a request, if it sets a secret.
pub fn sent(method: &http::Method, path: &str, body: &[u8]) {
    if method != http::Method::PUT || !path.contains("/secrets/") {
        return;
    }
    let body: Option<Value> = serde_json::from_slice(body).ok();
    if let Some(value) = body.as_ref().and_then(|body| body["value"].as_str()) {
        remember(value);
    }
}

/// Checks that an answer has no value that was remembered.
///
/// # Panics
/// When it has one.
#[track_caller]
pub fn answered(seen: Seen<'_>) {
    let what = format!("{} {}", seen.method, seen.path);
    let body = seen.body.unwrap_or_default();
    let telling = telling(seen);
    match serde_json::from_slice::<Value>(body).ok().filter(|_| !telling.is_empty()) {
        Some(mut begun) => {
            if let Some(members) = begun.as_object_mut() {
                members.retain(|name, _| !telling.contains(&name.as_str()));
            }
            said(&what, begun.to_string().as_bytes());
        }
        None => said(&what, body),
    }
    for (name, value) in seen.headers {
        said(&format!("the header {name} of {what}"), value.as_bytes());
    }
}

/// The members of an answer that may reveal values.
fn telling(seen: Seen<'_>) -> &'static [&'static str] {
    let has_segment = |last: &str| seen.method == http::Method::POST && seen.path.ends_with(last);
    // The head of an answer may be checked before its body is there.
    if has_segment("/claim") && seen.body.is_some() && NEXT_CLAIM_TELLS.take() {
        return TOLD_TO_CLAIMERS;
    }
    if has_segment("/runs") { TOLD_TO_CREATORS } else { &[] }
}

/// Checks that a reported text has no remembered value.
///
/// # Panics
/// When it has one.
#[track_caller]
pub fn said(what: &str, bytes: &[u8]) {
    PLANTED.with_borrow(|planted| {
        if planted.is_empty() || bytes.is_empty() {
            return;
        }
        let mut everything = Everything::default();
        everything.note(what, bytes);
        let leaks = everything.leaks(planted);
        assert!(leaks.is_empty(), "{leaks:?}: {}", String::from_utf8_lossy(bytes));
    });
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use http::{HeaderMap, Method, StatusCode};

    use super::*;

    fn answers(method: &Method, path: &str, header: &str, body: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert("x", header.parse().unwrap());
        let (status, body) = (StatusCode::OK, Some(body.as_bytes()));
        catch_unwind(|| answered(Seen { method, path, status, headers: &headers, body })).is_ok()
    }

    /// S27: a value that was set is found in bodies and headers, but for the members that may
    /// reveal it.
    #[test]
    fn s27_a_secret_that_was_set_is_found() {
        let secret = "quite\"secret";
        let quoted = Value::from(secret).to_string();
        let get = |header: &str, body: &str| answers(&Method::GET, "/api/x", header, body);
        assert!(get("", &quoted), "no test has planted it yet");
        let body = format!("{{\"value\": {quoted}}}");
        sent(&Method::GET, "/api/workspaces/default/secrets/A", body.as_bytes());
        assert!(get("", &quoted), "this sets nothing");
        sent(&Method::PUT, "/api/workspaces/default/secrets/A", body.as_bytes());
        assert!(!get("", &quoted) && !get("quite%22secret", "") && get("quite", "secret"));
        for member in TOLD_TO_CREATORS {
            let told = format!("{{\"{member}\": {{\"A\": {quoted}}}}}");
            let runs = "/api/workspaces/default/runs";
            assert!(answers(&Method::POST, runs, "", &told) && !get("", &told), "{told}");
        }
        let claim = "/api/workspaces/default/runs/run_0/claim";
        let claimed = |member: &str| {
            let told = format!("{{\"{member}\": {{\"A\": {quoted}}}}}");
            answers(&Method::POST, claim, "", &told)
        };
        assert!(!claimed("resolved_mcp_servers"), "no test has asked for direct mode");
        lets_next_claim_tell();
        assert!(claimed("resolved_mcp_servers") && !claimed("resolved_mcp_servers"), "once");
        lets_next_claim_tell();
        assert!(!claimed("agent_env"), "another member tells nothing");
        sent(&Method::PUT, "/api/workspaces/default/secrets/B", b"{\"value\": \"short\"}");
        assert!(get("", "short"));
    }
}
