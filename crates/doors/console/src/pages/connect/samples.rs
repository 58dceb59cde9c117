//! Samples of the page on which a client is connected, whose texts end in a given one.

use std::time::Duration;

use super::{Arrival, Arrived, Chosen, ConnectPage, OwnFile, Text, Way};
use crate::{
    html,
    pages::kitchen_sink::frame_of,
    parts::{Action, Filter, Moment, Words},
};

/// The page with a client and without one, by the names of templates.
pub(crate) fn pages(more: &str) -> Vec<(&'static str, String)> {
    let none = ConnectPage { chosen: None, arrived: Arrived { clients: Vec::new() }, ..page(more) };
    let off = OwnFile::Off(Words::new(more));
    let elsewhere = ConnectPage { chosen: Some(chosen(more, off)), ..page(more) };
    vec![
        ("connect", html(&page(more))),
        ("connect without a client", html(&none)),
        ("connect elsewhere", html(&elsewhere)),
    ]
}

fn page(more: &str) -> ConnectPage {
    let file = OwnFile::Known {
        path: Words::new(more),
        state: Words::new(more),
        lines: vec![Words::new(more), Words::new("}")],
        refresh: Words::new(more),
        action: Some(Action::new("/w/default/connect/cursor/write".to_owned(), "Write", more)),
    };
    let arrival = Arrival {
        name: Words::new(more),
        version: Words::new(more),
        at: Moment::after_epoch(Duration::from_secs(9)),
    };
    ConnectPage {
        frame: frame_of(more),
        clients: vec![Filter {
            href: "/w/default/connect?client=cursor".to_owned(),
            label: "Cursor".to_owned(),
            count: None,
            is_current: true,
        }],
        url: "http://localhost:7717/mcp".to_owned(),
        chosen: Some(chosen(more, file)),
        arrived: Arrived { clients: vec![arrival] },
        again: "/w/default/connect?client=cursor".to_owned(),
    }
}

fn chosen(more: &str, file: OwnFile) -> Chosen {
    let text = Text { label: Words::new(more), text: "{}\n".to_owned() };
    let way = Way { title: "With a sign-in", sentence: Words::new(more), texts: vec![text] };
    Chosen { name: Words::new(more), file, ways: vec![way] }
}
