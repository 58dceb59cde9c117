//! The registered clients of a workspace: their registration, the consents of humans, and their
//! end.

use std::{sync::Arc, time::SystemTime};

use http::StatusCode;
use narthex_console::{
    Related, Told, html,
    pages::clients::{ClientsPage, Facts},
    parts::{
        Action, Empty, Filter, Moment, Same, Words,
        item::{Badge, Dated, Item},
    },
};
use narthex_control::{AuditQuery, DoorDesk, KnownClient};
use narthex_model::{ErrorKind, Timestamp, command::narthex};
use narthex_runs::{ClientClosed, Runs, SeenClient};

use super::{
    answer::{self, Answered},
    frame::{Head, frame},
    links::Links,
    page::Page,
    viewer::Viewer,
};
use crate::{
    Access,
    body::RequestBody,
    problem::Problem,
    routes::{ADMIN, AUDIT},
    servers::Query,
    shapes::CsrfForm,
    signin::sees,
};

/// The list, and the end of a client.
pub(super) const PAGES: &[Page] = &[
    Page::get("clients", Access::Member(AUDIT), |viewer, _| Box::pin(show(viewer)))
        .in_nav("Clients", "list"),
    Page::post("clients/{name}/revoke", Access::Member(ADMIN), |viewer, body| {
        Box::pin(revoke(viewer, body))
    }),
];

/// Number of rows of one page.
const PAGE: usize = 40;
/// The beginning of the kinds of events of calls.
const CALLS: &str = "session.mcp.";
/// Most redirect addresses that are shown.
const REDIRECTS: usize = 20;
/// The kinds of clients with the words of their filters.
const KINDS: [(&str, &str); 4] = [
    ("", "open"),
    ("human", "let in by a human"),
    ("token", "with a token of their own"),
    ("closed", "closed"),
];
/// The parameters of the address.
const KNOWN: [&str; 6] = ["q", "kind", "after", "open", "done", "name"];

async fn show(viewer: &Viewer<'_>) -> Answered {
    let query = viewer.query(&KNOWN)?;
    let kind = query.word("kind", &KINDS.map(|(word, _)| word))?;
    let part = query.text("q").to_lowercase();
    let now = SystemTime::now();
    let mut named = viewer.control().clients(&viewer.workspace)?;
    named.retain(|client| name_of(client).to_lowercase().contains(&part));
    let fitting: Vec<_> = named.iter().filter(|client| is_of(client, kind, now)).collect();
    let after = query.text("after");
    let mut rest = fitting.iter().filter(|client| client.row.id.as_str() > after);
    let shown: Vec<Arc<KnownClient>> =
        rest.by_ref().take(PAGE).map(|client| Arc::clone(client)).collect();
    let next = rest.next().and(shown.last()).map(|last| {
        let after = last.row.id.as_str();
        address(viewer, &[("q", query.text("q")), ("kind", kind), ("after", after)])
    });
    let seen = runs(viewer)?.seen_clients(&viewer.workspace, shown).await?;
    let head = Head {
        title: Words::new("Clients"),
        sentence: "The programs that may connect here: let in by a human, or with a token.",
        same: Some(Same::new(
            &narthex("clients list", &[]).in_workspace(viewer.workspace.as_str()).to_string(),
            &format!("GET /api/workspaces/{}/mcp-clients", viewer.workspace),
        )),
    };
    let mut frame = frame(viewer, head).await?;
    frame.told = told(&query);
    frame.related = related(viewer, &query)?;
    let page = ClientsPage {
        frame,
        open: facts(viewer, &query).await?,
        filtered: query.text("q").to_owned(),
        path: viewer.path("clients"),
        connect: viewer.path("connect"),
        filters: filters(viewer, &query, kind, &named),
        rows: seen.iter().map(|client| row(viewer, &query, client)).collect(),
        count: fitting.len(),
        next,
        empty: empty(viewer, named.is_empty() && part.is_empty()),
    };
    Ok(answer::page(StatusCode::OK, html(&page)))
}

fn runs<'v>(viewer: &Viewer<'v>) -> Result<&'v Runs, Problem> {
    let text = "this process has no runs, and so no clients of its own";
    viewer.door.options.runs.as_ref().ok_or_else(|| Problem::new(ErrorKind::Conflict, text))
}

/// The name without that of the workspace.
fn name_of(client: &KnownClient) -> &str {
    let name = client.account.name.as_str();
    name.split_once('/').map_or(name, |(_, name)| name)
}

/// True for a client of a kind of the filters.
fn is_of(client: &KnownClient, kind: &str, now: SystemTime) -> bool {
    let (is_live, is_by_human) = (client.is_live(now), client.connection.is_some());
    match kind {
        "human" => is_live && is_by_human,
        "token" => is_live && !is_by_human,
        "closed" => !is_live,
        _ => is_live,
    }
}

fn filters(
    viewer: &Viewer<'_>,
    query: &Query,
    chosen: &str,
    named: &[Arc<KnownClient>],
) -> Vec<Filter> {
    let now = SystemTime::now();
    let kind = |(word, label): (&'static str, &'static str)| Filter {
        href: address(viewer, &[("q", query.text("q")), ("kind", word)]),
        label: label.to_owned(),
        count: Some(named.iter().filter(|client| is_of(client, word, now)).count()),
        is_current: chosen == word,
    };
    let mut filters: Vec<_> = KINDS.into_iter().map(kind).collect();
    let part = query.text("q");
    if !part.is_empty() {
        let label = format!("named “{}” ✕", Words::within(part, 40));
        let href = address(viewer, &[("kind", chosen)]);
        filters.push(Filter { href, label, count: None, is_current: true });
    }
    filters
}

/// The address of the list with these parameters; empty ones are left out.
fn address(viewer: &Viewer<'_>, pairs: &[(&str, &str)]) -> String {
    let mut written = form_urlencoded::Serializer::new(String::new());
    written.extend_pairs(pairs.iter().filter(|(_, value)| !value.is_empty()));
    match written.finish().as_str() {
        "" => viewer.path("clients"),
        query => viewer.path(&format!("clients?{query}")),
    }
}

fn row(viewer: &Viewer<'_>, query: &Query, client: &SeenClient) -> Item {
    let SeenClient { known, is_live, closed } = client;
    let (row, id) = (&known.row, known.row.id.as_str());
    let (part, kind) = (query.text("q"), query.text("kind"));
    let mut item = Item::new(&viewer.csrf, name_of(known));
    item.href = Some(address(viewer, &[("q", part), ("kind", kind), ("open", id)]));
    item.badge = Some(match (is_live, closed) {
        (true, _) => Badge::fine("may connect"),
        (false, Some(ClientClosed::Revoked)) => Badge::off("revoked"),
        (false, Some(ClientClosed::Expired)) => Badge::off("expired"),
        (false, _) => Badge::off("cannot connect"),
    });
    item.note = closed.and_then(why).map(Words::new);
    item.facts.push(Words::new(&match &known.connection {
        Some(connection) => format!("answers go to {}", connection.consent.place),
        None => "with a token of its own".to_owned(),
    }));
    item.facts.push(Words::new(&format!("uses {}", sees(known))));
    item.times.push(Dated { label: "registered", at: Moment::new(row.created_at) });
    if let Some(at) = row.revoked_at {
        item.times.push(Dated { label: "revoked", at: Moment::new(at) });
    } else {
        let path = viewer.action("clients", id, "revoke");
        let hint = "ends its runs and its tokens; it cannot come back without a new registration";
        let revoke = Action::new(path, "Revoke", hint).page();
        item.actions.push(match viewer.may(Access::Member(ADMIN)) {
            true => revoke,
            false => revoke.off("only an admin of the workspace revokes a client: ask one"),
        });
    }
    item
}

/// The remedy for a client that cannot connect, if it has one.
fn why(closed: ClientClosed) -> Option<&'static str> {
    Some(match closed {
        ClientClosed::Revoked | ClientClosed::Expired => return None,
        ClientClosed::Disabled => "Its principal is disabled: enable it, or revoke the client.",
        ClientClosed::AgentDeleted => "Its agent is deleted: store the agent again, or revoke it.",
        ClientClosed::AgentInactive => "Its agent is not active: activate the agent.",
        ClientClosed::ProfileGone => "Its profile is gone from the configuration: add it again.",
        ClientClosed::HumanLost => "Its human is disabled, or has no role for it any more.",
    })
}

/// The facts of the client that the address names.
async fn facts(viewer: &Viewer<'_>, query: &Query) -> Result<Option<Facts>, Problem> {
    let id = query.text("open");
    if id.is_empty() {
        return Ok(None);
    }
    let known = viewer.control().client(&viewer.workspace, id)?;
    let row = &known.row;
    let mut pairs = vec![("id", Words::new(row.id.as_str())), ("uses", Words::new(&sees(&known)))];
    let origins: Vec<_> = row.origins.iter().map(|origin| origin.as_str()).collect();
    pairs.push(("origins of its writes", Words::new(&origins.join(", "))));
    pairs.push(("registered by", Words::new(&row.created_by)));
    if let Some(run) = row.run {
        pairs.push(("last run", Words::new(&run.to_text())));
    }
    let mut times = vec![("registered", Moment::new(row.created_at))];
    times.extend(row.expires_at.map(|at| ("token ends", Moment::new(at))));
    times.extend(row.revoked_at.map(|at| ("revoked", Moment::new(at))));
    let (kind, part) = (query.text("kind"), query.text("q"));
    let mut facts = Facts {
        title: Words::new(name_of(&known)),
        pairs,
        times,
        redirects: Vec::new(),
        close: address(viewer, &[("q", part), ("kind", kind)]),
    };
    add_consent(viewer, &known, &mut facts).await?;
    match last_event(viewer, &known).await? {
        Some(at) => facts.times.push(("last event in the audit", Moment::new(at))),
        None => facts.pairs.push(("last event in the audit", Words::new("none is recorded"))),
    }
    Ok(Some(facts))
}

/// The run and the calls of the client that the address names.
fn related(viewer: &Viewer<'_>, query: &Query) -> Result<Vec<Related>, Problem> {
    let links = Links::of(viewer);
    if query.text("open").is_empty() {
        return Ok(links.found());
    }
    let known = viewer.control().client(&viewer.workspace, query.text("open"))?;
    let links = match known.row.run.map(|run| run.to_text()) {
        Some(run) => links
            .run("Its last run", &run)
            .audit("Calls of its last run", &[("kind", CALLS), ("run", &run)]),
        None => links,
    };
    let name = known.account.name.to_string();
    Ok(links.audit("Its own events", &[("actor", &name)]).found())
}

/// Adds the consent of the human, and the registration of the program.
async fn add_consent(
    viewer: &Viewer<'_>,
    known: &KnownClient,
    facts: &mut Facts,
) -> Result<(), Problem> {
    let Some(connection) = &known.connection else { return Ok(()) };
    let consent = &connection.consent;
    let human = viewer.control().principal(connection.acts_for.as_str());
    let human = human.map_or_else(|_gone| "unknown".to_owned(), |one| one.name.to_string());
    facts.pairs.extend([
        ("acts for", Words::new(&human)),
        ("program", Words::new(consent.client_id.as_str())),
        ("scopes", Words::new(&consent.scopes.to_string())),
        ("endpoint", Words::new(consent.resource.as_str())),
    ]);
    let given = SystemTime::UNIX_EPOCH
        .checked_add(std::time::Duration::from_secs(consent.given_at.seconds()));
    facts.times.extend(given.map(|at| ("consent given", Moment::new(at))));
    let Some(desk) = DoorDesk::of(viewer.control()) else { return Ok(()) };
    let Some(registration) = desk.registration(&consent.client_id).await? else {
        facts.pairs.push(("registration", Words::new("forgotten: it was not used for long")));
        return Ok(());
    };
    let client = &registration.client;
    let origin = match registration.is_document {
        true => "by a document at its own address",
        false => "by the program itself",
    };
    facts.pairs.push(("registration", Words::new(origin)));
    facts.pairs.push(("calls itself", Words::new(client.name.as_str())));
    let host = client.verified_host();
    let host = host.as_deref().unwrap_or("none: the name is only its own claim");
    facts.pairs.push(("proved host", Words::new(host)));
    match registration.used_at {
        Some(at) => facts.times.push(("last tokens", Moment::new(at))),
        None => facts.pairs.push(("last tokens", Words::new("none yet"))),
    }
    let redirects = client.redirect_uris.iter().take(REDIRECTS);
    facts.redirects = redirects.map(|uri| Words::new(uri.as_str())).collect();
    Ok(())
}

/// The time of the newest event of the client, or of its last run.
async fn last_event(
    viewer: &Viewer<'_>,
    known: &KnownClient,
) -> Result<Option<SystemTime>, Problem> {
    let run = known.row.run.map(|run| run.to_text());
    let actor = match &run {
        Some(_) => String::new(),
        None => known.account.name.to_string(),
    };
    let query = AuditQuery {
        actor,
        run: run.unwrap_or_default(),
        ..AuditQuery::newest(Some(viewer.workspace.clone()), 1)
    };
    let found = viewer.control().audit_list(&query).await?;
    let time = found.items.first().and_then(|item| item.event.get("time"));
    Ok(time.and_then(|time| time.as_str()).and_then(Timestamp::read))
}

fn empty(viewer: &Viewer<'_>, is_whole: bool) -> Empty {
    match is_whole {
        true => Empty {
            title: "No clients yet",
            sentence: "A client is a program that a human has let in, or that was registered with \
                       a token of its own."
                .to_owned(),
            example: Some(
                narthex("clients register desktop --agent reader", &[])
                    .in_workspace(viewer.workspace.as_str())
                    .to_string(),
            ),
            page: Some("docs/guides/registered-clients.md"),
        },
        false => Empty {
            title: "No client fits",
            sentence: "No client has this name and kind. Take a filter away to see more."
                .to_owned(),
            example: None,
            page: None,
        },
    }
}

/// The sentence for the last action.
fn told(query: &Query) -> Option<Told> {
    let name = Words::new(query.subject());
    let is_revoked = query.text("done") == "revoke";
    is_revoked.then(|| Told {
        sentence: Words::new(&format!("{name} is revoked: its runs and tokens have ended.")),
        is_failure: false,
    })
}

async fn revoke(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let CsrfForm { csrf: _ } = viewer.form(body).await?;
    let id = viewer.segment(0);
    let known = viewer.control().client(&viewer.workspace, &id)?;
    runs(viewer)?.client_revoke(&viewer.workspace, &id, &viewer.by()).await?;
    answer::redirect(&address(viewer, &[("done", "revoke"), ("name", name_of(&known))]))
}
