//! Tests of plans: merged, named, skipped.

use serde_json::json;

use super::*;
use crate::clients::{Scope, Shape, clients};
use crate::servers::read_entry;

fn file(id: &str, servers: &Value) -> FoundFile {
    file_of(Scope::User, id, servers)
}

fn file_of(scope: Scope, id: &str, servers: &Value) -> FoundFile {
    let rows = clients().iter();
    let mut rows = rows.filter(|row| row.id == id && row.scope == scope);
    let client = rows.next().unwrap();
    let entries = servers.as_object().unwrap().iter();
    let found = entries.filter_map(|(name, value)| read_entry(client.shape, name, value, false));
    let content = Content::Servers(found.collect());
    FoundFile { client, path: PathBuf::from(id), content }
}

fn entries(existing: &Value) -> BTreeMap<String, Value> {
    existing.as_object().unwrap().clone().into_iter().collect()
}

fn plan(files: &[FoundFile], existing: &Value) -> Plan {
    Plan::of_copies(files, &entries(existing))
}

fn outcomes(plan: &Plan) -> Vec<(&str, &Outcome, usize)> {
    let servers = plan.servers.iter();
    servers.map(|one| (one.alias.as_str(), &one.outcome, one.origins.len())).collect()
}

#[test]
fn equal_servers_are_one_and_different_ones_are_named() {
    let files = [
        file(
            "cursor",
            &json!({
                "My Tracker": { "url": "https://t.example/mcp", "disabled": true },
                "notes": { "command": "notes", "env": { "A": "1" } },
            }),
        ),
        file(
            "windsurf",
            &json!({
                "tracker": { "serverUrl": "https://t.example/mcp" },
                "notes": { "command": "notes", "env": { "A": "2" }, "disabledTools": ["x"] },
            }),
        ),
        file(
            "roo",
            &json!({ "other": { "command": "notes", "env": { "A": "2" } ,
            "disabledTools": ["x"] } }),
        ),
    ];
    let plan = plan(&files, &json!({}));
    let fields = vec!["env", "tools"];
    assert_eq!(
        outcomes(&plan),
        [
            ("my-tracker", &Outcome::Add, 2),
            ("notes", &Outcome::Add, 1),
            ("notes", &Outcome::Differs { first: "Cursor", fields }, 2),
        ]
    );
    assert!(!plan.servers[0].server.is_disabled, "one client has it enabled");
}

#[test]
fn servers_that_move_get_names_of_their_own() {
    let long = "a".repeat(80);
    let files = [
        file(
            "cursor",
            &json!({
                "notes": { "command": "notes", "env": { "KEY": "1a" } },
                "there": { "command": "there" },
                "other": { "command": "other" },
                long.as_str(): { "command": "a" },
                "off": { "command": "off", "disabled": true },
            }),
        ),
        file(
            "windsurf",
            &json!({
                "notes": { "command": "notes", "env": { "KEY": "2a" } },
                "again": { "command": "notes", "env": { "KEY": "1a" } },
                long.as_str(): { "command": "b" },
                "moved": { "command": "moved", "env": { "KEY": "3a" } },
            }),
        ),
    ];
    let Content::Servers(found) = &files[1].content else { panic!() };
    let moved = found.iter().find_map(|one| match one {
        Found::Server(server) if server.name == "moved" => Some(server.seal()),
        Found::Server(_) | Found::Unusable { .. } => None,
    });
    let existing = entries(&json!({
        "there": { "transport": "stdio", "command": "there" },
        "other": { "transport": "stdio", "command": "mine" },
        "once-moved": {
            "transport": "stdio", "command": "moved", "env": { "KEY": "${secret:MOVED_KEY}" },
        },
    }));
    let moved = [(moved.unwrap(), Alias::suggest("once-moved"))].into();
    let plan = Plan::of_moves(&files, Existing { entries: &existing, moved: &moved });
    let cut = format!("{}-windsurf", "a".repeat(52));
    let whole = "a".repeat(64);
    assert_eq!(
        outcomes(&plan),
        [
            ("notes", &Outcome::Add, 2),
            ("there", &Outcome::Present, 1),
            ("other-cursor", &Outcome::Add, 1),
            (whole.as_str(), &Outcome::Add, 1),
            ("notes-windsurf", &Outcome::Add, 1),
            (cut.as_str(), &Outcome::Add, 1),
            ("once-moved", &Outcome::Present, 1),
        ]
    );
    assert_eq!(plan.skipped[0].origin.name, "off");
    assert_eq!(plan.skipped[0].reason, "it is disabled there");

    // Another program under the name of a server that was moved is another server.
    let other = entries(&json!({ "once-moved": { "transport": "stdio", "command": "python3" } }));
    let plan = Plan::of_moves(&files, Existing { entries: &other, moved: &moved });
    let last = plan.servers.last().unwrap();
    assert_eq!((last.alias.as_str(), &last.outcome), ("moved", &Outcome::Add));
}

#[test]
fn existing_servers_stay_and_are_compared() {
    let files = [file(
        "cursor",
        &json!({
            "same": { "command": "x" },
            "other": { "command": "x", "args": ["2"] },
            "new": { "command": "z" },
        }),
    )];
    let existing = json!({
        "same": { "command": "x", "transport": "stdio", "disabled": true },
        "other": { "command": "x", "transport": "stdio" },
    });
    let plan = plan(&files, &existing);
    assert_eq!(
        outcomes(&plan),
        [("same", &Outcome::Present, 1), ("other", &Outcome::Taken, 1), ("new", &Outcome::Add, 1),]
    );
}

#[test]
fn narthex_is_not_imported_into_itself() {
    let files = [file(
        "cursor",
        &json!({
            "narthex": { "url": "http://127.0.0.1:7717/mcp" },
            "gateway": { "command": "/opt/bin/narthex", "args": ["--data", "d", "connect"] },
            "bridge": { "command": "npx", "args": ["narthex", "connect"] },
            "shell": { "command": "bash", "args": ["-c", "exec narthex connect"] },
            "tools": { "command": "narthex-tools", "args": ["connect"] },
        }),
    )];
    let plan = plan(&files, &json!({}));
    assert_eq!(outcomes(&plan), [("tools", &Outcome::Add, 1)]);
    let names: Vec<_> = plan.own.iter().map(|origin| origin.name.as_str()).collect();
    assert_eq!(names, ["narthex", "gateway", "bridge", "shell"]);
    assert_eq!(plan.skipped.len(), 0, "an own entry is no server that stays");
}

/// An undo takes out an edited entry only if its own program is narthex.
#[test]
fn an_entry_that_reaches_narthex_by_another_program_is_another_one() {
    let runs = |command: &str, args: &[&str]| {
        let entry = json!({ "command": command, "args": args });
        let found = read_entry(Shape::Cursor, "narthex", &entry, false).unwrap();
        runs_narthex(found.server().unwrap())
    };
    let own: [(&str, &[&str]); 4] = [
        ("narthex", &["connect"]),
        ("/opt/bin/narthex", &["connect", "--data", "d"]),
        ("npx", &["-y", "narthex@1", "connect"]),
        ("/usr/bin/uvx", &["narthex", "connect"]),
    ];
    for (command, args) in own {
        assert!(runs(command, args), "{command} {args:?}");
    }
    let others: [(&str, &[&str]); 6] = [
        ("ssh", &["devbox", "/opt/bin/narthex", "connect"]),
        ("docker", &["exec", "-i", "box", "narthex", "connect"]),
        ("my-narthex", &["connect"]),
        ("narthex", &["--data", "d", "connect"]),
        ("npx", &["other", "narthex", "connect"]),
        ("sh", &["-c", "narthex connect"]),
    ];
    for (command, args) in others {
        assert!(!runs(command, args), "{command} {args:?}");
    }
}

/// D27: others write the files of a project, so neither a name nor a program of the same name
/// counts there.
#[test]
fn d27_in_a_project_only_this_program_is_narthex() {
    let own = std::env::current_exe().unwrap();
    let file = file_of(
        Scope::Project,
        "cursor",
        &json!({
            "narthex": { "command": "evil" },
            "near": { "command": "./evil/narthex", "args": ["connect"] },
            "far": { "command": "/no/such/narthex", "args": ["connect"] },
            "bridge": { "command": "npx", "args": ["narthex", "connect"] },
            "path": { "command": "narthex", "args": ["connect"], "env": { "PATH": "evil" } },
            "other": { "command": "narthex", "args": ["up", "connect"] },
            "own": { "command": own, "args": ["connect", "--data", "d"] },
            "bare": { "command": "narthex", "args": ["connect"] },
        }),
    );
    let Content::Servers(found) = &file.content else { panic!() };
    let servers: Vec<_> = found.iter().filter_map(Found::server).collect();
    assert!(servers.iter().all(|server| !is_gone_narthex(file.client, server)));
    let plan = plan(std::slice::from_ref(&file), &json!({}));
    let names: Vec<_> = plan.own.iter().map(|origin| origin.name.as_str()).collect();
    assert_eq!(names, ["own", "bare"]);
    assert_eq!(plan.servers.len(), 6);
}

#[test]
fn entries_that_cannot_be_used_are_kept_with_their_reason() {
    let entry = json!({ "command": ["x"] });
    assert!(matches!(
        read_entry(Shape::Cursor, "a", &entry, false),
        Some(Found::Unusable { reason, .. }) if reason == "`command` is not a text"
    ));
    let plan = plan(&[file("cursor", &json!({ "a": entry }))], &json!({}));
    assert_eq!((plan.servers.len(), plan.skipped.len()), (0, 1));
}

/// A server that the configuration has with secrets as texts can name them there, and is the same
/// one then.
#[test]
fn an_entry_with_secrets_as_texts_can_name_them() {
    let env = json!({ "DOCS_KEY": "docs-canary-4751", "LOG": "x" });
    let files = [file("cursor", &json!({ "docs": { "command": "docs", "env": env } }))];
    let first = plan(&files, &json!({}));
    let server = &first.servers[0].server;
    let mut entry: Value = serde_json::from_str(server.entry().expose()).unwrap();
    entry["disabled"] = true.into();
    let secrets = secrets_as_texts(server, &entry);
    let keys: Vec<_> = secrets.iter().map(|one| one.key.as_str()).collect();
    assert_eq!(keys, ["DOCS_KEY"]);
    let names = BTreeMap::from([("DOCS_KEY".to_owned(), SecretName::new("A").unwrap())]);
    let named = naming(server, &entry, &names);
    assert_eq!(named["env"], json!({ "DOCS_KEY": "${secret:A}", "LOG": "x" }));
    assert_eq!(named["disabled"], true);
    assert_eq!(secrets_as_texts(server, &named), []);
    let keys: Vec<_> = replaced(server, &entry, &names).into_keys().collect();
    assert_eq!(keys, ["DOCS_KEY"]);
    // A text that others have changed since stays.
    let changed = json!({ "command": "docs", "env": { "DOCS_KEY": "docs-canary-4752" } });
    assert_eq!(replaced(server, &changed, &names), BTreeMap::new());
    assert_eq!(naming(server, &changed, &names), changed);

    // A client that has the server disabled keeps it, and its secrets can be named all the same.
    let off = json!({ "docs": { "command": "docs", "env": env, "disabled": true } });
    let texts = BTreeMap::from([("docs".to_owned(), entry)]);
    let none = BTreeMap::new();
    let stays = Plan::of_moves(&[file("cursor", &off)], Existing { entries: &texts, moved: &none });
    assert_eq!((stays.servers.len(), stays.skipped.len()), (0, 1));
    let [disabled] = &stays.disabled[..] else { panic!("{stays:?}") };
    assert_eq!((disabled.alias.as_str(), disabled.server.seal()), ("docs", server.seal()));
    let moved = BTreeMap::from([(server.seal(), Alias::suggest("docs"))]);
    let entries = BTreeMap::from([("docs".to_owned(), named)]);
    let again = Plan::of_moves(&files, Existing { entries: &entries, moved: &moved });
    assert_eq!(outcomes(&again), [("docs", &Outcome::Present, 1)]);

    // An import knows it as well, also where the client has it disabled. Another value that is no
    // secret makes another server.
    let client = |env: &Value, is_disabled: bool| {
        let entry = json!({ "command": "docs", "env": env, "disabled": is_disabled });
        file("cursor", &json!({ "docs": entry }))
    };
    let more = json!({ "DOCS_KEY": "docs-canary-4751", "LOG": "y" });
    for (env, is_disabled, outcome) in [
        (&env, false, Outcome::Present),
        (&env, true, Outcome::Present),
        (&more, false, Outcome::Taken),
    ] {
        let copied = Plan::of_copies(&[client(env, is_disabled)], &entries);
        assert_eq!(outcomes(&copied), [("docs", &outcome, 1)]);
    }
}
