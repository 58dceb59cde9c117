//! The escaper of all templates: text of others is inert in texts and in attributes.
//!
//! Beside markup, it neutralizes characters that are invisible or change the direction of the
//! text (S11). Line breaks and tabs stay, since pages show logs and definitions.

use std::fmt::{self, Write};

use askama::filters::Escaper;
use narthex_model::is_unseen;

/// The escaper that `askama.toml` names for templates.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Inert;

impl Escaper for Inert {
    fn write_escaped_str<W: Write>(&self, mut dest: W, string: &str) -> fmt::Result {
        string.chars().try_for_each(|c| put(&mut dest, c))
    }
}

fn put(dest: &mut impl Write, c: char) -> fmt::Result {
    match c {
        '&' => dest.write_str("&amp;"),
        '<' => dest.write_str("&lt;"),
        '>' => dest.write_str("&gt;"),
        '"' => dest.write_str("&quot;"),
        '\'' => dest.write_str("&#39;"),
        '\n' | '\t' => dest.write_char(c),
        // Spaces of a width of their own are part of numbers and sentences of ours.
        '\u{a0}' | '\u{202f}' => dest.write_char(c),
        _ if is_unseen(c) => write!(dest, "{}", c.escape_unicode()),
        _ => dest.write_char(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S11: markup, quotes, controls and changes of direction have no effect.
    #[test]
    fn s11_text_of_others_is_inert() {
        let table = [
            ("<a href='x'>\"&", "&lt;a href=&#39;x&#39;&gt;&quot;&amp;"),
            ("a\u{202e}b\u{200b}c", "a\\u{202e}b\\u{200b}c"),
            ("\u{1b}[8m\r", "\\u{1b}[8m\\u{d}"),
            ("one\n\ttwo", "one\n\ttwo"),
            ("größe 文字", "größe 文字"),
        ];
        for (text, shown) in table {
            let mut written = String::new();
            Inert.write_escaped_str(&mut written, text).unwrap();
            assert_eq!(written, shown, "{text:?}");
        }
    }
}
