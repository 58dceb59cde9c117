//! The text of units and property lists, for each manager.

use std::{num::NonZeroU16, path::Path};

use super::{
    manager::Manager,
    plist,
    spec::{LISTEN, Spec, address, utf8},
    unit,
};
use crate::Failure;

/// The text of the unit or property list for a manager.
///
/// # Errors
/// When a path or a variable has a character that such a file cannot hold.
pub fn text(spec: &Spec, manager: Manager) -> Result<String, Failure> {
    let variables = spec.environment.iter().map(|(_, value)| &**value);
    let words = spec.words();
    for value in words.iter().map(|word| &**word).chain([&*spec.folder]).chain(variables) {
        if value.contains(char::is_control) {
            let text = format!(
                "{value:?} has a control character, which the file of a service cannot hold; \
                 choose a path without one"
            );
            return Err(Failure::usage(text));
        }
    }
    Ok(match manager {
        Manager::SystemdUser => unit::user(spec),
        Manager::SystemdSystem => unit::system(spec),
        Manager::Launchd => plist::agent(spec),
    })
}

/// True if the text of a unit or property list starts a daemon with this data directory.
#[must_use]
pub fn is_about(text: &str, manager: Manager, data: &Path) -> bool {
    let Ok(data) = utf8(data) else { return false };
    let pair = match manager {
        Manager::SystemdUser | Manager::SystemdSystem => {
            format!(" {} {}", unit::word("--data"), unit::word(&data))
        }
        Manager::Launchd => plist::strings(&["--data", &data]),
    };
    text.contains(&pair)
}

/// The port in the text of a unit that [`Spec`] has written with one.
#[must_use]
pub fn port_in(text: &str) -> Option<NonZeroU16> {
    let (_, rest) = text.split_once(&format!("{} \"127.0.0.1:", unit::word(LISTEN)))?;
    rest.split_once('"')?.0.parse().ok()
}

/// The text of a unit with another port in place of its own.
#[must_use]
pub fn with_port(text: &str, port: NonZeroU16) -> String {
    let pair = |port| format!("{} {}", unit::word(LISTEN), unit::word(&address(port)));
    match port_in(text) {
        Some(old) => text.replace(&pair(old), &pair(port)),
        None => text.to_owned(),
    }
}
