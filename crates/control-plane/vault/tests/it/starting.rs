//! Keys that a start takes, and states that it refuses.

use narthex_model::ErrorKind;
use narthex_vault::{GivenKeys, Keeper, KeyRing, MasterKey, VaultError};

use crate::world::{World, newest, put};

/// X-M27: only where nothing was ever sealed is a key made.
#[tokio::test]
async fn x_m27_the_first_start_creates_a_key_and_later_starts_load_it() {
    let world = World::default();
    let vault = world.start().await.unwrap();
    let first = world.disk().ring.clone();
    assert!(first.is_some());
    put(&vault, "A", "one").await;
    let vault = world.start().await.unwrap();
    assert_eq!(world.disk().ring, first);
    assert_eq!(newest(&vault, "A").await.unwrap(), "one");
}

/// X-M28: a missing key ends the start; the error names the key, and no new key is made.
#[tokio::test]
async fn x_m28_the_start_fails_without_the_key() {
    let world = World::default();
    let vault = world.start().await.unwrap();
    put(&vault, "A", "one").await;
    put(&vault, "B", "two").await;
    let lost = world.disk().ring.take().unwrap();
    let error = world.start().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let text = error.to_string();
    let words =
        ["2 values", lost.current().id().as_str(), "the key file of the test", "add that key"];
    for word in words {
        assert!(text.contains(word), "no {word:?} in {text}");
    }
    assert_eq!(world.disk().ring, None);
    world.disk().ring = Some(lost);
    assert_eq!(newest(&world.start().await.unwrap(), "A").await.unwrap(), "one");
}

/// X-M28: a wrong key ends the start, too, and is not taken for the right one.
#[tokio::test]
async fn x_m28_the_start_fails_with_a_wrong_key() {
    let world = World::default();
    let vault = world.start().await.unwrap();
    put(&vault, "A", "one").await;
    let right = world.disk().ring.clone().unwrap();
    let wrong = KeyRing::new(MasterKey::generate().unwrap());
    world.disk().ring = Some(wrong.clone());
    let error = world.start().await.unwrap_err();
    assert!(matches!(error, VaultError::KeysMissing { count: 1, .. }), "{error:?}");
    assert_eq!(world.disk().ring, Some(wrong.clone()));
    // Behind another one, it opens the values that it has sealed.
    world.disk().ring = Some(right.with(wrong.current().clone()).unwrap());
    let vault = world.start().await.unwrap();
    assert_eq!(newest(&vault, "A").await.unwrap(), "one");
}

/// X-M26, X-E68: keys of the environment are read, and never written.
#[tokio::test]
async fn x_m26_keys_of_the_environment_are_only_read() {
    let ring = KeyRing::new(MasterKey::generate().unwrap());
    let given = GivenKeys::new("NARTHEX_MASTER_KEY", &ring.write()).unwrap();
    assert_eq!(given.load().unwrap(), Some(ring.clone()));
    assert!(!given.is_ours());
    for refused in [given.create().map(drop), given.replace(&ring)] {
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        assert!(error.to_string().contains("NARTHEX_MASTER_KEY"), "{error}");
    }
    assert!(!format!("{given:?}").contains(ring.write().trim()));
    for bad in ["", "hunter2", "00"] {
        let error = GivenKeys::new("NARTHEX_MASTER_KEY", bad).unwrap_err();
        let text = format!("{error} {error:?}");
        assert!(text.contains("NARTHEX_MASTER_KEY") && !text.contains("hunter2"), "{text}");
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }
}
