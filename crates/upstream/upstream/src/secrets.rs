//! The secrets of a definition: all must be filled in, and none leaves in a message of the server.

use narthex_model::{Secret, ServerDefinition, Target, command::narthex};

use crate::redaction::Redaction;

/// Refuses a definition that names secrets which are not filled in: the server would get the text
/// of the file (D38).
///
/// # Errors
/// The first such secret, with its place and the remedy.
pub(crate) fn are_opened(definition: &ServerDefinition) -> Result<(), String> {
    let Some(named) = definition.unopened_secrets().next() else { return Ok(()) };
    let (set, up) = (narthex("secrets set {}", &[&named.name]), narthex("up", &[]));
    Err(format!(
        "the server needs the secret `{}` (`{}`), and this process has no value of it: set it with \
         `{set}`, and use the daemon (`{up}`)",
        named.name, named.key
    ))
}

/// Removes the secrets of a definition from texts, and the tokens of its credential if that
/// `changes`.
pub(crate) fn redaction(definition: &ServerDefinition, changes: bool) -> Redaction {
    let mut secrets = definition.secrets();
    if let Target::Http(_) = &definition.target {
        secrets.extend(definition.filled_in.iter().flat_map(as_in_addresses));
    }
    Redaction::new(secrets, changes)
}

/// Spellings of a secret in parts of a URL: hosts have small letters, paths are escaped.
fn as_in_addresses(secret: &Secret) -> Vec<Secret> {
    let mut spellings = vec![Secret::new(secret.expose().to_ascii_lowercase())];
    if let Ok(mut url) = url::Url::parse("http://host") {
        url.set_path(secret.expose());
        spellings.push(Secret::new(url.path().trim_start_matches('/')));
    }
    spellings
}
