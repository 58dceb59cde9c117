//! Cuts of runs' servers and secrets, as other daemons find them.

use narthex_model::{CatalogKind, KeyId, SealedSecret, SecretName, SecretVersion, WorkspaceId};
use narthex_store::{CatalogStep, Cut};

use crate::support::Place;

/// D10: each cut is stored with the change that causes it, under a number of its own. Later
/// readings return only the last cut of each server or secret.
#[tokio::test]
async fn d10_cuts_are_numbered_and_stored_with_their_change() {
    for place in Place::both() {
        let store = place.open().await;
        let here = WorkspaceId::default();
        let key = SecretName::new("KEY").unwrap();
        let cuts = store.cuts();
        assert_eq!(cuts.last().await.unwrap(), 0);
        let value = |version| SealedSecret {
            workspace: here.clone(),
            name: key.clone(),
            version: SecretVersion::new(version).unwrap(),
            key: KeyId::new("0123456789abcdef").unwrap(),
            sealed: "sealed".to_owned(),
        };
        for version in [1, 2] {
            assert!(store.secrets().add(&value(version), "ada", 9).await.unwrap());
        }
        assert_eq!(cuts.last().await.unwrap(), 0, "a new value cuts nothing");
        assert!(store.secrets().clear(&here, &key, "ada").await.unwrap());
        assert!(!store.secrets().clear(&here, &key, "ada").await.unwrap());
        let servers = store.catalog(CatalogKind::Server);
        let docs = servers.create(&here, "docs", "1", "ada").await.unwrap();
        let off = servers.cutting(true).replace(&here, &docs, "2", "ada").await.unwrap().unwrap();
        assert!(servers.cutting(true).replace(&here, &docs, "3", "ada").await.unwrap().is_none());
        let secret = (here.clone(), Cut::Secret(key.clone(), 2));
        let server = (here.clone(), Cut::Server("docs".to_owned()));
        let all = cuts.since(0).await.unwrap();
        assert_eq!((all.cuts, all.last), (vec![secret, server.clone()], 2));
        assert_eq!(cuts.last().await.unwrap(), 2, "what was not changed cuts nothing");
        assert!(store.secrets().add(&value(3), "ada", 9).await.unwrap());
        assert!(store.secrets().clear(&here, &key, "ada").await.unwrap());
        let step = CatalogStep {
            kind: CatalogKind::Server,
            id: "docs",
            before: Some(&off),
            document: "4",
            is_cut: true,
        };
        assert!(store.catalog_change(&here, &[step], "ada").await.unwrap());
        let secret = (here.clone(), Cut::Secret(key.clone(), 3));
        let later = cuts.since(2).await.unwrap();
        assert_eq!((later.cuts, later.last), (vec![secret.clone(), server.clone()], 4));
        assert_eq!(cuts.since(3).await.unwrap().cuts, std::slice::from_ref(&server));
        assert_eq!(cuts.since(0).await.unwrap().cuts, [secret, server]);
        assert_eq!(cuts.since(4).await.unwrap().last, 4);
    }
}
