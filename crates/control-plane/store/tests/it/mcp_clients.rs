//! Registered MCP clients, as stored.

use std::time::{Duration, SystemTime};

use narthex_model::{
    AgentName, ClientOrigin, ErrorKind, McpClientId, PrincipalId, PrincipalKind, PrincipalName,
    RunId, SessionId,
};
use narthex_store::{McpClientRow, NewPrincipal, Store, Workspace};

use crate::support::{Place, id};

const DESKTOP: &str = "prn_00000000000000dd";

/// A store with the workspace `team`, which has the principal of a client.
async fn store(place: &Place) -> Store {
    let (store, team) = (place.open().await, id("team"));
    store.workspaces().create(&Workspace::new(team.clone(), "Team")).await.unwrap();
    let who = PrincipalId::new(DESKTOP).unwrap();
    let name = PrincipalName::of_service(&team, "desktop").unwrap();
    let new = NewPrincipal {
        id: &who,
        name: &name,
        kind: PrincipalKind::Client,
        workspace: Some(&team),
        is_operator: false,
        by: "admin",
    };
    store.principals().create(new, None).await.unwrap();
    store
}

fn row(principal: &str) -> McpClientRow {
    McpClientRow {
        id: McpClientId::new("cli_00000000000000aa").unwrap(),
        workspace: id("team"),
        principal: PrincipalId::new(principal).unwrap(),
        hash: "00ff".to_owned(),
        agent: Some(AgentName::new("reader").unwrap()),
        profile: None,
        origins: ClientOrigin::ALL.into(),
        session: None,
        run: None,
        created_at: SystemTime::UNIX_EPOCH + Duration::from_secs(7),
        created_by: "ada".to_owned(),
        expires_at: Some(SystemTime::UNIX_EPOCH + Duration::from_secs(9)),
        revoked_at: None,
    }
}

fn run(number: u8) -> (SessionId, RunId) {
    (SessionId::new([number; SessionId::BYTES]), RunId::new([number; RunId::BYTES]))
}

async fn only(store: &Store) -> McpClientRow {
    let mut all = store.mcp_clients().all().await.unwrap();
    assert_eq!(all.len(), 1);
    all.remove(0)
}

#[tokio::test]
async fn a_registered_client_is_stored_unchanged() {
    for place in Place::both() {
        let store = store(&place).await;
        let absent = store.mcp_clients().create(&row("prn_00000000000000ff"), "x").await;
        assert_eq!(absent.unwrap_err().kind(), ErrorKind::NotFound);
        store.mcp_clients().create(&row(DESKTOP), "1.sealed").await.unwrap();
        store.close().await;
        let store = place.open().await;
        let kept = only(&store).await;
        assert_eq!(kept, row(DESKTOP));
        let clients = store.mcp_clients();
        let sealed = clients.sealed(&id("team"), &kept.id).await.unwrap();
        assert_eq!(sealed.as_deref(), Some("1.sealed"));
        assert_eq!(clients.sealed(&id("default"), &kept.id).await.unwrap(), None);
        assert!(store.workspaces().delete(&id("team"), true).await.unwrap());
        assert_eq!(clients.all().await.unwrap(), []);
    }
}

/// I-M7: a client has one run: of two daemons that replace the same run, one succeeds. A revoked
/// client gets no run. Each change is counted, so that all daemons follow.
#[tokio::test]
async fn a_client_has_one_run_and_a_revoked_client_has_no_run() {
    for place in Place::both() {
        let store = store(&place).await;
        let (clients, team) = (store.mcp_clients(), id("team"));
        let mut known = row(DESKTOP);
        clients.create(&known, "1.sealed").await.unwrap();
        let mut before = store.principals().changes().await.unwrap();
        let mut is_counted = async |what: &str, is_done: bool| {
            let now = store.principals().changes().await.unwrap();
            assert_eq!(now, before + i64::from(is_done), "{what}");
            before = now;
            is_done
        };
        let bind = async |workspace: &str, before, after| {
            clients.bind(&id(workspace), &known.id, before, after).await.unwrap()
        };
        let (first, second) = (run(1), run(2));
        assert!(!is_counted("foreign", bind("default", None, first).await).await);
        assert!(is_counted("first", bind("team", None, first).await).await);
        assert!(!is_counted("lost", bind("team", None, second).await).await);
        assert_eq!(only(&store).await.run, Some(first.1));
        assert!(is_counted("second", bind("team", Some(first.1), second).await).await);
        assert!(!clients.revoke(&id("default"), &known.id).await.unwrap());
        assert!(is_counted("revoked", clients.revoke(&team, &known.id).await.unwrap()).await);
        assert!(!is_counted("again", clients.revoke(&team, &known.id).await.unwrap()).await);
        assert!(!is_counted("late", bind("team", Some(second.1), first).await).await);
        assert_eq!(clients.sealed(&team, &known.id).await.unwrap(), None);
        let revoked = only(&store).await;
        assert!(revoked.revoked_at.is_some());
        (known.session, known.run) = (Some(second.0), Some(second.1));
        assert_eq!(McpClientRow { revoked_at: None, ..revoked }, known);
    }
}
