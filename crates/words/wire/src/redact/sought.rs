//! The sought texts: secret values, and their forms in base64 and hexadecimal digits.
//!
//! One automaton looks for *anchors* alone: pieces of letters and digits, which encoders leave
//! unchanged. Around a found anchor the rest of the value is compared character by character, each
//! in any of its spellings. So one anchor covers all ways of writing a value.

use std::ops::Range;

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};

use super::{
    BYTES_MIN,
    encodings::{self, Spellings},
};

/// Least length of the part of a value in base64 that begins or ends inside a group.
const CORE_MIN: usize = 8;
/// The shortest anchor. Shorter ones would be found everywhere.
const ANCHOR_MIN: usize = 2;
/// The shortest piece of a value in base64, in which any letters may occur.
const PIECE_MIN: usize = 4;
/// The longest anchor; a longer one would find no less.
const ANCHOR_MAX: usize = 16;
/// Most breaks and blanks between two characters of base64: those of one line's end, and the
/// indentation of the next line.
const BREAKS_MAX: usize = 10;
/// The longest escape for a line's end.
const ESCAPE_MAX: usize = 8;
/// The shortest lines into which base64 is broken.
const LINE_MIN: usize = 60;
/// Most bytes of a line's end, with all spellings and the indentation.
const BREAK_BYTES: usize = 40;

/// A text that is looked for.
struct Sought {
    text: Box<str>,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A value, in any spelling.
    Value,
    /// The part of a value's base64 that does not depend on the bytes around the value. Also found
    /// in the alphabet of URLs, and broken into lines. The byte is the last character of the value
    /// alone, if that is another one.
    Base64(Option<u8>),
    /// Hexadecimal digits, in either case.
    Hex,
    /// Exactly this text.
    Exact,
}

/// A piece of a text by which it is found.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Anchor {
    bytes: Box<[u8]>,
    /// The index of the sought text; `at` is the position of the piece in it.
    sought: usize,
    at: usize,
}

/// All that is looked for.
#[derive(Default)]
pub(super) struct All {
    sought: Vec<Sought>,
    /// All anchors, sorted by their bytes.
    anchors: Vec<Anchor>,
    /// True if a value has no anchor, and is searched for as a whole.
    has_listed: bool,
    spellings: Spellings,
}

/// The direction in which the rest is compared.
#[derive(Clone, Copy)]
enum Way {
    On,
    Back,
}

impl All {
    /// Adds a value of at least [`BYTES_MIN`] bytes.
    pub(super) fn add(&mut self, value: &str) {
        self.spellings.prepare(value);
        match longest_run(value).filter(|run| run.len() >= ANCHOR_MIN) {
            Some(run) => {
                let run = run.start..run.end.min(run.start + ANCHOR_MAX);
                self.push(value, Kind::Value, Some(run));
            }
            None => {
                self.has_listed = true;
                let spellings = encodings::whole(value);
                for one in spellings.iter().filter(|one| one.len() >= BYTES_MIN) {
                    self.push(one, Kind::Exact, Some(0..one.len()));
                }
            }
        }
        self.add_base64(value);
        let digits: String = value.bytes().map(|byte| format!("{byte:02x}")).collect();
        let end = digits.len().min(ANCHOR_MAX);
        self.push(&digits, Kind::Hex, Some(0..end));
        let upper = digits[..end].to_ascii_uppercase();
        if upper != digits[..end] {
            self.push_anchor(upper.as_bytes(), 0);
        }
    }

    /// Adds the value alone, and the part of it that is the same after and before any other bytes.
    fn add_base64(&mut self, value: &str) {
        for before in 0..3 {
            let bytes = [&vec![0; before], value.as_bytes()].concat();
            // Characters that other bytes have a part in.
            let first = (before * 8).div_ceil(6);
            let is_cut = !bytes.len().is_multiple_of(3);
            let encoded = STANDARD_NO_PAD.encode(&bytes);
            let core = &encoded[first..encoded.len() - usize::from(is_cut)];
            if core.len() < CORE_MIN {
                continue;
            }
            let last = encoded.bytes().next_back().filter(|_| is_cut && before == 0);
            let anchors = halves(core);
            if anchors.len() < 2 {
                // With few anchors, the unbroken text is searched for as well, in both alphabets.
                for one in [core.to_owned(), core.replace('+', "-").replace('/', "_")] {
                    self.push(&one, Kind::Exact, Some(0..one.len()));
                }
            }
            self.push(core, Kind::Base64(last), anchors);
        }
    }

    fn push(&mut self, text: &str, kind: Kind, anchors: impl IntoIterator<Item = Range<usize>>) {
        self.sought.push(Sought { text: text.into(), kind });
        for anchor in anchors {
            let at = anchor.start;
            self.push_anchor(&text.as_bytes()[anchor], at);
        }
    }

    /// Adds one to the text that was added last.
    fn push_anchor(&mut self, bytes: &[u8], at: usize) {
        self.anchors.push(Anchor { bytes: bytes.into(), sought: self.sought.len() - 1, at });
    }

    /// The patterns of the automaton: each piece once. No value is added after this call.
    pub(super) fn patterns(&mut self) -> Vec<&[u8]> {
        self.anchors.sort_unstable();
        let mut patterns: Vec<_> = self.anchors.iter().map(|anchor| &*anchor.bytes).collect();
        patterns.dedup();
        patterns
    }

    /// True if some value is looked for as a whole, in listed spellings. Such a value with one more
    /// encoding around it is found only after that encoding is undone.
    pub(super) fn has_listed(&self) -> bool {
        self.has_listed
    }

    /// The length of the longest spelling, in bytes.
    pub(super) fn longest(&self) -> usize {
        let length = |one: &Sought| {
            let all: usize = match one.kind {
                Kind::Value | Kind::Base64(_) => {
                    one.text.chars().map(|c| self.spellings.longest(c)).sum()
                }
                Kind::Hex | Kind::Exact => one.text.len(),
            };
            match one.kind {
                Kind::Base64(_) => all + (one.text.len() / LINE_MIN + 1) * BREAK_BYTES,
                Kind::Value | Kind::Hex | Kind::Exact => all,
            }
        };
        self.sought.iter().map(length).max().unwrap_or_default()
    }

    /// Adds the ranges of sought texts around anchors that begin at `start`, each with its number.
    pub(super) fn around(&self, text: &[u8], start: usize, found: &mut Vec<(usize, Range<usize>)>) {
        let rest = &text[start..];
        let begin = &rest[..rest.len().min(ANCHOR_MIN)];
        let from = self.anchors.partition_point(|anchor| &anchor.bytes[..begin.len()] < begin);
        let near = self.anchors[from..].iter().take_while(|anchor| anchor.bytes.starts_with(begin));
        for anchor in near.filter(|anchor| rest.starts_with(&anchor.bytes)) {
            let of = |(sought, range): &(usize, Range<usize>)| {
                *sought == anchor.sought && range.contains(&start)
            };
            if !found.iter().rev().take(8).any(of)
                && let Some(range) = self.range(anchor, text, start)
            {
                found.push((anchor.sought, range));
            }
        }
    }

    /// The range of an anchor's text around `start`; `None` if the text is not there.
    fn range(&self, anchor: &Anchor, text: &[u8], start: usize) -> Option<Range<usize>> {
        let Sought { text: sought, kind } = &self.sought[anchor.sought];
        let (before, end) = (&sought[..anchor.at], anchor.at + anchor.bytes.len());
        let mut ends = vec![start + anchor.bytes.len()];
        for c in sought[end..].chars() {
            ends = self.step(*kind, c, text, (ends, Way::On));
            if ends.is_empty() {
                return None;
            }
        }
        let mut end = ends.into_iter().max()?;
        if let Kind::Base64(Some(last)) = kind {
            end += usize::from(text.get(end) == Some(last));
        }
        let mut starts = vec![start];
        for c in before.chars().rev() {
            starts = self.step(*kind, c, text, (starts, Way::Back));
            if starts.is_empty() {
                return None;
            }
        }
        Some(starts.into_iter().min()?..end)
    }

    /// The places behind one more character, from each of some places.
    fn step(&self, kind: Kind, c: char, text: &[u8], places: (Vec<usize>, Way)) -> Vec<usize> {
        let (mut places, way) = places;
        let is_base64 = matches!(kind, Kind::Base64(_));
        // Read backwards, an escaped line end begins with a character that base64 may have.
        let is_open = is_base64 && places.iter().any(|place| way.is_behind_escape(text, *place));
        if is_open {
            let mut behind = self.behind(kind, c, text, (&places[..], way));
            behind.extend(self.behind_breaks(kind, c, text, (places, way)));
            behind.sort_unstable();
            behind.dedup();
            return behind;
        }
        if let ([place], true) = (&mut places[..], c.is_ascii_alphanumeric())
            && way.bytes(text, *place, 1) == Some(c.encode_utf8(&mut [0; 4]).as_bytes())
        {
            *place = way.after(*place, 1);
            return places;
        }
        if places.is_empty() {
            return places;
        }
        let behind = self.behind(kind, c, text, (&places[..], way));
        match is_base64 && behind.is_empty() {
            true => self.behind_breaks(kind, c, text, (places, way)),
            false => behind,
        }
    }

    /// The places behind a line's end and one more character.
    fn behind_breaks(
        &self,
        kind: Kind,
        c: char,
        text: &[u8],
        places: (Vec<usize>, Way),
    ) -> Vec<usize> {
        let (mut newest, way) = places;
        let mut all = Vec::new();
        for _ in 0..BREAKS_MAX {
            newest = ['\n', '\r', ' ', '\t']
                .into_iter()
                .flat_map(|c| self.behind(Kind::Value, c, text, (&newest[..], way)))
                .collect();
            newest.sort_unstable();
            newest.dedup();
            if newest.is_empty() {
                break;
            }
            all.extend_from_slice(&newest);
        }
        all.sort_unstable();
        all.dedup();
        self.behind(kind, c, text, (&all[..], way))
    }

    fn behind(&self, kind: Kind, c: char, text: &[u8], places: (&[usize], Way)) -> Vec<usize> {
        let (places, way) = places;
        let mut behind = Vec::new();
        let mut take = |spelling: &[u8], is_same: fn(&[u8], &[u8]) -> bool| {
            let after = places.iter().filter_map(|place| {
                let found = way.bytes(text, *place, spelling.len())?;
                is_same(found, spelling).then(|| way.after(*place, spelling.len()))
            });
            behind.extend(after);
        };
        let exactly: fn(&[u8], &[u8]) -> bool = |one, other| one == other;
        match kind {
            Kind::Hex => take(c.encode_utf8(&mut [0; 4]).as_bytes(), <[u8]>::eq_ignore_ascii_case),
            _ if c.is_ascii_alphanumeric() => {
                take(c.encode_utf8(&mut [0; 4]).as_bytes(), exactly);
            }
            Kind::Value | Kind::Exact | Kind::Base64(_) => {
                self.spellings.of(c).iter().for_each(|one| take(one.as_bytes(), exactly));
            }
        }
        match (kind, c) {
            (Kind::Base64(_), '+') => take(b"-", exactly),
            (Kind::Base64(_), '/') => take(b"_", exactly),
            _ => {}
        }
        behind.sort_unstable();
        behind.dedup();
        behind
    }
}

impl Way {
    /// True if the way leads back, and an escape may end at a place.
    fn is_behind_escape(self, text: &[u8], place: usize) -> bool {
        let before = &text[place.saturating_sub(ESCAPE_MAX)..place];
        matches!(self, Self::Back) && before.iter().any(|b| matches!(b, b'\\' | b'%' | b'&'))
    }

    fn bytes(self, text: &[u8], place: usize, count: usize) -> Option<&[u8]> {
        match self {
            Self::On => text.get(place..place + count),
            Self::Back => text.get(place.checked_sub(count)?..place),
        }
    }

    fn after(self, place: usize, count: usize) -> usize {
        match self {
            Self::On => place + count,
            Self::Back => place - count,
        }
    }
}

/// The ranges of adjoining ASCII letters and digits.
fn runs(text: &str) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (at, _) in text.bytes().enumerate().filter(|(_, byte)| byte.is_ascii_alphanumeric()) {
        match runs.last_mut() {
            Some(last) if last.end == at => last.end = at + 1,
            _ => runs.push(at..at + 1),
        }
    }
    runs
}

fn longest_run(text: &str) -> Option<Range<usize>> {
    runs(text).into_iter().rev().max_by_key(|run| run.len())
}

/// Two pieces of base64, of which a line's end can lie in one alone; fewer if there are none.
fn halves(core: &str) -> Vec<Range<usize>> {
    let runs = runs(core);
    if let Some(run) = runs.iter().find(|run| run.len() >= 2 * PIECE_MIN) {
        let half = (run.len() / 2).min(ANCHOR_MAX);
        return vec![run.start..run.start + half, run.start + half..run.start + 2 * half];
    }
    runs.into_iter().filter(|run| run.len() >= PIECE_MIN).take(2).collect()
}
