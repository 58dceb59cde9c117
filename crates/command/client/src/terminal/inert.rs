//! Makes others' texts safe for a terminal: control characters are shown, and have no effect.

use std::{
    borrow::Cow,
    fmt::Write as _,
    io::{self, Write},
};

use super::lines::{harmless, is_harmful};

/// The text without characters that move a cursor, set a title, write to a clipboard or change the
/// direction of letters. Line ends and tabs stay.
#[must_use]
pub fn inert(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|c| c != '\n' && is_harmful(c)) {
        return Cow::Borrowed(text);
    }
    let lines: Vec<_> =
        text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)).collect();
    lines.into_iter().map(harmless).collect::<Vec<_>>().join("\n").into()
}

/// The JSON text with the same value and without such characters. They occur only in strings, where
/// they can be escaped.
#[must_use]
pub fn inert_json(text: &str) -> Cow<'_, str> {
    let is_escaped = |c: char| c != '\n' && c != '\r' && is_harmful(c);
    if !text.chars().any(is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match is_escaped(c) {
            // All of them are within the first plane.
            true => write!(escaped, "\\u{:04x}", u32::from(c)).expect("a string takes everything"),
            false => escaped.push(c),
        }
    }
    escaped.into()
}

/// Writes others' bytes to a terminal, made [`inert`]. Bytes that are no UTF-8 are shown as U+FFFD.
#[derive(Debug)]
pub struct InertWriter<W> {
    inner: W,
    /// The first bytes of a character that is not complete yet.
    rest: Vec<u8>,
}

impl<W: Write> InertWriter<W> {
    /// A writer that writes to `inner`.
    #[must_use]
    pub fn new(inner: W) -> Self {
        Self { inner, rest: Vec::new() }
    }
}

impl<W: Write> Write for InertWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.rest.extend_from_slice(bytes);
        let all = std::mem::take(&mut self.rest);
        let mut end = all.len();
        // The end of a character may be in the next bytes.
        if let Err(error) = str::from_utf8(&all[end.saturating_sub(3)..])
            && error.error_len().is_none()
        {
            end = end.saturating_sub(3) + error.valid_up_to();
        }
        self.rest.extend_from_slice(&all[end..]);
        self.inner.write_all(inert(&String::from_utf8_lossy(&all[..end])).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let rest = std::mem::take(&mut self.rest);
        self.inner.write_all(String::from_utf8_lossy(&rest).as_bytes())?;
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A title, a clipboard, a link, a cursor, C1 controls and letters turned round.
    const TRICKS: [&str; 7] = [
        "\u{1b}]0;owned\u{7}",
        "\u{1b}]52;c;ZXZpbA==\u{1b}\\",
        "\u{1b}]8;;http://a.example\u{1b}\\",
        "\u{1b}[2J\u{1b}[H",
        "\u{9b}31m",
        "safe\rfake",
        "\u{202e}exe.txt",
    ];

    fn is_inert(text: &str) -> bool {
        text.chars().all(|c| c == '\n' || !is_harmful(c))
    }

    /// S22: a text of others is seen on a terminal, and does nothing to it.
    #[test]
    fn s22_escape_sequences_in_foreign_text_are_inert_on_a_terminal() {
        for trick in TRICKS {
            let text = format!("a\tb\r\n{trick}\nö");
            let shown = inert(&text);
            assert!(is_inert(&shown), "{trick:?}: {shown:?}");
            assert!(shown.starts_with("a\tb\n") && shown.ends_with("\nö"), "{shown:?}");
            assert!(shown.contains('\u{fffd}'), "{shown:?}");
            let mut written = InertWriter::new(Vec::new());
            text.as_bytes().iter().for_each(|byte| written.write_all(&[*byte]).unwrap());
            written.flush().unwrap();
            let written = String::from_utf8(written.inner).unwrap();
            assert!(is_inert(&written) && written.ends_with("\nö"), "{written:?}");
        }
        assert!(matches!(inert("a\tb\nc"), Cow::Borrowed(_)));
    }

    #[test]
    fn s22_inert_json_keeps_its_value() {
        let value = serde_json::json!({ "a\u{9b}": TRICKS, "b": "\u{7f}\u{2028}ö" });
        for text in [value.to_string(), format!("{value:#}\r\n")] {
            let shown = inert_json(&text);
            assert!(shown.chars().all(|c| matches!(c, '\n' | '\r') || !is_harmful(c)), "{shown:?}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
        }
        assert!(matches!(inert_json(r#"{"a":1}"#), Cow::Borrowed(_)));
    }

    #[test]
    fn s22_bytes_that_are_not_utf8_are_replaced() {
        let mut written = InertWriter::new(Vec::new());
        for part in [&b"a\xff\x1b["[..], b"\xf0\x9f", b"\x98\x80\xe2\x82"] {
            written.write_all(part).unwrap();
        }
        written.flush().unwrap();
        let written = String::from_utf8(written.inner).unwrap();
        assert_eq!(written, "a\u{fffd}\u{fffd}[😀\u{fffd}");
    }
}
