//! The refusals for items that do not exist, or that the caller may not see.

use narthex_model::{Alias, CallErrorKind, for_operators};
use narthex_registry::ServerRow;
use narthex_wire::{json::encode_string, rpc};

use super::Refusal;
use crate::view::Handling;

pub(crate) fn unknown_server(alias: &Alias) -> Refusal {
    let kind = narthex_model::ErrorKind::NotFound;
    Refusal::Kind(kind, format!("there is no server `{alias}` here"))
}

/// Adds the cause to the refusal of an absent tool, if its server cannot list its tools: every tool
/// of that server gets this answer (D5).
pub(crate) fn with_cause(refusal: Refusal, row: &ServerRow) -> Refusal {
    match (refusal, row.inventory.unlisted_tools()) {
        (Refusal::Call(error), Some(cause)) if error.kind == CallErrorKind::ToolNotFound => {
            let (said, name, cause) = (&error.message, &row.name, for_operators(cause));
            let text = format!("{said}: the tools of server `{name}` cannot be listed; {cause}");
            Refusal::call(error.kind, text)
        }
        (refusal, _) => refusal,
    }
}

/// The one answer for an item that does not exist and for one that the caller may not see (D5).
pub(crate) fn not_found(handling: Handling, name: &str) -> Refusal {
    let shown: String = name.chars().take(200).collect();
    match handling {
        Handling::Tool => {
            Refusal::call(CallErrorKind::ToolNotFound, format!("there is no tool `{shown}`"))
        }
        Handling::Resource | Handling::Subscribe { .. } => Refusal::Rpc {
            code: rpc::code::INVALID_PARAMS,
            message: format!("there is no resource `{shown}`"),
            data: Some([br#"{"uri":"#, &encode_string(&shown)[..], b"}"].concat().into()),
        },
        Handling::Prompt | Handling::Complete => {
            Refusal::invalid(format!("there is no prompt `{shown}`"))
        }
        Handling::Task => Refusal::invalid(format!("there is no task `{shown}`")),
        Handling::Ping
        | Handling::Discover
        | Handling::List(_)
        | Handling::SetLevel
        | Handling::Listen
        | Handling::TaskList
        | Handling::Vendor => Refusal::invalid(format!("there is no `{shown}`")),
    }
}
