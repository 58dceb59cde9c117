//! The variables of the daemon that configuration of the catalog may name (O15, O68).

use std::{
    fmt,
    path::PathBuf,
    sync::{Arc, PoisonError, RwLock},
};

use narthex_model::{
    Secret,
    command::{narthex, quoted},
    variable::OWN_PREFIX,
    written::is_variable_name,
};

use crate::EnvValue;

/// Looks up one variable of the daemon's environment.
pub type LookUp = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Reads the list of allowed names again, or returns the reason why it cannot be read.
pub type ReadAllowed = Arc<dyn Fn() -> Result<Vec<String>, String> + Send + Sync>;

/// The variables that may be named, and their values, which count as secrets. None by default.
/// Clones share the list, also when it is read again.
#[derive(Clone, Default)]
pub struct Variables {
    allowed: Arc<RwLock<Arc<[Allowed]>>>,
    look_up: Option<LookUp>,
    setting: Option<Setting>,
}

/// The place where the list of allowed names is set.
#[derive(Clone)]
pub struct Setting {
    /// The place whose value counts.
    pub place: SettingPlace,
    /// Reads the list from that place.
    pub read: ReadAllowed,
}

/// A place of the setting `catalog.env`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingPlace {
    /// The settings file, which can be read again.
    File(PathBuf),
    /// A variable of the daemon's environment, which a process cannot read anew.
    Variable(&'static str),
}

/// An allowed name, or the prefix of allowed names.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Allowed {
    Name(String),
    Prefix(String),
}

/// A text that names neither a variable nor a group.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` allows no variable: write a name, or a prefix as `PREFIX_*`, and no name of narthex \
     itself (`{OWN_PREFIX}…`)"
)]
pub struct VariablesError(String);

impl Variables {
    /// Allows names and groups of names, such as `REGION` and `DOCS_*`.
    ///
    /// # Errors
    /// The first text that is neither, or that would allow narthex's own variables.
    pub fn new(allowed: &[String], look_up: LookUp) -> Result<Self, VariablesError> {
        let allowed = Arc::new(RwLock::new(read_all(allowed)?));
        Ok(Self { allowed, look_up: Some(look_up), setting: None })
    }

    /// Sets the place where the list is set.
    #[must_use]
    pub fn with_setting(self, setting: Setting) -> Self {
        Self { setting: Some(setting), ..self }
    }

    /// The settings file with the list, if there is one.
    #[must_use]
    pub fn file(&self) -> Option<&PathBuf> {
        match &self.setting.as_ref()?.place {
            SettingPlace::File(file) => Some(file),
            SettingPlace::Variable(_) => None,
        }
    }

    /// Reads the list again, for this value and all its clones. Blocks.
    ///
    /// # Errors
    /// When the setting cannot be read. Then the list does not change.
    pub fn reload(&self) -> Result<(), String> {
        let Some(setting) = &self.setting else { return Ok(()) };
        let allowed = read_all(&(setting.read)()?).map_err(|error| error.to_string())?;
        *self.allowed.write().unwrap_or_else(PoisonError::into_inner) = allowed;
        Ok(())
    }

    /// The steps by which an operator allows the catalog to name these variables: the whole setting
    /// to write, and the command that reads it again.
    #[must_use]
    pub fn allowing(&self, more: &[&str]) -> String {
        let allowed = self.allowed();
        let mut names: Vec<_> = allowed.iter().map(ToString::to_string).collect();
        names.extend(more.iter().map(|name| (*name).to_owned()));
        match self.setting.as_ref().map(|setting| &setting.place) {
            Some(SettingPlace::Variable(variable)) => {
                format!("start the daemon with `{variable}={}`", quoted(&names.join(",")))
            }
            Some(SettingPlace::File(file)) => format!(
                "write the line `catalog.env = {names:?}` at the top of {}, above its first \
                 section and in place of any other `catalog.env`, then reload the settings with \
                 `{}`",
                file.display(),
                narthex("mcp reload", &[])
            ),
            None => format!("write the line `catalog.env = {names:?}` at the top of the settings"),
        }
    }

    fn allowed(&self) -> Arc<[Allowed]> {
        self.allowed.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The answer of the environment for a name.
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
        // The program's own variables are never handed out: one of them opens all secrets.
        !name.starts_with(OWN_PREFIX) && self.allowed().iter().any(is_allowed)
    }
}

fn read_all(allowed: &[String]) -> Result<Arc<[Allowed]>, VariablesError> {
    let read = |text: &String| read(text).ok_or_else(|| VariablesError(text.clone()));
    allowed.iter().map(read).collect()
}

fn read(text: &str) -> Option<Allowed> {
    let stem = text.strip_suffix('*').unwrap_or(text);
    if !is_variable_name(stem) || stem.starts_with(OWN_PREFIX) {
        return None;
    }
    match stem.len() == text.len() {
        true => Some(Allowed::Name(stem.to_owned())),
        // `A*` would allow more than its author means.
        false if stem.ends_with('_') && stem.len() > 1 => Some(Allowed::Prefix(stem.to_owned())),
        false => None,
    }
}

impl fmt::Display for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Prefix(prefix) => write!(f, "{prefix}*"),
        }
    }
}

impl fmt::Debug for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Setting").field(&self.place).finish()
    }
}

impl fmt::Debug for Variables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Variables").field("allowed", &self.allowed()).finish_non_exhaustive()
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

    /// O68: listed names and groups are allowed, all others are not, and narthex's own never.
    #[test]
    fn o68_only_listed_variables_are_allowed() {
        let refused = variables(&["REGION", "DOCS_*", "NARTHEX*_"]).unwrap_err().to_string();
        assert!(refused.contains("`NARTHEX*_`"), "{refused}");
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

    /// O68: the steps name the whole line including the names allowed before, and each clone has
    /// the new name once the line is read again.
    #[test]
    fn o68_a_name_is_allowed_by_the_line_that_is_named() {
        let file = Arc::new(std::sync::Mutex::new(vec!["REGION".to_owned(), "DOCS_*".to_owned()]));
        let from = file.clone();
        let setting = Setting {
            place: SettingPlace::File("/etc/narthex.toml".into()),
            read: Arc::new(move || match from.lock().unwrap().clone() {
                names if names.is_empty() => Err("no list".to_owned()),
                names => Ok(names),
            }),
        };
        let listed = variables(&["REGION", "DOCS_*"]).unwrap().with_setting(setting);
        let clone = listed.clone();
        let steps = listed.allowing(&["NEW_KEY"]);
        let line = r#"`catalog.env = ["REGION", "DOCS_*", "NEW_KEY"]`"#;
        assert!(steps.contains(line) && steps.contains("/etc/narthex.toml"), "{steps}");
        assert!(steps.contains("`narthex mcp reload`"), "{steps}");
        assert_eq!(clone.find("NEW_KEY"), EnvValue::NotAllowed);
        file.lock().unwrap().push("NEW_KEY".to_owned());
        listed.reload().unwrap();
        assert_eq!(clone.find("NEW_KEY"), EnvValue::Set(Secret::new("value of NEW_KEY")));
        // A list that cannot be read withdraws no name.
        file.lock().unwrap().clear();
        assert_eq!(listed.reload().unwrap_err(), "no list");
        assert_ne!(clone.find("NEW_KEY"), EnvValue::NotAllowed);
        file.lock().unwrap().push("A*".to_owned());
        assert!(listed.reload().unwrap_err().contains("`A*`"));
        let place = SettingPlace::Variable("NARTHEX_CATALOG_ENV");
        let by_variable = Setting { place, read: Arc::new(|| Ok(Vec::new())) };
        let steps =
            variables(&["REGION"]).unwrap().with_setting(by_variable).allowing(&["NEW_KEY"]);
        assert!(steps.contains("`NARTHEX_CATALOG_ENV=REGION,NEW_KEY`"), "{steps}");
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
