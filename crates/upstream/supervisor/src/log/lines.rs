//! Cuts a stream of bytes into lines of limited length.
//!
//! Redaction must see a whole secret, also one that crosses the limit. So a little more than the
//! limit of a long line is stored, redacted, and only then shortened.

use crate::Redact;

/// A secret up to this length that lies across the cut is still found by redaction.
const BEYOND_CUT: usize = 4 * 1024;

/// The lines of one stream.
pub(super) struct Lines {
    pending: Vec<u8>,
    /// Number of dropped bytes of the pending line.
    dropped: u64,
    limit: usize,
}

impl Lines {
    pub(super) fn new(limit: usize) -> Self {
        Self { pending: Vec::new(), dropped: 0, limit }
    }

    pub(super) fn push(&mut self, mut bytes: &[u8], mut emit: impl FnMut(Line<'_>)) {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.extend(&bytes[..end]);
            self.emit(&mut emit);
            bytes = &bytes[end + 1..];
        }
        self.extend(bytes);
    }

    /// Gives out a last line that has no line feed.
    pub(super) fn finish(mut self, mut emit: impl FnMut(Line<'_>)) {
        if !self.pending.is_empty() {
            self.emit(&mut emit);
        }
    }

    fn extend(&mut self, bytes: &[u8]) {
        let room = self.limit.saturating_add(BEYOND_CUT).saturating_sub(self.pending.len());
        let (kept, dropped) = bytes.split_at(room.min(bytes.len()));
        self.pending.extend_from_slice(kept);
        self.dropped += dropped.len() as u64;
    }

    fn emit(&mut self, emit: &mut impl FnMut(Line<'_>)) {
        let bytes = self.pending.strip_suffix(b"\r").unwrap_or(&self.pending);
        emit(Line { bytes, dropped: self.dropped, limit: self.limit });
        self.pending.clear();
        self.dropped = 0;
        // A huge line must not hold its memory for the child's whole life.
        self.pending.shrink_to(BEYOND_CUT);
    }
}

/// A line, not yet redacted nor shortened.
pub(super) struct Line<'stream> {
    bytes: &'stream [u8],
    dropped: u64,
    limit: usize,
}

impl Line<'_> {
    pub(super) fn is_cut(&self) -> bool {
        self.dropped > 0 || self.bytes.len() > self.limit
    }

    /// The line as text: invalid UTF-8 replaced, redacted, cut with a marker.
    pub(super) fn finish(&self, redact: Option<&Redact>) -> String {
        let text = String::from_utf8_lossy(self.bytes);
        let mut text = match redact {
            Some(redact) => redact(&text).into_owned(),
            None => text.into_owned(),
        };
        if self.is_cut() {
            let end = text.floor_char_boundary(self.cut_at(text.len()));
            let lost = self.dropped + (text.len() - end) as u64;
            text.truncate(end);
            text.push_str(&format!(" […{lost} bytes cut]"));
        }
        text
    }

    /// Redaction changes lengths. Whatever it did, the end of a line that lost bytes is not shown,
    /// because it may be the beginning of a secret.
    fn cut_at(&self, len: usize) -> usize {
        let shown = if self.dropped > 0 { len.saturating_sub(BEYOND_CUT) } else { len };
        self.limit.min(shown)
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::sync::Arc;

    use super::*;

    fn lines(limit: usize, chunks: &[&[u8]], redact: Option<&Redact>) -> Vec<String> {
        let mut found = Vec::new();
        let mut lines = Lines::new(limit);
        for chunk in chunks {
            lines.push(chunk, |line| found.push(line.finish(redact)));
        }
        lines.finish(|line| found.push(line.finish(redact)));
        found
    }

    #[test]
    fn lines_join_across_reads() {
        assert_eq!(lines(9, &[b"a", b"b\r\nc\n\nd"], None), ["ab", "c", "", "d"]);
    }

    #[test]
    fn invalid_utf8_is_replaced() {
        assert_eq!(lines(9, &[b"a\xffb\n"], None), ["a\u{fffd}b"]);
    }

    #[test]
    fn a_cut_line_shows_the_number_of_cut_bytes() {
        assert_eq!(lines(3, &[b"abcdef\nxyz\n"], None), ["abc […3 bytes cut]", "xyz"]);
        let huge = vec![b'x'; 100_000];
        assert_eq!(lines(3, &[&huge, b"\n"], None), ["xxx […99997 bytes cut]"]);
    }

    #[test]
    fn a_cut_never_splits_a_character() {
        assert_eq!(lines(3, &["aéé\n".as_bytes()], None), ["aé […2 bytes cut]"]);
        assert_eq!(lines(2, &["aéé\n".as_bytes()], None), ["a […4 bytes cut]"]);
    }

    #[test]
    fn a_secret_across_the_cut_is_redacted() {
        let redact: Redact = Arc::new(|line| Cow::Owned(line.replace("hunter2", "***")));
        assert_eq!(lines(6, &[b"key=hunter2!"], Some(&redact)), ["key=** […2 bytes cut]"]);
    }

    #[test]
    fn a_secret_at_the_place_of_cut_bytes_is_not_shown() {
        let redact: Redact = Arc::new(|line| Cow::Owned(line.replace("pad", "")));
        let mut line = "pad".repeat(BEYOND_CUT / 3);
        line.push_str("tail-hunter2");
        let shown = lines(8, &[line.as_bytes()], Some(&redact));
        assert!(!shown[0].contains("hunt"), "{shown:?}");
    }
}
