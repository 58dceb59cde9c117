//! Runs: the list, the newest first, one run with its tabs, and the sessions of agents.

mod calls;
mod causes;
mod facts;
mod messages;
mod one;
mod places;
mod sessions;
mod stored;
mod tabs;
mod trace;
mod verbs;

use http::StatusCode;
use narthex_console::{
    html,
    pages::runs::{RunFilters, RunList, RunNone, RunRow, RunRowPart, RunStatus, RunsPage},
    parts::{Empty, Filter, Moment, Same, Words},
};
use narthex_model::{ErrorKind, RunId, SessionId, command::narthex};
use narthex_runs::{LivingRuns, RunFilter, RunSearch, RunStatus as Status, SeenRun};

use self::{
    places::{element, path, queried},
    stored::{known, stored_row},
};
use super::{
    answer::{self, Answered},
    frame::{self, Head, frame},
    live::{self, Follows, Fragment, Live, Topic},
    page::Page,
    viewer::Viewer,
};
use crate::{
    Access,
    problem::Problem,
    routes::{ADMIN, ANSWER, RUN, SEE_RUNS},
    servers::Query,
};

pub(super) use self::trace::TOPIC as TRACE_TOPIC;
pub(super) use self::{messages::TOPIC as MESSAGES_TOPIC, one::TOPIC as ONE_TOPIC};

/// The pages and their actions.
pub(super) const PAGES: &[Page] = &[
    Page::get("runs", Access::Member(SEE_RUNS), |viewer, _| Box::pin(list(viewer)))
        .in_nav("Runs", "play"),
    Page::get("sessions", Access::Member(SEE_RUNS), |viewer, _| Box::pin(sessions::list(viewer))),
    Page::get("runs/{run}", Access::Member(SEE_RUNS), |viewer, _| Box::pin(trace::show(viewer))),
    Page::get("runs/{run}/tools", Access::Member(SEE_RUNS), |viewer, _| {
        Box::pin(facts::tools(viewer))
    }),
    Page::get("runs/{run}/configuration", Access::Member(SEE_RUNS), |viewer, _| {
        Box::pin(facts::configuration(viewer))
    }),
    Page::get("runs/{run}/children", Access::Member(SEE_RUNS), |viewer, _| {
        Box::pin(tabs::children(viewer))
    }),
    Page::get("runs/{run}/grants", Access::Member(SEE_RUNS), |viewer, _| {
        Box::pin(tabs::grants(viewer))
    }),
    Page::get("runs/{run}/messages", Access::Member(SEE_RUNS), |viewer, _| {
        Box::pin(messages::show(viewer))
    }),
    Page::get("runs/{run}/files", Access::Member(SEE_RUNS), |viewer, _| {
        Box::pin(tabs::files(viewer))
    }),
    Page::get("runs/{run}/ending", Access::Member(RUN), |viewer, _| {
        Box::pin(verbs::ask_run(viewer))
    }),
    Page::get("sessions/{session}/ending", Access::Member(RUN), |viewer, _| {
        Box::pin(verbs::ask_session(viewer))
    }),
    Page::post("runs/{run}/end", Access::Member(RUN), |viewer, body| {
        Box::pin(verbs::end_run(viewer, body))
    }),
    Page::post("runs/{run}/message", Access::Member(ANSWER), |viewer, body| {
        Box::pin(messages::send(viewer, body))
    }),
    Page::post("runs/{run}/revoke", Access::Member(ADMIN), |viewer, body| {
        Box::pin(verbs::revoke(viewer, body))
    }),
    Page::post("sessions/{session}/end", Access::Member(RUN), |viewer, body| {
        Box::pin(verbs::end_session(viewer, body))
    }),
    Page::post("sessions/{session}/suspend", Access::Member(RUN), |viewer, body| {
        Box::pin(verbs::suspend(viewer, body))
    }),
    Page::post("sessions/{session}/resume", Access::Member(RUN), |viewer, body| {
        Box::pin(verbs::resume(viewer, body))
    }),
];

/// The live part of the list.
pub(super) const TOPIC: Topic = Topic {
    name: "runs",
    access: Access::Member(SEE_RUNS),
    params: &["status", "agent", "user", "parent", "session", "before"],
    follows: Follows::Runs,
    parts: |viewer, query| Box::pin(parts(viewer, query)),
};

/// Number of runs of one page.
const PAGE: u32 = 40;
/// The parameters of the address: the filters, and the place of the page.
const KNOWN: [&str; 6] = ["status", "agent", "user", "parent", "session", "before"];

async fn list(viewer: &Viewer<'_>) -> Answered {
    let query = viewer.query(&KNOWN)?;
    let read = read(viewer, &query).await?;
    let request = format!("GET /api/workspaces/{}/runs", viewer.workspace);
    let command = narthex("runs list", &[]).in_workspace(viewer.workspace.as_str());
    let head = Head {
        title: Words::new("Runs"),
        sentence: "Agents at work, and their earlier runs, the newest first.",
        same: Some(Same::new(&command.to_string(), &request)),
    };
    let mut frame = frame(viewer, head).await?;
    let live = vec![frame::live(&frame), Live { topic: &TOPIC, parts: parts_of(&read) }];
    frame.live = Some(live::address(viewer, live, &query));
    let page = RunsPage {
        frame,
        filters: read.filters,
        list: read.list,
        none: read.none,
        agent: query.text("agent").to_owned(),
        path: viewer.path("runs"),
        sessions: viewer.path("sessions"),
        next: read.next,
    };
    Ok(answer::page(StatusCode::OK, html(&page)))
}

async fn parts(viewer: &Viewer<'_>, query: &Query) -> Result<Vec<Fragment>, Problem> {
    Ok(parts_of(&read(viewer, query).await?))
}

fn parts_of(read: &Read) -> Vec<Fragment> {
    let mut all = vec![
        Fragment::new("run-filters", html(&read.filters)),
        Fragment::new(read.none.id, html(&read.none)),
        Fragment::log("runs", html(&read.list)),
    ];
    let entry = |row: &RunRow| {
        Fragment::entry("runs", row.id.clone(), html(&RunRowPart { row: row.clone() }))
    };
    all.extend(read.list.rows.iter().map(entry));
    all
}

/// The parts of the list.
struct Read {
    filters: RunFilters,
    list: RunList,
    none: RunNone,
    next: Option<String>,
}

async fn read(viewer: &Viewer<'_>, query: &Query) -> Result<Read, Problem> {
    let (search, before) = search(viewer, query)?;
    let runs = known(viewer)?;
    let page = runs.newest(&viewer.workspace, &search, before, PAGE).await?;
    let counted = runs.count_living(&viewer.workspace).await?;
    let next = page.next.map(|pid| {
        let mut pairs = set(query);
        pairs.push(("before", pid.to_string()));
        address(viewer, &pairs)
    });
    let rows: Vec<_> = page.items.iter().filter_map(|run| row(viewer, run)).collect();
    let is_whole = set(query).is_empty() && query.text("before").is_empty();
    let empty = rows.is_empty().then(|| empty(viewer, is_whole));
    Ok(Read {
        filters: filters(viewer, query, counted),
        list: RunList { rows },
        none: RunNone { id: "runs-none", empty },
        next,
    })
}

/// The filters of an address, and the number before which its page begins.
fn search(viewer: &Viewer<'_>, query: &Query) -> Result<(RunSearch, u64), Problem> {
    let unfit = |what: &str| Problem::new(ErrorKind::Invalid, what);
    let words = Status::ALL.map(Status::as_str);
    let word = query.word("status", &[&["all"], &words[..]].concat())?;
    let (status, waits) = match Status::ALL.into_iter().find(|one| one.as_str() == word) {
        None => (None, None),
        Some(Status::Running) => (Some(None), Some(false)),
        Some(Status::Pending) => (Some(None), Some(true)),
        Some(Status::Over(end)) => (Some(Some(end)), None),
    };
    let session = match query.text("session") {
        "" => None,
        text => Some(SessionId::parse(text).ok_or_else(|| unfit("this is no id of a session"))?),
    };
    let parent = match query.text("parent") {
        "" => None,
        text => Some(RunId::parse(text).ok_or_else(|| unfit("this is no id of a run"))?),
    };
    let driver = match query.text("user") {
        "" => None,
        who => Some(viewer.control().driver(&viewer.workspace, who)?),
    };
    let before = match query.text("before") {
        "" => u64::MAX,
        text => text.parse().map_err(|_no_number| unfit("this is no number of a run"))?,
    };
    let filter = RunFilter { session, status, waits };
    Ok((RunSearch { filter, agent: query.text("agent").to_owned(), driver, parent }, before))
}

/// The filters of an address that are set.
fn set(query: &Query) -> Vec<(&'static str, String)> {
    let names = KNOWN.into_iter().filter(|name| *name != "before");
    let pairs = names.map(|name| (name, query.text(name).to_owned()));
    pairs.filter(|(_, value)| !value.is_empty()).collect()
}

fn filters(viewer: &Viewer<'_>, query: &Query, counted: LivingRuns) -> RunFilters {
    let chosen = query.text("status");
    let but =
        |name: &str| set(query).into_iter().filter(|(other, _)| *other != name).collect::<Vec<_>>();
    let filter = |word: &'static str| {
        let mut pairs = but("status");
        if word != "all" {
            pairs.push(("status", word.to_owned()));
        }
        Filter {
            href: address(viewer, &pairs),
            label: word.to_owned(),
            count: match word {
                "running" => usize::try_from(counted.running).ok(),
                "pending" => usize::try_from(counted.pending).ok(),
                _ => None,
            },
            is_current: chosen == word || (chosen.is_empty() && word == "all"),
        }
    };
    let words = std::iter::once("all").chain(Status::ALL.map(Status::as_str));
    let mut filters: Vec<_> = words.map(filter).collect();
    for (name, value) in set(query).into_iter().filter(|(name, _)| *name != "status") {
        let label = format!("{name} “{}” ✕", Words::within(&value, 40));
        let href = address(viewer, &but(name));
        filters.push(Filter { href, label, count: None, is_current: true });
    }
    RunFilters { filters }
}

/// The address of the list with these parameters.
fn address(viewer: &Viewer<'_>, pairs: &[(&str, String)]) -> String {
    match queried(pairs).as_str() {
        "" => viewer.path("runs"),
        query => viewer.path(&format!("runs?{query}")),
    }
}

fn empty(viewer: &Viewer<'_>, is_whole: bool) -> Empty {
    match is_whole {
        true => Empty {
            title: "No runs yet",
            sentence: "A run is an agent at work, with the servers and the rights that it got at \
                       its beginning."
                .to_owned(),
            example: Some(
                narthex("runs create --agent reader", &[])
                    .in_workspace(viewer.workspace.as_str())
                    .to_string(),
            ),
            page: Some("docs/concepts/runs.md"),
        },
        false => Empty {
            title: "No run fits",
            sentence: "Take a filter away to see more.".to_owned(),
            example: None,
            page: None,
        },
    }
}

/// The row of a run; `None` for a run that has just left this process.
fn row(viewer: &Viewer<'_>, run: &SeenRun) -> Option<RunRow> {
    let status = RunStatus(run.status().as_str());
    match (&run.row, &run.view) {
        (Some(row), _) => Some(stored_row(viewer, row)),
        (None, Some(view)) => Some(RunRow {
            id: element(view.id),
            href: path(viewer, view.id, ""),
            pid: 0,
            agent: Words::new("the daemon's own run"),
            status,
            driver: None,
            parent: None,
            created: Moment::new(view.began),
            ended: None,
            expires: None,
            depth: 0,
        }),
        (None, None) => None,
    }
}
