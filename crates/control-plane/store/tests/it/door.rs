//! Programs, consents, codes and tokens of the door, as stored.

use std::{
    sync::OnceLock,
    time::{Duration, SystemTime},
};

use narthex_model::{
    ClientOrigin, ErrorKind, McpClientId, PrincipalId, PrincipalKind, PrincipalName,
};
use narthex_store::{
    DoorClientRow, DoorCodeRow, DoorConnectionRow, DoorFamilyRow, DoorRequestRow, DoorTokenRow,
    McpClientRow, NewPrincipal, Store, UsedCode, UsedProof, Workspace,
};

use crate::support::{Place, id};

const DESKTOP: &str = "prn_00000000000000dd";

/// A time after the beginning of the test, which is read once, so that equal rows stay equal.
fn later(seconds: u64) -> SystemTime {
    static BEGUN: OnceLock<u64> = OnceLock::new();
    let since = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    SystemTime::UNIX_EPOCH + Duration::from_secs(BEGUN.get_or_init(since) + seconds)
}

fn client() -> McpClientId {
    McpClientId::new("cli_00000000000000aa").unwrap()
}

fn family(generation: i64) -> DoorFamilyRow {
    DoorFamilyRow {
        id: "family".to_owned(),
        connection: client(),
        generation,
        document: format!("{{\"generation\":{generation}}}"),
        expires_at: later(100),
        revoked_at: None,
    }
}

fn token(hash: &str) -> DoorTokenRow {
    DoorTokenRow {
        hash: hash.to_owned(),
        connection: client(),
        family: "family".to_owned(),
        document: "{}".to_owned(),
        expires_at: later(100),
    }
}

/// A store with the workspace `team`, which has a client to which a human has consented.
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
        by: "ada",
    };
    store.principals().create(new, None).await.unwrap();
    let row = McpClientRow {
        id: client(),
        workspace: team,
        principal: who,
        hash: "00ff".to_owned(),
        agent: None,
        profile: None,
        origins: [ClientOrigin::AgentProduced].into(),
        session: None,
        run: None,
        created_at: later(0),
        created_by: "ada".to_owned(),
        expires_at: None,
        revoked_at: None,
    };
    store.mcp_clients().create_connected(&row, "", &connection()).await.unwrap();
    store
}

fn connection() -> DoorConnectionRow {
    DoorConnectionRow {
        id: client(),
        acts_for: PrincipalId::local_admin(),
        client: "dcr-app".to_owned(),
        consent: "{}".to_owned(),
    }
}

/// A code gives tokens once, and a deleted workspace takes all of them along.
#[tokio::test]
async fn door_a7_a_stored_code_gives_tokens_once() {
    for place in Place::both() {
        let store = store(&place).await;
        let tokens = store.door_tokens();
        assert_eq!(store.door().connections().await.unwrap(), [connection()]);
        let code = DoorCodeRow { connection: client(), document: "{}".to_owned() };
        tokens.put_code("code", &code, later(100)).await.unwrap();
        assert_eq!(tokens.code("code").await.unwrap(), Some(code));
        let used = UsedCode { hash: "code", document: "{\"used\":1}" };
        assert!(tokens.redeem(used, &family(0), &token("one")).await.unwrap());
        assert!(!tokens.redeem(used, &family(0), &token("two")).await.unwrap());
        assert!(!tokens.spend_code(used).await.unwrap());
        assert_eq!(tokens.token("one").await.unwrap(), Some(token("one")));
        assert_eq!(tokens.token("two").await.unwrap(), None);
        assert_eq!(tokens.code("code").await.unwrap().unwrap().document, "{\"used\":1}");
        let owned = DoorCodeRow {
            connection: McpClientId::new("cli_00000000000000ff").unwrap(),
            document: String::new(),
        };
        let absent = tokens.put_code("other", &owned, later(100)).await.unwrap_err();
        assert_eq!(absent.kind(), ErrorKind::NotFound);
        assert!(store.workspaces().delete(&id("team"), true).await.unwrap());
        assert_eq!(tokens.family("family").await.unwrap(), None);
        assert_eq!(tokens.token("one").await.unwrap(), None);
    }
}

/// Of two requests with one refresh token, one counts. A revoked family gives nothing more.
#[tokio::test]
async fn door_a9_one_of_two_rotations_counts_and_a_revoked_family_gives_nothing() {
    for place in Place::both() {
        let store = store(&place).await;
        let tokens = store.door_tokens();
        let code = DoorCodeRow { connection: client(), document: "{}".to_owned() };
        tokens.put_code("code", &code, later(100)).await.unwrap();
        let used = UsedCode { hash: "code", document: "{}" };
        assert!(tokens.redeem(used, &family(0), &token("one")).await.unwrap());
        let next = family(1);
        assert!(tokens.rotate(&next, &token("two")).await.unwrap());
        assert!(!tokens.rotate(&next, &token("lost")).await.unwrap());
        assert!(tokens.add(&token("late")).await.unwrap());
        assert_eq!(tokens.family("family").await.unwrap(), Some(next));
        let before = store.principals().changes().await.unwrap();
        assert!(tokens.revoke(&token("one").hash).await.unwrap());
        assert_eq!(tokens.ended().await.unwrap(), ["one"]);
        assert!(tokens.revoke_family("family").await.unwrap());
        assert!(!tokens.revoke_family("family").await.unwrap());
        // Other daemons follow.
        assert_eq!(store.principals().changes().await.unwrap(), before + 2);
        let mut ended = tokens.ended().await.unwrap();
        ended.sort();
        assert_eq!(ended, ["late", "one", "two"]);
        assert_eq!(tokens.token("two").await.unwrap(), None);
        assert!(!tokens.rotate(&family(2), &token("more")).await.unwrap());
        assert!(!tokens.add(&token("more")).await.unwrap());
        let ends = tokens.ended_families(SystemTime::UNIX_EPOCH).await.unwrap();
        assert_eq!(ends.len(), 1);
        assert_eq!(ends[0].0, client());
    }
}

/// An assertion gives one token: its use is stored with the token, or not at all.
#[tokio::test]
async fn door_a11_a_stored_assertion_gives_one_token() {
    for place in Place::both() {
        let store = store(&place).await;
        let tokens = store.door_tokens();
        let of = |name| DoorTokenRow { family: String::new(), ..token(name) };
        let proof = UsedProof { hash: "jti", forget_at: later(100) };
        assert!(tokens.add_once(proof, &of("one")).await.unwrap());
        assert!(!tokens.add_once(proof, &of("two")).await.unwrap());
        assert_eq!(tokens.token("one").await.unwrap(), Some(of("one")));
        assert_eq!(tokens.token("two").await.unwrap(), None);
        // A token that cannot be stored leaves its assertion unused.
        let other = UsedProof { hash: "other", ..proof };
        let client = McpClientId::new("cli_00000000000000ff").unwrap();
        let absent = DoorTokenRow { connection: client, ..of("three") };
        tokens.add_once(other, &absent).await.unwrap_err();
        assert!(tokens.add_once(other, &of("three")).await.unwrap());
    }
}

/// A proof of a program with keys counts once. It is forgotten when it proves nothing any more.
#[tokio::test]
async fn door_a8_a_stored_proof_counts_once() {
    for place in Place::both() {
        let store = place.open().await;
        let tokens = store.door_tokens();
        assert!(tokens.use_proof("one", later(100)).await.unwrap());
        assert!(!tokens.use_proof("one", later(200)).await.unwrap());
        assert!(tokens.use_proof("old", SystemTime::UNIX_EPOCH).await.unwrap());
        assert!(tokens.use_proof("old", later(100)).await.unwrap());
        assert!(!tokens.use_proof("old", later(100)).await.unwrap());
    }
}

/// A request is answered by the browser that saw it first, once.
#[tokio::test]
async fn door_a6_a_stored_request_belongs_to_one_browser() {
    for place in Place::both() {
        let store = place.open().await;
        let door = store.door();
        let row = DoorRequestRow { browser: String::new(), document: "{}".to_owned() };
        door.begin_request("page", &row, later(100)).await.unwrap();
        door.begin_request("old", &row, SystemTime::UNIX_EPOCH).await.unwrap();
        assert_eq!(door.request("old").await.unwrap(), None);
        assert_eq!(door.requests().await.unwrap(), 2);
        assert!(door.bind_request("page", "one").await.unwrap());
        assert!(!door.bind_request("page", "two").await.unwrap());
        assert_eq!(door.request("page").await.unwrap().unwrap().browser, "one");
        assert!(!door.take_request("page", "two").await.unwrap());
        assert!(door.take_request("page", "one").await.unwrap());
        assert!(!door.take_request("page", "one").await.unwrap());
        // A further request removes those whose time is over.
        door.begin_request("next", &row, later(100)).await.unwrap();
        assert_eq!(door.requests().await.unwrap(), 1);
    }
}

#[tokio::test]
async fn door_a4_unused_programs_are_forgotten() {
    for place in Place::both() {
        let store = place.open().await;
        let door = store.door();
        let start = SystemTime::UNIX_EPOCH;
        let row = |name: &str, used_at| DoorClientRow {
            id: name.to_owned(),
            kind: "registration".to_owned(),
            document: "{}".to_owned(),
            created_at: start + Duration::from_secs(1),
            used_at,
        };
        door.put_client(&row("new", None)).await.unwrap();
        door.put_client(&row("idle", Some(start + Duration::from_secs(2)))).await.unwrap();
        door.put_client(&row("used", None)).await.unwrap();
        door.client_used("used").await.unwrap();
        let renewed = DoorClientRow { document: "{\"a\":1}".to_owned(), ..row("idle", None) };
        door.put_client(&renewed).await.unwrap();
        let idle = door.client("idle").await.unwrap().unwrap();
        assert_eq!(idle.document, "{\"a\":1}");
        assert!(idle.used_at.is_some());
        assert_eq!(door.clients_since("registration", start).await.unwrap(), 3);
        assert_eq!(door.clients_since("document", start).await.unwrap(), 0);
        let limit = start + Duration::from_secs(2);
        door.forget("registration", limit, limit).await.unwrap();
        assert_eq!(door.clients_since("registration", start).await.unwrap(), 1);
        assert!(door.client("used").await.unwrap().is_some());
    }
}
