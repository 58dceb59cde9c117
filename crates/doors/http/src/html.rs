//! Text in HTML. Imports no other module of this crate.

use narthex_definitions::harmless;

/// Maximum number of characters of a text of others that a page shows.
const SHOWN_MAX: usize = 4_000;

/// Escapes text for HTML, also inside of attributes with double quotes.
pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// A message of an error as a sentence of a page: with a capital letter and a full stop.
pub(crate) fn sentence(text: &str) -> String {
    let mut sentence = text.to_owned();
    let word = text.split(' ').next().unwrap_or_default();
    // A name such as a setting keeps its letters.
    if word.bytes().all(|b| b.is_ascii_lowercase())
        && let Some(first) = sentence.get_mut(..1)
    {
        first.make_ascii_uppercase();
    }
    if !sentence.ends_with(['.', '!', '?']) {
        sentence.push('.');
    }
    sentence
}

/// Escapes text that others wrote: hidden characters, changes of the text's direction, and markup
/// have no effect, and a long text is cut.
pub(crate) fn safe(text: &str) -> String {
    escaped(&harmless(text, SHOWN_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_becomes_a_sentence_and_names_keep_their_letters() {
        let table = [
            ("this link is too old; ask for a new one", "This link is too old; ask for a new one."),
            ("`mcp.json` has a fault", "`mcp.json` has a fault."),
            ("oauth.door is off", "oauth.door is off."),
            ("Is it on?", "Is it on?"),
            ("größe", "größe."),
            ("", "."),
        ];
        for (message, wanted) in table {
            assert_eq!(sentence(message), wanted);
        }
    }

    #[test]
    fn special_characters_are_escaped_in_texts_and_attributes() {
        assert_eq!(escaped("<a b=\"c\" d='e'>&"), "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;");
        assert_eq!(escaped("größe"), "größe");
    }

    /// S11: text of others is text, and has its limit on every page.
    #[test]
    fn s11_text_of_others_has_no_effect() {
        let shown = safe("<b>\u{202e}a</b>");
        assert!(!shown.contains('<') && !shown.contains('\u{202e}'), "{shown}");
        assert!(safe(&"a".repeat(10 * SHOWN_MAX)).len() < 2 * SHOWN_MAX);
    }
}
