//! A sample of the page of clients, whose texts end in a given one.

use std::time::Duration;

use super::{ClientsPage, Facts};
use crate::{
    html,
    pages::kitchen_sink::{frame_of, items_of},
    parts::{Empty, Filter, Moment, Words},
};

/// The page with rows and facts, and without both, by the names of templates.
pub(crate) fn pages(more: &str) -> Vec<(&'static str, String)> {
    let empty = ClientsPage { open: None, rows: Vec::new(), ..page(more) };
    vec![("clients", html(&page(more))), ("clients without rows", html(&empty))]
}

fn page(more: &str) -> ClientsPage {
    let filter = Filter {
        href: "/w/default/clients?kind=human".to_owned(),
        label: more.chars().take(40).collect(),
        count: Some(2),
        is_current: true,
    };
    let facts = Facts {
        title: Words::new(more),
        pairs: vec![("program", Words::new(more))],
        times: vec![("registered", Moment::after_epoch(Duration::from_secs(9)))],
        redirects: vec![Words::new(more)],
        close: "/w/default/clients".to_owned(),
    };
    ClientsPage {
        frame: frame_of(more),
        open: Some(facts),
        filtered: more.chars().take(200).collect(),
        path: "/w/default/clients".to_owned(),
        connect: "/w/default/connect".to_owned(),
        filters: vec![filter],
        rows: items_of(more),
        count: 2,
        next: Some("/w/default/clients?after=1".to_owned()),
        empty: Empty {
            title: "No clients yet",
            sentence: more.chars().take(200).collect(),
            example: None,
            page: None,
        },
    }
}
