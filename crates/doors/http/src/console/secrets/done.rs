//! The results of actions on a secret, in words and in addresses.

use narthex_console::{Told, parts::Words};
use narthex_model::SecretName;

use crate::{
    console::{answer::Answered, viewer::Viewer},
    secret_users::{TOLD, TOO_SHORT},
};

/// An action on a secret that was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Done {
    Set,
    /// Set to a value that is too short to be redacted.
    Short,
    Cleared,
    /// Cleared, but agents keep the value in their own environment.
    Kept,
}

impl Done {
    const ALL: [Self; 4] = [Self::Set, Self::Short, Self::Cleared, Self::Kept];

    /// The action of a word in an address.
    pub(super) fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|done| done.word() == word)
    }

    fn word(self) -> &'static str {
        match self {
            Self::Set => "set",
            Self::Short => "short",
            Self::Cleared => "cleared",
            Self::Kept => "kept",
        }
    }

    /// The sentence about it.
    pub(super) fn told(self, name: &SecretName) -> Told {
        let set =
            format!("{name} is set: new runs use it, and servers of configuration files at once");
        let sentence = match self {
            Self::Set => format!("{set}."),
            Self::Short => format!("{set}. But {TOO_SHORT}."),
            Self::Cleared => format!("{name} is cleared."),
            Self::Kept => format!("{name} is cleared. But {TOLD}."),
        };
        Told { sentence: Words::new(&sentence), is_failure: false }
    }

    /// The answer to the action: the list, at the row of the secret.
    pub(super) fn answer(self, viewer: &Viewer<'_>, name: &SecretName) -> Answered {
        let query = format!("done={}&name={name}", self.word());
        viewer.done(self.told(name), &viewer.path(&format!("secrets?{query}#secret-{name}")))
    }
}
