//! The bounds of the work and the texts of one schema, which references can multiply.

use std::cell::Cell;

use serde_json::Value;

/// Maximum number of schemas, and of members of the objects inside, that are looked at.
const STEPS_MAX: usize = 20_000;
/// Maximum number of bytes of the server's texts in all types, descriptions and values together.
const TEXT_MAX: usize = 100_000;
/// Maximum number of bytes of one value within a sentence.
const LITERAL_MAX: usize = 100;
/// Number of letters of a text that is shortened.
const LETTERS: usize = 60;
/// The bytes of a value beside its texts, roughly.
const VALUE: usize = 4;
/// The mark of a text that is not whole.
pub(super) const CUT: &str = "…";

/// The rest of the work and of the texts.
#[derive(Debug, Default)]
pub(super) struct Bounds {
    steps: Cell<usize>,
    text: Cell<usize>,
    is_missed: Cell<bool>,
}

impl Bounds {
    /// Begins anew.
    pub(super) fn renew(&self) {
        self.steps.set(STEPS_MAX);
        self.text.set(TEXT_MAX);
        self.is_missed.set(false);
    }

    /// The depth of the schemas inside of one; `None` beyond the bounds.
    pub(super) fn deeper(&self, depth: usize) -> Option<usize> {
        self.steps.set(self.steps.get().checked_sub(1)?);
        depth.checked_sub(1)
    }

    /// Counts work that was done.
    pub(super) fn work(&self, steps: usize) {
        self.steps.set(self.steps.get().saturating_sub(steps));
    }

    /// The number of bytes that texts may still have.
    pub(super) fn text_left(&self) -> usize {
        self.text.get()
    }

    /// Counts the bytes of a text; false if it is too long.
    pub(super) fn spend(&self, bytes: usize) -> bool {
        let left = self.text.get().checked_sub(bytes);
        left.inspect(|left| self.text.set(*left)).is_some()
    }

    /// A word within a type, or the mark of a cut if it is too long.
    pub(super) fn word(&self, word: String) -> String {
        if self.spend(word.len()) { word } else { CUT.to_owned() }
    }

    /// Notes that a value does not fit, or may not.
    pub(super) fn miss(&self) {
        self.is_missed.set(true);
    }

    pub(super) fn is_missed(&self) -> bool {
        self.is_missed.get()
    }
}

/// The rest of `left` bytes behind a value as JSON, roughly; `None` if the value is longer. No more
/// of it is looked at than so many bytes.
pub(super) fn behind(value: &Value, left: usize) -> Option<usize> {
    let left = left.checked_sub(VALUE)?;
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => Some(left),
        Value::String(text) => left.checked_sub(text.len()),
        Value::Array(all) => all.iter().try_fold(left, |left, one| behind(one, left)),
        Value::Object(all) => {
            let mut all = all.iter();
            all.try_fold(left, |left, (name, one)| behind(one, left.checked_sub(name.len())?))
        }
    }
}

/// A value as JSON within a sentence; a long one is shortened.
pub(in crate::commands::tools) fn literal(value: &Value) -> String {
    if behind(value, LITERAL_MAX).is_some() {
        return value.to_string();
    }
    match value {
        Value::String(text) => format!("{}{CUT}", Value::from(first(text))),
        Value::Array(_) => format!("[{CUT}]"),
        Value::Object(_) => format!("{{{CUT}}}"),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// A text within a sentence; a long one is shortened.
pub(super) fn shortened(text: &str) -> String {
    if text.len() <= LITERAL_MAX { text.to_owned() } else { format!("{}{CUT}", first(text)) }
}

fn first(text: &str) -> String {
    text.chars().take(LETTERS).collect()
}
