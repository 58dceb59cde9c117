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
    owned("askama", &["console"]),
    owned("cargo_metadata", &["xtask"]),
    owned("cedar-policy", &["cedar"]),
    owned("clap", &["client", "narthex", "testkit", "xtask"]),
    owned("fuser", &["fuse"]),
    owned("granit-parser", &["client-files"]),
    owned("jsonc-parser", &["client-files"]),
    owned("jsonwebtoken", &["oauth"]),
    owned("miette", &["cedar"]),
    owned("rustls", &["http-client", "tls"]),
    owned("serde-saphyr", &["client"]),
    owned("sqlx", &["store"]),
    owned("syn", &["xtask"]),
    owned("tokio-rustls", &["http-client", "tls"]),
    owned("toml_parser", &["client-files"]),
    owned("webauthn-rs", &["login"]),
    Owned { dependency: "anyhow", owners: &["testkit", "xtask"], is_free_in_tests: true },
    Owned { dependency: "rcgen", owners: &["tls"], is_free_in_tests: true },
    // The SDK checks the gateway from outside: none of its code is in the gateway.
    Owned { dependency: "rmcp", owners: &[], is_free_in_tests: true },
];

const fn owned(dependency: &'static str, owners: &'static [&'static str]) -> Owned {
    Owned { dependency, owners, is_free_in_tests: false }
}

/// Finds dependencies outside of their owners, and owners that are no crates or have none of the
/// dependency any more.
pub(super) fn check(packages: &[Package]) -> Vec<Finding> {
    let mut findings = strangers(packages);
    findings.extend(stale(packages));
    findings
}

fn stale(packages: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for rule in OWNED {
        for owner in rule.owners {
            let package = packages.iter().find(|package| package.name == *owner);
            let has = |package: &Package| {
                package.external.iter().any(|external| external.name == rule.dependency)
            };
            if !package.is_some_and(has) {
                let message = format!("`{owner}` does not depend on `{}`", rule.dependency);
                findings.push(Finding::new("xtask/src/tidy/owners.rs", message));
            }
        }
    }
    findings
}

fn strangers(packages: &[Package]) -> Vec<Finding> {
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
                let owners = if owners.is_empty() { "tests" } else { &owners };
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
    use super::{OWNED, stale, strangers};

    fn found(crate_name: &str, dependency: &str, is_dev: bool) -> Vec<Finding> {
        let external = vec![External { name: dependency.to_owned(), is_dev }];
        let dir = format!("crates/a/{crate_name}");
        strangers(&[Package { name: crate_name.to_owned(), dir, external, ..Package::default() }])
    }

    #[test]
    fn only_owners_may_have_an_owned_dependency() {
        assert!(found("xtask", "clap", false).is_empty());
        assert!(found("gateway", "tokio", false).is_empty());
        let expected = Finding::new(
            "crates/a/gateway/Cargo.toml",
            "`clap` is for client, narthex, testkit, xtask \
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

    /// An owner that is gone, or has done without the dependency, is named.
    #[test]
    fn an_owner_without_the_dependency_is_stale() {
        let package = |name: &str| {
            let of_it = OWNED.iter().filter(|rule| rule.owners.contains(&name));
            let external = |name: &str| External { name: name.to_owned(), is_dev: false };
            let external = of_it.map(|rule| external(rule.dependency)).collect();
            Package { name: name.to_owned(), external, ..Package::default() }
        };
        let owners: std::collections::BTreeSet<_> =
            OWNED.iter().flat_map(|rule| rule.owners.iter().copied()).collect();
        let all: Vec<_> = owners.iter().map(|name| package(name)).collect();
        assert_eq!(stale(&all), []);
        let without: Vec<_> = owners.iter().filter(|name| **name != "fuse").collect();
        let without: Vec<_> = without.into_iter().map(|name| package(name)).collect();
        let message = "`fuse` does not depend on `fuser`";
        assert_eq!(stale(&without), [Finding::new("xtask/src/tidy/owners.rs", message)]);
    }
}
