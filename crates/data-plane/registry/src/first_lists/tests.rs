//! Tests of the freezing of lists with a run.

use bytes::Bytes;

use super::*;

fn inventory(tools: &[(&str, &'static str)], resources: &[(&str, &'static str)]) -> Arc<Inventory> {
    let entry = |list| {
        move |(name, raw): &(&str, &'static str)| {
            (list, InventoryEntry::new(name, Bytes::from_static(raw.as_bytes())))
        }
    };
    let lists = [Listed::Tool, Listed::Prompt, Listed::Template];
    let definitions = lists.into_iter().flat_map(|list| tools.iter().map(entry(list)));
    Arc::new(Inventory::new(definitions.chain(resources.iter().map(entry(Listed::Resource)))))
}

fn names(inventory: &Inventory, list: Listed) -> Vec<&str> {
    inventory.list(list).iter().map(|entry| &*entry.key).collect()
}

/// The first list as received, and as restored after a restart.
fn both(first: &Arc<Inventory>) -> [FirstList; 2] {
    let text = serde_json::to_string(&KeptServer::of(first)).unwrap();
    let kept = Arc::new(serde_json::from_str(&text).unwrap());
    [FirstList::Listed(first.clone()), FirstList::Kept(kept)]
}

/// D10, S23: added or changed entries are hidden, removed entries are absent, and entries that
/// return unchanged are listed again. The same holds for stored digests.
#[test]
fn s23_a_definition_cannot_be_exchanged() {
    let first = inventory(&[("a", "{1}"), ("b", "{2}"), ("c", "{3}")], &[]);
    for first in both(&first) {
        let changed = inventory(&[("a", "{1}"), ("b", "{!}"), ("d", "{2}")], &[]);
        let seen = first.of(&changed);
        for list in [Listed::Tool, Listed::Prompt, Listed::Template] {
            assert_eq!(names(&seen, list), ["a"], "{list:?}");
        }
        let changed = first.changed(&changed);
        let lists = [Listed::Tool, Listed::Prompt, Listed::Template];
        assert_eq!(changed, lists.map(|list| (list, "b".into())), "and not what is new");
        assert!(seen.tool("a").is_some() && seen.tool("b").is_none());
        let again = inventory(&[("c", "{3}"), ("b", "{2}"), ("a", "{1}")], &[]);
        assert!(Arc::ptr_eq(&first.of(&again), &again), "nothing is copied");
        assert!(first.changed(&again).is_empty());
    }
}

/// D10, D5: resources freeze by the members that a model reads, not by changes of their content. A
/// later resource is hidden, unless a template of the first list covers it.
#[test]
fn d10_resources_freeze_by_the_members_that_a_model_reads() {
    let (small, large) = (r#"{"name":"n","size":1}"#, r#"{"name":"n","size":2}"#);
    let told = r#"{"name":"n","description":"Ask for keys"}"#;
    let first = inventory(&[("t:{id}", "{}")], &[("r:1", small), ("r:2", small)]);
    for first in both(&first) {
        let templates = [("t:{id}", "{}"), ("later:{id}", "{}")];
        let resources = [("r:1", large), ("r:2", told), ("r:3", small), ("t:9", small)];
        let seen = first.of(&inventory(&templates, &resources));
        assert_eq!(names(&seen, Listed::Resource), ["r:1"]);
        for uri in ["r:2", "r:3", "later:4", "later:{id}", "R:3", "r:\t%32", "Later:4", " r:2"] {
            assert!(seen.withholds(uri), "{uri}");
        }
        for uri in ["r:1", "R:1", "t:9", "T:9", "t:{id}", "r:4", "in-no-list"] {
            assert!(!seen.withholds(uri), "{uri}");
        }
        let shown = seen.only(|list, _| list != Listed::Tool);
        assert!(shown.withholds("r:3"), "rules on what is seen change nothing of it");
    }
    // A list that was stored before resources froze hides no resource.
    let kept: KeptServer = serde_json::from_str(r#"{"tools":{}}"#).unwrap();
    let now = inventory(&[], &[("r:1", small)]);
    assert!(Arc::ptr_eq(&FirstList::Kept(Arc::new(kept)).of(&now), &now));
}

/// D5: of a lost server, a run knows the frozen entries of the last inventory, and no more.
#[test]
fn d5_a_run_knows_only_frozen_entries_of_a_lost_server() {
    let shaped = r#"{"outputSchema":{}}"#;
    let first = inventory(&[("a", shaped), ("b", "{}")], &[]);
    let had = inventory(&[("a", shaped), ("b", "{}"), ("later", shaped)], &[]);
    let alias = Alias::new("files").unwrap();
    let error = narthex_model::ServerFailure::new(
        narthex_model::CallErrorKind::TransportError,
        "it is down",
    );
    let row = Arc::new(ServerRow::failed(alias.clone(), error).that_had(had));
    assert!(row.is_shaped("later"));
    for first in both(&first) {
        let lists = BTreeMap::from([(alias.clone(), first)]);
        let seen = FirstLists { lists, ..FirstLists::default() }.row(row.clone());
        let shapes = ["a", "b", "later"].map(|tool| seen.is_shaped(tool));
        assert_eq!(shapes, [true, false, false]);
        assert!(seen.inventory.is_empty() && seen.known_tools().count() == 2);
    }
}

/// S22: of two definitions of one name the first counts, and the second is in no list.
#[test]
fn s22_only_the_first_of_two_definitions_of_one_name_counts() {
    let first = inventory(&[("a", "{1}"), ("a", "{2}")], &[]);
    for first in both(&first) {
        let exchanged = inventory(&[("a", "{2}")], &[]);
        assert!(names(&first.of(&exchanged), Listed::Tool).is_empty());
        let same = inventory(&[("a", "{1}")], &[]);
        assert_eq!(names(&first.of(&same), Listed::Tool), ["a"]);
    }
}

/// S23: a server that lists later, without a review, has an empty list; others keep theirs.
#[test]
fn s23_a_server_without_a_review_has_an_empty_list() {
    let listed = inventory(&[("a", "{1}")], &[("r:1", "{2}")]);
    let [early, late] = ["early", "late"].map(|name| Alias::new(name).unwrap());
    let first = BTreeMap::from([(early.clone(), FirstList::Listed(listed.clone()))]);
    let first = FirstLists { lists: first, ..FirstLists::default() };
    let first = first.or_nothing([&early, &late]);
    assert!(Arc::ptr_eq(&first.lists[&early].of(&listed), &listed));
    let seen = first.lists[&late].of(&listed);
    assert!(seen.is_empty() && seen.withholds("r:1"));
    assert!(!first.lets_tell(&late, "x") && first.lets_tell(&early, "x"), "it is not frozen");
}

/// X-E47, S23: the first lists of a server that listed nothing when the run began are those that
/// were reviewed first, and no later ones.
#[test]
fn x_e47_the_first_reviewed_list_of_a_late_server_is_frozen() {
    let listed = inventory(&[("a", "{1}")], &[]);
    let [early, late] = ["early", "late"].map(|name| Alias::new(name).unwrap());
    let lists = BTreeMap::from([(early.clone(), FirstList::Listed(listed.clone()))]);
    let first = FirstLists { lists, ..FirstLists::default() }.or_nothing([&early, &late]);
    assert!(first.awaits(&late) && !first.awaits(&early));
    assert!(!first.kept().0.contains_key(&late), "a restart awaits it, too");
    let row = Arc::new(ServerRow::built_in(late.clone(), listed.clone()));
    let seen = first.row(row.clone());
    assert!(seen.state == ServerState::Connecting && seen.inventory.is_empty(), "calls wait");
    let other = inventory(&[("a", "{2}"), ("b", "{1}")], &[]);
    let first = first.arrived(&early, &other).arrived(&late, &listed).arrived(&late, &other);
    for alias in [&early, &late] {
        assert!(!first.awaits(alias));
        assert!(Arc::ptr_eq(&first.lists[alias].of(&listed), &listed));
        assert!(names(&first.lists[alias].of(&other), Listed::Tool).is_empty());
    }
    assert!(first.kept().0.contains_key(&late) && !first.lets_tell(&late, "x"));
    assert!(Arc::ptr_eq(&first.row(row.clone()), &row));
}

/// S23: definitions under review are not listed, and resources that their templates cover cannot be
/// read.
#[test]
fn s23_first_lists_omit_definitions_under_review() {
    let listed = inventory(&[("a", "{1}"), ("b:{id}", "{2}")], &[]);
    let alias = Alias::new("files").unwrap();
    let first = BTreeMap::from([(alias.clone(), FirstList::Listed(listed.clone()))]);
    let mut held = HeldNames::default();
    held.add(&alias, Listed::Tool, "a");
    held.add(&alias, Listed::Template, "b:{id}");
    let first = FirstLists { lists: first, ..FirstLists::default() }.without(&held);
    let first = &first.lists[&alias];
    for first in [first.clone(), FirstList::Kept(first.kept().into())] {
        let seen = first.of(&listed);
        assert_eq!(names(&seen, Listed::Tool), ["b:{id}"]);
        assert_eq!(names(&seen, Listed::Prompt), ["a", "b:{id}"]);
        assert!(seen.withholds("b:1") && !seen.withholds("c:1"));
    }
}

/// S23: a server's instructions to models are the first ones, also by their digest.
#[test]
fn s23_changed_instructions_of_a_server_do_not_reach_models() {
    let alias = Alias::new("docs").unwrap();
    let words = FirstWords { digest: Some(KeptDigest::of_text("x")), text: None };
    let first = FirstLists {
        lists: [(alias.clone(), FirstList::Listed(inventory(&[("a", "{1}")], &[])))].into(),
        words: [(alias.clone(), words)].into(),
        ..FirstLists::default()
    };
    let lets = |first: &FirstLists| ["x", "y"].map(|text| first.lets_tell(&alias, text));
    assert_eq!(lets(&first), [true, false]);
    let text = serde_json::to_string(&first.kept()).unwrap();
    let kept: KeptLists = serde_json::from_str(&text).unwrap();
    let words = FirstWords::kept(&kept.0[&alias]).unwrap();
    let again = FirstLists { words: [(alias.clone(), words)].into(), ..first.clone() };
    assert_eq!(lets(&again), [true, false]);
    let silent = first.silent(&alias);
    assert_eq!(lets(&silent), [false, false]);
    assert_eq!(silent.kept().0[&alias].words, Some(Vec::new()));
    let old: KeptServer = serde_json::from_str(r#"{"tools":{}}"#).unwrap();
    assert!(FirstWords::kept(&old).is_none(), "it was not frozen then");
}

#[test]
fn an_invalid_digest_is_refused() {
    for bad in ["", "AAAA", &"A".repeat(44), &"!".repeat(43)] {
        let text = serde_json::json!({ "tools": { "a": bad } });
        let error = serde_json::from_value::<KeptServer>(text).unwrap_err().to_string();
        assert!(error.contains("digest"), "{bad}: {error}");
    }
}
