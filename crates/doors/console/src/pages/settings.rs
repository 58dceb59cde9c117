//! The settings of a workspace: tabs with cards, a page that asks before a change that cannot be
//! undone, and the page of a new token.

pub mod samples;

use askama::Template;
use narthex_model::Secret;

use crate::{
    Frame, filters,
    parts::{Empty, Moment, Words, form::Field, item::Item},
};

/// A tab, or a form that belongs to one.
#[derive(Debug, Template)]
#[template(path = "settings.html")]
pub struct SettingsPage {
    /// The frame.
    pub frame: Frame,
    /// The link at the head, such as that which adds a member.
    pub primary: Option<Primary>,
    /// The tabs.
    pub tabs: Tabs,
    /// The parts of the page.
    pub cards: Vec<Card>,
}

/// The tabs that the human may open.
#[derive(Debug, Clone, Template)]
#[template(path = "parts/settings_tabs.html")]
pub struct Tabs {
    /// All of them.
    pub tabs: Vec<Tab>,
}

/// A tab.
#[derive(Debug, Clone)]
pub struct Tab {
    /// The path.
    pub href: String,
    /// The words.
    pub label: &'static str,
    /// True for the tab that is open.
    pub is_current: bool,
}

/// The link at the head of a page.
#[derive(Debug, Clone)]
pub struct Primary {
    /// The path.
    pub href: String,
    /// The words.
    pub label: &'static str,
    /// The reason why the link leads nowhere now.
    pub off: Option<&'static str>,
}

/// A part of a page with a heading.
#[derive(Debug, Clone)]
pub struct Card {
    /// The id of its element.
    pub id: &'static str,
    /// The heading.
    pub title: Words,
    /// A sentence about it; empty for none.
    pub sentence: Words,
    /// The contents.
    pub pieces: Vec<Piece>,
}

/// A piece of a card.
#[derive(Debug, Clone)]
pub enum Piece {
    /// A form.
    Form(Form),
    /// Rows about objects.
    Rows(Vec<Item>),
    /// The number of rows, and the address of the next page.
    More {
        /// The number in words, such as `40 of 120 members`.
        words: Words,
        /// The address of the next page.
        next: Option<String>,
    },
    /// A table.
    Table(Table),
    /// Facts with their names.
    Pairs(Vec<(&'static str, Cell)>),
    /// A sentence that explains.
    Note(Words),
    /// A sentence that warns.
    Warning(Words),
    /// A command to copy.
    Command(Words),
    /// A link to another page.
    Link {
        /// The path.
        href: String,
        /// The words.
        label: Words,
    },
    /// Shown where there are no rows.
    Empty(Empty),
}

/// A table, whose first cells name the rows.
#[derive(Debug, Clone)]
pub struct Table {
    /// The sentence above it, which names its region.
    pub caption: &'static str,
    /// The heads of the columns, each with whether it has numbers.
    pub head: Vec<(&'static str, bool)>,
    /// The rows.
    pub rows: Vec<Vec<Cell>>,
}

/// A value in a table or among facts.
#[derive(Debug, Clone, Default)]
pub struct Cell {
    /// The text.
    pub text: Words,
    /// The time, after the text.
    pub at: Option<Moment>,
    /// The page that the text leads to.
    pub href: Option<String>,
    /// True for a number.
    pub is_number: bool,
    /// True for a failure.
    pub is_bad: bool,
}

/// A form.
#[derive(Debug, Clone, Template)]
#[template(path = "parts/settings_form.html")]
pub struct Form {
    /// The path that the form is sent to.
    pub path: String,
    /// The value that forms repeat.
    pub csrf: String,
    /// The reason why the form was refused, where no field is the reason.
    pub fault: Option<Words>,
    /// The values that the form repeats unseen.
    pub kept: Vec<(&'static str, String)>,
    /// The fields.
    pub groups: Vec<Group>,
    /// The words on the button.
    pub button: &'static str,
    /// The reason why the button does nothing now.
    pub off: Option<&'static str>,
}

/// Fields that belong together.
#[derive(Debug, Clone, Default)]
pub struct Group {
    /// The words for them.
    pub legend: Option<&'static str>,
    /// The reason why they were refused together.
    pub fault: Option<Words>,
    /// The fields.
    pub fields: Vec<Field>,
}

/// The page that asks before a change that cannot be undone.
#[derive(Debug, Template)]
#[template(path = "settings_confirm.html")]
pub struct SettingsConfirmPage {
    /// The frame.
    pub frame: Frame,
    /// The consequences.
    pub effects: Vec<Words>,
    /// Facts about the object.
    pub facts: Vec<(&'static str, Cell)>,
    /// The form with the button.
    pub form: Form,
    /// The page to go back to.
    pub back: String,
}

/// The answer that has the text of a new token, and the only one.
#[derive(Debug, Template)]
#[template(path = "settings_token.html")]
pub struct SettingsTokenPage {
    /// The frame.
    pub frame: Frame,
    /// The tabs.
    pub tabs: Tabs,
    /// The token.
    pub token: Secret,
    /// Facts about it.
    pub facts: Vec<(&'static str, Cell)>,
    /// The things that a program may do with it.
    pub rights: Vec<Words>,
    /// A request that tries it.
    pub example: Words,
    /// The list of tokens.
    pub back: String,
}

impl Card {
    /// A card with a sentence.
    #[must_use]
    pub fn new(id: &'static str, title: &str, sentence: &str, pieces: Vec<Piece>) -> Self {
        Self { id, title: Words::new(title), sentence: Words::new(sentence), pieces }
    }
}

impl Cell {
    /// A text.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self { text: Words::new(text), ..Self::default() }
    }

    /// A number.
    #[must_use]
    pub fn number(text: &str) -> Self {
        Self { is_number: true, ..Self::new(text) }
    }

    /// A time, after words that may be empty.
    #[must_use]
    pub fn at(text: &str, at: Moment) -> Self {
        Self { at: Some(at), ..Self::new(text) }
    }

    /// The same value, which leads to a page.
    #[must_use]
    pub fn to(self, href: Option<String>) -> Self {
        Self { href, ..self }
    }

    /// The same value as a failure.
    #[must_use]
    pub fn bad(self) -> Self {
        Self { is_bad: true, ..self }
    }
}

impl Form {
    /// A form without fields.
    #[must_use]
    pub fn new(path: String, csrf: &str, button: &'static str) -> Self {
        Self {
            path,
            csrf: csrf.to_owned(),
            fault: None,
            kept: Vec::new(),
            groups: Vec::new(),
            button,
            off: None,
        }
    }

    /// The same form with further fields, which have no common words.
    #[must_use]
    pub fn fields(self, fields: Vec<Field>) -> Self {
        self.group(Group { fields, ..Group::default() })
    }

    /// The same form with a further group of fields.
    #[must_use]
    pub fn group(mut self, group: Group) -> Self {
        self.groups.push(group);
        self
    }

    /// The same form with a value that it repeats unseen.
    #[must_use]
    pub fn keep(mut self, name: &'static str, value: &str) -> Self {
        self.kept.push((name, value.to_owned()));
        self
    }

    /// The same form with the reason why it was refused, if there is one.
    #[must_use]
    pub fn fault(self, fault: Option<String>) -> Self {
        Self { fault: fault.as_deref().map(Words::new), ..self }
    }

    /// The same form, which cannot be sent: each field says why.
    #[must_use]
    pub fn off(mut self, why: Option<&'static str>) -> Self {
        let Some(why) = why else { return self };
        self.off = Some(why);
        for field in self.groups.iter_mut().flat_map(|group| &mut group.fields) {
            field.off = Some(Words::new(why));
        }
        self
    }
}
