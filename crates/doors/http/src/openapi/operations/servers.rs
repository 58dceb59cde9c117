//! The servers of configuration files: rows, verbs, entries, and what can be watched.

use super::super::operation::{Content, Operation, delete, get, of, patch, post, put};
use crate::shapes;

const ROWS: &[&str] = &["tools"];
const PAGES: &[&str] = &["after", "limit"];

pub(super) const OPERATIONS: &[Operation] = &[
    get("/api/status", "status_show", "Shows a summary of the servers")
        .asks(PAGES)
        .gives(of::<shapes::StatusPage>()),
    get("/api/tools", "tool_list", "Lists the tools of all servers")
        .asks(PAGES)
        .gives(of::<shapes::Page<shapes::ToolRow>>()),
    get("/api/servers", "server_list", "Lists the servers")
        .asks(&["tools", "after", "limit"])
        .gives(of::<shapes::ServerRowPage>()),
    get("/api/servers/{name}", "server_show", "Shows one server")
        .asks(ROWS)
        .gives(of::<shapes::ServerRow>()),
    put("/api/servers/{name}", "server_put", "Stores an entry in the user's settings")
        .asks(&["IfNoneMatch"])
        .takes(of::<shapes::FileEntry>())
        .gives(of::<shapes::FileEntrySaved>())
        .answers(201, Content::Json(of::<shapes::FileEntrySaved>()), &[])
        .refuses(&[412]),
    patch("/api/servers/{name}", "server_change", "Changes an entry of the user's settings")
        .merges(of::<shapes::FileEntryChange>())
        .gives(of::<shapes::FileEntrySaved>()),
    delete("/api/servers/{name}", "server_delete", "Removes an entry of the user's settings")
        .ends()
        .refuses(&[400]),
    post("/api/servers/{name}/disable", "server_disable", "Disables a server")
        .gives(of::<shapes::VerbDone>())
        .refuses(&[400]),
    post("/api/servers/{name}/enable", "server_enable", "Enables a server")
        .gives(of::<shapes::VerbDone>())
        .refuses(&[400]),
    post("/api/servers/{name}/reconnect", "server_reconnect", "Reconnects a server")
        .gives(of::<shapes::VerbDone>())
        .refuses(&[400]),
    post(
        "/api/servers/{name}/reauthorize",
        "server_reauthorize",
        "Asks a human to sign in to a server again",
    )
    .gives(of::<shapes::VerbDone>())
    .refuses(&[400]),
    post("/api/servers/{name}/test", "server_test", "Tests a server, stage by stage")
        .asks(&["mount_workspace"])
        .answers(200, Content::JsonOrEvents(of::<shapes::Probe>(), of::<shapes::ProbeEvent>()), &[])
        .refuses(&[400, 409]),
    get("/api/servers/{name}/logs", "server_logs", "Shows the last lines of a server's log")
        .asks(&["log_workspace"])
        .answers(200, Content::JsonOrEvents(of::<shapes::Logs>(), of::<shapes::LogEvent>()), &[]),
    post("/api/reload", "file_reload", "Reloads the configuration files")
        .gives(of::<shapes::Reloaded>()),
    get("/api/files", "file_list", "Lists the configuration files")
        .asks(PAGES)
        .gives(of::<shapes::Page<shapes::File>>()),
    get("/api/profiles", "profile_list", "Lists the profiles")
        .asks(PAGES)
        .gives(of::<shapes::Page<shapes::Profile>>()),
    get("/api/profiles/{profile}", "profile_show", "Shows one profile")
        .gives(of::<shapes::Profile>()),
    get("/api/events", "server_watch", "Streams changes of the servers' rows").asks(ROWS).answers(
        200,
        Content::Events(of::<shapes::ServersEvent<'static>>()),
        &[],
    ),
];
