//! `cargo xtask dist --check`: each package is installed in a place that has nothing else of
//! narthex, and does the main job there: a daemon starts a server, and a tool of it is called.

mod arrival;
mod container;
mod debian;
mod documents;
mod place;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use fs_err as fs;

use self::place::Place;
use super::Kind;
use super::product::Product;
use super::wheel;
use crate::process;
use crate::workspace::{self, cargo};

/// The result for one package.
pub(super) struct Row {
    /// The names and sizes of its files.
    files: Vec<(String, u64)>,
    place: String,
    outcome: Result<String>,
}

/// Tries all packages and prints a table. False if one has failed.
pub(super) fn run(product: &Product, files: &[(Kind, PathBuf)]) -> Result<bool> {
    let fixture = ["build", "--package", "narthex-testkit", "--bin", "narthex-fixture"];
    process::run(&mut cargo(&fixture))?;
    let logs = workspace::target().join("packages-check");
    fs::create_dir_all(&logs)?;
    let mut rows = Vec::new();
    for (kind, files) in by_kind(files) {
        println!("== {} is tried", kind.name());
        let installed = install(kind, &files, product);
        rows.push(match installed {
            Ok(Installed::Program(place)) => Row {
                files: sizes(&files)?,
                place: place.name.clone(),
                outcome: place.main_job(&product.version, &logs),
            },
            Ok(Installed::Document(said)) => {
                Row { files: sizes(&files)?, place: "not installed".to_owned(), outcome: Ok(said) }
            }
            Err(error) => {
                Row { files: sizes(&files)?, place: "nowhere".to_owned(), outcome: Err(error) }
            }
        });
    }
    rows.extend(documents::of_the_repository());
    let is_whole = print(&rows);
    let npm: Vec<_> = files.iter().filter(|(kind, _)| *kind == Kind::Npm).collect();
    if npm.is_empty() {
        return Ok(is_whole);
    }
    println!("\n== from the package of npm to the first call");
    let packages: Vec<_> = npm.into_iter().map(|(_, file)| file.clone()).collect();
    println!("{}", arrival::measured(&packages)?);
    Ok(is_whole)
}

/// Tries packages without a program.
pub(super) fn run_documents(files: &[(Kind, PathBuf)]) -> Result<bool> {
    let mut rows = Vec::new();
    for (kind, files) in by_kind(files) {
        let outcome = documents::check(kind, &files);
        rows.push(Row { files: sizes(&files)?, place: "not installed".to_owned(), outcome });
    }
    rows.extend(documents::of_the_repository());
    Ok(print(&rows))
}

/// A package that is ready to be tried, or one that was read only.
enum Installed {
    Program(Place),
    Document(String),
}

fn install(kind: Kind, files: &[PathBuf], product: &Product) -> Result<Installed> {
    let first = files.first().context("the package has no file")?;
    Ok(Installed::Program(match kind {
        Kind::Tar => unpacked(first)?,
        Kind::Deb => debian::installed(first)?,
        Kind::Image => container::started(files, &product.version)?,
        Kind::Npm => npm_project(files)?,
        Kind::Wheel => environment(first)?,
        Kind::Sbom | Kind::Formula => {
            return Ok(Installed::Document(documents::check(kind, files)?));
        }
    }))
}

fn unpacked(archive: &Path) -> Result<Place> {
    let folder = tempfile::tempdir()?;
    let mut tar = Command::new("tar");
    tar.args(["--extract", "--gzip", "--strip-components", "1", "--file"]).arg(archive);
    process::run(tar.arg("--directory").arg(folder.path()))?;
    let program = folder.path().join("narthex");
    Place::on_this_machine("an empty folder", &program, folder)
}

/// A project of npm with both packages. Nothing is fetched, since packages of other platforms are
/// optional.
fn npm_project(files: &[PathBuf]) -> Result<Place> {
    crate::peers::install::provide("npm", &["--version"], &["nodejs", "npm"])?;
    let folder = tempfile::tempdir()?;
    fs::write(folder.path().join("package.json"), "{ \"private\": true }\n")?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--offline", "--ignore-scripts", "--no-audit", "--no-fund"]);
    process::run(npm.args(files).current_dir(folder.path()))?;
    let program = folder.path().join("node_modules/.bin/narthex");
    let mut place = Place::on_this_machine("a project of npm", &program, folder)?;
    place.call = ["npx", "--no-install", "narthex"].map(str::to_owned).to_vec();
    Ok(place)
}

fn environment(file: &Path) -> Result<Place> {
    let folder = tempfile::tempdir()?;
    let environment = folder.path().join("environment");
    wheel::install(file, &environment)?;
    let program = environment.join("bin/narthex");
    Place::on_this_machine("an environment of Python", &program, folder)
}

/// The files of each kind, in the order in which they were made.
fn by_kind(files: &[(Kind, PathBuf)]) -> Vec<(Kind, Vec<PathBuf>)> {
    let mut kinds: Vec<(Kind, Vec<PathBuf>)> = Vec::new();
    for (kind, file) in files {
        match kinds.iter_mut().find(|(known, _)| known == kind) {
            Some((_, files)) => files.push(file.clone()),
            None => kinds.push((*kind, vec![file.clone()])),
        }
    }
    kinds
}

fn sizes(files: &[PathBuf]) -> Result<Vec<(String, u64)>> {
    let size = |file: &PathBuf| {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok((name, fs::metadata(file)?.len()))
    };
    files.iter().map(size).collect()
}

/// Prints one line for each file, as a table of Markdown. False if a row has failed.
fn print(rows: &[Row]) -> bool {
    println!("\n| file | size | installed in | ran |\n|---|--:|---|---|");
    for Row { files, place, outcome } in rows {
        let ran = match outcome {
            Ok(said) => said.clone(),
            Err(error) => format!("FAILED: {error:#}"),
        };
        for (name, size) in files {
            println!("| `{name}` | {} | {place} | {ran} |", shown(*size));
        }
    }
    rows.iter().all(|row| row.outcome.is_ok())
}

/// A size in the unit that fits it.
fn shown(bytes: u64) -> String {
    match bytes {
        0..10_240 => format!("{bytes} B"),
        10_240..1_048_576 => format!("{} KiB", bytes / 1024),
        _ => format!("{}.{} MiB", bytes / 1_048_576, bytes % 1_048_576 * 10 / 1_048_576),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_package_fails_the_whole_check() {
        let row = |outcome| Row {
            files: vec![("a".to_owned(), 1)],
            place: "a folder".to_owned(),
            outcome,
        };
        assert!(print(&[row(Ok("a call".to_owned()))]));
        assert!(!print(&[row(Ok("a call".to_owned())), row(Err(anyhow::anyhow!("no answer")))]));
    }

    #[test]
    fn sizes_are_rounded_down() {
        assert_eq!(shown(900), "900 B");
        assert_eq!(shown(20_479), "19 KiB");
        assert_eq!(shown(1_048_576 * 3 / 2), "1.5 MiB");
    }
}
