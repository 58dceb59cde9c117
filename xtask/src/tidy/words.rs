//! Rules on the characters of a text: widths, openings, to-dos, and what must not be named.

use super::Finding;
use super::source::Source;

const WIDTH: usize = 100;

/// To-do marks. Split, so that this file does not find itself.
const MARK: &str = concat!("TO", "DO");
const OTHER_MARKS: [&str; 2] = [concat!("FIX", "ME"), concat!("XX", "X")];

/// Hosts of package registries: a text that names one ties the reader to it.
const HOSTS: [&str; 7] = [
    concat!("registry.npm", "js.org"),
    concat!("py", "pi.org"),
    concat!("python", "hosted.org"),
    concat!("index.crates", ".io"),
    concat!("static.crates", ".io"),
    concat!("deb.debian", ".org"),
    concat!("proxy.go", "lang.org"),
];

/// Paths of the machines that this was written on.
const MACHINE_PATHS: [&str; 4] = [
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/opt/wh", "eels"),
    concat!("../sha", "red/"),
];

/// Rules for every text file.
pub(super) fn check(source: &Source) -> Vec<Finding> {
    let mut findings = names(source);
    if source.is_code() {
        findings.extend(widths(source));
        findings.extend(todos(source));
    }
    findings
}

/// Rules for Rust files.
pub(super) fn rust(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !source.text.starts_with("//!") {
        findings.push(Finding::at(source, 1, "open with `//!` and what this file is for"));
    }
    if source.path.ends_with("/mod.rs") {
        findings.push(Finding::at(source, 1, "use `x.rs` with a folder `x/`, not `mod.rs`"));
    }
    findings
}

fn widths(source: &Source) -> Vec<Finding> {
    let too_wide = source.lines().filter(|(_, line)| {
        // An address cannot be broken.
        line.chars().count() > WIDTH && !line.contains("://")
    });
    too_wide.map(|(at, _)| Finding::at(source, at, format!("is wider than {WIDTH}"))).collect()
}

fn todos(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (at, line) in source.lines() {
        if words(line, MARK).any(|rest| !names_an_issue(rest)) {
            let message = format!("write `{MARK}(#123, reason): …` with the number of an issue");
            findings.push(Finding::at(source, at, message));
        }
        if OTHER_MARKS.iter().any(|mark| words(line, mark).next().is_some()) {
            findings.push(Finding::at(source, at, format!("use `{MARK}(#123, reason): …`")));
        }
    }
    findings
}

/// The text after each occurrence of a whole word.
pub(super) fn words<'a>(line: &'a str, word: &'a str) -> impl Iterator<Item = &'a str> {
    line.match_indices(word).filter_map(move |(at, _)| {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let rest = &line[at + word.len()..];
        let is_whole = !line[..at].ends_with(is_part) && !rest.starts_with(is_part);
        is_whole.then_some(rest)
    })
}

fn names_an_issue(rest: &str) -> bool {
    rest.strip_prefix("(#").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

fn names(source: &Source) -> Vec<Finding> {
    // The lock file names its registry by design.
    if source.path == "Cargo.lock" {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (at, line) in source.lines() {
        for host in HOSTS.iter().filter(|host| line.contains(*host)) {
            findings.push(Finding::at(source, at, format!("names the registry host {host}")));
        }
        for path in MACHINE_PATHS.iter().filter(|path| has_path(line, path)) {
            findings.push(Finding::at(source, at, format!("names the machine path {path}")));
        }
    }
    findings
}

/// True if a path begins here, rather than being a later part of another one.
fn has_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        !line[..at].ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '}'))
    })
}

#[cfg(test)]
mod tests {
    use super::super::source::Source;
    use super::{HOSTS, MACHINE_PATHS, MARK, check, rust};

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.to_owned(), text: text.to_owned() }
    }

    fn messages(path: &str, text: &str) -> Vec<String> {
        check(&source(path, text)).into_iter().map(|f| f.place + ": " + &f.message).collect()
    }

    #[test]
    fn a_wide_line_is_found_but_not_a_long_address() {
        let wide = format!("//! x\n// {}\n", "é".repeat(98));
        assert_eq!(messages("a.rs", &wide), ["a.rs:2: is wider than 100"]);
        assert!(messages("a.rs", &format!("// {}\n", "é".repeat(97))).is_empty());
        assert!(messages("a.rs", &format!("// http://{}\n", "e".repeat(97))).is_empty());
        assert!(messages("a.md", &wide).is_empty());
    }

    #[test]
    fn a_to_do_needs_an_issue() {
        assert_eq!(messages("a.rs", &format!("// {MARK}: later")).len(), 1);
        assert_eq!(messages("a.rs", &format!("// {MARK}(me): later")).len(), 1);
        assert_eq!(messages("a.rs", &format!("// {}", super::OTHER_MARKS[0])).len(), 1);
        assert!(messages("a.rs", &format!("// {MARK}(#12, speed): later")).is_empty());
        assert!(messages("a.rs", &format!("let my{MARK}s = 1;")).is_empty());
    }

    #[test]
    fn hosts_and_machine_paths_are_found_in_any_text() {
        for host in HOSTS {
            assert_eq!(messages("docs/a.md", &format!("see https://{host}/x")).len(), 1, "{host}");
        }
        for path in MACHINE_PATHS {
            assert_eq!(messages("docs/a.md", &format!("see `{path}x`")).len(), 1, "{path}");
        }
        assert!(messages("Cargo.lock", HOSTS[3]).is_empty());
        assert!(messages("docs/a.md", &format!("target{}x", MACHINE_PATHS[0])).is_empty());
    }

    #[test]
    fn rust_files_open_with_their_purpose() {
        assert_eq!(rust(&source("crates/a/src/lib.rs", "use x;\n")).len(), 1);
        assert_eq!(rust(&source("crates/a/src/b/mod.rs", "//! B.\n")).len(), 1);
        assert!(rust(&source("crates/a/src/lib.rs", "//! A.\n")).is_empty());
    }
}
