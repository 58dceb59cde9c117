//! Samples of the catalog's pages, whose texts end in another text.

use std::time::Duration;

use super::{
    CatalogEditPage, CatalogEntryPage, CatalogPage, CatalogRemovePage, CatalogRow, FileServers,
    Key, Off, User, Users, Written,
    form::{EntryForm, Line, Outcome, Paste, Row, ShapeFields, Taken},
};
use crate::{
    Frame,
    parts::{
        Action, Empty, Filter, Moment, Words,
        form::{Field, Input},
    },
};

/// The path of the list.
const LIST: &str = "/w/default/catalog";

fn words(text: &str, more: &str) -> Words {
    Words::new(&format!("{text}{more}"))
}

/// A text of a form that ends in another one, cut to a length that a form can have.
fn text(text: &str, more: &str) -> String {
    text.chars().chain(more.chars().take(200)).collect()
}

/// A row of the list with each of its notices.
#[must_use]
pub fn row(more: &str) -> CatalogRow {
    CatalogRow {
        href: format!("{LIST}/docs"),
        id: words("docs", more),
        name: words("Papers", more),
        shape: Some("remote address"),
        target: Some(words("https://docs.example.com/mcp", more)),
        keys: 2,
        off: Some(Off {
            is_draft: true,
            enable: Some(
                Action::new(format!("{LIST}/docs/enable"), "Enable", "for new runs").page(),
            ),
        }),
        faults: 1,
        never_starts: Some(words("starting a container image is not supported yet", more)),
        users: Users {
            first: vec![User {
                what: words("agent reader", more),
                href: Some("/w/default/agents/reader".to_owned()),
            }],
            more: 3,
        },
        made_by: Some(words("reader", more)),
    }
}

/// The list.
#[must_use]
pub fn list(frame: Frame, more: &str) -> CatalogPage {
    let filter = |label: &str, is_current| Filter {
        href: LIST.to_owned(),
        label: text(label, more),
        count: Some(2),
        is_current,
    };
    CatalogPage {
        frame,
        filtered: words("", more),
        path: LIST.to_owned(),
        add: Some(format!("{LIST}/new")),
        filters: vec![filter("all", true), filter("command", false)],
        rows: vec![row(more), row(more)],
        count: 120,
        next: Some(format!("{LIST}?after=docs")),
        files: Some(FileServers { count: 2, path: "/w/default/servers".to_owned() }),
        empty: Empty {
            title: "No servers yet",
            sentence: text("An entry says how a server is reached.", more),
            example: None,
            page: None,
        },
    }
}

/// One entry.
#[must_use]
pub fn entry(frame: Frame, more: &str) -> CatalogEntryPage {
    CatalogEntryPage {
        frame,
        row: row(more),
        description: words("Searches papers", more),
        keys: vec![Key {
            name: words("api_key", more),
            facts: words("string, secret, required", more),
            description: words("The key of the archive", more),
            value: Some(words("${DOCS_KEY}", more)),
        }],
        is_closed: true,
        faults: vec![words("`url`: this is no address; correct it", more)],
        definition: text("{\n  \"id\": \"docs\"\n}", more),
        written: Written {
            revision: 3,
            at: Moment::after_epoch(Duration::from_secs(1_790_000_000)),
            by: words("ada", more),
        },
        edit: Some(format!("{LIST}/docs/edit")),
        remove: Some(format!("{LIST}/docs/remove")),
        back: LIST.to_owned(),
    }
}

/// The page with the form of a stored entry.
#[must_use]
pub fn edit(frame: Frame, more: &str) -> CatalogEditPage {
    CatalogEditPage { frame, form: form(more), back: LIST.to_owned() }
}

/// The form of a stored entry with each kind of result.
#[must_use]
pub fn form(more: &str) -> EntryForm {
    let line = |name: &str, label: &str| {
        Field::new(name, &text(label, more), Input::line(&text("docs", more)))
    };
    let row = |title: &str, name: &str, remove: &str| Row {
        title: words(title, more),
        fields: vec![
            line(name, "Key").fault(Some(&text("this key is above already", more))),
            Field::new(format!("{name}.more"), "More", Input::area(&text("{}", more), 2)),
        ],
        remove: remove.to_owned(),
    };
    let shape = |word, title, is_shown| ShapeFields {
        word,
        title,
        is_shown,
        fields: vec![line(word, title)],
    };
    let taken = Taken {
        from: words("This is a text of VS Code.", more),
        notices: vec![words("servers.docs.url: `${X}` is read as `${env.X}`", more)],
        faults: vec![words("servers.docs.args[0]: this cannot be used", more)],
        choices: vec![("take.0".to_owned(), words("docs", more))],
    };
    let outcome = Outcome {
        told: Some(words("One thing has to be mended.", more)),
        is_failure: true,
        faults: vec![words("an agent would break", more)],
        warnings: vec![words("nothing uses it", more)],
        normal: Some(text("{}", more)),
        differences: vec![
            Line::Stored(text("  \"name\": \"a\"", more)),
            Line::Own(text("  \"name\": \"b\"", more)),
        ],
    };
    EntryForm {
        action: format!("{LIST}/docs/save"),
        tag: "1-2".to_owned(),
        is_off: true,
        paste: Paste {
            text: Field::new("paste", "An entry", Input::area(&text("{}", more), 6)),
            is_open: true,
            taken: Some(taken),
        },
        basics: vec![line("id", "Id").off("The id never changes."), line("name", "Name")],
        shape: Field::new("shape", "How it is reached", Input::choice(&["url", "command"], "url")),
        shapes: vec![
            shape("url", "Remote address", false),
            shape("command", "Command", true),
            shape("image", "Container image", false),
        ],
        keys: vec![row("Key docs", "key.0.name", "drop.key.0")],
        closed: Field::new("closed", "No other key", Input::Check { is_on: true }),
        values: vec![row("Value of docs", "value.0.key", "drop.value.0")],
        rest: Field::new("rest", "Other members", Input::area(&text("{}", more), 6)),
        outcome,
    }
}

/// The page that removes an entry.
#[must_use]
pub fn remove(frame: Frame, more: &str) -> CatalogRemovePage {
    CatalogRemovePage {
        frame,
        id: words("docs", more),
        action: format!("{LIST}/docs/delete"),
        tag: "1-2".to_owned(),
        users: vec![words("agents.reader.mcpServers.library", more)],
        more: 2,
        back: format!("{LIST}/docs"),
    }
}
