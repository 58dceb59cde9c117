//! The links between documents: each leads to a file, and to a heading of it where it names one.
//! Each page of the documentation is in its index.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use super::source::Source;

const INDEX: &str = "docs/README.md";

/// Checks the links of all documents, and the index.
pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    let documents = || sources.iter().filter(|source| source.path.ends_with(".md"));
    let headings: BTreeMap<_, _> =
        documents().map(|source| (source.path.as_str(), anchors(source))).collect();
    let mut findings = Vec::new();
    let mut indexed = BTreeSet::new();
    for source in documents() {
        for (line, link) in links(source) {
            let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = target(&source.path, path);
            let anchors = headings.get(target.as_str());
            if !exists(&target, sources) {
                findings.push(Finding::at(source, line, format!("`{link}` leads to no file")));
            } else if !anchor.is_empty() && !anchors.is_some_and(|all| all.contains(anchor)) {
                let message = format!("`{target}` has no heading for `#{anchor}`");
                findings.push(Finding::at(source, line, message));
            }
            if source.path == INDEX {
                indexed.insert(target);
            }
        }
    }
    let is_page = |path: &str| {
        path.starts_with("docs/") && !path.starts_with("docs/decisions/") && path != INDEX
    };
    let pages = documents().map(|source| &source.path).filter(|path| is_page(path));
    let missing = pages.filter(|path| !indexed.contains(*path));
    findings.extend(missing.map(|path| Finding::new(INDEX, format!("has no line for `{path}`"))));
    findings
}

/// The lines of a document outside of blocks of code.
fn prose(source: &Source) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    source.lines().filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// The relative links of a document, each with its line.
fn links(source: &Source) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (at, line) in prose(source) {
        let links = line.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
        let relative = links.map(|(link, _)| link).filter(|link| !link.contains(':'));
        found.extend(relative.map(|link| (at, link.to_owned())));
    }
    found
}

/// The anchors of a document's headings, as GitHub makes them.
fn anchors(source: &Source) -> BTreeSet<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut found = BTreeSet::new();
    for (_, line) in prose(source) {
        let title = line.trim_start_matches('#');
        let Some(title) = title.strip_prefix(' ').filter(|_| line.starts_with('#')) else {
            continue;
        };
        let anchor = anchor(title);
        let count = counts.entry(anchor.clone()).or_default();
        found.insert(if *count == 0 { anchor } else { format!("{anchor}-{count}") });
        *count += 1;
    }
    found
}

/// The anchor of a title: its letters and digits, with `-` for blanks.
fn anchor(title: &str) -> String {
    let kept = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    let text = title.trim().to_lowercase();
    text.chars().filter(|c| kept(*c)).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// The path of a link from the root. A link without a path leads to its own document.
fn target(from: &str, path: &str) -> String {
    if path.is_empty() {
        return from.to_owned();
    }
    let mut steps: Vec<&str> = from.split('/').collect();
    steps.pop();
    for step in path.split('/') {
        match step {
            "" | "." => {}
            ".." => drop(steps.pop()),
            _ => steps.push(step),
        }
    }
    steps.join("/")
}

/// True if there is a file, or a folder with files.
fn exists(target: &str, sources: &[Source]) -> bool {
    sources.iter().any(|source| {
        let rest = source.path.strip_prefix(target);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

#[cfg(test)]
mod tests {
    use super::{Source, check};

    fn found(texts: &[(&str, &str)]) -> Vec<String> {
        let source = |(path, text): &(&str, &str)| Source {
            path: (*path).to_owned(),
            text: (*text).to_owned(),
        };
        let sources: Vec<_> = texts.iter().map(source).collect();
        check(&sources).into_iter().map(|one| format!("{}: {}", one.place, one.message)).collect()
    }

    #[test]
    fn links_lead_to_files_and_headings() {
        let page = "# A page\n\n## What `it` is, and why\n\n## Twice\n\n## Twice\n\
                    [here](#twice-1) [up](../../README.md#start) [away](https://a.example/b#c)\n\
                    ```sh\n# no heading\n[no](link)\n```\n";
        let index = "[page](start/page.md#what-it-is-and-why) [folder](start/)\n";
        let readme = "# Start\n[docs](docs/README.md)\n";
        let good = [("README.md", readme), ("docs/README.md", index), ("docs/start/page.md", page)];
        assert!(found(&good).is_empty(), "{:?}", found(&good));
        let bad = "[a](start/page.md)\n[b](start/gone.md)\n[c](start/page.md#no-heading)\n";
        let bad = [good[0], ("docs/README.md", bad), good[2]];
        assert_eq!(
            found(&bad),
            [
                "docs/README.md:2: `start/gone.md` leads to no file",
                "docs/README.md:3: `docs/start/page.md` has no heading for `#no-heading`",
            ]
        );
    }

    #[test]
    fn each_page_is_in_the_index() {
        let pages = [("docs/README.md", ""), ("docs/a.md", ""), ("docs/decisions/0001-b.md", "")];
        assert_eq!(found(&pages), ["docs/README.md: has no line for `docs/a.md`"]);
    }
}
