//! Packages that a server downloads without a fixed version, with their installed versions.

use std::path::{Path, PathBuf};

use narthex_model::{
    ServerDefinition,
    package::{UnpinnedPackage, absent_package},
};
use serde_json::Value;

use crate::{
    config::{self, Settings},
    daemon_client::DaemonClient,
    rows::Row,
};

/// Bytes of a package's description that are read at most.
const MANIFEST_MAX: u64 = 1 << 20;

/// Why servers of the daemon failed, as far as a daemon runs: some starts find that a package does
/// not exist.
#[derive(Debug, Default)]
pub(super) struct FailedStarts(Vec<String>);

impl FailedStarts {
    /// The failed starts of the daemon here; none if no daemon runs or answers.
    pub(super) async fn of(settings: &Settings) -> Self {
        let Ok(Some(client)) = DaemonClient::operator_if_up(&settings.daemon) else {
            return Self::default();
        };
        let rows = client.rows::<Row>().await.unwrap_or_default();
        Self(rows.into_iter().filter_map(|row| Some(row.error?.message)).collect())
    }

    fn find_absent(&self, name: &str) -> bool {
        let absent = absent_package(name);
        self.0.iter().any(|message| message.contains(&absent))
    }
}

/// A sentence for each, with the pin to write, or with its correction if it does not exist. The
/// definition has its placeholders as they are written.
pub(super) fn unpinned(definition: &ServerDefinition, failed: &FailedStarts) -> Vec<String> {
    let folder = cache();
    let told = |package: UnpinnedPackage| match package.npm_name.as_deref() {
        Some(name) if failed.find_absent(name) => {
            format!("{}: correct its name in `args`", absent_package(name))
        }
        Some(name) => match folder.as_deref().and_then(|folder| installed(folder, name)) {
            Some(version) => package.with_version(&version).to_string(),
            None => package.to_string(),
        },
        None => package.to_string(),
    };
    definition.unpinned_packages().into_iter().map(told).collect()
}

/// The folder in which `npx` stores downloaded packages.
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

    /// S5: a package that does not exist has no version to look for.
    #[test]
    fn s5_a_package_that_does_not_exist_is_reported() {
        let message = "`npx` ended; it wrote: npm error E404: ".to_owned() + &absent_package("no");
        let failed = FailedStarts(vec![message]);
        assert!(failed.find_absent("no") && !failed.find_absent("n") && !failed.find_absent("x"));
    }

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
