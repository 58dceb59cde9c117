//! Limits of what the house has too much of, which may only fall: see `xtask/ratchets.toml`.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};

use super::Finding;
use super::source::Source;

/// The file with the limits.
const RATCHETS: &str = "xtask/ratchets.toml";

/// A number that is held against a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counted {
    /// Its key in the file.
    pub(super) name: &'static str,
    pub(super) number: usize,
    /// The remedy where it is too high.
    pub(super) remedy: &'static str,
}

/// Holds all numbers against the limits. Each limit has a number, and each number a limit.
///
/// # Errors
/// When the file is missing or cannot be read.
pub(super) fn check(sources: &[Source], counted: &[Counted]) -> Result<Vec<Finding>> {
    let limits = sources.iter().find(|source| source.path == RATCHETS);
    let limits = toml::from_str(&limits.context("xtask/ratchets.toml is missing")?.text);
    Ok(compared(counted, limits.context(RATCHETS)?))
}

fn compared(counted: &[Counted], mut limits: BTreeMap<String, usize>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for &Counted { name, number, remedy } in counted {
        match limits.remove(name) {
            Some(limit) if number > limit => {
                let message = format!(
                    "`{name}` is {number}, and its limit is {limit}: {remedy}; `cargo xtask tidy \
                     --ratchets` names all places"
                );
                findings.push(Finding::new(RATCHETS, message));
            }
            Some(limit) if number < limit => {
                println!("tidy: `{name}` is {number}: lower its limit of {limit} in {RATCHETS}");
            }
            Some(_) => {}
            None => findings.push(Finding::new(RATCHETS, format!("has no limit for `{name}`"))),
        }
    }
    let unknown = limits.into_keys();
    findings.extend(unknown.map(|name| Finding::new(RATCHETS, format!("`{name}` counts nothing"))));
    findings
}

#[cfg(test)]
mod tests {
    use super::{Counted, compared};

    #[test]
    fn a_number_above_its_limit_is_a_finding() {
        let counted = |number| [Counted { name: "a", number, remedy: "write less" }];
        let limits = || [("a".to_owned(), 2)].into();
        assert!(compared(&counted(2), limits()).is_empty());
        assert!(compared(&counted(1), limits()).is_empty());
        let found = compared(&counted(3), limits());
        assert_eq!(found.len(), 1);
        assert!(found[0].message.contains("`a` is 3, and its limit is 2: write less"), "{found:?}");
    }

    #[test]
    fn numbers_and_limits_belong_together() {
        let counted = [Counted { name: "a", number: 1, remedy: "" }];
        let found = compared(&counted, [("b".to_owned(), 2)].into());
        let messages: Vec<_> = found.iter().map(|finding| finding.message.as_str()).collect();
        assert_eq!(messages, ["has no limit for `a`", "`b` counts nothing"]);
    }
}
