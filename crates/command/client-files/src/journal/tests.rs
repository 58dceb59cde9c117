//! Tests of the record: undo at each moment, after foreign edits, and after kills.

use std::process::Command;

use fs_err as fs;
use serde_json::json;

use super::*;
use crate::edit::{Format, Parent};
use crate::moment::Change;
use crate::moment::tests::{end_at, passed_so_far, report_as_failed};
use crate::rewrite::{Edit, parse, rewrite};

/// Variables of a process that is killed: its place, the moment, and the word for an undo.
const PLACE: &str = "NARTHEX_TEST_PLACE";
const MOMENT: &str = "NARTHEX_TEST_MOMENT";
const UNDO: &str = "NARTHEX_TEST_UNDO";

const FILES: [(&str, Format, &str, &str); 3] = [
    (
        "a.json",
        Format::Jsonc,
        "s",
        "{\n  // mine\n  \"s\": {\n    \"x\": {\"k\": 1}, // one\n    \"y\": {},\n  },\n}\n",
    ),
    ("b.toml", Format::Toml, "s", "m = 1 # mine\n\n[s.x] # one\nk = 1\n\n[s.y]\nk = 2\n"),
    ("c.yaml", Format::Yaml, "s", "# mine\ns:\n  x: {k: 1} # one\n  y:\n    k: 2\nz: 1\n"),
];

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir(place.folder.path().join("home")).unwrap();
        for (name, _, _, text) in FILES {
            fs::write(home(place.folder.path()).join(name), text).unwrap();
        }
        place
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(home(self.path()).join(name)).unwrap()
    }

    /// All files are as they were, and there is no other one.
    #[track_caller]
    fn is_untouched(&self) {
        for (name, _, _, text) in FILES {
            assert_eq!(self.text(name), text, "{name}");
        }
        let names = fs::read_dir(home(self.path())).unwrap();
        let mut names: Vec<_> =
            names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        assert_eq!(names, FILES.map(|(name, ..)| name));
    }
}

fn home(place: &Path) -> PathBuf {
    place.join("home")
}

fn journal(place: &Path) -> Journal {
    Journal::open(&place.join("setup")).unwrap()
}

/// The content of a file after the edits of a set-up.
fn new(format: Format, key: &str, text: &str) -> Rewritten {
    let parent = Parent::map([key]);
    let document = parse(format, text.as_bytes()).unwrap();
    let value = json!({ "command": "narthex" });
    let edits = [
        Edit::Remove { parent: parent.clone(), name: "x".to_owned() },
        Edit::Remove { parent: parent.clone(), name: "y".to_owned() },
        Edit::Insert { parent, name: "narthex".to_owned(), value },
    ];
    rewrite(&document, &edits).unwrap()
}

/// Writes all files, and one that was not there.
fn set_up(place: &Path) {
    let mut journal = journal(place);
    for (name, format, key, text) in FILES {
        let path = home(place).join(name);
        journal.write(name, &path, Some(text.as_bytes()), &new(format, key, text)).unwrap();
    }
    let document = parse(Format::Json, b"").unwrap();
    let edit = Edit::Insert { parent: Parent::map([]), name: "n".to_owned(), value: json!(1) };
    let created = rewrite(&document, &[edit]).unwrap();
    journal.write("d", &home(place).join("d.json"), None, &created).unwrap();
}

fn restored() -> FileUndone {
    FileUndone::Restored { edited: Vec::new() }
}

/// Undoes all steps; the outcomes in their order.
fn undo(place: &Path) -> Vec<FileUndone> {
    let mut journal = journal(place);
    let mut outcomes = Vec::new();
    while let Some(Step::File(step)) = journal.steps().last().cloned() {
        journal.empty(&step).unwrap();
        let outcome = journal.undo(&step).unwrap();
        if journal.lacking(&step) != Lacking::Nothing {
            journal.keep_copy(&step);
        }
        outcomes.push(outcome);
        journal.forget_last().unwrap();
    }
    journal.finish().unwrap();
    outcomes
}

#[test]
fn an_undo_restores_all_files() {
    let place = Place::new();
    set_up(place.path());
    for (name, format, key, text) in FILES {
        assert_eq!(place.text(name).into_bytes(), new(format, key, text).bytes);
    }
    assert_eq!(journal(place.path()).steps().len(), 4);
    assert_eq!(undo(place.path()), vec![restored(); 4]);
    place.is_untouched();
    assert!(!place.path().join("setup").exists());
    assert_eq!(undo(place.path()), []);
}

#[test]
fn the_record_and_the_backups_are_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    set_up(place.path());
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let folder = place.path().join("setup");
    assert_eq!((mode(&folder), mode(&folder.join(RECORD))), (0o700, 0o600));
    let journal = journal(place.path());
    let Step::File(step) = &journal.steps()[0] else { panic!() };
    assert_eq!(mode(step.backup.as_ref().unwrap()), 0o600);
    assert_eq!(fs::read_to_string(step.backup.as_ref().unwrap()).unwrap(), FILES[0].3);
}

#[test]
fn foreign_edits_stay_and_own_entries_go() {
    let place = Place::new();
    set_up(place.path());
    let change = |name: &str, from: &str, to: &str| {
        let text = place.text(name);
        assert!(text.contains(from), "{text}");
        fs::write(home(place.path()).join(name), text.replace(from, to)).unwrap();
    };
    change("a.json", "// mine", "// yours");
    change("b.toml", "m = 1", "m = 2");
    change("c.yaml", "z: 1", "z: 2");
    let taken_out = FileUndone::TakenOut { kept: Vec::new(), edited: Vec::new() };
    let outcomes = undo(place.path());
    assert_eq!(outcomes[0], restored());
    assert_eq!(outcomes[1..], vec![taken_out; 3]);
    for ((name, _, _, text), (from, to)) in
        FILES.into_iter().zip([("// mine", "// yours"), ("m = 1", "m = 2"), ("z: 1", "z: 2")])
    {
        assert_eq!(place.text(name), text.replace(from, to), "{name}");
    }
}

fn copies(place: &Path) -> Vec<String> {
    let kept = journal(place).kept_copies();
    kept.iter().map(|copy| fs::read_to_string(copy).unwrap()).collect()
}

/// A copy goes once its file has each entry of it, with the same values.
#[test]
fn only_copies_with_more_than_their_file_outlive_an_undo() {
    let changed = |change: &dyn Fn(&str) -> String| {
        let place = Place::new();
        set_up(place.path());
        fs::write(home(place.path()).join("a.json"), change(&place.text("a.json"))).unwrap();
        undo(place.path());
        place
    };
    let anew = r#"{"s":{"narthex":{"command":"narthex"}},"t":1}"#;
    // An entry of others in the place of narthex's own is no part of the copy.
    let other = r#"{"s":{"narthex":{"command":"mine"}}}"#;
    for text in [anew, other, "{}", "{ \"s\": {} } // mine"] {
        let place = changed(&|_| text.to_owned());
        assert_eq!(copies(place.path()), [""; 0], "{text}");
        assert!(!place.path().join("setup").exists(), "{text}");
        let left = parse(Format::Json, place.text("a.json").as_bytes()).unwrap();
        assert_eq!(left.value(&["s", "x"]).unwrap(), Some(json!({ "k": 1 })), "{text}");
    }
    for text in [
        r#"{"s":{"narthex":{"command":"narthex"},"y":{"k":2}}}"#,
        r#"{"s":{"narthex":{"command":"narthex"},"x":{"k":2}}}"#,
    ] {
        let place = changed(&|_| text.to_owned());
        assert_eq!(copies(place.path()), [FILES[0].3], "{text}");
        let all = journal(place.path());
        assert_eq!(all.copies().unwrap(), all.kept_copies());

        // A later set-up takes no place of that copy, and its undo leaves it.
        let before = all.kept_copies();
        set_up_toml(place.path());
        assert_eq!(undo(place.path()), [restored()]);
        assert_eq!(journal(place.path()).kept_copies(), before);
    }
}

/// Writes the file of TOML alone.
fn set_up_toml(place: &Path) {
    let (name, format, key, text) = FILES[1];
    let path = home(place).join(name);
    let new = new(format, key, text);
    journal(place).write(name, &path, Some(text.as_bytes()), &new).unwrap();
}

/// Copies without a record, or beside one of an older narthex, are of an undo that was not whole.
#[test]
fn copies_that_an_older_narthex_left_stay() {
    let place = Place::new();
    set_up_toml(place.path());
    let mut first = journal(place.path());
    first.forget_last().unwrap();
    for is_gone in [false, true] {
        let record = place.path().join("setup").join(RECORD);
        if is_gone {
            fs::remove_file(record).unwrap();
        } else {
            let mut older: serde_json::Value =
                serde_json::from_slice(&fs::read(&record).unwrap()).unwrap();
            older.as_object_mut().unwrap().remove("needed").unwrap();
            fs::write(&record, older.to_string()).unwrap();
        }
        fs::write(home(place.path()).join("b.toml"), FILES[1].3).unwrap();
        set_up_toml(place.path());
        undo(place.path());
        assert_eq!(copies(place.path()), [FILES[1].3]);
    }
}

/// Makes a second step of the TOML file, and gives its path.
fn set_up_toml_again(place: &Place) -> PathBuf {
    let path = home(place.path()).join("b.toml");
    let text = format!("{}\n[s.z]\nk = 3\n", place.text("b.toml"));
    fs::write(&path, &text).unwrap();
    let document = parse(Format::Toml, text.as_bytes()).unwrap();
    let edit = Edit::Remove { parent: Parent::map(["s"]), name: "z".to_owned() };
    let new = rewrite(&document, &[edit]).unwrap();
    journal(place.path()).write("b.toml", &path, Some(text.as_bytes()), &new).unwrap();
    path
}

/// Two set-ups of one file: each copy is compared before the step before it is undone.
#[test]
fn copies_of_two_set_ups_of_a_file_go() {
    let place = Place::new();
    set_up_toml(place.path());
    let path = set_up_toml_again(&place);
    let now = place.text("b.toml").replace("m = 1", "m = 2");
    fs::write(&path, now).unwrap();
    let taken_out = FileUndone::TakenOut { kept: Vec::new(), edited: Vec::new() };
    assert_eq!(undo(place.path()), vec![taken_out; 2]);
    let left = parse(Format::Toml, place.text("b.toml").as_bytes()).unwrap();
    let names = left.entries(&Parent::map(["s"])).unwrap().into_iter().map(|(name, _)| name);
    let mut names: Vec<_> = names.collect();
    names.sort();
    assert_eq!(names, ["x", "y", "z"]);
    assert!(!place.path().join("setup").exists());
}

/// A file that the set-up made goes, also if others have written it anew without adding anything.
#[test]
fn a_file_that_the_set_up_made_goes_once_nothing_else_is_in_it() {
    for (text, is_left) in [("{}\n", false), ("{\"n\":1}", false), ("{\"n\":1,\"m\":2}", true)] {
        let place = Place::new();
        set_up(place.path());
        let path = home(place.path()).join("d.json");
        fs::write(&path, text).unwrap();
        undo(place.path());
        assert_eq!(path.exists(), is_left, "{text}");
        if is_left {
            assert_eq!(place.text("d.json"), "{\"m\":2}");
        }
    }
}

/// Clients that take comments have them in files that had none.
#[test]
fn an_undo_reads_comments_that_came_since() {
    let place = Place::new();
    let path = home(place.path()).join("a.json");
    let text = "{\n  \"s\": {\n    \"x\": {\"k\": 1},\n    \"y\": {}\n  }\n}\n";
    fs::write(&path, text).unwrap();
    let new = new(Format::Json, "s", text);
    journal(place.path()).write("a.json", &path, Some(text.as_bytes()), &new).unwrap();
    fs::write(&path, place.text("a.json").replacen('{', "{ // mine", 1)).unwrap();
    assert_eq!(undo(place.path()), [FileUndone::TakenOut { kept: Vec::new(), edited: Vec::new() }]);
    assert_eq!(place.text("a.json"), text.replacen('{', "{ // mine", 1));
}

/// Some clients write their file whole from memory, without comments.
#[test]
fn a_file_that_its_client_wrote_anew_gets_its_entries_back() {
    let place = Place::new();
    set_up(place.path());
    let text = "{\"t\":1,\"s\":{\"narthex\":{\"command\":\"narthex\"},\"new\":{\"k\":9}}}";
    fs::write(home(place.path()).join("a.json"), text).unwrap();
    let outcomes = undo(place.path());
    assert_eq!(
        outcomes.last(),
        Some(&FileUndone::TakenOut { kept: Vec::new(), edited: Vec::new() })
    );
    let left: serde_json::Value = serde_json::from_str(&place.text("a.json")).unwrap();
    assert_eq!(left, json!({ "t": 1, "s": { "new": { "k": 9 }, "x": { "k": 1 }, "y": {} } }));
}

#[test]
fn entries_that_others_changed_are_kept_and_named() {
    let place = Place::new();
    set_up(place.path());
    let path = home(place.path()).join("a.json");
    let text = place.text("a.json").replace("\"narthex\"\n", "\"mine\"\n");
    fs::write(&path, text.replace("\"command\": \"narthex\"", "\"command\": \"mine\"")).unwrap();
    let outcomes = undo(place.path());
    let kept = vec!["narthex".to_owned()];
    assert_eq!(outcomes.last(), Some(&FileUndone::TakenOut { kept, edited: Vec::new() }));
    let left = place.text("a.json");
    for part in ["\"mine\"", "\"x\": {\"k\": 1}", "// one", "\"y\": {}"] {
        assert!(left.contains(part), "{part}: {left}");
    }
}

/// An entry of narthex that its owner has edited is taken out all the same, and named. Another
/// program in its place stays. A preview says the same, and changes nothing.
#[test]
fn an_edited_entry_of_narthex_is_taken_out_and_named() {
    let parent = Parent::map(["mcpServers"]);
    let before = "{\n  \"mcpServers\": {\n    \"x\": {\"command\": \"k\"}\n  }\n}\n";
    let narthex = || vec!["narthex".to_owned()];
    for (now, kept, edited) in [
        (json!({ "command": "/bin/narthex", "args": ["connect", "--v"] }), vec![], narthex()),
        (json!({ "command": "other", "args": ["connect"] }), narthex(), vec![]),
        (json!({ "command": "ssh", "args": ["a", "/bin/narthex", "connect"] }), narthex(), vec![]),
    ] {
        let place = Place::new();
        let path = home(place.path()).join("a.json");
        fs::write(&path, before).unwrap();
        let value = json!({ "command": "/opt/narthex", "args": ["connect"] });
        let name = "narthex".to_owned();
        let edits = [
            Edit::Remove { parent: parent.clone(), name: "x".to_owned() },
            Edit::Insert { parent: parent.clone(), name, value },
        ];
        let document = parse(Format::Json, before.as_bytes()).unwrap();
        let new = rewrite(&document, &edits).unwrap();
        let mut all = journal(place.path());
        all.write("cursor/user", &path, Some(before.as_bytes()), &new).unwrap();
        let text = json!({ "mcpServers": { "narthex": now } }).to_string();
        fs::write(&path, &text).unwrap();
        let copy: &[String] = if edited.is_empty() { &[] } else { std::slice::from_ref(&text) };
        let expected = FileUndone::TakenOut { kept: kept.clone(), edited };
        let preview = all.preview();
        assert!(matches!(&preview[..], [(_, Ok(outcome))] if *outcome == expected), "{preview:?}");
        assert_eq!(place.text("a.json"), text);
        assert_eq!(undo(place.path()), [expected]);
        let left = parse(Format::Json, place.text("a.json").as_bytes()).unwrap();
        let names = left.entries(&parent).unwrap().into_iter().map(|(name, _)| name);
        let mut names: Vec<_> = names.collect();
        names.sort_unstable();
        assert_eq!(names, [kept, vec!["x".to_owned()]].concat());
        // The copy with the edited entry, which is nowhere else, stays.
        assert_eq!(copies(place.path()), copy);
    }
}

/// An edited entry is named also if its file is as it was before, or does not exist any more, and
/// after a later step of the same file.
#[test]
fn an_edited_entry_is_named_where_the_file_is_restored() {
    let parent = Parent::map(["mcpServers"]);
    let insert = |name: &str, command: &str| {
        let value = json!({ "command": command, "args": ["connect"] });
        Edit::Insert { parent: parent.clone(), name: name.to_owned(), value }
    };
    let before = "{\n  \"mcpServers\": {\n    \"x\": {\"command\": \"k\"}\n  }\n}\n";
    for (before, is_twice) in [(Some(before), false), (None, false), (Some(before), true)] {
        let place = Place::new();
        let path = home(place.path()).join("e.json");
        if let Some(text) = before {
            fs::write(&path, text).unwrap();
        }
        let mut all = journal(place.path());
        let document = parse(Format::Json, before.unwrap_or_default().as_bytes()).unwrap();
        let new = rewrite(&document, &[insert("narthex", "/opt/narthex")]).unwrap();
        all.write("cursor/user", &path, before.map(str::as_bytes), &new).unwrap();
        let text = place.text("e.json").replace("/opt/narthex", "/bin/narthex");
        fs::write(&path, &text).unwrap();
        if is_twice {
            let document = parse(Format::Json, text.as_bytes()).unwrap();
            let new = rewrite(&document, &[insert("later", "l")]).unwrap();
            all.write("cursor/user", &path, Some(text.as_bytes()), &new).unwrap();
        }
        let expected = FileUndone::Restored { edited: vec!["narthex".to_owned()] };
        let preview = all.preview();
        assert!(matches!(&preview[..], [(_, Ok(outcome))] if *outcome == expected), "{preview:?}");
        assert_eq!(undo(place.path()).last(), Some(&expected));
        assert_eq!(fs::read_to_string(&path).ok().as_deref(), before);
        assert_eq!(copies(place.path()), [text]);
    }
}

/// An entry of narthex with a comment of its owner in it stays, and can be named.
#[test]
fn an_entry_of_narthex_that_stays_is_known() {
    let parent = Parent::map(["mcpServers"]);
    let before = "{\n  \"mcpServers\": {\n    \"x\": {\"command\": \"k\"}\n  }\n}\n";
    for (command, is_live) in [("/bin/narthex", true), ("other", false)] {
        let place = Place::new();
        let path = home(place.path()).join("e.json");
        fs::write(&path, before).unwrap();
        let value = json!({ "command": "/opt/narthex", "args": ["connect"] });
        let name = "narthex".to_owned();
        let edit = Edit::Insert { parent: parent.clone(), name: name.clone(), value };
        let document = parse(Format::Json, before.as_bytes()).unwrap();
        let new = rewrite(&document, &[edit]).unwrap();
        journal(place.path()).write("cursor/user", &path, Some(before.as_bytes()), &new).unwrap();
        let own = format!("// mine\n      \"command\": \"{command}\"");
        let text = place.text("e.json").replace("\"command\": \"/opt/narthex\"", &own);
        assert!(text.contains(&own), "{text}");
        fs::write(&path, &text).unwrap();
        let Step::File(step) = journal(place.path()).steps()[0].clone() else { panic!() };
        let outcomes = undo(place.path());
        assert_eq!(outcomes[0].kept(), std::slice::from_ref(&name));
        assert_eq!(place.text("e.json"), text);
        let live = if is_live { vec![name] } else { Vec::new() };
        assert_eq!(step.starting_narthex(outcomes[0].kept()), live);
        assert_eq!(step.starting_narthex(&[]), [""; 0]);
    }
}

/// The names of a later step of a file outlive the undo of the earlier one.
#[test]
fn the_outcomes_of_two_steps_are_one() {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let restored = |edited: &[&str]| FileUndone::Restored { edited: names(edited) };
    let taken_out = |kept: &[&str], edited: &[&str]| FileUndone::TakenOut {
        kept: names(kept),
        edited: names(edited),
    };
    assert_eq!(restored(&["b"]).after(restored(&["a", "b"])), restored(&["a", "b"]));
    assert_eq!(restored(&[]).after(taken_out(&["k"], &["a"])), restored(&["a"]));
    assert_eq!(
        taken_out(&["l"], &[]).after(taken_out(&["k"], &["a"])),
        taken_out(&["k", "l"], &["a"])
    );
    assert_eq!(FileUndone::Gone.after(restored(&["a"])), FileUndone::Gone);
}

/// A preview of several steps of one file has the outcome of all, and that of a file with a fault.
#[test]
fn a_preview_has_the_outcome_of_each_file_and_changes_nothing() {
    let place = Place::new();
    set_up(place.path());
    set_up_toml_again(&place);
    fs::write(home(place.path()).join("c.yaml"), "s: [").unwrap();
    let texts = || ["a.json", "b.toml", "c.yaml", "d.json"].map(|name| place.text(name));
    let before = texts();
    let preview = journal(place.path()).preview();
    let outcome = |label: &str| {
        let mut all = preview.iter().filter(|(step, _)| step.label == label);
        let outcome = all.next().map(|(_, outcome)| outcome);
        assert!(all.next().is_none(), "{preview:?}");
        outcome.unwrap()
    };
    assert!(matches!(outcome("a.json"), Ok(FileUndone::Restored { .. })), "{preview:?}");
    assert!(matches!(outcome("d"), Ok(FileUndone::Restored { .. })), "{preview:?}");
    assert!(matches!(outcome("b.toml"), Ok(FileUndone::TakenOut { .. })), "{preview:?}");
    assert!(matches!(outcome("c.yaml"), Err(JournalError::Edit { .. })), "{preview:?}");
    assert_eq!(texts(), before);
}

#[test]
fn a_file_that_others_removed_stays_away() {
    let place = Place::new();
    set_up(place.path());
    fs::remove_file(home(place.path()).join("a.json")).unwrap();
    fs::remove_file(home(place.path()).join("d.json")).unwrap();
    let outcomes = undo(place.path());
    assert_eq!((&outcomes[0], &outcomes[3]), (&FileUndone::NotMade, &FileUndone::Gone));
    assert!(!home(place.path()).join("a.json").exists());
}

#[test]
fn a_file_that_changed_is_not_written_and_no_step_is_left() {
    let place = Place::new();
    let mut journal = journal(place.path());
    let (name, format, key, text) = FILES[0];
    let path = home(place.path()).join(name);
    fs::write(&path, "{ \"s\": { \"x\": 2 } }").unwrap();
    let error = journal.write(name, &path, Some(text.as_bytes()), &new(format, key, text));
    assert!(error.unwrap_err().to_string().contains("has changed"));
    assert_eq!(place.text(name), "{ \"s\": { \"x\": 2 } }");
    assert_eq!(journal.steps(), []);
    assert_eq!(Journal::open(&place.path().join("setup")).unwrap().steps(), []);
}

/// A network's file system reports failures of changes that are made.
#[test]
fn a_change_that_is_reported_as_failed_is_undone() {
    for change in [Change::Sync, Change::Rename] {
        let place = Place::new();
        report_as_failed(Some(change));
        set_up(place.path());
        report_as_failed(None);
        assert_eq!(journal(place.path()).steps().len(), 4, "{change:?}");
        assert_eq!(undo(place.path()), vec![restored(); 4], "{change:?}");
        place.is_untouched();
        assert!(!place.path().join("setup").exists());
    }
}

/// A step stays while it may be made, and a copy while its file may lack something of it.
#[test]
fn a_failed_write_loses_no_copy() {
    let place = Place::new();
    set_up_toml(place.path());
    let mut journal = journal(place.path());
    let Step::File(step) = journal.steps()[0].clone() else { panic!() };
    let unknown = || FileError::Rename {
        path: step.path.clone(),
        source: std::io::ErrorKind::TimedOut.into(),
    };
    fs::write(&step.path, "m = 3\n").unwrap();
    journal.end_failed(&step, unknown()).unwrap_err();
    assert_eq!(journal.steps().len(), 1);
    journal.end_failed(&step, FileError::Changed { path: step.path.clone() }).unwrap_err();
    assert_eq!(journal.steps(), []);
    journal.finish().unwrap();
    assert_eq!(copies(place.path()), [FILES[1].3]);

    // A file that is as it was needs no copy, and no undo.
    let place = Place::new();
    set_up_toml(place.path());
    let mut journal = Journal::open(&place.path().join("setup")).unwrap();
    let Step::File(step) = journal.steps()[0].clone() else { panic!() };
    fs::write(&step.path, FILES[1].3).unwrap();
    journal.end_failed(&step, unknown()).unwrap_err();
    assert_eq!(journal.steps(), []);
    journal.finish().unwrap();
    assert!(!place.path().join("setup").exists());
}

/// A file of a user may have a name as unfinished files have.
#[test]
fn an_undo_removes_only_unfinished_files_of_the_record() {
    let place = Place::new();
    set_up(place.path());
    let journal = journal(place.path());
    let Step::File(step) = &journal.steps()[0] else { panic!() };
    let unfinished = step.unfinished.clone().unwrap();
    assert_eq!(unfinished.parent(), Some(home(place.path()).as_path()));
    fs::write(&unfinished, "{").unwrap();
    let own = [".narthex-config", ".narthex-a1B2c3", ".narthex-0123456789abcdef"];
    for name in own {
        fs::write(home(place.path()).join(name), "mine").unwrap();
    }
    assert_eq!(undo(place.path()), vec![restored(); 4]);
    assert!(!unfinished.exists());
    for name in own {
        assert_eq!(place.text(name), "mine");
        fs::remove_file(home(place.path()).join(name)).unwrap();
    }
    place.is_untouched();
}

/// Records of an older narthex have no names of unfinished files, and no lock.
#[test]
fn an_older_record_is_undone() {
    let place = Place::new();
    set_up(place.path());
    let record = place.path().join("setup").join(RECORD);
    let mut older: serde_json::Value = serde_json::from_slice(&fs::read(&record).unwrap()).unwrap();
    for step in older["steps"].as_array_mut().unwrap() {
        step.as_object_mut().unwrap().remove("unfinished").unwrap();
    }
    fs::write(&record, older.to_string()).unwrap();
    fs::write(home(place.path()).join(".narthex-a1B2c3"), "mine").unwrap();
    assert_eq!(undo(place.path()), vec![restored(); 4]);
    assert_eq!(place.text(".narthex-a1B2c3"), "mine");
}

/// An undo in another folder finds the file.
#[test]
fn the_record_has_whole_paths() {
    let place = Place::new();
    let up =
        std::env::current_dir().unwrap().components().skip(1).map(|_| "..").collect::<PathBuf>();
    let (name, format, key, text) = FILES[0];
    let whole = home(place.path()).join(name);
    let relative = up.join(whole.strip_prefix("/").unwrap());
    let mut journal = journal(place.path());
    journal.write(name, &relative, Some(text.as_bytes()), &new(format, key, text)).unwrap();
    let Step::File(step) = &journal.steps()[0] else { panic!() };
    assert!(step.path.is_absolute() && step.unfinished.as_ref().unwrap().is_absolute(), "{step:?}");
    assert_eq!(fs::canonicalize(&step.path).unwrap(), fs::canonicalize(&whole).unwrap());
}

#[test]
fn a_damaged_record_is_named() {
    let place = Place::new();
    fs::create_dir(place.path().join("setup")).unwrap();
    fs::write(place.path().join("setup").join(RECORD), "{").unwrap();
    let error = Journal::open(&place.path().join("setup")).unwrap_err().to_string();
    assert!(error.contains("journal.json` is damaged; restore"), "{error}");
}

/// The part of the next test that is killed; it does nothing in other processes.
#[test]
fn a_process_that_is_killed() {
    let Some(place) = std::env::var_os(PLACE) else { return };
    let place = PathBuf::from(place);
    let moment = std::env::var_os(MOMENT).unwrap().into_string().unwrap().parse().unwrap();
    if std::env::var_os(UNDO).is_none() {
        end_at(moment);
        set_up(&place);
    } else {
        set_up(&place);
        end_at(passed_so_far() + moment);
        undo(&place);
    }
}

/// D42: kills a process at each moment between two writes: each file is the old or the new one, and
/// an undo restores all of them.
#[test]
fn a_kill_at_any_moment_leaves_whole_files_and_can_be_undone() {
    for is_undo in [false, true] {
        let mut moment = 0;
        loop {
            moment += 1;
            let place = Place::new();
            let mut child = Command::new(std::env::current_exe().unwrap());
            child.args(["--exact", "journal::tests::a_process_that_is_killed"]);
            child.env(PLACE, place.path()).env(MOMENT, moment.to_string());
            if is_undo {
                child.env(UNDO, "1");
            }
            let done = child.output().unwrap();
            for (name, format, key, text) in FILES {
                let now = place.text(name);
                let is_whole = now == text || now.into_bytes() == new(format, key, text).bytes;
                assert!(is_whole, "{name} at moment {moment}");
            }
            undo(place.path());
            place.is_untouched();
            if done.status.success() {
                break;
            }
            let signal = std::os::unix::process::ExitStatusExt::signal(&done.status);
            assert_eq!(signal, Some(9), "{done:?}");
        }
        assert!(moment > 30, "{moment} moments");
    }
}

/// Servers are unproven until they have worked, and those that are taken back are forgotten. A
/// record of an older narthex has neither the entry nor the mark.
#[test]
fn servers_are_proven_and_forgotten() {
    let place = Place::new();
    let server = |alias: &str, is_unproven| Step::Server {
        alias: alias.to_owned(),
        seal: "s".to_owned(),
        entry: Some("{}".to_owned()),
        is_unproven,
    };
    let mut record = journal(place.path());
    record.note(server("a", true)).unwrap();
    record.note(server("b", true)).unwrap();
    record.note_working(|alias| alias == "a").unwrap();
    assert_eq!(journal(place.path()).steps(), [server("a", false), server("b", true)]);
    record.forget_all(|step| *step == server("b", true)).unwrap();
    assert_eq!(journal(place.path()).steps(), [server("a", false)]);

    let old = json!({ "kind": "server", "alias": "a", "seal": "s" });
    let old: Step = serde_json::from_value(old).unwrap();
    let expected =
        Step::Server { alias: "a".into(), seal: "s".into(), entry: None, is_unproven: false };
    assert_eq!(old, expected);
}
