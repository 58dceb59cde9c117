//! The first page of a server: its state with the cause, what its buttons do, and its facts.

use http::StatusCode;
use narthex_console::{
    html,
    pages::server::{Count, Fact, ServerNow, ServerPage},
    parts::{Moment, Same, Words},
};
use narthex_control::SignInVerbs;
use narthex_gateway::shown;
use narthex_model::{Pid, Reader, command::narthex};
use narthex_registry::ServerRow;
use narthex_wire::Era;

use super::spot::{self, Tabbed};
use crate::{
    Access,
    console::{
        answer::{self, Answered},
        asked,
        frame::{self, Head, frame},
        links::Links,
        live::{self, Follows, Fragment, Live, SERVER, Topic},
        rows,
        viewer::Viewer,
    },
    problem::Problem,
    rows::{at, details},
    servers::Query,
    shapes::ServerCapabilities,
};

/// The live part of the page.
pub(in crate::console) const TOPIC: Topic = Topic {
    name: "server",
    access: Access::Shared,
    params: &[SERVER],
    follows: Follows::Servers,
    parts: |viewer, query| Box::pin(async move { parts(viewer, query) }),
};

/// The words for a fact that the server has not told yet.
const UNTOLD: &str = "unknown until the server has answered";

pub(super) async fn show(viewer: &Viewer<'_>) -> Answered {
    let query = viewer.query(&["done", "name"])?;
    let name = viewer.segment(0);
    let (place, row) = spot::find(viewer, &name)?;
    let now = now(viewer, &place, &row);
    let head = Head {
        title: Words::new(&name),
        sentence: "One server of the configuration: its state, and what mends it.",
        same: Some(Same::new(
            &narthex("mcp list", &[]).to_string(),
            &format!("GET /api/servers/{name}"),
        )),
    };
    let mut frame = frame(viewer, head).await?;
    frame.told = rows::told(query.text("done"), &name);
    let of_it = &[("server", &*name)];
    let related = Links::of(viewer).audit("Its events in the audit", of_it);
    let table = asked::address(viewer, "tools", of_it);
    frame.related = related.page(Access::Shared, "Its tools in the table", table).found();
    let live = vec![frame::live(&frame), Live { topic: &TOPIC, parts: vec![part(&now)] }];
    frame.live = Some(live::address(viewer, live, &query.with(SERVER, &name)));
    let page = ServerPage { frame, tabs: spot::tabs(viewer, &row, Tabbed::Overview), now };
    Ok(answer::page(StatusCode::OK, html(&page)))
}

fn parts(viewer: &Viewer<'_>, query: &Query) -> Result<Vec<Fragment>, Problem> {
    let (place, row) = spot::find(viewer, query.text(SERVER))?;
    Ok(vec![part(&now(viewer, &place, &row))])
}

fn part(now: &ServerNow) -> Fragment {
    Fragment::new("server-now", html(now))
}

fn now(viewer: &Viewer<'_>, place: &str, row: &ServerRow) -> ServerNow {
    ServerNow {
        csrf: viewer.csrf.clone(),
        row: rows::on_its_page(rows::row(viewer, place, row)),
        next_step: next_step(row),
        facts: facts(viewer, place, row),
        lists: lists(viewer, row),
        sign_in: sign_in(viewer, row),
    }
}

/// Narthex's next step without a human.
fn next_step(row: &ServerRow) -> Option<&'static str> {
    match (row.is_probed, row.is_asleep, row.attempt) {
        (true, ..) => Some("Narthex tries again by itself. The button does so at once."),
        (_, true, _) => Some("Narthex has stopped the idle program, and starts it with a call."),
        (_, _, 1..) => Some("Narthex is reconnecting by itself."),
        _ => None,
    }
}

fn facts(viewer: &Viewer<'_>, place: &str, row: &ServerRow) -> Vec<Fact> {
    let (shape, line) =
        (details(row, Reader::Operator, Some(Pid::OWN)), rows::row(viewer, place, row));
    let capabilities = shape.capabilities.as_ref().map(capabilities);
    let mut facts = vec![
        Fact::words("transport", line.transport),
        Fact::words("credentials", line.auth),
        Fact::words("protocol", &protocol(row)),
        Fact::words("it says that it has", capabilities.as_deref().unwrap_or(UNTOLD)),
        Fact::words("configured in", line.origin.as_str()),
        Fact::words("files of runs", shape.path.as_deref().unwrap_or("none")),
        Fact::time("last answer", line.answered, "none yet"),
        Fact::time("lists were read", row.last_check.map(Moment::new), "not yet"),
    ];
    if let Some(failure) = row.health.last_failure() {
        let words = format!("{}: {}", failure.what.kind.as_str(), failure.what.operator_cause());
        let words = Words::new(&words);
        facts.push(Fact { label: "last failure", words, at: Some(Moment::new(failure.at)) });
    }
    if row.losses > 0 {
        let why = row.loss.as_deref().map_or_else(String::new, |why| format!("; last: {why}"));
        let words = format!("{} times, and {} times back{why}", row.losses, row.reconnects);
        facts.push(Fact::words("connection lost", &words));
    }
    if row.forced_kills > 0 {
        let words = format!("{} times, as it did not end when asked to", row.forced_kills);
        facts.push(Fact::words("killed", &words));
    }
    facts
}

/// The revision of the protocol, and its era.
fn protocol(row: &ServerRow) -> String {
    let Some(revision) = row.facts.as_ref().map(|facts| facts.revision) else {
        return UNTOLD.to_owned();
    };
    let era = match revision.era() {
        Era::Modern => "modern: each request stands alone",
        Era::Legacy => "legacy: a handshake opens a session",
    };
    format!("{} ({era})", revision.as_str())
}

/// The declared capabilities in words.
fn capabilities(has: &ServerCapabilities) -> String {
    let all = [
        (has.tools, "tools"),
        (has.prompts, "prompts"),
        (has.resources, "resources"),
        (has.subscribe, "subscriptions"),
        (has.completions, "completions"),
        (has.logging, "logging"),
        (has.tasks, "tasks"),
        (has.list_changed, "notices of changed lists"),
    ];
    let words: Vec<_> =
        all.iter().filter(|(is_there, _)| *is_there).map(|(_, word)| *word).collect();
    if words.is_empty() { "nothing".to_owned() } else { words.join(", ") }
}

fn lists(viewer: &Viewer<'_>, row: &ServerRow) -> Vec<Count> {
    let seen = shown(row);
    let known = |count: usize| row.is_ready().then_some(count);
    let page = |tab: Tabbed| Some(tab.path(viewer, &row.name));
    let count = |label, count, href| Count { label, count, href };
    let held = row.pinned.as_ref().map(|said| said.held().count());
    let changed = row.first.as_ref().map(|_| row.changed);
    let definitions = || page(Tabbed::Definitions);
    let mut lists = vec![
        count("tools that callers see", known(seen.tools.len()), page(Tabbed::Tools)),
        count("prompts", known(seen.prompts.len()), None),
        count("resources", known(seen.resources.len()), None),
        count("resource templates", known(seen.templates.len()), None),
        count("changed since the first list", changed, definitions()),
    ];
    if row.is_pinned() {
        lists.push(count("withheld from callers", held, definitions()));
    }
    lists
}

/// The stored facts of the sign-in, without any token.
fn sign_in(viewer: &Viewer<'_>, row: &ServerRow) -> Vec<Fact> {
    let verbs = SignInVerbs::of(viewer.control());
    let status = row.alias.as_ref().and_then(|alias| verbs.status(alias));
    let Some(facts) = status.map(|status| status.facts).filter(|facts| !facts.issuer.is_empty())
    else {
        return Vec::new();
    };
    let moment = |seconds: Option<u64>| seconds.map(|seconds| Moment::new(at(seconds)));
    let scopes = if facts.scopes.is_empty() { "none named" } else { &facts.scopes };
    let renewal = match facts.can_renew {
        true => "narthex renews the token by itself",
        false => "a person has to sign in again",
    };
    let mut all = vec![
        Fact::words("authorization server", &facts.issuer),
        Fact::words("scopes", scopes),
        Fact::time("the token ends", moment(facts.expires_at), "at an unknown time"),
        Fact::words("after its end", renewal),
        Fact::time("last tokens", moment(facts.succeeded_at), "none yet"),
    ];
    if let Some(failure) = &facts.failure {
        let (words, at) = (Words::new(failure), moment(facts.failed_at));
        all.push(Fact { label: "last failure", words, at });
    }
    all
}
