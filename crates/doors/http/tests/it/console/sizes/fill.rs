//! A site with as much of each thing as a test asks for.

use std::time::{Duration, SystemTime};

use narthex_model::{
    AgentName, CatalogKind, Grant, GrantDuration, GrantId, GrantOf, GrantRequestId, GrantSubject,
    RunId, SessionId, ToolScope, ToolScopeGrant, WorkspaceId,
};
use narthex_store::{
    AuditChain, AuditRow, EventsOf, GrantRequestRow, GrantRequestStatus, GrantRow, NewEvent,
    NewRun, SessionRow,
};
use narthex_testkit::peer::{self, Peer};
use serde_json::json;

use super::super::{SESSION, begin_run, site};
use crate::{browser::Site, world::SOON};

/// Number of tools of each server.
const TOOLS: usize = 12;
const HERE: &str = "/api/workspaces/default";
/// Longer than any test.
const LATER: Duration = Duration::from_secs(1_000_000);

/// Numbers of things.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    /// Servers that are ready, each with a dozen tools.
    pub(super) servers: usize,
    /// Active runs, of which every second one is a child of the first run.
    pub(super) runs: usize,
    /// Calls in the audit, of which every second one is of the first run.
    pub(super) calls: usize,
    /// Objects of each other kind.
    pub(super) others: usize,
}

/// A site that is filled.
pub(super) struct Filled {
    pub(super) site: Site,
    /// The first run.
    pub(super) run: RunId,
    peer: Peer,
}

impl Filled {
    pub(super) async fn new(size: Size) -> Self {
        let site = site().await;
        begin_run(&site).await;
        let runs = site.api.get(&format!("{HERE}/runs")).await;
        let run = RunId::parse(runs["items"][0]["run_id"].as_str().unwrap()).unwrap();
        let peer = server().await;
        let filled = Self { site, run, peer };
        filled.add_servers(size.servers).await;
        for number in 1..=size.runs {
            filled.add_run(number).await;
        }
        filled.add_calls(size.calls).await;
        filled.add_catalog(size.others).await;
        for number in 1..=size.others {
            filled.add_grant(number).await;
            filled.add_secret_and_client(number).await;
        }
        filled.add_messages(size.others).await;
        filled
    }

    async fn add_servers(&self, count: usize) {
        let entry = json!({ "transport": "http", "url": self.peer.url }).to_string();
        for number in 0..count {
            let path = format!("/api/servers/many-{number}");
            self.site.api.send("PUT", &path, entry.clone()).await.succeeded();
        }
        let registry = self.site.api.control.registry();
        let settled = registry.wait_until(SOON, |all| all.is_settled()).await;
        assert_eq!(settled.servers.len(), count + 1);
        assert!(settled.servers.iter().all(|row| row.is_ready()));
    }

    async fn add_run(&self, number: usize) {
        let here = WorkspaceId::default();
        let is_child = number.is_multiple_of(2);
        let (id, session) = (RunId::new(bytes(number)), SessionId::new(bytes(number)));
        let row = SessionRow {
            workspace: here.clone(),
            id: session,
            agent: "reader".to_owned(),
            parent: is_child.then_some(self.run),
            depth: u32::from(is_child),
            sealed: String::new(),
            created_at: SystemTime::now(),
            created_by: "admin".to_owned(),
            ended_at: None,
            how: None,
            agent_type: None,
        };
        let new = NewRun {
            id,
            workspace: &here,
            session,
            agent: "reader",
            parent: is_child.then_some(self.run),
            agent_env: &[],
            token: &id.to_text(),
            sealed: "",
            created_by: "admin",
            expires_at: SystemTime::now() + LATER,
            has_sockets: false,
            driver: None,
            awaited: None,
            spawned: None,
            is_owed: false,
            suspended_at: None,
            agent_type: None,
        };
        let created = self.site.store.runs().create(new, Some(&row)).await.unwrap();
        assert!(created.is_some());
    }

    async fn add_calls(&self, count: usize) {
        // No event of a run comes before it.
        let began = SystemTime::now();
        let row = |number: usize| {
            let id = if number.is_multiple_of(2) { self.run } else { RunId::new(bytes(1)) };
            let document = json!({
                "kind": "session.mcp.tool_called", "time": "2026-11-22T10:39:14.343Z",
                "actor": { "kind": "run", "id": id.to_text() }, "run": id.to_text(),
                "server": format!("many-{}", number % 5), "tool": "tool-3", "outcome": "ok",
            });
            AuditRow {
                workspace: "default".to_owned(),
                writer: "filler".to_owned(),
                seq: number as u64,
                happened_at: began + Duration::from_millis(number as u64),
                kind: "session.mcp.tool_called".to_owned(),
                actor: id.to_text(),
                resource: String::new(),
                run: id.to_text(),
                document: document.to_string(),
            }
        };
        let rows: Vec<_> = (1..=count).map(row).collect();
        let empty = AuditChain::empty("default", "filler");
        let full =
            AuditChain { head_seq: count as u64, head_hash: "none".to_owned(), ..empty.clone() };
        assert!(self.site.store.audit().append(&[(empty, full)], &rows).await.unwrap());
    }

    /// Adds entries, capabilities and agents like those of the site.
    async fn add_catalog(&self, count: usize) {
        let (here, store) = (WorkspaceId::default(), &self.site.store);
        for (kind, like) in [
            (CatalogKind::Server, "docs"),
            (CatalogKind::Capability, "papers"),
            (CatalogKind::Agent, "reader"),
        ] {
            let rows = store.catalog(kind);
            let document = rows.find(&here, like).await.unwrap().unwrap().document;
            for number in 0..count {
                let id = format!("{like}-{number}");
                let document = document.replace(like, &id);
                rows.create(&here, &id, &document, "admin").await.unwrap();
            }
        }
    }

    /// Adds a grant, and a request that waits; two of three requests wait no longer.
    async fn add_grant(&self, number: usize) {
        let (here, store) = (WorkspaceId::default(), &self.site.store);
        let agent = AgentName::new("reader").unwrap();
        let scope = ToolScope::new(&format!("git.write{number}")).unwrap();
        let of = ToolScopeGrant { scope, server: None, tool: None, arguments: None };
        let of = GrantOf::ToolScope(of);
        let grant = GrantRow {
            grant: Grant {
                id: GrantId::new((number as u64).to_be_bytes()),
                subject: GrantSubject::Agent(agent.clone()),
                of: of.clone(),
                duration: GrantDuration::Persistent,
                expires_at: None,
            },
            workspace: here.clone(),
            reason: "it is needed".to_owned(),
            granted_at: SystemTime::now(),
            granted_by: "ada".to_owned(),
            is_advisory: true,
            consumed: None,
            revoked: None,
        };
        assert!(store.grants().create(&grant).await.unwrap());
        let now = SystemTime::now();
        let is_over = !number.is_multiple_of(3) && number > 1;
        let request = GrantRequestRow {
            id: GrantRequestId::new((number as u64).to_be_bytes()),
            asked_as: format!("ask-{number}"),
            workspace: here,
            run: self.run,
            session: SessionId::parse(SESSION),
            user: None,
            agent: Some(agent),
            of,
            arguments: r#"{"a":1}"#.to_owned(),
            duration: "once",
            reason: "to write".to_owned(),
            requested_at: now,
            expires_at: if is_over { now - Duration::from_millis(1) } else { now + LATER },
            status: GrantRequestStatus::Pending,
            decided: None,
            decision_reason: String::new(),
            grant: None,
        };
        assert!(store.grant_requests().ask(&request).await.unwrap().is_some());
    }

    async fn add_secret_and_client(&self, number: usize) {
        let secret = format!("{HERE}/secrets/KEY_{number}");
        let value = json!({ "value": format!("canary-of-the-sizes-{number}") }).to_string();
        self.site.api.send("PUT", &secret, value).await.succeeded();
        let client = json!({ "client": format!("client-{number}"), "agent_name": "reader" });
        let path = format!("{HERE}/mcp-clients");
        self.site.api.send("POST", &path, client.to_string()).await.succeeded();
    }

    /// Adds messages to the session of the first run.
    async fn add_messages(&self, count: usize) {
        let session = SessionId::parse(SESSION).unwrap();
        let of = EventsOf { workspace: WorkspaceId::default(), session };
        for number in 0..count {
            let payload = json!({ "text": format!("message {number}") }).to_string();
            let event = NewEvent {
                of: &of,
                run: Some(self.run),
                kind: "agent.message",
                message_id: None,
                payload: &payload,
                happened_at: SystemTime::now(),
                turn: None,
                unread: None,
                owed: None,
                is_own: true,
            };
            assert!(self.site.store.events().append(&[event]).await.unwrap().is_some());
        }
    }
}

/// A server with a dozen tools.
async fn server() -> Peer {
    let schema = json!({ "type": "object", "properties": { "path": { "type": "string" } } });
    let tool = move |number: usize| {
        let description = format!("Reads the part {number} of a file of the project.");
        json!({ "name": format!("tool-{number}"), "description": description,
                "inputSchema": schema })
    };
    let tools: Vec<_> = (0..TOOLS).map(tool).collect();
    let tools = json!({ "tools": tools });
    Peer::legacy(move |seen| (seen.rpc() == "tools/list").then(|| peer::result(seen, &tools))).await
}

/// The bytes of an id.
fn bytes(number: usize) -> [u8; 6] {
    let [.., a, b] = (number as u64).to_be_bytes();
    [9, 9, 9, 9, a, b]
}
