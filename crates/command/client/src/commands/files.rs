//! The configuration files that the daemon follows: files whose present content it refuses, and
//! deleted files.

use std::time::SystemTime;

use narthex_model::{Timestamp, command::completed};
use serde_json::Value;

use super::across::unless_hidden;
use crate::{
    Failure,
    daemon_client::DaemonClient,
    output::{age, harmless},
};

/// The files as the daemon lists them. None for a token that may not see them, and of a daemon that
/// follows no files.
pub(super) async fn followed(client: &DaemonClient) -> Result<Vec<Value>, Failure> {
    unless_hidden(client.api_all("/api/files").await)
}

/// A sentence for each file that does not count as it is: its content is refused, or it is gone.
pub(super) fn warnings(files: &[Value], now: SystemTime) -> Vec<String> {
    refused(files, now).into_iter().chain(gone(files, now)).collect()
}

/// A sentence for each file that was there and is gone.
pub(super) fn gone(files: &[Value], now: SystemTime) -> Vec<String> {
    let sentence = |file: &Value| {
        let (name, since) = (file["file"].as_str()?, ago(file, "gone_since", now)?);
        Some(harmless(&format!(
            "{name} was deleted or moved {since}, and its servers are unavailable: put the file \
             back, and the daemon reads it at once"
        )))
    };
    files.iter().filter_map(sentence).collect()
}

/// A sentence for each file whose present content is refused: the content that is used instead, the
/// reason, and the command or the place that mends it.
pub(super) fn refused(files: &[Value], now: SystemTime) -> Vec<String> {
    let sentence = |file: &Value| {
        let (name, error) = (file["file"].as_str()?, file["error"].as_str()?);
        // The daemon's reasons begin with the file.
        let reason = error.strip_prefix(&format!("{name}: ")).unwrap_or(error);
        let since = ago(file, "refused_since", now).map(|ago| format!(" {ago}"));
        let since = since.unwrap_or_default();
        let used = match (file["is_present"] == true, ago(file, "applied_at", now)) {
            (true, Some(ago)) => format!("the daemon still uses the content that it read {ago}"),
            (true, None) => "the daemon still uses an earlier content".to_owned(),
            (false, _) => "the daemon uses no content of it".to_owned(),
        };
        let told = format!("{name} was refused{since}, and {used}: {reason}");
        Some(harmless(&completed(&told)))
    };
    files.iter().filter_map(sentence).collect()
}

/// The age of a file by one of its times.
fn ago(file: &Value, member: &str, now: SystemTime) -> Option<String> {
    let time = file[member].as_str().and_then(Timestamp::read);
    time.map(|time| age(time, now))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    /// E118: the content that is used is shown with its age, and the file once.
    #[test]
    fn e118_a_warning_about_a_refused_file_names_the_content_in_use() {
        let now = SystemTime::now();
        let at = |seconds| Timestamp::new(now - Duration::from_secs(seconds)).to_string();
        let told = |file: Value| refused(&[file], now);
        let mut file = json!({ "file": "/f/mcp.json", "is_present": true, "applied_at": at(190),
            "refused_since": at(12), "error": "/f/mcp.json: line 1: a comma is missing" });
        let expected = "/f/mcp.json was refused 12s ago, and the daemon still uses the content \
                        that it read 3m ago: line 1: a comma is missing";
        assert_eq!(told(file.clone()), [expected]);
        file["is_present"] = json!(false);
        assert!(told(file.clone())[0].contains("and the daemon uses no content of it: line 1"));
        file["error"] = Value::Null;
        assert_eq!(told(file), [""; 0]);
    }

    /// E124: a deleted file is named, with the content that is served now.
    #[test]
    fn e124_a_deleted_file_is_reported() {
        let now = SystemTime::now();
        let at = Timestamp::new(now - Duration::from_secs(12)).to_string();
        let mut file = json!({ "file": "/f/mcp.json", "is_present": false, "error": null,
            "gone_since": at });
        let told = warnings(&[file.clone()], now);
        let expected = "/f/mcp.json was deleted or moved 12s ago, and its servers are unavailable: \
                        put the file back, and the daemon reads it at once";
        assert_eq!(told, [expected]);
        file["gone_since"] = Value::Null;
        assert_eq!(warnings(&[file], now), [""; 0]);
    }
}
