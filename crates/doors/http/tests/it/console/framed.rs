//! The checks of the frame that each page must pass.

use std::path::Path;

use http::StatusCode;

use super::{Html, all, values};
use crate::browser::Site;

/// The commands.
const COMMANDS: &str = include_str!("../../../../../../docs/reference/cli.md");
/// Pages that are no command and no request: the search over everything, and the page of a
/// registry's server without a name.
const ALONE: [&str; 2] = ["/w/default/search", "/w/default/registry/server"];

/// Fails unless a page has its sentence, at most one primary action in its head, the way to the
/// search, the same as a command and as a request, and empty states that help.
pub(super) async fn check(site: &Site, path: &str, page: &Html) {
    let sentences = all(page, ".head > div:first-child > p");
    assert_eq!(sentences.len(), 1, "{path}: {sentences:?}");
    assert!(sentences[0].ends_with('.') && sentences[0].len() > 10, "{path}: {sentences:?}");
    assert!(all(page, ".head .button.primary").len() <= 1, "{path}");
    assert_eq!(all(page, "form.search kbd"), ["/"], "{path}");
    assert_eq!(values(page, "form.search input[type=search]", "id"), ["q"], "{path}");
    assert_eq!(values(page, "nav.pages", "aria-label"), ["Pages"], "{path}");
    empty_states(path, page);
    let same = all(page, ".same code");
    if ALONE.contains(&path) {
        assert!(same.is_empty(), "{path}");
        return;
    }
    assert_eq!(same.len(), 2, "{path}");
    command(path, &same[0]);
    request(site, path, &same[1]).await;
}

/// A list without rows says what the thing is, gives an example, and names a page of the
/// documentation that exists. One whose filter fits nothing says what to do.
fn empty_states(path: &str, page: &Html) {
    for empty in all(page, ".empty") {
        let is_filtered = empty.contains("Take a filter away") || path.contains('?');
        let documents = all(page, ".empty small code");
        let examples = all(page, ".empty .code code");
        assert!(is_filtered || !documents.is_empty(), "{path} names no documentation: {empty}");
        assert!(is_filtered || !examples.is_empty(), "{path} has no example: {empty}");
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    for document in all(page, "main small code").iter().filter(|text| text.starts_with("docs/")) {
        assert!(root.join(document).is_file(), "{path}: {document} is no page");
    }
}

/// Fails unless the words of a command are a heading of its reference.
fn command(path: &str, command: &str) {
    let words: Vec<_> = command.split(' ').collect();
    let is_known = |count: &usize| {
        let name = words[..*count].join(" ");
        let heading = COMMANDS.lines().filter(|line| line.starts_with('#'));
        heading.map(|line| line.trim_start_matches('#').trim()).any(|line| line == name)
    };
    let known = (2..=words.len().min(4)).rev().find(is_known);
    let known = known.unwrap_or_else(|| panic!("{path}: `{command}` is no command"));
    let group = format!("### {} ", words[..known].join(" "));
    let is_group = COMMANDS.lines().any(|line| line.starts_with(&group));
    assert!(!is_group, "{path}: `{command}` is a group of commands");
}

/// Fails unless a request is one of the API: those that read are sent.
async fn request(site: &Site, path: &str, request: &str) {
    let (method, place) = request.split_once(' ').unwrap_or_else(|| panic!("{path}: {request}"));
    assert!(["GET", "POST", "PUT", "DELETE", "PATCH"].contains(&method), "{path}: {request}");
    if method == "GET" && place.starts_with("/api/") {
        let answer = site.api.send("GET", place, "").await;
        let is_there =
            !matches!(answer.status, StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED);
        assert!(is_there, "{path}: {request}: {}", answer.status);
    }
}
