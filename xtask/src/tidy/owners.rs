//! Dependencies that only their owner may see.

use super::Finding;
use super::crates::Package;

/// A dependency and the crates that may have it.
struct Owned {
    dependency: &'static str,
    owners: &'static [&'static str],
    /// True if the tests of every crate may use it as well.
    is_free_in_tests: bool,
}

const OWNED: &[Owned] = &[
    owned("bollard", &["supervisor"]),
    owned("cargo_metadata", &["xtask"]),
    owned("cedar-policy", &["cedar"]),
    owned("clap", &["cli", "narthex", "testkit", "xtask"]),
    owned("fuser", &["fuse"]),
    owned("jsonwebtoken", &["login"]),
    owned("miette", &["cedar"]),
    owned("rustls", &["http-client"]),
    owned("serde-saphyr", &["documents"]),
    owned("sqlx", &["store"]),
    owned("syn", &["xtask"]),
    owned("tokio-rustls", &["http-client"]),
    owned("wasmtime", &["sandbox"]),
    owned("webauthn-rs", &["login"]),
    Owned {
        dependency: "anyhow",
        owners: &["narthex", "testkit", "xtask"],
        is_free_in_tests: true,
    },
    Owned { dependency: "rmcp", owners: &["oauth", "testkit"], is_free_in_tests: true },
];

const fn owned(dependency: &'static str, owners: &'static [&'static str]) -> Owned {
    Owned { dependency, owners, is_free_in_tests: false }
}

pub(super) fn check(packages: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages {
        for external in &package.external {
            let rule = OWNED.iter().find(|rule| rule.dependency == external.name);
            let Some(rule) = rule else { continue };
            let is_allowed = rule.owners.contains(&package.name.as_str())
                || (external.is_dev && rule.is_free_in_tests);
            if !is_allowed {
                let place = format!("{}/Cargo.toml", package.dir);
                let owners = rule.owners.join(", ");
                let message = format!("`{}` is for {owners} only", external.name);
                findings.push(Finding::new(place, message));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::Finding;
    use super::super::crates::{External, Package};
    use super::check;

    fn found(crate_name: &str, dependency: &str, is_dev: bool) -> Vec<Finding> {
        let external = vec![External { name: dependency.to_owned(), is_dev }];
        let dir = format!("crates/a/{crate_name}");
        check(&[Package { name: crate_name.to_owned(), dir, external, ..Package::default() }])
    }

    #[test]
    fn only_owners_may_depend_on_what_is_owned() {
        assert!(found("xtask", "clap", false).is_empty());
        assert!(found("gateway", "tokio", false).is_empty());
        let expected = Finding::new(
            "crates/a/gateway/Cargo.toml",
            "`clap` is for cli, narthex, testkit, xtask \
                 only",
        );
        assert_eq!(found("gateway", "clap", false), [expected]);
        assert_eq!(found("gateway", "clap", true).len(), 1);
    }

    #[test]
    fn the_sdk_is_for_tests() {
        assert_eq!(found("upstream", "rmcp", false).len(), 1);
        assert!(found("upstream", "rmcp", true).is_empty());
    }
}
