//! Secrets of a workspace: three states of a row, and never a value.

pub mod samples;

use askama::Template;

use crate::{
    Frame, filters,
    parts::{Action, Empty, Filter, Moment, Words, form::Field},
};

/// The list.
#[derive(Debug, Template)]
#[template(path = "secrets.html")]
pub struct SecretsPage {
    /// The frame.
    pub frame: Frame,
    /// The text of the search.
    pub filtered: String,
    /// The path of this page.
    pub path: String,
    /// The path of the page that adds a secret; `None` for a human who may not.
    pub add: Option<String>,
    /// The filters by state.
    pub filters: Vec<Filter>,
    /// The rows of this page.
    pub rows: Vec<SecretRow>,
    /// Number of rows that fit the filters.
    pub count: usize,
    /// The address of the next page.
    pub next: Option<String>,
    /// The command for a value of several lines.
    pub command: Words,
    /// Shown where there are no rows.
    pub empty: Empty,
}

/// A secret.
#[derive(Debug, Clone)]
pub struct SecretRow {
    /// The id of the row's element.
    pub id: String,
    /// The name.
    pub name: Words,
    /// The state with what can be done in it.
    pub state: SecretState,
    /// The things that refer to the secret.
    pub users: Users,
}

/// The state of a secret.
#[derive(Debug, Clone)]
pub enum SecretState {
    /// The secret has no value.
    Unset {
        /// The form for a value; `None` for a human who may not set one.
        form: Option<ValueForm>,
    },
    /// The secret has a value.
    Set {
        /// The last change.
        facts: SetFacts,
        /// The paths of Replace and of Clear; `None` for a human who may not change it.
        change: Option<[String; 2]>,
    },
    /// The secret has a value, and a form for another one is open.
    Replacing {
        /// The last change.
        facts: SetFacts,
        /// The form for the new value.
        form: ValueForm,
        /// The path that closes the form.
        cancel: String,
    },
}

/// The facts about a value that may be shown.
#[derive(Debug, Clone)]
pub struct SetFacts {
    /// The time at which it was set.
    pub at: Moment,
    /// The setter.
    pub by: Words,
    /// The number of the version.
    pub version: u64,
}

/// A form for a new value.
#[derive(Debug, Clone)]
pub struct ValueForm {
    /// The path that the form is sent to.
    pub path: String,
    /// The field, which never has a value.
    pub field: Field,
}

/// The things that refer to a secret.
#[derive(Debug, Clone)]
pub enum Users {
    /// The human may not see the catalog.
    Withheld,
    /// All of them, or the first ones.
    Known {
        /// Those that the page shows.
        shown: Vec<User>,
        /// Number of further ones.
        more: usize,
    },
}

/// A thing that refers to a secret.
#[derive(Debug, Clone)]
pub struct User {
    /// The words for it.
    pub what: Words,
    /// The path of its page, if it has one that the human may open.
    pub href: Option<String>,
}

/// The page that adds a secret.
#[derive(Debug, Template)]
#[template(path = "secret_new.html")]
pub struct SecretNewPage {
    /// The frame.
    pub frame: Frame,
    /// The path that the form is sent to.
    pub path: String,
    /// The page to go back to.
    pub back: String,
    /// The name of the secret.
    pub name: Field,
    /// The field for the value, which never has one.
    pub value: Field,
    /// The command for a value of several lines.
    pub command: Words,
}

/// The page that shows what breaks before a secret is cleared.
#[derive(Debug, Template)]
#[template(path = "secret_clear.html")]
pub struct SecretClearPage {
    /// The frame.
    pub frame: Frame,
    /// The secret.
    pub name: Words,
    /// The button that clears it; `None` for a secret without a value.
    pub clear: Option<Action>,
    /// The page to go back to.
    pub back: String,
    /// The places that name the secret.
    pub places: Vec<User>,
    /// Number of further places.
    pub more_places: usize,
    /// The live runs that hold its value.
    pub runs: Vec<Holder>,
    /// Number of further runs.
    pub more_runs: usize,
    /// The bindings to the environment of agents.
    pub bound: Vec<Words>,
    /// True if agents keep the value in their own environment.
    pub is_kept: bool,
}

/// A live run that holds the value of a secret.
#[derive(Debug, Clone)]
pub struct Holder {
    /// The number of the run.
    pub pid: u64,
    /// The agent.
    pub agent: Words,
    /// The path of its page, if there is one that the human may open.
    pub href: Option<String>,
    /// The servers of the run that end.
    pub servers: Words,
    /// The variables of the agent that keep the value.
    pub env: Words,
}

impl SecretClearPage {
    /// True if nothing refers to the secret, and no run holds it.
    #[must_use]
    pub fn breaks_nothing(&self) -> bool {
        self.places.is_empty() && self.runs.is_empty() && self.bound.is_empty()
    }
}
