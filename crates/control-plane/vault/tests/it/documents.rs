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

/// X-M29: the keys of a deleted workspace leave the memory. A process that has not heard of the end
/// opens texts of a new workspace with the same id.
#[tokio::test]
async fn x_m29_the_keys_of_a_deleted_workspace_leave_the_memory() {
    let world = World::default();
    let (one, other) = (world.start().await.unwrap(), world.start().await.unwrap());
    let (gone, stays) = (workspace("gone"), workspace("stays"));
    let text = Secret::new("scope canary");
    let sealed = one.seal_document(&gone, "run", &text).await.unwrap();
    let kept = one.seal_document(&stays, "run", &text).await.unwrap();
    assert_eq!(other.open_document(&gone, "run", &sealed).await.unwrap(), text);
    {
        let mut disk = world.disk();
        disk.names.retain(|(of, _), _| *of != gone);
        disk.rows.retain(|((of, _), _), _| *of != gone);
    }
    assert_eq!(one.open_document(&gone, "run", &sealed).await.unwrap(), text, "the key is there");
    one.keep_documents_of(&[stays.clone()].into()).await;
    one.open_document(&gone, "run", &sealed).await.unwrap_err();
    assert_eq!(one.open_document(&stays, "run", &kept).await.unwrap(), text);
    let again = one.seal_document(&gone, "run", &Secret::new("new")).await.unwrap();
    assert_eq!(other.open_document(&gone, "run", &again).await.unwrap().expose(), "new");
}
