//! The part of an entry that limits calls: their duration, the length of their results, and their
//! number.

use std::{num::NonZeroU64, time::Duration};

use narthex_model::{OutputLimits, TrafficLimits};

use super::{
    node::{Node, Place, field, shortened},
    placeholder::Dialect,
    problem::EntryProblem,
    reader::{Fields, Reader},
};

/// The longest a call may take (E86).
const TIMEOUT_MAX_MS: f64 = 600_000.0;
/// The longest a call may take whose progress extends it.
const EXTENDS_MAX_MS: f64 = 3_600_000.0;
/// The time by which progress extends a call when the entry names none.
const EXTENDS_USUAL_MS: u64 = 600_000;
/// The largest whole number that every reader of JSON agrees on.
const NUMBER_MAX: f64 = 9_007_199_254_740_991.0;

/// The spellings of the limits of output.
const TOKENS: [&str; 2] = ["maxOutputTokens", "max_output_tokens"];
const BYTES: [&str; 2] = ["maxOutputBytes", "max_output_bytes"];
/// The spellings of the key for extension by progress.
const EXTENDS: [&str; 2] = ["progressExtends", "progress_extends"];
/// The spellings of the limit of mounting.
const MOUNT: [&str; 2] = ["mountTimeout", "mount_timeout"];

impl Reader<'_> {
    /// Reads `timeoutMs`, or `timeout` as a duration with its unit (E86, E116, R-E23).
    pub(super) fn timeout(&mut self, fields: &Fields, at: &Place) -> Option<Duration> {
        if let Some(node) = field(fields, "timeoutMs") {
            let place = at.key("timeoutMs");
            let Node::Number(number) = node else {
                self.warn(
                    &place,
                    format!("ignored: expected a number of ms, found {}", node.found()),
                );
                return None;
            };
            return Some(self.clamped(&place, number.as_f64()?));
        }
        let keys: &[&str] = match self.dialect {
            Dialect::Strict => &["timeout"],
            Dialect::Tolerant => &["timeout", "request_timeout"],
        };
        let (key, node) = keys.iter().find_map(|key| Some((key, field(fields, key)?)))?;
        let place = at.key(key);
        let Node::Text(text) = node else {
            self.warn(
                &place,
                "ignored: programs disagree on its unit; write `timeoutMs` with a number of ms, \
                 or a duration such as `30s`",
            );
            return None;
        };
        self.duration(&place, text)
    }

    /// Reads `progressExtends`: the longest time of a call in all, if progress starts its time anew
    /// (D30). The value is a number of ms, a duration, or `true` for 10 minutes.
    pub(super) fn progress_extends(&mut self, fields: &Fields, at: &Place) -> Option<Duration> {
        let (key, node) = EXTENDS.iter().find_map(|key| Some((key, field(fields, key)?)))?;
        let place = at.key(key);
        match node {
            Node::Bool(false) => None,
            Node::Bool(true) => Some(Duration::from_millis(EXTENDS_USUAL_MS)),
            Node::Number(number) => {
                let ms = number.as_f64().unwrap_or_default();
                if ms < 1.0 {
                    self.warn(&place, "ignored: it is not above zero; progress extends no call");
                    return None;
                }
                Some(self.held_within(&place, ms, EXTENDS_MAX_MS))
            }
            Node::Text(text) => match duration_ms(text) {
                Some(ms) if ms >= 1.0 => Some(self.held_within(&place, ms, EXTENDS_MAX_MS)),
                Some(_) => {
                    self.warn(&place, "ignored: it is not above zero; progress extends no call");
                    None
                }
                None => {
                    let problem = EntryProblem::BadDuration { found: shortened(text) };
                    self.tolerated(&place, problem);
                    None
                }
            },
            node => {
                let wanted = "a number of ms, a duration such as `10m`, or true or false";
                let found = node.found();
                self.tolerated(&place, EntryProblem::WrongType { found, wanted });
                None
            }
        }
    }

    /// Reads `autoRecover`: true if a server over HTTP that was merely unreachable recovers by
    /// itself.
    pub(super) fn recovers(&mut self, fields: &Fields, at: &Place) -> bool {
        let keys = ["autoRecover", "auto_recover"];
        !keys.map(|key| self.flag(fields, at, key)).contains(&Some(false))
    }

    /// Reads `mountTimeout`: the longest time of the whole mounting, without downloads (R-M11,
    /// R-E23).
    pub(super) fn mount_timeout(&mut self, fields: &Fields, at: &Place) -> Option<Duration> {
        let (key, node) = MOUNT.iter().find_map(|key| Some((key, field(fields, key)?)))?;
        let place = at.key(key);
        let Node::Text(text) = node else {
            let (found, wanted) = (node.found(), "a duration such as `5s`");
            self.tolerated(&place, EntryProblem::WrongType { found, wanted });
            return None;
        };
        self.duration(&place, text)
    }

    /// A duration with its unit; zero and less mean the default (R-E23).
    fn duration(&mut self, place: &Place, text: &str) -> Option<Duration> {
        match duration_ms(text) {
            None => {
                let problem = EntryProblem::BadDuration { found: shortened(text) };
                self.tolerated(place, problem);
                None
            }
            Some(ms) if ms <= 0.0 => {
                self.warn(place, "ignored: it is not above zero; the default is used");
                None
            }
            Some(ms) => Some(self.clamped(place, ms)),
        }
    }

    fn clamped(&mut self, place: &Place, ms: f64) -> Duration {
        self.held_within(place, ms, TIMEOUT_MAX_MS)
    }

    fn held_within(&mut self, place: &Place, ms: f64, most: f64) -> Duration {
        let held = ms.trunc().clamp(1.0, most);
        if (held - ms.trunc()).abs() > 0.0 {
            self.warn(place, format!("outside of 1..{most} ms: {held} ms is used"));
        }
        Duration::from_secs_f64(held / 1000.0)
    }

    /// Limits for the size of results (D23).
    pub(super) fn output(&mut self, fields: &Fields, at: &Place) -> OutputLimits {
        OutputLimits {
            tokens: self.amount(fields, at, TOKENS),
            bytes: self.amount(fields, at, BYTES),
        }
    }

    /// Limits for the traffic to the server (O100).
    pub(super) fn traffic(&mut self, fields: &Fields, at: &Place) -> TrafficLimits {
        let Some(node) = field(fields, "limits") else { return TrafficLimits::default() };
        TrafficLimits::read(node, &at.key("limits"), &mut |place, problem| {
            self.tolerated(place, EntryProblem::Limits(problem));
        })
    }

    /// Reads a whole number above zero under one of two keys; a smaller one means the default.
    fn amount(&mut self, fields: &Fields, at: &Place, keys: [&str; 2]) -> Option<NonZeroU64> {
        let [key, other] = keys;
        if field(fields, key).is_some() && field(fields, other).is_some() {
            self.warn(&at.key(other), format!("ignored: `{key}` means the same"));
        }
        let (key, node) = keys.iter().find_map(|key| Some((key, field(fields, key)?)))?;
        let place = at.key(key);
        let Node::Number(number) = node else {
            let (found, wanted) = (node.found(), "a whole number above 0");
            self.tolerated(&place, EntryProblem::WrongType { found, wanted });
            return None;
        };
        let number = number.as_f64().unwrap_or_default().trunc().clamp(0.0, NUMBER_MAX);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "just clamped")]
        let amount = NonZeroU64::new(number as u64);
        if amount.is_none() {
            self.warn(&place, "ignored: it is not above zero; the default is used");
        }
        amount
    }

    /// Reports a fault in a file that only narthex reads; in a shared file, a warning.
    pub(super) fn tolerated(&mut self, place: &Place, problem: EntryProblem) {
        match self.dialect {
            Dialect::Strict => self.fault(place, problem),
            Dialect::Tolerant => self.warn(place, format!("ignored: {problem}")),
        }
    }
}

/// `500ms`, `30s`, `2m` or `1h` as milliseconds.
fn duration_ms(text: &str) -> Option<f64> {
    let text = text.trim();
    let units = [("ms", 1.0), ("s", 1_000.0), ("m", 60_000.0), ("h", 3_600_000.0)];
    let (number, factor) =
        units.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, factor)))?;
    let number: f64 = number.trim().parse().ok()?;
    number.is_finite().then_some(number * factor)
}
