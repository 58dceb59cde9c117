//! The packages of npm: `narthex`, which is a launcher of some lines, and one package for each
//! platform with the program. npm installs the one that fits the machine, and no script runs.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use fs_err as fs;
use serde_json::{Map, Value, json};

use super::archive::tar_gz;
use super::entry::Entry;
use super::platform::PLATFORMS;
use super::product::{LICENSE, Product, SUMMARY};

/// The launcher in the main package.
const LAUNCHER: &str = "packaging/npm/narthex.js";
/// The folder in which packages of npm have all their files.
const ROOT: &str = "package";

/// Writes the main package, which is equal on all platforms, and the one of this platform.
pub(super) fn make(product: &Product, folder: &Path) -> Result<Vec<PathBuf>> {
    let launcher = Entry { is_program: true, ..Entry::of("bin/narthex.js", LAUNCHER)? };
    let main = [
        json_file(&main(product))?,
        launcher,
        product.license("LICENSE"),
        product.readme("README.md"),
    ];
    let platform = [
        json_file(&platform(product))?,
        product.program("bin/narthex"),
        product.license("LICENSE"),
    ];
    let packages = [
        ("narthex".to_owned(), main.to_vec()),
        (product.platform.npm_package(), platform.to_vec()),
    ];
    let write = |(name, entries): (String, Vec<Entry>)| -> Result<PathBuf> {
        // The name that `npm pack` gives.
        let name = name.trim_start_matches('@').replace('/', "-");
        let file = folder.join(format!("{name}-{}.tgz", product.version));
        let entries = entries.iter().map(|entry| entry.below(ROOT)).collect();
        fs::write(&file, tar_gz(entries)?)?;
        Ok(file)
    };
    packages.into_iter().map(write).collect()
}

fn json_file(manifest: &Value) -> Result<Entry> {
    let text = serde_json::to_string_pretty(manifest).context("a manifest is no JSON")?;
    Ok(Entry::file("package.json", format!("{text}\n")))
}

fn main(product: &Product) -> Value {
    let packages = PLATFORMS.iter();
    let optional: Map<String, Value> =
        packages.map(|one| (one.npm_package(), json!(product.version))).collect();
    json!({
        "name": "narthex",
        "version": product.version,
        "description": SUMMARY,
        "license": LICENSE,
        "bin": { "narthex": "bin/narthex.js" },
        "engines": { "node": ">=18" },
        "optionalDependencies": optional,
    })
}

fn platform(product: &Product) -> Value {
    let platform = product.platform;
    let mut manifest = json!({
        "name": platform.npm_package(),
        "version": product.version,
        "description": format!("{SUMMARY}: the program for {}", platform.suffix()),
        "license": LICENSE,
        "os": [platform.node_os],
        "cpu": [platform.node_arch],
    });
    if product.needs.glibc.is_some() {
        manifest["libc"] = json!(["glibc"]);
    }
    manifest
}

#[cfg(test)]
mod tests {
    use super::super::product::tests::product;
    use super::*;

    #[test]
    fn the_main_package_asks_for_the_platforms_at_its_own_version() {
        let main = main(&product());
        let optional = main["optionalDependencies"].as_object().unwrap();
        assert_eq!(optional.len(), PLATFORMS.len());
        assert!(optional.values().all(|version| version == &main["version"]));
        let platform = platform(&product());
        assert_eq!(optional[platform["name"].as_str().unwrap()], platform["version"]);
        assert_eq!((&platform["os"], &platform["cpu"]), (&json!(["linux"]), &json!(["x64"])));
        assert!(main.get("scripts").is_none() && platform.get("scripts").is_none());
    }

    #[test]
    fn packages_have_the_names_that_npm_gives_and_are_equal_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let files = make(&product(), folder.path()).unwrap();
        let version = product().version;
        let names: Vec<_> =
            files.iter().map(|file| file.file_name().unwrap().to_string_lossy()).collect();
        let wanted = [format!("narthex-{version}.tgz"), format!("narthex-linux-x64-{version}.tgz")];
        assert_eq!(names, wanted);
        let read = || files.iter().map(|file| fs::read(file).unwrap()).collect::<Vec<_>>();
        let first = read();
        make(&product(), folder.path()).unwrap();
        assert_eq!(read(), first, "two runs differ");
    }
}
