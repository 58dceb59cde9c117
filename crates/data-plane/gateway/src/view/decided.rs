//! The one table of the objects inside of `params` that decisions read.
//!
//! A decision must be made on the same values that the server reads (S12). So each of these objects
//! has no key twice, no key that a lenient reader takes for a decided one, and members of the types
//! that the protocol names. [`narthex_wire::Message::parse`] checks the envelope and the names in
//! `params` and `_meta` likewise.

use narthex_model::imitates;
use narthex_wire::{
    Message, Raw,
    json::{JsonError, Scanner, decode_string, key_is},
    meta_key, method,
    notification::Filter,
};

use crate::view::Handling;

/// The longest key that a fault names, in characters.
const SHOWN_MAX: usize = 100;

/// A row of the table: a member of `params`, and the members in it that decisions read.
struct Row {
    /// The handling of the requests that have the member; `None` for all requests.
    handling: Option<Handling>,
    member: &'static str,
    kind: Type,
    is_needed: bool,
}

/// A name in an object, and the type of its value.
type Field = (&'static str, Type);

/// The type of a decided member. `null` counts as absent, but for a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    Flag,
    Text,
    Texts,
    /// A text, or an integer.
    Token,
    /// Anything.
    Any,
    /// An object with these members among others.
    Object(&'static [Field]),
    /// An object of objects, by names of the sender's own.
    Objects,
}

const NOTIFICATIONS: &[Field] = &filter_fields();
const REFERENCE: &[Field] = &[("type", Type::Text), ("name", Type::Text), ("uri", Type::Text)];
const CAPABILITIES: &[Field] = &[
    ("elicitation", Type::Object(&[("form", Type::Object(&[])), ("url", Type::Object(&[]))])),
    ("extensions", Type::Object(&[(meta_key::TASKS_EXTENSION, Type::Object(&[]))])),
    ("roots", Type::Object(&[])),
    ("sampling", Type::Object(&[("context", Type::Object(&[])), ("tools", Type::Object(&[]))])),
    ("tasks", Type::Object(&[])),
];
/// Members of `_meta`. No name here may be missing in the names that `Message::parse` guards.
const META: &[Field] = &[
    (meta_key::PROTOCOL_VERSION, Type::Text),
    (meta_key::CLIENT_CAPABILITIES, Type::Object(CAPABILITIES)),
    (meta_key::LOG_LEVEL, Type::Text),
    (meta_key::PROGRESS_TOKEN, Type::Token),
    (meta_key::RELATED_TASK, Type::Object(&[("taskId", Type::Text)])),
];

const ROWS: &[Row] = &[
    Row {
        handling: Some(Handling::Listen),
        member: "notifications",
        kind: Type::Object(NOTIFICATIONS),
        is_needed: true,
    },
    Row {
        handling: Some(Handling::Complete),
        member: "ref",
        kind: Type::Object(REFERENCE),
        is_needed: true,
    },
    Row { handling: None, member: "inputResponses", kind: Type::Objects, is_needed: false },
];

/// The members of a listener's filter, of the table of notifications.
const fn filter_fields() -> [Field; Filter::ALL.len()] {
    let mut fields = [("", Type::Any); Filter::ALL.len()];
    let mut at = 0;
    while at < fields.len() {
        fields[at] = match Filter::ALL[at] {
            Filter::Flag(member) => (member, Type::Flag),
            Filter::Names(member) => (member, Type::Texts),
        };
        at += 1;
    }
    fields
}

/// Parameters of servers' questions to clients.
const QUESTION: &[Field] =
    &[("mode", Type::Text), ("url", Type::Text), ("tools", Type::Any), ("toolChoice", Type::Any)];

/// A question in a server's answer.
const ENTRY: &[Field] = &[("method", Type::Text), ("params", Type::Any)];

/// The reason why policy cannot decide on parameters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Undecidable {
    /// A member is not of its type.
    #[error("`params.{field}` must be {wanted}")]
    Type {
        /// The member's path below `params`.
        field: String,
        /// The type that the member must have.
        wanted: &'static str,
    },
    /// An object has a key twice, or a key with NUL in it.
    #[error("`params.{0}` has a key twice, or one with NUL in it; write each key once")]
    Twice(String),
    /// A key can be read as another key.
    #[error("`params{within}` has the key `{key}`, which can be read as `{name}`; write `{name}`")]
    Imitation {
        /// The path of the object: empty for `params` itself, else with a dot before it.
        within: String,
        /// The key.
        key: String,
        /// The name that the key can be read as.
        name: &'static str,
    },
}

impl Undecidable {
    /// The fault with its path below `member`, of an object that is a member of another.
    fn below(self, member: &str) -> Self {
        match self {
            Self::Type { field, wanted } => {
                let field = [member, &field].join(if field.is_empty() { "" } else { "." });
                Self::Type { field, wanted }
            }
            Self::Twice(path) => {
                Self::Twice([member, &path].join(if path.is_empty() { "" } else { "." }))
            }
            Self::Imitation { within, key, name } => {
                Self::Imitation { within: format!(".{member}{within}"), key, name }
            }
        }
    }
}

impl Type {
    fn wanted(self) -> &'static str {
        match self {
            Self::Flag => "true or false",
            Self::Text => "a string",
            Self::Texts => "a list of strings",
            Self::Token => "a string or an integer",
            Self::Any => "JSON",
            Self::Object(_) => "an object",
            Self::Objects => "an object of objects",
        }
    }

    /// Checks a value; a fault names the path below it.
    fn check(self, value: Raw<'_>) -> Result<(), Undecidable> {
        let is_of_type = match self {
            Self::Token => value.is_token(),
            _ if value.as_bytes() == b"null" => true,
            Self::Flag => value.as_bool().is_some(),
            Self::Text => value.as_str().is_some(),
            Self::Texts => are_texts(value),
            Self::Any => true,
            // Most clients declare no capability, in an empty object.
            Self::Object(_) | Self::Objects if value.as_bytes() == b"{}" => true,
            Self::Object(fields) if value.is_object() => return check_object(value, fields),
            Self::Objects if value.is_object() => return check_objects(value),
            Self::Object(_) | Self::Objects => false,
        };
        is_of_type.then_some(()).ok_or_else(|| self.fault())
    }

    fn fault(self) -> Undecidable {
        Undecidable::Type { field: String::new(), wanted: self.wanted() }
    }
}

fn are_texts(value: Raw<'_>) -> bool {
    let mut are_texts = true;
    let text = value.as_bytes();
    let array =
        Scanner::new(text, 0, 0).array(|span| are_texts &= decode_string(span.of(text)).is_some());
    array.is_ok() && are_texts
}

/// Refuses parameters whose meaning for a decision may differ from that for a server.
///
/// # Errors
/// Names the member of `params` at fault.
pub(crate) fn check_decided(handling: Handling, request: &Message) -> Result<(), Undecidable> {
    check_meta(request).map_err(|fault| fault.below("_meta"))?;
    let rows = ROWS.iter().filter(|row| row.handling.is_none_or(|of| of == handling));
    for row in rows {
        if row.is_needed {
            check_imitated(request, row.member)?;
        }
        match request.get(row.member) {
            None if row.is_needed => return Err(row.kind.fault().below(row.member)),
            Some(value) if row.is_needed && !value.is_object() => {
                return Err(row.kind.fault().below(row.member));
            }
            None => {}
            Some(value) => row.kind.check(value).map_err(|fault| fault.below(row.member))?,
        }
    }
    Ok(())
}

/// Refuses capabilities of a client whose meaning for a decision may differ from that for a
/// server, as [`check_decided`] does those in `_meta`.
///
/// # Errors
/// Names the member at fault.
pub(crate) fn check_capabilities(capabilities: Raw<'_>) -> Result<(), Undecidable> {
    Type::Object(CAPABILITIES).check(capabilities).map_err(|fault| fault.below("capabilities"))
}

/// Refuses a question of a server whose meaning for a decision may differ from that for its client.
///
/// # Errors
/// Names the member of `params` at fault.
pub(crate) fn check_question(question: &Message) -> Result<(), Undecidable> {
    check_question_of(question.method(), question.body_raw())
}

/// As [`check_question`], for all questions in the answer of a server.
///
/// # Errors
/// Names the member at fault, below `params` of its question.
pub(crate) fn check_questions(answer: &Message) -> Result<(), Undecidable> {
    let all = answer.get("inputRequests").filter(|all| all.as_bytes() != b"null");
    for (key, entry) in all.map(members).transpose()?.unwrap_or_default() {
        let below = |fault: Undecidable| fault.below(&shown(&key));
        Type::Object(ENTRY).check(entry).map_err(below)?;
        let method = entry.get("method").and_then(Raw::as_str).unwrap_or_default();
        check_question_of(&method, entry.get("params")).map_err(below)?;
    }
    Ok(())
}

fn check_question_of(method: &str, params: Option<Raw<'_>>) -> Result<(), Undecidable> {
    let is_read = matches!(method, method::ELICITATION_CREATE | method::SAMPLING_CREATE_MESSAGE);
    match params.filter(|_| is_read) {
        Some(params) => Type::Object(QUESTION).check(params),
        None => Ok(()),
    }
}

/// Checks the members of `_meta`; its keys are unambiguous by then.
fn check_meta(request: &Message) -> Result<(), Undecidable> {
    let text = request.bytes();
    for member in request.meta().iter().flat_map(|meta| &meta.members) {
        let key = member.key.of(text);
        if let Some((name, kind)) = META.iter().find(|(name, _)| key_is(key, name)) {
            kind.check(Raw::new(member.value.of(text))).map_err(|fault| fault.below(name))?;
        }
    }
    Ok(())
}

/// Refuses a key of `params` that can be read as this one.
fn check_imitated(request: &Message, name: &'static str) -> Result<(), Undecidable> {
    let Some(body) = request.body() else { return Ok(()) };
    let text = request.bytes();
    let mut keys = body.members.iter().filter_map(|one| decode_string(one.key.of(text)));
    keys.find(|key| imitates(key, name)).map_or(Ok(()), |key| Err(imitation(&key, name)))
}

fn check_object(object: Raw<'_>, fields: &'static [Field]) -> Result<(), Undecidable> {
    for (key, value) in members(object)? {
        match fields.iter().find(|(name, _)| key == *name) {
            Some((name, kind)) => kind.check(value).map_err(|fault| fault.below(name))?,
            None => {
                if let Some((name, _)) = fields.iter().find(|(name, _)| imitates(&key, name)) {
                    return Err(imitation(&key, name));
                }
            }
        }
    }
    Ok(())
}

fn check_objects(object: Raw<'_>) -> Result<(), Undecidable> {
    for (key, value) in members(object)? {
        if !value.is_object() {
            return Err(Type::Object(&[]).fault().below(&shown(&key)));
        }
    }
    Ok(())
}

fn members(object: Raw<'_>) -> Result<Vec<(std::borrow::Cow<'_, str>, Raw<'_>)>, Undecidable> {
    object.members().map_err(|error| match error {
        JsonError::DuplicateKey { .. } | JsonError::DeceptiveKey { .. } => {
            Undecidable::Twice(String::new())
        }
        _ => Type::Object(&[]).fault(),
    })
}

fn imitation(key: &str, name: &'static str) -> Undecidable {
    Undecidable::Imitation { within: String::new(), key: shown(key), name }
}

/// A key of a client or server, shortened for an error.
fn shown(key: &str) -> String {
    key.chars().take(SHOWN_MAX).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests;
