//! Samples of rows about one object.

use std::time::Duration;

use crate::parts::{
    Action, Moment, Words,
    item::{Badge, Dated, Item},
};

/// A row of each state, whose texts end in another text.
#[must_use]
pub fn items_of(more: &str) -> Vec<Item> {
    let words = |text: &str| Words::new(&format!("{text}{more}"));
    let end = || Action::new("/w/default/me/sign-ins/1/end".to_owned(), "End", more).page();
    let at = || Moment::after_epoch(Duration::from_secs(1_790_000_000));
    vec![
        Item {
            badge: Some(Badge::fine("connected")),
            facts: vec![words("notes"), words("signed in at https://id.example.com")],
            times: vec![Dated { label: "last token", at: at() }],
            actions: vec![end()],
            ..Item::new("token", &format!("Notes{more}"))
        },
        Item {
            href: Some("/w/default/clients?open=1".to_owned()),
            badge: Some(Badge::asks("needs a sign-in")),
            note: Some(words("The server refused the last token.")),
            actions: vec![end().primary(), end().off("ask an admin")],
            ..Item::new("token", &format!("Mail{more}"))
        },
        Item { badge: Some(Badge::off("revoked")), ..Item::new("token", more) },
    ]
}
