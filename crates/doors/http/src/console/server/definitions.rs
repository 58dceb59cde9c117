//! The definitions of a server: the changes that wait for a human, and the decisions on them.

use http::StatusCode;
use narthex_console::{
    Told, ToldPart, html,
    pages::server::definitions::{
        Change, Definition, DefinitionList, Review, ServerDefinitionsPage,
    },
    parts::{Empty, Filter, Moment, Same, Words},
};
use narthex_definitions::{
    PlaceChange,
    reviews::{DefinitionSource, DefinitionState, DefinitionVerdict, Reviews, SeenDefinition},
};
use narthex_model::{ErrorKind, command::narthex};
use narthex_registry::ServerRow;
use serde::Deserialize;
use serde_json::{Value, json};

use super::spot::{self, Tabbed};
use crate::{
    Access,
    body::RequestBody,
    console::{
        answer::{self, Answered},
        frame::{self, Head, frame},
        live::{self, Follows, Fragment, Live, SERVER, Topic},
        viewer::{Form, Viewer},
    },
    problem::Problem,
    routes::SEE_CATALOG,
    servers::Query,
};

/// The live part of the page.
pub(in crate::console) const TOPIC: Topic = Topic {
    name: "definitions",
    access: Access::Member(SEE_CATALOG),
    params: &[SERVER, "review", "after", "digest"],
    follows: Follows::Servers,
    parts: |viewer, query| Box::pin(parts(viewer, query)),
};

/// The parameters of the page's address.
const KNOWN: [&str; 4] = ["review", "after", "digest", "done"];
/// The value of `review` for definitions in every state.
const ALL: &str = "all";
/// Number of definitions of one page, which keeps the page under 100 KB.
const PAGE: u32 = 8;
/// Servers of the configuration, and not those of the catalog with the same name.
const SOURCE: Option<DefinitionSource> = Some(DefinitionSource::Live);

/// The part of a definition that a page shows.
#[derive(Debug, Clone, Copy)]
struct Shown {
    changes: usize,
    /// Characters of one side of a change.
    side: usize,
    /// Characters of the text.
    text: usize,
}

/// In a list.
const IN_LIST: Shown = Shown { changes: 6, side: 400, text: 1_500 };
/// On the page of one definition: all of it.
const WHOLE: Shown = Shown { changes: usize::MAX, side: usize::MAX, text: usize::MAX };

/// The form of a decision.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Decision {
    csrf: String,
    /// The digest of the text that the human has read.
    #[serde(default)]
    digest: String,
}

impl Form for Decision {
    fn csrf(&self) -> &str {
        &self.csrf
    }
}

pub(super) async fn show(viewer: &Viewer<'_>) -> Answered {
    let name = viewer.segment(0);
    let query = viewer.query(&KNOWN)?.with(SERVER, &name);
    let (_, row) = spot::find(viewer, &name)?;
    let list = read(viewer, &row, &query).await?;
    let workspace = viewer.workspace.as_str();
    let command = narthex("servers definitions {} --live", &[&name]).in_workspace(workspace);
    let request =
        format!("GET /api/workspaces/{workspace}/mcp-servers/{name}/definitions?source=live");
    let head = Head {
        title: Words::new(&format!("Definitions of {name}")),
        sentence: "The words of the server that models read, and the changes that wait for you.",
        same: Some(Same::new(&command.to_string(), &request)),
    };
    let mut frame = frame(viewer, head).await?;
    frame.told = told(&query);
    let live = vec![frame::live(&frame), Live { topic: &TOPIC, parts: vec![part(&list)] }];
    frame.live = Some(live::address(viewer, live, &query));
    let tabs = spot::tabs(viewer, &row, Tabbed::Definitions);
    let page = ServerDefinitionsPage { frame, tabs, list };
    Ok(answer::page(StatusCode::OK, html(&page)))
}

/// The sentence for a decision that was made without the script.
fn told(query: &Query) -> Option<Told> {
    let sentence = match query.text("done") {
        "accept" => "The definition is accepted.",
        "reject" => "The definition is rejected.",
        _ => return None,
    };
    Some(Told { sentence: Words::new(sentence), is_failure: false })
}

async fn parts(viewer: &Viewer<'_>, query: &Query) -> Result<Vec<Fragment>, Problem> {
    let (_, row) = spot::find(viewer, query.text(SERVER))?;
    Ok(vec![part(&read(viewer, &row, query).await?)])
}

fn part(list: &DefinitionList) -> Fragment {
    Fragment::new("definitions", html(list))
}

pub(super) async fn accept(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    decide(viewer, body, DefinitionVerdict::Accept).await
}

pub(super) async fn reject(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    decide(viewer, body, DefinitionVerdict::Reject).await
}

/// Decides on one definition, by the digest of the text that the human has read.
async fn decide(viewer: &Viewer<'_>, body: RequestBody, verdict: DefinitionVerdict) -> Answered {
    let form: Decision = viewer.form(body).await?;
    let name = viewer.segment(0);
    let query = viewer.query(&["review", "after"])?.with(SERVER, &name);
    spot::find(viewer, &name)?;
    let digests = json!({ "digests": [form.digest] }).to_string();
    let reviews = reviews(viewer)?;
    let (server, decision) = ((&*name, SOURCE), (digests.as_bytes(), verdict));
    reviews.decide(&viewer.workspace, server, decision, &viewer.by()).await?;
    let (verb, sentence) = match verdict {
        DefinitionVerdict::Accept => ("accept", "accepted: callers get it from now on"),
        DefinitionVerdict::Reject => ("reject", "rejected: callers do not get it"),
    };
    if !viewer.wants_part() {
        let (review, after) = (query.text("review"), query.text("after"));
        let path = Tabbed::Definitions.path(viewer, &name);
        let pairs = [("review", review), ("after", after), ("done", verb)];
        return answer::redirect(&spot::with(&path, &pairs));
    }
    let sentence = Words::new(&format!("The definition of {name} is {sentence}."));
    let told = html(&ToldPart { told: Told { sentence, is_failure: false } });
    // The decision has changed the row, which is read again.
    let (_, row) = spot::find(viewer, &name)?;
    let list = part(&read(viewer, &row, &query).await?);
    Ok(answer::page(StatusCode::OK, format!("{told}{}", list.event())))
}

fn reviews(viewer: &Viewer<'_>) -> Result<Reviews, Problem> {
    let runs = viewer.door.options.runs.as_ref();
    runs.map(|runs| runs.reviews().clone()).ok_or_else(|| {
        let up = narthex("up", &[]);
        let text = format!("this process reviews no definitions; start a daemon with `{up}`");
        Problem::new(ErrorKind::Conflict, text)
    })
}

async fn read(
    viewer: &Viewer<'_>,
    row: &ServerRow,
    query: &Query,
) -> Result<DefinitionList, Problem> {
    let path = Tabbed::Definitions.path(viewer, &row.name);
    let bare = DefinitionList {
        csrf: viewer.csrf.clone(),
        note: None,
        example: None,
        filters: Vec::new(),
        items: Vec::new(),
        accept: verb(viewer, row, query, "accept"),
        reject: verb(viewer, row, query, "reject"),
        next: None,
        empty: empty(query, &row.name),
    };
    if !row.is_pinned() {
        return Ok(unpinned(row, bare));
    }
    let (reviews, server) = (reviews(viewer)?, (&*row.name, SOURCE));
    let digest = query.text("digest");
    if !digest.is_empty() {
        let found = reviews.one(&viewer.workspace, &row.name, SOURCE, digest).await?;
        let items = found.iter().map(|one| drawn(one, &path, WHOLE)).collect();
        let filters = filters(&path, "-");
        return Ok(DefinitionList { items, filters, ..bare });
    }
    let (state, after) = (state(query)?, query.text("after"));
    let page = reviews.page(&viewer.workspace, server, state, (after, PAGE)).await?;
    let next = page
        .next
        .map(|after| spot::with(&path, &[("review", query.text("review")), ("after", &after)]));
    let items = page.items.iter().map(|one| drawn(one, &path, IN_LIST)).collect();
    let chosen = if query.text("review").is_empty() { "quarantined" } else { query.text("review") };
    Ok(DefinitionList { items, next, filters: filters(&path, chosen), ..bare })
}

/// The path of a decision, which leads back to the same part of the list.
fn verb(viewer: &Viewer<'_>, row: &ServerRow, query: &Query, verb: &str) -> String {
    let path = format!("{}/{verb}", Tabbed::Definitions.path(viewer, &row.name));
    spot::with(&path, &[("review", query.text("review")), ("after", query.text("after"))])
}

/// The list of a server whose definitions are not reviewed.
fn unpinned(row: &ServerRow, bare: DefinitionList) -> DefinitionList {
    let changed = match (&row.first, row.changed) {
        (None, _) => "The server has not listed anything yet.".to_owned(),
        (Some(_), 0) => "No definition differs from the first list of this daemon.".to_owned(),
        (Some(_), 1) => "One definition differs from the first list; the log names it.".to_owned(),
        (Some(_), count) => {
            format!("{count} definitions differ from the first list; the log names them.")
        }
    };
    let text = format!(
        "The entry does not pin the definitions of this server: callers have its lists at once, \
         without a question to you. {changed} To decide on changes, set this in the entry:"
    );
    let empty = Empty {
        title: "Nothing waits for a decision",
        sentence: "Definitions of this server are not reviewed.".to_owned(),
        example: Some(waiting(&row.name)),
        page: Some("docs/guides/review-definitions.md"),
    };
    let example = Some("\"pinDefinitions\": true".to_owned());
    DefinitionList { note: Some(Words::new(&text)), example, empty, ..bare }
}

/// The state that the filter wants; `None` for all.
fn state(query: &Query) -> Result<Option<DefinitionState>, Problem> {
    match query.text("review") {
        "" => Ok(Some(DefinitionState::Quarantined)),
        ALL => Ok(None),
        word => {
            let found = DefinitionState::ALL.into_iter().find(|state| state.as_str() == word);
            let text = "this filter is not known; choose one of those above the list";
            found.map(Some).ok_or_else(|| Problem::new(ErrorKind::Invalid, text))
        }
    }
}

fn filters(path: &str, chosen: &str) -> Vec<Filter> {
    let filter = |value: &str, label: &str| Filter {
        href: spot::with(path, &[("review", value)]),
        label: label.to_owned(),
        count: None,
        is_current: chosen == value,
    };
    let word = |state: Review| match state {
        Review::Pinned => DefinitionState::Pinned.as_str(),
        Review::Quarantined => DefinitionState::Quarantined.as_str(),
        Review::Accepted => DefinitionState::Accepted.as_str(),
        Review::Rejected => DefinitionState::Rejected.as_str(),
    };
    let each = Review::ALL.into_iter().map(|state| filter(word(state), state.word()));
    each.chain([filter(ALL, ALL)]).collect()
}

/// The command that lists the definitions under review.
fn waiting(server: &str) -> String {
    narthex("servers definitions {} --quarantined", &[&server]).to_string()
}

fn empty(query: &Query, server: &str) -> Empty {
    let (title, sentence) = match query.text("review") {
        "" | "quarantined" => (
            "Nothing waits for a decision",
            "A definition of this server that changes, or looks suspicious, waits here until you \
             have read it. Callers do not get it before.",
        ),
        _ => ("No definition fits", "No definition of this server has this state."),
    };
    Empty {
        title,
        sentence: sentence.to_owned(),
        example: Some(waiting(server)),
        page: Some("docs/guides/review-definitions.md"),
    }
}

/// A definition for the page.
fn drawn(definition: &SeenDefinition, path: &str, most: Shown) -> Definition {
    let SeenDefinition { head, why, text, difference } = definition;
    let all = difference.as_ref().map_or(&[][..], |difference| difference.changes.as_slice());
    let left_out = all.len().saturating_sub(most.changes);
    let beyond = difference.as_ref().map_or(0, |difference| difference.left_out);
    let is_long = |side: &Option<String>| {
        side.as_ref().is_some_and(|side| side.chars().nth(most.side).is_some())
    };
    let is_cut = left_out > 0
        || text.chars().nth(most.text).is_some()
        || all.iter().any(|change| is_long(&change.old) || is_long(&change.new));
    let whole = is_cut.then(|| spot::with(path, &[("digest", &head.digest)]));
    Definition {
        id: format!("definition-{}", head.digest),
        digest: head.digest.clone(),
        kind: Words::new(&head.kind),
        name: Words::new(&head.name),
        state: review(head.state),
        reason: reason(why),
        findings: why["findings"].as_array().into_iter().flatten().map(finding).collect(),
        changes: all.iter().take(most.changes).map(|one| change(one, most)).collect(),
        left_out: left_out + beyond,
        text: Words::within(text, most.text),
        whole,
        first_seen: Moment::new(head.first_seen),
        decided: head.decided.as_ref().map(|(at, by)| (Words::new(by), Moment::new(*at))),
    }
}

fn change(change: &PlaceChange, most: Shown) -> Change {
    let cut = |side: &Option<String>| -> Option<String> {
        side.as_ref().map(|side| Words::within(side, most.side).to_string())
    };
    let (old, new) = (cut(&change.old), cut(&change.new));
    Change::new(&change.place, old.as_deref(), new.as_deref())
}

fn review(state: DefinitionState) -> Review {
    match state {
        DefinitionState::Pinned => Review::Pinned,
        DefinitionState::Quarantined => Review::Quarantined,
        DefinitionState::Accepted => Review::Accepted,
        DefinitionState::Rejected => Review::Rejected,
    }
}

/// The reason for a review, in words.
fn reason(why: &Value) -> Option<Words> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let words = match why["reason"].as_str()? {
        "changed" => "it has another text than the one that callers have".to_owned(),
        "renamed" => format!("the same text was known as `{}`", text(&why["renamed_from"])),
        "look_alike" => format!(
            "its name can be taken for `{}` of {}",
            text(&why["like"]["name"]),
            text(&why["like"]["server"])
        ),
        "flagged" => "the screening has found something in it".to_owned(),
        other => other.to_owned(),
    };
    Some(Words::new(&words))
}

/// A finding of the screening, in words.
fn finding(finding: &Value) -> Words {
    let text = |name: &str| finding[name].as_str().unwrap_or_default();
    let place = if text("place").is_empty() { "the whole" } else { text("place") };
    Words::new(&format!("{} at {place}: {}", text("rule"), text("excerpt")))
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use narthex_definitions::{Difference, reviews::DefinitionHead};

    use super::*;

    fn seen(new: &str, count: usize) -> SeenDefinition {
        let at = SystemTime::UNIX_EPOCH;
        let head = DefinitionHead {
            digest: "ab".to_owned(),
            kind: "tool".to_owned(),
            name: "echo".to_owned(),
            state: DefinitionState::Quarantined,
            run: String::new(),
            first_seen: at,
            last_seen: at,
            decided: None,
        };
        let one = PlaceChange {
            place: "/description".to_owned(),
            old: Some("Returns it".to_owned()),
            new: Some(new.to_owned()),
        };
        let difference = Some(Difference { changes: vec![one; count], left_out: 0 });
        let why = json!({ "reason": "changed", "findings": [] });
        SeenDefinition { head, why, text: "{}".to_owned(), difference }
    }

    /// S23: a text of which a list leaves out a part is accepted only where all of it is shown.
    #[test]
    fn s23_a_definition_that_is_cut_leads_to_all_of_it() {
        let drawn = |one: &SeenDefinition, most| drawn(one, "/w/a/servers/b/definitions", most);
        let short = seen("Returns it, twice", 1);
        assert_eq!(drawn(&short, IN_LIST).whole, None);
        for long in [seen(&"x".repeat(401), 1), seen("y", 7)] {
            let whole = drawn(&long, IN_LIST).whole;
            assert_eq!(whole.as_deref(), Some("/w/a/servers/b/definitions?digest=ab"));
            let all = drawn(&long, WHOLE);
            assert_eq!((all.whole, all.left_out), (None, 0));
        }
        let many = drawn(&seen("y", 7), IN_LIST);
        assert_eq!((many.changes.len(), many.left_out), (6, 1));
        let words = many.reason.unwrap();
        assert_eq!(words.as_str(), "it has another text than the one that callers have");
    }
}
