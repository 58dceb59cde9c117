//! The first page of a workspace.

use std::time::{Duration, SystemTime};

use narthex_audit::kind;
use narthex_console::{
    html,
    pages::home::{Asking, Counted, HeldBack, HomePage, Now, Number, Runs, Step},
    parts::{Moment, Same, Words},
};
use narthex_control::{AuditQuery, GrantRequestRow};
use narthex_model::{ServerState, Timestamp, command::narthex};

use super::{
    answer::{self, Answered},
    asked,
    frame::{self, Head, frame_with},
    live::{self, Follows, Fragment, Live, Topic},
    page::Page,
    rows,
    viewer::Viewer,
    waits::{Review, Waits},
};
use crate::{
    Access,
    deciding::approval_path,
    problem::Problem,
    routes::{AUDIT, EVERY, SEE_RUNS},
};

/// The page.
pub(super) const PAGES: &[Page] =
    &[Page::get("", Access::Member(EVERY), |viewer, _| Box::pin(show(viewer)))
        .in_nav("Home", "home")];

/// The live part of the page.
pub(super) const TOPIC: Topic = Topic {
    name: "home",
    access: Access::Member(EVERY),
    params: &[],
    follows: Follows::Requests,
    parts: |viewer, _| Box::pin(parts(viewer)),
};

/// The time of one day.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Number of requests and of servers that the page shows.
const SHOWN: usize = 10;
/// Number of runs that the store counts, at most.
const RUNS: u64 = 10_000;
/// The kind of the events of calls of tools.
const CALLED: &str = kind::TOOL_CALLED;

async fn show(viewer: &Viewer<'_>) -> Answered {
    let query = viewer.query(&[])?;
    let waits = Waits::read(viewer).await?;
    let now = now(viewer, &waits).await?;
    let steps = steps(viewer, &now).await?;
    let head = Head {
        title: Words::new("Home"),
        sentence: "What is broken, and what waits for you.",
        same: Some(Same::new(
            &narthex("status", &[]).to_string(),
            &format!("GET /api/workspaces/{}/grant-requests", viewer.workspace),
        )),
    };
    let mut frame = frame_with(viewer, head, &waits)?;
    let live = vec![frame::live(&frame), Live { topic: &TOPIC, parts: vec![part(&now)] }];
    frame.live = Some(live::address(viewer, live, &query));
    let page = HomePage { frame, offers_passkey: offers_passkey(viewer).await?, steps, now };
    Ok(answer::page(http::StatusCode::OK, html(&page)))
}

async fn parts(viewer: &Viewer<'_>) -> Result<Vec<Fragment>, Problem> {
    let waits = Waits::read(viewer).await?;
    Ok(vec![part(&now(viewer, &waits).await?)])
}

fn part(now: &Now) -> Fragment {
    Fragment::new("now", html(now))
}

/// True if the human came by a link, may add a passkey, and has none.
async fn offers_passkey(viewer: &Viewer<'_>) -> Result<bool, Problem> {
    let (control, signed_in) = (viewer.control(), &viewer.signed_in);
    if signed_in.method.is_authenticated() || !control.has_passkeys() {
        return Ok(false);
    }
    let has_none = control.passkeys(&signed_in.account.id).await?.is_empty();
    Ok(has_none && control.adds_passkeys(signed_in).await?)
}

async fn now(viewer: &Viewer<'_>, waits: &Waits) -> Result<Now, Problem> {
    let snapshot = viewer.door.gateway.registry().snapshot();
    let all = rows::seen(viewer, &snapshot);
    let on: Vec<_> = all
        .iter()
        .filter(|(_, row)| !row.is_overridden && row.state != ServerState::Disabled)
        .collect();
    let ready = on.iter().filter(|(_, row)| row.is_ready()).count();
    let broken: Vec<_> = on.iter().filter(|(_, row)| !row.is_ready()).collect();
    let shown = broken.iter().take(SHOWN).map(|(place, row)| rows::row(viewer, place, row));
    Ok(Now {
        csrf: viewer.csrf.clone(),
        servers: viewer.sees_servers().then_some(Counted { all: on.len(), ready }),
        runs: runs(viewer).await?,
        calls: calls(viewer).await?,
        requests: waits.requests.iter().take(SHOWN).map(asking).collect(),
        has_more_requests: waits.has_more || waits.requests.len() > SHOWN,
        held_back: waits.reviews.iter().map(|one| held_back(viewer, one)).collect(),
        broken: shown.collect(),
        more_broken: broken.len().saturating_sub(SHOWN),
        ready: asked::address(viewer, "servers", &[("state", ServerState::Ready.as_str())]),
        unready: asked::address(viewer, "servers", &[("state", rows::UNREADY)]),
        approvals: viewer.path("approvals"),
    })
}

/// The active runs, with the access of their list.
async fn runs(viewer: &Viewer<'_>) -> Result<Option<Runs>, Problem> {
    let Some(runs) = &viewer.door.options.runs else { return Ok(None) };
    if !viewer.may(Access::Member(SEE_RUNS)) {
        return Ok(None);
    }
    let living = runs.count_living(&viewer.workspace).await?;
    let of = |count, status| Number {
        count,
        is_part: count >= RUNS,
        href: Some(asked::address(viewer, "runs", &[("status", status)])),
    };
    Ok(Some(Runs {
        running: of(living.running, "running"),
        pending: of(living.pending, "pending"),
    }))
}

/// Number of calls in the workspace today, as the limits count them.
async fn calls(viewer: &Viewer<'_>) -> Result<Number, Problem> {
    let today = viewer.control().calls_today(&viewer.workspace).await?;
    let since = SystemTime::UNIX_EPOCH.checked_add(DAY.saturating_mul(today.day));
    let since = since.map(|at| Timestamp::new(at).to_string());
    let list = since
        .as_deref()
        .and_then(|since| since.split('T').next())
        .map(|day| asked::address(viewer, "audit", &[("kind", CALLED), ("since", day)]));
    let list = list.filter(|_| viewer.may(Access::Member(AUDIT)));
    Ok(Number { count: today.calls, is_part: false, href: list })
}

fn asking(row: &GrantRequestRow) -> Asking {
    Asking {
        href: approval_path(&row.workspace, &row.id.to_text()),
        who: Words::new(&asked::who(row)),
        what: Words::new(&asked::what(&row.of)),
        since: Moment::new(row.requested_at),
        until: Moment::new(row.expires_at),
    }
}

fn held_back(viewer: &Viewer<'_>, review: &Review) -> HeldBack {
    let Review { server, count } = review;
    let href = rows::path(viewer, server, "definitions");
    HeldBack { server: Words::new(server), count: *count, href }
}

/// The first steps, until narthex has seen all of them done. They are for those who can do them.
async fn steps(viewer: &Viewer<'_>, now: &Now) -> Result<Vec<Step>, Problem> {
    if !viewer.sees_servers() {
        return Ok(Vec::new());
    }
    let has_called = now.calls.count > 0 || has_called(viewer).await?;
    if has_called {
        return Ok(Vec::new());
    }
    let has_server = !viewer.door.gateway.registry().snapshot().servers.is_empty();
    let is_connected = viewer.door.gateway.sessions_open() > 0;
    Ok(vec![
        Step {
            title: "Add a server",
            sentence: "A server is a program or an address that has tools.",
            href: viewer.path("add-server"),
            label: "Add a server",
            command: narthex("mcp add git -- uvx mcp-server-git", &[]).to_string(),
            is_done: has_server,
        },
        Step {
            title: "Connect a client",
            sentence: "Your editor or agent gets one address for all servers.",
            href: viewer.path("connect"),
            label: "Choose your client",
            command: narthex("setup", &[]).to_string(),
            is_done: is_connected,
        },
        Step {
            title: "Make a call",
            sentence: "Ask your client for something that needs a tool, or call one yourself.",
            href: viewer.path("play"),
            label: "Call a tool",
            command: narthex("tools", &[]).to_string(),
            is_done: has_called,
        },
    ])
}

/// True if the audit has a call of a tool in this workspace.
async fn has_called(viewer: &Viewer<'_>) -> Result<bool, Problem> {
    let query = AuditQuery {
        kind: CALLED.to_owned(),
        ..AuditQuery::newest(Some(viewer.workspace.clone()), 1)
    };
    Ok(!viewer.control().audit_list(&query).await?.items.is_empty())
}
