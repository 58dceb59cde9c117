//! What was said and left behind, and the search for values in it.

use std::{collections::BTreeSet, fmt::Write};

use aho_corasick::AhoCorasick;
use base64::{Engine, engine::general_purpose::STANDARD_NO_PAD};

/// A value that is nowhere else in the world.
pub(super) struct Canary {
    /// What it is the value of.
    pub(super) name: &'static str,
    pub(super) value: String,
    /// How it can be spelled. All of letters and digits, which nobody escapes or encodes by `%`.
    spellings: Vec<(&'static str, String)>,
    /// Where it may be: what a label begins with.
    pub(super) may_be_in: Vec<String>,
}

/// One place where there was something to read.
struct Seen {
    label: String,
    text: String,
}

/// Everything that was seen.
#[derive(Default)]
pub(super) struct Everything {
    seen: Vec<Seen>,
}

impl Canary {
    /// With characters around its random core that have to be escaped in JSON, URLs and shells.
    pub(super) fn new(name: &'static str) -> Self {
        let core = random();
        let value = format!("{core}\"/&+?");
        Self { value, ..Self::of(name, &core) }
    }

    /// One without such characters, for names.
    pub(super) fn plain(name: &'static str) -> Self {
        Self::of(name, &random())
    }

    /// A value that was made by somebody else.
    pub(super) fn of(name: &'static str, value: &str) -> Self {
        let mut spellings = vec![("as it is", value.to_owned())];
        for skipped in 0..3 {
            // Wherever it stands in the text, from some byte on it is at the beginning of a group.
            let whole = value.as_bytes()[skipped..].chunks_exact(3).flatten().copied();
            let text = STANDARD_NO_PAD.encode(whole.collect::<Vec<_>>());
            spellings.push(("base64url", text.replace('+', "-").replace('/', "_")));
            spellings.push(("base64", text));
        }
        let hex = value.bytes().fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").unwrap();
            text
        });
        spellings.push(("hexadecimal in capitals", hex.to_uppercase()));
        spellings.push(("hexadecimal", hex));
        Self { name, value: value.to_owned(), spellings, may_be_in: Vec::new() }
    }

    pub(super) fn allowed_in(mut self, label: impl Into<String>) -> Self {
        self.may_be_in.push(label.into());
        self
    }
}

fn random() -> String {
    let numbers = [(); 2].map(|()| getrandom::u64().unwrap());
    format!("c{:016x}{:016x}", numbers[0], numbers[1])
}

impl Everything {
    /// Labels begin with a word for the channel.
    pub(super) fn note(&mut self, label: impl Into<String>, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes).into_owned();
        self.seen.push(Seen { label: label.into(), text });
    }

    /// Where a value is, with its spelling.
    pub(super) fn finds(&self, canary: &Canary) -> Vec<(&str, &'static str)> {
        let found = self.search(std::slice::from_ref(canary)).into_iter();
        found.map(|(_, label, how)| (label, how)).collect()
    }

    /// Everywhere that a value is and must not be.
    pub(super) fn leaks(&self, canaries: &[Canary]) -> Vec<String> {
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
        let finder = AhoCorasick::new(all.iter().map(|(.., text)| text)).unwrap();
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

/// Each spelling of a value is found, wherever it begins; another value is not.
#[test]
fn s27_the_search_finds_every_spelling() {
    let (canary, other) = (Canary::new("one"), Canary::new("other"));
    let quoted = serde_json::to_string(&canary.value).unwrap();
    let percent = canary.value.replace('"', "%22").replace('/', "%2F");
    let hex: String = canary.value.bytes().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    });
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
