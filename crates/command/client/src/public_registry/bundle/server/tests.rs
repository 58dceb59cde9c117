//! Tests of commands: the kinds of servers, the folders and values in them, and refused programs.

use std::collections::BTreeMap;

use narthex_model::SecretName;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::public_registry::{
    document::ServerDocument,
    testing::{answers, folders},
    ways::{Way, ways},
};

const PLACE: &str = "/data/bundles/pad-1";

/// The files of a bundle.
fn files() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["server/index.js", "server/run", "main.py"] {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    folder
}

fn made(server: &Value, user_config: &Value) -> Result<BundleServer, String> {
    let whole = json!({ "manifest_version": "0.3", "name": "pad", "version": "1.0.0",
        "server": server, "user_config": user_config });
    let manifest = Manifest::of_text(whole.to_string().as_bytes(), "linux").unwrap();
    let files = files();
    let folders = Folders { files: files.path(), folder: PLACE, home: Some("/home/ada") };
    BundleServer::new(&manifest, &folders).map_err(|faults| faults.join("\n"))
}

/// The server of this kind with this command.
fn of(kind: &str, file: &str, config: Value) -> Result<BundleServer, String> {
    made(&json!({ "type": kind, "entry_point": file, "mcp_config": config }), &json!({}))
}

/// The way of a package with this bundle.
fn way(server: BundleServer) -> Way {
    let package = json!({ "registryType": "mcpb", "identifier": "https://a.example/b.mcpb",
        "fileSha256": "0".repeat(64), "transport": { "type": "stdio" },
        "environmentVariables": [{ "name": "KEY" }, { "name": "MODE", "default": "fast" }] });
    let server_json = json!({ "name": "a/b", "packages": [package] });
    let document: ServerDocument = serde_json::from_value(server_json).unwrap();
    ways(&document).0.remove(0).with_server(server)
}

fn entry(way: &Way, given: &[(&str, &str)]) -> Result<Value, Vec<String>> {
    let draft = way.draft(&answers(given), &folders())?;
    let name = |of: &str| (of.to_owned(), SecretName::new(of).unwrap());
    let names: BTreeMap<_, _> = draft.secrets().map(|(of, _)| name(of)).collect();
    Ok(draft.entry(&names))
}

/// E212: each kind of server has its runtime, and a file of the bundle is absolute.
#[test]
fn e212_each_kind_of_server_becomes_a_command() {
    let none = Value::Null;
    let config = |command: &str| json!({ "command": command });
    let script = format!("{PLACE}/server/run");
    let table = [
        ("node", "server/index.js", none.clone(), "node", vec![format!("{PLACE}/server/index.js")]),
        ("python", "main.py", none.clone(), "python3", vec![format!("{PLACE}/main.py")]),
        ("python", "main.py", config("python"), "python3", vec![]),
        ("python", "main.py", config("uv"), "uv", vec![]),
        (
            "uv",
            "main.py",
            none.clone(),
            "uv",
            ["run", "--directory", PLACE, "main.py"].map(str::to_owned).to_vec(),
        ),
        ("binary", "server/run", none, &script, vec![]),
        ("binary", "server/run", config("server/run"), &script, vec![]),
        ("binary", "server/run", config("./server/run"), &script, vec![]),
        ("node", "server/index.js", config("${__dirname}/server/run"), &script, vec![]),
    ];
    for (kind, file, config, command, args) in table {
        let way = way(of(kind, file, config.clone()).unwrap());
        let entry = entry(&way, &[]).unwrap();
        assert_eq!(entry["command"], command, "{kind} {config}");
        assert_eq!(entry["args"], json!(args), "{kind} {config}");
        assert_eq!((&entry["cwd"], &entry["transport"]), (&json!(PLACE), &json!("stdio")));
    }
}

/// E212: other programs than the runtime and the bundle's own are refused.
#[test]
fn e212_attack_a_command_outside_of_the_bundle() {
    for command in
        ["npx", "sh", "/bin/sh", "../../bin/sh", "server/../../x", "${HOME}/x", "server", "python3"]
    {
        let why = of("node", "server/index.js", json!({ "command": command })).unwrap_err();
        assert!(why.contains("which is no file of the bundle, and not `node`"), "{why}");
    }
    let why = of("binary", "absent", json!({ "command": "node" })).unwrap_err();
    assert!(why.contains("`server.entry_point` is `absent`"), "{why}");
    assert!(why.contains("is `node`, which is no file of the bundle"), "{why}");
    let config = json!({ "command": "${user_config.a}", "args": ["${user_config.b}"] });
    let server = json!({ "type": "node", "entry_point": "main.py", "mcp_config": config });
    let why = made(&server, &json!({ "a": { "type": "string" } })).unwrap_err();
    assert!(why.contains("command` depends on a value"), "{why}");
    assert!(why.contains("args` names `b`, which `user_config` does not have"), "{why}");
}

/// A server with values of each kind.
fn with_values() -> Way {
    let config = json!({
        "command": "node",
        "args": [
            "${__dirname}${/}server${pathSeparator}index.js",
            "--level",
            "${user_config.level}",
            "--name=${user_config.name}",
            "--dirs",
            "${user_config.dirs}",
            "${UNKNOWN}",
            "${",
        ],
        "env": {
            "KEY": "Bearer ${user_config.key}",
            "LOGS": "${HOME}/logs",
            "OUT": "${DOWNLOADS}",
            "NONE": "${user_config.other}",
        },
    });
    let user_config = json!({
        "level": { "type": "number", "min": 1, "max": 5 },
        "name": { "type": "string", "default": "${DESKTOP}" },
        "dirs": { "type": "directory", "multiple": true, "default": ["${HOME}/a", "b"] },
        "key": { "type": "string", "title": "Key", "sensitive": true, "required": true },
        "other": { "type": "boolean" },
        "unused": { "type": "string", "required": true },
    });
    let server = json!({ "type": "node", "entry_point": "server/index.js", "mcp_config": config });
    way(made(&server, &user_config).unwrap())
}

/// E204, E212: values go to their places; what is not given is left out with its option.
#[test]
fn e212_values_of_the_user_are_filled_in() {
    let way = with_values();
    let mut names: Vec<_> = way.questions().into_iter().map(|question| question.name).collect();
    names.sort_unstable();
    // The manifest sets `KEY`, so the registry's is not asked for.
    assert_eq!(names, ["MODE", "dirs", "key", "level", "name", "other"]);
    let made = entry(&way, &[("key", "!abc")]).unwrap();
    let args = json!([
        format!("{PLACE}/server/index.js"),
        "--name=/home/ada/Desktop",
        "--dirs",
        "/home/ada/a",
        "/here/b",
        "$${UNKNOWN}",
        "$${"
    ]);
    assert_eq!(made["args"], args);
    let env = json!({ "KEY": "${secret:KEY}", "LOGS": "/home/ada/logs",
        "OUT": "/home/ada/Downloads", "MODE": "fast" });
    assert_eq!(made["env"], env);
    let given =
        [("key", "!abc"), ("level", "2"), ("dirs", "~/x"), ("other", "true"), ("name", "${x}")];
    let made = entry(&way, &given).unwrap();
    let words: Vec<_> =
        made["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    assert_eq!(words[1..6], ["--level", "2", "--name=$${x}", "--dirs", "/home/ada/x"]);
    assert_eq!(made["env"]["NONE"], "true");
}

/// E204, E206: values that break a rule are refused, and secrets as arguments.
#[test]
fn e212_values_are_checked() {
    let way = with_values();
    let told = entry(&way, &[("level", "9"), ("unused", "1"), ("name", "!abc")]).unwrap_err();
    let all = told.join("\n");
    for part in [
        "the server takes no value `unused`; it takes ",
        "the setting `level` must be at most 5",
        "the setting `key` is required; give it with --set-secret key",
        "an argument of the bundle would hold a secret",
    ] {
        assert!(all.contains(part), "no {part:?} in {all}");
    }
    let config = json!({ "command": "node", "env": { "DIRS": "${user_config.dirs}" } });
    let server = json!({ "type": "node", "entry_point": "main.py", "mcp_config": config });
    let dirs = json!({ "dirs": { "type": "directory", "multiple": true } });
    let way = self::way(made(&server, &dirs).unwrap());
    let told = entry(&way, &[("dirs", "/a"), ("dirs", "/b")]).unwrap_err();
    assert!(told[0].contains("the variable `DIRS` takes one value of `dirs`"), "{told:?}");
}
