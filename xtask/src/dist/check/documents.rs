//! Texts beside the packages: the list of dependencies, the formula, and files of this repository
//! that only run elsewhere. Each is read by a program that knows its form.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use fs_err as fs;
use serde_json::Value;

use super::Row;
use crate::dist::Kind;
use crate::dist::product::VERSION;
use crate::peers::{Peers, install};
use crate::process;
use crate::workspace;

const READ: Duration = Duration::from_secs(120);
/// The files of the repository with the checks that know their form, in the environment
/// `packages`.
const FILES: [(&str, &[&[&str]]); 2] = [
    ("deploy/compose.yaml", &[&["check-jsonschema", "--builtin-schema", "vendor.compose-spec"]]),
    (
        ".github/workflows/release.yml",
        &[
            &["check-jsonschema", "--builtin-schema", "vendor.github-workflows"],
            &["zizmor", "--offline", "--no-progress", "--quiet"],
        ],
    ),
];

/// Reads a package that has no program, and says what has read it.
pub(super) fn check(kind: Kind, files: &[PathBuf]) -> Result<String> {
    let file = files.first().context("the package has no file")?;
    match kind {
        Kind::Sbom => dependencies(file),
        Kind::Formula => formula(file),
        Kind::Tar | Kind::Deb | Kind::Image | Kind::Npm | Kind::Wheel => {
            Ok("not tried: it needs the program".to_owned())
        }
    }
}

/// Checks that the document is about this version, and that it has the licences of dependencies.
fn dependencies(file: &Path) -> Result<String> {
    let document: Value = serde_json::from_str(&fs::read_to_string(file)?)?;
    let about = &document["metadata"]["component"];
    ensure!(about["name"] == "narthex" && about["version"] == VERSION, "it is about {about}");
    let components = document["components"].as_array().context("there are no components")?;
    let own = |one: &Value| one["name"].as_str().is_some_and(|name| name.starts_with("narthex"));
    let others: Vec<_> = components.iter().filter(|one| !own(one)).collect();
    let bare = others.iter().find(|one| one["licenses"][0].is_null());
    ensure!(others.len() > 100, "there are only {} dependencies", others.len());
    ensure!(bare.is_none(), "this has no licence: {}", bare.unwrap_or(&&Value::Null));
    Ok(format!("read: {} dependencies with licences", others.len()))
}

fn formula(file: &Path) -> Result<String> {
    install::provide("ruby", &["--version"], &["ruby"])?;
    let done = process::capture(Command::new("ruby").arg("-wc").arg(file), READ)?;
    ensure!(done.status.success(), "ruby: {}", done.stderr);
    Ok("`ruby -c`".to_owned())
}

/// The files of the repository.
pub(super) fn of_the_repository() -> Vec<Row> {
    let row = |(path, checks): &(&str, &[&[&str]])| {
        let file = workspace::root().join(path);
        let size = fs::metadata(&file).map(|found| found.len()).unwrap_or_default();
        let outcome = checked(&file, checks);
        Row { files: vec![((*path).to_owned(), size)], place: "not run".to_owned(), outcome }
    };
    FILES.iter().map(row).collect()
}

fn checked(file: &Path, checks: &[&[&str]]) -> Result<String> {
    let programs = Peers::python_programs("packages")?;
    let mut names = Vec::new();
    for words in checks {
        let [name, args @ ..] = words else { continue };
        let mut command = Command::new(programs.join(name));
        let done = process::capture(command.args(args).arg(file), READ)?;
        ensure!(done.status.success(), "{name}: {}{}", done.stdout, done.stderr);
        names.push(format!("`{name}`"));
    }
    Ok(names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files that name the packages of this version, which a new version has to change.
    #[test]
    fn texts_name_the_packages_of_this_version() {
        for (path, name) in [
            ("deploy/compose.yaml", format!("image: narthex:{VERSION}\n")),
            ("docs/guides/compose.md", format!("narthex-{VERSION}-linux-x86_64.docker.tar")),
            ("docs/reference/packages.md", format!("narthex-{VERSION}-linux-x86_64.tar.gz")),
            ("docs/start/install.md", format!("./narthex_{VERSION}_amd64.deb")),
        ] {
            let text = fs::read_to_string(workspace::root().join(path)).unwrap();
            assert!(text.contains(&name), "{path} does not name {name}");
        }
    }

    #[test]
    fn a_list_of_dependencies_without_licences_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.cdx.json");
        let component = serde_json::json!({ "name": "x", "licenses": [{ "expression": "MIT" }] });
        let mut document = serde_json::json!({
            "metadata": { "component": { "name": "narthex", "version": VERSION } },
            "components": vec![component; 101],
        });
        fs::write(&file, document.to_string()).unwrap();
        assert!(dependencies(&file).unwrap().contains("101"));
        document["components"][7]["licenses"] = Value::Null;
        fs::write(&file, document.to_string()).unwrap();
        assert!(dependencies(&file).unwrap_err().to_string().contains("no licence"));
    }
}
