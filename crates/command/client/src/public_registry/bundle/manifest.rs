//! Reads `manifest.json`, the description of a bundle's server.
//!
//! Members that this version does not know are ignored; one that it needs must have its form. All
//! faults are reported at once, each with the name of its member.

use std::{collections::BTreeMap, path::Path};

use narthex_model::written::is_variable_name;
use serde_json::{Map, Value};

use super::path::inside;
use crate::public_registry::inputs::InputFormat;

/// Name of the file in a bundle.
const FILE: &str = "manifest.json";
/// The longest manifest, in bytes.
const FILE_MAX: u64 = 1024 * 1024;
/// The name of this system in manifests.
pub(super) const SYSTEM: &str = if cfg!(target_os = "macos") { "darwin" } else { "linux" };

/// The description of a bundle's server, as far as it is for this system.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Manifest {
    pub(super) kind: ServerKind,
    /// The server's main file, relative to the bundle.
    pub(super) entry_point: String,
    /// The command; `None` leaves it to the kind of the server.
    pub(super) launch: Option<Launch>,
    /// The values that a user gives, in the order of the manifest's names.
    pub(super) settings: Vec<Setting>,
}

/// The program that runs a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServerKind {
    Node,
    Python,
    Uv,
    /// A program of the bundle itself.
    Binary,
}

/// A command in which `${…}` is not filled in yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Launch {
    pub(super) command: String,
    pub(super) args: Vec<String>,
    pub(super) env: BTreeMap<String, String>,
}

/// A value that a user gives.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Setting {
    pub(super) key: String,
    /// Title and description.
    pub(super) about: Option<String>,
    pub(super) format: InputFormat,
    pub(super) is_required: bool,
    pub(super) is_secret: bool,
    pub(super) is_repeated: bool,
    pub(super) range: (Option<f64>, Option<f64>),
    pub(super) defaults: Vec<String>,
}

impl ServerKind {
    const ALL: [Self; 4] = [Self::Node, Self::Python, Self::Uv, Self::Binary];

    /// The word of manifests.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Python => "python",
            Self::Uv => "uv",
            Self::Binary => "binary",
        }
    }
}

impl Manifest {
    /// Reads the manifest of an unpacked bundle.
    ///
    /// # Errors
    /// All faults, each with its member.
    pub(super) fn of_folder(folder: &Path) -> Result<Self, Vec<String>> {
        let path = folder.join(FILE);
        let text = match narthex_private::read(&path, FILE_MAX + 1) {
            Ok(text) if text.len() as u64 > FILE_MAX => {
                return Err(vec!["it has more than 1 MiB".to_owned()]);
            }
            Ok(text) => text,
            Err(error) if error.is_absent() => {
                return Err(vec!["the archive has none at its top".to_owned()]);
            }
            Err(error) => return Err(vec![error.to_string()]),
        };
        Self::of_text(&text, SYSTEM)
    }

    /// Reads a manifest for a system.
    ///
    /// # Errors
    /// All faults, each with its member.
    pub(super) fn of_text(text: &[u8], system: &str) -> Result<Self, Vec<String>> {
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        let whole: Value = serde_json::from_slice(text)
            .map_err(|error| vec![format!("it is not valid JSON: {error}")])?;
        let Value::Object(whole) = whole else {
            return Err(vec!["it is not a JSON object".to_owned()]);
        };
        let mut reader = Reader { faults: Vec::new(), system };
        let manifest = reader.manifest(&whole);
        match manifest {
            Some(manifest) if reader.faults.is_empty() => Ok(manifest),
            _ => Err(reader.faults),
        }
    }
}

/// Reads members, and collects faults.
struct Reader<'r> {
    faults: Vec<String>,
    system: &'r str,
}

type Members = Map<String, Value>;

impl Reader<'_> {
    fn manifest(&mut self, whole: &Members) -> Option<Manifest> {
        self.version(whole);
        for name in ["name", "version"] {
            self.text(whole, name, name);
        }
        self.platforms(whole);
        let settings = self.settings(whole);
        let server = self.object(whole, "server", "server");
        let Some(server) = server else {
            // One of the wrong kind is a fault already.
            if whole.get("server").is_none_or(Value::is_null) {
                self.missing("server");
            }
            return None;
        };
        let kind = self.kind(server);
        let entry_point = self.text(server, "entry_point", "server.entry_point");
        if let Some(Err(reason)) = entry_point.as_deref().map(inside) {
            self.faults.push(format!("`server.entry_point` {reason}"));
        }
        let launch = self.launch(server);
        Some(Manifest { kind: kind?, entry_point: entry_point?, launch, settings })
    }

    /// Checks that the form of the manifest is one of those that this version knows.
    fn version(&mut self, whole: &Members) {
        // The older name of the same member.
        let name = match whole.contains_key("manifest_version") {
            false if whole.contains_key("dxt_version") => "dxt_version",
            _ => "manifest_version",
        };
        let version = self.text(whole, name, name);
        if let Some(version) = version.filter(|version| !version.starts_with("0.")) {
            self.faults.push(format!(
                "`{name}` is `{version}`, and this version of narthex reads 0.1 to 0.4"
            ));
        }
    }

    fn platforms(&mut self, whole: &Members) {
        let compatibility = self.object(whole, "compatibility", "compatibility");
        let Some(listed) = compatibility.and_then(|inner| inner.get("platforms")) else { return };
        let at = "compatibility.platforms";
        let Some(listed) = self.texts(listed, at) else { return };
        if !listed.iter().any(|one| one == self.system) {
            self.faults.push(format!(
                "`{at}` has {}, and this machine is `{}`: the server does not run here",
                if listed.is_empty() { "nothing".to_owned() } else { listed.join(", ") },
                self.system
            ));
        }
    }

    fn kind(&mut self, server: &Members) -> Option<ServerKind> {
        let word = self.text(server, "type", "server.type")?;
        let kind = ServerKind::ALL.into_iter().find(|kind| kind.as_str() == word);
        if kind.is_none() {
            self.faults
                .push(format!("`server.type` is `{word}`, and must be node, python, uv or binary"));
        }
        kind
    }

    /// The command with the members for this system in place of the common ones.
    fn launch(&mut self, server: &Members) -> Option<Launch> {
        let at = "server.mcp_config";
        let config = self.object(server, "mcp_config", at)?;
        let command = self.text(config, "command", &format!("{at}.command"));
        let mut launch = Launch { command: command?, ..Launch::default() };
        self.add(config, at, &mut launch);
        let all = self.object(config, "platform_overrides", &format!("{at}.platform_overrides"));
        let system = self.system;
        let at = format!("{at}.platform_overrides.{system}");
        if let Some(own) = all.and_then(|all| self.object(all, system, &at)) {
            if own.contains_key("command") {
                let command = self.text(own, "command", &format!("{at}.command"));
                launch.command = command.unwrap_or_default();
            }
            self.add(own, &at, &mut launch);
        }
        Some(launch)
    }

    /// Reads arguments, which replace those before, and variables, which are added.
    fn add(&mut self, config: &Members, at: &str, launch: &mut Launch) {
        if let Some(args) = config.get("args").filter(|args| !args.is_null())
            && let Some(args) = self.texts(args, &format!("{at}.args"))
        {
            launch.args = args;
        }
        let env = self.object(config, "env", &format!("{at}.env"));
        for (name, value) in env.into_iter().flatten() {
            let at = format!("{at}.env.{name}");
            if !is_variable_name(name) {
                self.faults.push(format!("`{at}` is not the name of a variable"));
            } else if let Some(text) = scalar(value) {
                launch.env.insert(name.clone(), text);
            } else {
                self.wrong(&at, value, "text");
            }
        }
    }

    fn settings(&mut self, whole: &Members) -> Vec<Setting> {
        let all = self.object(whole, "user_config", "user_config");
        let mut settings = Vec::new();
        for (key, value) in all.into_iter().flatten() {
            let at = format!("user_config.{key}");
            match value {
                _ if !is_key(key) => self.faults.push(format!(
                    "`{at}` has a name with other characters than letters, digits, `_`, `-` and `.`"
                )),
                Value::Object(members) => settings.extend(self.setting(key, members, &at)),
                other => self.wrong(&at, other, "an object"),
            }
        }
        settings
    }

    fn setting(&mut self, key: &str, members: &Members, at: &str) -> Option<Setting> {
        let word = self.text(members, "type", &format!("{at}.type"))?;
        let format = match word.as_str() {
            "string" => InputFormat::Text,
            "number" => InputFormat::Number,
            "boolean" => InputFormat::Boolean,
            "directory" | "file" => InputFormat::FilePath,
            _ => {
                self.faults.push(format!(
                    "`{at}.type` is `{word}`, and must be string, number, boolean, directory or \
                     file"
                ));
                return None;
            }
        };
        let mut flag = |name: &str| self.flag(members, name, &format!("{at}.{name}"));
        let (is_required, is_secret) = (flag("required"), flag("sensitive"));
        let is_repeated = flag("multiple");
        let mut limit = |name: &str| self.number(members, name, &format!("{at}.{name}"));
        let range = (limit("min"), limit("max"));
        let words = ["title", "description"].into_iter().filter_map(|name| members.get(name));
        let words: Vec<_> =
            words.filter_map(Value::as_str).filter(|text| !text.is_empty()).collect();
        let about = (!words.is_empty()).then(|| words.join(": "));
        let defaults = self.defaults(members, &format!("{at}.default"));
        let key = key.to_owned();
        Some(Setting { key, about, format, is_required, is_secret, is_repeated, range, defaults })
    }

    fn defaults(&mut self, members: &Members, at: &str) -> Vec<String> {
        match members.get("default") {
            None | Some(Value::Null) => Vec::new(),
            Some(list @ Value::Array(_)) => self.texts(list, at).unwrap_or_default(),
            Some(value) => match scalar(value) {
                // A field that is left empty.
                Some(text) if text.is_empty() => Vec::new(),
                Some(text) => vec![text],
                None => {
                    self.wrong(at, value, "text, a number, or true or false");
                    Vec::new()
                }
            },
        }
    }

    /// A text that must be there, and not empty.
    fn text(&mut self, members: &Members, name: &str, at: &str) -> Option<String> {
        match members.get(name) {
            Some(Value::String(text)) if !text.is_empty() => return Some(text.clone()),
            None | Some(Value::Null) => self.missing(at),
            Some(Value::String(_)) => self.faults.push(format!("`{at}` is empty")),
            Some(other) => self.wrong(at, other, "text"),
        }
        None
    }

    /// An object that may be absent.
    fn object<'v>(&mut self, members: &'v Members, name: &str, at: &str) -> Option<&'v Members> {
        match members.get(name) {
            Some(Value::Object(inner)) => Some(inner),
            None | Some(Value::Null) => None,
            Some(other) => {
                self.wrong(at, other, "an object");
                None
            }
        }
    }

    fn texts(&mut self, value: &Value, at: &str) -> Option<Vec<String>> {
        let Value::Array(items) = value else {
            self.wrong(at, value, "a list of texts");
            return None;
        };
        let texts: Option<Vec<_>> = items.iter().map(scalar).collect();
        if texts.is_none() {
            self.faults.push(format!("`{at}` has an item that is not text"));
        }
        texts
    }

    fn flag(&mut self, members: &Members, name: &str, at: &str) -> bool {
        match members.get(name) {
            Some(Value::Bool(flag)) => return *flag,
            None | Some(Value::Null) => {}
            Some(other) => self.wrong(at, other, "true or false"),
        }
        false
    }

    fn number(&mut self, members: &Members, name: &str, at: &str) -> Option<f64> {
        match members.get(name) {
            Some(Value::Number(number)) => return number.as_f64(),
            None | Some(Value::Null) => {}
            Some(other) => self.wrong(at, other, "a number"),
        }
        None
    }

    fn missing(&mut self, at: &str) {
        self.faults.push(format!("`{at}` is missing"));
    }

    fn wrong(&mut self, at: &str, value: &Value, wanted: &str) {
        let kind = match value {
            Value::Null => "null",
            Value::Bool(_) => "true or false",
            Value::Number(_) => "a number",
            Value::String(_) => "text",
            Value::Array(_) => "a list",
            Value::Object(_) => "an object",
        };
        self.faults.push(format!("`{at}` is {kind}, and must be {wanted}"));
    }
}

/// A text; numbers and booleans become text.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// True for a name of a value that flags can have.
fn is_key(key: &str) -> bool {
    key.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && key.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
}

#[cfg(test)]
mod tests;
