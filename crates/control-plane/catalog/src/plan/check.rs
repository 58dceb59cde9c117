//! Checks of a merged server before any run.

use std::collections::BTreeMap;

use narthex_model::{Alias, SecretName, command::narthex, json::Place, variable};

use super::{Catalog, PlannedServer};
use crate::{
    agent::Agent,
    capability::Capability,
    carrier::{Carrier, carrier_of, mistaken},
    fault::{Fault, FaultCode, Warning},
    layer::objection,
    origin::{self, Origin},
    resolve::key,
    resolved,
    schema::{KeyKind, KeySchema},
    server::{EntryAuth, ServerEntry, Shape},
    surroundings::{EnvValue, Surroundings},
    template::{ConfigValue, Placeholder, Source, Tree},
};

/// Checks values of one server.
struct Checker<'a> {
    alias: &'a Alias,
    entry: &'a ServerEntry,
    surroundings: Surroundings<'a>,
    /// The user of the server, for messages.
    user: String,
    faults: Vec<Fault>,
}

/// Checks the effective values, the required keys, and the carriers of all keys.
pub(super) fn check(server: &mut PlannedServer<'_>, agent: &Agent, surroundings: Surroundings<'_>) {
    let Some(entry) = server.entry else { return };
    let alias = server.alias.clone();
    let user = format!("agent `{}`", agent.name);
    let mut checker = Checker { alias: &alias, entry, surroundings, user, faults: Vec::new() };
    for (key, planned) in &mut server.keys {
        let at = planned.origin.place(&alias, key);
        planned.carrier = checker.value(key, planned.value, &at);
        if !planned.origin.is_the_servers() {
            checker.chosen(key, planned.value, &at);
            if let Some(message) = checker.mistaken(key) {
                server.warnings.push(Warning { path: at.to_string(), message });
            }
        }
        let is_literal = matches!(planned.value, ConfigValue::Tree(Tree::Plain(_)));
        if planned.is_hidden() && is_literal && !planned.is_removed() {
            let message = "a sensitive key has a literal value; store the value as a secret and \
                           refer to the secret";
            server.warnings.push(Warning { path: at.to_string(), message: message.to_owned() });
        }
    }
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    for (key, planned) in server.keys.iter().filter(|(_, planned)| !planned.is_removed()) {
        let Some(carrier) = &planned.carrier else { continue };
        if let Some(other) = seen.insert(carrier.identity(), key) {
            let at = planned.origin.place(&alias, key);
            let message = format!("`{key}` and `{other}` are both sent as {carrier}");
            let remedy = "keep one of the two";
            checker.fault(&at, Some(key), FaultCode::CarrierConflict, message, remedy);
        }
    }
    for (key, schema) in entry.config_schema.iter().flatten() {
        required(&mut checker, server, key, schema);
    }
    checker.entry_itself();
    server.faults.append(&mut checker.faults);
}

/// X-M38: a required key must have a value.
fn required(checker: &mut Checker<'_>, server: &PlannedServer<'_>, key: &str, schema: &KeySchema) {
    if !schema.required {
        return;
    }
    // There a literal is misplaced, whatever its text.
    let is_secret = schema.kind == Some(KeyKind::Secret);
    let (at, message) = match server.keys.get(key) {
        None => {
            let at = origin::server(&checker.entry.id).key("config_schema").key(key);
            (at, format!("Missing required value for config key '{key}'"))
        }
        Some(planned) if planned.is_removed() => (
            planned.origin.place(&server.alias, key),
            format!("Missing required value for config key '{key}': {} removes it", planned.origin),
        ),
        Some(planned) if planned.value.is_empty_text() && !is_secret => (
            planned.origin.place(&server.alias, key),
            format!(
                "Missing required value for config key '{key}': {} leaves it empty",
                planned.origin
            ),
        ),
        Some(_) => return,
    };
    let what = if is_secret {
        "as the reference of a secret, `${NAME}`"
    } else {
        "in the agent, a capability or the server's `default_config`"
    };
    let remedy = format!("set `{key}` of `{}` {what}", server.alias);
    checker.fault(&at, Some(key), FaultCode::MissingRequiredMcpConfig, message, remedy);
}

/// The faults of a server by itself.
pub(super) fn server(entry: &ServerEntry, surroundings: Surroundings<'_>) -> Vec<Fault> {
    let alias = Alias::suggest(entry.id.as_str());
    let user = format!("server `{}`", entry.id);
    let mut checker = Checker { alias: &alias, entry, surroundings, user, faults: Vec::new() };
    for (key, schema) in entry.config_schema.iter().flatten() {
        let at = Origin::SchemaDefault(entry.id.clone()).place(&alias, key);
        if let Some(value) = &schema.default {
            checker.value(key, value, &at);
        }
    }
    for (key, value) in &entry.default_config {
        let at = Origin::DefaultConfig(entry.id.clone()).place(&alias, key);
        checker.value(key, value, &at);
    }
    checker.entry_itself();
    checker.faults
}

/// The faults of a capability by itself.
pub(super) fn capability(
    catalog: &Catalog,
    capability: &Capability,
    surroundings: Surroundings<'_>,
) -> (Vec<Fault>, Vec<Warning>) {
    let (mut faults, mut warnings) = (Vec::new(), Vec::new());
    for (alias, attachment) in &capability.servers {
        let Some(entry) = catalog.servers.get(&attachment.reference) else {
            let at = origin::capability(&capability.name).key("mcpServers").key(alias.as_str());
            let id = &attachment.reference;
            let message = format!("MCP server '{alias}' refers to unknown registry entry '{id}'");
            let remedy = "add the server to the catalog, or correct `ref`";
            let code = FaultCode::McpRefResolutionFailed;
            let fault = Fault::new(at.key("ref"), code, message, remedy).of(alias, None);
            faults.push(Fault { reference: Some(id.clone()), ..fault });
            continue;
        };
        let user = format!("capability `{}`", capability.name);
        let mut checker = Checker { alias, entry, surroundings, user, faults: Vec::new() };
        let origin = Origin::Capability(capability.name.clone());
        for (key, value) in &attachment.config {
            let at = origin.place(alias, key);
            checker.value(key, value, &at);
            checker.chosen(key, value, &at);
            if let Some(message) = checker.mistaken(key) {
                warnings.push(Warning { path: at.to_string(), message });
            }
        }
        faults.append(&mut checker.faults);
    }
    (faults, warnings)
}

impl Checker<'_> {
    fn fault(
        &mut self,
        at: &Place,
        key: Option<&str>,
        code: FaultCode,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.faults.push(Fault::new(at, code, message, remedy).of(self.alias, key));
    }

    /// Checks a value of any level; returns its carrier.
    fn value(&mut self, key: &str, value: &ConfigValue, at: &Place) -> Option<Carrier> {
        match self.entry.declared(key) {
            Err(found) => {
                self.fault(at, Some(key), found.code, found.message, found.remedy);
                return None;
            }
            Ok(schema) => {
                if let Some(found) = schema.and_then(|schema| objection(schema, value)) {
                    self.fault(at, Some(key), found.code, found.message, found.remedy);
                }
            }
        }
        self.references(Some(key), value, at);
        match carrier_of(self.entry, key) {
            Ok(carrier) => {
                self.carried(key, value, &carrier, at);
                Some(carrier)
            }
            Err(found) => {
                self.fault(at, Some(key), found.code, found.message, found.remedy);
                None
            }
        }
    }

    /// Refuses a literal that its carrier cannot take: a header takes ASCII alone.
    fn carried(&mut self, key: &str, value: &ConfigValue, carrier: &Carrier, at: &Place) {
        let schema = self.entry.config_schema.as_ref().and_then(|schema| schema.get(key));
        let value_type = schema.map(|schema| schema.value_type);
        let literals = match value {
            ConfigValue::Tree(tree @ Tree::Plain(value)) => {
                vec![resolved::carried(value_type, tree, value)]
            }
            ConfigValue::Tree(Tree::Text(template)) => template.literals().collect(),
            ConfigValue::Tree(Tree::List(_) | Tree::Object(_))
            | ConfigValue::Secret(_)
            | ConfigValue::Removed => Vec::new(),
        };
        let why = literals.iter().find_map(|text| key::objection(carrier, text));
        if let Some(why) = why {
            let message = format!("the value of '{key}' {why}");
            let remedy = "write it in ASCII, such as percent-encoded or in base64, if the server \
                          reads it so";
            self.fault(at, Some(key), FaultCode::CarrierInvalid, message, remedy);
        }
    }

    /// The warning for the author of an attachment about a key that the server does not declare.
    fn mistaken(&self, key: &str) -> Option<String> {
        match self.entry.declared(key) {
            Ok(None) => mistaken(self.entry, key),
            Ok(Some(_)) | Err(_) => None,
        }
    }

    /// Refuses values that the author of an attachment may not choose, whatever the server
    /// declares.
    fn chosen(&mut self, key: &str, value: &ConfigValue, at: &Place) {
        self.chosen_secret(key, value, at);
        if let Ok(Some(schema)) = self.entry.declared(key)
            && schema.internal
            && !value.is_the_platforms()
        {
            let id = &self.entry.id;
            let message = format!("only the platform sets `{key}` of `{id}`, not an author");
            let remedy = "leave it out, or write one placeholder of `runtime` or `runner` alone, \
                          such as `${runtime.run_id}`";
            self.fault(at, Some(key), FaultCode::KeyInternal, message, remedy);
        }
        let Ok(Carrier::Env(name)) = carrier_of(self.entry, key) else { return };
        if self.entry.declared(key).is_ok() && variable::steers_programs(&name) {
            let id = &self.entry.id;
            let message = format!(
                "the variable `{name}` changes what the program of `{id}` loads or runs, which an \
                 attachment cannot do"
            );
            let remedy = format!("leave it out, or ask an admin to set it in `{id}` itself");
            self.fault(at, Some(key), FaultCode::CarrierInvalid, message, remedy);
        }
    }

    /// A secret goes only where an author of servers declares one: the author of an attachment
    /// could otherwise have any secret sent to any server (X-M19, X-E21).
    fn chosen_secret(&mut self, key: &str, value: &ConfigValue, at: &Place) {
        let (ConfigValue::Secret(name), Ok(schema)) = (value, self.entry.declared(key)) else {
            return;
        };
        let is_theirs = matches!(self.entry.default_config.get(key), Some(ConfigValue::Secret(_)));
        let is_for_values = schema.is_some_and(|schema| schema.kind == Some(KeyKind::Value));
        // A secret in a key of kind `value` has been refused already.
        if is_theirs || is_for_values || schema.is_some_and(KeySchema::is_hidden) {
            return;
        }
        let id = &self.entry.id;
        let message = format!("the server `{id}` does not declare `{key}` as a secret");
        let remedy = format!(
            "ask an admin to declare `{key}` in the `config_schema` of `{id}` with `\"kind\": \
             \"secret\"`, or write a plain value in place of `{name}`"
        );
        self.fault(at, Some(key), FaultCode::SecretMisplaced, message, remedy);
    }

    /// Secrets that are not set, and variables that may not be used.
    fn references(&mut self, key: Option<&str>, value: &ConfigValue, at: &Place) {
        if let ConfigValue::Secret(name) = value {
            self.secret(key, name, at);
        }
        for placeholder in value.placeholders() {
            self.placeholder(key, placeholder, at);
        }
    }

    fn secret(&mut self, key: Option<&str>, name: &SecretName, at: &Place) {
        if (self.surroundings.is_secret_set)(name) {
            return;
        }
        let field = key.unwrap_or("auth");
        let message = format!(
            "{} needs the secret `{name}` for `{field}` of `{}`, and it is not set",
            self.user, self.alias
        );
        let remedy = format!(
            "set it with `{}`",
            narthex("secrets set {}", &[name]).in_workspace(self.surroundings.workspace)
        );
        let fault = Fault::new(at, FaultCode::SecretNotSet, message, remedy).of(self.alias, key);
        self.faults.push(Fault { secret: Some(name.clone()), ..fault });
    }

    fn placeholder(&mut self, key: Option<&str>, placeholder: &Placeholder, at: &Place) {
        let is_refused = placeholder.source == Source::Env
            && (self.surroundings.env)(&placeholder.key) == EnvValue::NotAllowed;
        if is_refused {
            let message = format!("the variable `{}` may not be used here", placeholder.key);
            let remedy = self.surroundings.allowing(&[&placeholder.key]);
            let fault = Fault::new(at, FaultCode::EnvNotAllowed, message, remedy);
            let variable = Some(placeholder.key.clone());
            self.faults.push(Fault { variable, ..fault.of(self.alias, key) });
        }
    }

    /// The entry's own texts: its URL and its authentication. Reading the entry has refused
    /// variables in the arguments of a program.
    fn entry_itself(&mut self) {
        let entry = self.entry;
        let at = origin::server(&entry.id);
        if let Shape::Http(http) | Shape::Sse(http) = &entry.shape {
            for placeholder in http.url.placeholders() {
                self.placeholder(None, placeholder, &at.key("url"));
            }
        }
        if entry.auth == EntryAuth::None {
            return;
        }
        for (field, text) in entry.auth.texts() {
            self.references(None, &text.0, &at.key("auth").key(field));
        }
    }
}
