//! Answers how the rules decide a described call, without making the call.

use std::{sync::Arc, time::SystemTime};

use narthex_catalog::fields::Fields;
use narthex_cedar::{RuleSet, UnreadableRules};
use narthex_model::{
    AgentName, AgentType, Alias, CatalogKind, Timestamp, WorkspaceId,
    command::narthex,
    json::{Node, shortened},
};
use narthex_policy::{
    Actors, Arguments, CallOrigin, Item, Question, Rules, Ruling, Site, is_ruled,
};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{refused, rules_of};
use crate::{CatalogError, Control, ControlError, FieldError};

const FIELDS: [&str; 17] = [
    "agent",
    "agent_type",
    "server",
    "alias",
    "tool",
    "prompt",
    "resource",
    "origin",
    "arguments",
    "annotations",
    "user",
    "rules",
    "method",
    "endpoint",
    "era",
    "is_child",
    "at",
];
/// The kinds of endpoint that may receive the call: the first is the default.
const ENDPOINTS: [&str; 2] = ["aggregated", "transparent"];
const ERAS: [&str; 2] = ["modern", "legacy"];

/// The ruling of rules on a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RulesChecked {
    /// The matching rules, the scopes that they require, and the rule that forbids the call.
    pub ruling: Ruling,
}

/// A parsed question.
struct Asked {
    agent: Option<AgentName>,
    agent_type: Option<AgentType>,
    server: String,
    alias: Alias,
    item: Item,
    origin: CallOrigin,
    arguments: Box<RawValue>,
    annotations: Option<Box<RawValue>>,
    user: Option<String>,
    rules: Option<String>,
    method: Option<String>,
    endpoint: &'static str,
    era: &'static str,
    is_child: bool,
    at: Option<SystemTime>,
}

/// JSON texts that must stay exactly as they were written, since rules may distinguish them.
#[derive(Deserialize)]
struct Exact {
    arguments: Option<Box<RawValue>>,
    annotations: Option<Box<RawValue>>,
}

impl RulesChecked {
    /// The ruling as one word: `forbidden`, `approval_required` or `allowed`, by rules alone.
    #[must_use]
    pub fn decision(&self) -> &'static str {
        match &self.ruling {
            Ruling { forbidden: Some(_), .. } => "forbidden",
            Ruling { scopes, .. } if !scopes.is_empty() => "approval_required",
            _ => "allowed",
        }
    }
}

impl Control {
    /// Returns the ruling on the call that a document describes, by the stored rules or by those in
    /// the document, which are not stored. `as_ruled` gives the name and the arguments of a
    /// built-in tool that rules see, each if it differs from the written one.
    ///
    /// # Errors
    /// When the document or its rules are wrong; when there is no such workspace or no store, or
    /// the store fails.
    pub async fn rules_check(
        &self,
        workspace: &WorkspaceId,
        text: &[u8],
        as_ruled: impl Fn(&str, &[u8]) -> (Option<&'static str>, Option<Vec<u8>>),
    ) -> Result<RulesChecked, ControlError> {
        let store = self.catalog_store(workspace).await?;
        let mut asked = read(text).map_err(CatalogError::of_question)?;
        let user = match &asked.user {
            Some(who) => Some(self.driver(workspace, who).map_err(|_absent| {
                let message = format!("there is no member `{}` of the workspace", shortened(who));
                let members = narthex("members list", &[]).in_workspace(workspace.as_str());
                let remedy = format!("`{members}` lists them");
                CatalogError::Question(vec![FieldError::invalid("user", message, remedy)])
            })?),
            None => None,
        };
        let mut agent_type = asked.agent_type;
        if let (None, Some(agent)) = (agent_type, &asked.agent) {
            let found = store.catalog(CatalogKind::Agent).find(workspace, agent.as_str()).await;
            let found = found.map_err(ControlError::Store)?;
            agent_type = Some(found.map(|row| type_of(&row.document)).unwrap_or_default());
        }
        let (agent, is_child) = (asked.agent.clone(), asked.is_child);
        let actors = Actors { user, agent, agent_type, is_child, ..Actors::default() };
        let rules: Box<dyn Rules> = match &asked.rules {
            Some(text) => {
                Box::new(RuleSet::compile(text).map_err(|faults| refused(&faults).of_question())?)
            }
            // Unreadable rules forbid every call, here as in real calls.
            None => match RuleSet::compile(self.rules(workspace).await?.text()) {
                Ok(set) => Box::new(set),
                Err(_unreadable) => Box::new(UnreadableRules),
            },
        };
        let written = asked.arguments.get().as_bytes();
        let (ruled, spelled) = match &asked.item {
            Item::Tool(tool) if asked.alias.is_built_in() => as_ruled(tool, written),
            _ => (None, None),
        };
        if let Some(ruled) = ruled {
            asked.item = Item::Tool(ruled.into());
        }
        let method = asked.method();
        if !is_ruled(&asked.item, method) {
            return Ok(RulesChecked { ruling: Ruling::default() });
        }
        let ruling = rules.ask(&Question {
            actors: &actors,
            server: &asked.alias,
            item: &asked.item,
            method,
            origin: asked.origin,
            arguments: match asked.origin {
                CallOrigin::Call => Arguments::Json(spelled.as_deref().unwrap_or(written)),
                CallOrigin::Task => Arguments::Judged,
            },
            site: Site {
                workspace: workspace.as_str(),
                server_id: Some(&asked.server),
                annotations: asked.annotations.as_ref().map(|one| one.get().as_bytes()),
                endpoint: asked.endpoint,
                era: asked.era,
            },
            at: asked.at.unwrap_or_else(SystemTime::now),
        });
        Ok(RulesChecked { ruling })
    }
}

impl Asked {
    /// The method of the message; without one, the usual method of the item.
    fn method(&self) -> &str {
        match (&self.method, &self.item) {
            (Some(method), _) => method,
            _ if self.origin == CallOrigin::Task => "tasks/get",
            (None, Item::Prompt(_)) => "prompts/get",
            (None, Item::Resource(_)) => "resources/read",
            (None, Item::Tool(_) | Item::Task(_) | Item::Server) => "tools/call",
        }
    }
}

/// The type of an agent in its stored document.
fn type_of(document: &str) -> AgentType {
    let document: serde_json::Value = serde_json::from_str(document).unwrap_or_default();
    let word = document.get("agent_type").and_then(serde_json::Value::as_str);
    AgentType::ALL.into_iter().find(|kind| Some(kind.as_str()) == word).unwrap_or_default()
}

fn read(text: &[u8]) -> Result<Asked, CatalogError> {
    let mut fields = Fields::read(text, &FIELDS)?;
    let agent = optional(&mut fields, "agent", AgentName::new);
    let agent_type = fields.word("agent_type", &AgentType::ALL.map(|kind| (kind.as_str(), kind)));
    let server = fields.named("server", |text| Ok::<_, String>(text.to_owned()));
    let alias = match optional(&mut fields, "alias", Alias::new) {
        Some(alias) => Some(alias),
        None => server.as_deref().and_then(|server| match Alias::new(server) {
            Ok(alias) => Some(alias),
            Err(error) => {
                fields.fault(
                    "alias",
                    error.to_string(),
                    "name the server by the alias that runs use",
                );
                None
            }
        }),
    };
    let method = optional(&mut fields, "method", |text| match text {
        "" => Err("it is empty"),
        text => Ok(text.to_owned()),
    });
    let item = item(&mut fields, method.is_some());
    let origin = origin(&mut fields, item.as_ref());
    for name in ["arguments", "annotations"] {
        if let Some(other) = fields.take(name).filter(|node| !matches!(node, Node::Object(_))) {
            fields.fault(
                name,
                format!("it is {}, not an object", other.found()),
                "write an object",
            );
        }
    }
    let user = optional(&mut fields, "user", |text| Ok::<_, String>(text.to_owned()));
    let at = moment(&mut fields);
    let endpoint = fields.word("endpoint", &ENDPOINTS.map(|word| (word, word)));
    let era = fields.word("era", &ERAS.map(|word| (word, word)));
    let is_child = fields.flag("is_child").unwrap_or_default();
    let rules = fields.take("rules").is_some().then(|| rules_of(&mut fields));
    fields.done()?;
    let broken =
        || CatalogError::Refused(vec![FieldError::invalid("", "it is not JSON", "correct it")]);
    let exact: Exact = serde_json::from_slice(text).map_err(|_checked| broken())?;
    let none = || RawValue::from_string("{}".to_owned()).map_err(|_valid| broken());
    let (Some(server), Some(alias), Some(item)) = (server, alias, item) else {
        return Err(broken());
    };
    Ok(Asked {
        agent,
        agent_type,
        server,
        alias,
        item,
        origin,
        arguments: exact.arguments.map_or_else(none, Ok)?,
        annotations: exact.annotations,
        user,
        rules,
        method,
        endpoint: endpoint.unwrap_or(ENDPOINTS[0]),
        era: era.unwrap_or(ERAS[0]),
        is_child,
        at,
    })
}

/// The moment of the call; `None` if the field is absent.
fn moment(fields: &mut Fields) -> Option<SystemTime> {
    let text = fields.text("at")?;
    let at = Timestamp::parse(&text);
    if at.is_none() {
        let message = format!("`{}` is not a time", shortened(&text));
        fields.fault("at", message, "write one such as 2027-01-31T12:00:00Z");
    }
    at
}

/// Reads a field that may be absent.
fn optional<T, E: std::fmt::Display>(
    fields: &mut Fields,
    name: &str,
    rule: impl FnOnce(&str) -> Result<T, E>,
) -> Option<T> {
    fields.take(name)?;
    fields.named(name, rule)
}

/// The origin of the call. Without the field, it is an ordinary call.
fn origin(fields: &mut Fields, item: Option<&Item>) -> CallOrigin {
    let words = CallOrigin::ALL.map(|origin| (origin.as_str(), origin));
    let origin = fields.word("origin", &words).unwrap_or_default();
    if origin == CallOrigin::Task && !matches!(item, None | Some(Item::Tool(_))) {
        fields.fault("origin", "only calls of tools create tasks", "name a `tool`");
    }
    origin
}

/// Creates an item from its name.
type ItemOf = fn(Arc<str>) -> Item;

/// The called item: a tool, a prompt or a resource. Without one, but with a method, the item is the
/// server itself.
fn item(fields: &mut Fields, has_method: bool) -> Option<Item> {
    let kinds: [(&str, ItemOf); 3] =
        [("tool", Item::Tool), ("prompt", Item::Prompt), ("resource", Item::Resource)];
    let mut found = Vec::new();
    for (name, item) in kinds {
        match fields.take(name) {
            None => {}
            Some(Node::Text(text)) => found.push(item(text.into())),
            Some(other) => {
                let shown = shortened(&other.to_text());
                fields.fault(name, format!("`{shown}` is not text"), "name it");
            }
        }
    }
    if found.is_empty() && has_method {
        return Some(Item::Server);
    }
    if found.len() != 1 {
        let message = "exactly one of `tool`, `prompt` and `resource`, or a `method`, is needed";
        fields.fault("tool", message, "give the name that the server uses");
        return None;
    }
    found.pop()
}
