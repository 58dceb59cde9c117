//! Helpers for every part of an entry: filled-in strings, and places for faults and warnings.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use narthex_model::{
    AuthSecret, CallError, CallErrorKind, ConfigFault, ConfinementProblem, HeaderSource,
    NamedSecret, Secret, SecretPlace, ServerDefinition, UnknownKey,
};
use serde_json::json;
use url::Url;

use super::{
    loaded::{ConfigWarning, Entry, Env, LoadContext},
    node::{Node, Place, field, shortened},
    placeholder::{Dialect, Expanded, expand, named_secret},
    problem::EntryProblem,
    secrets,
};

/// Keys of an older form, each with the key that replaces it (E111).
const REFERENCES: [(&str, &str); 3] =
    [("valueRef", "key"), ("clientIdRef", "clientId"), ("clientSecretRef", "clientSecret")];

/// The fields of one JSON object.
pub(super) type Fields = [(String, Node)];

/// Collects findings while one file is read. Faults gather until the entry ends, so that all of
/// them are reported at once (D9).
#[derive(Debug)]
pub(super) struct Reader<'a> {
    pub(super) context: &'a LoadContext<'a>,
    pub(super) dialect: Dialect,
    pub(super) warnings: Vec<ConfigWarning>,
    /// Keys of other programs, and the entries they were found in.
    pub(super) foreign_keys: BTreeMap<String, Vec<String>>,
    faults: Vec<(Place, EntryProblem)>,
    /// Keys of this entry that caused a warning, and that nearly spell known ones.
    misspelt: Vec<(Place, UnknownKey)>,
    /// Values of secret variables in this entry.
    filled_in: Vec<Secret>,
    /// Sources of the values of the entry's headers.
    header_sources: Vec<HeaderSource>,
    /// Secrets that the entry names.
    named_secrets: Vec<NamedSecret>,
}

/// Keys that restrict callers. A misspelt one is a fault: if it were ignored, the server would be
/// open.
const RESTRICTIONS: [&str; 7] = [
    "tool_scopes",
    "resource_scopes",
    "prompt_scopes",
    "pinDefinitions",
    "pin_definitions",
    "onFlagged",
    "on_flagged",
];

/// Keys that hide items. A misspelt one is a fault in narthex's own document. Other programs have
/// keys of similar names that mean something else.
const RULES: [&str; 3] = ["tools", "resources", "prompts"];

impl<'a> Reader<'a> {
    pub(super) fn new(context: &'a LoadContext<'a>, dialect: Dialect) -> Self {
        Self {
            context,
            dialect,
            warnings: Vec::new(),
            foreign_keys: BTreeMap::new(),
            faults: Vec::new(),
            misspelt: Vec::new(),
            filled_in: Vec::new(),
            header_sources: Vec::new(),
            named_secrets: Vec::new(),
        }
    }

    pub(super) fn fault(&mut self, place: &Place, problem: impl Into<EntryProblem>) {
        self.faults.push((place.clone(), problem.into()));
    }

    /// True if a fault at exactly this place is already reported.
    pub(super) fn has_fault_at(&self, place: &Place) -> bool {
        self.faults.iter().any(|(at, _)| at == place)
    }

    pub(super) fn warn(&mut self, place: &Place, message: impl Into<String>) {
        self.warnings.push(ConfigWarning {
            file: self.context.file.to_owned(),
            path: place.to_string(),
            message: message.into(),
        });
    }

    /// Ends an entry: returns the definition, or a fault row if the entry has faults.
    pub(super) fn end_entry(
        &mut self,
        name: &str,
        at: &Place,
        definition: Option<ServerDefinition>,
    ) -> Entry {
        let faults = self.take_faults();
        let filled_in = std::mem::take(&mut self.filled_in);
        let header_sources = std::mem::take(&mut self.header_sources);
        let named_secrets = std::mem::take(&mut self.named_secrets);
        match definition {
            Some(definition) if faults.is_empty() => Entry::Server(ServerDefinition {
                filled_in,
                header_sources,
                named_secrets,
                ..definition
            }),
            _ => Entry::Fault(ConfigFault {
                name: shortened(name),
                error: self.fault_row(&faults, at),
            }),
        }
    }

    /// The faults of the entry that ends. If there are any, misspelt keys are faults, too: each in
    /// place of the fault that the key which it was meant to be is missing.
    fn take_faults(&mut self) -> Vec<(Place, EntryProblem)> {
        let mut faults = std::mem::take(&mut self.faults);
        let misspelt = std::mem::take(&mut self.misspelt);
        if faults.is_empty() {
            return faults;
        }
        for (index, (at, unknown)) in misspelt.into_iter().enumerate() {
            let path = at.to_string();
            let text = unknown.to_string();
            self.warnings.retain(|warning| warning.path != path || warning.message != text);
            let meant = unknown.meant().unwrap_or_default();
            faults.retain(|(place, problem)| *place != at || !problem.missing().contains(&meant));
            faults.insert(index.min(faults.len()), (at, EntryProblem::UnknownKey(unknown)));
        }
        faults
    }

    fn fault_row(&self, faults: &[(Place, EntryProblem)], entry: &Place) -> CallError {
        let file = self.context.file.display().to_string();
        let auth = entry.key("auth");
        let kind = if faults.iter().all(|(place, _)| place.is_within(&auth)) {
            CallErrorKind::AuthUnavailable
        } else {
            CallErrorKind::TransportError
        };
        let told: Vec<String> =
            faults.iter().map(|(place, problem)| format!("`{place}`: {problem}")).collect();
        let message = format!("{file}: {}", told.join(". ")).replace("?. `", "? `");
        let problems: Vec<serde_json::Value> = faults
            .iter()
            .map(|(place, problem)| {
                let mut shown = json!({
                    "path": place.to_string(),
                    "code": problem.code(),
                    "message": problem.to_string(),
                });
                if let Some(variable) = problem.variable() {
                    shown["variable"] = variable.into();
                }
                shown
            })
            .collect();
        CallError { kind, message, details: Some(json!({ "file": file, "problems": problems })) }
    }

    /// Fills in the placeholders of `text`.
    pub(super) fn expand(&mut self, place: &Place, text: &str) -> Option<Expanded> {
        match expand(text, self.dialect, self.context) {
            Err(error) => {
                self.fault(place, error);
                None
            }
            Ok(expanded) if expanded.value.contains('\0') && !self.is_open(&expanded.value) => {
                self.fault(place, EntryProblem::Nul);
                None
            }
            Ok(expanded) => {
                self.filled_in.extend(expanded.secrets.iter().cloned());
                for (theirs, ours) in &expanded.rewritten {
                    self.warn(place, format!("`{theirs}` is read as `{ours}`"));
                }
                Some(expanded)
            }
        }
    }

    /// True for a text that has another value once its placeholders are filled in.
    pub(super) fn is_open(&self, text: &str) -> bool {
        matches!(self.context.env, Env::AsWritten) && text.contains("${")
    }

    /// True for a path that begins with an open placeholder, so that it may be a whole one.
    pub(super) fn begins_open(&self, path: &Path) -> bool {
        path.to_str().is_some_and(|path| self.is_open(path) && path.starts_with("${"))
    }

    /// A path from a folder on, or else a path as it is written that may be a whole one.
    pub(super) fn below(&self, folder: &Path, path: &str) -> PathBuf {
        match self.begins_open(Path::new(path)) {
            true => PathBuf::from(path),
            false => folder.join(path),
        }
    }

    /// Notes the secret that a text names as a whole; `None` if the node names none. The value
    /// stays as it is written until the secret is opened.
    pub(super) fn secret(
        &mut self,
        node: &Node,
        place: &Place,
        to: SecretPlace,
    ) -> Option<Expanded> {
        let Node::Text(text) = node else { return None };
        let name = named_secret(text)?;
        let key = place.to_string();
        self.named_secrets.push(NamedSecret { name: name.clone(), key, place: to, opened: None });
        Some(Expanded::naming(name, text))
    }

    /// A field of `auth` that should not have its value in the file.
    pub(super) fn auth_secret(
        &mut self,
        fields: &Fields,
        at: &Place,
        key: AuthSecret,
    ) -> Option<Secret> {
        self.auth_text(fields, at, key).map(|text| Secret::new(text.value))
    }

    /// Reads the text of such a field with its source; warns if the value is in the file.
    pub(super) fn auth_text(
        &mut self,
        fields: &Fields,
        at: &Place,
        key: AuthSecret,
    ) -> Option<Expanded> {
        let place = at.key(key.key());
        if let Some(named) = self.secret(field(fields, key.key())?, &place, SecretPlace::Auth(key))
        {
            return Some(named);
        }
        let text = self.filled(fields, at, key.key())?;
        if !text.is_from_elsewhere() {
            self.warn(&place, secrets::advice());
        }
        Some(text)
    }

    /// Refuses the keys of an older form.
    pub(super) fn references(&mut self, fields: &Fields, at: &Place) {
        for (key, instead) in REFERENCES {
            if fields.iter().any(|(name, _)| name == key) {
                self.fault(&at.key(key), EntryProblem::Reference { key, instead });
            }
        }
    }

    /// A value that may name a secret, or else as [`Self::any_text`] reads it.
    pub(super) fn text_or_secret(
        &mut self,
        node: &Node,
        place: &Place,
        to: SecretPlace,
    ) -> Option<Expanded> {
        self.secret(node, place, to).or_else(|| self.any_text(node, place))
    }

    /// A field that must be a string if it is there.
    pub(super) fn text(&mut self, fields: &Fields, at: &Place, key: &str) -> Option<Expanded> {
        let node = field(fields, key)?;
        let place = at.key(key);
        match node {
            Node::Text(text) => self.expand(&place, text),
            _ => {
                self.wrong_type(&place, node, "a string");
                None
            }
        }
    }

    /// [`Self::text`], where an empty string counts as absent.
    pub(super) fn filled(&mut self, fields: &Fields, at: &Place, key: &str) -> Option<Expanded> {
        self.text(fields, at, key).filter(|text| !text.value.is_empty())
    }

    /// A string, or anything else as text (E116).
    pub(super) fn any_text(&mut self, node: &Node, place: &Place) -> Option<Expanded> {
        match node {
            Node::Text(text) => self.expand(place, text),
            Node::Bool(_) | Node::Number(_) => Some(Expanded::literal(node.to_text())),
            Node::Null | Node::List(_) | Node::Object(_) => {
                let found = node.found();
                self.warn(place, format!("{found} is passed on as JSON text; write a string"));
                Some(Expanded::literal(node.to_text()))
            }
        }
    }

    pub(super) fn wrong_type(&mut self, place: &Place, node: &Node, wanted: &'static str) {
        self.fault(place, EntryProblem::WrongType { found: node.found(), wanted });
    }

    /// An absolute URL of scheme http or https.
    pub(super) fn url(&mut self, place: &Place, text: &str) -> Option<String> {
        if self.is_open(text) {
            return Some(text.to_owned());
        }
        let reason = match Url::parse(text) {
            _ if text.contains(|c: char| c.is_whitespace() || c.is_control()) => {
                "there is white space in it"
            }
            Err(_) => "it is not absolute or not well formed",
            Ok(url) if !matches!(url.scheme(), "http" | "https") => {
                "its scheme is neither https nor http"
            }
            Ok(url) if !url.has_host() => "it names no host",
            Ok(url) => {
                if url.password().is_some() {
                    self.warn(
                        place,
                        "the url holds a password, which is sent as Basic; to keep it out of \
                         this file write `${env:NAME}` in its place",
                    );
                }
                return Some(text.to_owned());
            }
        };
        self.fault(place, EntryProblem::BadUrl { reason });
        None
    }

    /// Notes where the value of a header comes from.
    pub(super) fn header_from(&mut self, header: &str, place: &Place, value: &Expanded) {
        self.header_sources.push(HeaderSource {
            header: header.to_owned(),
            key: place.to_string(),
            secret: value.secret.clone(),
            variables: value.variables.clone(),
            workspace: None,
        });
    }

    /// Recommends a variable where the file itself seems to hold a secret (E16).
    pub(super) fn advise_if_secret(&mut self, place: &Place, name: &str, value: &Expanded) {
        if !value.is_from_elsewhere() && secrets::looks_secret(name, &value.value) {
            self.warn(place, secrets::advice());
        }
    }

    /// As [`Self::advise_if_secret`], for a header.
    pub(super) fn advise_if_secret_header(&mut self, place: &Place, name: &str, value: &Expanded) {
        if !value.is_from_elsewhere() && secrets::looks_secret_in_header(name, &value.value) {
            self.warn(place, secrets::advice());
        }
    }

    /// Reports keys that are not in `known`. Keys of [`REFERENCES`] have faults of their own.
    pub(super) fn unknown_keys(&mut self, fields: &Fields, at: &Place, known: &[&str]) {
        let is_reference = |key: &str| REFERENCES.iter().any(|(reference, _)| *reference == key);
        let unknown = fields.iter().map(|(key, _)| key.as_str());
        for key in unknown.filter(|key| !known.contains(key) && !is_reference(key)) {
            let unknown = UnknownKey::new(key, known);
            match unknown.meant() {
                Some(meant) if meant == "confinement" => {
                    let key = shortened(key);
                    let known = meant.to_owned();
                    self.fault(at, ConfinementProblem::Key { key, known });
                }
                Some(meant) if self.restricts(meant) => {
                    let (key, known) = (shortened(key), meant.to_owned());
                    self.fault(at, EntryProblem::UnknownRestriction { key, known });
                }
                Some(_) => {
                    self.warn(at, unknown.to_string());
                    self.misspelt.push((at.clone(), unknown));
                }
                None if self.dialect == Dialect::Tolerant => {
                    self.foreign_keys.entry(shortened(key)).or_default().push(at.to_string());
                }
                None => {
                    let known = known.join("`, `");
                    let key = shortened(key);
                    self.warn(at, format!("`{key}` is ignored; the keys here are `{known}`"));
                }
            }
        }
    }

    /// True if a key restricts callers, so that it must not be ignored.
    fn restricts(&self, key: &str) -> bool {
        RESTRICTIONS.contains(&key) || (self.dialect == Dialect::Strict && RULES.contains(&key))
    }

    /// True if a misspelt key at this place was meant to be `key`.
    pub(super) fn is_misspelt(&self, at: &Place, key: &str) -> bool {
        let is_it =
            |(place, unknown): &(Place, UnknownKey)| place == at && unknown.meant() == Some(key);
        self.misspelt.iter().any(is_it)
    }
}
