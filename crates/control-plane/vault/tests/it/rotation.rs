//! The master key is changed while secrets are in use.

use narthex_model::{ErrorKind, KeyId, SealedSecret, WorkspaceId};
use narthex_vault::{KeyRing, MasterKey, Vault, VaultError};

use crate::world::{Disk, Work, World, name, newest, pinned, put};

/// More than one batch of values, of two workspaces' worth of names.
async fn filled(count: usize) -> (World, Vault) {
    let world = World::default();
    let vault = world.start().await.unwrap();
    for number in 0..count {
        put(&vault, &format!("S{}", number % 50), &format!("value {number}")).await;
    }
    (world, vault)
}

fn current(world: &World) -> KeyId {
    world.disk().ring.as_ref().unwrap().current().id().clone()
}

#[tokio::test]
async fn x_f6_every_value_is_sealed_anew_and_the_old_key_forgotten() {
    let (world, vault) = filled(300).await;
    let old = current(&world);
    let before: Vec<SealedSecret> = world.disk().rows.values().cloned().collect();
    let rotation = vault.rotate_key().await.unwrap();
    assert_eq!((rotation.resealed, rotation.is_resumed), (300, false));
    assert_eq!((&rotation.dropped, &rotation.key), (&vec![old.clone()], &current(&world)));
    assert!(rotation.unused.is_empty());
    assert_ne!(rotation.key, old);
    assert_eq!(world.disk().ring.as_ref().unwrap().older().count(), 0);
    for (row, before) in world.disk().rows.values().zip(&before) {
        assert_eq!(
            (&row.key, &row.name, row.version),
            (&rotation.key, &before.name, before.version)
        );
        assert_ne!(row.sealed, before.sealed);
    }
    for vault in [vault, world.start().await.unwrap()] {
        for number in 0..300_u64 {
            let (of, version) = (format!("S{}", number % 50), number / 50 + 1);
            let value = pinned(&vault, &of, version).await.unwrap();
            assert_eq!(value, format!("value {number}"));
        }
    }
}

#[tokio::test]
async fn an_empty_vault_changes_its_key_too() {
    let (world, vault) = filled(0).await;
    let old = current(&world);
    let rotation = vault.rotate_key().await.unwrap();
    assert_eq!((rotation.resealed, &rotation.dropped[..]), (0, &[old][..]));
}

/// X-F6: secrets are set, read and cleared while all values are sealed anew.
#[tokio::test]
async fn secrets_are_usable_during_a_rotation() {
    let (world, vault) = filled(200).await;
    let using = async {
        for round in 0..40 {
            put(&vault, "NEW", &format!("round {round}")).await;
            assert_eq!(newest(&vault, "NEW").await.unwrap(), format!("round {round}"));
            assert_eq!(newest(&vault, "S49").await.unwrap(), "value 199");
            vault.clear(&WorkspaceId::default(), &name(&format!("S{round}")), "x").await.unwrap();
        }
    };
    let (rotated, ()) = tokio::join!(vault.rotate_key(), using);
    let rotation = rotated.unwrap();
    assert!(world.disk().rows.values().all(|row| row.key == rotation.key));
    let vault = world.start().await.unwrap();
    assert_eq!(newest(&vault, "NEW").await.unwrap(), "round 39");
    assert_eq!(newest(&vault, "S49").await.unwrap(), "value 199");
    let cleared = newest(&vault, "S0").await;
    assert!(matches!(cleared, Err(VaultError::NotSet(_))), "{cleared:?}");
}

/// S27: the keys are listed by their ids with the number of their values, and without their bytes.
#[tokio::test]
async fn s27_keys_are_listed_by_their_ids() {
    let (world, vault) = filled(3).await;
    let known = vault.keys().await.unwrap();
    assert!(known.is_ours);
    let listed: Vec<_> = known.keys.iter().map(|key| (key.id.clone(), key.values)).collect();
    assert_eq!(listed, [(current(&world), 3)]);
    let text = world.disk().ring.as_ref().unwrap().write().trim().to_owned();
    assert!(!format!("{known:?}").contains(&text));
    let rotation = vault.rotate_key().await.unwrap();
    let known = vault.keys().await.unwrap();
    let listed: Vec<_> = known.keys.iter().map(|key| (key.id.clone(), key.values)).collect();
    assert_eq!(listed, [(rotation.key, 3)]);
}

/// A mark outlives no key: after a rotation, it is neither right nor wrong.
#[tokio::test]
async fn a_mark_is_known_as_long_as_its_key() {
    let (_world, vault) = filled(1).await;
    let voucher = vault.vouch("text").await.unwrap();
    assert_eq!(vault.vouches("text", &voucher).await.unwrap(), Some(true));
    assert_eq!(vault.vouches("texts", &voucher).await.unwrap(), Some(false));
    vault.rotate_key().await.unwrap();
    assert_eq!(vault.vouches("text", &voucher).await.unwrap(), None);
}

/// X-F6.
#[tokio::test]
async fn a_second_rotation_at_the_same_time_is_refused() {
    let (world, vault) = filled(100).await;
    let (first, second) = tokio::join!(vault.rotate_key(), vault.rotate_key());
    assert!(matches!(second, Err(VaultError::RotationRuns)), "{second:?}");
    assert_eq!(first.unwrap().resealed, 100);
    assert_eq!(world.disk().ring.as_ref().unwrap().older().count(), 0);
}

/// X-F6: a row that does not open is not lost with its key: all others are sealed anew, and it is
/// named.
#[tokio::test]
async fn a_damaged_value_keeps_the_old_key() {
    let (world, vault) = filled(100).await;
    let old = current(&world);
    let damage = |disk: &mut Disk| {
        let row = disk.rows.values_mut().find(|row| row.name == name("S7")).unwrap();
        row.sealed.insert(20, 'A');
    };
    damage(&mut world.disk());
    let error = vault.rotate_key().await.unwrap_err();
    assert!(matches!(error, VaultError::Stuck { count: 1, .. }), "{error:?}");
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.to_string().contains("version 1 of `S7` in `default`"), "{error}");
    assert!(world.disk().ring.as_ref().unwrap().get(&old).is_some());
    let behind = world.disk().rows.values().filter(|row| row.key == old).count();
    assert_eq!(behind, 1);
    vault.clear(&WorkspaceId::default(), &name("S7"), "admin").await.unwrap();
    let rotation = vault.rotate_key().await.unwrap();
    assert_eq!((rotation.is_resumed, &rotation.dropped[..]), (true, &[old][..]));
}

/// X-F6: values that another process seals under the old key during a rotation are found before
/// that key is forgotten.
#[tokio::test]
async fn values_sealed_under_the_old_key_during_a_rotation_are_found() {
    let (world, vault) = filled(100).await;
    // The first row is away for the first batch, and there again when it would be passed over.
    let late = |disk: &mut Disk| {
        let (place, row) = disk.rows.pop_first().unwrap();
        let back = |disk: &mut Disk| drop(disk.rows.insert(place, row));
        disk.before_batch = Some(Work(Box::new(back)));
    };
    world.disk().before_batch = Some(Work(Box::new(late)));
    let rotation = vault.rotate_key().await.unwrap();
    assert!(world.disk().rows.values().all(|row| row.key == rotation.key));
    assert_eq!((rotation.resealed, world.disk().rows.len()), (100, 100));
}

/// X-F6: keys that are given from outside: a new one in front is the wish to change, and the old
/// ones are the giver's to remove.
#[tokio::test]
async fn a_given_key_is_rotated_only_with_a_new_given_key() {
    let (world, vault) = filled(100).await;
    world.disk().is_given = true;
    let error = vault.rotate_key().await.unwrap_err();
    assert!(matches!(error, VaultError::NoNewKey { .. }), "{error:?}");
    assert!(error.to_string().contains("openssl rand -hex 32"), "{error}");
    let old = world.disk().ring.clone().unwrap();
    let both = old.with(MasterKey::generate().unwrap()).unwrap();
    world.disk().ring = Some(both.clone());
    let vault = world.start().await.unwrap();
    let rotation = vault.rotate_key().await.unwrap();
    assert_eq!((rotation.resealed, rotation.is_resumed), (100, false));
    assert_eq!(rotation.unused, [old.current().id().clone()]);
    assert!(rotation.dropped.is_empty());
    assert_eq!(rotation.key, *both.current().id());
    // Once more is no harm.
    assert_eq!(vault.rotate_key().await.unwrap().resealed, 0);
    world.disk().ring = Some(KeyRing::new(both.current().clone()));
    assert_eq!(newest(&world.start().await.unwrap(), "S0").await.unwrap(), "value 50");
}
