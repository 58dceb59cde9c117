//! Tests of narthex's entry alone: shown, written and taken back.

use super::*;

fn none(_: &str) -> Option<String> {
    None
}

fn machine(place: &Path) -> OwnMachine {
    let home = place.join("home");
    fs_err::create_dir_all(home.join(".cursor")).unwrap();
    OwnMachine {
        variable: none,
        program: "/opt/narthex".to_owned(),
        arguments: Vec::new(),
        daemon: OwnDaemon {
            data: place.join("data"),
            addresses: vec!["http://127.0.0.1:7717".to_owned()],
        },
        record: place.join("setup"),
        lock: place.join("setup.lock"),
        home,
    }
}

fn absent(look: &Look) -> &str {
    match &look.entry {
        Standing::Absent(text) => text,
        Standing::Present(way) => panic!("{way:?}"),
    }
}

/// A file is made and taken away, byte for byte.
#[test]
fn an_entry_is_shown_written_and_taken_back() {
    let place = tempfile::tempdir().unwrap();
    let machine = OwnMachine { program: "narthex".to_owned(), ..machine(place.path()) };
    assert!(machine.is_of_this_user());
    let look = machine.look("cursor").unwrap();
    assert!(look.is_new && look.path.ends_with(".cursor/mcp.json"), "{look:?}");
    assert!(absent(&look).contains("\"connect\""), "{look:?}");
    let done = machine.connect("cursor", &look.seal).unwrap();
    assert_eq!((done.name.as_str(), &done.entry), ("narthex", &Standing::Present(WayBack::Alone)));
    assert_eq!(fs_err::read_to_string(&look.path).unwrap(), absent(&look));
    let again = machine.connect("cursor", &done.seal);
    assert!(matches!(again, Err(ConnectError::Present { .. })), "{again:?}");
    machine.take_back("cursor").unwrap();
    assert!(!look.path.exists());
    assert!(matches!(machine.take_back("cursor"), Err(ConnectError::NoWayBack { .. })));
}

/// S27: texts of the file are not in what is shown, and a file that has changed since stays.
#[test]
fn s27_what_is_shown_has_no_text_of_the_file() {
    let place = tempfile::tempdir().unwrap();
    let machine = OwnMachine { program: "narthex".to_owned(), ..machine(place.path()) };
    let path = machine.home.join(".cursor/mcp.json");
    let before = r#"{"mcpServers": {"mail": {"command": "x", "env": {"KEY": "canary-1"}}}}"#;
    fs_err::write(&path, before).unwrap();
    let look = machine.look("cursor").unwrap();
    assert!(!look.is_new && !absent(&look).contains("canary"), "{look:?}");
    fs_err::write(&path, before.replace("mail", "post")).unwrap();
    let late = machine.connect("cursor", &look.seal);
    assert!(matches!(late, Err(ConnectError::Changed { .. })), "{late:?}");
    let look = machine.look("cursor").unwrap();
    machine.connect("cursor", &look.seal).unwrap();
    assert!(fs_err::read_to_string(&path).unwrap().contains("canary-1"));
    machine.take_back("cursor").unwrap();
    assert_eq!(fs_err::read_to_string(&path).unwrap(), before.replace("mail", "post"));
}

/// A client that was never started has no folder, and an unknown one no row.
#[test]
fn what_is_not_there_is_not_made() {
    let place = tempfile::tempdir().unwrap();
    let machine = machine(place.path());
    let windsurf = machine.look("windsurf");
    assert!(matches!(windsurf, Err(ConnectError::NoFolder { .. })), "{windsurf:?}");
    assert!(matches!(machine.look("nothing"), Err(ConnectError::Unknown(_))));
}

/// No text to copy has a place for a token.
#[test]
fn s27_texts_to_copy_have_no_token() {
    let url = "https://narthex.example.com/mcp";
    let own = OwnEntry { name: NAME, program: "narthex", arguments: &[] };
    let mut addressed = 0;
    for client in of_user() {
        let text = program_text(client, &own).unwrap();
        assert!(text.contains("connect"), "{}", client.label());
        if let Some(text) = address_text(client, url).unwrap() {
            assert!(text.contains(url), "{}: {text}", client.label());
            for word in ["token_header", "Bearer", "Authorization", "{url}", "oauth"] {
                assert!(!text.contains(word), "{}: {text}", client.label());
            }
            addressed += 1;
        }
    }
    assert!(addressed > 5, "{addressed}");
}
