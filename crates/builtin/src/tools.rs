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

use narthex_runs::path_spelling;
use serde_json::{Map, Value, json};

pub(crate) use self::permission::{ASKING, ask};
use crate::Tool;

/// What a model should know of the server.
pub(crate) const INSTRUCTIONS: &str = "\
Tools of the platform that you run on. Tell people how you get on with `emit_status`, show \
results with `emit_artifact`, and ask them with `request_input`: it returns at once, and the \
answer comes later as a message with the same request_id. `read_messages` gives the messages for \
you that your platform has not shown you. A tool that answers \
`permission_required` can be asked for with `request_grant`: a human decides, the outcome comes \
as a message with the same request_id, and the same call succeeds then. You cannot grant anything \
yourself. Show people files with `share`. Agents that you may start are in \
`list_spawnable_agents`; `spawn_session` starts one.";

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

/// By what an agent knows an answer: short enough to be part of a message's id.
const REQUEST_ID: &str = "^[!-~]{1,100}$";

/// Writes the paths among arguments in their one spelling: texts, and lists of texts.
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

/// The schema of an object of these members.
pub(crate) fn object(members: Value, required: &[&str]) -> Value {
    json!({
        "type": "object",
        "properties": members,
        "required": required,
        "additionalProperties": false,
    })
}
