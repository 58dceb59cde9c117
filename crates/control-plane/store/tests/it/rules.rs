//! The rules of workspaces.

use narthex_model::ErrorKind;
use narthex_store::Workspace;

use crate::support::{Place, id};

/// D13: rules belong to one workspace, are replaced only by a writer that has read them, and
/// outlive a restart; other daemons see their state.
#[tokio::test]
async fn d13_rules_belong_to_a_workspace() {
    for place in Place::both() {
        let (store, other) = (place.open().await, place.open().await);
        let (here, team) = (id("default"), id("team"));
        store.workspaces().create(&Workspace::new(team.clone(), "")).await.unwrap();
        let rules = store.rules();
        assert_eq!(rules.find(&here).await.unwrap(), None);
        assert!(rules.write(&here, None, "first", "ann").await.unwrap());
        assert!(!other.rules().write(&here, None, "second", "bob").await.unwrap());
        let first = other.rules().find(&here).await.unwrap().unwrap();
        assert_eq!((&*first.document, first.head.revision), ("first", 1));
        assert_eq!(first.updated_by, "ann");
        assert!(other.rules().write(&here, Some(first.head), "", "bob").await.unwrap());
        assert!(!rules.write(&here, Some(first.head), "third", "ann").await.unwrap());
        let now = rules.find(&here).await.unwrap().unwrap();
        assert_eq!((&*now.document, now.head.revision, &*now.updated_by), ("", 2, "bob"));
        assert_eq!(rules.find(&team).await.unwrap(), None);
        assert_eq!(other.rules().heads().await.unwrap(), [(here.clone(), now.head)]);
        let unknown = rules.write(&id("gone"), None, "x", "ann").await;
        assert_eq!(unknown.unwrap_err().kind(), ErrorKind::NotFound);
        assert!(rules.write(&team, None, "theirs", "ann").await.unwrap());
        assert!(store.workspaces().delete(&team, true).await.unwrap());
        assert_eq!(rules.heads().await.unwrap().len(), 1, "they go with their workspace");
        other.close().await;
        store.close().await;
        let store = place.open().await;
        assert_eq!(store.rules().find(&here).await.unwrap(), Some(now));
        store.close().await;
    }
}
