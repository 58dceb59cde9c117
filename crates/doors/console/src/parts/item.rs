//! A row about one object: its name, its state, facts with times, and buttons.

use askama::Template;

use super::{Action, Moment, Words};

/// A row, which is an item of a list.
#[derive(Debug, Clone, Template)]
#[template(path = "parts/item.html")]
pub struct Item {
    /// The value that forms repeat.
    pub csrf: String,
    /// The name of the object.
    pub title: Words,
    /// The address of the object, if it has one.
    pub href: Option<String>,
    /// The state.
    pub badge: Option<Badge>,
    /// A sentence about the object.
    pub note: Option<Words>,
    /// Short facts.
    pub facts: Vec<Words>,
    /// Facts that are times.
    pub times: Vec<Dated>,
    /// The buttons.
    pub actions: Vec<Action>,
}

/// A state as a word with an icon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Badge {
    /// The class of the style, such as `ready`.
    pub class: &'static str,
    /// The icon.
    pub icon: &'static str,
    /// The word.
    pub word: &'static str,
}

/// A time with the words before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dated {
    /// The words.
    pub label: &'static str,
    /// The time.
    pub at: Moment,
}

impl Item {
    /// A row with a name alone.
    #[must_use]
    pub fn new(csrf: &str, title: &str) -> Self {
        Self {
            csrf: csrf.to_owned(),
            title: Words::within(title, 120),
            href: None,
            badge: None,
            note: None,
            facts: Vec::new(),
            times: Vec::new(),
            actions: Vec::new(),
        }
    }
}

impl Badge {
    /// A state that is as it should be.
    #[must_use]
    pub fn fine(word: &'static str) -> Self {
        Self { class: "ready", icon: "check", word }
    }

    /// A state in which the object is not used.
    #[must_use]
    pub fn off(word: &'static str) -> Self {
        Self { class: "disabled", icon: "pause", word }
    }

    /// A state that waits for a human.
    #[must_use]
    pub fn asks(word: &'static str) -> Self {
        Self { class: "authenticating", icon: "key", word }
    }
}
