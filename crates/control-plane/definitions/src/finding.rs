//! Findings in a definition.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::place::Place;

/// Maximum number of characters of an excerpt.
pub const EXCERPT_MAX: usize = 200;

/// Maximum number of findings of one definition; one is enough for a human's review.
pub const FINDINGS_MAX: usize = 32;

/// A reason for a human to review a definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The rule that was broken.
    pub rule: Rule,
    /// The place, as a JSON pointer; empty for the definition as a whole.
    pub place: String,
    /// The text at that place, or its decoded form, made [`harmless`](crate::harmless()). For
    /// people only: for a model it can still be an instruction.
    pub excerpt: String,
}

/// A rule of the screening. People see its [`id`](Rule::id).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Rule {
    /// The definition is no readable JSON object.
    Unreadable,
    /// The definition is longer than the limit for screening.
    TooLarge,
    /// An object has a key twice: readers disagree on which value counts.
    KeyTwice,
    /// Characters of the block of tags, which only models read.
    HiddenTags,
    /// Characters that turn or override the direction of text.
    BidiControls,
    /// Characters of no width where no script needs them.
    ZeroWidth,
    /// Variation selectors without an effect, which can carry bytes.
    VariationSelectors,
    /// Control characters, such as those that steer terminals.
    ControlCharacters,
    /// Characters without a common meaning.
    PrivateUse,
    /// Blanks that move the following text out of view.
    Padding,
    /// A comment of HTML or Markdown, which a page does not show.
    Comment,
    /// Markup with a style that hides its text.
    HiddenMarkup,
    /// Marks of prompts, such as `<IMPORTANT>` or `<|im_start|>`.
    ModelMarkup,
    /// Text in Base64 or hexadecimal digits, or long text that could be.
    EncodedBlob,
    /// Text in escapes, such as `%69%67`.
    EncodedText,
    /// Words written letter by letter.
    SpacedLetters,
    /// A name with letters that look like other letters.
    ConfusableName,
    /// A schema with a reference to another document.
    RemoteReference,
    /// Asks to ignore instructions, or to follow others.
    OverridesInstructions,
    /// Asks to hide something from people.
    Secrecy,
    /// Mentions reading files that hold secrets.
    SecretFiles,
    /// Asks for the conversation, the system prompt or credentials.
    AsksForContext,
    /// Asks to send data to another receiver than the intended one.
    Redirects,
    /// Gives instructions for tools of other servers.
    OtherTools,
    /// Asks to skip an approval.
    SkipsApproval,
    /// Addresses the model by name.
    AddressesModel,
}

impl Rule {
    /// All rules.
    pub const ALL: [Self; 26] = narthex_model::every![
        Unreadable,
        TooLarge,
        KeyTwice,
        HiddenTags,
        BidiControls,
        ZeroWidth,
        VariationSelectors,
        ControlCharacters,
        PrivateUse,
        Padding,
        Comment,
        HiddenMarkup,
        ModelMarkup,
        EncodedBlob,
        EncodedText,
        SpacedLetters,
        ConfusableName,
        RemoteReference,
        OverridesInstructions,
        Secrecy,
        SecretFiles,
        AsksForContext,
        Redirects,
        OtherTools,
        SkipsApproval,
        AddressesModel
    ];

    /// The name of the rule, which never changes.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::Unreadable => "unreadable",
            Self::TooLarge => "too-large",
            Self::KeyTwice => "key-twice",
            Self::HiddenTags => "hidden-tags",
            Self::BidiControls => "bidi-controls",
            Self::ZeroWidth => "zero-width",
            Self::VariationSelectors => "variation-selectors",
            Self::ControlCharacters => "control-characters",
            Self::PrivateUse => "private-use",
            Self::Padding => "padding",
            Self::Comment => "comment",
            Self::HiddenMarkup => "hidden-markup",
            Self::ModelMarkup => "model-markup",
            Self::EncodedBlob => "encoded-blob",
            Self::EncodedText => "encoded-text",
            Self::SpacedLetters => "spaced-letters",
            Self::ConfusableName => "confusable-name",
            Self::RemoteReference => "remote-reference",
            Self::OverridesInstructions => "overrides-instructions",
            Self::Secrecy => "secrecy",
            Self::SecretFiles => "secret-files",
            Self::AsksForContext => "asks-for-context",
            Self::Redirects => "redirects",
            Self::OtherTools => "other-tools",
            Self::SkipsApproval => "skips-approval",
            Self::AddressesModel => "addresses-model",
        }
    }

    /// The description of the rule, as the end of a sentence that starts with "The definition".
    #[must_use]
    pub fn told(self) -> &'static str {
        match self {
            Self::Unreadable => "cannot be read",
            Self::TooLarge => "is too large to be checked",
            Self::KeyTwice => "has a key twice, and a reader may use either",
            Self::HiddenTags => "has tag characters, which only a model reads",
            Self::BidiControls => "has characters that change the direction of text",
            Self::ZeroWidth => "has invisible characters",
            Self::VariationSelectors => "has variation selectors without effect",
            Self::ControlCharacters => "has control characters",
            Self::PrivateUse => "has private-use characters",
            Self::Padding => "has so many blanks that text moves out of sight",
            Self::Comment => "has a comment, which a page would not show",
            Self::HiddenMarkup => "has markup with a style that hides it",
            Self::ModelMarkup => "has delimiters of prompts",
            Self::EncodedBlob => "has encoded text or data",
            Self::EncodedText => "has text in escapes",
            Self::SpacedLetters => "has words written letter by letter",
            Self::ConfusableName => "has a name with letters that look like others",
            Self::RemoteReference => "refers to a schema elsewhere",
            Self::OverridesInstructions => "asks to override instructions",
            Self::Secrecy => "asks to hide something from people",
            Self::SecretFiles => "mentions reading files that hold secrets",
            Self::AsksForContext => "asks for the conversation, the system prompt or credentials",
            Self::Redirects => "asks to send something elsewhere",
            Self::OtherTools => "says how to use other tools",
            Self::SkipsApproval => "asks to skip an approval",
            Self::AddressesModel => "addresses the model",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.id())
    }
}

/// The findings of one definition, as they come.
#[derive(Default)]
pub(crate) struct Findings(Vec<Finding>);

impl Findings {
    /// True if the limit of findings is reached.
    pub(crate) fn is_full(&self) -> bool {
        self.0.len() >= FINDINGS_MAX
    }

    /// Stores a finding if there is room.
    pub(crate) fn add(&mut self, rule: Rule, place: &Place<'_>, excerpt: &str) {
        if !self.is_full() {
            let excerpt = crate::harmless(excerpt, EXCERPT_MAX);
            self.0.push(Finding { rule, place: place.pointer(), excerpt });
        }
    }

    pub(crate) fn into_vec(self) -> Vec<Finding> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_rule_has_a_unique_id() {
        let ids = Rule::ALL.map(Rule::id);
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), Rule::ALL.len());
        for id in ids {
            assert!(id.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{id}");
        }
    }
}
