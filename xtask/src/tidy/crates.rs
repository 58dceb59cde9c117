//! The crates of the workspace as the manifests have them, and their list in ARCHITECTURE.md.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use cargo_metadata::{DependencyKind, MetadataCommand};

use super::Finding;
use super::source::Source;
use crate::workspace;

/// A crate with what its manifest asks for. Crates of the workspace go by their folder's name.
#[derive(Clone, Debug, Default)]
pub(super) struct Package {
    pub(super) name: String,
    /// The folder, from the root.
    pub(super) dir: String,
    pub(super) normal: BTreeSet<String>,
    pub(super) dev: BTreeSet<String>,
    pub(super) external: Vec<External>,
    /// True if the manifest itself asks for a clock that tests can pause.
    pub(super) has_test_clock: bool,
    /// True if `cargo test --doc` runs the examples of its documentation.
    pub(super) has_examples: bool,
}

/// A dependency from outside of the workspace.
#[derive(Clone, Debug)]
pub(super) struct External {
    pub(super) name: String,
    pub(super) is_dev: bool,
}

/// Reads the manifests by way of cargo.
pub(super) fn packages() -> Result<Vec<Package>> {
    let root = workspace::root();
    let metadata = MetadataCommand::new()
        .manifest_path(root.join("Cargo.toml"))
        .no_deps()
        .exec()
        .context("cargo metadata failed")?;
    let mut packages = Vec::new();
    for package in &metadata.packages {
        let dir = package.manifest_path.parent().context("a manifest without a folder")?;
        let dir = dir.strip_prefix(&metadata.workspace_root)?;
        let mut found = Package {
            name: dir.file_name().context("a package in the root")?.to_owned(),
            dir: dir.to_string(),
            has_examples: package.targets.iter().any(|target| target.doctest),
            ..Package::default()
        };
        for dependency in &package.dependencies {
            let is_dev = dependency.kind == DependencyKind::Development;
            let mut features = dependency.features.iter();
            found.has_test_clock |= features.any(|one| one == "test-util" || one == "clock");
            match dependency.path.as_ref().and_then(|path| path.file_name()) {
                Some(name) if is_dev => found.dev.insert(name.to_owned()),
                Some(name) => found.normal.insert(name.to_owned()),
                None => {
                    found.external.push(External { name: dependency.name.clone(), is_dev });
                    true
                }
            };
        }
        packages.push(found);
    }
    packages.sort_by(|a, b| a.dir.cmp(&b.dir));
    Ok(packages)
}

/// Compares the crates with the lines of ARCHITECTURE.md that begin with a crate's folder in
/// backticks, in a list or a table.
pub(super) fn check_list(source: &Source, packages: &[Package]) -> Vec<Finding> {
    let listed: Vec<(usize, &str)> =
        source.lines().filter_map(|(at, line)| listed_crate(line).map(|dir| (at, dir))).collect();
    let mut findings = Vec::new();
    for package in packages {
        if !listed.iter().any(|(_, dir)| *dir == package.dir) {
            let message = format!("has no line that begins with `{}`", package.dir);
            findings.push(Finding::new(&source.path, message));
        }
    }
    for (at, dir) in listed {
        if !packages.iter().any(|package| package.dir == dir) {
            findings.push(Finding::at(source, at, format!("there is no crate `{dir}`")));
        }
    }
    findings
}

/// Finds tests that pause the clock in a crate that has this feature only by others. They compile
/// with the whole workspace, and not alone.
pub(super) fn check_clock(source: &Source, packages: &[Package]) -> Option<Finding> {
    const PAUSING: [&str; 2] = ["tokio::test(start_paused", "tokio::time::advance("];
    let dir = source.crate_dir().filter(|_| source.path.starts_with("crates/"))?;
    let (at, _) =
        source.lines().find(|(_, line)| PAUSING.iter().any(|word| line.contains(word)))?;
    let package = packages.iter().find(|package| package.dir == dir)?;
    let message = "needs the feature `test-util` of tokio among the crate's dev-dependencies";
    (!package.has_test_clock).then(|| Finding::at(source, at, message))
}

/// Finds an example in the documentation of a crate whose manifest leaves examples out: nothing
/// would run it.
pub(super) fn check_examples(source: &Source, packages: &[Package]) -> Option<Finding> {
    const FENCES: [&str; 2] = ["/// ```", "//! ```"];
    let dir = source.crate_dir().filter(|dir| source.path[dir.len()..].starts_with("/src/"))?;
    let is_fence = |line: &str| FENCES.iter().any(|fence| line.trim_start().starts_with(fence));
    let (at, _) = source.lines().find(|(_, line)| is_fence(line))?;
    let package = packages.iter().find(|package| package.dir == dir)?;
    let message = "is not run: take `doctest = false` out of the crate's manifest";
    (!package.has_examples).then(|| Finding::at(source, at, message))
}

fn listed_crate(line: &str) -> Option<&str> {
    let rest = line.trim_start_matches(['-', '*', '|', ' ']).strip_prefix('`')?;
    let (name, _) = rest.split_once('`')?;
    let name = name.trim_end_matches('/');
    let place = name.strip_prefix("crates/").and_then(|place| place.split_once('/'));
    let is_crate = place.is_some_and(|(_, name)| !name.contains(['/', '*']));
    (is_crate || name == "xtask").then_some(name)
}

#[cfg(test)]
mod tests {
    use super::super::source::Source;
    use super::{Package, check_clock, check_examples, check_list};

    fn check(text: &str) -> Vec<String> {
        let source = Source { path: "A.md".to_owned(), text: text.to_owned() };
        let package = |name: &str, dir: &str| Package {
            name: name.to_owned(),
            dir: dir.to_owned(),
            ..Package::default()
        };
        let packages = [package("wire", "crates/words/wire"), package("xtask", "xtask")];
        check_list(&source, &packages).into_iter().map(|f| f.place + ": " + &f.message).collect()
    }

    #[test]
    fn a_paused_clock_needs_its_feature_in_the_crate() {
        let source = Source {
            path: "crates/words/wire/src/a.rs".to_owned(),
            text: "fn a() {}\n#[tokio::test(start_paused = true)]\n".to_owned(),
        };
        let mut package = Package { dir: "crates/words/wire".to_owned(), ..Package::default() };
        let found = check_clock(&source, std::slice::from_ref(&package));
        assert_eq!(found.unwrap().place, "crates/words/wire/src/a.rs:2");
        package.has_test_clock = true;
        assert!(check_clock(&source, &[package]).is_none());
    }

    #[test]
    fn an_example_must_be_one_that_is_run() {
        let source = Source {
            path: "crates/words/wire/src/a.rs".to_owned(),
            text: "/// Adds.\n///\n/// ```\n/// assert_eq!(1 + 1, 2);\n/// ```\n".to_owned(),
        };
        let mut package = Package { dir: "crates/words/wire".to_owned(), ..Package::default() };
        let found = check_examples(&source, std::slice::from_ref(&package));
        assert_eq!(found.unwrap().place, "crates/words/wire/src/a.rs:3");
        let plain = Source { text: "/// Adds.\n".to_owned(), path: source.path.clone() };
        assert!(check_examples(&plain, std::slice::from_ref(&package)).is_none());
        package.has_examples = true;
        assert!(check_examples(&source, &[package]).is_none());
    }

    #[test]
    fn lists_and_tables_both_count() {
        assert!(check("- `crates/words/wire`: the wire\n| `xtask/` | tasks |\n").is_empty());
    }

    #[test]
    fn a_forgotten_crate_and_a_stale_line_are_found() {
        let found =
            check("- `crates/words/wire`: see `crates/a/b`\n- `crates/words/gone`: not any more\n");
        let expected = [
            "A.md: has no line that begins with `xtask`",
            "A.md:2: there is no crate `crates/words/gone`",
        ];
        assert_eq!(found, expected);
    }
}
