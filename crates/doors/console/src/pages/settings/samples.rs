//! Samples of the pages of settings, whose texts end in a given one.

use std::time::Duration;

use narthex_model::{Secret, command::narthex};

use super::{
    Card, Cell, Form, Group, Piece, Primary, SettingsConfirmPage, SettingsPage, SettingsTokenPage,
    Tab, Table, Tabs,
};
use crate::{
    Frame, html,
    pages::kitchen_sink::{frame_of, items_of},
    parts::{
        Empty, Moment, Words,
        form::{Field, Input},
    },
};

const PATH: &str = "/w/default/settings/limits";

fn words(text: &str, more: &str) -> Words {
    Words::new(&format!("{text}{more}"))
}

fn moment() -> Moment {
    Moment::after_epoch(Duration::from_secs(1_790_000_000))
}

/// All pages by the names of their templates.
#[must_use]
pub fn pages(more: &str) -> Vec<(&'static str, String)> {
    let off = SettingsPage {
        primary: Some(primary(Some("only an operator does this"))),
        cards: vec![Card::new("form", "Limits", "", vec![Piece::Form(form(more).off(OFF))])],
        ..page(frame_of(more), more)
    };
    vec![
        ("settings", html(&page(frame_of(more), more))),
        ("settings off", html(&off)),
        ("settings confirm", html(&confirm(more))),
        ("settings token", html(&token(more))),
    ]
}

const OFF: Option<&str> = Some("only an admin of the workspace changes this");

/// A page with a card for each kind of piece.
#[must_use]
pub fn page(frame: Frame, more: &str) -> SettingsPage {
    SettingsPage {
        frame,
        primary: Some(primary(None)),
        tabs: tabs(),
        cards: vec![usage(more), rows(more), rest(more)],
    }
}

fn primary(off: Option<&'static str>) -> Primary {
    Primary { href: format!("{PATH}/new"), label: "Add one", off }
}

fn tabs() -> Tabs {
    let tab = |href: &str, label, is_current| Tab { href: href.to_owned(), label, is_current };
    let tabs = vec![tab("/w/default/settings", "General", false), tab(PATH, "Limits", true)];
    Tabs { tabs }
}

/// A table beside a form.
#[must_use]
pub fn usage(more: &str) -> Card {
    let name = Cell { text: words("reader", more), ..Cell::default() };
    let row = |name: Cell| {
        vec![name, Cell::number("12 of 5000"), Cell::new("none").bad(), Cell::at("", moment())]
    };
    let table = Table {
        caption: "The use of today",
        head: vec![("What", false), ("Calls", true), ("Rate", false), ("Since", false)],
        rows: vec![row(name.clone().to(Some(PATH.to_owned()))), row(name)],
    };
    let card = Card::new("usage", "Limits", "", vec![Piece::Table(table), Piece::Form(form(more))]);
    Card { sentence: words("What is used beside the limit.", more), ..card }
}

fn form(more: &str) -> Form {
    let short: String = more.chars().take(200).collect();
    let number = Field::new("calls_per_day", &format!("Calls a day{more}"), Input::line(&short));
    let role = |name, is_on| Field::new(name, name, Input::Check { is_on }).help(more);
    let group = Group {
        legend: Some("Roles"),
        fault: Some(words("choose at least one role", more)),
        fields: vec![role("admin", true), role("runner", false)],
    };
    Form::new(PATH.to_owned(), "token", "Save")
        .fields(vec![number.fault(Some(more)).help("Empty for no limit.")])
        .group(group)
        .keep("sure", "yes")
        .fault(Some(format!("the limits were refused{more}")))
}

fn rows(more: &str) -> Card {
    let next = Some(format!("{PATH}?after=a"));
    let pieces = vec![
        Piece::Rows(items_of(more)),
        Piece::More { words: words("3 of 120", more), next },
        Piece::More { words: words("3 of 3", more), next: None },
    ];
    Card::new("rows", "Rows", "", pieces)
}

fn rest(more: &str) -> Card {
    let empty = Empty {
        title: "Nothing yet",
        sentence: more.chars().take(200).collect(),
        example: None,
        page: None,
    };
    let cell = Cell { text: words("team/ci", more), ..Cell::default() };
    let pieces = vec![
        Piece::Pairs(vec![("service", cell), ("made", Cell::at("", moment()))]),
        Piece::Note(words("A note.", more)),
        Piece::Warning(words("A warning.", more)),
        Piece::Command(words(&narthex("limits get", &[]).to_string(), more)),
        Piece::Link { href: format!("{PATH}/remove"), label: words("Remove", more) },
        Piece::Empty(empty),
    ];
    Card { title: words("The rest", more), ..Card::new("rest", "", "", pieces) }
}

fn confirm(more: &str) -> SettingsConfirmPage {
    SettingsConfirmPage {
        frame: frame_of(more),
        effects: vec![words("Its tokens end.", more)],
        facts: vec![("name", Cell { text: words("team/ci", more), ..Cell::default() })],
        form: form(more),
        back: PATH.to_owned(),
    }
}

fn token(more: &str) -> SettingsTokenPage {
    SettingsTokenPage {
        frame: frame_of(more),
        tabs: tabs(),
        token: Secret::new(format!("nxs_{}", more.chars().take(100).collect::<String>())),
        facts: vec![("service", Cell { text: words("team/ci", more), ..Cell::default() })],
        rights: vec![words("creates runs", more)],
        example: words("curl", more),
        back: "/w/default/settings/tokens".to_owned(),
    }
}
