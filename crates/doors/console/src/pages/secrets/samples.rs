//! Samples of the pages of secrets, whose texts end in a given one.

use std::time::Duration;

use narthex_model::command::narthex;

use super::{
    Holder, SecretClearPage, SecretNewPage, SecretRow, SecretState, SecretsPage, SetFacts, User,
    Users, ValueForm,
};
use crate::{
    Frame,
    parts::{
        Action, Empty, Filter, Moment, Words,
        form::{Field, Input},
    },
};

const LIST: &str = "/w/default/secrets";

fn words(text: &str, more: &str) -> Words {
    Words::new(&format!("{text}{more}"))
}

/// The list with a row in each state.
#[must_use]
pub fn list(frame: Frame, more: &str) -> SecretsPage {
    let filter = |label: &str, count, is_current| Filter {
        href: format!("{LIST}?state=set"),
        label: label.to_owned(),
        count: Some(count),
        is_current,
    };
    SecretsPage {
        frame,
        filtered: more.chars().take(200).collect(),
        path: LIST.to_owned(),
        add: Some(format!("{LIST}/new")),
        filters: vec![filter("all", 5, true), filter("set", 3, false)],
        rows: rows(more),
        count: 120,
        next: Some(format!("{LIST}?after=TRACKER_KEY")),
        command: words(&narthex("secrets set NAME", &[]).to_string(), more),
        empty: Empty {
            title: "No secrets yet",
            sentence: "A secret is a value that servers get by its name.".to_owned(),
            example: None,
            page: None,
        },
    }
}

/// A row in each state.
#[must_use]
pub fn rows(more: &str) -> Vec<SecretRow> {
    let facts = || SetFacts {
        at: Moment::after_epoch(Duration::from_secs(1_790_000_000)),
        by: words("ada", more),
        version: 3,
    };
    let form = |name: &str, fault: Option<&str>| ValueForm {
        path: format!("{LIST}/{name}/set"),
        field: Field::new("value", &format!("Value of {name}{more}"), Input::Unseen)
            .in_row(name)
            .fault(fault),
    };
    let change = |name: &str| [format!("{LIST}?replace={name}"), format!("{LIST}/{name}/clear")];
    let user = |what: &str, href: Option<&str>| User {
        what: words(what, more),
        href: href.map(str::to_owned),
    };
    let used = || Users::Known {
        shown: vec![user("agent reader", Some("/w/default/agents")), user("channel team", None)],
        more: 2,
    };
    let unused = || Users::Known { shown: Vec::new(), more: 0 };
    let row = |name: &str, state, users| SecretRow {
        id: format!("secret-{name}"),
        name: words(name, more),
        state,
        users,
    };
    let set = |name: &str| SecretState::Set { facts: facts(), change: Some(change(name)) };
    let replacing = SecretState::Replacing {
        facts: facts(),
        form: form("MAIL_KEY", Some("Type a value.")),
        cancel: LIST.to_owned(),
    };
    vec![
        row("DOCS_KEY", SecretState::Unset { form: Some(form("DOCS_KEY", None)) }, used()),
        row("LINEAR_API_KEY", set("LINEAR_API_KEY"), unused()),
        row("MAIL_KEY", replacing, used()),
        row("SEEN_KEY", SecretState::Set { facts: facts(), change: None }, Users::Withheld),
        row("WANTED_KEY", SecretState::Unset { form: None }, used()),
    ]
}

/// The page that adds a secret, with a fault at its value.
#[must_use]
pub fn new(frame: Frame, more: &str) -> SecretNewPage {
    let more_of_name: String = more.chars().take(200).collect();
    let name = Input::line(&format!("LINEAR_API_KEY{more_of_name}"));
    SecretNewPage {
        frame,
        path: format!("{LIST}/new"),
        back: LIST.to_owned(),
        name: Field::new("name", "Name", name).required(),
        value: Field::new("value", "Value", Input::Unseen)
            .fault(Some(&format!("Type a value.{more}")))
            .required(),
        command: words(&narthex("secrets set NAME", &[]).to_string(), more),
    }
}

/// The page before a secret is cleared that is in use.
#[must_use]
pub fn clear(frame: Frame, more: &str) -> SecretClearPage {
    let user = |what: &str, href: Option<&str>| User {
        what: words(what, more),
        href: href.map(str::to_owned),
    };
    let path = format!("{LIST}/LINEAR_API_KEY/clear");
    SecretClearPage {
        frame,
        name: words("LINEAR_API_KEY", more),
        clear: Some(Action::new(path, "Clear it", "removes all values at once").primary().page()),
        back: LIST.to_owned(),
        places: vec![
            user("agents.reader.mcpServers.docs.config.key", Some("/w/default/agents")),
            user("channels.team.url", None),
        ],
        more_places: 3,
        runs: vec![Holder {
            pid: 7,
            agent: words("reader", more),
            href: Some("/w/default/runs".to_owned()),
            servers: words("docs, mail", more),
            env: words("DOCS_KEY", more),
        }],
        more_runs: 1,
        bound: vec![words("agent reader, as DOCS_KEY", more)],
        is_kept: true,
    }
}
