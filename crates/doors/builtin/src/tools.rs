//! The tools of the platform (X-M2, X-M3).

mod children;
mod costs;
mod handing;
mod inbox;
mod messages;
mod permission;
mod quiet;
mod session;
mod shares;
mod status;
mod wakes;

use narthex_model::BuiltInTools;
use narthex_runs::path_spelling;
use serde_json::{Map, Value, json};

pub(crate) use self::permission::{ASKING, ask};
use crate::Tool;

/// The sentences of the instructions for models. A model reads a sentence if it has all the tools
/// that the sentence names.
const INSTRUCTIONS: [(&[&str], &str); 6] = [
    (&["emit_status"], "Tell people how you get on with `emit_status`."),
    (&["emit_artifact"], "Show people results with `emit_artifact`."),
    (
        &["request_input"],
        "Ask people with `request_input`: it returns at once, and the answer comes later as a \
         message with the same request_id.",
    ),
    (
        &["request_grant"],
        "What answers `permission_required` can be asked for with `request_grant`: a human \
         decides, the outcome comes as a message with the same request_id, and then the same call \
         succeeds. You cannot grant anything yourself.",
    ),
    (&["read_messages"], "`read_messages` gives the messages that you have not been shown."),
    (
        &["list_spawnable_agents", "spawn_session"],
        "`list_spawnable_agents` has the agents that you may start with `spawn_session`.",
    ),
];

/// The instructions for a model that has these tools.
pub(crate) fn instructions(has: &BuiltInTools) -> String {
    let told = INSTRUCTIONS.iter().filter(|(tools, _)| tools.iter().all(|tool| has.has(tool)));
    told.map(|(_, text)| *text).collect::<Vec<_>>().join(" ")
}

/// Resolves an alias of a tool to the tool's name and arguments; `None` for any other name.
pub(crate) fn meant(name: &str, arguments: &[u8]) -> Option<(&'static str, Vec<u8>)> {
    let ruled = BuiltInTools::ruled_name(name)?;
    let arguments = match name {
        children::START_AGENT => children::start_agent_as(arguments),
        _ => arguments.to_vec(),
    };
    Some((ruled, arguments))
}

pub(crate) fn all() -> Vec<Tool> {
    let all = [
        status::tools(),
        shares::tools(),
        messages::tools(),
        inbox::tools(),
        permission::tools(),
        children::tools(),
        handing::tools(),
        costs::tools(),
        session::tools(),
    ];
    all.into_iter().flatten().collect()
}

/// The pattern of a request id, by which an agent recognises the answer. It is short enough to be
/// part of a message's id.
const REQUEST_ID: &str = "^[!-~]{1,100}$";

/// Rewrites paths in these arguments into their one spelling. An argument may be a text or a list
/// of texts.
pub(crate) fn spell_paths(arguments: &mut Map<String, Value>, names: &[&str]) {
    let spell = |value: &mut Value| {
        if let Some(path) = value.as_str().and_then(path_spelling) {
            *value = path.into();
        }
    };
    for name in names {
        match arguments.get_mut(*name) {
            Some(Value::Array(paths)) => paths.iter_mut().for_each(spell),
            Some(path) => spell(path),
            None => {}
        }
    }
}

/// The schema of an object with these members and no others.
pub(crate) fn object(members: Value, required: &[&str]) -> Value {
    json!({
        "type": "object",
        "properties": members,
        "required": required,
        "additionalProperties": false,
    })
}
