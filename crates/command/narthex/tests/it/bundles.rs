//! `narthex add` with bundles (MCPB): a registry on this machine names and serves one, and it is
//! downloaded, checked, unpacked, tried, called and removed.

use fs_err as fs;
use narthex_testkit::{
    archive::{Entry, FILE, LINK, PROGRAM, archive},
    planted,
    public_registry::{RegistryFixture, examples},
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::{
    shop::Shop,
    support::{Place, fixture},
};

const KEY: &str = "canary-7d03-pad-key";

/// A shop with bundles.
fn stocked() -> Shop {
    planted::remember(KEY);
    let place = Place::with(&json!({}));
    Shop { place, registry: RegistryFixture::start(examples(), 10) }
}

/// Publishes a bundle as `com.example/NAME`, with its true hash or another one.
fn publish(shop: &Shop, name: &str, bytes: Vec<u8>, hash: Option<&str>) {
    let true_hash: String =
        Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    let path = format!("/files/{name}.mcpb");
    let address = shop.registry.serve_file(&path, bytes);
    // Files of releases are often redirected.
    let address = address.replace("/files/", "/moved/files/");
    let package = json!({ "registryType": "mcpb", "identifier": address,
        "fileSha256": hash.unwrap_or(&true_hash), "transport": { "type": "stdio" } });
    let server = json!({ "name": format!("com.example/{name}"), "description": "A pad",
        "version": "1.0.0", "packages": [package],
        "repository": { "url": "https://git.example/pad", "source": "git" } });
    let official = json!({ "status": "active", "isLatest": true });
    shop.registry.publish(json!({
        "server": server,
        "_meta": { "io.modelcontextprotocol.registry/official": official },
    }));
}

/// The names in the folder of bundles.
fn bundles(shop: &Shop) -> Vec<String> {
    let Ok(entries) = fs::read_dir(shop.place.path("data/bundles")) else { return Vec::new() };
    entries.map(|one| one.unwrap().file_name().into_string().unwrap()).collect()
}

fn entry(shop: &Shop, name: &str) -> Value {
    shop.entries()[name].take()
}

/// The manifest of a program that takes a key and a folder.
fn manifest() -> Value {
    json!({
        "manifest_version": "0.3", "name": "pad", "version": "1.0.0",
        "server": { "type": "binary", "entry_point": "server/pad", "mcp_config": {
            "command": "${__dirname}/server/pad", "args": ["${user_config.folder}", "--stdio"],
            "env": { "PAD_KEY": "${user_config.key}" },
        } },
        "user_config": {
            "key": { "type": "string", "title": "Key of the pad", "sensitive": true,
                "required": true },
            "folder": { "type": "directory", "default": "${HOME}/pad" },
        },
    })
}

/// A bundle whose program is the fixture, if its key and its folder are right.
fn bundle(manifest: &Value, folder: &str) -> Vec<u8> {
    let script = format!(
        "#!/bin/sh\ntest \"$PAD_KEY\" = {KEY} -a \"$1\" = '{folder}' -a -f manifest.json || \
         {{ echo 'the key or the folder is wrong' >&2; exit 3; }}\nexec '{}' --stdio\n",
        fixture().display()
    );
    archive(&[
        Entry::new("manifest.json", FILE, manifest.to_string()),
        Entry::new("server/pad", PROGRAM, script),
        Entry::new("server/data.txt", FILE, "data"),
    ])
}

const ADD: [&str; 6] = ["add", "com.example/pad", "--set", "folder=notes", "--set-secret", "key"];

/// E209, E211, E212: a bundle is installed, tried, called and removed with its files.
#[test]
fn e211_a_bundle_is_installed_and_called() {
    let shop = stocked();
    let notes = fs::canonicalize(shop.place.path("")).unwrap().join("notes");
    publish(&shop, "pad", bundle(&manifest(), &notes.display().to_string()), None);
    let _daemon = shop.place.up();
    let done = shop.pipe(&ADD, &format!("{KEY}\n")).succeeded();
    assert!(done.stdout.contains("added pad: com.example/pad 1.0.0, with "), "{done:?}");
    for told in ["publisher  com.example", "https://git.example/pad", "sha256", "downloading "] {
        assert!(done.stderr.contains(told), "no {told} in {done:?}");
    }
    let [folder] = bundles(&shop).try_into().unwrap();
    assert!(folder.starts_with("pad-"), "{folder}");
    let whole = fs::canonicalize(shop.place.path("data/bundles")).unwrap().join(&folder);
    let program = whole.join("server/pad").display().to_string();
    assert!(done.stderr.contains(&program), "{done:?}");
    let expected = json!({ "transport": "stdio", "command": program,
        "args": [notes, "--stdio"], "cwd": whole, "env": { "PAD_KEY": "${secret:PAD_KEY}" } });
    assert_eq!(entry(&shop, "pad"), expected);
    assert_eq!(shop.place.mode("data/bundles"), 0o700);
    assert_eq!(shop.place.mode(&format!("data/bundles/{folder}/server/pad")), 0o700);
    assert_eq!(shop.place.mode(&format!("data/bundles/{folder}/server/data.txt")), 0o600);
    let called = shop.place.run(["call", "pad", "echo", "message=hello"]).succeeded();
    assert!(called.stdout.contains("hello"), "{called:?}");
    let again = shop.pipe(&ADD, &format!("{KEY}\n"));
    again.failed(1, &["conflict", "narthex mcp remove pad"]);
    let removed = shop.place.run(["mcp", "remove", "pad"]).succeeded();
    assert_eq!(removed.stdout, "removed pad and its bundle\n");
    assert_eq!((bundles(&shop), entry(&shop, "pad")), (Vec::new(), Value::Null));
}

/// E211: a bundle whose trial fails leaves nothing; `--keep-anyway` keeps it.
#[test]
fn e211_a_bundle_that_fails_is_not_kept() {
    let shop = stocked();
    publish(&shop, "pad", bundle(&manifest(), "/elsewhere"), None);
    let _daemon = shop.place.up();
    let failed = shop.pipe(&ADD, &format!("{KEY}\n"));
    failed.failed(1, &["the key or the folder is wrong", "nothing is kept"]);
    assert_eq!((bundles(&shop), entry(&shop, "pad")), (Vec::new(), Value::Null));
    let missing = shop.run(&["add", "com.example/pad"]);
    missing.failed(1, &["the setting `key` is required; give it with --set-secret key"]);
    assert_eq!((bundles(&shop), shop.secrets()), (Vec::new(), String::new()));
    let kept = shop.pipe(&[&ADD[..], &["--keep-anyway"]].concat(), &format!("{KEY}\n"));
    assert!(kept.succeeded().stderr.contains("its trial failed"));
    assert_eq!(bundles(&shop).len(), 1);
    // A daemon that is named by its address may be on another machine.
    let state = fs::read_to_string(shop.place.path("data/daemon.json")).unwrap();
    let state: Value = serde_json::from_str(&state).unwrap();
    let (url, token) = (state["url"].as_str().unwrap(), shop.place.path("data/admin.token"));
    let words = ["add", "com.example/pad", "--as", "far", "--daemon-url", url, "--token-file"];
    let far = shop.run(&[&words[..], &[token.to_str().unwrap()]].concat());
    let remedy = "run the command on the daemon's own machine and without this address\n";
    let told = [
        "`com.example/pad` comes as a bundle",
        &format!("--daemon-url names the daemon at {url}; {remedy}"),
    ];
    far.failed(2, &told);
    assert_eq!(bundles(&shop).len(), 1);
}

/// E209: a dry run needs no daemon, and downloads nothing.
#[test]
fn e209_a_dry_run_downloads_nothing() {
    let shop = stocked();
    publish(&shop, "pad", bundle(&manifest(), ""), None);
    let done = shop.run(&["add", "com.example/pad", "--dry-run"]).succeeded();
    assert!(done.stdout.contains("a dry run downloads nothing"), "{done:?}");
    let plan = shop.run(&["add", "com.example/pad", "--dry-run", "--json"]).succeeded().json();
    assert_eq!(plan["data"]["entry"], Value::Null);
    assert_eq!(plan["data"]["bundle"]["sha256"].as_str().unwrap().len(), 64);
    let found = shop.run(&["search", "pad", "--json"]).succeeded().json();
    assert_eq!(found["data"]["items"][0]["ways"], json!(["mcpb"]));
    assert!(!shop.registry.asked().iter().any(|path| path.contains("files")));
    assert!(!shop.place.path("data/bundles").exists());
}

/// E209, E210, E212: files that attackers changed or made are refused, and nothing of them stays.
#[test]
fn e210_attack_bundles_of_all_kinds_leave_nothing() {
    let shop = stocked();
    let _daemon = shop.place.up();
    let with =
        |entry: Entry| archive(&[Entry::new("manifest.json", FILE, manifest().to_string()), entry]);
    let program = Entry::new("server/pad", PROGRAM, "#!/bin/sh\n");
    let mut other = manifest();
    other["compatibility"] = json!({ "platforms": ["win32"] });
    let mut runner = manifest();
    runner["server"]["mcp_config"]["command"] = json!("npx");
    let zeros = "0".repeat(64);
    let table = [
        ("hash", with(program.clone()), Some(zeros.as_str()), "the file was changed"),
        ("slip", with(Entry::new("../../evil", FILE, "x")), None, "`../../evil` has `.` or `..`"),
        ("link", with(Entry::new("server/pad", LINK, "/bin/sh")), None, "is a link"),
        ("bare", archive(&[program]), None, "the archive has none at its top"),
        ("text", b"no archive".to_vec(), None, "cannot be unpacked: it is no archive"),
        ("other", bundle(&other, ""), None, "has win32, and this machine is"),
        ("npx", bundle(&runner, ""), None, "is `npx`, which is no file of the bundle"),
    ];
    for (name, bytes, hash, told) in table {
        publish(&shop, name, bytes, hash);
        let done = shop.run(&["add", &format!("com.example/{name}"), "--yes"]);
        done.failed(1, &[told]);
        assert_eq!(bundles(&shop), [""; 0], "{name}");
        assert_eq!(entry(&shop, name), Value::Null);
    }
    assert!(!shop.place.path("data/evil").exists() && !shop.place.path("evil").exists());
}
