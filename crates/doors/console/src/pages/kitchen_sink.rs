//! Each component in each state, for the eye. Debug builds serve it at [`PATH`].

pub mod approvals;
pub mod audit;
mod items;
pub mod play;
pub mod policy;

use std::time::Duration;

use askama::Template;
use narthex_model::{ServerState, command::narthex};

pub use self::items::items_of;
use super::{
    agents::{self, Effective},
    catalog::{self, CatalogRow, form::EntryForm},
    fault::Fault,
    home::{Asking, Counted, HeldBack, HomePage, Now, Number, Runs, Step},
    registry::{self, FoundRow, WayPart},
    runs::{
        self, RunList,
        trace::{CallList, Timeline},
    },
    secrets::{self, SecretRow},
    server::{definitions::DefinitionList, log::Log, samples, tools::Tools},
    servers::{MendingLink, ServerFilters, ServerList, ServerRow, Stage, Tested},
};
use crate::{
    Account, Frame, NavLink, NavPlace, OperatorEntry, Related, Told, Waiting, Workspaces, filters,
    parts::{
        Action, Empty, Filter, ICONS, Moment, Same, State, Words,
        form::{Field, Input, Origin},
        item::Item,
    },
};

/// The path of the page.
pub const PATH: &str = "/assets/kitchen-sink";

/// The page.
#[derive(Debug, Template)]
#[template(path = "kitchen_sink.html")]
pub struct KitchenSink {
    frame: Frame,
    icons: [&'static str; ICONS.len()],
    states: [State; 5],
    buttons: Vec<Action>,
    list: ServerList,
    now: Now,
    tested: Tested,
    tools: Tools,
    definitions: DefinitionList,
    log: Log,
    told: [Told; 2],
    fault: Fault,
    empty: Empty,
    fields: Vec<Field>,
    secrets: Vec<SecretRow>,
    form: EntryForm,
    effective: Effective,
    runs: RunList,
    calls: CallList,
    timeline: Timeline,
    items: Vec<Item>,
    entries: Vec<CatalogRow>,
    found: Vec<FoundRow>,
    ways: Vec<WayPart>,
}

/// The page with samples.
#[must_use]
pub fn page() -> KitchenSink {
    sample_of("")
}

/// The page with samples whose texts end in another text, such as a hostile one.
#[must_use]
pub fn sample_of(more: &str) -> KitchenSink {
    let told = |is_failure| Told { sentence: words("git is reconnecting.", more), is_failure };
    let action =
        || Action::new("/w/default/servers/git/test".to_owned(), "Test", "a new connection");
    KitchenSink {
        frame: Frame { title: words("Components", more), ..frame_of(more) },
        icons: ICONS,
        states: STATES.map(State),
        buttons: vec![
            action().primary(),
            action(),
            action().off("the server is disabled: enable it first"),
        ],
        list: list_of(more),
        now: now_of(more),
        tested: tested_of(more),
        tools: samples::tools(more),
        definitions: samples::definitions(more),
        log: samples::log(more),
        told: [told(false), told(true)],
        fault: fault_of(more),
        empty: empty(),
        fields: fields(more),
        secrets: secrets::samples::rows(more),
        form: catalog::samples::form(more),
        effective: agents::samples::effective_of(more),
        runs: runs::samples::list_of(more),
        calls: CallList { rows: runs::samples::calls_of(more) },
        timeline: runs::samples::timeline_of(more),
        items: items_of(more),
        entries: vec![catalog::samples::row(more)],
        found: vec![registry::samples::row(more)],
        ways: registry::samples::ways(more),
    }
}

/// A field of each kind.
fn fields(more: &str) -> Vec<Field> {
    let more: String = more.chars().take(200).collect();
    let label = |text: &str| format!("{text}{more}");
    let origins = vec![
        Origin::new(&label("the capability search"), &label("https://example.com/mcp")),
        Origin::new(&label("the catalog"), &label("http://localhost")),
    ];
    let address = Input::Line {
        value: label("https://example.com/mcp"),
        example: label("https://example.com/mcp"),
    };
    let token = Input::line(&label("abc"));
    vec![
        Field::new("address", &label("Address"), address).origins(origins).required(),
        Field::new("token", &label("Token"), token)
            .fault(Some(&label("A secret is named, not written: use ${TOKEN}."))),
        Field::new("secret", &label("New value"), Input::Unseen)
            .help(&label("It is saved once you press Save.")),
        Field::new("more", &label("Settings"), Input::area(&label("{}\n{}"), 4))
            .off(&label("This entry is changed in its file.")),
        Field::new(
            "shape",
            &label("Shape"),
            Input::choice(&["command", "remote", "image"], "remote"),
        ),
        Field::new("quiet", &label("Quiet"), Input::Check { is_on: true }),
    ]
}

/// All states of servers.
pub const STATES: [ServerState; 5] = [
    ServerState::Connecting,
    ServerState::Authenticating,
    ServerState::Ready,
    ServerState::Error,
    ServerState::Disabled,
];

fn words(text: &str, more: &str) -> Words {
    Words::new(&format!("{text}{more}"))
}

/// A frame for samples and tests.
#[must_use]
pub fn frame() -> Frame {
    frame_of("")
}

/// A frame whose texts end in another text.
#[must_use]
pub fn frame_of(more: &str) -> Frame {
    let link = |path: &str, label, icon, group, place| NavLink {
        href: format!("/w/default/{path}"),
        label,
        icon,
        group,
        place,
    };
    let team = ("team".to_owned(), words("The team", more));
    Frame {
        title: words("Connected services", more),
        sentence: words("The servers of this daemon, and whether they work.", more),
        workspaces: Workspaces {
            current: "default".to_owned(),
            all: vec![("default".to_owned(), words("default", "")), team],
            operator: OperatorEntry::Link,
        },
        nav: vec![
            link("", "Home", "home", "", NavPlace::Elsewhere),
            link("servers", "Connected services", "plug", "", NavPlace::Here),
            link("tools", "Tools", "list", "Servers", NavPlace::Elsewhere),
            link("secrets", "Secrets", "lock", "Servers", NavPlace::Elsewhere),
            link("audit", "Audit", "shield", "Rules and records", NavPlace::Elsewhere),
        ],
        waiting: Waiting { href: "/w/default/#waiting".to_owned(), count: Some(3) },
        me: Account { name: words("ada", more), way: "with a passkey" },
        csrf: "token".to_owned(),
        searched: words("", more),
        live: None,
        told: Some(Told { sentence: words("git is reconnecting.", more), is_failure: false }),
        related: vec![Related {
            href: "/w/default/audit?server=git".to_owned(),
            label: words("Audit of git", more),
        }],
        same: Some(Same::new(&format!("{}{more}", narthex("mcp list", &[])), "GET /api/servers")),
    }
}

/// A row of each state.
#[must_use]
pub fn rows_of(more: &str) -> Vec<ServerRow> {
    STATES.iter().enumerate().map(|(index, state)| row_of(index, *state, more)).collect()
}

fn row_of(index: usize, state: ServerState, more: &str) -> ServerRow {
    let name = ["search", "mail", "git", "files", "calendar"].get(index).copied();
    let name = name.unwrap_or("server");
    let path = |verb: &str| format!("/w/default/servers/{name}/{verb}");
    let is_ready = state == ServerState::Ready;
    let reason = match state {
        ServerState::Error => Some("the program ended at once (exit code 1): no such file"),
        ServerState::Authenticating => Some("a person must sign in at https://id.example.com"),
        ServerState::Connecting | ServerState::Ready | ServerState::Disabled => None,
    };
    let test = Action::new(path("test"), "Test", "opens a connection of its own and lists");
    let reconnect =
        Action::new(path("reconnect"), "Reconnect", "ends the connection, and opens one");
    let disable = Action::new(path("disable"), "Disable", "ends the connection until enabled");
    let enable = Action::new(path("enable"), "Enable", "connects to the server").primary();
    let authorize =
        Action::new(path("authorize"), "Authorize", "leads to the sign-in of the server").primary();
    ServerRow {
        id: format!("server-{name}"),
        name: words(name, more),
        path: format!("/w/default/servers/{name}"),
        state: State(state),
        activity: (state == ServerState::Connecting).then_some("shaking hands"),
        reason: reason.map(|reason| words(reason, more)),
        transport: if index < 2 { "http" } else { "stdio" },
        auth: if index == 1 { "signed in by a person" } else { "no credentials" },
        tools: is_ready.then_some(12),
        tools_path: path("tools"),
        held_back: usize::from(is_ready),
        warnings: if is_ready {
            vec![words("a gate fits no tool: `pus*`", more)]
        } else {
            Vec::new()
        },
        answered: is_ready.then(|| Moment::after_epoch(Duration::from_secs(1_790_000_000))),
        origin: words("/home/ada/work/mcp.json", more),
        is_overridden: false,
        actions: match state {
            ServerState::Disabled => vec![enable, test],
            ServerState::Authenticating => vec![authorize.page(), test, disable],
            ServerState::Error => vec![reconnect.primary(), test, disable],
            ServerState::Connecting => {
                vec![test, reconnect.off("the server is connecting already"), disable]
            }
            ServerState::Ready => vec![test, reconnect, disable],
        },
        links: match state {
            ServerState::Error => vec![
                mending("Set MAIL_KEY", "/w/default/secrets?q=MAIL_KEY", more),
                mending("Log", "/w/default/servers/files/log", more),
            ],
            _ => Vec::new(),
        },
    }
}

fn mending(label: &str, href: &str, more: &str) -> MendingLink {
    let is_primary = label.starts_with("Set");
    MendingLink { label: words(label, more), href: href.to_owned(), is_primary }
}

pub(super) fn list_of(more: &str) -> ServerList {
    let filter = |label: &str, count, is_current| Filter {
        href: "/w/default/servers?state=error".to_owned(),
        label: label.to_owned(),
        count: Some(count),
        is_current,
    };
    ServerList {
        csrf: "token".to_owned(),
        filters: ServerFilters { filters: vec![filter("all", 5, true), filter("ready", 1, false)] },
        rows: rows_of(more),
        count: 120,
        next: Some("/w/default/servers?after=git".to_owned()),
        empty: empty(),
    }
}

/// The live part of the first page.
#[must_use]
pub fn now_of(more: &str) -> Now {
    let asking = |what: &str| Asking {
        href: "/workspaces/default/grant-requests/1".to_owned(),
        who: words("reviewer", more),
        what: words(what, more),
        since: Moment::after_epoch(Duration::from_secs(1_790_000_000)),
        until: Moment::after_epoch(Duration::from_secs(1_790_000_900)),
    };
    let held_back = HeldBack {
        server: words("git", more),
        count: 2,
        href: "/w/default/servers/git/definitions".to_owned(),
    };
    let broken = rows_of(more)
        .into_iter()
        .filter(|row| !matches!(row.state.0, ServerState::Ready | ServerState::Disabled));
    Now {
        csrf: "token".to_owned(),
        servers: Some(Counted { all: 4, ready: 1 }),
        runs: Some(Runs { running: number(2, "runs?status=running"), pending: number(1, "runs") }),
        calls: number(1_284, "audit?kind=session.mcp.tool_called"),
        requests: vec![asking("tool scope repo.write"), asking("to start the agent tester")],
        has_more_requests: true,
        held_back: vec![held_back],
        broken: broken.collect(),
        more_broken: 4,
        ready: "/w/default/servers?state=ready".to_owned(),
        unready: "/w/default/servers?state=unready".to_owned(),
        approvals: "/w/default/approvals".to_owned(),
    }
}

fn number(count: u64, rest: &str) -> Number {
    Number { count, is_part: count > 1_000, href: Some(format!("/w/default/{rest}")) }
}

/// The first page on the first day.
#[must_use]
pub fn first_day() -> HomePage {
    let frame = Frame {
        title: words("Home", ""),
        sentence: words("What is broken, and what waits for you.", ""),
        told: None,
        waiting: Waiting { href: "/w/default/#waiting".to_owned(), count: Some(0) },
        ..frame()
    };
    let now = Now {
        servers: Some(Counted { all: 1, ready: 1 }),
        runs: Some(Runs { running: number(0, "runs"), pending: number(0, "runs") }),
        calls: Number { count: 0, is_part: false, href: None },
        requests: Vec::new(),
        has_more_requests: false,
        held_back: Vec::new(),
        broken: Vec::new(),
        more_broken: 0,
        ..now_of("")
    };
    HomePage { frame, offers_passkey: true, steps: steps(), now }
}

pub(super) fn steps() -> Vec<Step> {
    let step = |title, sentence, page: &str, command, is_done| Step {
        title,
        sentence,
        href: format!("/w/default/{page}"),
        label: title,
        command: narthex(command, &[]).to_string(),
        is_done,
    };
    let client = "Your editor or agent gets one address for all servers.";
    vec![
        step(
            "Add a server",
            "A program or an address that has tools.",
            "add-server",
            "setup",
            true,
        ),
        step("Connect a client", client, "connect", "setup", false),
        step("Make a call", "Ask your client for something.", "play", "tools", false),
    ]
}

pub(super) fn tested_of(more: &str) -> Tested {
    let stage = |name, outcome: &str, is_fine| Stage {
        name,
        outcome: words(outcome, more),
        is_fine,
        ms: 12,
    };
    Tested {
        server: words("git", more),
        is_fine: false,
        stages: vec![
            stage("connect", "fine", true),
            stage("tools", "12 tools", true),
            stage("prompts", "the server ended", false),
        ],
    }
}

fn fault_of(more: &str) -> Fault {
    Fault { kind: "conflict", sentence: words("the server is disabled; enable it first", more) }
}

fn empty() -> Empty {
    Empty {
        title: "No servers yet",
        sentence: "A server is a program or an address that has tools for your agents.".to_owned(),
        example: Some(narthex("mcp add git -- uvx mcp-server-git", &[]).to_string()),
        page: Some("docs/guides/find-servers.md"),
    }
}
