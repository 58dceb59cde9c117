//! Editing the settings file.

use std::os::unix::fs::{PermissionsExt, symlink};

use narthex_model::ErrorKind;
use narthex_registry::{
    config::{Env, LoadContext, parse_settings},
    layers::{EditError, SettingsFile, remove_lock},
};
use tokio::task::JoinSet;

use super::*;

const HTTP: &str = r#"{ "transport": "http", "url": "https://a.test/mcp" }"#;

fn file(world: &World) -> SettingsFile {
    SettingsFile::new(&world.settings(), &world.root, variables())
}

fn read(world: &World) -> String {
    fs_err::read_to_string(world.settings()).unwrap()
}

/// The servers that the file declares now.
fn declared(world: &World) -> Vec<String> {
    let env = variables();
    let file = world.settings();
    let context = LoadContext { file: &file, workspace_root: &world.root, env: Env::Values(&*env) };
    let loaded = parse_settings(read(world).as_bytes(), &context).unwrap();
    loaded.entries.iter().map(|entry| entry.name().to_owned()).collect()
}

fn mode(path: &Path) -> u32 {
    fs_err::metadata(path).unwrap().permissions().mode() & 0o777
}

/// E141: a file is created for its user alone, with the folders that it needs.
#[tokio::test]
async fn e141_the_first_server_makes_the_file() {
    let mut world = World::new();
    world.options.settings = Some(world.path("config/narthex/settings.json"));
    let path = world.options.settings.clone().unwrap();
    let file = SettingsFile::new(&path, &world.root, variables());
    file.add("a", HTTP).await.unwrap();
    assert_eq!(
        fs_err::read_to_string(&path).unwrap(),
        "{\n  \"mcp\": {\n    \"servers\": {\n      \"a\": { \"transport\": \"http\", \
         \"url\": \"https://a.test/mcp\" }\n    }\n  }\n}\n"
    );
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
}

/// E141: a file is replaced in a folder that its user may write and not list.
#[tokio::test]
async fn e141_a_folder_that_cannot_be_read_is_written() {
    let world = World::new();
    let path = world.path("config/settings.json");
    let file = SettingsFile::new(&path, &world.root, variables());
    file.add("a", HTTP).await.unwrap();
    let folder = path.parent().unwrap();
    fs_err::set_permissions(folder, PermissionsExt::from_mode(0o300)).unwrap();
    let added = file.add("b", HTTP).await;
    fs_err::set_permissions(folder, PermissionsExt::from_mode(0o700)).unwrap();
    added.unwrap();
    assert!(fs_err::read_to_string(&path).unwrap().contains("\"b\": {"));
}

/// E141: all other content stays byte for byte, and so do mode and links.
#[tokio::test]
async fn e141_an_edit_changes_no_other_byte_of_the_file() {
    let world = World::new();
    fs_err::create_dir(world.path("dotfiles")).unwrap();
    let target = world.path("dotfiles/settings.json");
    let text = "{ \"theme\" :\"dark\",\n\t\"mcp\": { \"servers\": {\n\t\t\"b\": 1.50,\n\
                \t\t\"z\":{\"transport\":\"stdio\",\"command\":\"true\",\"x\":1e2}},\
                \"more\":[ ] },\n\
                \t\"big\": 12345678901234567890123 }";
    fs_err::write(&target, text).unwrap();
    fs_err::set_permissions(&target, PermissionsExt::from_mode(0o640)).unwrap();
    symlink(&target, world.settings()).unwrap();
    let file = file(&world);
    file.add("a", HTTP).await.unwrap();
    assert_ne!(read(&world), text);
    assert_eq!(declared(&world), ["b", "z", "a"]);
    file.remove("a").await.unwrap();
    assert_eq!(read(&world), text);
    assert!(fs_err::symlink_metadata(world.settings()).unwrap().is_symlink());
    assert_eq!(mode(&target), 0o640);
    let names: Vec<String> = file.names().await.unwrap().into_iter().collect();
    assert_eq!(names, ["b", "z"]);
}

/// E142: adding an existing name is refused with that reason; only a replacement overwrites it.
#[tokio::test]
async fn e142_an_existing_name_is_only_overwritten_on_demand() {
    let world = World::new();
    let file = file(&world);
    file.add("a", HTTP).await.unwrap();
    let before = read(&world);
    let error = file.add("a", &server("1")).await.unwrap_err();
    assert!(matches!(error, EditError::Exists { .. }) && error.kind() == ErrorKind::Conflict);
    assert!(error.to_string().contains("replace it"), "{error}");
    assert_eq!(read(&world), before);
    file.replace("a", &server("1")).await.unwrap();
    assert!(read(&world).contains("\"stdio\""));
    assert_eq!(declared(&world), ["a"]);
    for error in [file.remove("b").await.unwrap_err(), file.update("b", "{}").await.unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    }
}

/// E141: fields that a change does not name stay, in the auth block too, unless its mode changes.
#[tokio::test]
async fn e141_an_update_preserves_fields_that_are_not_named() {
    let world = World::new();
    let file = file(&world);
    let entry = r#"{ "transport": "http", "url": "https://a.test", "timeoutMs": 5, "own": [1],
        "auth": { "mode": "apiKey", "key": "${env:KEY}", "headerName": "X-Key" } }"#;
    file.add("a", entry).await.unwrap();
    let change = r#"{ "url": "https://b.test", "timeoutMs": null, "headers": { "X-A": "1" },
        "auth": { "headerName": "X-Other" } }"#;
    file.update("a", change).await.unwrap();
    let stored = |world: &World| {
        let text: serde_json::Value = serde_json::from_str(&read(world)).unwrap();
        text["mcp"]["servers"]["a"].clone()
    };
    assert_eq!(
        stored(&world),
        serde_json::json!({
            "transport": "http", "url": "https://b.test", "own": [1], "headers": { "X-A": "1" },
            "auth": { "mode": "apiKey", "key": "${env:KEY}", "headerName": "X-Other" },
        })
    );
    let code = r#"{ "auth": { "mode": "authorizationCode", "scopes": ["a"] } }"#;
    file.update("a", code).await.unwrap();
    let auth = serde_json::json!({ "mode": "authorizationCode", "scopes": ["a"] });
    assert_eq!(stored(&world)["auth"], auth);
    file.update("a", r#"{ "auth": null }"#).await.unwrap();
    assert_eq!(stored(&world).get("auth"), None);
}

/// E142: the transport stays; naming the same one is no change.
#[tokio::test]
async fn e142_the_transport_is_fixed() {
    let world = World::new();
    let file = file(&world);
    file.add("a", HTTP).await.unwrap();
    let before = read(&world);
    for change in [server("1"), r#"{ "transport": null }"#.to_owned()] {
        let error = file.update("a", &change).await.unwrap_err();
        assert!(matches!(error, EditError::TransportFixed { .. }), "{error}");
    }
    file.update("a", r#"{ "transport": "h\u0074tp" }"#).await.unwrap();
    assert_eq!(declared(&world), ["a"]);
    assert_eq!(read(&world).len(), before.len() + 5);
}

/// D9: an edit that would not be accepted when read is refused, with the words of the reader.
#[tokio::test]
async fn d9_a_refused_edit_is_not_stored() {
    let world = World::new();
    let file = file(&world);
    file.add("a", HTTP).await.unwrap();
    let before = read(&world);
    for (name, entry, part) in [
        ("b", r#"{ "transport": "http" }"#, "`mcp.servers.b`: the url is missing"),
        ("b", r#"{ "transport": "http", "url": "https://${env:NO}" }"#, "`NO` is not set"),
        ("b", r#"{ "transport": "stdio", "command": "x", "command": "y" }"#, "given twice"),
        ("b", "[]", "not a JSON object"),
        ("b", "{", "not a JSON object"),
        ("b", r#"{}, "evil": {}"#, "not a JSON object"),
        ("B", HTTP, "not a valid server name"),
    ] {
        let error = file.add(name, entry).await.unwrap_err();
        assert!(error.to_string().contains(part), "{entry}: {error}");
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    }
    let error = file.update("a", r#"{ "url": null }"#).await.unwrap_err();
    assert!(matches!(error, EditError::Refused { .. }), "{error}");
    assert_eq!(read(&world), before);
}

/// Placeholders are stored as they are given, and a literal secret is warned of.
#[tokio::test]
async fn e16_no_value_of_the_environment_is_stored() {
    let world = World::new();
    let entry = r#"{ "transport": "stdio", "command": "true",
        "env": { "A_TOKEN": "${env:KEY}", "B_TOKEN": "literal-secret" } }"#;
    let edited = file(&world).add("a", entry).await.unwrap();
    assert!(read(&world).contains("${env:KEY}") && !read(&world).contains("k-123"));
    assert_eq!(edited.warnings.len(), 1);
    assert_eq!(edited.warnings[0].path, "mcp.servers.a.env.B_TOKEN");
}

/// E144: a project's file is never written, and an unreadable file is not touched.
#[tokio::test]
async fn e144_other_files_are_not_written() {
    let world = World::new();
    let file = file(&world);
    for (text, kind) in [
        (project("a", "1"), ErrorKind::Denied),
        (r#"{ "mcpServers": {} }"#.to_owned(), ErrorKind::Denied),
        ("{ # comment\n }".to_owned(), ErrorKind::Invalid),
        (r#"{ "mcp": [] }"#.to_owned(), ErrorKind::Invalid),
        (r#"{ "mcp": { "servers": "x" } }"#.to_owned(), ErrorKind::Invalid),
        ("[]".to_owned(), ErrorKind::Invalid),
    ] {
        fs_err::write(world.settings(), &text).unwrap();
        for error in
            [file.add("b", HTTP).await.unwrap_err(), file.replace("b", HTTP).await.unwrap_err()]
        {
            assert_eq!(error.kind(), kind, "{text}: {error}");
        }
        assert_eq!(read(&world), text);
    }
}

/// Edits at the same time, of several handles, are all stored, and no reader sees a part.
#[tokio::test(flavor = "multi_thread")]
async fn e143_concurrent_edits_are_all_stored() {
    let world = World::new();
    file(&world).add("first", HTTP).await.unwrap();
    let mut edits = Vec::new();
    for number in 0..20 {
        let file = file(&world);
        edits.push(world.tasks.spawn(async move {
            file.add(&format!("s{number}"), HTTP).await.unwrap();
        }));
    }
    for edit in edits {
        assert!(declared(&world).contains(&"first".to_owned()));
        in_time(edit).await.unwrap();
    }
    assert_eq!(declared(&world).len(), 21);
    let left: Vec<String> = fs_err::read_dir(&world.root)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "settings.json")
        .collect();
    assert_eq!(left, ["settings.json.lock"]);
}

/// An edit does not wait forever for another edit that hangs.
#[tokio::test(start_paused = true)]
async fn e143_an_edit_fails_as_busy_while_another_process_has_the_lock() {
    let world = World::new();
    let lock = fs_err::File::create(world.path("settings.json.lock")).unwrap();
    lock.file().lock().unwrap();
    let error = file(&world).add("a", HTTP).await.unwrap_err();
    assert!(matches!(error, EditError::Busy { .. }), "{error}");
    lock.file().unlock().unwrap();
    file(&world).add("a", HTTP).await.unwrap();
}

/// A removed lock leaves no two edits at a time: one that waits for it takes the new one.
#[tokio::test(start_paused = true)]
async fn e143_a_lock_that_is_removed_is_made_anew() {
    let world = World::new();
    let (file, lock) = (file(&world), world.path("settings.json.lock"));
    assert_eq!(file.lock_file().unwrap(), lock);
    remove_lock(&lock).unwrap();
    let held = file.lock().await.unwrap();
    remove_lock(&lock).unwrap();
    assert!(lock.exists(), "an edit holds it");
    let mut waiting = JoinSet::new();
    waiting.spawn({
        let file = file.clone();
        async move { file.lock().await }
    });
    tokio::task::yield_now().await;
    fs_err::remove_file(&lock).unwrap();
    let second = file.lock().await.unwrap();
    drop(held);
    tokio::task::yield_now().await;
    assert!(waiting.try_join_next().is_none(), "the new lock is held");
    drop(second);
    drop(waiting.join_next().await.unwrap().unwrap().unwrap());
    remove_lock(&lock).unwrap();
    assert!(!lock.exists());
}

/// E141, E10: an edit changes the file that is followed.
#[tokio::test]
async fn e143_an_edit_reaches_followers_of_the_file() {
    let world = World::new();
    let (_files, mut events) = world.follow().await;
    let file = file(&world);
    file.add("a", &server("1")).await.unwrap();
    assert_eq!(changed(next(&mut events).await), ["a=1"]);
    file.update("a", r#"{ "args": ["2"] }"#).await.unwrap();
    assert_eq!(changed(next(&mut events).await), ["a=2"]);
    file.remove("a").await.unwrap();
    assert_eq!(changed(next(&mut events).await), [""; 0]);
}
