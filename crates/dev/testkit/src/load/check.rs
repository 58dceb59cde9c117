//! Checks that an answer is the right one.
//!
//! The first answer of a connection is read as JSON and becomes a template: later ones must be the
//! same bytes but for the call's id, which is in the content too. A different answer is read as
//! JSON again. So every byte of every answer is checked, at the cost of a comparison.

use anyhow::{Context as _, bail, ensure};
use bytes::Bytes;
use http::Response;
use http::header::CONTENT_TYPE;
use serde_json::Value;

use super::script::{Work, message};
use super::sse;

/// Checks the answers of one connection.
pub(super) struct Checker {
    work: Work,
    template: Option<Template>,
}

/// Why an answer does not count.
#[derive(Debug)]
pub(super) enum Fault {
    /// The HTTP status is that of a failure.
    Failed(String),
    Wrong(String),
    /// The answer is right, and there are further ones.
    Doubled(String),
}

/// A right answer, and where in it the digits of the id are.
struct Template {
    bytes: Vec<u8>,
    holes: Vec<usize>,
    digits: usize,
}

impl Checker {
    pub(super) fn new(work: Work) -> Self {
        Self { work, template: None }
    }

    pub(super) fn check(&mut self, answer: &Response<Vec<Bytes>>, id: u64) -> Result<(), Fault> {
        let pieces = answer.body();
        if !answer.status().is_success() {
            let text = String::from_utf8_lossy(&pieces.concat()).into_owned();
            return Err(Fault::Failed(format!("{}: {}", answer.status(), shortened(&text))));
        }
        let fits = |template: &Template| template.fits(pieces, &id.to_string());
        if self.template.as_ref().is_some_and(fits) {
            return Ok(());
        }
        let body = pieces.concat();
        let is_stream = answer
            .headers()
            .get(CONTENT_TYPE)
            .is_some_and(|value| value.as_bytes().starts_with(b"text/event-stream"));
        let faulty = |error: anyhow::Error| {
            let text = String::from_utf8_lossy(&body);
            Fault::Wrong(format!("{error:#}: {}", shortened(&text)))
        };
        if is_stream {
            let text = std::str::from_utf8(&body).map_err(|error| faulty(error.into()))?;
            let messages = self.read_stream(text, id).map_err(faulty)?;
            return match messages {
                1 => Ok(()),
                _ => Err(Fault::Doubled(format!("{messages} answers to {id}"))),
            };
        }
        self.read(&body, id).map_err(faulty)?;
        self.template = Some(Template::new(body, &id.to_string()));
        Ok(())
    }

    /// Reads a stream of progress and the answer; returns how many right answers there are.
    fn read_stream(&self, text: &str, id: u64) -> anyhow::Result<usize> {
        let (mut steps, mut answers) = (0, 0);
        for data in sse::data(text) {
            let message: Value = serde_json::from_str(&data).context("an event is no JSON")?;
            if message.get("method").is_none() {
                self.read(data.as_bytes(), id)?;
                answers += 1;
                continue;
            }
            ensure!(message["method"] == "notifications/progress", "an unexpected {message}");
            let params = &message["params"];
            ensure!(params["progressToken"] == id, "progress of another call: {message}");
            steps += 1;
            ensure!(params["progress"].as_u64() == Some(steps), "out of order: {message}");
            ensure!(answers == 0, "progress after the answer: {message}");
        }
        let expected = if let Work::Progress(count) = self.work { count as u64 } else { 0 };
        ensure!(steps == expected, "{steps} of {expected} steps");
        ensure!(answers > 0, "no answer");
        Ok(answers)
    }

    fn read(&self, body: &[u8], id: u64) -> anyhow::Result<()> {
        let answer: Value = serde_json::from_slice(body).context("no JSON")?;
        ensure!(answer["id"] == id, "the id is not {id}");
        let result = &answer["result"];
        ensure!(result.is_object() && result["isError"] != true, "no good result");
        let text = result["content"][0]["text"].as_str();
        match self.work {
            Work::Echo => ensure!(text == Some(&message(id)), "another text"),
            Work::Blob(bytes) => {
                let is_whole = text.is_some_and(|text| is_blob(text.as_bytes(), bytes));
                ensure!(is_whole, "not the blob");
            }
            Work::Progress(_) => ensure!(text.is_some(), "no text"),
            Work::List(count) => {
                let Some(tools) = result["tools"].as_array() else { bail!("no list of tools") };
                let found = tools.len();
                ensure!(found == count, "{found} tools, not {count}");
                ensure!(result.get("nextCursor").is_none(), "not the whole list");
            }
        }
        Ok(())
    }
}

fn is_blob(text: &[u8], bytes: usize) -> bool {
    let pattern = b"0123456789abcdef";
    text.len() == bytes && text.chunks(pattern.len()).all(|piece| pattern.starts_with(piece))
}

fn shortened(text: &str) -> String {
    text.chars().take(300).collect()
}

impl Template {
    fn new(bytes: Vec<u8>, id: &str) -> Self {
        let mut holes = Vec::new();
        let mut at = 0;
        while let Some(found) = find(&bytes[at..], id.as_bytes()) {
            holes.push(at + found);
            at += found + id.len();
        }
        Self { bytes, holes, digits: id.len() }
    }

    /// True if these pieces are the template with another id.
    fn fits(&self, pieces: &[Bytes], id: &str) -> bool {
        let length: usize = pieces.iter().map(Bytes::len).sum();
        if length != self.bytes.len() || id.len() != self.digits {
            return false;
        }
        let mut holes = self.holes.iter().map(|hole| (*hole, id.as_bytes()));
        let mut next = holes.next();
        // The next expected part: bytes of the template up to a hole, then the id in it.
        let mut at = 0;
        for piece in pieces {
            let mut piece = &piece[..];
            while !piece.is_empty() {
                let expected = match next {
                    Some((hole, id)) if at >= hole => &id[at - hole..],
                    Some((hole, _)) => &self.bytes[at..hole],
                    None => &self.bytes[at..],
                };
                let length = expected.len().min(piece.len());
                if piece[..length] != expected[..length] {
                    return false;
                }
                at += length;
                piece = &piece[length..];
                if next.is_some_and(|(hole, id)| at == hole + id.len()) {
                    next = holes.next();
                }
            }
        }
        true
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    // Ids begin with the same digit, which is rare in what else there is.
    let first = *wanted.first()?;
    let mut from = 0;
    while let Some(found) = bytes[from..].iter().position(|byte| *byte == first) {
        let at = from + found;
        if bytes[at..].starts_with(wanted) {
            return Some(at);
        }
        from = at + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(kind: &str, pieces: &[&str]) -> Response<Vec<Bytes>> {
        let pieces = pieces.iter().map(|piece| Bytes::copy_from_slice(piece.as_bytes()));
        let response = Response::builder().header(CONTENT_TYPE, kind);
        response.body(pieces.collect()).unwrap()
    }

    fn echo(id: u64, said: u64) -> String {
        let text = message(said);
        format!(r#"{{"id":{id},"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#)
    }

    #[test]
    fn an_echo_must_have_its_own_id_and_text() {
        let mut checker = Checker::new(Work::Echo);
        let json = |text: &str| answer("application/json", &[text]);
        checker.check(&json(&echo(1001, 1001)), 1001).unwrap();
        let whole = echo(1002, 1002);
        for at in 0..whole.len() {
            let (first, second) = whole.split_at(at);
            let pieces = answer("application/json", &[first, second]);
            assert!(checker.template.as_ref().unwrap().fits(pieces.body(), "1002"), "{at}");
        }
        for (id, said) in [(1001, 1003), (1003, 1001), (1002, 1002)] {
            let fault = checker.check(&json(&echo(id, said)), 1003).unwrap_err();
            assert!(matches!(fault, Fault::Wrong(_)), "{fault:?}");
        }
        // Other bytes of the same meaning are right.
        checker.check(&json(&format!("{} ", echo(1004, 1004))), 1004).unwrap();
    }

    #[test]
    fn progress_must_be_complete_and_in_order() {
        let step = |n: u64| {
            let params = format!(r#"{{"progressToken":7,"progress":{n},"total":2}}"#);
            format!("data: {{\"method\":\"notifications/progress\",\"params\":{params}}}\n\n")
        };
        let end = format!("data: {}\n\n", echo(7, 7));
        let mut checker = Checker::new(Work::Progress(2));
        let mut check = |text: &str| checker.check(&answer("text/event-stream", &[text]), 7);
        check(&[step(1), step(2), end.clone()].concat()).unwrap();
        let twice = [step(1), step(2), end.clone(), end.clone()].concat();
        assert!(matches!(check(&twice), Err(Fault::Doubled(_))));
        for wrong in [
            vec![step(2), step(1), end.clone()],
            vec![step(1), end.clone()],
            vec![step(1), end.clone(), step(2)],
            vec![step(1), step(2)],
        ] {
            assert!(matches!(check(&wrong.concat()), Err(Fault::Wrong(_))), "{wrong:?}");
        }
    }

    #[test]
    fn a_blob_must_be_whole() {
        assert!(is_blob(b"0123456789abcdef01", 18));
        assert!(!is_blob(b"0123456789abcdef01", 17));
        assert!(!is_blob(b"0123456789abcdeX01", 18));
    }
}
