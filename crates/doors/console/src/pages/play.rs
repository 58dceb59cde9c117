//! The playground: a call of a tool with a form from its schema, and the answer as it came.

use askama::Template;

use crate::{
    Frame, filters,
    parts::{Words, form::Field},
};

/// The page.
#[derive(Debug, Template)]
#[template(path = "play.html")]
pub struct PlayPage {
    /// The frame.
    pub frame: Frame,
    /// The path of this page.
    pub path: String,
    /// The path that the call is sent to.
    pub action: String,
    /// The choice of the caller, the server and the tool.
    pub choices: Vec<Field>,
    /// The reason why there is nothing to choose, or to call.
    pub note: Option<Words>,
    /// The tool, once it is chosen.
    pub form: Option<CallForm>,
    /// The answer to the last call.
    pub answer: Option<CallAnswer>,
}

/// The form of a call.
#[derive(Debug, Clone)]
pub struct CallForm {
    /// The tool, by the server's own name.
    pub tool: Words,
    /// The description, which is text of the server.
    pub description: Words,
    /// The hints of the server about the tool, in words.
    pub hints: Vec<&'static str>,
    /// The tool scopes that it requires.
    pub scopes: Vec<Words>,
    /// The caller in words.
    pub caller: Words,
    /// The values that the form repeats, by name.
    pub kept: Vec<Kept>,
    /// The fields of the arguments.
    pub fields: Vec<Field>,
    /// The remark about arguments that have no field.
    pub remark: Option<&'static str>,
    /// The arguments as JSON.
    pub json: Field,
    /// The parameters of the agent, for a caller that is one.
    pub params: Option<Field>,
    /// The schema of the arguments; `None` if it is unknown.
    pub schema: Option<String>,
    /// The same call as a command; `None` if no command makes it.
    pub command: Option<String>,
    /// The same call as a request.
    pub request: String,
}

/// A value that a form repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The name of the field.
    pub name: &'static str,
    /// The value.
    pub value: String,
}

/// The question before a call of a tool that may destroy something.
#[derive(Debug, Template)]
#[template(path = "play_ask.html")]
pub struct PlayAskPage {
    /// The frame.
    pub frame: Frame,
    /// The path that both forms are sent to.
    pub action: String,
    /// The tool.
    pub tool: Words,
    /// The server.
    pub server: Words,
    /// The caller in words.
    pub caller: Words,
    /// The arguments.
    pub arguments: String,
    /// The values of both forms, by name.
    pub kept: Vec<Kept>,
}

/// The answer to a call.
#[derive(Debug, Clone)]
pub struct CallAnswer {
    /// The result in words.
    pub verdict: &'static str,
    /// True if the call did not do what was asked.
    pub is_failure: bool,
    /// The kind of the failure.
    pub kind: Option<&'static str>,
    /// The kind in words.
    pub explained: Option<&'static str>,
    /// The text of a failed answer.
    pub said: Option<Words>,
    /// The path of the run's page; `None` for a human who may not see it.
    pub run: Option<String>,
    /// Facts: what was measured, and the decision.
    pub facts: Vec<Fact>,
    /// The request as it was sent.
    pub request: String,
    /// The answer as it came.
    pub text: String,
    /// True if a part of the answer is left out.
    pub is_cut: bool,
}

/// A fact about a call.
#[derive(Debug, Clone)]
pub struct Fact {
    /// The name of the fact.
    pub name: &'static str,
    /// The value.
    pub value: Words,
}
