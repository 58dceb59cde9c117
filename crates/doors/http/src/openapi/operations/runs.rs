//! Runs and sessions of a workspace.

use super::super::operation::{Content, Operation, delete, get, post, written};

pub(super) const OPERATIONS: &[Operation] = &[
    post(
        "/api/workspaces/{workspace}/runs",
        "run_create",
        "Creates a run; its token is shown once",
    )
    .takes(written("RunNew"))
    .makes(written("RunMade"))
    .refuses(&[429]),
    get("/api/workspaces/{workspace}/runs", "run_list", "Lists the runs")
        .asks(&["run_after", "limit", "run_session", "run_status"])
        .gives(written("RunPage")),
    get("/api/workspaces/{workspace}/runs/{id}", "run_show", "Shows one run").gives(written("Run")),
    delete("/api/workspaces/{workspace}/runs/{id}", "run_end", "Ends a run").ends(),
    post(
        "/api/workspaces/{workspace}/runs/{id}/claim",
        "run_claim",
        "Claims a waiting run, or extends a claim",
    )
    .takes(written("ClaimNew"))
    .gives(written("RunClaimed")),
    get(
        "/api/workspaces/{workspace}/runs/{id}/trace",
        "run_trace",
        "Streams the operations of a run: names, sizes and durations, never content",
    )
    .asks(&["trace_alias"])
    .answers(200, Content::Events(written("RunTraced")), &[])
    .refuses(&[406, 409, 429]),
    get(
        "/api/workspaces/{workspace}/top",
        "run_top",
        "Shows the load of the runs of a workspace, once or as a stream",
    )
    .asks(&["top_interval"])
    .answers(200, Content::JsonOrEvents(written("RunsTop"), written("RunsTop")), &[])
    .refuses(&[429]),
    get("/api/workspaces/{workspace}/sessions", "session_list", "Lists the sessions")
        .asks(&["after", "limit"])
        .gives(written("SessionPage")),
    get("/api/workspaces/{workspace}/sessions/{id}", "session_show", "Shows one session")
        .gives(written("Session")),
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
    .gives(written("Session")),
    post(
        "/api/workspaces/{workspace}/sessions/{id}/resume",
        "session_resume",
        "Resumes a session with a new run; its token is shown once",
    )
    .takes(written("RunResume"))
    .makes(written("RunMade"))
    .refuses(&[429]),
    post(
        "/api/workspaces/{workspace}/sessions/{id}/usage",
        "session_usage_report",
        "Reports the costs of a session",
    )
    .takes(written("SessionUsage"))
    .gives(written("SessionUsage")),
];
