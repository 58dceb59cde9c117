//! The frame of every page, and the number in it, which is live.

use narthex_console::{
    Account, Frame, OperatorEntry, Waiting, Workspaces, html,
    parts::{Same, Words},
};

use super::{
    live::{Follows, Fragment, Live, Topic},
    viewer::Viewer,
    waits::Waits,
};
use crate::{Access, problem::Problem, routes::EVERY};

/// The number of things that wait, live.
pub(super) const TOPIC: Topic = Topic {
    name: "waits",
    access: Access::Member(EVERY),
    params: &[],
    follows: Follows::Requests,
    parts: |viewer, _| Box::pin(parts(viewer)),
};

/// The words at the head of a page.
pub(super) struct Head {
    pub(super) title: Words,
    pub(super) sentence: &'static str,
    /// The page as a command and as a request.
    pub(super) same: Option<Same>,
}

/// The frame of a page.
pub(super) async fn frame(viewer: &Viewer<'_>, head: Head) -> Result<Frame, Problem> {
    let waits = Waits::read(viewer).await?;
    frame_with(viewer, head, &waits)
}

/// The frame of a page that has read what waits.
pub(super) fn frame_with(viewer: &Viewer<'_>, head: Head, waits: &Waits) -> Result<Frame, Problem> {
    let Head { title, sentence, same } = head;
    let known = viewer.control().workspaces()?;
    let known = known.into_iter().filter(|one| viewer.principal.may_see(&one.id));
    let workspaces = Workspaces {
        current: viewer.workspace.to_string(),
        all: known.map(|one| (one.id.to_string(), Words::new(&one.name))).collect(),
        operator: match (viewer.principal.is_operator(), viewer.is_of_operators()) {
            (true, true) => OperatorEntry::Open,
            (true, false) => OperatorEntry::Link,
            (false, _) => OperatorEntry::Hidden,
        },
    };
    Ok(Frame {
        title,
        sentence: Words::new(sentence),
        workspaces,
        nav: viewer.nav.clone(),
        waiting: waits.shown(viewer),
        me: Account {
            name: Words::new(viewer.signed_in.account.name.as_str()),
            way: way(viewer.signed_in.method.as_str()),
        },
        csrf: viewer.csrf.clone(),
        searched: Words::default(),
        live: None,
        told: None,
        related: Vec::new(),
        same,
    })
}

/// The sign-in in words.
pub(super) fn way(method: &str) -> &'static str {
    match method {
        "passkey" => "with a passkey",
        "oidc" => "at a provider",
        "link" => "with a link",
        _ => "with an invitation",
    }
}

/// The live part of a frame.
pub(super) fn live(frame: &Frame) -> Live {
    Live { topic: &TOPIC, parts: vec![part(&frame.waiting)] }
}

async fn parts(viewer: &Viewer<'_>) -> Result<Vec<Fragment>, Problem> {
    let waits = Waits::read(viewer).await?;
    Ok(vec![part(&waits.shown(viewer))])
}

fn part(waiting: &Waiting) -> Fragment {
    Fragment::new("waits", html(waiting))
}
