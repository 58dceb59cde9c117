//! The parts that all pages of the settings share: the tabs, the frame, and the question before a
//! change that cannot be undone.

use http::StatusCode;
use narthex_console::{
    Told, html,
    pages::settings::{
        Card, Cell, Form, Piece, Primary, SettingsConfirmPage, SettingsPage, Tab, Tabs,
    },
    parts::{Same, Words},
};
use narthex_model::command::CommandLine;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::{
    Access,
    console::{
        answer::{self, Answered},
        frame::{Head, frame},
        sent::Sent,
        viewer::Viewer,
    },
    problem::Problem,
    routes::{ADMIN, AUDIT, EVERY, NAMES},
    servers::Query,
};

pub(super) const ADMINS: Access = Access::Member(ADMIN);
pub(super) const AUDITORS: Access = Access::Member(AUDIT);
pub(super) const MEMBERS: Access = Access::Member(EVERY);
/// The roles that may read names of secrets, and so the channels.
pub(super) const NAMERS: Access = Access::Member(NAMES);

/// Number of rows of one page.
pub(super) const ROWS: usize = 40;

/// The path, the words and the access of each tab.
pub(super) const TABS: [(&str, &str, Access); 8] = [
    ("settings", "General", MEMBERS),
    ("settings/members", "Members", AUDITORS),
    ("settings/limits", "Limits", MEMBERS),
    ("settings/channels", "Channels", NAMERS),
    ("settings/webhooks", "Webhooks", AUDITORS),
    ("settings/tokens", "Service tokens", AUDITORS),
    ("settings/kept", "Kept data", MEMBERS),
    ("settings/sign-in", "Sign-in", MEMBERS),
];

/// The parameters by which a page says what was done.
pub(super) const DONE: [&str; 2] = ["done", "name"];

/// The field of a form that was sent from the page that asks.
pub(super) const SURE: &str = "sure";

/// A page of the settings.
pub(super) struct Made {
    pub(super) head: Head,
    /// The path of its tab.
    pub(super) tab: &'static str,
    pub(super) primary: Option<Primary>,
    pub(super) cards: Vec<Card>,
    pub(super) status: StatusCode,
    pub(super) told: Option<Told>,
}

impl Made {
    /// A page without a link at its head.
    pub(super) fn new(head: Head, tab: &'static str, cards: Vec<Card>) -> Self {
        Self { head, tab, primary: None, cards, status: StatusCode::OK, told: None }
    }

    /// The same page for a form that was refused, if it was.
    pub(super) fn refused(self, is_refused: bool) -> Self {
        let status = if is_refused { StatusCode::UNPROCESSABLE_ENTITY } else { self.status };
        Self { status, ..self }
    }

    /// The answer with this page.
    pub(super) async fn answer(self, viewer: &Viewer<'_>) -> Answered {
        let Self { head, tab, primary, cards, status, told } = self;
        let mut frame = frame(viewer, head).await?;
        frame.told = told;
        let page = SettingsPage { frame, primary, tabs: tabs(viewer, tab), cards };
        Ok(answer::page(status, html(&page)))
    }
}

/// The page that asks before a change that cannot be undone.
pub(super) struct Asking {
    pub(super) head: Head,
    /// The consequences.
    pub(super) effects: Vec<String>,
    pub(super) facts: Vec<(&'static str, Cell)>,
    pub(super) form: Form,
    /// The page to go back to.
    pub(super) back: String,
}

impl Asking {
    /// The answer with this page.
    pub(super) async fn answer(self, viewer: &Viewer<'_>) -> Answered {
        let Self { head, effects, facts, form, back } = self;
        let frame = frame(viewer, head).await?;
        let effects = effects.iter().map(|effect| Words::new(effect)).collect();
        let form = form.keep(SURE, "yes");
        let page = SettingsConfirmPage { frame, effects, facts, form, back };
        Ok(answer::page(StatusCode::OK, html(&page)))
    }
}

/// The first rows of a list, and the link to those behind them.
///
/// `rest` are the rows behind the place in the address, `counted` is the number of all with their
/// name, and `key` gives the place of a row in the address.
pub(super) fn first<R>(
    viewer: &Viewer<'_>,
    tab: &str,
    rest: impl Iterator<Item = R>,
    counted: &str,
    key: impl Fn(&R) -> String,
) -> (Vec<R>, Piece) {
    let mut rest = rest;
    let shown: Vec<_> = rest.by_ref().take(ROWS).collect();
    let last = rest.next().and(shown.last());
    let next = last.map(|last| address(viewer, tab, &[("after", &key(last))]));
    let words = Words::new(&format!("{} of {counted}", shown.len()));
    (shown, Piece::More { words, next })
}

/// The tabs that the human may open.
pub(super) fn tabs(viewer: &Viewer<'_>, current: &str) -> Tabs {
    let seen = TABS.into_iter().filter(|(_, _, access)| viewer.may(*access));
    let tab = |(path, label, _): (&str, &'static str, Access)| Tab {
        href: viewer.path(path),
        label,
        is_current: path == current,
    };
    Tabs { tabs: seen.map(tab).collect() }
}

/// The head of a page with its command and its request.
pub(super) fn head(
    viewer: &Viewer<'_>,
    title: &str,
    sentence: &'static str,
    command: CommandLine,
    request: &str,
) -> Head {
    let command = command.in_workspace(viewer.workspace.as_str()).to_string();
    Head { title: Words::new(title), sentence, same: Some(Same::new(&command, request)) }
}

/// A request of the API in the workspace of the page.
pub(super) fn request(viewer: &Viewer<'_>, method: &str, rest: &str) -> String {
    format!("{method} /api/workspaces/{}{rest}", viewer.workspace)
}

/// A segment of a path.
pub(super) fn encoded(name: &str) -> String {
    utf8_percent_encode(name, NON_ALPHANUMERIC).to_string()
}

/// The reason why the human changes nothing here; `None` for an admin.
pub(super) fn off(viewer: &Viewer<'_>) -> Option<&'static str> {
    let why = "only an admin of the workspace changes this: ask one";
    (!viewer.may(ADMINS)).then_some(why)
}

/// The link that leads to a form for a new object.
pub(super) fn adding(viewer: &Viewer<'_>, rest: &str, label: &'static str) -> Primary {
    Primary { href: viewer.path(rest), label, off: off(viewer) }
}

/// The address of a page with these parameters; empty ones are left out.
pub(super) fn address(viewer: &Viewer<'_>, rest: &str, pairs: &[(&str, &str)]) -> String {
    let mut written = form_urlencoded::Serializer::new(String::new());
    written.extend_pairs(pairs.iter().filter(|(_, value)| !value.is_empty()));
    match written.finish().as_str() {
        "" => viewer.path(rest),
        query => viewer.path(&format!("{rest}?{query}")),
    }
}

/// Leads to a page that says what was done to the object of a name.
pub(super) fn done(viewer: &Viewer<'_>, rest: &str, verb: &str, name: &str) -> Answered {
    answer::redirect(&address(viewer, rest, &[("done", verb), ("name", name)]))
}

/// The sentence for the last action. In a sentence, `{}` is the name of its object.
pub(super) fn told(query: &Query, sentences: &[(&str, &str)]) -> Option<Told> {
    let (_, sentence) = sentences.iter().find(|(verb, _)| *verb == query.text("done"))?;
    let sentence = Words::new(&sentence.replace("{}", query.subject()));
    Some(Told { sentence, is_failure: false })
}

/// True if the form comes from the page that asks. Another one is led there.
pub(super) fn is_sure(sent: &Sent) -> bool {
    sent.is_on(SURE)
}

/// The parameters of a page of which only the last action is known.
pub(super) fn only_done(viewer: &Viewer<'_>) -> Result<Query, Problem> {
    viewer.query(&DONE)
}
