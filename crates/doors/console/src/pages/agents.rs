//! Capabilities and agents: their lists, and one of them with its attachments on the left and its
//! effective configuration on the right.

pub mod samples;

use askama::Template;

use crate::{
    Frame, filters,
    parts::{Action, Empty, Filter, Words, form::Field, form::Origin},
};

/// The list of all capabilities, or of all agents.
#[derive(Debug, Template)]
#[template(path = "agents.html")]
pub struct AgentsPage {
    /// The frame.
    pub frame: Frame,
    /// The rows of this page.
    pub rows: Vec<AgentRow>,
    /// The address of the next page.
    pub next: Option<String>,
    /// The beginning of the names that are shown.
    pub filtered: String,
    /// The filters that are set.
    pub filters: Vec<Filter>,
    /// The filters that the form keeps, each with its value.
    pub kept: Vec<(&'static str, String)>,
    /// The path of this page.
    pub path: String,
    /// The form for a new one, for those who may create it.
    pub create: Option<NewAgent>,
    /// Shown where there are no rows.
    pub empty: Empty,
}

/// The form for a new capability or agent.
#[derive(Debug, Clone)]
pub struct NewAgent {
    /// The path that the form is sent to.
    pub path: String,
    /// The heading, and the words on the button.
    pub label: &'static str,
    /// The fields.
    pub fields: Vec<Field>,
    /// Faults that belong to no field.
    pub faults: Vec<Words>,
    /// True if the form is open: it has a fault, or the list has no row.
    pub is_open: bool,
}

/// A capability or an agent in its list.
#[derive(Debug, Clone)]
pub struct AgentRow {
    /// The path of its page.
    pub href: String,
    /// The name.
    pub name: Words,
    /// The description.
    pub about: Words,
    /// Facts in a few words.
    pub facts: Vec<Words>,
    /// The variables that an operator has bound to secrets for the agent (X-E60).
    pub injected: Vec<Words>,
    /// The reason why the stored form cannot be used.
    pub fault: Option<Words>,
}

/// One capability, or one agent.
#[derive(Debug, Template)]
#[template(path = "agent.html")]
pub struct AgentPage {
    /// The frame.
    pub frame: Frame,
    /// The variables that an operator has bound to secrets for the agent (X-E60).
    pub injected: Vec<Words>,
    /// Faults that belong to no field.
    pub faults: Vec<Words>,
    /// The secrets that runs need and that are not set, for those who may set them.
    pub unset: Vec<Unset>,
    /// The form.
    pub form: AgentForm,
    /// The configuration with all levels merged.
    pub effective: Effective,
    /// The button that asks before it deletes.
    pub delete: Option<Delete>,
    /// The path of the list.
    pub back: String,
}

/// A secret that is not set.
#[derive(Debug, Clone)]
pub struct Unset {
    /// The name.
    pub name: Words,
    /// The page that sets it.
    pub href: String,
}

/// The form of a capability or an agent.
#[derive(Debug, Clone)]
pub struct AgentForm {
    /// The path that the form is sent to.
    pub path: String,
    /// The version that the form has been made from.
    pub tag: String,
    /// True if the human may change it.
    pub is_editable: bool,
    /// The fields of the object itself.
    pub about: Vec<Field>,
    /// The capabilities of an agent; empty without any, and for a capability.
    pub capabilities: Vec<Field>,
    /// The attached servers.
    pub attached: Vec<Attached>,
    /// The fields that attach a further server.
    pub attach: Vec<Field>,
    /// The sources of values that a field can name.
    pub sources: Vec<Source>,
    /// The members that this form leaves as they are.
    pub kept: Vec<Words>,
    /// The inputs of a run on trial, and of one that is started; `None` for a capability.
    pub run: Option<RunForm>,
}

/// An attached server.
#[derive(Debug, Clone)]
pub struct Attached {
    /// The id of the element.
    pub id: String,
    /// The alias.
    pub alias: Words,
    /// The id of the server in the catalog.
    pub server: Words,
    /// The description of the server.
    pub about: Words,
    /// The name of the hidden field with the server.
    pub reference: String,
    /// The id of the server as that field sends it.
    pub id_of_server: String,
    /// The fields of the attachment.
    pub fields: Vec<Field>,
    /// True if it was added and is not saved yet.
    pub is_new: bool,
}

/// A source of values.
#[derive(Debug, Clone)]
pub struct Source {
    /// The text to write.
    pub text: Words,
    /// The value that takes its place.
    pub about: Words,
}

/// The inputs of a run.
#[derive(Debug, Clone)]
pub struct RunForm {
    /// The fields.
    pub fields: Vec<Field>,
    /// True if the human may see the effective configuration.
    pub has_preview: bool,
    /// The path that starts a run.
    pub start: String,
    /// The reason why no run can be started.
    pub off: Option<&'static str>,
}

/// The question before a deletion.
#[derive(Debug, Clone)]
pub struct Delete {
    /// The path that the form is sent to.
    pub path: String,
    /// The places that would break.
    pub breaks: Vec<Words>,
    /// True if it can be deleted only with what it breaks.
    pub is_forced: bool,
}

/// The configuration of an agent with all levels merged.
#[derive(Debug, Clone, Template)]
#[template(path = "parts/effective.html")]
pub struct Effective {
    /// The sentence under the heading.
    pub sentence: Words,
    /// The servers.
    pub servers: Vec<EffectiveServer>,
    /// Faults that belong to no server.
    pub faults: Vec<Words>,
    /// The result of a run on trial, in words.
    pub run: Option<Words>,
    /// The faults of a run on trial.
    pub run_faults: Vec<Words>,
}

/// A server of the effective configuration.
#[derive(Debug, Clone)]
pub struct EffectiveServer {
    /// The alias.
    pub alias: Words,
    /// The id of the server, its transport and its way of authentication.
    pub about: Words,
    /// The keys.
    pub keys: Vec<EffectiveKey>,
    /// The faults, for which runs are refused.
    pub faults: Vec<Words>,
    /// The warnings.
    pub warnings: Vec<Words>,
}

/// A key of the effective configuration.
#[derive(Debug, Clone)]
pub struct EffectiveKey {
    /// The name.
    pub name: Words,
    /// The value in pieces.
    pub value: Vec<Piece>,
    /// True if the level removes the key.
    pub is_removed: bool,
    /// The level that gives the value.
    pub from: Words,
    /// The header or the variable in which it travels.
    pub carrier: Option<Words>,
    /// The values that it overrides, with their levels.
    pub losers: Vec<Origin>,
    /// The capabilities that give different values.
    pub conflicts: Vec<Origin>,
    /// The value in the run on trial, or the reason why it has none.
    pub in_run: Option<Words>,
}

/// A piece of a value.
#[derive(Debug, Clone)]
pub struct Piece {
    /// The text.
    pub text: Words,
    /// True for a placeholder or a reference to a secret.
    pub is_source: bool,
}

impl Effective {
    /// A part without a configuration, for a reason.
    #[must_use]
    pub fn absent(sentence: &str) -> Self {
        Self {
            sentence: Words::new(sentence),
            servers: Vec::new(),
            faults: Vec::new(),
            run: None,
            run_faults: Vec::new(),
        }
    }
}

impl RunForm {
    /// The button that starts a run; it has a path of its own within the form.
    #[must_use]
    pub fn button(&self) -> Action {
        let hint = "it uses what is stored";
        let action = Action::new(self.start.clone(), "Start a run", hint);
        match self.off {
            Some(why) => action.off(why),
            None => action,
        }
    }
}
