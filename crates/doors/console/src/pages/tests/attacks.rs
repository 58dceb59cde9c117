//! Attacks on all templates: texts as addresses, very long texts, and parts that no sample shows.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use scraper::Html;

use super::{hostile, pages, selector};

/// Attributes with an address that a browser loads, opens or sends to.
const FOLLOWED: [&str; 11] = [
    "href",
    "src",
    "action",
    "formaction",
    "poster",
    "hx-get",
    "hx-post",
    "hx-put",
    "hx-delete",
    "hx-sse:connect",
    "data-then",
];
/// The shortest literal text of a template that is looked for.
const LITERAL_MIN: usize = 12;
/// Number of literal texts of templates that no sample shows. It only goes down.
const UNSHOWN_MAX: usize = 150;

/// The addresses of a page that lead out of it, to anything but a path of this daemon.
fn elsewhere(page: &str) -> BTreeSet<String> {
    let page = Html::parse_document(page);
    let mut found = BTreeSet::new();
    for element in page.select(&selector("*")) {
        for (attribute, value) in element.value().attrs() {
            let is_path =
                value.starts_with('/') && !value.starts_with("//") && !value.starts_with("/\\")
                    || value.starts_with('#');
            if FOLLOWED.contains(&attribute) && !is_path {
                found.insert(format!("{attribute}={value}"));
            }
        }
    }
    found
}

/// S11: no text becomes an address that leads elsewhere, or that runs.
#[test]
fn s11_no_text_becomes_an_address() {
    let plain: Vec<_> = pages("x").iter().map(|(_, page)| elsewhere(page)).collect();
    for text in hostile() {
        for ((name, page), expected) in pages(&text).iter().zip(&plain) {
            let shown: String = text.chars().take(40).collect();
            assert_eq!(elsewhere(page), *expected, "{name}: {shown}");
        }
    }
}

/// S11: texts of five megabytes leave each page small, and the page says that it was cut.
#[test]
fn s11_five_megabytes_leave_each_page_small() {
    for (name, page) in pages(&"<i>".repeat(5_000_000 / 3)) {
        let most = if name == "kitchen sink" { 1_000_000 } else { 400_000 };
        assert!(page.len() < most, "{name}: {} bytes", page.len());
        assert!(page.contains('…'), "{name}");
    }
}

/// All templates, by their paths.
fn templates() -> Vec<PathBuf> {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("templates")];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir().unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => found.push(path),
            }
        }
    }
    found.sort();
    found
}

/// The texts of a template between its tags.
fn literals(template: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut rest = template;
    while let Some((before, tag)) = rest.split_once('{') {
        found.last_mut().unwrap().push_str(before);
        let end = match tag.chars().next() {
            Some('{') => "}}",
            Some('%') => "%}",
            Some('#') => "#}",
            _ => {
                found.last_mut().unwrap().push('{');
                rest = tag;
                continue;
            }
        };
        let (_, after) = tag.split_once(end).unwrap();
        found.push(String::new());
        rest = after;
    }
    found.last_mut().unwrap().push_str(rest);
    let found = found.iter().map(|text| text.trim().to_owned());
    found.filter(|text| !text.is_empty()).collect()
}

/// S11: each template is in the pages that the tests with hostile texts look at, and so is each of
/// its branches that has some text.
#[test]
fn s11_each_branch_of_each_template_is_looked_at() {
    let shown: String = pages("x").into_iter().map(|(_, page)| page).collect();
    let mut unshown = Vec::new();
    for path in templates() {
        let texts = literals(&fs_err::read_to_string(&path).unwrap());
        let name = path.file_name().unwrap().to_str().unwrap();
        let long: Vec<_> = texts.into_iter().filter(|text| text.len() >= LITERAL_MIN).collect();
        let is_there = long.is_empty() || long.iter().any(|text| shown.contains(text.as_str()));
        assert!(is_there, "no page of `pages` has `{name}`: add one");
        let missing = long.into_iter().filter(|text| !shown.contains(text.as_str()));
        unshown.extend(missing.map(|text| format!("{name}: {text}")));
    }
    let count = unshown.len();
    assert!(count <= UNSHOWN_MAX, "{count} texts are in no sample:\n{}", unshown.join("\n"));
}

/// The reader of templates finds each text once.
#[test]
fn texts_of_templates_are_found() {
    let found = literals("<p>{# no #}a {b{% if x %}c{{ d }}e</p>{% endif %}\n");
    assert_eq!(found, ["<p>", "a {b", "c", "e</p>"]);
}
