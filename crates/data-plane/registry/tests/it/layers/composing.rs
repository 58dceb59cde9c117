//! The laws of putting layers together.

use narthex_model::{CallError, CallErrorKind, ConfigFault, Provenance};
use narthex_registry::{
    config::{Entry, Env, LoadContext, parse},
    layers::{Layer, compose},
};
use proptest::prelude::*;

use super::*;

fn entries(text: &str) -> Vec<Entry> {
    let context = LoadContext {
        file: Path::new("mcp.json"),
        workspace_root: Path::new("/repo"),
        env: Env::Values(&|_| None),
    };
    parse(text.as_bytes(), &context).unwrap().entries
}

fn layer(provenance: Provenance, entries: Vec<Entry>) -> Layer {
    Layer { provenance, file: None, entries }
}

/// E12, E139, E140: entries of different names load side by side; of one name, only the project's
/// entry counts.
#[test]
fn e12_the_project_wins_whole_and_the_rest_loads_together() {
    let global = r#"{ "servers": {
        "both": { "transport": "http", "url": "https://a.test", "timeoutMs": 5000 },
        "mine": { "transport": "stdio", "command": "true", "args": ["1"] } } }"#;
    let project = r#"{ "servers": {
        "here": { "transport": "stdio", "command": "true", "args": ["2"] },
        "both": { "transport": "stdio", "command": "true", "args": ["3"] } } }"#;
    let list = compose(&[
        layer(Provenance::Settings, entries(global)),
        layer(Provenance::Workspace, entries(project)),
    ]);
    assert_eq!(short(&list), ["both!", "mine=1", "here=2", "both=3"]);
    let provenance: Vec<&str> = list.iter().map(|entry| entry.provenance.as_str()).collect();
    assert_eq!(provenance, ["settings", "settings", "workspace", "workspace"]);
    let Entry::Server(both) = &list[3].entry else { panic!("{:?}", list[3]) };
    assert_eq!(both.timeout, None, "no field of the hidden entry is mixed in");
}

/// E12, E117: the fault of the project's entry is reported; the settings' entry does not replace
/// it.
#[test]
fn e12_a_faulty_project_entry_hides_a_valid_global_entry() {
    let list = compose(&[
        layer(Provenance::Settings, entries(&project("x", "1"))),
        layer(Provenance::Workspace, entries(r#"{ "servers": { "x": { "transport": "http" } } }"#)),
    ]);
    assert_eq!(short(&list), ["x!", "x?"]);
}

/// E139: an entry that a program adds is the strongest, and only settings in a file are editable.
#[test]
fn e139_an_entry_of_a_program_is_the_strongest() {
    let file: Arc<Path> = Path::new("/s.json").into();
    let list = compose(&[
        Layer {
            file: Some(file.clone()),
            ..layer(Provenance::Settings, entries(&project("x", "1")))
        },
        Layer { file: Some(file), ..layer(Provenance::Workspace, entries(&project("x", "2"))) },
        layer(Provenance::Programmatic, entries(&project("x", "3"))),
    ]);
    assert_eq!(short(&list), ["x!", "x!", "x=3"]);
    let editable: Vec<bool> = list.iter().map(Declared::is_editable).collect();
    assert_eq!(editable, [true, false, false]);
}

/// Entries distinguished by their message.
fn layers() -> impl Strategy<Value = Vec<Layer>> {
    let entry = ("[a-d]", any::<u16>()).prop_map(|(name, number)| {
        let error = CallError {
            kind: CallErrorKind::TransportError,
            message: number.to_string(),
            details: None,
        };
        Entry::Fault(ConfigFault { name, error })
    });
    let entries = prop::collection::vec(entry, 0..6);
    let provenance = prop_oneof![
        Just(Provenance::Settings),
        Just(Provenance::Workspace),
        Just(Provenance::Programmatic),
    ];
    let layer = (provenance, entries).prop_map(|(provenance, entries)| layer(provenance, entries));
    prop::collection::vec(layer, 0..4)
}

proptest! {
    /// E140: the list keeps every entry in its order.
    #[test]
    fn e140_the_list_has_every_entry_in_order(layers in layers()) {
        let list = compose(&layers);
        let given: Vec<_> = layers.iter()
            .flat_map(|layer| layer.entries.iter().map(|entry| (layer.provenance, entry.clone())))
            .collect();
        let got: Vec<_> = list.into_iter().map(|entry| (entry.provenance, entry.entry)).collect();
        prop_assert_eq!(got, given);
    }

    /// One entry of each name is in effect: the first of the last layer that has the name.
    #[test]
    fn e12_one_entry_of_each_name_counts(layers in layers()) {
        let list = compose(&layers);
        for name in ["a", "b", "c", "d"] {
            let counting: Vec<_> = list.iter()
                .filter(|entry| entry.name() == name && !entry.is_overridden)
                .map(|entry| &entry.entry)
                .collect();
            let expected = layers.iter().rev()
                .find_map(|layer| layer.entries.iter().find(|entry| entry.name() == name));
            prop_assert_eq!(counting, expected.into_iter().collect::<Vec<_>>());
        }
    }

    /// E131: an empty layer changes nothing, at any place in the order.
    #[test]
    fn e131_an_empty_layer_changes_nothing(layers in layers(), at in any::<prop::sample::Index>()) {
        let mut more = layers.clone();
        more.insert(at.index(layers.len() + 1), layer(Provenance::Settings, Vec::new()));
        prop_assert_eq!(compose(&more), compose(&layers));
    }
}
