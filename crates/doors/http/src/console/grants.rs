//! The grants: what humans allow agents and users now, and what active runs lose by a revocation.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::StatusCode;
use narthex_console::{
    Related, Told, html,
    pages::grants::{Ended, Find, GrantPage, GrantRow as Shown, GrantsPage},
    parts::{
        Action, Empty, Filter, Moment, Same, Words,
        form::{Field, Input},
    },
};
use narthex_control::{
    GrantPlace, GrantRequestStatus, GrantRow, GrantSearch, RequestSearch, RequestState,
};
use narthex_model::{
    AgentName, ErrorKind, GrantDuration, GrantId, GrantSubject, PrincipalId, ToolScope,
    command::narthex,
};

use self::losing::losing;
use super::{
    answer::{self, Answered},
    asked::{self, address},
    frame::{Head, frame},
    links::Links,
    page::Page,
    viewer::Viewer,
};
use crate::{
    Access,
    body::RequestBody,
    deciding::approval_path,
    problem::Problem,
    routes::{ADMIN, SEE_RUNS},
    servers::Query,
    shapes::CsrfForm,
};

mod losing;

/// The list, the page of one grant, and its revocation.
pub(super) const PAGES: &[Page] = &[
    Page::get("grants", Access::Member(SEE_RUNS), |viewer, _| Box::pin(show(viewer)))
        .in_nav("Grants", "key"),
    Page::get("grants/{grant}", Access::Member(SEE_RUNS), |viewer, _| Box::pin(one(viewer))),
    Page::post("grants/{grant}/revoke", Access::Member(ADMIN), |viewer, body| {
        Box::pin(revoke(viewer, body))
    }),
];

/// The parameters of the address: the filters, the place of the page, and the last action.
const PARAMS: [&str; 6] = ["agent", "user", "scope", "ended", "after", "done"];
/// Number of rows of one page.
const PAGE: u32 = 40;
/// Number of approved requests of an agent that are looked at.
const REQUESTS: u32 = 100;
/// The value of a filter that is set.
const YES: &str = "true";
/// The end of the times that a place may have, in milliseconds: the year 9999.
const MAX_MS: u64 = 253_402_300_800_000;

async fn show(viewer: &Viewer<'_>) -> Answered {
    let query = viewer.query(&PARAMS)?;
    let mut find = find(viewer, &query);
    let scope = match query.text("scope").trim() {
        "" => None,
        text => match ToolScope::new(text) {
            Ok(scope) => Some(scope),
            Err(error) => {
                find.scope = find.scope.fault(Some(&error.to_string()));
                None
            }
        },
    };
    let is_wrong = find.scope.fault.is_some();
    let search = search(&query, scope)?;
    let found = viewer.control().grants_search(&viewer.workspace, &search).await?;
    let next = found.next.map(|place| {
        let after = written(place);
        let pairs = kept(&query).into_iter().chain([("scope", query.text("scope"))]);
        let pairs: Vec<_> = pairs.chain([("after", after.as_str())]).collect();
        address(viewer, "grants", &pairs)
    });
    let command = narthex("grants list", &[]).in_workspace(&viewer.workspace);
    let request = format!("GET /api/workspaces/{}/grants", viewer.workspace);
    let head = Head {
        title: Words::new("Grants"),
        sentence: "What humans allow agents and users now.",
        same: Some(Same::new(&command.to_string(), &request)),
    };
    let mut frame = frame(viewer, head).await?;
    if query.text("done") == "revoke" {
        let sentence = Words::new("The grant is revoked.");
        frame.told = Some(Told { sentence, is_failure: false });
    }
    let is_first = search == GrantSearch { limit: PAGE, ..GrantSearch::default() };
    let page = GrantsPage {
        frame,
        filters: filters(viewer, &query),
        find,
        rows: found.items.iter().map(|granted| row(viewer, granted)).collect(),
        next,
        empty: empty(is_first),
    };
    let status = if is_wrong { StatusCode::BAD_REQUEST } else { StatusCode::OK };
    Ok(answer::page(status, html(&page)))
}

fn search(query: &Query, scope: Option<ToolScope>) -> Result<GrantSearch, Problem> {
    let text = |name| Some(query.text(name)).filter(|text| !text.is_empty());
    let agent = text("agent").map(AgentName::new).transpose().map_err(|_unfit| unknown())?;
    let user = text("user").map(PrincipalId::new).transpose().map_err(|_unfit| unknown())?;
    let after = match text("after") {
        None => None,
        Some(text) => Some(read(text).ok_or_else(unknown)?),
    };
    let with_ended = query.flag("ended")?;
    Ok(GrantSearch { agent, user, scope, with_ended, after, limit: PAGE })
}

fn unknown() -> Problem {
    let text = "this filter is not known; choose one of the filters above the list";
    Problem::new(ErrorKind::Invalid, text)
}

/// A place as the address of the next page has it.
fn written(place: GrantPlace) -> String {
    let since = place.granted_at.duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{}-{}", since.as_millis(), place.id.to_text())
}

fn read(text: &str) -> Option<GrantPlace> {
    let (since, id) = text.split_once('-')?;
    let since = Duration::from_millis(since.parse().ok().filter(|ms| *ms < MAX_MS)?);
    Some(GrantPlace { granted_at: UNIX_EPOCH + since, id: GrantId::parse(id)? })
}

/// The filters that the form keeps.
fn kept(query: &Query) -> Vec<(&'static str, &str)> {
    let names = ["agent", "user", "ended"];
    let set = names.into_iter().map(|name| (name, query.text(name)));
    set.filter(|(_, value)| !value.is_empty()).collect()
}

fn find(viewer: &Viewer<'_>, query: &Query) -> Find {
    let example = "linear.write".to_owned();
    let input = Input::Line { value: query.text("scope").to_owned(), example };
    let kept = kept(query).into_iter().map(|(name, value)| (name, value.to_owned()));
    Find {
        path: viewer.path("grants"),
        kept: kept.collect(),
        scope: Field::new("scope", "Tool scope", input),
    }
}

fn filters(viewer: &Viewer<'_>, query: &Query) -> Vec<Filter> {
    let at = |changed: &str, value: &str| {
        let now = |name: &'static str| if name == changed { "" } else { query.text(name) };
        let mut pairs: Vec<_> =
            ["agent", "user", "scope", "ended"].map(|name| (name, now(name))).to_vec();
        if let Some(pair) = pairs.iter_mut().find(|(name, _)| *name == changed) {
            pair.1 = value;
        }
        address(viewer, "grants", &pairs)
    };
    let with_ended = query.text("ended") == YES;
    let state = |label: &str, value, is_current| Filter {
        href: at("ended", value),
        label: label.to_owned(),
        count: None,
        is_current,
    };
    let mut filters =
        vec![state("allowed now", "", !with_ended), state("also ended ones", YES, with_ended)];
    for (name, label) in [("agent", "of the agent"), ("user", "of the user"), ("scope", "of")] {
        let value = query.text(name);
        if !value.is_empty() {
            let shown = match PrincipalId::new(value) {
                Ok(user) if name == "user" => asked::driver(viewer, &user),
                _ => value.to_owned(),
            };
            filters.push(Filter {
                href: at(name, ""),
                label: format!("{label} “{}” ✕", Words::within(&shown, 130)),
                count: None,
                is_current: true,
            });
        }
    }
    filters
}

fn empty(is_first: bool) -> Empty {
    match is_first {
        true => Empty {
            title: "Nothing is granted",
            sentence: "A tool that requires a scope works only after a human has allowed it: by \
                       the approval of a request, or beforehand."
                .to_owned(),
            example: Some(
                narthex("grants create linear.write --agent AGENT --once", &[]).to_string(),
            ),
            page: Some("docs/guides/approvals.md"),
        },
        false => Empty {
            title: "No grant fits",
            sentence: "Take a filter away to see more.".to_owned(),
            example: None,
            page: None,
        },
    }
}

fn row(viewer: &Viewer<'_>, granted: &GrantRow) -> Shown {
    let grant = &granted.grant;
    let (kind, subject, subject_href) = match &grant.subject {
        GrantSubject::Agent(agent) => {
            let list = address(viewer, "grants", &[("agent", agent.as_str())]);
            ("agent", agent.to_string(), list)
        }
        GrantSubject::User(user) => {
            let list = address(viewer, "grants", &[("user", user.as_str())]);
            ("user", asked::driver(viewer, user), list)
        }
    };
    Shown {
        href: path(viewer, granted),
        what: Words::new(&asked::what(&grant.of)),
        kind,
        subject: Words::new(&subject),
        subject_href,
        lasts: Words::new(&asked::lasts(grant.duration)),
        ends: grant.expires_at.map(Moment::new),
        by: Words::new(&granted.granted_by),
        proof: match granted.is_advisory {
            true => "nothing proved a human",
            false => "proved to be a human",
        },
        at: Moment::new(granted.granted_at),
        reason: Words::new(&granted.reason),
        ended: ended(viewer, granted),
    }
}

fn path(viewer: &Viewer<'_>, granted: &GrantRow) -> String {
    viewer.path(&format!("grants/{}", granted.grant.id.to_text()))
}

/// The reason why a grant allows no call; `None` if it does.
fn ended(viewer: &Viewer<'_>, granted: &GrantRow) -> Option<Ended> {
    if viewer.control().grant_counts(granted) {
        return None;
    }
    let ended = |sentence: &str, at: Option<SystemTime>| {
        Some(Ended { sentence: Words::new(sentence), at: at.map(Moment::new) })
    };
    match (&granted.revoked, &granted.consumed, granted.grant.expires_at) {
        (Some((at, by)), _, _) if by == "narthex" => {
            ended("its agent, run or session has ended", Some(*at))
        }
        (Some((at, by)), _, _) => ended(&format!("{by} revoked it"), Some(*at)),
        (None, Some((at, run)), _) => ended(&format!("the run {run} used it up"), Some(*at)),
        (None, None, _) if granted.is_advisory && viewer.control().needs_proof() => ended(
            "nothing proved that a human granted it, and only grants with proof count now",
            None,
        ),
        (None, None, end) => ended("its time is over", end),
    }
}

async fn one(viewer: &Viewer<'_>) -> Answered {
    viewer.query(&[])?;
    let workspace = &viewer.workspace;
    let granted = viewer.control().grant(workspace, &viewer.segment(0)).await?;
    let id = granted.grant.id.to_text();
    let command = narthex("grants show {}", &[&id]).in_workspace(workspace);
    let request = format!("GET /api/workspaces/{workspace}/grants/{id}");
    let head = Head {
        title: Words::new(&format!("Grant {id}")),
        sentence: "What a human allows, and who loses it by a revocation.",
        same: Some(Same::new(&command.to_string(), &request)),
    };
    let row = row(viewer, &granted);
    let losing = match row.ended {
        None => losing(viewer, &granted.grant).await?,
        Some(_) => None,
    };
    let hint = "stops the next call that needs it, and ends streams and subscriptions";
    let action = Action::new(format!("{}/revoke", path(viewer, &granted)), "Revoke", hint).page();
    let action = match viewer.may(Access::Member(ADMIN)) {
        true => action,
        false => action.off("only an admin of the workspace revokes grants"),
    };
    let mut frame = frame(viewer, head).await?;
    frame.related = related(viewer, &granted).await?;
    let page = GrantPage {
        frame,
        details: details(&granted),
        losing,
        revoke: row.ended.is_none().then_some(action),
        row,
        back: viewer.path("grants"),
    };
    Ok(answer::page(StatusCode::OK, html(&page)))
}

/// The request that it answers, the runs that it is for, and its agent.
async fn related(viewer: &Viewer<'_>, granted: &GrantRow) -> Result<Vec<Related>, Problem> {
    let grant = &granted.grant;
    let mut links = Links::of(viewer);
    if let GrantSubject::Agent(agent) = &grant.subject {
        let state = RequestState::Closed(Some(GrantRequestStatus::Approved));
        let agent_of = Some(agent.clone());
        let search = RequestSearch { state, agent: agent_of, after: None, limit: REQUESTS };
        let found = viewer.control().grant_requests_search(&viewer.workspace, &search).await?;
        if let Some(row) = found.items.iter().find(|row| row.grant == Some(grant.id)) {
            let path = approval_path(&viewer.workspace, &row.id.to_text());
            let links_of = links.page(Access::Member(SEE_RUNS), "The request", path);
            links = links_of.run("The run that asked", &row.run.to_text());
        }
        links = links.agent(agent.as_str());
    }
    links = match grant.duration {
        GrantDuration::Run(run) => links.run("The run", &run.to_text()),
        GrantDuration::Session(session) | GrantDuration::OnceIn(session) => {
            links.runs("Runs of the session", &[("session", &session.to_text())])
        }
        GrantDuration::Once | GrantDuration::Persistent => links,
    };
    if let Some((_, run)) = &granted.consumed {
        links = links.run("The run that used it", run);
    }
    let id = grant.id.to_text();
    Ok(links.audit("Audit of the grant", &[("resource", &id)]).found())
}

/// The details that the sentence about the permission does not say.
fn details(granted: &GrantRow) -> Vec<(&'static str, Words)> {
    let details = granted.grant.of.details();
    let name = |name: &str| match name {
        "arguments_digest" => Some("digest of the arguments"),
        "allowed_models" => Some("only with the models"),
        "allowed_runtime_types" => Some("only with the runtimes"),
        _ => None,
    };
    let said = details.as_object().into_iter().flatten().filter_map(|(key, value)| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        Some((name(key)?, Words::new(&text)))
    });
    said.collect()
}

/// Revokes a grant, as `DELETE` of the API does.
async fn revoke(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let CsrfForm { csrf: _ } = viewer.form(body).await?;
    let by = viewer.principal.granter()?;
    let id = viewer.segment(0);
    viewer.control().grant_revoke(&viewer.workspace, &id, &by.by).await?;
    let told = Told { sentence: Words::new("The grant is revoked."), is_failure: false };
    viewer.done(told, &address(viewer, "grants", &[("done", "revoke")]))
}
