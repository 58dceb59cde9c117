//! Servers of the catalog to which humans sign in: the page of each, and the changes after which
//! the sign-in must be prepared.

use narthex_catalog::{Parsed, ServerEntry};
use narthex_model::{ServerId, WorkspaceId};
use narthex_store::CatalogRow;

/// The path of the page on which a human connects their account to a server of the catalog.
#[must_use]
pub fn connection_path(workspace: &WorkspaceId, server: &str) -> String {
    format!("/workspaces/{workspace}/connections/{server}")
}

/// The entry of a changed document, if its sign-in must be prepared: it is enabled, and its address
/// or its authentication is new.
pub(super) fn to_prepare(document: &str, before: Option<&CatalogRow>) -> Option<ServerEntry> {
    let entry = read(document, None)?;
    if !entry.auth.is_per_user() || entry.settings.disabled {
        return None;
    }
    let before = before.and_then(|row| read(&row.document, ServerId::new(&row.id).ok().as_ref()));
    let is_known = before.is_some_and(|before| {
        !before.settings.disabled && before.shape == entry.shape && before.auth == entry.auth
    });
    (!is_known).then_some(entry)
}

fn read(document: &str, id: Option<&ServerId>) -> Option<ServerEntry> {
    let Parsed { value, .. } = ServerEntry::parse(document.as_bytes(), id).ok()?;
    Some(value)
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    fn row(document: &str) -> CatalogRow {
        CatalogRow {
            id: "mail".to_owned(),
            document: document.to_owned(),
            revision: 1,
            created_at: UNIX_EPOCH,
            updated_at: UNIX_EPOCH,
            updated_by: "ada".to_owned(),
        }
    }

    /// X-M13: the authorization server is asked for new addresses and settings of enabled servers
    /// to which humans sign in, and for no other save.
    #[test]
    fn x_m13_only_a_new_sign_in_is_prepared() {
        let entry = r#"{"id":"mail","kind":"remote_oauth","url":"https://mail.example/mcp"}"#;
        let asks = |now: &str, before: Option<&str>| {
            let before = before.map(row);
            to_prepare(now, before.as_ref()).is_some()
        };
        assert!(asks(entry, None));
        assert!(!asks(entry, Some(entry)));
        let other = entry.replace("mail.example", "post.example");
        assert!(asks(&other, Some(entry)));
        let named = entry.replace("\"kind\"", "\"name\":\"Mail\",\"kind\"");
        assert!(!asks(&named, Some(entry)));
        let off = entry.replace("\"kind\"", "\"disabled\":true,\"kind\"");
        assert!(!asks(&off, None));
        assert!(asks(entry, Some(&off)));
        assert!(!asks(r#"{"id":"mail","url":"https://mail.example/mcp"}"#, None));
    }
}
