//! The servers of configuration files: rows, verbs, entries, and what can be watched.

use super::super::operation::{Content, Operation, delete, get, patch, post, put, written};

const ROWS: &[&str] = &["tools"];
const PAGES: &[&str] = &["after", "limit"];

pub(super) const OPERATIONS: &[Operation] =
    &[
        get("/api/status", "status_show", "Shows a summary of the servers")
            .asks(PAGES)
            .gives(written("StatusPage")),
        get("/api/tools", "tool_list", "Lists the tools of all servers")
            .asks(PAGES)
            .gives(written("ToolPage")),
        get("/api/servers", "server_list", "Lists the servers")
            .asks(&["tools", "after", "limit"])
            .gives(written("ServerRowPage")),
        get("/api/servers/{name}", "server_show", "Shows one server")
            .asks(ROWS)
            .gives(written("ServerRow")),
        put("/api/servers/{name}", "server_put", "Stores an entry in the user's settings")
            .asks(&["IfNoneMatch"])
            .takes(written("FileEntry"))
            .gives(written("FileEntrySaved"))
            .answers(201, Content::Json(written("FileEntrySaved")), &[])
            .refuses(&[412]),
        patch("/api/servers/{name}", "server_change", "Changes an entry of the user's settings")
            .merges(written("FileEntryChange"))
            .gives(written("FileEntrySaved")),
        delete("/api/servers/{name}", "server_delete", "Removes an entry of the user's settings")
            .ends()
            .refuses(&[400]),
        post("/api/servers/{name}/disable", "server_disable", "Switches a server off")
            .gives(written("VerbDone"))
            .refuses(&[400]),
        post("/api/servers/{name}/enable", "server_enable", "Switches a server on")
            .gives(written("VerbDone"))
            .refuses(&[400]),
        post("/api/servers/{name}/reconnect", "server_reconnect", "Reconnects a server")
            .gives(written("VerbDone"))
            .refuses(&[400]),
        post(
            "/api/servers/{name}/reauthorize",
            "server_reauthorize",
            "Asks a human to sign in to a server again",
        )
        .gives(written("VerbDone"))
        .refuses(&[400]),
        post("/api/servers/{name}/test", "server_test", "Tests a server, stage by stage")
            .asks(&["mount_workspace"])
            .answers(200, Content::JsonOrEvents(written("Probe"), written("ProbeEvent")), &[])
            .refuses(&[400, 409]),
        get("/api/servers/{name}/logs", "server_logs", "Shows the last lines of a server's log")
            .asks(&["log_workspace"])
            .answers(200, Content::JsonOrEvents(written("Logs"), written("LogEvent")), &[]),
        post("/api/reload", "file_reload", "Reloads the configuration files")
            .gives(written("Reloaded")),
        get("/api/files", "file_list", "Lists the configuration files")
            .asks(PAGES)
            .gives(written("FilePage")),
        get("/api/events", "server_watch", "Streams changes of the servers' rows")
            .asks(ROWS)
            .answers(200, Content::Events(written("ServersEvent")), &[]),
    ];
