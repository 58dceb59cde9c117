//! Permissions as stored, and workspaces that end.

use std::time::{Duration, SystemTime};

use narthex_model::{
    CatalogKind, ErrorKind, PrincipalId, PrincipalKind, PrincipalName, Role, Roles, ServiceTokenId,
    WorkspaceId,
};
use narthex_store::{
    NewPrincipal, PrincipalRow, ServiceTokenRow, Store, Workspace, WorkspaceChange,
};

use crate::support::{Place, id};

const ADA: &str = "prn_00000000000000aa";
const CI: &str = "prn_00000000000000bb";

fn principal(text: &str) -> PrincipalId {
    PrincipalId::new(text).unwrap()
}

async fn add(
    store: &Store,
    text: &str,
    name: &str,
    workspace: Option<&WorkspaceId>,
) -> Result<(), narthex_store::StatementError> {
    let (id, name) = (principal(text), PrincipalName::new(name).unwrap());
    let kind = if workspace.is_some() { PrincipalKind::Service } else { PrincipalKind::Human };
    let (is_operator, by) = (false, "admin");
    let new = NewPrincipal { id: &id, name: &name, kind, workspace, is_operator, by };
    let roles = Roles::from([Role::Runner]);
    store.principals().create(new, workspace.map(|workspace| (workspace, &roles))).await
}

/// A store with the workspace `team`, the human `ada`, and the service `team/ci`.
async fn store(place: &Place) -> Store {
    let store = place.open().await;
    let team = Workspace::new(id("team"), "Team");
    store.workspaces().create(&team).await.unwrap();
    add(&store, ADA, "ada", None).await.unwrap();
    add(&store, CI, "team/ci", Some(&id("team"))).await.unwrap();
    store
}

async fn find(store: &Store, text: &str) -> PrincipalRow {
    let all = store.principals().all().await.unwrap();
    all.into_iter().find(|one| one.id.as_str() == text).unwrap()
}

/// The roles of all, as `WORKSPACE PRINCIPAL ROLE`.
async fn roles(store: &Store) -> Vec<String> {
    let all = store.principals().memberships().await.unwrap();
    let mut all: Vec<_> =
        all.iter().map(|one| format!("{} {} {}", one.workspace, one.principal, one.role)).collect();
    all.sort();
    all
}

fn token(text: &str) -> ServiceTokenRow {
    ServiceTokenRow {
        id: ServiceTokenId::new(text).unwrap(),
        workspace: id("team"),
        principal: principal(CI),
        hash: "00ff".to_owned(),
        label: "\u{fc}ber \u{1f980}".to_owned(),
        created_at: SystemTime::UNIX_EPOCH + Duration::from_secs(7),
        created_by: "ada".to_owned(),
        is_proved: true,
        expires_at: None,
        revoked_at: None,
        last_used_at: None,
    }
}

#[tokio::test]
async fn principals_are_humans_or_services_of_one_workspace() {
    let place = Place::new();
    let store = store(&place).await;
    store.close().await;
    let store = place.open().await;
    let ada = find(&store, ADA).await;
    assert_eq!((ada.kind, ada.workspace), (PrincipalKind::Human, None));
    assert_eq!((ada.operator_since, ada.disabled_at), (None, None));
    assert_eq!(ada.created_by, "admin");
    let ci = find(&store, CI).await;
    assert_eq!((ci.kind, ci.workspace), (PrincipalKind::Service, Some(id("team"))));
    assert_eq!(roles(&store).await, [format!("team {CI} runner")]);
    let taken = add(&store, "prn_00000000000000cc", "ada", None).await.unwrap_err();
    assert_eq!(taken.kind(), ErrorKind::Conflict);
    let nowhere = add(&store, "prn_00000000000000cc", "no/ci", Some(&id("no"))).await;
    assert_eq!(nowhere.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(store.principals().all().await.unwrap().len(), 2);
}

/// Every change is counted; a statement that finds nothing to change is no change.
#[tokio::test]
async fn changes_of_permissions_are_counted() {
    let place = Place::new();
    let store = store(&place).await;
    let (principals, tokens) = (store.principals(), store.service_tokens());
    let absent = principal("prn_00000000000000ff");
    let mut before = principals.changes().await.unwrap();
    assert_eq!(before, 3, "a workspace and two principals");
    let mut is_counted = async |what: &str, is_done: bool| {
        let now = store.principals().changes().await.unwrap();
        assert_eq!(now, before + i64::from(is_done), "{what}");
        before = now;
    };
    let roles = Roles::from([Role::Admin, Role::Auditor]);
    let set = principals.set_roles(&id("team"), &principal(ADA), &roles, "admin").await.unwrap();
    is_counted("roles", set).await;
    assert!(principals.set_disabled(&principal(ADA), true).await.unwrap());
    is_counted("disabled", true).await;
    is_counted("absent", principals.set_disabled(&absent, true).await.unwrap()).await;
    is_counted("operator", principals.set_operator(&principal(ADA), true).await.unwrap()).await;
    tokens.create(&token("tok_00000000000000aa")).await.unwrap();
    is_counted("a token", true).await;
    let id_ = ServiceTokenId::new("tok_00000000000000aa").unwrap();
    assert!(!tokens.revoke(&id("default"), &id_).await.unwrap(), "it is of another workspace");
    is_counted("of another", false).await;
    is_counted("revoked", tokens.revoke(&id("team"), &id_).await.unwrap()).await;
    is_counted("again", tokens.revoke(&id("team"), &id_).await.unwrap()).await;
    let renamed = WorkspaceChange { name: Some("T".to_owned()), ..WorkspaceChange::default() };
    is_counted("renamed", store.workspaces().change(&id("team"), &renamed).await.unwrap()).await;
    is_counted("deleted", store.workspaces().delete(&id("team"), true).await.unwrap()).await;
    is_counted("gone", store.workspaces().delete(&id("team"), true).await.unwrap()).await;
}

#[tokio::test]
async fn new_roles_replace_earlier_roles() {
    let place = Place::new();
    let store = store(&place).await;
    let principals = store.principals();
    let set = async |workspace: &str, roles: &[Role]| {
        let roles = roles.iter().copied().collect();
        principals.set_roles(&id(workspace), &principal(ADA), &roles, "admin").await
    };
    assert!(set("team", &[Role::Admin, Role::Runner]).await.unwrap());
    assert!(set("default", &[Role::Author]).await.unwrap());
    assert!(set("team", &[Role::Auditor]).await.unwrap());
    let of_ada = async || {
        let all = roles(&store).await;
        all.into_iter().filter(|one| one.contains(ADA)).collect::<Vec<_>>()
    };
    let both = [format!("default {ADA} author"), format!("team {ADA} auditor")];
    assert_eq!(of_ada().await, both);
    assert!(set("team", &[]).await.unwrap());
    assert!(!set("team", &[]).await.unwrap(), "there were none any more");
    assert_eq!(of_ada().await, both[..1]);
    assert_eq!(set("no", &[Role::Admin]).await.unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn service_tokens_are_stored_with_their_times() {
    let place = Place::new();
    let store = store(&place).await;
    let tokens = store.service_tokens();
    let mut one = token("tok_00000000000000aa");
    one.expires_at = Some(SystemTime::UNIX_EPOCH + Duration::from_millis(1_890_000_000_001));
    tokens.create(&one).await.unwrap();
    let two = token("tok_00000000000000bb");
    tokens.create(&two).await.unwrap();
    assert_eq!(tokens.create(&two).await.unwrap_err().kind(), ErrorKind::Conflict);
    let read = async || {
        let mut all = tokens.all().await.unwrap();
        all.sort_by(|a, b| a.id.cmp(&b.id));
        all
    };
    assert_eq!(read().await, [one.clone(), two.clone()]);
    let later = SystemTime::UNIX_EPOCH + Duration::from_secs(99);
    let earlier = SystemTime::UNIX_EPOCH + Duration::from_secs(98);
    tokens.used(&[(one.id.clone(), later), (two.id.clone(), earlier)]).await.unwrap();
    // Another daemon may know only an earlier time.
    tokens.used(&[(one.id.clone(), earlier)]).await.unwrap();
    let used: Vec<_> = read().await.into_iter().map(|one| one.last_used_at).collect();
    assert_eq!(used, [Some(later), Some(earlier)]);
    tokens.revoke_all(&principal(CI)).await.unwrap();
    assert!(read().await.iter().all(|one| one.revoked_at.is_some()));
}

/// A workspace with contents stays, unless its deletion is forced; then all of it is gone.
#[tokio::test]
async fn a_forced_deletion_removes_a_workspace_with_its_contents() {
    let place = Place::new();
    let store = store(&place).await;
    let workspaces = store.workspaces();
    store
        .principals()
        .set_roles(&id("team"), &principal(ADA), &[Role::Admin].into(), "")
        .await
        .unwrap();
    store.service_tokens().create(&token("tok_00000000000000aa")).await.unwrap();
    for kind in [CatalogKind::Server, CatalogKind::Capability, CatalogKind::Agent] {
        store.catalog(kind).create(&id("team"), "a", "{}", "ada").await.unwrap();
    }
    let living = [("server", 1), ("capability", 1), ("agent", 1), ("service", 1)];
    assert_eq!(workspaces.contents(&id("team")).await.unwrap(), living);
    assert!(!workspaces.delete(&id("team"), false).await.unwrap());
    assert!(workspaces.delete(&id("team"), true).await.unwrap());
    assert_eq!(workspaces.find(&id("team")).await.unwrap(), None);
    assert_eq!(roles(&store).await, [""; 0]);
    assert_eq!(store.service_tokens().all().await.unwrap(), []);
    assert_eq!(store.principals().all().await.unwrap().len(), 1, "humans stay");
    // The workspace has only people, who live elsewhere.
    let team = Workspace::new(id("team"), "");
    workspaces.create(&team).await.unwrap();
    store
        .principals()
        .set_roles(&id("team"), &principal(ADA), &[Role::Admin].into(), "")
        .await
        .unwrap();
    assert_eq!(workspaces.contents(&id("team")).await.unwrap(), []);
    assert!(workspaces.delete(&id("team"), false).await.unwrap());
}

/// The author of a new table must say if its rows keep a workspace from being deleted.
#[tokio::test]
async fn every_table_declares_whether_its_rows_block_deleting_a_workspace() {
    // Counted tables keep a workspace. Tables that go along: flags of files, roles of people,
    // rules, limits and counts of calls, stored answers, grants and cuts, ended sessions and
    // events, and rows of counted objects. The tables that stay are the record of all this.
    let counted =
        ["agents", "capabilities", "mcp_servers", "principals", "runs", "secret_versions"];
    let along = [
        "channels",
        "cuts",
        "definitions",
        "env_bindings",
        "kept_answers",
        "mcp_clients",
        "memberships",
        "oauth_attempts",
        "oauth_clients",
        "oauth_grants",
        "secrets",
        "seeded_defaults",
        "server_flags",
        "service_tokens",
        "share_comments",
        "share_threads",
        "shared_files",
        "shares",
        "webhook_deliveries",
        "webhooks",
        "workspace_rules",
    ];
    let ended =
        ["call_counts", "grant_requests", "grants", "run_counters", "sessions", "workspace_limits"];
    let happened = [
        "event_streams",
        "event_totals",
        "inboxes",
        "resting_sessions",
        "session_costs",
        "session_events",
        "suspended_sessions",
        "unread_messages",
    ];
    // The executors that daemons report belong to the daemons.
    let stays = ["audit_chains", "audit_events", "audit_settings", "executor_workspaces"];
    let known = counted.into_iter().chain(along).chain(ended).chain(happened).chain(stays);
    let mut known: Vec<_> = known.map(str::to_owned).collect();
    known.sort();
    let place = Place::new();
    place.open().await.close().await;
    let owned = "SELECT name FROM sqlite_schema WHERE type = 'table' \
                 AND sql LIKE '%workspace TEXT%' ORDER BY name";
    assert_eq!(place.sql(owned).await, known);
}
