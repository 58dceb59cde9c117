//! Secrets that remain in the vault after their server was removed.

use narthex_model::command::narthex;

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

/// The secrets with names as `narthex add` gives them to this server; none if the daemon does not
/// list its secrets.
pub(in crate::commands) async fn secrets(client: &DaemonClient, server: &str) -> Vec<String> {
    let mut names = taken(client).await.unwrap_or_default();
    names.retain(|name| is_of(name, server));
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
    use super::*;

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
