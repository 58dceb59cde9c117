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
    draft::{BOXES, members},
    faults::Faults,
    values::Kind,
};
use crate::console::sent::Sent;

/// Most options of a choice. More are a text.
pub(super) const OPTIONS: usize = 200;
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
    pub(super) fn kept(&self, name: &str, of: impl FnOnce() -> String) -> String {
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
    pub(super) fn field(&self, field: Field, place: &str, faults: &mut Faults) -> Field {
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
        let line = |name: &str| match self.text(name) {
            // An input of one line would lose its line breaks.
            text if text.contains('\n') => Input::area(&text, 3),
            text => Input::line(&text),
        };
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
                all.extend(self.executor());
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

    /// The program that carries out the runs, if the daemon has some or the agent names one.
    fn executor(&self) -> Option<Field> {
        let chosen = self.text("executor");
        let mut names = self.around.executors.clone();
        if !chosen.is_empty() && !names.contains(&chosen) {
            names.push(chosen.clone());
        }
        let none = "none: the creator of a run gets its token";
        let mut options = vec![(String::new(), none.to_owned())];
        options.extend(names.into_iter().map(|name| (name.clone(), name)));
        let has_some = options.len() > 1;
        has_some.then(|| {
            let help = "A program of the daemon's settings, which is started for each run.";
            Field::new("executor", "Executor", choice(options, &chosen)).help(help)
        })
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

fn listed(names: &[String]) -> String {
    let mut all: Vec<_> = names.iter().take(NAMED).map(String::as_str).collect();
    let more = format!("{} more", names.len().saturating_sub(NAMED));
    if names.len() > NAMED {
        all.push(&more);
    }
    all.join(", ")
}
