//! Samples of the pages of operators, whose texts end in a given one.

use std::time::Duration;

use super::{
    OperatorDeletePage, OperatorFilesPage, OperatorKeysPage, OperatorNewPage, OperatorPage,
    OperatorWorkspacesPage, WorkspaceRow,
};
use crate::{
    Frame, OperatorEntry, html,
    pages::kitchen_sink::{frame_of, items_of},
    parts::{
        Action, Empty, Moment, Words,
        form::{Field, Input},
    },
};

/// All pages by the names of their templates.
pub(crate) fn pages(more: &str) -> Vec<(&'static str, String)> {
    let empty = OperatorFilesPage { files: Vec::new(), settings: None, ..files(more) };
    let stays =
        OperatorDeletePage { stays: Some("it stays"), contents: Vec::new(), ..delete(more) };
    let bare = OperatorDeletePage { contents: Vec::new(), ..delete(more) };
    let none = OperatorWorkspacesPage { rows: Vec::new(), ..workspaces(more) };
    vec![
        ("operator delete without objects", html(&bare)),
        ("operator workspaces without any", html(&none)),
        ("operator", html(&daemon(more))),
        ("operator workspaces", html(&workspaces(more))),
        ("operator new", html(&new(more))),
        ("operator delete", html(&delete(more))),
        ("operator delete of the first", html(&stays)),
        ("operator keys", html(&keys(more))),
        ("operator files", html(&files(more))),
        ("operator files without any", html(&empty)),
    ]
}

/// The frame outside of any workspace.
fn frame(more: &str) -> Frame {
    let mut frame = frame_of(more);
    frame.workspaces.operator = OperatorEntry::Open;
    frame
}

fn daemon(more: &str) -> OperatorPage {
    OperatorPage {
        frame: frame(more),
        numbers: vec![("memory", "42 MB".to_owned())],
        pairs: vec![("store", Words::new(more))],
        started_at: Moment::after_epoch(Duration::from_secs(9)),
        is_audit_stuck: true,
        metrics: "/metrics".to_owned(),
        metrics_address: Words::new(more),
    }
}

fn workspaces(more: &str) -> OperatorWorkspacesPage {
    let row = |stays| WorkspaceRow {
        href: "/w/team/".to_owned(),
        id: Words::new("team"),
        name: Words::new(more),
        members: 1,
        servers: 2,
        file_servers: 3,
        runs: 4,
        calls: 5,
        delete: "/operator/workspaces/team/delete".to_owned(),
        stays,
    };
    OperatorWorkspacesPage {
        frame: frame(more),
        add: "/operator/workspaces/new".to_owned(),
        path: "/operator/workspaces".to_owned(),
        filtered: more.chars().take(200).collect(),
        rows: vec![row(None), row(Some("it stays"))],
        count: 3,
        next: Some("/operator/workspaces?after=team".to_owned()),
    }
}

fn new(more: &str) -> OperatorNewPage {
    let value: String = more.chars().take(200).collect();
    OperatorNewPage {
        frame: frame(more),
        path: "/operator/workspaces/new".to_owned(),
        back: "/operator/workspaces".to_owned(),
        id: Field::new("id", "Id", Input::line(&value)).fault(Some(more)).required(),
        name: Field::new("name", "Name", Input::line(&value)).help(more),
    }
}

fn delete(more: &str) -> OperatorDeletePage {
    OperatorDeletePage {
        frame: frame(more),
        id: Words::new(more),
        contents: vec!["2 agents".to_owned()],
        action: "/operator/workspaces/team/delete".to_owned(),
        back: "/operator/workspaces".to_owned(),
        stays: None,
    }
}

fn keys(more: &str) -> OperatorKeysPage {
    OperatorKeysPage {
        frame: frame(more),
        place: Words::new(more),
        keys: items_of(more),
        is_open: true,
        rotate: Action::new("/operator/keys/rotate".to_owned(), "Change the key", more).page(),
        command: Words::new(more),
        request: Words::new(more),
    }
}

fn files(more: &str) -> OperatorFilesPage {
    OperatorFilesPage {
        frame: frame(more),
        files: items_of(more),
        settings: Some(Words::new(more)),
        reload: Action::new("/operator/files/reload".to_owned(), "Read the files again", more),
        command: Words::new(more),
        request: Words::new(more),
        empty: Empty {
            title: "No file is followed",
            sentence: more.chars().take(200).collect(),
            example: None,
            page: None,
        },
    }
}
