//! Runs and sessions of a workspace.

use super::super::operation::{Content, Operation, delete, get, of, post};
use crate::shapes;

pub(super) const OPERATIONS: &[Operation] = &[
    post(
        "/api/workspaces/{workspace}/runs",
        "run_create",
        "Creates a run; its token is shown once",
    )
    .takes(of::<shapes::RunNew>())
    .makes(of::<shapes::RunMade>())
    .refuses(&[429]),
    get("/api/workspaces/{workspace}/runs", "run_list", "Lists the runs")
        .asks(&["run_after", "limit", "run_session", "run_status"])
        .gives(of::<shapes::Page<shapes::Run>>()),
    get("/api/workspaces/{workspace}/runs/{id}", "run_show", "Shows one run")
        .gives(of::<shapes::Run>()),
    delete("/api/workspaces/{workspace}/runs/{id}", "run_end", "Ends a run").ends(),
    post(
        "/api/workspaces/{workspace}/runs/{id}/claim",
        "run_claim",
        "Claims a waiting run, or extends a claim",
    )
    .takes(of::<shapes::ClaimNew>())
    .gives(of::<shapes::RunClaimed>()),
    get(
        "/api/workspaces/{workspace}/runs/{id}/trace",
        "run_trace",
        "Streams the operations of a run: names, sizes and durations, never content",
    )
    .asks(&["trace_alias"])
    .answers(200, Content::Events(of::<shapes::RunTraced>()), &[])
    .refuses(&[406, 409, 429]),
    get(
        "/api/workspaces/{workspace}/top",
        "run_top",
        "Shows the load of the runs of a workspace, once or as a stream",
    )
    .asks(&["top_interval"])
    .answers(200, Content::JsonOrEvents(of::<shapes::RunsTop>(), of::<shapes::RunsTop>()), &[])
    .refuses(&[429]),
    get("/api/workspaces/{workspace}/sessions", "session_list", "Lists the sessions")
        .asks(&["after", "limit"])
        .gives(of::<shapes::Page<shapes::SessionRow>>()),
    get("/api/workspaces/{workspace}/sessions/{id}", "session_show", "Shows one session")
        .gives(of::<shapes::Session>()),
    delete(
        "/api/workspaces/{workspace}/sessions/{id}",
        "session_end",
        "Ends a session and its runs",
    )
    .ends(),
    post(
        "/api/workspaces/{workspace}/sessions/{id}/suspend",
        "session_suspend",
        "Suspends a session; its runs end",
    )
    .gives(of::<shapes::Session>()),
    post(
        "/api/workspaces/{workspace}/sessions/{id}/resume",
        "session_resume",
        "Resumes a session with a new run; its token is shown once",
    )
    .takes(of::<shapes::RunResume>())
    .makes(of::<shapes::RunMade>())
    .refuses(&[429]),
    post(
        "/api/workspaces/{workspace}/sessions/{id}/usage",
        "session_usage_report",
        "Reports the costs of a session",
    )
    .takes(of::<shapes::SessionUsage>())
    .gives(of::<shapes::SessionUsage>()),
];
