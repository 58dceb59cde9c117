//! The laws of edits, on random texts of each format.

use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::*;

/// A file: its format, its text, and the parent of its entries.
#[derive(Debug, Clone)]
pub(crate) struct File {
    pub(crate) format: Format,
    pub(crate) text: String,
    pub(crate) parent: Parent,
}

/// Random members of a map: names that differ, and a choice for each.
fn members(least: usize) -> impl Strategy<Value = Vec<(String, u8)>> {
    let names = prop::collection::btree_map("[a-f][a-z0-9_]{0,4}", any::<u8>(), least..5);
    names.prop_map(|map| map.into_iter().collect())
}

pub(crate) fn files() -> impl Strategy<Value = File> {
    prop_oneof![json_files(), toml_files(), yaml_files(), yaml_lists()]
}

/// Line end, end of the text, and indentation.
type Style = (&'static str, bool, usize);

fn styles() -> impl Strategy<Value = Style> {
    (select(vec!["\n", "\r\n"]), any::<bool>(), 1..5_usize)
}

/// The text with the line ends of a style.
fn finish(text: &str, (newline, has_end, _): Style) -> String {
    let text = if has_end { text } else { text.trim_end_matches('\n') };
    text.replace('\n', newline)
}

fn json_files() -> impl Strategy<Value = File> {
    (members(0), members(0), styles(), any::<[u8; 3]>()).prop_map(|(top, own, style, choice)| {
        let unit = " ".repeat(style.2);
        let is_commented = choice[0] % 2 == 0;
        let comment = |choice: u8, indent: &str| match choice % 5 {
            0 if is_commented => format!("{indent}// {choice}, \"x\": {{\n"),
            1 if is_commented => format!("\n{indent}/* {choice}\n }} */\n"),
            2 => "\n".to_owned(),
            _ => String::new(),
        };
        let lines = |members: &[(String, u8)], indent: &str, last: &str| {
            let mut text = String::new();
            for (at, (name, choice)) in members.iter().enumerate() {
                let value =
                    ["1", "\"}\"", "[1, {\"y\": null}]", "{ \"x\": [] }"][usize::from(*choice % 4)];
                let comma = if at + 1 < members.len() { "," } else { last };
                let after = if is_commented && choice % 7 == 0 { " // ," } else { "" };
                text.push_str(&comment(choice / 4, indent));
                text.push_str(&format!("{indent}\"{name}\": {value}{comma}{after}\n"));
            }
            text + &comment(choice[1], indent)
        };
        let last = if is_commented && choice[2] % 2 == 0 { "," } else { "" };
        let inner = format!("{unit}{unit}");
        let own = match own.is_empty() && choice[1] % 5 > 2 {
            true => "{}".to_owned(),
            false => format!("{{\n{}{unit}}}", lines(&own, &inner, last)),
        };
        let comma = if top.is_empty() { last } else { "," };
        let top = lines(&top, &unit, last);
        let text = format!("{{\n{unit}\"servers\": {own}{comma}\n{top}}}\n");
        let format = if is_commented { Format::Jsonc } else { Format::Json };
        File { format, text: finish(&text, style), parent: Parent::map(["servers"]) }
    })
}

fn toml_files() -> impl Strategy<Value = File> {
    (members(0), members(1), styles(), any::<[u8; 3]>()).prop_map(|(top, own, style, choice)| {
        let mut text = String::new();
        let value =
            |choice: u8| ["1", "'#'", "[1, # x\n  2]", "{ y = 1.5 }"][usize::from(choice % 4)];
        for (name, choice) in &top {
            text.push_str(["", "\n", "# c\n", "# d\n\n"][usize::from(choice / 4 % 4)]);
            text.push_str(&format!("top_{name} = {} # e\n", value(*choice)));
        }
        for (name, own) in &own {
            text.push_str(["\n", "\n\n", "\n# c\n", "# d\n\n"][usize::from(own / 4 % 4)]);
            text.push_str(&format!("[servers.{name}]\nx = {}\n", value(*own)));
            if own % 3 == 0 {
                text.push_str(&format!(
                    "\n[servers.{name}.env] # f\n'A b' = \"\"\"\n[x]\n\"\"\"\n"
                ));
            }
            if choice[0] % 3 == 0 {
                text.push_str(&format!("[other.{name}]\n# none\n"));
            }
        }
        text.push_str(["", "\n", "# end\n", "\n# end\n\n"][usize::from(choice[1] % 4)]);
        let parent = Parent::map(["servers"]);
        File { format: Format::Toml, text: finish(&text, style), parent }
    })
}

fn yaml_values(choice: u8, indent: &str) -> String {
    match choice % 5 {
        0 => " 1 # one\n".to_owned(),
        1 => format!("\n{indent}  # c\n{indent}  k: \"#\"\n"),
        2 => format!(" |\n{indent}  text # no comment\n\n{indent}  - more\n"),
        3 => " [a, {b: c}]\n".to_owned(),
        _ => format!("\n{indent}  - x\n{indent}  - y: 1\n{indent}    z:\n"),
    }
}

fn yaml_files() -> impl Strategy<Value = File> {
    (members(0), members(1), styles(), any::<u8>()).prop_map(|(top, own, style, choice)| {
        let unit = " ".repeat(style.2);
        let mut text = ["", "---\n", "# top\n"][usize::from(choice % 3)].to_owned();
        text.push_str("servers: # s\n");
        for (name, choice) in &own {
            text.push_str(
                &["", "\n", "# a\n"][usize::from(choice / 8 % 3)].replace('#', &format!("{unit}#")),
            );
            text.push_str(&format!("{unit}{name}:{}", yaml_values(*choice, &unit)));
        }
        for (name, choice) in &top {
            text.push_str(["", "\n", "# b\n"][usize::from(choice / 8 % 3)]);
            text.push_str(&format!("top_{name}:{}", yaml_values(*choice, "")));
        }
        let parent = Parent::map(["servers"]);
        File { format: Format::Yaml, text: finish(&text, style), parent }
    })
}

fn yaml_lists() -> impl Strategy<Value = File> {
    (members(0), members(1), styles(), any::<u8>()).prop_map(|(top, own, style, choice)| {
        let unit = " ".repeat(usize::from(choice % 3));
        let mut text = "servers:\n".to_owned();
        for (name, choice) in &own {
            let value = yaml_values(*choice, &format!("{unit}  "));
            text.push_str(&format!("{unit}- name: {name}\n{unit}  v:{value}"));
        }
        for (name, choice) in &top {
            text.push_str(&format!("top_{name}:{}", yaml_values(*choice, "")));
        }
        let parent = Parent::list(["servers"], "name");
        File { format: Format::Yaml, text: finish(&text, style), parent }
    })
}

fn values() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
        select(vec!["yes", "null", "1e3", "a: b", "# x", "- x", "'", "\u{2028}", "~", "0x1"])
            .prop_map(Value::from),
    ];
    let inner = scalar.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(".{0,5}", inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    });
    prop::collection::btree_map("[a-z]{1,4}|.{0,4}", inner, 0..4)
        .prop_map(|map| Value::Object(map.into_iter().filter(|(key, _)| key != "name").collect()))
}

/// Values in the order of the file, without the named entry.
fn others(document: &Document, parent: &Parent, name: &str) -> Vec<(String, Value)> {
    let mut entries = document.entries(parent).unwrap();
    entries.retain(|(own, _)| own != name);
    entries
}

/// True if one text is another one with more bytes.
fn is_part(part: &str, whole: &str) -> bool {
    let mut rest = whole.bytes();
    part.bytes().all(|byte| rest.any(|own| own == byte))
}

proptest! {
    /// An insertion adds bytes and the entry, and changes nothing else; a removal and an undo each
    /// lead back.
    #[test]
    fn an_insertion_is_undone(file in files(), value in values()) {
        let File { format, text, parent } = file;
        let before = read(format, &text);
        let mut document = before.clone();
        let change = document.insert(&parent, "narthex", &value).unwrap();
        let after = text_of(&document);
        let kept = text.replace("{}", "");
        prop_assert!(is_part(&kept, &after), "{after}");
        let entries = document.entries(&parent).unwrap();
        let (name, found) = entries.last().cloned().unwrap();
        prop_assert_eq!(name, "narthex");
        let expected = before.checked(&parent, "narthex", &value).unwrap();
        prop_assert_eq!(found, expected);
        prop_assert_eq!(others(&document, &parent, "narthex"), before.entries(&parent).unwrap());
        let mut removed = document.clone();
        removed.remove(&parent, "narthex").unwrap();
        // Only the spelling of an empty parent may differ.
        if !before.entries(&parent).unwrap().is_empty() {
            prop_assert_eq!(text_of(&removed), text.as_str());
        }
        prop_assert_eq!(document.undo(&change).unwrap(), Undone::Done);
        prop_assert_eq!(text_of(&document), text);
    }

    /// An edit of another writer, done between an edit and its undo, gives the same as the edit of
    /// the other writer alone.
    #[test]
    fn foreign_edits_are_kept(file in files(), value in values(), pick in any::<Index>()) {
        let File { format, text, parent } = file;
        let before = read(format, &text);
        let entries = before.entries(&parent).unwrap();
        prop_assume!(!entries.is_empty());
        let (other, _) = pick.get(&entries);
        let foreign = json!({ "foreign": [1, "two"] });
        let mut alone = before.clone();
        // An entry without a place of its own cannot be replaced, as keys with dots.
        prop_assume!(alone.replace(&parent, other, &foreign).is_ok());
        let mut document = before.clone();
        let change = document.insert(&parent, "narthex", &value).unwrap();
        document.replace(&parent, other, &foreign).unwrap();
        document = read(format, &text_of(&document));
        prop_assert_eq!(document.undo(&change).unwrap(), Undone::Done);
        prop_assert_eq!(text_of(&document), text_of(&alone));
    }

    /// Entries that others insert below or remove above stay inserted and removed.
    #[test]
    fn foreign_neighbours_are_kept(file in files(), value in values(), pick in any::<Index>()) {
        let File { format, text, parent } = file;
        let mut document = read(format, &text);
        let change = document.insert(&parent, "narthex", &value).unwrap();
        document.insert(&parent, "foreign", &json!({ "x": { "y": 1 } })).unwrap();
        let old = others(&document, &parent, "narthex");
        let (gone, _) = pick.get(&old);
        document.remove(&parent, gone).unwrap();
        let expected = others(&document, &parent, "narthex");
        let comments: Vec<_> = document.comments().map(str::to_owned).collect();
        prop_assert_eq!(document.undo(&change).unwrap(), Undone::Done);
        prop_assert_eq!(document.entries(&parent).unwrap(), expected);
        let kept: Vec<_> = document.comments().map(str::to_owned).collect();
        prop_assert_eq!(kept, comments);
    }

    /// Comment lines of others at any line stay, and never break the text.
    #[test]
    fn foreign_comments_are_kept(file in files(), value in values(), pick in any::<Index>()) {
        let File { format, text, parent } = file;
        prop_assume!(format != Format::Json);
        let mut document = read(format, &text);
        let change = document.insert(&parent, "narthex", &value).unwrap();
        let after = text_of(&document);
        let starts: Vec<_> =
            std::iter::once(0).chain(after.match_indices('\n').map(|(at, _)| at + 1)).collect();
        let at = *pick.get(&starts);
        let mark = if format == Format::Jsonc { "// foreign\n" } else { "# foreign\n" };
        let edited = format!("{}{mark}{}", &after[..at], &after[at..]);
        // Within a text of several lines it is no comment.
        let Ok(mut document) = Document::parse(format, edited.as_bytes()) else { return Ok(()) };
        prop_assume!(document.comments().any(|comment| comment == mark.trim_end()));
        let outcome = document.undo(&change).unwrap();
        let left = text_of(&document);
        prop_assert!(left.contains(mark.trim_end()), "{left}");
        match outcome {
            Undone::Done => {
                let old = read(format, &text).entries(&parent).unwrap();
                prop_assert_eq!(document.entries(&parent).unwrap(), old);
            }
            outcome => {
                prop_assert_eq!(outcome, Undone::Changed);
                prop_assert_eq!(left, edited);
            }
        }
    }

    /// A removal and a replacement keep all other entries, and are undone.
    #[test]
    fn removals_are_undone(file in files(), value in values(), pick in any::<Index>()) {
        let File { format, text, parent } = file;
        let before = read(format, &text);
        let entries = before.entries(&parent).unwrap();
        prop_assume!(!entries.is_empty());
        let (name, _) = pick.get(&entries);
        let mut document = before.clone();
        let change = document.remove(&parent, name).unwrap();
        let left = text_of(&document).replace(" {}", "").replace(" []", "");
        prop_assert!(is_part(&left, &text), "{left}");
        prop_assert_eq!(document.entries(&parent).unwrap(), others(&before, &parent, name));
        prop_assert_eq!(document.undo(&change).unwrap(), Undone::Done);
        prop_assert_eq!(text_of(&document), text.as_str());
        if let Ok(change) = document.replace(&parent, name, &value) {
            prop_assert_eq!(others(&document, &parent, name), others(&before, &parent, name));
            prop_assert_eq!(document.undo(&change).unwrap(), Undone::Done);
            prop_assert_eq!(text_of(&document), text);
        }
    }

    /// No text makes a parser panic, and what is read can be edited or refused.
    #[test]
    fn no_text_panics(
        text in "[\\[\\]{}:,\"'#/*&!|>?a1.=~\\\\ \t\r\n-]{0,40}|\\PC{0,20}",
        format in select(vec![Format::Json, Format::Jsonc, Format::Toml, Format::Yaml]),
    ) {
        let Ok(document) = Document::parse(format, text.as_bytes()) else { return Ok(()) };
        prop_assert_eq!(document.bytes(), text.as_bytes());
        for parent in [Parent::map([]), Parent::map(["a"]), Parent::list(["a"], "1")] {
            let mut edited = document.clone();
            if let Ok(change) = edited.insert(&parent, "narthex", &server()) {
                prop_assert_eq!(edited.undo(&change).unwrap(), Undone::Done);
                prop_assert_eq!(edited.bytes(), text.as_bytes());
            }
            for (name, _) in document.entries(&parent).unwrap_or_default() {
                let mut edited = document.clone();
                let _outcome = edited.replace(&parent, &name, &server());
                let mut edited = document.clone();
                if let Ok(change) = edited.remove(&parent, &name) {
                    prop_assert_eq!(edited.undo(&change).unwrap(), Undone::Done);
                    prop_assert_eq!(edited.bytes(), text.as_bytes());
                }
            }
        }
    }
}
