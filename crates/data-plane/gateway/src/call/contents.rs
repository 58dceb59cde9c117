//! The contents of a call for the audit: their beginning, without secrets (X-M64).
//!
//! Only calls of clients are recorded here. Acts in the control plane, such as setting a secret,
//! have a record without contents.

use std::{borrow::Cow, ops::Range, sync::Arc};

use bytes::Bytes;
use narthex_audit::{AuditSlot, EXCERPT_BYTES, Excerpt};
use narthex_wire::{Era, Message, Payload, REDACTED, Raw, Redactor};

use crate::{RunView, refusal::Refusal};

/// Prefixes of tokens of runs and services. Other places store only hashes of these tokens.
const TOKENS: [&[u8; 4]; 3] = [b"nxt_", b"nxs_", b"nxc_"];
/// Least number of characters of a token after its prefix.
const TOKEN_MIN: usize = 32;
/// Most characters of a token after its prefix.
const TOKEN_MAX: usize = 128;

/// State for recording the contents of a call, from its beginning to its end.
#[derive(Debug)]
pub(crate) struct Keeping {
    pub(super) run: Arc<RunView>,
    pub(super) redactor: Arc<Redactor>,
    pub(super) id: Bytes,
    pub(super) era: Era,
}

impl Keeping {
    /// Puts the request's params into its record.
    pub(crate) fn asked(&self, request: &Message, slot: &mut AuditSlot) {
        if let Some(params) = request.body_raw() {
            slot.keep_request(excerpt(&self.redactor, &[params.as_bytes()]));
        }
    }

    /// Puts the answer into the call's record.
    pub(crate) fn answered(&self, answer: &Payload, slot: &mut AuditSlot) {
        let pieces: Vec<_> = answer.pieces().map(|piece| &**piece).collect();
        slot.keep_answer(excerpt(&self.redactor, &pieces));
    }

    /// Puts the gateway's own answer into the call's record.
    pub(crate) fn refused(&self, refusal: &Refusal, method: &str, slot: &mut AuditSlot) {
        let to = (self.era, self.run.reader());
        let mut answering = refusal.clone().into_answering(Raw::new(&self.id), method, to);
        if let Some(answer) = answering.take_answer() {
            self.answered(&answer.payload, slot);
        }
    }

    /// Removes the contents from the record if the workspace has turned this off meanwhile.
    pub(crate) fn end(&self, slot: &mut AuditSlot) {
        if !self.run.contents.are_kept() {
            slot.forget_contents();
        }
    }
}

/// The beginning of a JSON text, without secrets. The rest is not copied.
fn excerpt(redactor: &Redactor, pieces: &[&[u8]]) -> Excerpt {
    let bytes = pieces.iter().map(|piece| piece.len()).sum();
    // The text beyond the cut is needed to find a secret that lies across the cut.
    let more = redactor.longest().max(TOKEN_MAX);
    let room = EXCERPT_BYTES + more;
    let mut start = Vec::with_capacity(room.min(bytes));
    for piece in pieces {
        start.extend_from_slice(&piece[..piece.len().min(room - start.len())]);
    }
    let is_part = start.len() < bytes;
    let start = String::from_utf8_lossy(&start);
    let without_values = redactor.text(&start);
    let clean = without_tokens(&without_values);
    let is_redacted = clean.len() != start.len() || *clean != *start;
    let mut clean = clean.into_owned();
    if is_part {
        // The rest may end with the beginning of a secret.
        clean.truncate(clean.floor_char_boundary(clean.len().saturating_sub(more)));
    }
    let excerpt = Excerpt::new(clean, bytes, is_part).redacted(is_redacted);
    let is_secret = |piece: &&[u8]| redactor.is_in(piece) || token_in(piece).is_some();
    match excerpt.is_cut() && !pieces.iter().any(is_secret) {
        true => excerpt.with_digest(pieces.iter().copied()),
        false => excerpt,
    }
}

fn without_tokens(text: &str) -> Cow<'_, str> {
    if token_in(text.as_bytes()).is_none() {
        return Cow::Borrowed(text);
    }
    let (mut clean, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(token) = token_in(rest.as_bytes()) {
        clean.push_str(&rest[..token.start]);
        clean.push_str(REDACTED);
        rest = &rest[token.end..];
    }
    clean.push_str(rest);
    Cow::Owned(clean)
}

/// The place of the first text that looks like a token.
fn token_in(text: &[u8]) -> Option<Range<usize>> {
    let is_of_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
    let mut begins = text.windows(4).enumerate();
    begins.find_map(|(start, prefix)| {
        if !TOKENS.iter().any(|token| *token == prefix) {
            return None;
        }
        let rest = &text[start + prefix.len()..];
        let length = rest.iter().take_while(|byte| is_of_token(byte)).count();
        (length >= TOKEN_MIN).then(|| start..start + prefix.len() + length)
    })
}

#[cfg(test)]
mod tests;
