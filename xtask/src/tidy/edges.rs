//! The table of allowed imports in ARCHITECTURE.md against the manifests.
//!
//! The table is a block fenced with three backticks and the word `edges`. Each line is
//! `crate -> crate, crate`, and after a semicolon what only tests may import:
//! `crate -> crate; dev: crate`. A line that begins with `#` is a comment. Tests may always import
//! the testkit, so that it appears in no line.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::Finding;
use super::crates::Package;
use super::source::Source;

const TESTKIT: &str = "testkit";

#[derive(Debug, Default, PartialEq, Eq)]
struct Row {
    normal: BTreeSet<String>,
    dev: BTreeSet<String>,
}

type Table = BTreeMap<String, Row>;

/// Every edge must be in the table, and every edge of the table in a manifest.
pub(super) fn check(source: &Source, packages: &[Package]) -> Vec<Finding> {
    let table = match parse(source) {
        Ok(table) => table,
        Err(finding) => return vec![finding],
    };
    let mut findings = Vec::new();
    let mut find = |message: String| findings.push(Finding::new(&source.path, message));
    let actual = actual(packages);
    for (name, row) in &actual {
        let Some(allowed) = table.get(name) else {
            find(format!("the edge table has no line for `{name}`"));
            continue;
        };
        for (kind, is, may) in
            [("", &row.normal, &allowed.normal), ("in tests ", &row.dev, &allowed.dev)]
        {
            for edge in is.difference(may) {
                find(format!("`{name}` {kind}imports `{edge}`, which the table does not allow"));
            }
            for edge in may.difference(is) {
                find(format!("`{name}` {kind}imports no `{edge}`: remove it from the table"));
            }
        }
    }
    for name in table.keys().filter(|name| !actual.contains_key(*name)) {
        find(format!("the edge table names `{name}`, which is no crate"));
    }
    findings
}

/// The table as it would have to be for the manifests as they are.
pub(super) fn render(packages: &[Package]) -> String {
    let mut text = String::from("```edges\n");
    for (name, row) in actual(packages) {
        let list = |names: BTreeSet<String>| names.into_iter().collect::<Vec<_>>().join(", ");
        let mut line = format!("{name} -> {}", list(row.normal));
        if !row.dev.is_empty() {
            line = format!("{}; dev: {}", line.trim_end(), list(row.dev));
        }
        writeln!(text, "{}", line.trim_end()).expect("a string takes all writes");
    }
    text.push_str("```\n");
    text
}

fn actual(packages: &[Package]) -> Table {
    let row = |package: &Package| Row {
        normal: package.normal.clone(),
        // A crate that imports another one anyway may also do so in tests.
        dev: package.dev.difference(&package.normal).filter(|n| *n != TESTKIT).cloned().collect(),
    };
    packages.iter().map(|package| (package.name.clone(), row(package))).collect()
}

fn parse(source: &Source) -> Result<Table, Finding> {
    let mut lines = source.lines().skip_while(|(_, line)| line.trim() != "```edges");
    let (opening, _) = lines.next().ok_or_else(|| {
        Finding::new(&source.path, "has no block ```edges; `cargo xtask tidy --edges` prints it")
    })?;
    let mut table = Table::new();
    for (at, line) in lines {
        let line = line.trim();
        if line == "```" {
            return Ok(table);
        }
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, row) = parse_line(line)
            .ok_or_else(|| Finding::at(source, at, "is not `crate -> crate, crate; dev: crate`"))?;
        if table.insert(name.clone(), row).is_some() {
            return Err(Finding::at(source, at, format!("is a second line for `{name}`")));
        }
    }
    Err(Finding::at(source, opening, "the block is not closed"))
}

fn parse_line(line: &str) -> Option<(String, Row)> {
    let (name, edges) = line.split_once("->")?;
    let (normal, dev) = match edges.split_once(';') {
        Some((normal, dev)) => (normal, dev.trim().strip_prefix("dev:")?),
        None => (edges, ""),
    };
    let row = Row { normal: parse_names(normal)?, dev: parse_names(dev)? };
    Some((parse_name(name)?, row))
}

fn parse_names(list: &str) -> Option<BTreeSet<String>> {
    if list.trim().is_empty() {
        return Some(BTreeSet::new());
    }
    list.split(',').map(parse_name).collect()
}

fn parse_name(name: &str) -> Option<String> {
    let name = name.trim();
    let is_good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    (!name.is_empty() && name.chars().all(is_good)).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::crates::Package;
    use super::super::source::Source;
    use super::{check, render};

    fn packages() -> Vec<Package> {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let package = |name: &str, normal: &[&str], dev: &[&str]| Package {
            name: name.to_owned(),
            normal: set(normal),
            dev: set(dev),
            ..Package::default()
        };
        vec![
            package("gateway", &["model", "wire"], &["testkit", "wire", "http"]),
            package("model", &[], &["testkit"]),
            package("wire", &["model"], &[]),
        ]
    }

    fn found(table: &str) -> Vec<String> {
        let text = format!("# A\n\n{table}");
        let source = Source { path: "A.md".to_owned(), text };
        check(&source, &packages()).into_iter().map(|f| f.place + ": " + &f.message).collect()
    }

    #[test]
    fn the_rendered_table_has_no_findings() {
        let table = render(&packages());
        assert_eq!(
            table,
            "```edges\ngateway -> model, wire; dev: http\nmodel ->\nwire -> model\n```\n"
        );
        assert_eq!(found(&table), Vec::<String>::new());
    }

    #[test]
    fn forbidden_stale_and_missing_edges_are_found() {
        let table = "```edges\ngateway -> model, policy\nwire -> model\nold -> wire\n```\n";
        let expected = [
            "A.md: `gateway` imports `wire`, which the table does not allow",
            "A.md: `gateway` imports no `policy`: remove it from the table",
            "A.md: `gateway` in tests imports `http`, which the table does not allow",
            "A.md: the edge table has no line for `model`",
            "A.md: the edge table names `old`, which is no crate",
        ];
        assert_eq!(found(table), expected);
    }

    #[test]
    fn a_table_that_cannot_be_read_is_found() {
        let cases = [
            ("no table", "has no block"),
            ("```edges\nwire -> model\n", "not closed"),
            ("```edges\nwire model\n```\n", "is not `crate"),
            ("```edges\nwire -> a b\n```\n", "is not `crate"),
            ("```edges\nwire -> model; test: http\n```\n", "is not `crate"),
            ("```edges\nwire -> model\nwire -> model\n```\n", "second line"),
        ];
        for (table, expected) in cases {
            let found = found(table);
            assert!(found.len() == 1 && found[0].contains(expected), "{table}: {found:?}");
        }
    }
}
