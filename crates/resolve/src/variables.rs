//! The variables of the daemon that configuration of the catalog may name (O15, O68).

use std::{fmt, sync::Arc};

use narthex_model::{Secret, variable::OWN_PREFIX, written::is_variable_name};

use crate::EnvValue;

/// Looks up one variable of the daemon's environment.
pub type LookUp = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Which variables may be named, and their values, which count as secrets. Without more, none.
#[derive(Clone, Default)]
pub struct Variables {
    allowed: Arc<[Allowed]>,
    look_up: Option<LookUp>,
}

/// What may be named: exactly this, or everything that begins so.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Allowed {
    Name(String),
    Prefix(String),
}

/// A text that names no variable, and no group of them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` allows no variable: write a name, or the beginning of names as `PREFIX_*`, and none of \
     narthex itself (`{OWN_PREFIX}…`)"
)]
pub struct VariablesError(String);

impl Variables {
    /// Allows names and groups of them, such as `REGION` and `DOCS_*`.
    ///
    /// # Errors
    /// The first text that is neither, or that would allow variables of narthex itself.
    pub fn new(allowed: &[String], look_up: LookUp) -> Result<Self, VariablesError> {
        let read = |text: &String| read(text).ok_or_else(|| VariablesError(text.clone()));
        let allowed = allowed.iter().map(read).collect::<Result<_, _>>()?;
        Ok(Self { allowed, look_up: Some(look_up) })
    }

    /// What the environment says to a name.
    #[must_use]
    pub fn find(&self, name: &str) -> EnvValue {
        if !self.allows(name) {
            return EnvValue::NotAllowed;
        }
        let value = self.look_up.as_ref().and_then(|look_up| look_up(name));
        value.map_or(EnvValue::Unset, |value| EnvValue::Set(Secret::new(value)))
    }

    fn allows(&self, name: &str) -> bool {
        let is_allowed = |allowed: &Allowed| match allowed {
            Allowed::Name(known) => known == name,
            Allowed::Prefix(prefix) => name.starts_with(prefix.as_str()),
        };
        // Those of the program itself are never handed out: one of them opens all secrets.
        !name.starts_with(OWN_PREFIX) && self.allowed.iter().any(is_allowed)
    }
}

fn read(text: &str) -> Option<Allowed> {
    let stem = text.strip_suffix('*').unwrap_or(text);
    if !is_variable_name(stem) || stem.starts_with(OWN_PREFIX) {
        return None;
    }
    match stem.len() == text.len() {
        true => Some(Allowed::Name(stem.to_owned())),
        // `A*` would allow more than anybody means.
        false if stem.ends_with('_') && stem.len() > 1 => Some(Allowed::Prefix(stem.to_owned())),
        false => None,
    }
}

impl fmt::Debug for Variables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Variables").field("allowed", &self.allowed).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(allowed: &[&str]) -> Result<Variables, VariablesError> {
        let allowed: Vec<_> = allowed.iter().map(|text| (*text).to_owned()).collect();
        let look_up = |name: &str| (name != "DOCS_UNSET").then(|| format!("value of {name}"));
        Variables::new(&allowed, Arc::new(look_up))
    }

    /// O68: names and groups are allowed, all else is not, and what is narthex's own never.
    #[test]
    fn o68_only_what_is_listed_may_be_named() {
        let listed = variables(&["REGION", "DOCS_*", "NARTHEX*_"]);
        assert!(listed.is_err());
        let listed = variables(&["REGION", "DOCS_*", "N_*"]).unwrap();
        let set = |name: &str| EnvValue::Set(Secret::new(format!("value of {name}")));
        for name in ["REGION", "DOCS_KEY", "DOCS_"] {
            assert_eq!(listed.find(name), set(name), "{name}");
        }
        assert_eq!(listed.find("DOCS_UNSET"), EnvValue::Unset);
        for name in ["REGION2", "region", "DOCS", "PATH", "", "NARTHEX_MASTER_KEY"] {
            assert_eq!(listed.find(name), EnvValue::NotAllowed, "{name}");
        }
        assert_eq!(Variables::default().find("REGION"), EnvValue::NotAllowed);
        assert!(!format!("{listed:?}").contains("value of"));
    }

    #[test]
    fn o68_lists_that_allow_too_much_are_refused() {
        for text in ["*", "_*", "A*", "DOCS_*_", "A B", "", "1A", "NARTHEX_*", "NARTHEX_MASTER_KEY"]
        {
            let error = variables(&["REGION", text]).unwrap_err();
            assert!(error.to_string().starts_with(&format!("`{text}`")), "{error}");
        }
    }
}
