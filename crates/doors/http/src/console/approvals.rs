//! The inbox of approvals: requests of agents, and the other things that wait for a human.

use std::time::{Duration, UNIX_EPOCH};

use http::StatusCode;
use narthex_console::{
    html,
    pages::approvals::{
        ApprovalList, ApprovalsPage, OtherWait, OtherWaits, RequestRow, RequestRowPart,
    },
    parts::{Empty, Filter, Same, Words},
};
use narthex_control::{
    GrantRequestStatus, RequestPlace, RequestSearch, RequestState, connection_path,
};
use narthex_model::{AgentName, ErrorKind, GrantRequestId, ServerState, command::narthex};

use super::{
    answer::{self, Answered},
    asked::{self, address},
    frame::{self, Head, frame_with},
    live::{self, Follows, Fragment, Live, Topic},
    page::Page,
    rows,
    viewer::Viewer,
    waits::Waits,
};
use crate::{
    Access,
    problem::Problem,
    routes::{AUTHOR, EVERY, SEE_RUNS},
    servers::Query,
};

/// The page.
pub(super) const PAGES: &[Page] =
    &[Page::get("approvals", Access::Member(EVERY), |viewer, _| Box::pin(show(viewer)))
        .in_nav("Approvals", "bell")];

/// The live parts of the page.
pub(super) const TOPIC: Topic = Topic {
    name: "approvals",
    access: Access::Member(EVERY),
    params: &PARAMS,
    follows: Follows::Requests,
    parts: |viewer, query| Box::pin(parts(viewer, query)),
};

/// The parameters of the address.
const PARAMS: [&str; 3] = ["status", "agent", "after"];
/// Number of rows of one page.
const PAGE: u32 = 40;
/// The word for all requests that wait no longer.
const DECIDED: &str = "decided";
/// The end of the times that a place may have, in milliseconds: the year 9999.
const MAX_MS: u64 = 253_402_300_800_000;

/// The filters and the place of a list.
struct Wanted {
    search: RequestSearch,
    /// The state, as in the address.
    status: String,
}

async fn show(viewer: &Viewer<'_>) -> Answered {
    let query = viewer.query(&PARAMS)?;
    let waits = Waits::read(viewer).await?;
    let (list, others) = (list(viewer, &query).await?, others(viewer, &waits).await?);
    let command = narthex("grants pending", &[]).in_workspace(viewer.workspace.as_str());
    let request = format!("GET /api/workspaces/{}/grant-requests", viewer.workspace);
    let head = Head {
        title: Words::new("Approvals"),
        sentence: "What agents ask for, and what else waits for a human.",
        same: Some(Same::new(&command.to_string(), &request)),
    };
    let mut frame = frame_with(viewer, head, &waits)?;
    let parts = parts_of(&list, &others);
    let live = vec![frame::live(&frame), Live { topic: &TOPIC, parts }];
    frame.live = Some(live::address(viewer, live, &query));
    let page = ApprovalsPage { frame, others, list };
    Ok(answer::page(StatusCode::OK, html(&page)))
}

async fn parts(viewer: &Viewer<'_>, query: &Query) -> Result<Vec<Fragment>, Problem> {
    let waits = Waits::read(viewer).await?;
    Ok(parts_of(&list(viewer, query).await?, &others(viewer, &waits).await?))
}

/// The list comes last, since its rows are inside of it.
fn parts_of(list: &ApprovalList, others: &OtherWaits) -> Vec<Fragment> {
    let labels: Vec<_> = list.filters.iter().map(|one| (one.label.clone(), one.count)).collect();
    let ids: Vec<_> = list.rows.iter().map(|row| row.id.clone()).collect();
    let key = (labels, ids, list.next.clone());
    let mut all = vec![
        Fragment::new("other-waits", html(others)),
        Fragment::around("approvals", html(list), &key),
    ];
    all.extend(list.rows.iter().map(part));
    all
}

fn part(row: &RequestRow) -> Fragment {
    Fragment::new(row.id.clone(), html(&RequestRowPart { row: row.clone() }))
}

async fn list(viewer: &Viewer<'_>, query: &Query) -> Result<ApprovalList, Problem> {
    let Wanted { search, status } = wanted(query)?;
    let agent = query.text("agent");
    let found = match viewer.may(Access::Member(SEE_RUNS)) {
        true => Some(viewer.control().grant_requests_search(&viewer.workspace, &search).await?),
        false => None,
    };
    let (items, next) = found.map_or((Vec::new(), None), |found| (found.items, found.next));
    let next = next.map(|place| {
        let after = written(place);
        let pairs = [("status", status.as_str()), ("agent", agent), ("after", after.as_str())];
        address(viewer, "approvals", &pairs)
    });
    Ok(ApprovalList {
        filters: filters(viewer, &status, agent),
        rows: items.iter().map(|row| asked::request(viewer, row, &status)).collect(),
        next,
        empty: empty(viewer, &status, agent),
    })
}

fn wanted(query: &Query) -> Result<Wanted, Problem> {
    let status = query.text("status");
    let closed = |word: &str| {
        let found = GrantRequestStatus::ALL.into_iter().find(|one| one.as_str() == word);
        found.filter(|one| *one != GrantRequestStatus::Pending)
    };
    let state = match status {
        "" => RequestState::Open,
        DECIDED => RequestState::Closed(None),
        word => RequestState::Closed(Some(closed(word).ok_or_else(unknown)?)),
    };
    let agent = match query.text("agent") {
        "" => None,
        name => Some(AgentName::new(name).map_err(|_unfit| unknown())?),
    };
    let after = match query.text("after") {
        "" => None,
        text => Some(read(text).ok_or_else(unknown)?),
    };
    let search = RequestSearch { state, agent, after, limit: PAGE };
    Ok(Wanted { search, status: status.to_owned() })
}

fn unknown() -> Problem {
    let text = "this filter is not known; choose one of the filters above the list";
    Problem::new(ErrorKind::Invalid, text)
}

/// A place as the address of the next page has it.
fn written(place: RequestPlace) -> String {
    let since = place.requested_at.duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{}-{}", since.as_millis(), place.id.to_text())
}

fn read(text: &str) -> Option<RequestPlace> {
    let (since, id) = text.split_once('-')?;
    let since = Duration::from_millis(since.parse().ok().filter(|ms| *ms < MAX_MS)?);
    Some(RequestPlace { requested_at: UNIX_EPOCH + since, id: GrantRequestId::parse(id)? })
}

fn filters(viewer: &Viewer<'_>, status: &str, agent: &str) -> Vec<Filter> {
    let filter = |word: &str, label: &str| Filter {
        href: address(viewer, "approvals", &[("status", word), ("agent", agent)]),
        label: label.to_owned(),
        count: None,
        is_current: status == word,
    };
    let closed = GrantRequestStatus::ALL.map(GrantRequestStatus::as_str);
    let closed = closed.into_iter().filter(|word| *word != GrantRequestStatus::Pending.as_str());
    let mut filters = vec![filter("", "waiting"), filter(DECIDED, "no longer waiting")];
    filters.extend(closed.map(|word| filter(word, word)));
    if !agent.is_empty() {
        filters.push(Filter {
            href: address(viewer, "approvals", &[("status", status)]),
            label: format!("of the agent “{}” ✕", Words::within(agent, 64)),
            count: None,
            is_current: true,
        });
    }
    filters
}

fn empty(viewer: &Viewer<'_>, status: &str, agent: &str) -> Empty {
    let (title, sentence) = match (viewer.may(Access::Member(SEE_RUNS)), status, agent) {
        (false, _, _) => (
            "Requests are not shown to you",
            "Admins, runners and auditors of the workspace see what its agents ask for.",
        ),
        (true, "", "") => (
            "No agent waits for a decision",
            "An agent whose call needs a grant asks by its tool request_grant. The request waits \
             here until a human decides, or its time is over.",
        ),
        _ => ("No request fits", "Take a filter away to see more."),
    };
    let is_first = (status, agent) == ("", "");
    Empty {
        title,
        sentence: sentence.to_owned(),
        example: is_first.then(|| {
            narthex("grants pending", &[]).in_workspace(viewer.workspace.as_str()).to_string()
        }),
        page: is_first.then_some("docs/guides/approvals.md"),
    }
}

/// The things that wait and are no requests: definitions, sign-ins of servers, and the connections
/// of the human.
async fn others(viewer: &Viewer<'_>, waits: &Waits) -> Result<OtherWaits, Problem> {
    let reviews = waits.reviews.iter().map(|review| OtherWait {
        name: Words::new(&review.server),
        sentence: Words::new(&match review.count {
            1 => "One definition is under review. Runs do not see it before a human has accepted \
                  it."
            .to_owned(),
            count => format!(
                "{count} definitions are under review. Runs do not see them before a human has \
                 accepted them."
            ),
        }),
        href: rows::path(viewer, &review.server, "definitions"),
        label: "Review",
        command: Some(
            narthex("servers definitions {} --quarantined", &[&review.server]).to_string(),
        ),
    });
    let mut items: Vec<_> = reviews.collect();
    if waits.signing_in > 0 {
        items.push(OtherWait {
            name: Words::new("sign-ins"),
            sentence: Words::new(&match waits.signing_in {
                1 => "One server waits for a person to sign in.".to_owned(),
                count => format!("{count} servers wait for a person to sign in."),
            }),
            href: address(viewer, "servers", &[("state", ServerState::Authenticating.as_str())]),
            label: "The servers",
            command: None,
        });
    }
    let (me, sees_all) = (&viewer.signed_in.account.id, viewer.may(Access::Member(AUTHOR)));
    let connections = viewer.control().connections(&viewer.workspace, me, sees_all).await?;
    let open = connections.into_iter().filter(|one| !one.is_connected && one.name.is_some());
    items.extend(open.map(|one| OtherWait {
        name: Words::new(one.name.as_deref().unwrap_or(&one.server)),
        sentence: Words::new(
            "You have no connection to this server, so that runs that you drive cannot use it.",
        ),
        href: connection_path(&one.workspace, &one.server),
        label: "Connect",
        command: None,
    }));
    Ok(OtherWaits { items })
}
