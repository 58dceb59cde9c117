//! Texts that clients give about themselves, which are hostile until the opposite is shown.

use std::fmt;

use serde::{Deserialize, Serialize};
use url::{Host, Url};

/// The longest name of a client, in characters.
pub const NAME_MAX: usize = 80;
/// Most marks above and below one letter; more of them cover other lines.
const MARKS_MAX: usize = 2;
/// The name of a client without one.
const UNNAMED: &str = "unnamed client";
/// The longest address of a client's page.
const LINK_MAX: usize = 300;

/// The name of a client for people: one short line without characters that are invisible or change
/// the direction of letters.
///
/// It is still the client's own claim, so it is shown escaped, and beside the host that the client
/// proved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct ClientName(String);

impl ClientName {
    /// Makes a name of any text. Control characters, marks of direction and invisible characters
    /// are removed, rows of blanks become one blank, and a text of more than [`NAME_MAX`]
    /// characters is shortened.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let mut name = String::new();
        let (mut is_first, mut marks, mut count) = (true, 0, 0);
        // A blank is written when something follows it.
        let mut is_blank_due = false;
        for c in text.chars() {
            if c.is_whitespace() || c.is_control() {
                is_blank_due = !is_first;
                continue;
            }
            marks = if is_mark(c) { marks + 1 } else { 0 };
            if is_unseen(c) || marks > MARKS_MAX || (is_first && is_mark(c)) {
                continue;
            }
            if count + usize::from(is_blank_due) >= NAME_MAX {
                name = cut(&name);
                break;
            }
            if is_blank_due {
                name.push(' ');
                count += 1;
            }
            name.push(c);
            count += 1;
            (is_first, is_blank_due) = (false, false);
        }
        Self(if name.is_empty() { UNNAMED.to_owned() } else { name })
    }

    /// The name, to be shown escaped.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The beginning of a name with a sign that it was longer.
fn cut(name: &str) -> String {
    let start: String = name.chars().take(NAME_MAX - 1).collect();
    format!("{}…", start.trim_end())
}

/// True for characters that people do not see or that move others: marks of direction, joiners,
/// tags, selectors of variants, fillers and characters without a meaning.
fn is_unseen(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{ffff}' | '\u{fdd0}'..='\u{fdef}'
        | '\u{e000}'..='\u{f8ff}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{10ffff}')
}

/// True for marks that are drawn onto the letter before them.
fn is_mark(c: char) -> bool {
    matches!(c,
        '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{1ab0}'..='\u{1aff}'
        | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}' | '\u{fe20}'..='\u{fe2f}')
}

impl From<String> for ClientName {
    fn from(text: String) -> Self {
        Self::of(&text)
    }
}

impl From<ClientName> for String {
    fn from(name: ClientName) -> Self {
        name.0
    }
}

impl fmt::Display for ClientName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The address of a client's page as a link for people: https, with the name of a host, and without
/// user name. `None` for other texts. Narthex itself loads neither pages nor logos of clients.
#[must_use]
pub fn client_link(text: &str) -> Option<String> {
    let url = Url::parse(text).ok().filter(|_| text.len() <= LINK_MAX)?;
    let has_user = !url.username().is_empty() || url.password().is_some();
    let has_name = matches!(url.host(), Some(Host::Domain(name)) if name.contains('.'));
    (url.scheme() == "https" && has_name && !has_user).then(|| url.to_string())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn name(text: &str) -> String {
        ClientName::of(text).0
    }

    #[test]
    fn door_a14_names_lose_characters_that_deceive() {
        let table = [
            ("Claude Code", "Claude Code"),
            ("  two\n\t lines\r\n", "two lines"),
            ("evil\u{202e}edulaC", "eviledulaC"),
            ("a\u{2066}b\u{2069}c\u{61c}d\u{200f}", "abcd"),
            ("a\u{200b}\u{feff}\u{ad}\u{2060}b", "ab"),
            ("a\u{1b}[2Kb", "a [2Kb"),
            ("ok\u{e0069}\u{e0067}", "ok"),
            ("a\u{fe0f}b\u{e000}", "ab"),
            ("Zoe\u{308}", "Zoe\u{308}"),
            ("Z\u{300}\u{301}\u{302}\u{303}!", "Z\u{300}\u{301}!"),
            ("\u{301}a", "a"),
            ("日本語 <b>&amp;", "日本語 <b>&amp;"),
            ("", UNNAMED),
            ("\u{202e} \n\u{200b}", UNNAMED),
        ];
        for (text, wanted) in table {
            assert_eq!(name(text), wanted, "{text:?}");
        }
    }

    #[test]
    fn door_a14_names_are_short() {
        let long = name(&"x".repeat(10_000));
        assert_eq!(long.chars().count(), NAME_MAX);
        assert!(long.ends_with('…'));
        assert_eq!(name(&"x".repeat(NAME_MAX)), "x".repeat(NAME_MAX));
        assert_eq!(name(&format!("{}  ", "x".repeat(NAME_MAX))), "x".repeat(NAME_MAX));
    }

    #[test]
    fn door_a14_links_lead_to_named_hosts_by_https() {
        assert_eq!(client_link("https://a.example/x").as_deref(), Some("https://a.example/x"));
        let long = format!("https://a.example/{}", "x".repeat(LINK_MAX));
        for bad in ["", "javascript:alert(1)", "http://a.example", "https://10.0.0.1/", &long] {
            assert_eq!(client_link(bad), None, "{bad}");
        }
        assert_eq!(client_link("https://good.example@evil.example/"), None);
        assert_eq!(client_link("https://localhost/"), None);
    }

    proptest! {
        #[test]
        fn door_a14_a_name_is_one_harmless_line(text in "\\PC{0,200}|(?s).{0,200}") {
            let once = name(&text);
            prop_assert!((1..=NAME_MAX).contains(&once.chars().count()));
            prop_assert!(!once.contains(|c: char| c.is_control() || is_unseen(c)));
            prop_assert_eq!(once.trim(), &once);
            prop_assert!(!once.contains("  "));
            prop_assert_eq!(name(&once), once, "a stored name is read as it is");
        }
    }
}
