//! Members that an entry of the built-in server must not have.

use super::{SCOPES, ServerEntry, Shape};
use crate::{
    reader::{Object, Reader},
    resolved::BUILT_IN_URL,
    template::Source,
};

/// The reason why gates, patterns and limits of an entry or an attachment would reach no call.
pub(crate) const MESSAGE: &str = "the built-in server runs inside narthex, and this setting does \
                                  not apply to calls of its tools";
/// The remedy.
pub(crate) const REMEDY: &str = "leave it out, and write a rule of the workspace such as \
                                 `forbid(principal, action, resource == \
                                 Tool::\"narthex/spawn_session\");`";

impl ServerEntry {
    /// True if this is the built-in server: only that server has its URL (O28).
    #[must_use]
    pub fn is_built_in(&self) -> bool {
        let whole = match &self.shape {
            Shape::Http(http) | Shape::Sse(http) => http.url.whole(),
            Shape::Stdio(_) => None,
        };
        whole.is_some_and(|at| at.source == Source::Runner && at.key == BUILT_IN_URL)
    }
}

/// Refuses gates, patterns and limits that would have no effect.
pub(super) fn check(entry: &ServerEntry, reader: &mut Reader, object: &Object<'_>) {
    if !entry.is_built_in() {
        return;
    }
    for key in ["tools", "resources", "prompts", "limits"] {
        if object.get(key).is_some() {
            reader.invalid(&object.at.key(key), MESSAGE, REMEDY);
        }
    }
    let at = match object.get("manifest") {
        Some(_) => object.at.key("manifest"),
        None => object.at.clone(),
    };
    let scopes = [&entry.tool_scopes, &entry.resource_scopes, &entry.prompt_scopes];
    for (key, _) in SCOPES.into_iter().zip(scopes).filter(|(_, scopes)| !scopes.is_empty()) {
        reader.invalid(&at.key(key), MESSAGE, REMEDY);
    }
}
