//! The table of all principals and their permissions, as stored.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use narthex_login::{BearerHash, client_of, service_of};
use narthex_model::{
    McpClientId, PrincipalId, PrincipalKind, PrincipalName, Role, Roles, ServiceTokenId,
    WorkspaceId,
};
use narthex_store::{
    DoorConnectionRow, McpClientRow, PrincipalRow, ServiceTokenRow, StatementError, Store,
    Workspace,
};

use super::connection::Connection;
use crate::{ActorKind, By, login::KnownSession};

/// Age of the last stored use of a token, from which a new use is stored again.
const USED_STEP: Duration = Duration::from_secs(60);
/// Time for which the end of a family of tokens is remembered, so that its streams end.
const ENDS_KEPT: Duration = Duration::from_hours(1);

/// A human, a service or an MCP client, with its permissions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Id of the principal, which never changes.
    pub id: PrincipalId,
    /// Kind of the principal: human, service or client.
    pub kind: PrincipalKind,
    /// Unique name, which the audit records with the principal's changes.
    pub name: PrincipalName,
    /// The workspace that owns the principal; humans belong to none.
    pub workspace: Option<WorkspaceId>,
    /// True if the principal is an operator, with all permissions in all workspaces.
    pub is_operator: bool,
    /// Roles by workspace; no entry is empty.
    pub roles: BTreeMap<WorkspaceId, Roles>,
    /// Time of creation.
    pub created_at: SystemTime,
    /// Name of the principal that created this one.
    pub created_by: String,
    /// Time since which the principal is disabled.
    pub disabled_at: Option<SystemTime>,
}

impl Account {
    /// True if the principal is a member of the workspace, or owned by it.
    #[must_use]
    pub fn belongs_to(&self, workspace: &WorkspaceId) -> bool {
        self.roles.contains_key(workspace) || self.workspace.as_ref() == Some(workspace)
    }

    /// True if the human may let a client act as the agents of a workspace, or, without one, see
    /// the live configuration, which belongs to operators.
    #[must_use]
    pub fn may_connect(&self, agents_of: Option<&WorkspaceId>) -> bool {
        let runs = |roles: &Roles| roles.contains(&Role::Admin) || roles.contains(&Role::Runner);
        let has_role = agents_of.and_then(|workspace| self.roles.get(workspace)).is_some_and(runs);
        self.disabled_at.is_none() && (self.is_operator || has_role)
    }

    /// The principal as the actor of its changes.
    #[must_use]
    pub fn actor(&self) -> By {
        let kind = match self.kind {
            PrincipalKind::Human => ActorKind::Human,
            PrincipalKind::Service => ActorKind::Service,
            PrincipalKind::Client => ActorKind::Client,
        };
        By::new(kind, self.name.to_string())
    }
}

/// A token of a service, without its text.
#[derive(Debug)]
pub struct KnownToken {
    /// The stored row.
    pub row: ServiceTokenRow,
    /// The service.
    pub account: Arc<Account>,
    hash: BearerHash,
    /// Time of the token's last use in milliseconds since 1970; 0 if it was never used.
    used_ms: AtomicU64,
    stored_ms: AtomicU64,
}

impl KnownToken {
    /// Approximate time of the token's last use, at any daemon.
    #[must_use]
    pub fn last_used_at(&self) -> Option<SystemTime> {
        let used_ms = self.used_ms.load(Ordering::Relaxed);
        (used_ms > 0).then(|| UNIX_EPOCH + Duration::from_millis(used_ms))
    }

    /// True if the token is valid at this time.
    #[must_use]
    pub fn is_live(&self, now: SystemTime) -> bool {
        self.row.revoked_at.is_none() && self.row.expires_at.is_none_or(|end| now < end)
    }
}

/// A registered or revoked MCP client, without the text of its token.
#[derive(Debug)]
pub struct KnownClient {
    /// The stored row.
    pub row: McpClientRow,
    /// The account of the client.
    pub account: Arc<Account>,
    /// The consent that a human gave at the door; `None` for a client with a token of its own.
    pub connection: Option<Connection>,
    hash: BearerHash,
}

impl KnownClient {
    /// True if the client is admitted at this time.
    #[must_use]
    pub fn is_live(&self, now: SystemTime) -> bool {
        self.row.revoked_at.is_none()
            && self.row.expires_at.is_none_or(|end| now < end)
            && self.account.disabled_at.is_none()
            && self.is_human_allowed()
    }

    /// True unless a human consented who may not let the client act any more.
    #[must_use]
    pub fn is_human_allowed(&self) -> bool {
        self.connection.as_ref().is_none_or(|connection| connection.is_allowed)
    }

    /// The human for whom the client acts, if one consented at the door.
    #[must_use]
    pub fn acts_for(&self) -> Option<&PrincipalId> {
        self.connection.as_ref().map(|connection| &connection.acts_for)
    }
}

/// One state of the whole table.
#[derive(Debug, Default)]
pub(crate) struct AccessTable {
    /// Number of changes before the table was read.
    pub(super) changes: i64,
    pub(crate) workspaces: BTreeMap<WorkspaceId, Workspace>,
    pub(crate) accounts: BTreeMap<PrincipalId, Arc<Account>>,
    pub(super) tokens: BTreeMap<ServiceTokenId, Arc<KnownToken>>,
    pub(crate) clients: BTreeMap<McpClientId, Arc<KnownClient>>,
    /// Hashes of revoked access tokens of the door whose time is not over.
    pub(crate) revoked_tokens: HashSet<String>,
    /// Time of the last revocation of a family of tokens, by client.
    pub(crate) family_ends: BTreeMap<McpClientId, SystemTime>,
    /// Logins of humans, by the hash of their token.
    pub(super) sessions: BTreeMap<String, Arc<KnownSession>>,
}

impl AccessTable {
    /// Reads the table. A change during the reading has a higher number than `changes`, so the next
    /// poll reads the table again.
    pub(super) async fn read(store: &Store, before: &Self) -> Result<Self, StatementError> {
        let changes = store.principals().changes().await?;
        let workspaces = store.workspaces().all().await?;
        let mut roles: BTreeMap<PrincipalId, BTreeMap<WorkspaceId, Roles>> = BTreeMap::new();
        for one in store.principals().memberships().await? {
            let of_one = roles.entry(one.principal).or_default();
            of_one.entry(one.workspace).or_default().insert(one.role);
        }
        let mut accounts = BTreeMap::new();
        for row in store.principals().all().await? {
            let roles = roles.remove(&row.id).unwrap_or_default();
            accounts.insert(row.id.clone(), Arc::new(account(row, roles)));
        }
        let mut tokens = BTreeMap::new();
        for row in store.service_tokens().all().await? {
            // If the service of a token is missing here, the next poll reads both.
            let Some(account) = accounts.get(&row.principal) else { continue };
            let Some(hash) = BearerHash::parse(&row.hash) else {
                tracing::warn!(
                    token.id = %row.id,
                    "the stored hash of a token is damaged; revoke the token"
                );
                continue;
            };
            let stored_ms = row.last_used_at.map_or(0, since_ms);
            let used_ms = before.tokens.get(&row.id).map_or(0, |one| one.used());
            let known = KnownToken {
                account: account.clone(),
                hash,
                used_ms: AtomicU64::new(used_ms.max(stored_ms)),
                stored_ms: AtomicU64::new(stored_ms),
                row,
            };
            tokens.insert(known.row.id.clone(), Arc::new(known));
        }
        let clients = clients(store, &accounts).await?;
        let since = SystemTime::now() - ENDS_KEPT;
        let mut family_ends = BTreeMap::new();
        for (client, end) in store.door_tokens().ended_families(since).await? {
            let last = family_ends.entry(client).or_insert(end);
            *last = end.max(*last);
        }
        let revoked_tokens = store.door_tokens().ended().await?.into_iter().collect();
        let mut sessions = BTreeMap::new();
        for row in store.logins().sessions().await? {
            let Some(account) = accounts.get(&row.principal) else { continue };
            let before = before.sessions.get(&row.hash).map(|session| &**session);
            if let Some(known) = KnownSession::new(&row, account.clone(), before) {
                sessions.insert(row.hash, Arc::new(known));
            }
        }
        let workspaces = workspaces.into_iter().map(|one| (one.id.clone(), one)).collect();
        Ok(Self {
            changes,
            workspaces,
            accounts,
            tokens,
            clients,
            revoked_tokens,
            family_ends,
            sessions,
        })
    }

    /// The service token with this text, if it is valid now and its service is enabled.
    pub(super) fn find(&self, token: &str) -> Option<Arc<KnownToken>> {
        let known = self.tokens.get(&service_of(token)?)?;
        let now = SystemTime::now();
        let is_it = known.hash.opens_for(token);
        if !is_it || !known.is_live(now) || known.account.disabled_at.is_some() {
            return None;
        }
        known.used_ms.fetch_max(since_ms(now), Ordering::Relaxed);
        Some(known.clone())
    }

    /// The client whose token has this text, if the client is admitted now.
    pub(super) fn find_client(&self, token: &str) -> Option<Arc<KnownClient>> {
        let known = self.clients.get(&client_of(token)?)?;
        let is_it = known.hash.opens_for(token) && known.is_live(SystemTime::now());
        is_it.then(|| known.clone())
    }

    /// The tokens whose last use should be stored again, with that time.
    pub(super) fn newly_used(&self) -> Vec<(ServiceTokenId, SystemTime)> {
        let step = u64::try_from(USED_STEP.as_millis()).unwrap_or(u64::MAX);
        let is_new = |token: &&Arc<KnownToken>| {
            token.used() >= token.stored_ms.load(Ordering::Relaxed).saturating_add(step)
        };
        let used = self.tokens.values().filter(is_new);
        used.filter_map(|token| Some((token.row.id.clone(), token.last_used_at()?))).collect()
    }

    /// The sessions whose last use should be stored again, with that time.
    pub(super) fn newly_seen(&self) -> Vec<(String, SystemTime)> {
        let newly = |(hash, session): (&String, &Arc<KnownSession>)| {
            Some((hash.clone(), session.newly_seen(USED_STEP)?))
        };
        self.sessions.iter().filter_map(newly).collect()
    }

    pub(super) fn mark_seen(&self, seen: &[(String, SystemTime)]) {
        for (hash, at) in seen {
            if let Some(session) = self.sessions.get(hash) {
                session.mark_stored(*at);
            }
        }
    }

    pub(super) fn mark_stored(&self, used: &[(ServiceTokenId, SystemTime)]) {
        for (id, at) in used {
            if let Some(token) = self.tokens.get(id) {
                token.stored_ms.store(since_ms(*at), Ordering::Relaxed);
            }
        }
    }
}

impl KnownToken {
    fn used(&self) -> u64 {
        self.used_ms.load(Ordering::Relaxed)
    }
}

/// All registered clients. The consents are read last, so that no client is without its own.
async fn clients(
    store: &Store,
    accounts: &BTreeMap<PrincipalId, Arc<Account>>,
) -> Result<BTreeMap<McpClientId, Arc<KnownClient>>, StatementError> {
    let rows = store.mcp_clients().all().await?;
    let connections = store.door().connections().await?.into_iter();
    let mut connections: BTreeMap<_, _> = connections.map(|row| (row.id.clone(), row)).collect();
    let mut clients = BTreeMap::new();
    for row in rows {
        let Some(account) = accounts.get(&row.principal).cloned() else { continue };
        let consent = connections.remove(&row.id);
        let connection = consent.map(|consent| connection(&row, consent, accounts));
        let (Some(hash), Ok(connection)) = (BearerHash::parse(&row.hash), connection.transpose())
        else {
            tracing::warn!(
                client.id = %row.id,
                "the stored hash of a client's token, or its consent, is damaged; revoke the client"
            );
            continue;
        };
        let known = KnownClient { account, connection, hash, row };
        clients.insert(known.row.id.clone(), Arc::new(known));
    }
    Ok(clients)
}

/// The consent to a client, with the present rights of its human.
fn connection(
    client: &McpClientRow,
    row: DoorConnectionRow,
    accounts: &BTreeMap<PrincipalId, Arc<Account>>,
) -> Result<Connection, serde_json::Error> {
    let consent = serde_json::from_str(&row.consent)?;
    let is_allowed = match accounts.get(&row.acts_for) {
        Some(human) => human.may_connect(client.agent.as_ref().map(|_| &client.workspace)),
        None => row.acts_for == PrincipalId::local_admin(),
    };
    Ok(Connection { acts_for: row.acts_for, consent, is_allowed })
}

fn account(row: PrincipalRow, roles: BTreeMap<WorkspaceId, Roles>) -> Account {
    let PrincipalRow { id, kind, name, workspace, operator_since, .. } = row;
    Account {
        id,
        kind,
        name,
        workspace,
        is_operator: operator_since.is_some(),
        roles,
        created_at: row.created_at,
        created_by: row.created_by,
        disabled_at: row.disabled_at,
    }
}

fn since_ms(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
