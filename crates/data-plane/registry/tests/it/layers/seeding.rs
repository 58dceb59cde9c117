//! Seeds default servers into the settings file.

use std::collections::BTreeSet;

use narthex_model::Alias;
use narthex_registry::layers::{DefaultServer, Seeding, seed};
use proptest::prelude::*;

use super::*;

fn aliases(names: &str) -> BTreeSet<Alias> {
    names.split_whitespace().map(|name| Alias::new(name).unwrap()).collect()
}

fn names(names: &str) -> BTreeSet<String> {
    names.split_whitespace().map(str::to_owned).collect()
}

fn defaults(names: &str) -> Vec<DefaultServer> {
    let default = |name| DefaultServer { name: Alias::new(name).unwrap(), entry: server(name) };
    names.split_whitespace().map(default).collect()
}

fn added(seeding: &Seeding<'_>) -> Vec<String> {
    seeding.add.iter().map(|default| default.name.to_string()).collect()
}

/// E146: a default is added once per name, never over a hand-made entry, and never again. Defaults
/// of later versions are added.
#[test]
fn e146_a_default_is_seeded_once() {
    let first = defaults("git time");
    let seeding = seed(&aliases(""), &names("time other"), &first);
    assert_eq!(added(&seeding), ["git"]);
    assert_eq!(seeding.seeded, aliases("git time"));
    // Both defaults were removed; a later version has one more default.
    let later = defaults("git memory time");
    let seeding = seed(&seeding.seeded, &names("other"), &later);
    assert_eq!(added(&seeding), ["memory"]);
    assert_eq!(seeding.seeded, aliases("git memory time"));
}

/// E146: an entry that is faulty is a person's own as well.
#[tokio::test]
async fn e146_a_faulty_entry_of_the_name_is_not_overwritten() {
    let world = World::new();
    fs_err::write(world.settings(), r#"{ "mcp": { "servers": { "git": 7 } } }"#).unwrap();
    let file =
        narthex_registry::layers::SettingsFile::new(&world.settings(), &world.root, variables());
    let defaults = defaults("git time");
    let seeding = seed(&aliases(""), &file.names().await.unwrap(), &defaults);
    assert_eq!(added(&seeding), ["time"]);
}

proptest! {
    /// E146: over any number of starts, each default is added at most once, whatever is removed in
    /// between.
    #[test]
    fn e146_no_default_is_seeded_twice(
        versions in prop::collection::vec("([a-e] ){0,4}", 1..5), own in "([a-e] ){0,3}",
        is_removed in any::<bool>(),
    ) {
        let own = names(&own);
        let mut present = own.clone();
        let mut seeded = BTreeSet::new();
        let mut all = Vec::new();
        for version in &versions {
            let defaults = defaults(version);
            let seeding = seed(&seeded, &present, &defaults);
            let add = added(&seeding);
            prop_assert!(add.iter().all(|name| !present.contains(name)));
            all.extend(add.iter().cloned());
            seeded = seeding.seeded;
            if is_removed { present.clear() } else { present.extend(add) }
        }
        let unique: BTreeSet<&String> = all.iter().collect();
        prop_assert_eq!(unique.len(), all.len());
        if !is_removed {
            let mut expected = own;
            expected.extend(versions.iter().flat_map(|version| names(version)));
            prop_assert_eq!(present, expected);
        }
    }
}
