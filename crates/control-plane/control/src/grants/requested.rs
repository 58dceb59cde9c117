//! The requested grant: its fields, and all of their faults (X-E71 to X-E74).

use std::{fmt::Display, time::SystemTime};

use narthex_catalog::fields::Fields;
use narthex_model::{
    AgentName, Alias, ArgumentsDigest, BuiltInTools, CatalogKind, Grant, GrantDuration, GrantId,
    GrantOf, GrantSubject, RunId, SessionId, SpawnGrant, Timestamp, ToolScope, ToolScopeGrant,
    UnknownKey, WorkspaceId,
    json::{Node, field, shortened},
};
use narthex_policy::{canonical, digest_of};
use narthex_store::Store;
use narthex_wire::Raw;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::RequestOf;
use crate::{CatalogError, Control, ControlError, FieldCode, FieldError};

const FIELDS: [&str; 9] = [
    "grant_type",
    "details",
    "scope",
    "session_id",
    "run_id",
    "expires_at",
    "reason",
    "user_subject_id",
    "agent_subject_id",
];
const ONE_SUBJECT: &str = "exactly_one_of_user_subject_id_or_agent_subject_id";
/// The code of a field that its type of grant does not have, or that has the wrong form (X-E72).
const SHAPE: &str = "invalid_grant_shape";

/// The longest name of a tool, a prompt or a resource, in bytes: a URI may be long.
const TOOL_MAX: usize = 4096;
/// The most texts of a list, and the longest of them, in bytes: together with the other fields they
/// have to fit in one event.
const TEXTS_MAX: usize = 100;
const TEXT_MAX: usize = 200;

/// The fields of a document, before referenced objects are looked up.
pub(super) struct RequestedGrant {
    of: GrantOf,
    duration: GrantDuration,
    user: Option<String>,
    agent: Option<AgentName>,
    expires_at: Option<SystemTime>,
    reason: String,
}

/// Length of exact arguments in outputs for people, in characters.
const ARGUMENTS_SHOWN: usize = 3_500;

/// Exact arguments as they were written: numbers must not be rounded before they are digested.
#[derive(Deserialize)]
struct Exact {
    details: ExactDetails,
}

#[derive(Deserialize)]
struct ExactDetails {
    arguments: Box<RawValue>,
}

pub(super) fn fault(field: &str, code: &'static str, message: &str, remedy: &str) -> FieldError {
    FieldError {
        field: field.to_owned(),
        code: FieldCode::Own(code),
        message: message.to_owned(),
        remedy: remedy.to_owned(),
    }
}

/// Reads a document.
pub(super) fn read(text: &[u8]) -> Result<RequestedGrant, CatalogError> {
    let mut fields = Fields::read(text, &FIELDS)?;
    let mut faults = Vec::new();
    let of = read_of(&mut fields, (text, granted_tool), &mut faults);
    let duration = fields.named("scope", known(&GrantDuration::WORDS));
    let (session, run) = (fields.text("session_id"), fields.text("run_id"));
    let duration = duration
        .and_then(|word| read_duration(word, session.as_deref(), run.as_deref(), &mut faults));
    let (user, agent) = (fields.text("user_subject_id"), fields.text("agent_subject_id"));
    if user.is_some() == agent.is_some() {
        let message = "a grant is for one user or for one agent";
        faults.push(fault("user_subject_id", ONE_SUBJECT, message, "keep one of the two"));
    }
    let agent = agent.map(|name| AgentName::new(&name));
    if let Some(Err(error)) = &agent {
        faults.push(FieldError::invalid("agent_subject_id", error.to_string(), "name an agent"));
    }
    let expires_at = read_end(&mut fields, &mut faults);
    let reason = fields.text("reason").unwrap_or_default();
    fields.done_with(faults)?;
    let missing = "what is missing is a fault";
    Ok(RequestedGrant {
        of: of.expect(missing),
        duration: duration.expect(missing),
        user,
        agent: agent.and_then(Result::ok),
        expires_at,
        reason,
    })
}

/// The time at which a grant ends in any case, read from `expires_at`.
pub(super) fn read_end(fields: &mut Fields, faults: &mut Vec<FieldError>) -> Option<SystemTime> {
    let end = Timestamp::parse(&fields.text("expires_at")?);
    if end.is_none_or(|end| end <= SystemTime::now()) {
        let remedy = "write a future time, such as 2027-01-31T12:00:00Z";
        faults.push(FieldError::invalid("expires_at", "it is not a time in the future", remedy));
    }
    end
}

/// The rule for the name of a tool; the flag is true for the built-in server.
type ToolRule = fn(&str, bool) -> Result<String, String>;

/// The object of the grant, read from `grant_type` and `details`.
fn read_of(
    fields: &mut Fields,
    text: (&[u8], ToolRule),
    faults: &mut Vec<FieldError>,
) -> Option<GrantOf> {
    let word = fields.named("grant_type", known(&GrantOf::WORDS));
    let details = fields.take("details");
    word.and_then(|word| match &details {
        Some(Node::Object(details)) => read_details(word, details, text, faults),
        _ => {
            let remedy = "write an object, such as {\"scope\": \"linear.write\"}";
            faults.push(fault("details", SHAPE, "it is missing, or not an object", remedy));
            None
        }
    })
}

/// Returns a reader that accepts one of these words.
fn known(words: &'static [&'static str]) -> impl FnOnce(&str) -> Result<&'static str, String> {
    let unknown = format!("it is not one of {}", words.join(", "));
    move |text: &str| words.iter().copied().find(|word| *word == text).ok_or(unknown)
}

/// Reads the request of a run.
pub(super) fn read_request(text: &[u8]) -> Result<RequestOf, CatalogError> {
    let known_fields = ["request_id", "grant_type", "details", "scope", "justification"];
    let mut fields = Fields::read(text, &known_fields)?;
    let mut faults = Vec::new();
    // The caller knows which tool names the run can see.
    let of = read_of(&mut fields, (text, |tool, _| fitting_tool(tool)), &mut faults);
    let duration = fields.named("scope", known(&GrantDuration::WORDS));
    // A model may write more than the limit of a text field, so longer text is accepted here and
    // shortened later.
    let reason = match fields.take("justification") {
        Some(Node::Text(text)) => text.to_string(),
        Some(_) | None => String::new(),
    };
    let asked_as = fields.text("request_id").unwrap_or_default();
    fields.done_with(faults)?;
    let missing = "what is missing is a fault";
    let (of, duration) = (of.expect(missing), duration.expect(missing));
    let arguments = shown_arguments(text).unwrap_or_default();
    Ok(RequestOf { asked_as, of, arguments, duration, reason })
}

/// The exact arguments for people: the text whose digest is stored, shortened if it is too long.
fn shown_arguments(text: &[u8]) -> Option<String> {
    let exact: Exact = serde_json::from_slice(text).ok()?;
    let written = exact.details.arguments.get().as_bytes();
    let whole = String::from_utf8(canonical(Some(Raw::new(written)))?).ok()?;
    Some(match whole.char_indices().nth(ARGUMENTS_SHOWN) {
        Some((end, _)) => format!("{} … ({} bytes in all)", &whole[..end], whole.len()),
        None => whole,
    })
}

fn read_details(
    word: &str,
    details: &[(String, Node)],
    (text, tool_rule): (&[u8], ToolRule),
    faults: &mut Vec<FieldError>,
) -> Option<GrantOf> {
    let [tool_scope, _spawn] = GrantOf::WORDS;
    let known: &[&str] = match word == tool_scope {
        true => &["scope", "server", "tool", "arguments", "arguments_digest"],
        false => &["child_agent_id", "allowed_runtime_types", "allowed_models"],
    };
    let before = faults.len();
    for (name, _) in details.iter().filter(|(name, _)| !known.contains(&name.as_str())) {
        let unknown = UnknownKey::new(name, known);
        let place = format!("details.{}", shortened(name));
        faults.push(fault(&place, SHAPE, &unknown.message(), &unknown.remedy()));
    }
    let mut details = Details { details, faults };
    let of = match word == tool_scope {
        true => {
            let scope = details.needed("scope", ToolScope::new);
            let server = details.maybe("server", Alias::new);
            let is_built_in = server.as_ref().is_some_and(Alias::is_built_in);
            let tool = details.maybe("tool", |text| tool_rule(text, is_built_in));
            let arguments = details.arguments(text);
            scope.map(|scope| GrantOf::ToolScope(ToolScopeGrant { scope, server, tool, arguments }))
        }
        false => {
            let child_agent = details.needed("child_agent_id", AgentName::new);
            let allowed_runtime_types = details.list("allowed_runtime_types");
            let allowed_models = details.list("allowed_models");
            child_agent.map(|child_agent| {
                GrantOf::Spawn(SpawnGrant { child_agent, allowed_runtime_types, allowed_models })
            })
        }
    };
    of.filter(|_| faults.len() == before)
}

fn fitting_tool(text: &str) -> Result<String, String> {
    match text.len() > TOOL_MAX {
        true => Err(format!("it is longer than {TOOL_MAX} bytes")),
        false => Ok(text.to_owned()),
    }
}

/// Checks the name of a tool in a grant: calls must be able to use this name.
fn granted_tool(text: &str, is_built_in: bool) -> Result<String, String> {
    match BuiltInTools::ruled_name(text).filter(|_| is_built_in) {
        Some(ruled) => Err(format!("`{text}` is another name of `{ruled}`, which grants name")),
        None => fitting_tool(text),
    }
}

struct Details<'a> {
    details: &'a [(String, Node)],
    faults: &'a mut Vec<FieldError>,
}

impl Details<'_> {
    fn fault(&mut self, name: &str, message: &str, remedy: &str) {
        self.faults.push(fault(&format!("details.{name}"), SHAPE, message, remedy));
    }

    fn needed<T, E: Display>(
        &mut self,
        name: &str,
        rule: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        if field(self.details, name).is_none() {
            self.fault(name, "it is missing", "give a value");
        }
        self.maybe(name, rule)
    }

    fn maybe<T, E: Display>(
        &mut self,
        name: &str,
        rule: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        let read = match field(self.details, name)? {
            Node::Text(text) => rule(text).map_err(|error| error.to_string()),
            other => Err(format!("it is {}, not text", other.found())),
        };
        read.map_err(|message| self.fault(name, &message, "choose another")).ok()
    }

    fn list(&mut self, name: &str) -> Option<Vec<String>> {
        let is_fit = |text: &str| {
            (1..=TEXT_MAX).contains(&text.len()) && !text.chars().any(char::is_control)
        };
        let text = |node: &Node| match node {
            Node::Text(text) if is_fit(text) => Some(text.clone()),
            _ => None,
        };
        let found = match field(self.details, name)? {
            Node::List(items) if items.len() <= TEXTS_MAX => items.iter().map(text).collect(),
            _ => None,
        };
        if found.is_none() {
            let message = format!("it is not a list of at most {TEXTS_MAX} names");
            let remedy = format!("write a list of names of 1 to {TEXT_MAX} bytes");
            self.fault(name, &message, &remedy);
        }
        found
    }

    /// The digest of exact arguments; only the digest is stored.
    fn arguments(&mut self, text: &[u8]) -> Option<ArgumentsDigest> {
        let digest = self.maybe("arguments_digest", |text| {
            ArgumentsDigest::parse(text).ok_or("it is not `sha256:` and 64 of 0-9 and a-f")
        });
        let Some(arguments) = field(self.details, "arguments") else { return digest };
        if field(self.details, "arguments_digest").is_some() {
            self.fault("arguments", "`arguments_digest` is given as well", "keep one of the two");
            return digest;
        }
        let exact: Option<Exact> = serde_json::from_slice(text).ok();
        let exact = exact.filter(|_| matches!(arguments, Node::Object(_)));
        let digest =
            exact.and_then(|it| digest_of(Some(Raw::new(it.details.arguments.get().as_bytes()))));
        if digest.is_none() {
            let message = "it is not an object, or has a number that programs read differently";
            self.fault("arguments", message, "write the arguments exactly as in the call");
        }
        digest
    }
}

/// The duration of the grant (X-E73).
fn read_duration(
    word: &str,
    session: Option<&str>,
    run: Option<&str>,
    faults: &mut Vec<FieldError>,
) -> Option<GrantDuration> {
    let before = faults.len();
    for (name, is_meant, given, [missing, extra]) in [
        (
            "session",
            word == "session",
            session.is_some(),
            ["session_scope_requires_session_id", "non_session_scope_rejects_session_id"],
        ),
        (
            "run",
            word == "run",
            run.is_some(),
            ["run_scope_requires_run_id", "non_run_scope_rejects_run_id"],
        ),
    ] {
        let place = format!("{name}_id");
        if is_meant && !given {
            faults.push(fault(
                &place,
                missing,
                "it is missing",
                &format!("give the id of the {name}"),
            ));
        }
        if !is_meant && given {
            let message = format!("a grant for `{word}` takes no such id");
            faults.push(fault(&place, extra, &message, "leave it out"));
        }
    }
    if faults.len() > before {
        return None;
    }
    let places = (run.map(RunId::parse), session.map(SessionId::parse));
    if places.0 == Some(None) {
        faults.push(FieldError::invalid(
            "run_id",
            "it is not the id of a run",
            "write an id such as run_0a1b2c3d4e5f",
        ));
    }
    if places.1 == Some(None) {
        faults.push(FieldError::invalid(
            "session_id",
            "it is not the id of a session",
            "write an id such as ses_0a1b2c3d4e5f",
        ));
    }
    GrantDuration::read(word, places.0.flatten(), places.1.flatten())
}

impl Control {
    /// The requested grant and its reason, after a check that all referenced objects exist.
    pub(super) async fn checked(
        &self,
        store: &Store,
        workspace: &WorkspaceId,
        asked: RequestedGrant,
    ) -> Result<(Grant, String), ControlError> {
        let RequestedGrant { of, duration, user, agent, expires_at, reason } = asked;
        let mut faults = Vec::new();
        let mut absent = |place: &str, what: String| {
            faults.push(FieldError::invalid(place, what, "name one of the workspace"));
        };
        let subject = match (user, agent) {
            (Some(user), _) => {
                let found = self.driver(workspace, &user).map(GrantSubject::User);
                found.map_err(|error| (error, self.member_hint(workspace, &user)))
            }
            (None, agent) => {
                let agent = agent.expect("one of both is there");
                self.check_agent(store, workspace, &agent, ("agent_subject_id", &mut absent))
                    .await?;
                Ok(GrantSubject::Agent(agent))
            }
        };
        if let Err((error, meant)) = &subject {
            absent("user_subject_id", format!("{error}{meant}"));
        }
        if let GrantOf::Spawn(spawn) = &of {
            let place = ("details.child_agent_id", &mut absent);
            self.check_agent(store, workspace, &spawn.child_agent, place).await?;
        }
        match duration {
            GrantDuration::Run(id) => {
                let run = store.runs().find(id).await.map_err(ControlError::Store)?;
                if !run.is_some_and(|run| run.workspace == *workspace && run.ended.is_none()) {
                    absent("run_id", "there is no active run with this id".to_owned());
                }
            }
            GrantDuration::Session(id) | GrantDuration::OnceIn(id) => {
                let found = store.sessions().find(workspace, id).await;
                let found = found.map_err(ControlError::Store)?;
                if found.is_none_or(|session| session.ended_at.is_some()) {
                    absent("session_id", "there is no active session with this id".to_owned());
                }
            }
            GrantDuration::Once | GrantDuration::Persistent => {}
        }
        let Ok(subject) = subject else { return Err(CatalogError::Refused(faults).into()) };
        if !faults.is_empty() {
            return Err(CatalogError::Refused(faults).into());
        }
        let of = self.grant_of_models(workspace, of)?;
        let id = GrantId::new(random()?);
        Ok((Grant { id, subject, of, duration, expires_at }, reason))
    }

    async fn check_agent(
        &self,
        store: &Store,
        workspace: &WorkspaceId,
        agent: &AgentName,
        (place, absent): (&str, &mut impl FnMut(&str, String)),
    ) -> Result<(), ControlError> {
        let found = store.catalog(CatalogKind::Agent).find(workspace, agent.as_str()).await;
        if found.map_err(ControlError::Store)?.is_none() {
            absent(place, format!("there is no agent `{agent}`"));
        }
        Ok(())
    }
}

pub(super) fn random() -> Result<[u8; 8], ControlError> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(crate::AccessError::Randomness)?;
    Ok(bytes)
}
