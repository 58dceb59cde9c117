//! Text of strangers in a form for display: on a terminal, in a page, in JSON.

use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

/// More marks than this on one character bury the text around them.
const MARKS_MAX: usize = 3;

/// The text on one line, without characters that are invisible or control the display.
///
/// Such characters are written as `\u{…}`, line breaks as `\n`. At most `max` characters of the
/// result are returned, followed by `…` if there are more.
#[must_use]
pub fn harmless(text: &str, max: usize) -> String {
    let mut shown = String::new();
    let (mut length, mut marks) = (0, 0);
    for c in text.chars() {
        let is_mark = c.general_category() == GeneralCategory::NonspacingMark;
        marks = if is_mark { marks + 1 } else { 0 };
        let before = shown.len();
        match c {
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            _ if is_unseen(c) || marks > MARKS_MAX => shown.extend(c.escape_unicode()),
            _ => shown.push(c),
        }
        length += shown[before..].chars().count();
        if length > max {
            shown.truncate(before);
            shown.push('…');
            return shown;
        }
    }
    shown
}

/// True if a character is drawn as nothing, or is a blank that is no space.
#[must_use]
pub fn is_unseen(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_control();
    }
    match c {
        // Format characters that are drawn: signs of Arabic, Syriac and Kaithi.
        '\u{600}'..='\u{605}' | '\u{6dd}' | '\u{70f}' | '\u{890}'..='\u{891}' | '\u{8e2}' => false,
        '\u{110bd}' | '\u{110cd}' => false,
        // Letters and marks that are drawn as nothing.
        '\u{34f}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}' => {
            true
        }
        '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{ffa0}' => true,
        '\u{fff0}'..='\u{fff8}' | '\u{e0000}'..='\u{e0fff}' => true,
        _ => {
            c.is_whitespace()
                || matches!(
                    c.general_category(),
                    GeneralCategory::Format
                        | GeneralCategory::Control
                        | GeneralCategory::PrivateUse
                        | GeneralCategory::Surrogate
                )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s22_invisible_and_control_characters_are_shown_as_escapes() {
        let table = [
            ("plain Text, ünïcödé, 文字, עברית", "plain Text, ünïcödé, 文字, עברית"),
            ("a\nb\tc\r", "a\\nb\\tc\\r"),
            ("\u{1b}[8m", "\\u{1b}[8m"),
            ("a\u{200b}b\u{202e}c\u{e0041}", "a\\u{200b}b\\u{202e}c\\u{e0041}"),
            ("a\u{a0}b\u{3164}\u{2028}", "a\\u{a0}b\\u{3164}\\u{2028}"),
            ("e\u{301}\u{301}\u{301}\u{301}", "e\u{301}\u{301}\u{301}\\u{301}"),
        ];
        for (text, shown) in table {
            assert_eq!(harmless(text, 100), shown, "{text:?}");
        }
        assert_eq!(harmless("abcdef", 6), "abcdef");
        assert_eq!(harmless("abcdefg", 6), "abcdef…");
        assert_eq!(harmless("abc\u{200b}", 6), "abc…", "no half of an escape");
    }
}
