//! Tests of manifests: complete ones, and odd ones.

use serde_json::json;

use super::*;

fn read(value: &Value) -> Result<Manifest, Vec<String>> {
    Manifest::of_text(value.to_string().as_bytes(), "linux")
}

#[track_caller]
fn faults(value: &Value) -> String {
    read(value).unwrap_err().join("\n")
}

/// A small manifest with these members in place of its own.
fn manifest(change: impl FnOnce(&mut Value)) -> Value {
    let mut whole = json!({
        "manifest_version": "0.3", "name": "pad", "version": "1.0.0",
        "server": { "type": "node", "entry_point": "server/index.js",
            "mcp_config": { "command": "node", "args": ["${__dirname}/server/index.js"] } },
    });
    change(&mut whole);
    whole
}

/// E212: the members that count are read, and unknown ones are ignored.
#[test]
fn e212_a_manifest_is_read_whatever_else_is_in_it() {
    let whole = manifest(|whole| {
        whole["author"] = json!({ "name": "Ada" });
        whole["more"] = json!([1]);
        whole["compatibility"] = json!({ "platforms": ["darwin", "linux"], "claude_desktop": "x" });
        whole["server"]["mcp_config"]["env"] = json!({ "A": "1", "PORT": 7 });
        whole["server"]["mcp_config"]["platform_overrides"] = json!({
            "linux": { "args": ["b"], "env": { "A": "2" } },
            "win32": { "command": "node.exe" },
        });
        whole["user_config"] = json!({
            "api_key": { "type": "string", "title": "Key", "description": "The key",
                "sensitive": true, "required": true, "more": 1 },
            "dirs": { "type": "directory", "multiple": true, "default": ["${HOME}/a", "b"] },
            "level": { "type": "number", "min": 1, "max": 10.5, "default": 3 },
        });
    });
    let read = read(&whole).unwrap();
    assert_eq!((read.kind, read.entry_point.as_str()), (ServerKind::Node, "server/index.js"));
    let launch = read.launch.unwrap();
    assert_eq!((launch.command.as_str(), launch.args), ("node", vec!["b".to_owned()]));
    let env: Vec<_> = launch.env.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    assert_eq!(env, [("A", "2"), ("PORT", "7")]);
    let [key, dirs, level] = read.settings.as_slice() else { panic!("{:?}", read.settings) };
    assert_eq!(key.about.as_deref(), Some("Key: The key"));
    assert!(key.is_secret && key.is_required && !key.is_repeated && key.defaults.is_empty());
    assert_eq!((dirs.format, dirs.is_repeated), (InputFormat::FilePath, true));
    assert_eq!(dirs.defaults, ["${HOME}/a", "b"]);
    assert_eq!(
        (level.range, level.defaults.as_slice()),
        ((Some(1.0), Some(10.5)), &["3".to_owned()][..])
    );
    let older = manifest(|whole| {
        whole.as_object_mut().unwrap().remove("manifest_version");
        whole["dxt_version"] = json!("0.1");
        whole["server"]["mcp_config"] = Value::Null;
    });
    assert_eq!(self::read(&older).unwrap().launch, None);
}

/// E212: all faults are reported at once, each with its member.
#[test]
fn e212_attack_a_manifest_with_odd_members() {
    let odd = json!({
        "manifest_version": 1, "name": "", "version": null,
        "server": { "type": "wasm", "entry_point": "../../bin/sh",
            "mcp_config": { "command": ["sh"], "args": "x", "env": { "A=B": "x", "LIST": [] } } },
        "compatibility": { "platforms": "linux" },
        "user_config": { "--yes": {}, "a": 1, "b": { "type": "secret" },
            "c": { "type": "number", "min": "1", "required": "yes", "default": {} } },
    });
    let told = faults(&odd);
    for part in [
        "`manifest_version` is a number, and must be text",
        "`name` is empty",
        "`version` is missing",
        "`compatibility.platforms` is text, and must be a list of texts",
        "`user_config.--yes` has a name with other characters",
        "`user_config.a` is a number, and must be an object",
        "`user_config.b.type` is `secret`, and must be string, number,",
        "`user_config.c.required` is text, and must be true or false",
        "`user_config.c.min` is text, and must be a number",
        "`user_config.c.default` is an object, and must be text",
        "`server.type` is `wasm`, and must be node, python, uv or binary",
        "`server.entry_point` has `.` or `..` in its path",
        "`server.mcp_config.command` is a list, and must be text",
    ] {
        assert!(told.contains(part), "no {part:?} in {told}");
    }
    let told = faults(&manifest(|whole| {
        whole["server"]["mcp_config"]["args"] = json!([{}]);
        whole["server"]["mcp_config"]["env"] = json!({ "A=B": "x", "LIST": [] });
        whole["server"]["mcp_config"]["platform_overrides"] = json!({ "linux": 1 });
    }));
    for part in [
        "`server.mcp_config.args` has an item that is not text",
        "`server.mcp_config.env.A=B` is not the name of a variable",
        "`server.mcp_config.env.LIST` is a list, and must be text",
        "`server.mcp_config.platform_overrides.linux` is a number",
    ] {
        assert!(told.contains(part), "no {part:?} in {told}");
    }
    let newer = manifest(|whole| whole["manifest_version"] = json!("2.0"));
    assert!(faults(&newer).contains("reads 0.1 to 0.4"));
    for (text, told) in
        [(&b"[]"[..], "not a JSON object"), (b"{", "not valid JSON"), (b"\xff", "not valid")]
    {
        let faults = Manifest::of_text(text, "linux").unwrap_err().join("");
        assert!(faults.contains(told), "{faults}");
    }
    assert!(faults(&json!({})).contains("`server` is missing"));
}

/// E212: a server for other systems is refused with the reason.
#[test]
fn e212_a_server_for_other_systems_is_refused() {
    let other = manifest(|whole| whole["compatibility"] = json!({ "platforms": ["win32"] }));
    let told = faults(&other);
    assert!(told.contains("has win32, and this machine is `linux`"), "{told}");
}

/// E212: an archive without a manifest, or with an endless one, is refused.
#[test]
fn e212_attack_no_manifest_or_an_endless_one() {
    let folder = tempfile::tempdir().unwrap();
    let told = Manifest::of_folder(folder.path()).unwrap_err();
    assert_eq!(told, ["the archive has none at its top"]);
    let long = vec![b' '; 1024 * 1024 + 1];
    narthex_private::replace(&folder.path().join("manifest.json"), &long).unwrap();
    assert_eq!(Manifest::of_folder(folder.path()).unwrap_err(), ["it has more than 1 MiB"]);
}
