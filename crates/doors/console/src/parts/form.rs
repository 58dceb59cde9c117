//! Fields of forms: an input with its help, its fault, and the origin of its value.
//!
//! The macro `field` of `parts/macros.html` draws a [`Field`].

use std::fmt::Write;

use super::Words;

/// A field of a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// The name under which the form sends the value.
    pub name: String,
    /// The words before the input.
    pub label: Words,
    /// The input with its value.
    pub input: Input,
    /// A sentence about the value.
    pub help: Option<Words>,
    /// The reason why the value was refused.
    pub fault: Option<Words>,
    /// The origin of the value, then those that it overrides.
    pub origins: Vec<Origin>,
    /// True if an empty value is refused.
    pub is_required: bool,
    /// The reason why the value cannot be changed here.
    pub off: Option<Words>,
}

/// An input with its value. Values are not cut.
///
/// Invisible characters of a value are written out, so that a form saves what its page shows.
/// Browsers send line breaks as `\r\n`: handlers call [`line_breaks`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// A text of one line.
    Line {
        /// The text.
        value: String,
        /// An example, shown while the input is empty.
        example: String,
    },
    /// A text of several lines.
    Area {
        /// The text.
        value: String,
        /// The number of lines that are visible.
        rows: u8,
    },
    /// A value that is sent and never shown, such as a new secret.
    Unseen,
    /// A box that is checked or not. It sends `on`, or nothing.
    Check {
        /// True for a checked box.
        is_on: bool,
    },
    /// A choice of one among several.
    Choice {
        /// All options.
        options: Vec<Choice>,
    },
}

/// An option of a choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The value that is sent.
    pub value: String,
    /// The words.
    pub label: Words,
    /// True for the option that is chosen.
    pub is_chosen: bool,
}

/// The origin of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The thing that gives the value, such as `the capability search`.
    pub from: Words,
    /// The value in this place.
    pub value: Words,
}

impl Field {
    /// A field that may stay empty.
    #[must_use]
    pub fn new(name: impl Into<String>, label: &str, input: Input) -> Self {
        Self {
            name: name.into(),
            label: Words::new(label),
            input,
            help: None,
            fault: None,
            origins: Vec::new(),
            is_required: false,
            off: None,
        }
    }

    /// The same field with a sentence about its value.
    #[must_use]
    pub fn help(self, sentence: &str) -> Self {
        Self { help: Some(Words::new(sentence)), ..self }
    }

    /// The same field with the reason why its value was refused, if there is one.
    #[must_use]
    pub fn fault(self, fault: Option<&str>) -> Self {
        Self { fault: fault.map(Words::new), ..self }
    }

    /// The same field with the origin of its value, then those that it overrides.
    #[must_use]
    pub fn origins(self, origins: Vec<Origin>) -> Self {
        Self { origins, ..self }
    }

    /// The same field, which must not stay empty.
    #[must_use]
    pub fn required(self) -> Self {
        Self { is_required: true, ..self }
    }

    /// The same field, which cannot be changed here.
    #[must_use]
    pub fn off(self, why: &str) -> Self {
        Self { off: Some(Words::new(why)), ..self }
    }

    /// The id of the input: other names have other ids, and none has a space.
    #[must_use]
    pub fn id(&self) -> String {
        let mut id = "f-".to_owned();
        for c in self.name.chars() {
            match c {
                'a'..='z' | 'A'..='Z' | '0'..='9' => id.push(c),
                // Writing to a `String` never fails.
                _ => drop(write!(id, "-{:x}-", u32::from(c))),
            }
        }
        id
    }

    /// True for a box, which stands before its words.
    #[must_use]
    pub fn is_check(&self) -> bool {
        matches!(self.input, Input::Check { .. })
    }

    /// The origin in force, and those that it overrides.
    #[must_use]
    pub fn chain(&self) -> Option<(&Origin, &[Origin])> {
        self.origins.split_first()
    }

    /// The ids of the sentences about the input; empty without any.
    #[must_use]
    pub fn described_by(&self) -> String {
        let id = self.id();
        let parts = [
            (self.fault.is_some(), "fault"),
            (self.off.is_some(), "off"),
            (self.help.is_some(), "help"),
            (!self.origins.is_empty(), "origin"),
        ];
        let present = parts.iter().filter(|(is_present, _)| *is_present);
        present.map(|(_, part)| format!("{id}.{part}")).collect::<Vec<_>>().join(" ")
    }
}

impl Input {
    /// A text of one line without an example.
    #[must_use]
    pub fn line(value: &str) -> Self {
        Self::Line { value: value.to_owned(), example: String::new() }
    }

    /// A text of several lines, of which this many are visible.
    #[must_use]
    pub fn area(value: &str, rows: u8) -> Self {
        Self::Area { value: value.to_owned(), rows }
    }

    /// A choice among these values, which are their own words.
    #[must_use]
    pub fn choice(values: &[&str], chosen: &str) -> Self {
        let option = |value: &&str| Choice {
            value: (*value).to_owned(),
            label: Words::new(value),
            is_chosen: *value == chosen,
        };
        Self::Choice { options: values.iter().map(option).collect() }
    }
}

impl Origin {
    /// An origin with its value.
    #[must_use]
    pub fn new(from: &str, value: &str) -> Self {
        Self { from: Words::within(from, 120), value: Words::within(value, 200) }
    }
}

/// The text of an area as written: browsers send `\r\n` for a line break.
#[must_use]
pub fn line_breaks(sent: &str) -> String {
    sent.replace("\r\n", "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_differ_and_have_no_space() {
        let id = |name: &str| Field::new(name, "Name", Input::line("")).id();
        let names = ["a", "a b", "a.b", "a-b", "a-20-b", "ä", "config[0]", ""];
        let ids: std::collections::BTreeSet<_> = names.iter().map(|name| id(name)).collect();
        assert_eq!(ids.len(), names.len());
        assert!(ids.iter().all(|id| !id.contains([' ', '"', '.'])), "{ids:?}");
    }

    #[test]
    fn an_input_names_the_sentences_about_it() {
        let field = Field::new("url", "Address", Input::line(""));
        assert_eq!(field.described_by(), "");
        let field = field.help("An address.").fault(Some("refused"));
        assert_eq!(field.described_by(), "f-url.fault f-url.help");
    }

    #[test]
    fn line_breaks_of_browsers_become_plain() {
        assert_eq!(line_breaks("one\r\ntwo\n"), "one\ntwo\n");
    }
}
