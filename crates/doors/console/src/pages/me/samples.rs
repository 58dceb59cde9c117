//! Samples of the pages of the account, whose texts end in a given one.

use std::time::Duration;

use super::{Adding, MeOnwardPage, MePage};
use crate::{
    html,
    pages::kitchen_sink::{frame_of, items_of},
    parts::{
        Action, Moment, Words,
        form::{Field, Input},
        item::{Badge, Dated, Item},
    },
};

/// All pages by the names of their templates.
pub(crate) fn pages(more: &str) -> Vec<(&'static str, String)> {
    let onward = MeOnwardPage {
        frame: frame_of(more),
        server: Words::new(more),
        host: Words::new(more),
        url: "https://id.example.com/authorize".to_owned(),
        back: "/w/default/me".to_owned(),
    };
    let off = MePage { adding: Adding::Off("Passkeys do not work here."), ..page(more) };
    vec![
        ("me", html(&page(more))),
        ("me without passkeys", html(&off)),
        ("me onward", html(&onward)),
    ]
}

fn page(more: &str) -> MePage {
    let field = Field::new("label", more, Input::line(&more.chars().take(100).collect::<String>()));
    MePage {
        frame: frame_of(more),
        connections: items_of(more),
        next: Some("/w/default/me?after=notes".to_owned()),
        programs: items_of(more),
        connect: "/w/default/connect".to_owned(),
        passkeys: vec![passkey(more)],
        adding: Adding::Form { field: Box::new(field), then: "/w/default/me".to_owned() },
        logins: items_of(more),
    }
}

fn passkey(more: &str) -> Item {
    let path = "/w/default/me/passkeys/1/remove".to_owned();
    Item {
        badge: Some(Badge::asks("not used yet")),
        times: vec![Dated { label: "added", at: Moment::after_epoch(Duration::from_secs(9)) }],
        actions: vec![Action::new(path, "Remove", more).off("a link proves no human")],
        ..Item::new("token", more)
    }
}
