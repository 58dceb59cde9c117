//! Packages that a server downloads without a fixed version, with the one that is installed here.

use std::path::{Path, PathBuf};

use narthex_model::{ServerDefinition, package::UnpinnedPackage};
use serde_json::Value;

use crate::config;

/// How much of a package's description is read at most.
const MANIFEST_MAX: u64 = 1 << 20;

/// A sentence for each, with the pin to write. The definition has its placeholders as they are
/// written.
pub(super) fn unpinned(definition: &ServerDefinition) -> Vec<String> {
    let folder = cache();
    let known = |package: UnpinnedPackage| {
        let version = folder.as_deref().zip(package.npm_name.as_deref());
        match version.and_then(|(folder, name)| installed(folder, name)) {
            Some(version) => package.with_version(&version),
            None => package,
        }
    };
    let packages = definition.unpinned_packages().into_iter();
    packages.map(|package| known(package).to_string()).collect()
}

/// Where `npx` keeps what it has downloaded.
fn cache() -> Option<PathBuf> {
    let own = config::variable("npm_config_cache").map(PathBuf::from);
    let usual = || Some(Path::new(&config::variable("HOME")?).join(".npm"));
    Some(own.or_else(usual)?.join("_npx"))
}

/// The version that `npx` downloaded last, if it has one.
fn installed(folder: &Path, name: &str) -> Option<String> {
    let places = fs_err::read_dir(folder).ok()?.filter_map(Result::ok);
    let manifests = places.filter_map(|place| {
        let file = place.path().join("node_modules").join(name).join("package.json");
        let known = fs_err::metadata(&file).ok().filter(|known| known.len() <= MANIFEST_MAX)?;
        Some((known.modified().ok()?, file))
    });
    let (_, newest) = manifests.max_by_key(|(at, _)| *at)?;
    let manifest: Value = serde_json::from_slice(&fs_err::read(newest).ok()?).ok()?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-+.".contains(c);
    let version = manifest["version"].as_str().filter(|text| text.chars().all(is_plain))?;
    Some(version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S5: the version that is in the cache already is the pin to write.
    #[test]
    fn s5_an_installed_version_is_known_offline() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(installed(dir.path(), "@scope/server"), None);
        let package = dir.path().join("0a1b/node_modules/@scope/server");
        fs_err::create_dir_all(&package).unwrap();
        fs_err::write(package.join("package.json"), r#"{"version":"1.2.3-beta.1"}"#).unwrap();
        assert_eq!(installed(dir.path(), "@scope/server").unwrap(), "1.2.3-beta.1");
        fs_err::write(package.join("package.json"), r#"{"version":"1; rm x"}"#).unwrap();
        assert_eq!(installed(dir.path(), "@scope/server"), None);
    }
}
