//! Whole texts that are sealed for one place.

use narthex_model::{ErrorKind, Secret};
use narthex_vault::VaultError;

use crate::world::{World, name, put, workspace};

const RESERVED: &str = "_NARTHEX_DOCUMENTS";

/// O82, X-M29: a run's stored data is sealed, opens in its own place alone, also after a restart
/// and after the master key was changed.
#[tokio::test]
async fn o82_documents_open_only_in_their_own_place() {
    let world = World::default();
    let vault = world.start().await.unwrap();
    let (one, two) = (workspace("one"), workspace("two"));
    let text = Secret::new("scope canary");
    let sealed = vault.seal_document(&one, "run a", &text).await.unwrap();
    let again = vault.seal_document(&one, "run a", &text).await.unwrap();
    assert_ne!(sealed, again, "a nonce is never used twice");
    assert!(!sealed.contains("canary"));
    for vault in [&vault, &world.start().await.unwrap()] {
        assert_eq!(vault.open_document(&one, "run a", &sealed).await.unwrap(), text);
    }
    vault.seal_document(&two, "run a", &text).await.unwrap();
    for (of, place) in [(&one, "run b"), (&two, "run a")] {
        let error = vault.open_document(of, place, &sealed).await.unwrap_err();
        assert!(matches!(error, VaultError::DocumentDamaged { .. }), "{error}");
        assert_eq!(error.kind(), ErrorKind::Unavailable);
    }
    for bad in ["", "1", "x.y", "0.AAAA", &sealed[..sealed.len() - 1], &format!("{sealed}A")] {
        let error = vault.open_document(&one, "run a", bad).await.unwrap_err();
        assert!(matches!(error, VaultError::DocumentDamaged { .. }), "{bad}: {error}");
    }
    let rotation = vault.rotate_key().await.unwrap();
    assert_eq!(rotation.resealed, 2, "one key for each workspace, and no document");
    for vault in [&vault, &world.start().await.unwrap()] {
        assert_eq!(vault.open_document(&one, "run a", &sealed).await.unwrap(), text);
    }
}

/// The key of documents is no secret of the workspace: no caller lists, reads, sets or clears it.
#[tokio::test]
async fn the_key_of_documents_is_not_accessible_as_a_secret() {
    let world = World::default();
    let vault = world.start().await.unwrap();
    put(&vault, "A", "value").await;
    let (of, reserved) = (workspace("default"), name(RESERVED));
    vault.seal_document(&of, "run", &Secret::new("text")).await.unwrap();
    let listed = vault.list(&of).await.unwrap();
    assert_eq!(listed.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["A"]);
    let newest = narthex_model::SecretReference::newest(reserved.clone());
    assert!(matches!(vault.open(&of, &newest).await, Err(VaultError::NotSet(_))));
    let value = Secret::new("mine");
    let set = narthex_vault::Put { workspace: &of, name: &reserved, value: &value, by: "me" };
    assert_eq!(vault.put(set).await.unwrap_err().kind(), ErrorKind::Invalid);
    let cleared = vault.clear(&of, &reserved, "me").await;
    assert!(matches!(cleared, Err(VaultError::Reserved(_))));
}
