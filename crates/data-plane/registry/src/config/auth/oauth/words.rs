//! The words of OAuth in an entry's `auth` block.

use crate::config::{
    node::{Node, Place, field, shortened},
    problem::EntryProblem,
    reader::{Fields, Reader},
};

/// The mode with a person.
pub(in crate::config::auth) const AUTHORIZATION_CODE: &str = "authorizationCode";

/// A word of a closed list. It is the word itself, as the mode is; any other value is reported and
/// counts as absent.
pub(super) fn word<T: Copy>(
    reader: &mut Reader<'_>,
    auth: &Fields,
    at: &Place,
    key: &str,
    known: &[(&'static str, T)],
) -> Option<T> {
    let node = field(auth, key)?;
    let place = at.key(key);
    let Node::Text(found) = node else {
        reader.wrong_type(&place, node, "a string");
        return None;
    };
    let same = known.iter().find(|(word, _)| word == found);
    if same.is_none() {
        let known: Vec<_> = known.iter().map(|(word, _)| format!("`{word}`")).collect();
        let (found, known) = (shortened(found), known.join(", "));
        reader.fault(&place, EntryProblem::UnknownChoice { found, known });
    }
    same.map(|(_, value)| *value)
}
