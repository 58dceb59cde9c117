//! Values that must not appear anywhere, and the search for them, in many spellings, in outputs and
//! leftovers.

use std::{collections::BTreeSet, fmt::Write};

use aho_corasick::AhoCorasick;
use base64::{Engine, engine::general_purpose::STANDARD_NO_PAD};

/// A value that is nowhere else in the world.
#[derive(Debug)]
pub struct Canary {
    /// The name of the secret that the value belongs to.
    pub name: &'static str,
    /// The value itself.
    pub value: String,
    /// The possible spellings. All of letters and digits, which no encoder escapes.
    spellings: Vec<(&'static str, String)>,
    /// The places where the value may be: beginnings of labels.
    pub may_be_in: Vec<String>,
}

/// One place where there was something to read.
#[derive(Debug)]
struct Seen {
    label: String,
    text: String,
}

/// All places that were seen.
#[derive(Debug, Default)]
pub struct Everything {
    seen: Vec<Seen>,
}

impl Canary {
    /// A canary with characters behind its random core that have to be escaped in JSON, URLs and
    /// shells.
    ///
    /// # Panics
    /// When the system has no randomness.
    #[must_use]
    pub fn new(name: &'static str) -> Self {
        let core = random();
        let value = format!("{core}\"/&+?");
        Self { value, ..Self::of(name, &core) }
    }

    /// One without such characters, for names.
    ///
    /// # Panics
    /// When the system has no randomness.
    #[must_use]
    pub fn plain(name: &'static str) -> Self {
        Self::of(name, &random())
    }

    /// A canary of a value that was made elsewhere.
    #[must_use]
    pub fn of(name: &'static str, value: &str) -> Self {
        let mut spellings = vec![("as it is", value.to_owned())];
        for skipped in 0..3 {
            // At any place in the text, from some byte on the value is at the beginning of a group.
            let whole = value.as_bytes()[skipped..].chunks_exact(3).flatten().copied();
            let text = STANDARD_NO_PAD.encode(whole.collect::<Vec<_>>());
            spellings.push(("base64url", text.replace('+', "-").replace('/', "_")));
            spellings.push(("base64", text));
        }
        for (how, text) in [("in JSON", in_json(value)), ("by percent", by_percent(value))] {
            if text != value {
                spellings.push((how, text));
            }
        }
        let hex = hexadecimal(value);
        spellings.push(("hexadecimal in capitals", hex.to_uppercase()));
        spellings.push(("hexadecimal", hex));
        Self { name, value: value.to_owned(), spellings, may_be_in: Vec::new() }
    }

    /// Allows the value at places whose labels begin with `label`.
    #[must_use]
    pub fn allowed_in(mut self, label: impl Into<String>) -> Self {
        self.may_be_in.push(label.into());
        self
    }
}

/// The text between the quotes of a JSON string.
fn in_json(value: &str) -> String {
    let quoted = serde_json::Value::from(value).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

fn by_percent(value: &str) -> String {
    value.bytes().fold(String::new(), |mut text, byte| {
        match byte {
            b'-' | b'.' | b'_' | b'~' => text.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => text.push(char::from(byte)),
            byte => write!(text, "%{byte:02X}").expect("a text takes everything"),
        }
        text
    })
}

fn hexadecimal(value: &str) -> String {
    value.bytes().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a text takes everything");
        text
    })
}

fn random() -> String {
    let numbers = [(); 2].map(|()| getrandom::u64().expect("the system has randomness"));
    format!("c{:016x}{:016x}", numbers[0], numbers[1])
}

impl Everything {
    /// Labels begin with a word for the channel.
    pub fn note(&mut self, label: impl Into<String>, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes).into_owned();
        self.seen.push(Seen { label: label.into(), text });
    }

    /// The places of a value, each with its spelling.
    #[must_use]
    pub fn finds(&self, canary: &Canary) -> Vec<(&str, &'static str)> {
        let found = self.search(std::slice::from_ref(canary)).into_iter();
        found.map(|(_, label, how)| (label, how)).collect()
    }

    /// Everywhere that a value is and must not be.
    #[must_use]
    pub fn leaks(&self, canaries: &[Canary]) -> Vec<String> {
        let found = self.search(canaries).into_iter();
        let leaks = found.filter(|(canary, label, _)| {
            !canary.may_be_in.iter().any(|allowed| label.starts_with(allowed))
        });
        leaks.map(|(canary, label, how)| format!("{} in `{label}`, {how}", canary.name)).collect()
    }

    fn search<'c>(&self, canaries: &'c [Canary]) -> Vec<(&'c Canary, &str, &'static str)> {
        let all = canaries.iter().flat_map(|canary| {
            canary.spellings.iter().map(move |(how, text)| (canary, *how, text))
        });
        let all: Vec<_> = all.collect();
        let finder = AhoCorasick::new(all.iter().map(|(.., text)| text));
        let finder = finder.expect("a few short texts");
        let mut found = BTreeSet::new();
        for (place, seen) in self.seen.iter().enumerate() {
            let matches = finder.find_overlapping_iter(&seen.text);
            found.extend(matches.map(|one| (place, one.pattern().as_usize())));
        }
        let told = found.into_iter().map(|(place, spelling)| {
            let (canary, how, _) = all[spelling];
            (canary, self.seen[place].label.as_str(), how)
        });
        told.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each spelling of a value is found, wherever it begins; another value is not.
    #[test]
    fn s27_the_search_finds_every_spelling() {
        let (canary, other) = (Canary::new("one"), Canary::new("other"));
        let quoted = serde_json::to_string(&canary.value).unwrap();
        let percent = canary.value.replace('"', "%22").replace('/', "%2F");
        let hex = hexadecimal(&canary.value);
        let mut texts = vec![quoted.clone(), serde_json::to_string(&quoted).unwrap(), percent];
        texts.extend([hex.to_uppercase(), hex]);
        for prefix in ["", "a", "ab", "Basic "] {
            let text = STANDARD_NO_PAD.encode(format!("{prefix}{}", canary.value));
            texts.push(text.replace('+', "-").replace('/', "_"));
            texts.push(text);
        }
        for text in texts {
            let mut everything = Everything::default();
            everything.note("answer", format!("before {text} after").as_bytes());
            assert!(!everything.finds(&canary).is_empty(), "{text}");
            assert!(everything.finds(&other).is_empty(), "{text}");
            assert_eq!(everything.leaks(std::slice::from_ref(&other)), [""; 0]);
            assert_ne!(everything.leaks(std::slice::from_ref(&canary)), [""; 0]);
            let allowed = [Canary::of("one", &canary.value[..33]).allowed_in("answer")];
            assert_eq!(everything.leaks(&allowed), [""; 0]);
        }
    }
}
