//! Files of the folder in a set-up: untouched until they are approved (D27).

use super::*;

const SHOP: &str = r#"{
	// Of the shop.
	"servers": {
		"shop": {
			"type": "stdio",
			"command": "./bin/server",
			"args": ["--stdio"],
			"env": { "SHOP_TOKEN": "shop-canary-5721", "PLACE": "${workspaceFolder}/data" },
			"dev": { "watch": "src" },
		},
		"asked": { "type": "stdio", "command": "x", "env": { "A": "${input:answer}" } },
	},
}"#;

const ROO: &str =
    r#"{ "mcpServers": { "garden": { "command": "FIXTURE", "args": ["--stdio"] } } }"#;

/// A home folder, and a project with files of two clients in the current folder.
fn home() -> Home {
    let home = Home::new("https://tracker.example.com/mcp");
    home.write(".vscode/mcp.json", SHOP);
    home.write(".roo/mcp.json", &home.filled(ROO));
    fs::create_dir(home.place.path("bin")).unwrap();
    std::os::unix::fs::symlink(fixture(), home.place.path("bin/server")).unwrap();
    planted::remember("shop-canary-5721");
    home
}

fn of_folder(home: &Home, name: &str) -> String {
    fs::read_to_string(home.place.path(name)).unwrap()
}

fn set_up(home: &Home) -> Value {
    let words = ["setup", "--yes", "--json", "--only", "vscode,roo"];
    home.run(&words).succeeded().json()["data"].take()
}

/// The file of a client in the survey.
fn file(home: &Home, client: &str) -> Value {
    let shown = home.run(&["setup", "--dry-run", "--json"]).succeeded().json();
    let files = shown["data"]["files"].as_array().unwrap();
    files.iter().find(|file| file["client"] == client).unwrap().clone()
}

/// D27: without an approval a set-up names the file and the command that approves it, and changes
/// nothing there, also with `--yes`.
#[test]
fn d27_a_file_of_the_folder_stays_until_it_is_approved() {
    let home = home();
    let root = fs::canonicalize(home.place.path("")).unwrap();
    let path = root.join(".vscode/mcp.json").display().to_string();
    let trust = home.place.printed(&format!("trust {path}"));
    let shown = home.run(&["setup", "--dry-run"]).succeeded().stdout;
    for words in ["of this folder, stays as it is: shop, asked", "it is not trusted yet", &trust] {
        assert!(shown.contains(words), "{words}\n{shown}");
    }
    assert!(!home.place.path("data").exists());
    let data = set_up(&home);
    assert_eq!(names(&data["moved"]), ["tests"], "{data}");
    assert_eq!(of_folder(&home, ".vscode/mcp.json"), SHOP);
    assert_eq!(of_folder(&home, ".roo/mcp.json"), home.filled(ROO));
    let untrusted = data["untrusted"].as_array().unwrap().iter();
    let untrusted: Vec<_> = untrusted.map(|one| one["client"].as_str().unwrap()).collect();
    assert_eq!(untrusted, ["vscode/workspace", "roo/project"]);
    let of_code = file(&home, "vscode/workspace");
    assert_eq!(
        (&of_code["status"], &of_code["reason"]),
        (&json!("of_folder"), &json!("is not trusted yet"))
    );
    assert_eq!(format!("`{}`", of_code["trust"].as_str().unwrap()), trust);

    // Another notation than that of the path needs its name.
    home.write(".mcp.json", r#"{ "mcpServers": { "b": { "command": "x" } } }"#);
    let shown = home.run(&["setup", "--dry-run", "--only", "copilot-cli"]).succeeded().stdout;
    let path = root.join(".mcp.json").display().to_string();
    let trust = home.place.printed(&format!("trust {path} --format copilot-cli"));
    assert!(shown.contains(&trust), "{trust}\n{shown}");
}

/// D27, D42: an approved file is included like one of the user, with the paths that its servers
/// have in the folder, and an undo brings every byte back.
#[test]
fn d27_an_approved_file_of_the_folder_is_included() {
    let home = home();
    home.run(&["trust", ".vscode/mcp.json", "--yes"]).succeeded();
    home.run(&["trust", ".roo/mcp.json", "--yes"]).succeeded();
    let shown = home.run(&["setup", "--dry-run"]).succeeded().stdout;
    for words in ["without `dev`", "stays: only VS Code has the value of `answer`"] {
        assert!(shown.contains(words), "{words}\n{shown}");
    }
    let data = set_up(&home);
    assert_eq!(names(&data["moved"]), ["tests", "shop", "garden"], "{data}");
    assert_eq!(data["problems"], json!([]));
    let root = fs::canonicalize(home.place.path("")).unwrap().display().to_string();
    let settings = fs::read_to_string(home.settings()).unwrap();
    let settings = Document::parse(Format::Jsonc, settings.as_bytes()).unwrap();
    let shop = settings.value(&["mcp", "servers", "shop"]).unwrap().unwrap();
    assert_eq!(
        (&shop["command"], &shop["cwd"]),
        (&json!(format!("{root}/bin/server")), &json!(root))
    );
    let env = json!({ "PLACE": format!("{root}/data"), "SHOP_TOKEN": "${secret:SHOP_TOKEN}" });
    assert_eq!(shop["env"], env);

    // VS Code reaches narthex by the user's file, and Roo Code has only that of the folder.
    let now = of_folder(&home, ".vscode/mcp.json");
    assert!(now.contains("// Of the shop.") && now.contains("\"asked\""), "{now}");
    assert!(!now.contains("\"shop\"") && !now.contains("narthex"), "{now}");
    assert!(of_folder(&home, ".roo/mcp.json").contains("\"narthex\""));
    let clients = data["connected"].as_array().unwrap().iter();
    let clients: Vec<_> = clients.map(|one| one["client"].as_str().unwrap()).collect();
    assert_eq!(clients, ["vscode/user", "roo/project"]);

    // Its own change needs no new approval, and that of others does.
    assert_eq!(file(&home, "vscode/workspace")["status"], "read");
    let again = set_up(&home);
    assert!(again["moved"].is_null(), "nothing is left to do: {again}");
    home.write(".vscode/mcp.json", &format!("{now}\n"));
    let changed = file(&home, "vscode/workspace");
    assert_eq!(changed["reason"], "has changed since it was trusted");
    home.write(".vscode/mcp.json", &now);

    let undone = home.run(&["setup", "--undo", "--yes", "--json"]).succeeded().json();
    let files = undone["data"]["files"].as_array().unwrap();
    assert!(files.iter().all(|file| file["result"] == "restored"), "{undone}");
    assert_eq!(of_folder(&home, ".vscode/mcp.json"), SHOP);
    assert_eq!(of_folder(&home, ".roo/mcp.json"), home.filled(ROO));
    home.is_untouched();
    let again = home.run(&["trust", ".vscode/mcp.json"]).succeeded().stdout;
    assert!(again.contains("is trusted already"), "{again}");
}

/// A client whose form is not confirmed must be named, also for an approved file.
#[test]
fn d27_an_approved_file_of_a_client_that_is_not_confirmed_waits_for_its_name() {
    let home = home();
    home.write(".junie/mcp/mcp.json", r#"{ "mcpServers": { "c": { "command": "x" } } }"#);
    let done = home.run(&["trust", ".junie/mcp/mcp.json", "--yes"]).succeeded().stdout;
    assert!(done.contains(&home.place.printed("setup --only junie")), "{done}");
    let shown = home.run(&["setup", "--dry-run", "--json"]).succeeded().json();
    let left_alone = shown["data"]["left_alone"].as_array().unwrap().iter();
    let left_alone: Vec<_> = left_alone.map(|file| file["client"].as_str().unwrap()).collect();
    assert!(left_alone.contains(&"junie/project"), "{left_alone:?}");
}

/// D27: a file of the folder from which no server moves stays as it is, unless its client is named.
#[test]
fn d27_a_file_of_the_folder_that_keeps_its_servers_gets_no_narthex() {
    let home = home();
    // Their servers would be looked for in the network.
    for name in [".claude.json", ".cursor/mcp.json", ".gemini/settings.json"] {
        fs::remove_file(home.place.path("home").join(name)).unwrap();
    }
    let text = r#"{ "mcpServers": { "lost": { "command": "no-such-program-anywhere" } } }"#;
    home.write(".roo/mcp.json", text);
    home.run(&["trust", ".roo/mcp.json", "--yes"]).succeeded();
    let done = home.run(&["setup", "--yes", "--json"]).succeeded().json();
    assert!(names(&done["data"]["stayed"]).contains(&"lost"), "{done}");
    assert!(!done["data"]["connected"].to_string().contains("roo/project"), "{done}");
    assert_eq!(of_folder(&home, ".roo/mcp.json"), text);

    let data = set_up(&home);
    assert_eq!(data["connected"][0]["client"], "roo/project", "{data}");
    let now = of_folder(&home, ".roo/mcp.json");
    assert!(now.contains("\"narthex\"") && now.contains("\"lost\""), "{now}");
}
