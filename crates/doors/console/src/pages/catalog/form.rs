//! The form of an entry of the catalog.

use crate::parts::{Words, form::Field};

/// The form. It is one form, so that each of its buttons keeps all that was typed.
#[derive(Debug, Clone)]
pub struct EntryForm {
    /// The path that the form is sent to.
    pub action: String,
    /// The version tag of the entry that was read; empty for a new one.
    pub tag: String,
    /// True if runs do not get the entry as it is in the form.
    pub is_off: bool,
    /// The box for the text of another program.
    pub paste: Paste,
    /// The id, the name and the description.
    pub basics: Vec<Field>,
    /// The choice of the shape.
    pub shape: Field,
    /// The fields of each shape.
    pub shapes: Vec<ShapeFields>,
    /// The rows of the schema.
    pub keys: Vec<Row>,
    /// The box that refuses other keys.
    pub closed: Field,
    /// The rows of the default values.
    pub values: Vec<Row>,
    /// All other members.
    pub rest: Field,
    /// The result of the last button.
    pub outcome: Outcome,
}

/// The box for the text of another program, and the result of reading one.
#[derive(Debug, Clone)]
pub struct Paste {
    /// The box.
    pub text: Field,
    /// True if the box is open.
    pub is_open: bool,
    /// The result of reading a text.
    pub taken: Option<Taken>,
}

/// The result of reading a pasted text.
#[derive(Debug, Clone)]
pub struct Taken {
    /// The text in words, such as `a text of VS Code`.
    pub from: Words,
    /// The parts that were rewritten, and those that were left out.
    pub notices: Vec<Words>,
    /// The parts that cannot be used.
    pub faults: Vec<Words>,
    /// The servers among which a person chooses, by the value of the button.
    pub choices: Vec<(String, Words)>,
}

/// The fields of a shape.
#[derive(Debug, Clone)]
pub struct ShapeFields {
    /// The word of the shape, as in the choice.
    pub word: &'static str,
    /// The heading.
    pub title: &'static str,
    /// True if the fields are shown whatever is chosen.
    pub is_shown: bool,
    /// The fields.
    pub fields: Vec<Field>,
}

/// A row of fields that can be removed.
#[derive(Debug, Clone)]
pub struct Row {
    /// The heading.
    pub title: Words,
    /// The fields.
    pub fields: Vec<Field>,
    /// The value of the button that removes the row.
    pub remove: String,
}

/// The result of the last button.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// The sentence at the top; `None` for a form that was just opened.
    pub told: Option<Words>,
    /// True if something was refused.
    pub is_failure: bool,
    /// The faults that belong to no field.
    pub faults: Vec<Words>,
    /// The warnings.
    pub warnings: Vec<Words>,
    /// The normal form of an entry that was checked.
    pub normal: Option<String>,
    /// The lines of the stored entry and of this one, after a conflict.
    pub differences: Vec<Line>,
}

/// A line of differences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// A line of the stored entry alone.
    Stored(String),
    /// A line of this form alone.
    Own(String),
}

impl EntryForm {
    /// True for an entry that is not stored yet.
    #[must_use]
    pub fn is_new(&self) -> bool {
        self.tag.is_empty()
    }

    /// True for a stored entry that a button can enable, such as a draft.
    #[must_use]
    pub fn is_draft(&self) -> bool {
        self.is_off && !self.is_new()
    }
}
