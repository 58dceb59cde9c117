//! Objects of the catalog: each kind in its own table, changed only as it was read.

use narthex_model::{CatalogKind, ErrorKind};
use narthex_store::{CatalogRow, CatalogStep, Store, Workspace};
use tokio::task::JoinSet;

use crate::support::{Place, id};

async fn with_team(place: &Place) -> Store {
    let store = place.open().await;
    store.workspaces().create(&Workspace::new(id("team"), "")).await.unwrap();
    store
}

/// O5: stored objects come back, also after closing, in their own workspace and of their own kind.
#[tokio::test]
async fn o5_objects_outlive_the_store() {
    for place in Place::both() {
        let store = with_team(&place).await;
        let here = id("default");
        for kind in CatalogKind::ALL {
            let document = format!("{{\"a {kind}\":\"größe 🦀\"}}");
            let row = store.catalog(kind).create(&here, "docs", &document, "admin").await.unwrap();
            assert_eq!((row.revision, row.created_at), (1, row.updated_at));
            let again = store.catalog(kind).create(&here, "docs", "{}", "x").await.unwrap_err();
            assert_eq!(again.kind(), ErrorKind::Conflict);
            let nowhere = store.catalog(kind).create(&id("nosuch"), "docs", "{}", "x").await;
            assert_eq!(nowhere.unwrap_err().kind(), ErrorKind::NotFound);
            store.catalog(kind).create(&id("team"), "docs", "{}", "x").await.unwrap();
        }
        store.close().await;
        let store = place.open().await;
        for kind in CatalogKind::ALL {
            let row = store.catalog(kind).find(&here, "docs").await.unwrap().unwrap();
            assert_eq!(row.document, format!("{{\"a {kind}\":\"größe 🦀\"}}"));
            assert_eq!(
                (row.id.as_str(), row.updated_by.as_str(), row.revision),
                ("docs", "admin", 1)
            );
            assert_eq!(store.catalog(kind).find(&here, "Docs").await.unwrap(), None);
        }
        // Objects are removed with their workspace.
        place.sql("DELETE FROM workspaces WHERE id = 'team'").await;
        for kind in CatalogKind::ALL {
            assert!(store.catalog(kind).all(&id("team")).await.unwrap().is_empty());
            assert_eq!(store.catalog(kind).all(&here).await.unwrap().len(), 1);
        }
    }
}

/// O83: several changes are one: if any object is not as it was read, none of them happens.
#[tokio::test]
async fn o83_several_changes_happen_together_or_not_at_all() {
    for place in Place::both() {
        let store = with_team(&place).await;
        let here = id("default");
        let (servers, agents) = (CatalogKind::Server, CatalogKind::Agent);
        let docs = store.catalog(servers).create(&here, "docs", "1", "a").await.unwrap();
        let new =
            CatalogStep { kind: agents, id: "reader", before: None, document: "2", is_cut: false };
        let changed = CatalogStep {
            kind: servers,
            id: "docs",
            before: Some(&docs),
            document: "3",
            is_cut: false,
        };
        assert!(store.catalog_change(&here, &[new, changed], "b").await.unwrap());
        let now = store.catalog(servers).find(&here, "docs").await.unwrap().unwrap();
        assert_eq!((now.document.as_str(), now.revision, now.updated_by.as_str()), ("3", 2, "b"));
        assert_eq!(now.created_at, docs.created_at);

        let further =
            CatalogStep { kind: agents, id: "writer", before: None, document: "4", is_cut: false };
        for outrun in [changed, new] {
            assert!(!store.catalog_change(&here, &[further, outrun], "c").await.unwrap());
            assert_eq!(store.catalog(agents).find(&here, "writer").await.unwrap(), None);
        }
        assert_eq!(store.catalog(servers).find(&here, "docs").await.unwrap(), Some(now));
        assert!(store.catalog_change(&here, &[], "c").await.unwrap(), "nothing to do is done");
        let nowhere = store.catalog_change(&id("nosuch"), &[further], "c").await.unwrap_err();
        assert_eq!(nowhere.kind(), ErrorKind::NotFound);
    }
}

/// An older reading of an object changes nothing, also where the same id was created anew.
#[tokio::test]
async fn a_change_from_an_outdated_revision_is_refused() {
    for place in Place::both() {
        let store = with_team(&place).await;
        let (here, agents) = (id("default"), store.catalog(CatalogKind::Agent));
        let first = agents.create(&here, "reader", "1", "a").await.unwrap();
        let second = agents.replace(&here, &first, "2", "b").await.unwrap().unwrap();
        assert_eq!((second.revision, second.updated_by.as_str()), (2, "b"));
        assert_eq!(second.created_at, first.created_at);
        assert_eq!(agents.find(&here, "reader").await.unwrap(), Some(second.clone()));
        assert_eq!(agents.replace(&here, &first, "3", "c").await.unwrap(), None);
        assert!(!agents.delete(&here, &first).await.unwrap());
        assert!(!agents.delete(&id("team"), &second).await.unwrap());
        assert!(agents.delete(&here, &second).await.unwrap());
        assert_eq!(agents.find(&here, "reader").await.unwrap(), None);
        assert_eq!(agents.replace(&here, &second, "3", "c").await.unwrap(), None);
        agents.create(&here, "reader", "4", "a").await.unwrap();
        place.sql("UPDATE agents SET created_at = 7").await;
        assert_eq!(agents.replace(&here, &first, "3", "c").await.unwrap(), None);
        assert!(!agents.delete(&here, &first).await.unwrap());
    }
}

/// O34: pages follow each other without a gap, while objects come and go.
#[tokio::test]
async fn pages_follow_each_other() {
    for place in Place::both() {
        let store = with_team(&place).await;
        let (here, servers) = (id("default"), store.catalog(CatalogKind::Server));
        let names = ["b", "a", "a_b", "a-b", "ab", "c", "c1"];
        for name in names {
            servers.create(&here, name, "{}", "x").await.unwrap();
        }
        servers.create(&id("team"), "elsewhere", "{}", "x").await.unwrap();
        let mut seen = Vec::new();
        let mut after = String::new();
        loop {
            let page = servers.page(&here, &after, 3).await.unwrap();
            assert!(page.len() <= 3);
            let Some(last) = page.last() else { break };
            after.clone_from(&last.id);
            seen.extend(page.into_iter().map(|row| row.id));
            // Changes behind the current position do not affect the next pages.
            let first = servers.find(&here, &seen[0]).await.unwrap();
            if let Some(first) = first {
                assert!(servers.delete(&here, &first).await.unwrap());
            }
        }
        let mut sorted = names.to_vec();
        sorted.sort_unstable();
        seen.sort();
        assert_eq!(seen, sorted);
    }
}

/// Of several writers that replace the same revision, one succeeds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_several_writers_replaces_a_revision() {
    for place in Place::both() {
        let store = with_team(&place).await;
        let here = id("default");
        let mut row =
            store.catalog(CatalogKind::Agent).create(&here, "a", "{}", "x").await.unwrap();
        for _ in 0..4 {
            let writing: JoinSet<_> =
                (0..8).map(|number| replace(store.clone(), row.clone(), number)).collect();
            let mut written: Vec<_> = writing.join_all().await.into_iter().flatten().collect();
            assert_eq!(written.len(), 1);
            row = written.remove(0);
            let found = store.catalog(CatalogKind::Agent).find(&here, "a").await.unwrap();
            assert_eq!(found, Some(row.clone()));
        }
    }
}

async fn replace(store: Store, row: CatalogRow, number: u32) -> Option<CatalogRow> {
    let agents = store.catalog(CatalogKind::Agent);
    agents.replace(&id("default"), &row, &number.to_string(), "x").await.unwrap()
}

/// Rows that were written by hand are reported as damage.
#[tokio::test]
async fn rows_that_break_the_rules_are_damage() {
    for place in Place::both() {
        let store = with_team(&place).await;
        let (here, agents) = (id("default"), store.catalog(CatalogKind::Agent));
        agents.create(&here, "a", "{}", "x").await.unwrap();
        place.sql("UPDATE agents SET revision = -1").await;
        assert_eq!(agents.find(&here, "a").await.unwrap_err().kind(), ErrorKind::Unavailable);
        assert_eq!(agents.all(&here).await.unwrap_err().kind(), ErrorKind::Unavailable);
        assert_eq!(agents.page(&here, "", 9).await.unwrap_err().kind(), ErrorKind::Unavailable);
    }
}
