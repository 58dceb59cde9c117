//! The spellings of a text by ordinary encoders: for URLs, in JSON, and in HTML and XML.

use std::{
    collections::{BTreeSet, HashMap},
    sync::OnceLock,
};

use crate::json::encode_string;

/// Writes a text in one way.
pub(super) type Encoder = fn(&str) -> String;

/// Each on its own, and each on top of each other.
pub(super) const ENCODERS: [Encoder; 14] = [
    |text| percent(text, "-._", true),
    |text| percent(text, "-._", false),
    form,
    json,
    go,
    dotnet,
    php,
    html,
    |text| html_hex(text, true),
    |text| html_hex(text, false),
    html_decimal,
    html_padded,
    xml,
    |text| text.to_owned(),
];
/// The encoders that write more than others around them leave alone.
const FIRST: [Encoder; 2] = [|text| unicode(text, true), |text| unicode(text, false)];
/// The encoders that may be around two others: those of a message, or of a log line of one.
const LAST: [Encoder; 4] = [json, php, go, |text| text.to_owned()];
/// The encoders of [`whole`] that keep characters which others write.
const KEEPING: [Encoder; 8] = [
    |text| percent(text, "-._~", true),
    |text| percent(text, "-._~", false),
    |text| percent(text, "-._~/", true),
    |text| percent(text, "-._~/", false),
    |text| percent(text, "-_.!~*'()", true),
    |text| percent(text, "-_.!~*'()", false),
    |text| percent(text, "-._* ", false).replace(' ', "+"),
    ascii,
];

/// The spellings of single characters that are no ASCII letters or digits. Spellings of ASCII
/// characters are computed once.
#[derive(Default)]
pub(super) struct Spellings(HashMap<char, Box<[Box<str>]>>);

impl Spellings {
    /// Prepares for the characters of a value.
    pub(super) fn prepare(&mut self, value: &str) {
        for c in value.chars().filter(|c| !c.is_ascii()) {
            self.0.entry(c).or_insert_with(|| spellings(c));
        }
    }

    /// All spellings of a character, with the character itself; empty for a character that was not
    /// prepared.
    pub(super) fn of(&self, c: char) -> &[Box<str>] {
        static ASCII: [OnceLock<Box<[Box<str>]>>; 128] = [const { OnceLock::new() }; 128];
        match ASCII.get(c as usize) {
            Some(known) => known.get_or_init(|| spellings(c)),
            None => self.0.get(&c).map(|known| &**known).unwrap_or_default(),
        }
    }

    /// The length of the longest, in bytes.
    pub(super) fn longest(&self, c: char) -> usize {
        match c.is_ascii_alphanumeric() {
            true => 1,
            false => self.of(c).iter().map(|one| one.len()).max().unwrap_or_default(),
        }
    }
}

fn spellings(c: char) -> Box<[Box<str>]> {
    let (mut once, mut twice, mut all) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let c = c.to_string();
    once.extend(ENCODERS.iter().chain(&FIRST).map(|encode| encode(&c)));
    twice.extend(once.iter().flat_map(|text| ENCODERS.iter().map(move |encode| encode(text))));
    all.extend(twice.iter().flat_map(|text| LAST.iter().map(move |encode| encode(text))));
    all.into_iter().map(String::into_boxed_str).collect()
}

/// The spellings of a value as a whole: by each encoder, and by two in turn.
pub(super) fn whole(value: &str) -> BTreeSet<String> {
    let first = ENCODERS.iter().chain(&FIRST).chain(&KEEPING);
    let once: BTreeSet<String> = first.map(|encode| encode(value)).collect();
    once.iter().flat_map(|text| ENCODERS.iter().map(move |encode| encode(text))).collect()
}

/// Encodes the characters that are not in `kept` by RFC 3986, with digits in upper or lower case.
fn percent(text: &str, kept: &str, is_upper: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b if b.is_ascii_alphanumeric() || kept.as_bytes().contains(&b) => out.push(b.into()),
            b if is_upper => out.push_str(&format!("%{b:02X}")),
            b => out.push_str(&format!("%{b:02x}")),
        }
    }
    out
}

/// Encodes a text as in a form.
fn form(text: &str) -> String {
    percent(text, "-._* ", true).replace(' ', "+")
}

/// The inside of a JSON string with no more escapes than are needed.
fn json(text: &str) -> String {
    let quoted = String::from_utf8(encode_string(text)).unwrap_or_default();
    let inner = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    inner.unwrap_or(text).to_owned()
}

/// As [`json`], with further characters as `\uXXXX`.
fn escaped(text: &str, is_upper: bool, is_further: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if !is_further(c) {
            out.push_str(&json(c.encode_utf8(&mut [0; 4])));
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            match is_upper {
                true => out.push_str(&format!("\\u{unit:04X}")),
                false => out.push_str(&format!("\\u{unit:04x}")),
            }
        }
    }
    out
}

/// Encodes a text like `encoding/json` of Go.
fn go(text: &str) -> String {
    escaped(text, false, |c| matches!(c, '<' | '>' | '&' | '\u{2028}' | '\u{2029}'))
}

/// Encodes a text like `System.Text.Json` of .NET.
fn dotnet(text: &str) -> String {
    let is_further =
        |c: char| matches!(c, '"' | '&' | '\'' | '+' | '<' | '>' | '`' | '\x7f') || !c.is_ascii();
    escaped(text, true, is_further)
}

/// Encodes a text like writers that keep JSON within ASCII, such as Python's.
fn ascii(text: &str) -> String {
    escaped(text, false, |c| !c.is_ascii())
}

/// As [`ascii`], with `\/`, like PHP.
fn php(text: &str) -> String {
    ascii(text).replace('/', "\\/")
}

/// Encodes a text like writers that trust no character in a script.
fn unicode(text: &str, is_upper: bool) -> String {
    escaped(text, is_upper, |c| !c.is_ascii_alphanumeric())
}

fn entities(text: &str, entity: impl Fn(char) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            c => match entity(c) {
                Some(entity) => out.push_str(&entity),
                None => out.push(c),
            },
        }
    }
    out
}

/// Encodes a text with `&quot;` and `&#39;`.
fn html(text: &str) -> String {
    entities(text, |c| match c {
        '"' => Some("&quot;".to_owned()),
        '\'' => Some("&#39;".to_owned()),
        _ => None,
    })
}

/// Encodes a text with `&quot;`, and other characters by their hexadecimal number.
fn html_hex(text: &str, is_upper: bool) -> String {
    entities(text, |c| match c {
        '"' => Some("&quot;".to_owned()),
        '\'' | '/' | '`' | '=' | '+' | '\n' | '\r' | '\t' | '\u{80}'.. => {
            let number = u32::from(c);
            let of = if is_upper { format!("&#x{number:X};") } else { format!("&#x{number:x};") };
            Some(of)
        }
        _ => None,
    })
}

/// Encodes a text with decimal numbers, also for characters outside ASCII.
fn html_decimal(text: &str) -> String {
    entities(text, |c| match c {
        '"' | '\'' | '\u{80}'.. => Some(format!("&#{};", u32::from(c))),
        _ => None,
    })
}

/// Encodes a text with numbers of three digits, like PHP.
fn html_padded(text: &str) -> String {
    entities(text, |c| match c {
        '"' => Some("&quot;".to_owned()),
        '\'' => Some("&#039;".to_owned()),
        _ => None,
    })
}

/// Encodes a text like values of attributes in XML.
fn xml(text: &str) -> String {
    entities(text, |c| match c {
        '"' => Some("&quot;".to_owned()),
        '\'' => Some("&apos;".to_owned()),
        '\n' | '\r' | '\t' => Some(format!("&#{};", u32::from(c))),
        _ => None,
    })
}
