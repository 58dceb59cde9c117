//! Secrets that remain in the vault after their server was removed.

use narthex_model::{Provenance, command::narthex, json::without_comments};
use serde_json::Value;

use crate::{
    Context, Failure,
    daemon_client::{DaemonClient, workspace_path},
    output,
};

/// The workspace whose secrets local files name (D38).
pub(super) const WORKSPACE: &str = "default";

/// The names of secrets that the vault has already.
pub(super) async fn taken(client: &DaemonClient) -> Result<Vec<String>, Failure> {
    let secrets = client.api_all(&workspace_path(WORKSPACE, "/secrets")).await?;
    let set = secrets.iter().filter(|secret| secret["is_set"] == true);
    let names = set.filter_map(|secret| secret["name"].as_str());
    Ok(names.map(str::to_owned).collect())
}

/// The names of secrets that the entry of this server names, in the user's settings on this
/// machine. The API shows no entries.
pub(in crate::commands) async fn named(
    client: &DaemonClient,
    server: &str,
    context: &Context,
) -> Vec<String> {
    // The files of a daemon that is named by its address are elsewhere.
    if context.daemon.daemon_url.is_some() {
        return Vec::new();
    }
    let rows = client.api_all("/api/servers").await.unwrap_or_default();
    let row = rows
        .iter()
        .find(|row| row["name"] == server && row["provenance"] == Provenance::Settings.as_str());
    let file = row.and_then(|row| row["file"].as_str());
    let text = file.and_then(|file| fs_err::read(file).ok()).unwrap_or_default();
    let document: Value = serde_json::from_slice(&without_comments(&text)).unwrap_or_default();
    references(&document["mcp"]["servers"][server])
}

/// The names in `${secret:NAME}` of an entry.
fn references(entry: &Value) -> Vec<String> {
    let text = entry.to_string();
    let after = text.split("${secret:").skip(1);
    after.filter_map(|rest| Some(rest.split_once('}')?.0.to_owned())).collect()
}

/// The secrets that the vault has of these, and those with names as `narthex add` gives them to
/// this server; none if the daemon does not list its secrets.
pub(in crate::commands) async fn secrets(
    client: &DaemonClient,
    server: &str,
    named: &[String],
) -> Vec<String> {
    let mut names = taken(client).await.unwrap_or_default();
    names.retain(|name| is_of(name, server) || named.contains(name));
    names
}

fn is_of(name: &str, server: &str) -> bool {
    let word = server.to_ascii_uppercase().replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    name.strip_prefix(&word).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
}

/// Names these secrets to a person. Programs read them in the command's result.
pub(in crate::commands) fn tell(names: &[String], context: &Context) {
    if let Some(text) = sentence(names).filter(|_| context.format.is_text()) {
        output::notice(&text);
    }
}

/// The sentence that names these secrets and the commands that clear them.
pub(in crate::commands) fn sentence(names: &[String]) -> Option<String> {
    let clear = |name: &String| format!("`{}`", narthex("secrets clear {}", &[name]));
    let commands: Vec<_> = names.iter().map(clear).collect();
    (!names.is_empty()).then(|| {
        format!(
            "The vault still has {}: if nothing else uses this, clear it with {}",
            names.join(", "),
            commands.join(" and ")
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// E207: an entry can name secrets of any name.
    #[test]
    fn e207_secrets_of_an_entry_are_found_by_their_references() {
        let entry = json!({
            "command": "x", "env": { "A": "${secret:MEMKEY}", "B": "${env:B}" },
            "headers": { "X-Key": "${secret:OTHER}" },
        });
        assert_eq!(references(&entry), ["MEMKEY", "OTHER"]);
        assert!(references(&Value::Null).is_empty());
    }

    /// E207: secrets are found by the names that `narthex add` gives.
    #[test]
    fn e207_secrets_of_a_server_are_found_by_their_names() {
        for name in ["MY_DOCS", "MY_DOCS_KEY", "MY_DOCS_KEY_2"] {
            assert!(is_of(name, "my-docs"), "{name}");
        }
        for name in ["MY_DOCSKEY", "KEY", "DOCS_KEY"] {
            assert!(!is_of(name, "my-docs"), "{name}");
        }
        assert_eq!(sentence(&[]), None);
        let text = sentence(&["A".to_owned(), "B".to_owned()]).unwrap();
        assert!(text.contains("`narthex secrets clear A` and `narthex secrets clear B`"), "{text}");
    }
}
