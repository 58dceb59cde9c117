//! The roles of members and of services, as boxes with the rights of each.

use narthex_console::{
    pages::settings::Group,
    parts::{
        Words,
        form::{Field, Input},
    },
};
use narthex_model::{Role, Roles};

use super::faults::Faults;
use crate::console::sent::Sent;

/// The name of a role's box.
fn name(role: Role) -> String {
    format!("role_{role}")
}

/// True for the name of a box.
pub(super) fn is_box(field: &str) -> bool {
    Role::ALL.into_iter().any(|role| name(role) == field)
}

/// The rights of a role in one sentence.
pub(super) fn rights(role: Role) -> &'static str {
    match role {
        Role::Admin => {
            "everything in the workspace, also servers with a command, which run as the daemon's \
             user"
        }
        Role::Author => {
            "writes capabilities and agents, checks and previews them, and sees which secrets are \
             set"
        }
        Role::Runner => "creates, sees, claims and ends runs, and reads agents without values",
        Role::Auditor => {
            "reads the audit with the contents of calls, runs and rights, and changes nothing"
        }
    }
}

/// The boxes of a form.
pub(super) fn group(chosen: &Roles, faults: &Faults) -> Group {
    let field = |role: Role| {
        let input = Input::Check { is_on: chosen.contains(&role) };
        Field::new(name(role), role.as_str(), input).help(rights(role))
    };
    Group {
        legend: Some("Roles"),
        fault: faults.at("roles").as_deref().map(Words::new),
        fields: Role::ALL.map(field).to_vec(),
    }
}

/// The roles whose boxes are checked.
pub(super) fn sent(sent: &Sent) -> Roles {
    Role::ALL.into_iter().filter(|role| sent.is_on(&name(*role))).collect()
}

/// The roles in words.
pub(super) fn words(roles: Option<&Roles>) -> String {
    let all: Vec<_> = roles.into_iter().flatten().map(|role| role.as_str()).collect();
    match all.is_empty() {
        true => "no role".to_owned(),
        false => all.join(", "),
    }
}
