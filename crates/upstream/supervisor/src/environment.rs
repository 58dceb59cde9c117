//! The few variables of the daemon that each child gets (D22).

use std::ffi::{OsStr, OsString};
use std::sync::Arc;

/// Variables that a program needs to run at all, and caches that keep `npx` and `uvx` from
/// downloading their packages again on every start.
const INHERITED: [&str; 8] = [
    "PATH",
    "LANG",
    "HOME",
    "TMPDIR",
    "npm_config_cache",
    "PIP_CACHE_DIR",
    "UV_CACHE_DIR",
    "XDG_CACHE_HOME",
];

/// The variables that a child gets in addition to its declared ones. Cheap to clone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BaseEnvironment {
    pairs: Arc<[(OsString, OsString)]>,
}

impl BaseEnvironment {
    /// Takes the inherited names from the daemon's own environment.
    #[must_use]
    pub fn from_process() -> Self {
        // `var_os`, because a PATH need not be UTF-8.
        Self::from_lookup(|name| std::env::var_os(name))
    }

    /// Takes the inherited names, and no others, from `lookup`.
    #[must_use]
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<OsString>) -> Self {
        let pairs = INHERITED.iter().filter_map(|name| Some((OsString::from(name), lookup(name)?)));
        Self { pairs: pairs.collect() }
    }

    /// The value of `name`, if the daemon has the variable and children may see it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.iter().find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.pairs.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E132.
    #[test]
    fn only_listed_variables_are_inherited() {
        let base = BaseEnvironment::from_lookup(|name| {
            (name == "PATH" || name == "AWS_SECRET_ACCESS_KEY").then(|| "x".into())
        });
        let names: Vec<_> = base.iter().map(|(name, _)| name.to_owned()).collect();
        assert_eq!(names, ["PATH"]);
        assert_eq!(base.get("HOME"), None);
    }
}
