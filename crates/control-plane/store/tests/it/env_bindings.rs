//! Bindings of secrets to environments: unique, and gone with their owners.

use std::time::SystemTime;

use narthex_model::{CatalogKind, EnvBindingId, ErrorKind, KeyId, SealedSecret, SecretName};
use narthex_model::{SecretVersion, WorkspaceId};
use narthex_store::{Store, Workspace};

use crate::support::{Place, id};

fn binding(text: &str) -> EnvBindingId {
    EnvBindingId::parse(text).unwrap()
}

fn secret(text: &str) -> SecretName {
    SecretName::new(text).unwrap()
}

async fn ids(store: &Store, workspace: &WorkspaceId) -> Vec<String> {
    let all = store.env_bindings().all(workspace).await.unwrap();
    all.iter().map(|one| format!("{}={}", one.id, one.secret)).collect()
}

/// A workspace with an agent `reader` and a secret `A`, and another `B`.
async fn tenant(store: &Store, name: &str) -> WorkspaceId {
    let here = id(name);
    let workspace = Workspace::new(here.clone(), "");
    store.workspaces().create(&workspace).await.unwrap();
    store.catalog(CatalogKind::Agent).create(&here, "reader", "{}", "admin").await.unwrap();
    for name in ["A", "B"] {
        let sealed = SealedSecret {
            workspace: here.clone(),
            name: secret(name),
            version: SecretVersion::FIRST,
            key: KeyId::new("00000000000000aa").unwrap(),
            sealed: "sealed".to_owned(),
        };
        assert!(store.secrets().add(&sealed, "admin", 3).await.unwrap());
    }
    here
}

/// X-E63: one binding for a scope, an id and a name; it goes with its agent and its workspace.
#[tokio::test]
async fn x_e63_bindings_are_unique_and_removed_with_their_owner() {
    for place in Place::both() {
        let store = place.open().await;
        let (here, there) = (tenant(&store, "team").await, tenant(&store, "rival").await);
        let all = [
            "agent:reader:TOKEN",
            "agent:reader:OTHER",
            "preview_environment:reader:TOKEN",
            "workspace:TOKEN",
        ];
        for workspace in [&here, &there] {
            for text in all {
                let (binding, secret) = (binding(text), secret("A"));
                store.env_bindings().create(workspace, &binding, &secret, "ada").await.unwrap();
            }
        }
        let bindings = store.env_bindings();
        let again = bindings.create(&here, &binding(all[0]), &secret("B"), "ada").await;
        assert_eq!(again.unwrap_err().kind(), ErrorKind::Conflict);
        // An absent agent or secret is not bound.
        for (text, name) in [("agent:nosuch:TOKEN", "A"), ("workspace:X", "NONE")] {
            let refused = bindings.create(&here, &binding(text), &secret(name), "ada").await;
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::NotFound, "{text}");
        }
        assert!(bindings.replace(&here, &binding(all[0]), &secret("B"), "bob").await.unwrap());
        assert!(
            !bindings.replace(&here, &binding("workspace:X"), &secret("B"), "b").await.unwrap()
        );
        store.close().await;

        let store = place.open().await;
        let row = &store.env_bindings().all(&here).await.unwrap()[1];
        assert_eq!((row.secret.as_str(), row.updated_by.as_str()), ("B", "bob"));
        assert!(row.created_at <= row.updated_at && row.updated_at <= SystemTime::now());
        let agents = store.catalog(CatalogKind::Agent);
        let agent = agents.find(&here, "reader").await.unwrap().unwrap();
        let agent = agents.replace(&here, &agent, "{\"name\": \"reader\"}", "x").await.unwrap();
        assert_eq!(ids(&store, &here).await.len(), 4, "a changed agent keeps what it has");
        assert!(agents.delete(&here, &agent.unwrap()).await.unwrap());
        let left = ["preview_environment:reader:TOKEN=A", "workspace:TOKEN=A"];
        assert_eq!(ids(&store, &here).await, left);
        assert_eq!(ids(&store, &there).await.len(), 4, "those of others stay");
        assert!(store.env_bindings().delete(&here, &binding("workspace:TOKEN")).await.unwrap());
        assert!(!store.env_bindings().delete(&here, &binding("workspace:TOKEN")).await.unwrap());
        assert!(store.workspaces().delete(&there, true).await.unwrap());
        assert_eq!(ids(&store, &there).await, [""; 0]);
        let left = place.sql("SELECT CAST(count(*) AS TEXT) FROM env_bindings").await;
        assert_eq!(left, ["1"]);
    }
}
