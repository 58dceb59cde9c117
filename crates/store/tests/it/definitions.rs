//! Definitions of servers: one text of a name is taken on trust, and humans decide on the others.

use narthex_model::{CatalogKind, RunId, ServerId, WorkspaceId};
use narthex_store::{
    DefinitionHead, DefinitionState, NewDefinition, StatementError, Store, Workspace,
};
use tokio::task::JoinSet;

use crate::support::{Place, id};

fn run(number: u8) -> RunId {
    RunId::parse(&format!("run_0000000000{number:02x}")).unwrap()
}

fn docs() -> ServerId {
    ServerId::new("docs").unwrap()
}

fn definition(digest: &str, name: &str) -> NewDefinition {
    NewDefinition {
        digest: digest.to_owned(),
        kind: "tool",
        name: name.to_owned(),
        is_quarantined: false,
        text: format!("text {digest}"),
        why: "{}".to_owned(),
        why_late: "late".to_owned(),
    }
}

async fn tenant(store: &Store, name: &str) -> WorkspaceId {
    let here = id(name);
    store.workspaces().create(&Workspace::new(here.clone(), "")).await.unwrap();
    store.catalog(CatalogKind::Server).create(&here, "docs", "{}", "admin").await.unwrap();
    here
}

fn states(mut heads: Vec<DefinitionHead>) -> Vec<(String, &'static str)> {
    heads.sort_by(|one, other| one.digest.cmp(&other.digest));
    heads.into_iter().map(|head| (head.digest, head.state.as_str())).collect()
}

fn told(all: &[(&str, &'static str)]) -> Vec<(String, &'static str)> {
    all.iter().map(|(digest, state)| ((*digest).to_owned(), *state)).collect()
}

/// S23: of many that come at once with other texts of one name, from two processes, one is taken
/// on trust, and all are told the same.
#[tokio::test]
async fn s23_one_text_of_a_name_is_pinned() {
    for place in Place::both() {
        let stores = [place.open().await, place.open().await];
        let here = tenant(&stores[0], "team").await;
        let mut adding = JoinSet::new();
        for number in 0..20 {
            let (store, here) = (stores[usize::from(number) % 2].clone(), here.clone());
            adding.spawn(async move {
                let new = [definition(&format!("d{number:02}"), "echo")];
                let heads = store.definitions().add(&here, &docs(), run(number), &new).await;
                heads.unwrap().into_iter().find(|head| head.state == DefinitionState::Pinned)
            });
        }
        let pinned = adding.join_all().await;
        let first = pinned[0].clone().expect("somebody was the first");
        assert!(pinned.iter().all(|one| one.as_ref().is_some_and(|it| it.digest == first.digest)));
        let heads = stores[1].definitions().heads(&here, &docs()).await.unwrap();
        let waiting = heads.iter().filter(|head| head.state == DefinitionState::Quarantined);
        assert_eq!((heads.len(), waiting.count()), (20, 19));
        let late = heads.iter().find(|head| head.digest != first.digest).unwrap();
        let late = stores[0].definitions().find(&here, &docs(), &late.digest).await.unwrap();
        assert_eq!(late.unwrap().why, "late");
        // Seen once more it is not another one.
        let again = [definition(&first.digest, "echo")];
        let heads = stores[0].definitions().add(&here, &docs(), run(99), &again).await.unwrap();
        assert_eq!(heads.len(), 20);
        let first = heads.iter().find(|head| head.state == DefinitionState::Pinned).unwrap();
        assert_ne!(first.run, run(99).to_text());
    }
}

/// D10: what is decided is decided of all or of none, and goes with its server and its workspace.
#[tokio::test]
async fn d10_definitions_are_decided_together_and_go_with_their_server() {
    for place in Place::both() {
        let store = place.open().await;
        let (here, there) = (tenant(&store, "team").await, tenant(&store, "rival").await);
        let definitions = store.definitions();
        let waiting =
            |digest, name| NewDefinition { is_quarantined: true, ..definition(digest, name) };
        let new = [definition("a", "one"), waiting("b", "one"), waiting("c", "two")];
        for workspace in [&here, &there] {
            definitions.add(workspace, &docs(), run(1), &new).await.unwrap();
        }
        let all = async |of: &WorkspaceId| states(definitions.heads(of, &docs()).await.unwrap());
        let accept = async |digests: &[&str]| {
            definitions.accept(&here, &docs(), digests, "ada").await.unwrap()
        };
        assert!(!accept(&["b", "x"]).await && !accept(&["b", "a"]).await);
        let before = [("a", "pinned"), ("b", "quarantined"), ("c", "quarantined")];
        assert_eq!(all(&here).await, told(&before));
        assert!(accept(&["b"]).await && !accept(&["b"]).await);
        let texts = definitions.texts(&here, &docs()).await.unwrap();
        let texts: Vec<_> = texts.iter().map(|one| one.text.as_str()).collect();
        assert_eq!(texts, ["text b", "text a"], "what was decided on last comes first");
        assert!(definitions.reject(&here, &docs(), &["a", "c"], "ada").await.unwrap());
        assert_eq!(
            all(&here).await,
            told(&[("a", "rejected"), ("b", "accepted"), ("c", "rejected")])
        );
        assert!(accept(&["c"]).await, "minds may be changed");
        let found = definitions.find(&here, &docs(), "c").await.unwrap().unwrap();
        assert_eq!(found.head.decided.unwrap().1, "ada");
        assert_eq!(all(&there).await, told(&before));
        let others = definitions.other_tools(&here, &ServerId::new("mail").unwrap()).await.unwrap();
        assert_eq!(others.len(), 2);
        assert!(definitions.other_tools(&here, &docs()).await.unwrap().is_empty());

        let rows = store.catalog(CatalogKind::Server);
        let row = rows.find(&here, "docs").await.unwrap().unwrap();
        assert!(rows.delete(&here, &row).await.unwrap());
        assert!(all(&here).await.is_empty());
        let gone = definitions.add(&here, &docs(), run(1), &new).await;
        assert!(matches!(gone, Err(StatementError::OwnerMissing { .. })), "{gone:?}");
        assert_eq!(all(&there).await.len(), 3);
    }
}
