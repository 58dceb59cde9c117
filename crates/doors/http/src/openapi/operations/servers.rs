//! The servers of configuration files: rows, verbs, entries, and what can be watched.

use super::super::operation::{Content, Operation, delete, get, of, patch, post, put};
use crate::shapes;

const ROWS: &[&str] = &["tools"];
const PAGES: &[&str] = &["after", "limit"];
const HTML: Content = Content::Text(&["text/html"]);
/// The parameters of the redirect of an authorization server.
const REDIRECT: &[&str] = &["oidc_code", "oidc_state", "oidc_iss", "oidc_error"];
/// The refusals of a sign-in, whose authorization server may be at fault.
const SIGN_IN: &[u16] = &[400, 429];
const PAGE: &[u16] = &[400, 409, 429, 500, 503, 504];

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
        "Signs out of a server, and starts a sign-in",
    )
    .gives(of::<shapes::VerbDone>())
    .refuses(SIGN_IN),
    post("/api/servers/{name}/authorize", "server_authorize", "Starts a sign-in to a server")
        .asks(&["device"])
        .answers(
            200,
            Content::Either(of::<shapes::ServerSignInBegun>(), of::<shapes::DeviceSignInBegun>()),
            &[],
        )
        .refuses(SIGN_IN),
    get(
        "/api/servers/{name}/authorize/{id}",
        "server_device_sign_in_show",
        "Shows the state of a sign-in at another device",
    )
    .gives(of::<shapes::DeviceSignIn>())
    .refuses(SIGN_IN),
    post("/api/servers/{name}/sign-out", "server_sign_out", "Signs out of a server")
        .gives(of::<shapes::VerbDone>())
        .refuses(SIGN_IN),
    get(
        "/oauth/callback",
        "server_sign_in_finish",
        "Finishes a sign-in with the answer of an authorization server",
    )
    .asks(REDIRECT)
    .answers(200, HTML, &[])
    .answers(303, Content::None, &["Location"])
    .refuses(PAGE),
    get(
        "/oauth/callback/{server}",
        "server_sign_in_finish_at",
        "Finishes a sign-in to one server with the answer of an authorization server",
    )
    .asks(REDIRECT)
    .answers(200, HTML, &[])
    .answers(303, Content::None, &["Location"])
    .refuses(PAGE),
    get(
        "/oauth/client-metadata.json",
        "client_metadata_show",
        "Shows the client id metadata document of narthex",
    )
    .answers(200, Content::Json(of::<shapes::ClientMetadata>()), &["ETag"])
    .answers(304, Content::None, &["ETag"]),
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
