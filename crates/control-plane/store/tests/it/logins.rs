//! Passkeys, identities, sessions and links, as stored.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use narthex_model::{ErrorKind, PrincipalId, PrincipalKind, PrincipalName, Role, Roles};
use narthex_store::{FoundLink, LoginSessionRow, NewPrincipal, NewSignInLink, PasskeyRow, Store};
use tokio::task::JoinSet;

use crate::support::{Place, id};

const ADA: &str = "prn_00000000000000aa";
const BOB: &str = "prn_00000000000000bb";
const ABSENT: &str = "prn_00000000000000cc";

fn principal(text: &str) -> PrincipalId {
    PrincipalId::new(text).unwrap()
}

/// A store with two humans.
async fn store(place: &Place) -> Store {
    let store = place.open().await;
    for (text, name) in [(ADA, "ada"), (BOB, "bob")] {
        let (id, name) = (principal(text), PrincipalName::new(name).unwrap());
        let new = human(&id, &name, "admin");
        store.principals().create(new, None).await.unwrap();
    }
    store
}

fn human<'a>(id: &'a PrincipalId, name: &'a PrincipalName, by: &'a str) -> NewPrincipal<'a> {
    let kind = PrincipalKind::Human;
    NewPrincipal { id, name, kind, workspace: None, is_operator: false, by }
}

fn soon() -> SystemTime {
    SystemTime::now() + Duration::from_secs(600)
}

fn session(hash: &str, who: &str) -> LoginSessionRow {
    let now = UNIX_EPOCH + Duration::from_secs(1_790_000_000);
    LoginSessionRow {
        hash: hash.to_owned(),
        principal: principal(who),
        method: "link".to_owned(),
        created_at: now,
        seen_at: now,
    }
}

async fn make_link(store: &Store, hash: &str, who: &str, expires_at: SystemTime) {
    let who = principal(who);
    let link =
        NewSignInLink { hash, principal: &who, by: "admin", expires_at, is_invitation: false };
    store.logins().make_link(link).await.unwrap();
}

fn passkey(id: &str, who: &str) -> PasskeyRow {
    PasskeyRow {
        id: id.to_owned(),
        principal: principal(who),
        label: "größe 🦀".to_owned(),
        document: "{\"counter\":1}".to_owned(),
        enrolled_by: "link".to_owned(),
        created_at: UNIX_EPOCH,
        used_at: None,
    }
}

#[tokio::test]
async fn a_sign_in_link_is_used_once_and_starts_a_session() {
    for place in Place::both() {
        let store = store(&place).await;
        make_link(&store, "l1", ADA, soon()).await;
        let changes = store.principals().changes().await.unwrap();
        let logins = store.logins();
        // Looking uses nothing up.
        for _ in 0..2 {
            let found = FoundLink { principal: principal(ADA), is_invitation: false };
            assert_eq!(logins.find_link("l1").await.unwrap(), Some(found));
        }
        assert!(logins.use_link("l1", &session("s1", ADA), soon()).await.unwrap());
        assert_eq!(logins.find_link("l1").await.unwrap(), None);
        assert!(!logins.use_link("l1", &session("s2", ADA), soon()).await.unwrap());
        assert_eq!(logins.sessions().await.unwrap(), [session("s1", ADA)]);
        assert_eq!(store.principals().changes().await.unwrap(), changes + 1);
        store.close().await;
        let store = place.open().await;
        assert_eq!(store.logins().sessions().await.unwrap(), [session("s1", ADA)]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_several_users_of_a_sign_in_link_succeeds() {
    for place in Place::both() {
        let store = store(&place).await;
        make_link(&store, "l1", ADA, soon()).await;
        let mut tasks = JoinSet::new();
        for number in 0..16 {
            let store = store.clone();
            tasks.spawn(async move {
                let session = session(&format!("s{number}"), ADA);
                store.logins().use_link("l1", &session, soon()).await.unwrap()
            });
        }
        let used = tasks.join_all().await;
        assert_eq!(used.into_iter().filter(|used| *used).count(), 1);
        assert_eq!(store.logins().sessions().await.unwrap().len(), 1);
    }
}

#[tokio::test]
async fn expired_links_and_sessions_are_refused_and_removed() {
    for place in Place::both() {
        let store = store(&place).await;
        let logins = store.logins();
        let past = SystemTime::now() - Duration::from_secs(1);
        make_link(&store, "l1", ADA, past).await;
        assert_eq!(logins.find_link("l1").await.unwrap(), None);
        assert!(!logins.use_link("l1", &session("s1", ADA), soon()).await.unwrap());
        logins.begin(&session("s2", ADA), past).await.unwrap();
        assert!(logins.sessions().await.unwrap().is_empty());
        make_link(&store, "l2", ADA, soon()).await;
        logins.begin(&session("s3", ADA), soon()).await.unwrap();
        let kept =
            "SELECT hash FROM sign_in_links UNION SELECT hash FROM login_sessions ORDER BY hash";
        assert_eq!(place.sql(kept).await, ["l2", "s3"]);
    }
}

#[tokio::test]
async fn sign_in_sessions_record_their_last_use_and_end() {
    for place in Place::both() {
        let store = store(&place).await;
        let logins = store.logins();
        for (hash, who) in [("s1", ADA), ("s2", ADA), ("s3", BOB)] {
            logins.begin(&session(hash, who), soon()).await.unwrap();
        }
        make_link(&store, "l1", ADA, soon()).await;
        let later = session("s1", ADA).seen_at + Duration::from_secs(60);
        let seen = |hash: &str, at| vec![(hash.to_owned(), at)];
        logins.seen(&seen("s1", later)).await.unwrap();
        logins.seen(&seen("s1", later - Duration::from_secs(30))).await.unwrap();
        let all = logins.sessions().await.unwrap();
        assert_eq!(all.iter().find(|one| one.hash == "s1").unwrap().seen_at, later);
        assert!(logins.end("s1").await.unwrap() && !logins.end("s1").await.unwrap());
        logins.end_all(&principal(ADA)).await.unwrap();
        assert_eq!(logins.find_link("l1").await.unwrap(), None);
        assert_eq!(logins.sessions().await.unwrap(), [session("s3", BOB)]);
        let error = logins.begin(&session("s4", ABSENT), soon()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
    }
}

#[tokio::test]
async fn a_passkey_has_one_owner_and_refuses_an_outdated_change() {
    for place in Place::both() {
        let store = store(&place).await;
        let proofs = store.proofs();
        proofs.add_passkey(&passkey("p1", ADA)).await.unwrap();
        let again = proofs.add_passkey(&passkey("p1", BOB)).await.unwrap_err();
        assert_eq!(again.kind(), ErrorKind::Conflict);
        proofs.add_passkey(&passkey("p2", BOB)).await.unwrap();
        let found = proofs.find_passkey("p1").await.unwrap().unwrap();
        assert!(found.created_at > UNIX_EPOCH && found.used_at.is_none());
        assert!(proofs.passkey_used(&found, "{\"counter\":2}").await.unwrap());
        // Another writer that read the same passkey before comes too late.
        assert!(!proofs.passkey_used(&found, "{\"counter\":3}").await.unwrap());
        let used = proofs.find_passkey("p1").await.unwrap().unwrap();
        assert_eq!(used.document, "{\"counter\":2}");
        assert!(used.used_at.is_some());
        assert!(!proofs.remove_passkey(&principal(BOB), "p1").await.unwrap());
        assert!(proofs.remove_passkey(&principal(ADA), "p1").await.unwrap());
        assert!(proofs.passkeys(&principal(ADA)).await.unwrap().is_empty());
        assert_eq!(proofs.passkeys(&principal(BOB)).await.unwrap().len(), 1);
    }
}

/// D15: of several that are each to be the first passkey one is.
#[tokio::test]
async fn d15_one_of_several_first_passkeys_is_added() {
    for place in Place::both() {
        let store = store(&place).await;
        let mut adding = JoinSet::new();
        for (number, who) in [ADA, BOB, ADA, BOB, ADA, BOB].into_iter().enumerate() {
            let store = store.clone();
            adding.spawn(async move {
                let one = passkey(&format!("p{number}"), who);
                store.proofs().add_first_passkey(&one).await.unwrap()
            });
        }
        let added = adding.join_all().await;
        assert_eq!(added.into_iter().filter(|is_first| *is_first).count(), 1);
        store.proofs().add_passkey(&passkey("p9", ADA)).await.unwrap();
        assert!(!store.proofs().add_first_passkey(&passkey("p10", ADA)).await.unwrap());
    }
}

/// D15: of several passkeys that one invitation is to add one is, and none in a session that began
/// in another way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d15_an_invitation_adds_one_passkey() {
    for place in Place::both() {
        let store = store(&place).await;
        let logins = store.logins();
        let invited = LoginSessionRow { method: "invitation".to_owned(), ..session("s1", ADA) };
        logins.begin(&invited, soon()).await.unwrap();
        logins.begin(&session("s2", ADA), soon()).await.unwrap();
        let changes = store.principals().changes().await.unwrap();
        let mut adding = JoinSet::new();
        for number in 0..6 {
            let store = store.clone();
            adding.spawn(async move {
                let one = passkey(&format!("p{number}"), ADA);
                store.proofs().add_invited_passkey(&one, "s1").await.unwrap()
            });
        }
        let added = adding.join_all().await;
        assert_eq!(added.into_iter().filter(|is_added| *is_added).count(), 1);
        assert_eq!(store.principals().changes().await.unwrap(), changes + 1);
        for hash in ["s1", "s2", "s3"] {
            let one = passkey("p9", ADA);
            assert!(!store.proofs().add_invited_passkey(&one, hash).await.unwrap(), "{hash}");
        }
        assert_eq!(store.proofs().passkeys(&principal(ADA)).await.unwrap().len(), 1);
        assert!(logins.sessions().await.unwrap().contains(&session("s1", ADA)));
    }
}

#[tokio::test]
async fn a_person_of_a_provider_is_admitted_with_all_rows_or_none() {
    for place in Place::both() {
        let store = store(&place).await;
        let (issuer, proofs) = ("https://id.example", store.proofs());
        assert_eq!(proofs.find_identity(issuer, "s1").await.unwrap(), None);
        let admit = async |text: &str, name: &str, subject: &str| {
            let (who, name) = (principal(text), PrincipalName::new(name).unwrap());
            let new = human(&who, &name, "oidc");
            let roles = [(id("default"), Roles::from([Role::Author]))];
            store.proofs().admit(issuer, subject, new, &roles).await
        };
        admit(ABSENT, "eve@example.com", "s1").await.unwrap();
        assert_eq!(proofs.find_identity(issuer, "s1").await.unwrap(), Some(principal(ABSENT)));
        assert_eq!(proofs.find_identity("https://other.example", "s1").await.unwrap(), None);
        assert_eq!(store.principals().memberships().await.unwrap().len(), 1);
        for (name, subject) in [("ada", "s2"), ("fay", "s1")] {
            let error = admit("prn_00000000000000dd", name, subject).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Conflict, "{name}");
        }
        assert_eq!(store.principals().all().await.unwrap().len(), 3);
    }
}
