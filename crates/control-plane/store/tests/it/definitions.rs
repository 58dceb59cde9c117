//! Definitions of servers: one text of a name is taken on trust, and humans decide on the others.

use narthex_model::{Alias, CatalogKind, RunId, ServerId, WorkspaceId};
use narthex_store::{
    DefinitionHead, DefinitionState, DefinitionsOf, NewDefinition, StatementError, Store, Workspace,
};
use tokio::task::JoinSet;

use crate::support::{Place, id};

fn run(number: u8) -> RunId {
    RunId::parse(&format!("run_0000000000{number:02x}")).unwrap()
}

fn docs() -> ServerId {
    ServerId::new("docs").unwrap()
}

fn of<'a>(workspace: &'a WorkspaceId, server: &'a ServerId) -> DefinitionsOf<'a> {
    DefinitionsOf::Catalog(workspace, server)
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

/// S23: of many texts of one name that two processes add at once, one is pinned, and all callers
/// get the same answer.
#[tokio::test]
async fn s23_one_of_several_texts_of_a_name_is_pinned() {
    for place in Place::both() {
        let stores = [place.open().await, place.open().await];
        let here = tenant(&stores[0], "team").await;
        let mut adding = JoinSet::new();
        for number in 0..20 {
            let (store, here) = (stores[usize::from(number) % 2].clone(), here.clone());
            adding.spawn(async move {
                let new = [definition(&format!("d{number:02}"), "echo")];
                let heads = store.definitions(of(&here, &docs())).add(run(number), &new).await;
                heads.unwrap().into_iter().find(|head| head.state == DefinitionState::Pinned)
            });
        }
        let pinned = adding.join_all().await;
        let first = pinned[0].clone().expect("one of the two stores was the first");
        assert!(pinned.iter().all(|one| one.as_ref().is_some_and(|it| it.digest == first.digest)));
        let heads = stores[1].definitions(of(&here, &docs())).heads().await.unwrap();
        let waiting = heads.iter().filter(|head| head.state == DefinitionState::Quarantined);
        assert_eq!((heads.len(), waiting.count()), (20, 19));
        let late = heads.iter().find(|head| head.digest != first.digest).unwrap();
        let late = stores[0].definitions(of(&here, &docs())).find(&late.digest).await.unwrap();
        assert_eq!(late.unwrap().why, "late");
        // Seen once more it is not another one.
        let again = [definition(&first.digest, "echo")];
        let heads = stores[0].definitions(of(&here, &docs())).add(run(99), &again).await.unwrap();
        assert_eq!(heads.len(), 20);
        let first = heads.iter().find(|head| head.state == DefinitionState::Pinned).unwrap();
        assert_ne!(first.run, run(99).to_text());
    }
}

/// D10: a decision covers all given definitions or none, and is removed with its server and its
/// workspace.
#[tokio::test]
async fn d10_decisions_are_made_together_and_removed_with_their_server() {
    for place in Place::both() {
        let store = place.open().await;
        let (here, there) = (tenant(&store, "team").await, tenant(&store, "rival").await);
        let (docs, mail) = (docs(), ServerId::new("mail").unwrap());
        let definitions = store.definitions(of(&here, &docs));
        let waiting =
            |digest, name| NewDefinition { is_quarantined: true, ..definition(digest, name) };
        let new = [definition("a", "one"), waiting("b", "one"), waiting("c", "two")];
        for workspace in [&here, &there] {
            store.definitions(of(workspace, &docs)).add(run(1), &new).await.unwrap();
        }
        let all = async |whose: &WorkspaceId| {
            states(store.definitions(of(whose, &docs)).heads().await.unwrap())
        };
        let accept =
            async |digests: &[&str]| definitions.decide(true, digests, "ada").await.unwrap();
        assert!(!accept(&["b", "x"]).await && !accept(&["b", "a"]).await);
        let before = [("a", "pinned"), ("b", "quarantined"), ("c", "quarantined")];
        assert_eq!(all(&here).await, told(&before));
        assert!(accept(&["b"]).await && !accept(&["b"]).await);
        let texts = definitions.texts().await.unwrap();
        let texts: Vec<_> = texts.iter().map(|one| one.text.as_str()).collect();
        assert_eq!(texts, ["text b", "text a"], "what was decided on last comes first");
        let named = async || store.catalog_named(&here).await.unwrap();
        let all_named = named().await;
        assert_ne!(all_named, 0);
        assert!(definitions.decide(false, &["a", "c"], "ada").await.unwrap());
        assert_ne!(named().await, all_named, "what was rejected has no name");
        assert_eq!(
            all(&here).await,
            told(&[("a", "rejected"), ("b", "accepted"), ("c", "rejected")])
        );
        assert!(accept(&["c"]).await, "minds may be changed");
        let found = definitions.find("c").await.unwrap().unwrap();
        assert_eq!(found.head.decided.unwrap().1, "ada");
        assert_eq!(all(&there).await, told(&before));
        let others = store.definitions(of(&here, &mail)).other_tools().await.unwrap();
        assert_eq!(others.len(), 2);
        assert!(definitions.other_tools().await.unwrap().is_empty());

        let rows = store.catalog(CatalogKind::Server);
        let row = rows.find(&here, "docs").await.unwrap().unwrap();
        assert!(rows.delete(&here, &row).await.unwrap());
        assert!(all(&here).await.is_empty());
        let gone = definitions.add(run(1), &new).await;
        assert!(matches!(gone, Err(StatementError::OwnerMissing { .. })), "{gone:?}");
        assert_eq!(all(&there).await.len(), 3);
    }
}

/// D10, S23: definitions of live servers are those of their place and their alias, whatever the
/// catalog has, and one text of a name is taken on trust.
#[tokio::test]
async fn d10_definitions_of_live_servers_belong_to_file_and_alias() {
    for place in Place::both() {
        let store = place.open().await;
        let (here, docs) = (tenant(&store, "team").await, docs());
        let [alias, mail] = ["docs", "mail"].map(|name| Alias::new(name).unwrap());
        let live = store.definitions(DefinitionsOf::Live("/a/mcp.json", &alias));
        let beside = store.definitions(DefinitionsOf::Live("/a/mcp.json", &mail));
        let elsewhere = store.definitions(DefinitionsOf::Live("/b/mcp.json", &alias));
        let new = [definition("a", "one"), definition("b", "one")];
        let heads = live.add(run(1), &new).await.unwrap();
        let before = [("a", "pinned"), ("b", "quarantined")];
        assert_eq!(states(heads), told(&before));
        for other in [elsewhere, store.definitions(of(&here, &docs))] {
            assert!(other.heads().await.unwrap().is_empty());
            other.add(run(1), &new[1..]).await.unwrap();
            assert_eq!(states(other.heads().await.unwrap()), told(&[("b", "pinned")]));
        }
        assert_eq!(beside.other_tools().await.unwrap(), [("docs".to_owned(), "one".to_owned())]);
        let decided = async |place: &str| store.live_decided(place).await.unwrap();
        let waits = decided("/a/mcp.json").await["docs"];
        assert!(waits > 0 && decided("/b/mcp.json").await["docs"] == 0);
        assert!(live.decide(true, &["b"], "ada").await.unwrap());
        assert!(live.decide(false, &["a"], "ada").await.unwrap());
        assert_eq!(
            states(live.heads().await.unwrap()),
            told(&[("a", "rejected"), ("b", "accepted")])
        );
        assert!(decided("/a/mcp.json").await["docs"] > 0);
        assert_eq!(decided("/b/mcp.json").await["docs"], 0);
        assert!(decided("/c/mcp.json").await.is_empty());
    }
}

/// S23: once a text of a name was seen, no later one is pinned, also by a process that does not
/// know of the first. Unwanted texts are listed, rejected ones first.
#[tokio::test]
async fn s23_a_new_text_of_a_known_name_is_not_pinned() {
    for place in Place::both() {
        let store = place.open().await;
        let (here, docs) = (tenant(&store, "team").await, docs());
        let alias = Alias::new("docs").unwrap();
        let of_live = store.definitions(DefinitionsOf::Live("/a/mcp.json", &alias));
        for definitions in [store.definitions(of(&here, &docs)), of_live] {
            let waiting =
                |digest, name| NewDefinition { is_quarantined: true, ..definition(digest, name) };
            let new = [definition("a", "one"), waiting("b", "two"), definition("e", "three")];
            definitions.add(run(1), &new).await.unwrap();
            assert!(definitions.decide(false, &["a"], "ada").await.unwrap());
            let new = [definition("c", "one"), definition("d", "two"), definition("f", "four")];
            let heads = definitions.add(run(2), &new).await.unwrap();
            let expected = [
                ("a", "rejected"),
                ("b", "quarantined"),
                ("c", "quarantined"),
                ("d", "quarantined"),
                ("e", "pinned"),
                ("f", "pinned"),
            ];
            assert_eq!(states(heads), told(&expected));
            let unwanted = definitions.unwanted().await.unwrap();
            let texts: Vec<_> = unwanted.iter().map(|one| one.text.as_str()).collect();
            assert_eq!((texts[0], texts.len()), ("text a", 4), "{texts:?}");
        }
    }
}

/// S23: of one name no more than the newest texts under review are stored, however many a server
/// sends; texts that a human has decided on stay.
#[tokio::test]
async fn s23_no_server_fills_the_store() {
    for place in Place::both() {
        let store = place.open().await;
        let (here, docs) = (tenant(&store, "team").await, docs());
        let definitions = store.definitions(of(&here, &docs));
        let waiting =
            |digest: &str| NewDefinition { is_quarantined: true, ..definition(digest, "one") };
        let beside = NewDefinition { kind: "prompt", ..waiting("prompt") };
        definitions.add(run(1), &[waiting("old"), beside]).await.unwrap();
        assert!(definitions.decide(false, &["old"], "ada").await.unwrap());
        for number in 0..30 {
            definitions.add(run(1), &[waiting(&format!("d{number:02}"))]).await.unwrap();
        }
        let heads = definitions.heads().await.unwrap();
        let count = |state| heads.iter().filter(|head| head.state == state).count();
        assert_eq!(count(DefinitionState::Rejected), 1);
        assert_eq!(count(DefinitionState::Quarantined), 20 + 1, "{heads:?}");
        assert!(heads.iter().any(|head| head.kind == "prompt"));
    }
}

/// D10: a decision moves the number of its server, also one of the same moment.
#[tokio::test]
async fn d10_each_decision_changes_the_number_of_its_server() {
    for place in Place::both() {
        let store = place.open().await;
        let alias = Alias::new("docs").unwrap();
        let live = store.definitions(DefinitionsOf::Live("/a/mcp.json", &alias));
        let new = [definition("a", "one"), definition("b", "two")];
        live.add(run(1), &new).await.unwrap();
        let mut before = 0;
        let moved = async |before: &mut i64| {
            let now = store.live_decided("/a/mcp.json").await.unwrap()["docs"];
            std::mem::replace(before, now) != now
        };
        assert!(!moved(&mut before).await);
        for digest in ["a", "b"] {
            assert!(live.decide(false, &[digest], "ada").await.unwrap());
            assert!(moved(&mut before).await, "{digest}");
            assert!(live.decide(true, &[digest], "ada").await.unwrap());
            assert!(moved(&mut before).await, "{digest}");
        }
    }
}

/// Definitions are read by their digests in one statement, and only those of the server.
#[tokio::test]
async fn definitions_are_read_by_their_digests() {
    for place in Place::both() {
        let store = place.open().await;
        let here = tenant(&store, "team").await;
        let new = [definition("d1", "echo"), definition("d12", "other"), definition("d3", "third")];
        let server = docs();
        let definitions = store.definitions(of(&here, &server));
        definitions.add(run(1), &new).await.unwrap();
        let some = async |digests: &[&str]| {
            let rows = definitions.some(digests).await.unwrap();
            let mut found: Vec<_> = rows.into_iter().map(|row| row.head.digest).collect();
            found.sort();
            found
        };
        // `d1` is the beginning of `d12`.
        assert_eq!(some(&["d1", "d3", "gone"]).await, ["d1", "d3"]);
        assert_eq!(some(&["d12"]).await, ["d12"]);
        assert_eq!(some(&[]).await, [""; 0]);
        let there = tenant(&store, "other").await;
        assert_eq!(store.definitions(of(&there, &server)).some(&["d1"]).await.unwrap(), []);
    }
}
