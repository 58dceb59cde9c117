//! Values of secrets by version, and their public summaries.

use narthex_model::{ErrorKind, Secret, SecretReference, WorkspaceId};
use narthex_vault::{Put, VALUE_MAX, VERSIONS_KEPT, VaultError};

use crate::world::{World, name, newest, pinned, put, version, workspace};

#[tokio::test]
async fn values_survive_a_round_trip_through_the_vault() {
    let vault = World::default().start().await.unwrap();
    let long = "x".repeat(VALUE_MAX);
    for value in ["x", " ", "größe 🦀", "line\nline\r\n", "${A}", "\"\\", &long] {
        put(&vault, "A", value).await;
        assert_eq!(newest(&vault, "A").await.unwrap(), value);
    }
}

/// D10, X-M50, X-M29: a caller that has pinned a version sees that one, however often the secret is
/// set.
#[tokio::test]
async fn d10_a_pinned_version_is_unchanged_by_later_versions() {
    let vault = World::default().start().await.unwrap();
    assert_eq!(put(&vault, "A", "one").await, 1);
    let reference = SecretReference::newest(name("A"));
    let opened = vault.open(&WorkspaceId::default(), &reference).await.unwrap();
    assert_eq!(put(&vault, "A", "two").await, 2);
    assert_eq!(newest(&vault, "A").await.unwrap(), "two");
    assert_eq!(pinned(&vault, "A", opened.version.get()).await.unwrap(), "one");
}

/// D10: clearing takes pinned values away at once, and no later value gets their numbers.
#[tokio::test]
async fn d10_clearing_removes_pinned_values_and_numbers_are_not_reused() {
    let vault = World::default().start().await.unwrap();
    put(&vault, "A", "one").await;
    put(&vault, "A", "two").await;
    vault.clear(&WorkspaceId::default(), &name("A"), "admin").await.unwrap();
    for refused in [newest(&vault, "A").await, pinned(&vault, "A", 2).await] {
        assert!(matches!(refused, Err(VaultError::NotSet(_))), "{refused:?}");
    }
    let again = vault.clear(&WorkspaceId::default(), &name("A"), "admin").await.unwrap_err();
    assert_eq!(again.kind(), ErrorKind::NotFound);
    assert!(again.to_string().contains("nothing to clear"), "{again}");
    assert_eq!(put(&vault, "A", "three").await, 3);
    let gone = pinned(&vault, "A", 2).await.unwrap_err();
    assert!(matches!(gone, VaultError::VersionGone { .. }), "{gone:?}");
    let all = vault.list(&WorkspaceId::default()).await.unwrap();
    let kept: Vec<_> = all[0].versions.iter().map(|one| one.version.get()).collect();
    assert_eq!(kept, [3]);
}

/// D10.
#[tokio::test]
async fn only_the_newest_versions_of_a_secret_are_stored() {
    let vault = World::default().start().await.unwrap();
    for number in 1..=VERSIONS_KEPT + 1 {
        assert_eq!(put(&vault, "A", &number.to_string()).await, number);
    }
    assert!(matches!(pinned(&vault, "A", 1).await, Err(VaultError::VersionGone { .. })));
    assert_eq!(pinned(&vault, "A", 2).await.unwrap(), "2");
}

/// S18: names of one workspace are nothing in another.
#[tokio::test]
async fn s18_workspaces_have_secrets_of_their_own() {
    let vault = World::default().start().await.unwrap();
    put(&vault, "A", "here").await;
    let there = workspace("team");
    let reference = SecretReference::newest(name("A"));
    let opened = vault.open(&there, &reference).await;
    assert!(matches!(opened, Err(VaultError::NotSet(_))), "{opened:?}");
    assert!(vault.list(&there).await.unwrap().is_empty());
    let cleared = vault.clear(&there, &name("A"), "admin").await;
    assert!(matches!(cleared, Err(VaultError::NothingToClear(_))), "{cleared:?}");
    assert_eq!(newest(&vault, "A").await.unwrap(), "here");
}

#[tokio::test]
async fn an_unknown_workspace_is_reported() {
    let vault = World::default().start().await.unwrap();
    let (nowhere, of, value) = (workspace("nowhere"), name("A"), Secret::new("x"));
    let put = Put { workspace: &nowhere, name: &of, value: &value, by: "admin" };
    let errors = [
        vault.put(put).await.map(drop).unwrap_err(),
        vault.list(&nowhere).await.map(drop).unwrap_err(),
    ];
    for error in errors {
        assert!(matches!(error, VaultError::UnknownWorkspace(_)), "{error:?}");
        assert_eq!(error.kind(), ErrorKind::NotFound);
    }
}

#[tokio::test]
async fn unusable_values_of_secrets_are_refused() {
    let world = World::default();
    let vault = world.start().await.unwrap();
    let long = "x".repeat(VALUE_MAX + 1);
    for value in ["", "hunter2\0", &long] {
        let (here, of, value) = (WorkspaceId::default(), name("A"), Secret::new(value));
        let put = Put { workspace: &here, name: &of, value: &value, by: "admin" };
        let error = vault.put(put).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
    assert!(world.disk().rows.is_empty());
    assert_eq!(VALUE_MAX, 65_536);
}

/// S18, S27, X-E69: rows that were exchanged in the database do not open, and the error reports
/// that.
#[tokio::test]
async fn s18_moved_or_changed_rows_are_reported_as_damaged() {
    let world = World::default();
    let vault = world.start().await.unwrap();
    put(&vault, "A", "hunter2").await;
    put(&vault, "A", "hunter3").await;
    put(&vault, "B", "other").await;
    let (here, a, b) = (WorkspaceId::default(), name("A"), name("B"));
    let row = |of: &narthex_model::SecretName, number| {
        world.disk().rows[&((here.clone(), of.clone()), version(number))].sealed.clone()
    };
    let set = |of: &narthex_model::SecretName, number, sealed: String| {
        let place = ((here.clone(), of.clone()), version(number));
        world.disk().rows.get_mut(&place).unwrap().sealed = sealed;
    };
    let (first, second) = (row(&a, 1), row(&a, 2));
    // Rows of another name and of an earlier version, and cut ones.
    for wrong in [row(&b, 1), first.clone(), second[1..].to_owned(), String::new()] {
        set(&a, 2, wrong);
        let error = newest(&vault, "A").await.unwrap_err();
        assert!(matches!(error, VaultError::Damaged { .. }), "{error:?}");
        let told = format!("{error} {error:?}");
        assert!(told.contains("set the secret again") && !told.contains("hunter"), "{told}");
    }
    set(&a, 2, second);
    assert_eq!(newest(&vault, "A").await.unwrap(), "hunter3");
}

/// S27: neither the vault nor its values in transit print a value, and rows hold none.
#[tokio::test]
async fn s27_no_vault_type_prints_a_value() {
    let world = World::default();
    let vault = world.start().await.unwrap();
    let (here, of, value) = (WorkspaceId::default(), name("A"), Secret::new("canary-value"));
    let put = Put { workspace: &here, name: &of, value: &value, by: "admin" };
    let stored = vault.put(put).await.unwrap();
    let opened = vault.open(&here, &SecretReference::newest(of.clone())).await.unwrap();
    let listed = vault.list(&here).await.unwrap();
    let key = world.disk().ring.as_ref().unwrap().write().trim().to_owned();
    let shown = format!("{vault:?} {put:?} {stored:?} {opened:?} {listed:?} {world:?}");
    assert!(shown.contains("Secret(…)") && shown.contains("MasterKey("), "{shown}");
    assert!(!shown.contains("canary") && !shown.contains(&key), "{shown}");
}

#[tokio::test]
async fn concurrent_writers_of_a_secret_get_different_versions() {
    let world = World::default();
    let vault = world.start().await.unwrap();
    let other = world.start().await.unwrap();
    let mut setting = tokio::task::JoinSet::new();
    for number in 0..8 {
        let vault = if number % 2 == 0 { vault.clone() } else { other.clone() };
        setting.spawn(async move {
            let value = format!("value {number}");
            (put(&vault, "A", &value).await, value)
        });
    }
    let mut versions = std::collections::BTreeSet::new();
    while let Some(set) = setting.join_next().await {
        let (version, value) = set.unwrap();
        assert_eq!(pinned(&vault, "A", version).await.unwrap(), value);
        versions.insert(version);
    }
    assert_eq!(versions, (1..=8).collect());
}
