//! The fields of a capability or an agent, each with the origin of its value.

use narthex_console::{
    pages::agents::{AgentForm, Attached, Source},
    parts::{
        Words,
        form::{Choice, Field, Input},
    },
};
use narthex_model::CatalogKind;
use serde_json::{Map, Value};

use super::{
    around::{Around, Server},
    draft::{BOXES, field_of, has_field, members, place_of},
    effective::{chain, key},
    faults::Faults,
    sent::Sent,
    values::{KEPT, Kind, is_placeholder, is_secret, reference, shown},
};

/// Most options of a choice. More are a text.
const OPTIONS: usize = 200;
/// Most names in a sentence.
const NAMED: usize = 12;

/// A definition, and all that its fields show beside it.
pub(super) struct Sketch<'a> {
    pub(super) kind: CatalogKind,
    pub(super) definition: &'a Map<String, Value>,
    pub(super) stored: &'a Map<String, Value>,
    /// The form that was sent, whose texts are kept.
    pub(super) sent: Option<&'a Sent>,
    /// The merged view, for those who may see it.
    pub(super) merged: Option<&'a Value>,
    pub(super) around: &'a Around,
    /// The reason why nothing can be changed here.
    pub(super) off: Option<&'static str>,
}

impl Sketch<'_> {
    /// The form without its paths and without the inputs of a run.
    pub(super) fn form(&self, faults: &mut Faults) -> AgentForm {
        let is_editable = self.off.is_none();
        let known = members(self.kind);
        let kept = self.definition.keys().filter(|name| !known.contains(&name.as_str()));
        AgentForm {
            path: String::new(),
            tag: String::new(),
            is_editable,
            about: self.about(faults),
            capabilities: self.capabilities(faults),
            attached: self.attached(faults),
            attach: if is_editable { self.attach(faults) } else { Vec::new() },
            sources: if is_editable { self.sources() } else { Vec::new() },
            kept: kept.map(|name| Words::new(name)).collect(),
            run: None,
        }
    }

    /// The text that was sent for a field, or that of the definition.
    fn kept(&self, name: &str, of: impl FnOnce() -> String) -> String {
        self.sent.and_then(|sent| sent.get(name)).unwrap_or_else(of)
    }

    fn text(&self, member: &str) -> String {
        let of = || match self.definition.get(member) {
            Some(Value::Array(names)) => {
                let names: Vec<_> = names.iter().filter_map(Value::as_str).collect();
                names.join(" ")
            }
            Some(value @ Value::Object(_)) => Kind::Json.text(value),
            Some(value) => Kind::Text.text(value),
            None => String::new(),
        };
        self.kept(member, of)
    }

    /// A field with its fault, which cannot be changed by those who may not.
    fn field(&self, field: Field, place: &str, faults: &mut Faults) -> Field {
        self.closed(field.fault(faults.take(place).as_deref()))
    }

    /// A field that cannot be changed by those who may not.
    fn closed(&self, field: Field) -> Field {
        match self.off {
            Some(why) => field.off(why),
            None => field,
        }
    }

    fn about(&self, faults: &mut Faults) -> Vec<Field> {
        let line = |name: &str| Input::line(&self.text(name));
        let area = |name: &str, rows| Input::area(&self.text(name), rows);
        let mut all = vec![Field::new("description", "Description", line("description"))];
        match self.kind {
            CatalogKind::Agent => {
                let types = ["worker", "orchestrator", "scheduled"];
                let is_active = match self.sent {
                    Some(sent) => sent.is_on("active"),
                    None => self.definition.get("active") != Some(&Value::Bool(false)),
                };
                let chosen = match self.text("agent_type") {
                    text if text.is_empty() => "worker".to_owned(),
                    text => text,
                };
                all.extend([
                    Field::new("agent_type", "Type", Input::choice(&types, &chosen)).help(
                        "A worker acts for the human who drives its run; the others act for no \
                         person.",
                    ),
                    Field::new("active", "Active", Input::Check { is_on: is_active })
                        .help("Runs of an agent that is not active are refused."),
                    Field::new("system_prompt", "System prompt", area("system_prompt", 6)),
                    Field::new("params_schema", "Parameters", area("params_schema", 4)).help(
                        "An object of JSON with a schema for each parameter, such as \
                         {\"topic\": {\"type\": \"string\", \"required\": true}}.",
                    ),
                    Field::new("spawnable_agents", "Agents it may start", line("spawnable_agents"))
                        .help("Names with spaces between them."),
                ]);
            }
            CatalogKind::Capability | CatalogKind::Server => {
                let types = [
                    (String::new(), "by its contents".to_owned()),
                    ("mcp".to_owned(), "mcp: servers".to_owned()),
                    ("text".to_owned(), "text".to_owned()),
                    ("script".to_owned(), "script".to_owned()),
                ];
                all.extend([
                    Field::new("type", "Type", choice(types.to_vec(), &self.text("type"))),
                    Field::new("text", "Text", area("text", 6)),
                    Field::new("script", "Script", line("script")).help("The name of a script."),
                ]);
            }
        }
        let each = all.into_iter().map(|field| {
            let place = field.name.clone();
            self.field(field, &place, faults)
        });
        each.collect()
    }

    fn capabilities(&self, faults: &mut Faults) -> Vec<Field> {
        if self.kind != CatalogKind::Agent {
            return Vec::new();
        }
        let own = self.definition.get("capabilities").and_then(Value::as_array);
        let own: Vec<_> = own.into_iter().flatten().filter_map(Value::as_str).collect();
        if self.around.capabilities.len() > BOXES {
            let input = Input::line(&self.text("capabilities"));
            let field = Field::new("capabilities", "Names", input);
            let field = field.help("Names of capabilities with spaces between them.");
            return vec![self.field(field, "capabilities", faults)];
        }
        let known = self.around.capabilities.iter().map(String::as_str);
        let mut all: Vec<&str> = own.clone();
        all.extend(known.filter(|name| !own.contains(name)));
        let each = all.into_iter().map(|name| {
            let at = own.iter().position(|one| *one == name);
            let input = Input::Check { is_on: at.is_some() };
            let field = Field::new(format!("cap.{name}"), name, input);
            match at {
                Some(at) => self.field(field, &format!("capabilities[{at}]"), faults),
                None => self.closed(field),
            }
        });
        each.collect()
    }

    fn attached(&self, faults: &mut Faults) -> Vec<Attached> {
        let all = self.definition.get("mcpServers").and_then(Value::as_object);
        let stored = self.stored.get("mcpServers");
        let none = Server::default();
        let one = |(alias, one): (&String, &Value)| {
            let id = one["ref"].as_str().unwrap_or_default();
            let server = self.around.servers.get(id).unwrap_or(&none);
            let about = match (server.name == id, server.about.is_empty()) {
                (_, false) => server.about.clone(),
                (false, true) => server.name.clone(),
                (true, true) => String::new(),
            };
            Attached {
                id: Field::new(format!("at.{alias}"), "", Input::Unseen).id(),
                alias: Words::new(alias),
                server: Words::new(id),
                about: Words::new(&about),
                reference: format!("at.{alias}"),
                id_of_server: id.to_owned(),
                fields: self.of_attachment(alias, one, faults),
                is_new: stored.and_then(|stored| stored.get(alias)).is_none(),
            }
        };
        all.into_iter().flatten().map(one).collect()
    }

    fn of_attachment(&self, alias: &str, one: &Value, faults: &mut Faults) -> Vec<Field> {
        if self.off.is_some() {
            // Values are for authors (D39).
            return Vec::new();
        }
        let id = one["ref"].as_str().unwrap_or_default();
        let (config, mut all) = (&one["config"], Vec::new());
        let keys = self.around.keys(id).filter(|(name, _)| has_field(alias, name));
        for (name, schema) in keys {
            let own = config.get(name);
            let place = place_of(alias, name);
            all.push(self.field(self.key(alias, name, schema, own), &place, faults));
            all.extend(self.removing(alias, name, own));
        }
        all.extend(self.others(alias, id, config, faults));
        let optional = match &one["optional"] {
            Value::Bool(true) => "yes",
            Value::Bool(false) => "no",
            _ => "",
        };
        let name = format!("opt.{alias}");
        let chosen = self.kept(&name, || optional.to_owned());
        let options = [
            ("", "as the other levels say"),
            ("yes", "optional: runs do without it"),
            ("no", "needed: runs are refused without it"),
        ];
        let options = options.map(|(value, label)| (value.to_owned(), label.to_owned())).to_vec();
        let field = Field::new(name, "If it does not start", choice(options, &chosen));
        // Faults of the attachment as a whole, such as its reference, are shown here.
        all.push(self.field(field, &place_of_alias(alias), faults));
        all
    }

    /// The field of a key with a schema.
    fn key(&self, alias: &str, name: &str, schema: &Value, own: Option<&Value>) -> Field {
        let field = field_of(alias, name);
        let merged = self.merged.and_then(|merged| key(merged, alias, name));
        let inherited = match own {
            None => merged.map(|merged| shown(&merged["value"])).unwrap_or_default(),
            Some(_) => String::new(),
        };
        let kind = Kind::of(schema);
        let unset = match inherited.is_empty() {
            true => "not set here".to_owned(),
            false => format!("not set here: {inherited}"),
        };
        let text = || own.map(|value| kind.text(value)).unwrap_or_default();
        let input = match (schema["enum"].as_array(), kind) {
            _ if is_secret(name, schema) => self.secret(&field, own, unset),
            (Some(allowed), _) => {
                let allowed = allowed.iter().map(|value| kind.text(value));
                self.one_of(&field, unset, allowed.collect(), text())
            }
            (None, Kind::Flag) => {
                let both = vec!["true".to_owned(), "false".to_owned()];
                self.one_of(&field, unset, both, text())
            }
            (None, Kind::Json) => Input::area(&self.kept(&field, text), 3),
            (None, Kind::Text | Kind::Number) => {
                Input::Line { value: self.kept(&field, text), example: inherited }
            }
        };
        let label = match schema["label"].as_str() {
            Some(label) => format!("{label} ({name})"),
            None => name.to_owned(),
        };
        let made = Field::new(field, &label, input).help(&help(name, schema, kind));
        made.origins(merged.map(chain).unwrap_or_default())
    }

    fn one_of(&self, field: &str, unset: String, values: Vec<String>, own: String) -> Input {
        let chosen = self.kept(field, || own.clone());
        let mut options = vec![(String::new(), unset)];
        options.extend(values.into_iter().map(|value| (value.clone(), value)));
        if !options.iter().any(|(value, _)| *value == chosen) {
            options.push((chosen.clone(), chosen.clone()));
        }
        choice(options, &chosen)
    }

    /// A choice of references (X-M52): no value is ever shown, and none can be written.
    fn secret(&self, field: &str, own: Option<&Value>, unset: String) -> Input {
        let before = match own {
            None | Some(Value::Null) => String::new(),
            Some(value) => reference(value).unwrap_or_else(|| KEPT.to_owned()),
        };
        let sent = self.sent.and_then(|sent| sent.get(field));
        // A value that somebody has written here anyway is not shown again.
        let sent = sent.filter(|sent| sent.is_empty() || sent == KEPT || is_placeholder(sent));
        let chosen = sent.unwrap_or_else(|| before.clone());
        if self.around.secrets.len() > OPTIONS && before != KEPT {
            return Input::Line { value: chosen, example: "${NAME}".to_owned() };
        }
        let mut options = vec![(String::new(), unset)];
        if before == KEPT {
            options.push((KEPT.to_owned(), "the stored value, which is not shown".to_owned()));
        }
        let secrets = self.around.secrets.iter().take(OPTIONS).map(|(name, is_set)| {
            let text = format!("${{{name}}}");
            let label = if *is_set { text.clone() } else { format!("{text}, which is not set") };
            (text, label)
        });
        options.extend(secrets);
        if !options.iter().any(|(value, _)| *value == chosen) {
            options.push((chosen.clone(), chosen.clone()));
        }
        choice(options, &chosen)
    }

    /// The box that removes a key which a lower level sets.
    fn removing(&self, alias: &str, name: &str, own: Option<&Value>) -> Option<Field> {
        let merged = self.merged.and_then(|merged| key(merged, alias, name));
        let has_below = merged.is_some_and(|merged| {
            own.is_none() || merged["overrides"].as_array().is_some_and(|all| !all.is_empty())
        });
        let is_removed = own == Some(&Value::Null);
        let field = format!("no.{alias}.{name}");
        let is_on = match self.sent {
            Some(sent) => sent.is_on(&field),
            None => is_removed,
        };
        let label = format!("Remove {name}");
        let made = || {
            Field::new(field, &label, Input::Check { is_on })
                .help("The server then gets no value, whatever lower levels say.")
        };
        (has_below || is_removed || is_on).then(made)
    }

    /// The values of keys without a schema.
    fn others(&self, alias: &str, id: &str, config: &Value, faults: &mut Faults) -> Option<Field> {
        let server = self.around.servers.get(id);
        let declared = server.and_then(|server| server.schema.as_ref());
        let is_other = |name: &str| {
            declared.is_none_or(|declared| !declared.contains_key(name)) || !has_field(alias, name)
        };
        let others = config.as_object().into_iter().flatten();
        let others: Map<_, _> = others
            .filter(|(name, _)| is_other(name))
            .map(|(name, value)| (name.clone(), without_secrets(name, value)))
            .collect();
        if others.is_empty() && declared.is_some() {
            return None;
        }
        let text = || match others.is_empty() {
            true => String::new(),
            false => Kind::Json.text(&Value::Object(others.clone())),
        };
        let field = format!("more.{alias}");
        let value = self.kept(&field, text);
        let made = Field::new(field, "Other values", Input::area(&value, 3)).help(
            "An object of JSON with keys that have no field. A secret is named as ${NAME}; a stored \
             value that is not shown is (kept).",
        );
        // Faults of single keys inside of it are shown here as well.
        let config = format!("{}.config", place_of_alias(alias));
        Some(self.field(made, &config, faults))
    }

    fn attach(&self, faults: &mut Faults) -> Vec<Field> {
        let servers = &self.around.servers;
        // Without a fault the server is attached, and the fields are for the next one.
        let sent = self.sent.filter(|_| faults.has("attach."));
        let text = |name: &str| sent.map(|sent| sent.text(name)).unwrap_or_default();
        let chosen = text("attach.server");
        let input = match servers.len() > OPTIONS {
            true => Input::Line { value: chosen, example: "the id of a server".to_owned() },
            false => {
                let label = |id: &String, server: &Server| match server.name == *id {
                    true => id.clone(),
                    false => format!("{id}: {}", server.name),
                };
                let mut options = vec![(String::new(), "choose a server".to_owned())];
                let all = servers.iter().map(|(id, server)| (id.clone(), label(id, server)));
                options.extend(all);
                choice(options, &chosen)
            }
        };
        let alias =
            Input::Line { value: text("attach.alias"), example: "the same name".to_owned() };
        let server = Field::new("attach.server", "Server of the catalog", input);
        let alias = Field::new("attach.alias", "Name here (alias)", alias)
            .help("Levels with one alias and one server set values of the same server.");
        vec![self.field(server, "attach.server", faults), self.field(alias, "attach.alias", faults)]
    }

    fn sources(&self) -> Vec<Source> {
        let source =
            |text: &str, about: &str| Source { text: Words::new(text), about: Words::new(about) };
        let mut all = Vec::new();
        if self.kind == CatalogKind::Agent {
            let names = self.params();
            let about = match names.is_empty() {
                true => "a parameter of the run; this agent declares none".to_owned(),
                false => format!("a parameter of the run: {}", listed(&names)),
            };
            all.push(source("${params.NAME}", &about));
        }
        let secrets: Vec<_> = self.around.secrets.iter().map(|(name, _)| name.clone()).collect();
        let secrets = match secrets.is_empty() {
            true => "a secret of this workspace as the whole value; it has none yet".to_owned(),
            false => format!("a secret of this workspace as the whole value: {}", listed(&secrets)),
        };
        all.extend([
            source("${scope.NAME}", "the scope of the run, which no model sees"),
            source("${runtime.run_id}", "the id of the run"),
            source("${runtime.session_id}", "the id of the session"),
            source("${runtime.project_dir}", "the folder of the session, if the run has one"),
            source("${env.NAME}", "a variable of the daemon that its setting catalog.env allows"),
            source("${NAME}", &secrets),
            source("$${", "the characters ${ themselves"),
        ]);
        all
    }

    /// The names of the declared parameters.
    fn params(&self) -> Vec<String> {
        let schema = self.definition.get("params_schema").and_then(Value::as_object);
        schema.map(params_of).unwrap_or_default().into_iter().map(|(name, _)| name).collect()
    }
}

/// The parameters that a schema declares, in either of its two forms.
pub(super) fn params_of(schema: &Map<String, Value>) -> Vec<(String, Value)> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let all = properties.unwrap_or(schema).iter().filter(|(_, one)| one.is_object());
    all.map(|(name, one)| (name.clone(), one.clone())).collect()
}

/// A choice of values with their labels.
pub(super) fn choice(options: Vec<(String, String)>, chosen: &str) -> Input {
    let option = |(value, label): (String, String)| Choice {
        is_chosen: value == chosen,
        label: Words::new(&label),
        value,
    };
    Input::Choice { options: options.into_iter().map(option).collect() }
}

/// A value of a key without a schema; a literal that may be a secret is not shown.
fn without_secrets(name: &str, value: &Value) -> Value {
    let is_literal = reference(value).is_none() && !value.is_null();
    match is_literal && is_secret(name, &Value::Null) {
        true => KEPT.into(),
        false => value.clone(),
    }
}

fn place_of_alias(alias: &str) -> String {
    narthex_model::json::Place::root("mcpServers").key(alias).to_string()
}

/// The sentence about a key.
fn help(name: &str, schema: &Value, kind: Kind) -> String {
    let mut all = Vec::new();
    all.extend(schema["description"].as_str().map(|text| text.trim_end_matches('.').to_owned()));
    if schema["required"] == true {
        all.push("a run needs it".to_owned());
    }
    match kind {
        _ if is_secret(name, schema) => all.push("a reference to a secret".to_owned()),
        Kind::Text => {}
        Kind::Number => all.push("a number".to_owned()),
        Kind::Flag => all.push("true or false".to_owned()),
        Kind::Json => all.push("JSON".to_owned()),
    }
    if schema["internal"] == true {
        all.push("only a placeholder of runtime or runner, such as ${runtime.run_id}".to_owned());
    }
    all.extend(schema["pattern"].as_str().map(|pattern| format!("it matches {pattern}")));
    let example = Some(&schema["example"]).filter(|example| !example.is_null());
    let example = example.filter(|_| !is_secret(name, schema));
    all.extend(example.map(|example| format!("for example {}", shown(example))));
    all.join("; ")
}

fn listed(names: &[String]) -> String {
    let mut all: Vec<_> = names.iter().take(NAMED).map(String::as_str).collect();
    let more = format!("{} more", names.len().saturating_sub(NAMED));
    if names.len() > NAMED {
        all.push(&more);
    }
    all.join(", ")
}
