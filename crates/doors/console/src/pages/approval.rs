//! The page of one request of an agent, on which a human decides it.

use askama::Template;

use super::approvals::Outcome;
use crate::{
    Frame, filters,
    parts::{Moment, Words, form::Field},
};

/// The page.
#[derive(Debug, Template)]
#[template(path = "approval.html")]
pub struct ApprovalPage {
    /// The frame.
    pub frame: Frame,
    /// The facts of the request.
    pub request: Asked,
    /// The decision; `None` while the request waits.
    pub outcome: Option<Outcome>,
    /// The grant of an approval.
    pub grant: Option<GrantLink>,
    /// Shown to a human whose sign-in proves no human.
    pub proof: Option<Proof>,
    /// The forms; `None` if no decision is due, or this human may not make it.
    pub forms: Option<Forms>,
    /// The reason why there are no forms for a request that waits.
    pub no_forms: Option<&'static str>,
    /// The calls of the run; `None` for a human who may not read the audit.
    pub calls: Option<Calls>,
    /// Earlier requests of the same agent that are closed.
    pub earlier: Vec<Earlier>,
    /// The page to go back to.
    pub back: String,
}

/// The facts of a request.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The agent, the run, and the requested permission.
    pub facts: Vec<Fact>,
    /// The exact arguments to which the grant would be limited.
    pub arguments: Option<Arguments>,
    /// The reason in the words of the agent.
    pub reason: Words,
    /// A probable mistake in the request.
    pub warning: Option<Words>,
    /// The time of the request.
    pub since: Moment,
    /// The time until which it waits.
    pub until: Moment,
}

/// A fact with its name.
#[derive(Debug, Clone)]
pub struct Fact {
    /// The name.
    pub name: &'static str,
    /// The value.
    pub value: Words,
    /// The page of the value.
    pub href: Option<String>,
}

/// The exact arguments of a request.
#[derive(Debug, Clone)]
pub struct Arguments {
    /// The arguments in canonical JSON, as far as they are stored; empty if they are not.
    pub text: Words,
    /// True if the text has all of them.
    pub is_whole: bool,
    /// The digest, which covers all of them.
    pub digest: Words,
}

/// The grant that an approval has created.
#[derive(Debug, Clone)]
pub struct GrantLink {
    /// The path of its page.
    pub href: String,
    /// The number of uses, or the time.
    pub lasts: Words,
    /// The time at which it ends in any case.
    pub ends: Option<Moment>,
    /// The proof that the approver was a human, in words.
    pub proof: &'static str,
}

/// The proof that an approval needs, or would have.
#[derive(Debug, Clone)]
pub struct Proof {
    /// The state, and the way to a proof.
    pub sentence: &'static str,
    /// The page that leads there.
    pub link: Option<ProofLink>,
}

/// A link to a page by which a human proves to be one.
#[derive(Debug, Clone)]
pub struct ProofLink {
    /// The path.
    pub href: String,
    /// The words.
    pub label: &'static str,
}

/// The forms of a decision. Each has the token for one answer.
#[derive(Debug, Clone)]
pub struct Forms {
    /// The path that the forms are sent to.
    pub path: String,
    /// The token for one answer, by the login session to which the page was shown.
    pub consent: String,
    /// The durations, of which none is chosen.
    pub durations: Vec<Lasting>,
    /// The reason why the form was refused.
    pub fault: Option<Words>,
    /// The time at which the grant would end in any case.
    pub within: Field,
    /// The reason of an approval.
    pub reason: Field,
    /// The reason of a denial.
    pub denial: Field,
    /// The reason why an approval is not possible.
    pub off: Option<&'static str>,
}

/// A duration of a grant.
#[derive(Debug, Clone)]
pub struct Lasting {
    /// The word, as in the API.
    pub word: &'static str,
    /// The calls that it would allow.
    pub covers: Words,
    /// True for the duration that the agent asks for.
    pub is_asked: bool,
}

/// The calls of a run.
#[derive(Debug, Clone)]
pub struct Calls {
    /// The last call that was refused before the request.
    pub refused: Option<Call>,
    /// The last calls.
    pub last: Vec<Call>,
    /// The command that lists all.
    pub command: String,
}

/// A call of a tool.
#[derive(Debug, Clone)]
pub struct Call {
    /// The time of its end.
    pub at: Moment,
    /// The tool, with its server.
    pub tool: Words,
    /// The outcome in words.
    pub outcome: Words,
}

/// An earlier request.
#[derive(Debug, Clone)]
pub struct Earlier {
    /// The path of its page.
    pub href: String,
    /// The requested permission.
    pub what: Words,
    /// The status, as in the API.
    pub word: &'static str,
    /// The time of the request.
    pub since: Moment,
}
