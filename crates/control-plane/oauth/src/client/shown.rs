//! Texts of servers as they may be shown: everything else of a server's answer is left out.

use url::Url;

const CODE_MAX: usize = 64;
const URL_MAX: usize = 200;

/// An error code as it may be shown; `unknown error` for a text that is none.
#[must_use]
pub fn shown_code(code: &str) -> String {
    let is_code = !code.is_empty()
        && code.len() <= CODE_MAX
        && code.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    if is_code { code.to_owned() } else { "unknown error".to_owned() }
}

/// An address as it may be shown: without user name, query and fragment, and shortened. Its text is
/// ASCII without blanks, as addresses are encoded when they are read.
#[must_use]
pub fn shown_url(url: &Url) -> String {
    let text = format!("{}{}", url.origin().ascii_serialization(), url.path());
    let is_plain = |c: char| c.is_ascii_graphic() && !matches!(c, '<' | '>' | '"' | '\'' | '`');
    let mut shown: String = text.chars().filter(|c| is_plain(*c)).take(URL_MAX).collect();
    if text.len() > URL_MAX {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn codes_are_shown_and_other_texts_are_not() {
        assert_eq!(shown_code("invalid_grant"), "invalid_grant");
        for text in ["", "<b>x</b>", "Call 0800-FRAUD", "a b", &"x".repeat(65)] {
            assert_eq!(shown_code(text), "unknown error", "{text}");
        }
    }

    #[test]
    fn addresses_are_shown_without_their_secrets() {
        let url = Url::parse("https://me:pw@a.example:8443/x%20y?token=s3cret#frag").unwrap();
        assert_eq!(shown_url(&url), "https://a.example:8443/x%20y");
        let long = Url::parse(&format!("https://a.example/{}", "x".repeat(500))).unwrap();
        assert_eq!(shown_url(&long).chars().count(), URL_MAX + 1);
    }

    proptest! {
        #[test]
        fn nothing_shown_can_break_out_of_a_line_or_a_page(text in "\\PC{0,99}") {
            let is_safe = |text: &str| !text.contains(['<', '>', '"', '\'', '\n', '\u{1b}']);
            prop_assert!(is_safe(&shown_code(&text)));
            if let Ok(url) = Url::parse(&format!("https://a.example/{text}")) {
                prop_assert!(is_safe(&shown_url(&url)));
            }
        }
    }
}
