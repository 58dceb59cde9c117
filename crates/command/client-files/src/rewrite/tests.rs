//! Laws of several edits at once, on random texts of each format.

use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::json;

use super::*;
use crate::edit::tests::laws::{File, files};

/// The edits of a set-up: the entries that the bits choose leave, and one comes.
fn edits(document: &Document, parent: &Parent, chosen: u8) -> Vec<Edit> {
    let entries = document.entries(parent).unwrap().into_iter().enumerate();
    let leaving = entries.filter(|(at, _)| chosen & (1 << (at % 8)) != 0);
    let mut edits: Vec<_> =
        leaving.map(|(_, (name, _))| Edit::Remove { parent: parent.clone(), name }).collect();
    let value = json!({ "command": "/bin/narthex", "args": ["connect"] });
    edits.push(Edit::Insert { parent: parent.clone(), name: "narthex".to_owned(), value });
    edits
}

/// The record as it comes back from a file.
fn stored(made: &Made) -> Made {
    serde_json::from_str(&serde_json::to_string(made).unwrap()).unwrap()
}

/// Entries by their names.
fn sorted(document: &Document, parent: &Parent) -> Vec<(String, Value)> {
    let mut entries = document.entries(parent).unwrap();
    entries.sort_by(|one, two| one.0.cmp(&two.0));
    entries
}

proptest! {
    #[test]
    fn a_rewrite_is_taken_back_byte_for_byte(file in files(), chosen in any::<u8>()) {
        let File { format, text, parent } = file;
        let document = parse(format, text.as_bytes()).unwrap();
        // A file that cannot be edited in part is not edited at all.
        let Ok(new) = rewrite(&document, &edits(&document, &parent, chosen)) else {
            return Ok(());
        };
        let after = Document::parse(new.made.changes[0].format(), &new.bytes).unwrap();
        let entries = after.entries(&parent).unwrap();
        prop_assert_eq!(entries.last().map(|(name, _)| name.as_str()), Some("narthex"));
        let back = take_back(&new.bytes, &stored(&new.made), &|_, _| false).unwrap();
        prop_assert_eq!(back.kept, [""; 0]);
        prop_assert_eq!(String::from_utf8(back.bytes).unwrap(), text);
    }

    /// An entry that another program writes meanwhile stays, and so do all entries from before.
    #[test]
    fn foreign_entries_outlive_a_rewrite(
        file in files(),
        chosen in any::<u8>(),
        pick in any::<Index>(),
    ) {
        let File { format, text, parent } = file;
        let before = parse(format, text.as_bytes()).unwrap();
        let Ok(new) = rewrite(&before, &edits(&before, &parent, chosen)) else { return Ok(()) };
        let mut foreign = Document::parse(new.made.changes[0].format(), &new.bytes).unwrap();
        foreign.insert(&parent, "foreign", &json!({ "mark": "kept-4711" })).unwrap();
        let mut others = foreign.entries(&parent).unwrap();
        others.retain(|(name, _)| name != "narthex" && name != "foreign");
        let mut expected = sorted(&before, &parent);
        // One of the entries that stayed is changed as well.
        if !others.is_empty() {
            let (name, _) = pick.get(&others);
            let value = json!({ "mark": "changed-4712" });
            if foreign.replace(&parent, name, &value).is_ok() {
                let changed = foreign.entries(&parent).unwrap();
                let changed = changed.into_iter().find(|(own, _)| own == name).unwrap();
                expected.retain(|(own, _)| own != name);
                expected.push(changed);
            }
        }
        expected.extend(foreign.entries(&parent).unwrap().into_iter().filter(|(name, _)| {
            name == "foreign"
        }));
        expected.sort_by(|one, two| one.0.cmp(&two.0));
        let back = take_back(&foreign.bytes(), &stored(&new.made), &|_, _| false).unwrap();
        prop_assert_eq!(back.kept, [""; 0]);
        let left = Document::parse(new.made.changes[0].format(), &back.bytes).unwrap();
        prop_assert_eq!(sorted(&left, &parent), expected);
        prop_assert!(String::from_utf8(back.bytes).unwrap().contains("kept-4711"));
    }

    /// A line of another writer at any place stays, whatever the undo can do.
    #[test]
    fn foreign_comments_outlive_a_rewrite(
        file in files(),
        chosen in any::<u8>(),
        pick in any::<Index>(),
    ) {
        let File { format, text, parent } = file;
        prop_assume!(format != Format::Json);
        let before = parse(format, text.as_bytes()).unwrap();
        let Ok(new) = rewrite(&before, &edits(&before, &parent, chosen)) else { return Ok(()) };
        let after = String::from_utf8(new.bytes).unwrap();
        let starts: Vec<_> =
            std::iter::once(0).chain(after.match_indices('\n').map(|(at, _)| at + 1)).collect();
        let at = *pick.get(&starts);
        let mark = if format == Format::Jsonc { "// foreign\n" } else { "# foreign\n" };
        let edited = format!("{}{mark}{}", &after[..at], &after[at..]);
        let Ok(foreign) = Document::parse(format, edited.as_bytes()) else { return Ok(()) };
        // Within a text of several lines the mark is no comment.
        let own = Document::parse(format, after.as_bytes()).unwrap();
        prop_assume!(foreign.value(&[]).unwrap() == own.value(&[]).unwrap());
        // An undo that cannot be made leaves the file as it is.
        let back = take_back(edited.as_bytes(), &new.made, &|_, _| true);
        let Ok(back) = back else { return Ok(()) };
        let left = String::from_utf8(back.bytes).unwrap();
        prop_assert!(left.contains(mark.trim_end()), "{left}");
        if back.kept.is_empty() {
            let document = Document::parse(format, left.as_bytes()).unwrap();
            prop_assert_eq!(sorted(&document, &parent), sorted(&before, &parent));
        }
    }
}

/// A text that is replaced leaves its entry as it is written, with all comments, and comes back
/// beside edits of others.
#[test]
fn a_replaced_text_leaves_the_rest_of_its_entry() {
    let before = "{\n  \"mcp\": { \"servers\": {\n    \"a\": { \"command\": \"a\", // mine\n      \
                  \"env\": { \"KEY\": \"1a\", \"LOG\": \"x\" } /* old: 0a */ },\n  } },\n}\n";
    let document = parse(Format::Jsonc, before.as_bytes()).unwrap();
    let parent = Parent::map(["mcp", "servers", "a", "env"]);
    let edit = Edit::Replace { parent, name: "KEY".to_owned(), value: json!("${secret:A_KEY}") };
    let Rewritten { bytes, made } = rewrite(&document, &[edit]).unwrap();
    let after = String::from_utf8(bytes).unwrap();
    assert_eq!(after, before.replace("1a", "${secret:A_KEY}"));

    let edited = after.replace("\"LOG\"", "\"DEBUG\": \"1\", \"LOG\"");
    let back = take_back(edited.as_bytes(), &made, &|_, _| false).unwrap();
    assert_eq!(back.kept, [""; 0]);
    assert_eq!(String::from_utf8(back.bytes).unwrap(), edited.replace("${secret:A_KEY}", "1a"));

    // Without the entry, or with another value in the place of its map, nothing comes back.
    for servers in [json!({}), json!({ "a": { "env": null } })] {
        let text = json!({ "mcp": { "servers": servers } }).to_string();
        let back = take_back(text.as_bytes(), &made, &|_, _| false).unwrap();
        assert_eq!((back.kept, back.bytes), (vec!["KEY".to_owned()], text.into_bytes()));
    }
}

/// The earlier lines end without a line break, and are indented differently from the foreign ones.
#[test]
fn a_foreign_entry_behind_earlier_lines_without_an_end_stays() {
    let text = "servers: # s\n\n    a: [a, {b: c}]\n    d: 1 # one";
    let parent = Parent::map(["servers"]);
    let before = parse(Format::Yaml, text.as_bytes()).unwrap();
    let new = rewrite(&before, &edits(&before, &parent, 19)).unwrap();
    let mut foreign = Document::parse(Format::Yaml, &new.bytes).unwrap();
    foreign.insert(&parent, "foreign", &json!({ "mark": "kept-4711" })).unwrap();
    let back = take_back(&foreign.bytes(), &stored(&new.made), &|_, _| false).unwrap();
    let left = Document::parse(Format::Yaml, &back.bytes).unwrap();
    let mut expected = sorted(&before, &parent);
    expected.push(("foreign".to_owned(), json!({ "mark": "kept-4711" })));
    assert_eq!(sorted(&left, &parent), expected, "{}", String::from_utf8_lossy(&back.bytes));
}
