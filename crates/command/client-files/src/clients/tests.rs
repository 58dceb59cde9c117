//! Tests of the table, and of its paths on a machine of the test's own.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use fs_err as fs;

use super::*;

const SYSTEMS: [System; 3] = [System::Linux, System::Macos, System::Windows];

fn row(id: &str, scope: Scope) -> &'static Client {
    clients().iter().find(|row| row.id == id && row.scope == scope).unwrap()
}

/// Candidates of a client on a machine with these variables, in `/home/ada` and `/shop`.
fn candidates(client: &Client, system: System, variables: &[(&str, &str)]) -> Vec<String> {
    let variables: BTreeMap<_, _> = variables.iter().copied().collect();
    let variable = |name: &str| variables.get(name).map(|value| (*value).to_owned());
    let (home, folder) = (Path::new("/home/ada"), Path::new("/shop"));
    let machine = Machine { system, home, folder, variable: &variable };
    let paths = machine.candidates(client).into_iter();
    paths.map(|path| path.display().to_string()).collect()
}

#[test]
fn rows_are_unique_and_whole() {
    let labels: BTreeSet<_> = clients().iter().map(Client::label).collect();
    assert_eq!(labels.len(), clients().len());
    for row in clients() {
        let label = row.label();
        assert!(row.source.starts_with("https://"), "{label}");
        assert!(row.seen.date.is_some(), "{label}");
        assert_eq!(row.is_verified, row.reason.is_none(), "{label}");
        assert_eq!(row.list == Container::Array, row.name_field.is_some(), "{label}");
        assert_eq!(row.connect == Transport::Http, row.http_entry.is_some(), "{label}");
        assert!(row.transports.contains(&row.connect), "{label}");
        assert!(row.note.as_deref() != Some("") && row.refresh_hint.as_deref() != Some(""));
        assert!(row.shared.iter().all(|other| labels.contains(other)), "{label}");
        let is_of_folder = row.key.iter().any(|key| key == FOLDER);
        assert_eq!(is_of_folder, row.label() == "claude-code/local", "{label}");
    }
}

#[test]
fn every_row_has_a_fixture_and_every_fixture_a_row() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let files = fs::read_dir(&folder).unwrap();
    let stem = |path: PathBuf| path.file_stem().unwrap().to_str().unwrap().to_owned();
    let files: BTreeSet<_> = files.map(|entry| stem(entry.unwrap().path())).collect();
    let rows: BTreeSet<_> = clients().iter().map(|row| row.label().replace('/', "-")).collect();
    assert_eq!(files, rows);
}

/// Each row gives an absolute path on each system that its client is made for, and no path keeps a
/// sign of the table's notation.
#[test]
fn every_row_has_paths_on_every_system() {
    for row in clients() {
        for system in SYSTEMS {
            let paths = candidates(row, system, &[]);
            let is_windows_only = row.id == "visual-studio" && system != System::Windows;
            // A pattern gives existing files alone.
            let is_pattern = row.label() == "continue/project";
            assert_eq!(paths.is_empty(), is_windows_only || is_pattern, "{}", row.label());
            for path in paths {
                let begin = if row.scope == Scope::User { "/home/ada/" } else { "/" };
                assert!(path.starts_with(begin), "{}: {path}", row.label());
                assert!(!path.contains(['$', '%', '~', '*']), "{}: {path}", row.label());
            }
        }
    }
}

#[test]
fn paths_follow_variables_and_systems() {
    let code = row("vscode", Scope::User);
    let xdg = [("XDG_CONFIG_HOME", "/etc/ada"), ("APPDATA", "/roaming")];
    for (system, variables, path) in [
        (System::Linux, &xdg[..0], "/home/ada/.config/Code/User/mcp.json"),
        (System::Linux, &xdg, "/etc/ada/Code/User/mcp.json"),
        (System::Linux, &[("XDG_CONFIG_HOME", "here")], "/home/ada/.config/Code/User/mcp.json"),
        (System::Macos, &xdg, "/home/ada/Library/Application Support/Code/User/mcp.json"),
        (System::Windows, &xdg, "/roaming/Code/User/mcp.json"),
        (System::Windows, &xdg[..0], "/home/ada/AppData/Roaming/Code/User/mcp.json"),
    ] {
        assert_eq!(candidates(code, system, variables), [path]);
    }
    let codex = row("codex", Scope::User);
    assert_eq!(
        candidates(codex, System::Linux, &[("CODEX_HOME", "~/elsewhere")]),
        ["/home/ada/elsewhere/config.toml", "/home/ada/.codex/config.toml"]
    );
    // A relative folder is the one of this process, and an undo may run in another.
    let here = std::env::current_dir().unwrap().join("here/config.toml").display().to_string();
    assert_eq!(candidates(codex, System::Linux, &[("CODEX_HOME", "./here")])[0], here);
    let cline = row("cline", Scope::User);
    let paths = candidates(cline, System::Linux, &[("CLINE_MCP_SETTINGS_PATH", "/m.json")]);
    assert_eq!(paths[0], "/m.json");
    let project = row("cursor", Scope::Project);
    assert_eq!(candidates(project, System::Linux, &[]), ["/shop/.cursor/mcp.json"]);
}

#[test]
fn clients_are_found_by_their_folders_and_programs() {
    let place = tempfile::tempdir().unwrap();
    let (home, folder, bin) =
        (place.path().join("home"), place.path().join("work"), place.path().join("bin"));
    for path in [&home, &folder, &bin] {
        fs::create_dir(path).unwrap();
    }
    let path = bin.display().to_string();
    let variable = |name: &str| (name == "PATH").then(|| path.clone());
    let machine =
        Machine { system: System::Linux, home: &home, folder: &folder, variable: &variable };
    let found = || {
        let rows = clients().iter().filter(|row| machine.has(row));
        rows.map(Client::label).collect::<Vec<_>>()
    };
    assert_eq!(found(), [""; 0]);
    fs::create_dir(home.join(".cursor")).unwrap();
    fs::create_dir(folder.join(".zed")).unwrap();
    fs::write(bin.join("codex"), "").unwrap();
    assert_eq!(found(), ["cursor/user", "zed/project"]);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(bin.join("codex"), mode).unwrap();
    assert_eq!(found(), ["cursor/user", "codex/user", "zed/project"]);
    assert_eq!(
        machine.to_create(row("continue", Scope::Project)).unwrap(),
        folder.join(".continue/mcpServers/narthex.yaml")
    );
    assert_eq!(machine.to_create(row("visual-studio", Scope::User)), None);
    fs::create_dir_all(folder.join(".continue/mcpServers")).unwrap();
    for name in ["b.yaml", "a.yaml", "c.json"] {
        fs::write(folder.join(".continue/mcpServers").join(name), "").unwrap();
    }
    let files = machine.candidates(row("continue", Scope::Project));
    let names: Vec<_> = files.iter().map(|file| file.file_name().unwrap()).collect();
    assert_eq!(names, ["a.yaml", "b.yaml"]);
}
