//! The table of layers inside of crates in ARCHITECTURE.md against the sources.
//!
//! The table is a block fenced with three backticks and the word `layers`. A line
//! `crate::module -> module, module` names everything that the module may import of its own crate.
//! A line `crate::module <- module` names the modules of its crate that may import it; the root of
//! the crate always may. Tests do not count.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::Finding;
use super::source::Source;
use super::syntax::Syntax;

/// One line of the table.
struct Layer {
    line: usize,
    crate_name: String,
    module: String,
    /// True if the names are those that it imports, false if they are those that import it.
    is_outward: bool,
    names: BTreeSet<String>,
}

/// An import inside of a crate: by which of its modules, and what of its root.
struct Import {
    path: String,
    line: usize,
    crate_name: String,
    /// `None`: the root.
    by: Option<String>,
    name: String,
}

/// Every import inside of a crate must keep to the table, and every module of it must be there.
pub(super) fn check(document: &Source, sources: &[Source]) -> Vec<Finding> {
    let layers = match parse(document) {
        Ok(layers) => layers,
        Err(finding) => return vec![finding],
    };
    let crates: BTreeSet<_> = layers.iter().map(|layer| layer.crate_name.as_str()).collect();
    let of_crates = sources
        .iter()
        .filter(|source| place(source).is_some_and(|(crate_name, _)| crates.contains(crate_name)));
    let (mut imports, mut modules) = (Vec::new(), BTreeSet::new());
    for source in of_crates.filter(|source| source.is_rust() && !source.is_test()) {
        if let Some((crate_name, Some(module))) = place(source) {
            modules.insert((crate_name.to_owned(), module));
        }
        imports.extend(imports_of(source));
    }
    let mut findings = Vec::new();
    for layer in &layers {
        let Layer { crate_name, module, .. } = layer;
        if !modules.contains(&(crate_name.clone(), module.clone())) {
            let message = format!("there is no module `{crate_name}::{module}`");
            findings.push(Finding::at(document, layer.line, message));
        }
        findings.extend(imports.iter().filter_map(|import| layer.refuse(import)));
    }
    findings
}

impl Layer {
    fn refuse(&self, import: &Import) -> Option<Finding> {
        let Self { crate_name, module, names, .. } = self;
        let (Some(by), true) = (&import.by, import.crate_name == *crate_name) else { return None };
        let (is_concerned, other) = match self.is_outward {
            true => (by == module && import.name != *module, &import.name),
            false => (by != module && import.name == *module, by),
        };
        let message = format!(
            "`{crate_name}::{by}` imports `{}`, which the layer `{module}` does not allow",
            import.name
        );
        (is_concerned && !names.contains(other))
            .then(|| Finding::new(format!("{}:{}", import.path, import.line), message))
    }
}

/// The crate of a source and its module below the root, if it is not the root itself.
fn place(source: &Source) -> Option<(&str, Option<String>)> {
    let dir = source.crate_dir()?;
    let crate_name = dir.rsplit('/').next()?;
    let path = source.path[dir.len()..].strip_prefix("/src/")?;
    let first = path.split('/').next()?.trim_end_matches(".rs");
    let is_root = matches!(path, "lib.rs" | "main.rs");
    Some((crate_name, (!is_root).then(|| first.to_owned())))
}

fn imports_of(source: &Source) -> Vec<Import> {
    let Some((crate_name, by)) = place(source) else { return Vec::new() };
    let Ok(tokens) = source.text.parse::<TokenStream>() else { return Vec::new() };
    let syntax = Syntax::parse(source).unwrap_or_default();
    // How many modules a file lies below the root: as often leads `super` there.
    let depth = source.path.split("/src/").nth(1).map_or(0, |path| path.split('/').count());
    let mut imports = Vec::new();
    walk(tokens, depth, &mut |line, name| {
        if !syntax.test_items().iter().any(|lines| lines.contains(&line)) {
            let (crate_name, by) = (crate_name.to_owned(), by.clone());
            let path = source.path.clone();
            imports.push(Import { path, line, crate_name, by, name });
        }
    });
    imports
}

/// Visits every name that stands behind `crate::`, or behind as many `super::` as lead to the root.
fn walk(tokens: TokenStream, depth: usize, visit: &mut impl FnMut(usize, String)) {
    let tokens: Vec<_> = tokens.into_iter().collect();
    let mut at = 0;
    while at < tokens.len() {
        let mut ups = 0;
        while is_path(&tokens[at..], "super") {
            (ups, at) = (ups + 1, at + 3);
        }
        let is_root = match is_path(&tokens[at..], "crate") {
            true => {
                at += 3;
                true
            }
            false => ups > 0 && ups == depth,
        };
        match tokens.get(at) {
            Some(TokenTree::Ident(name)) if is_root => {
                visit(name.span().start().line, name.to_string());
            }
            Some(TokenTree::Group(group)) if is_root => firsts(&group.stream(), visit),
            Some(TokenTree::Group(group)) => {
                let is_module = at > 1
                    && group.delimiter() == Delimiter::Brace
                    && matches!(&tokens[at - 2], TokenTree::Ident(word) if *word == "mod");
                walk(group.stream(), depth + usize::from(is_module), visit);
            }
            _ => {}
        }
        at += 1;
    }
}

/// Visits the first name of each path in the braces of an import.
fn firsts(group: &TokenStream, visit: &mut impl FnMut(usize, String)) {
    let mut is_first = true;
    for token in group.clone() {
        match token {
            TokenTree::Ident(name) if is_first => {
                visit(name.span().start().line, name.to_string());
                is_first = false;
            }
            TokenTree::Punct(punct) if punct.as_char() == ',' => is_first = true,
            _ => {}
        }
    }
}

/// True if tokens begin with `word::`.
fn is_path(tokens: &[TokenTree], word: &str) -> bool {
    let is_colon =
        |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ':');
    matches!(tokens, [TokenTree::Ident(first), a, b, _, ..]
        if *first == word && is_colon(a) && is_colon(b))
}

fn parse(source: &Source) -> Result<Vec<Layer>, Finding> {
    let mut lines = source.lines().skip_while(|(_, line)| line.trim() != "```layers");
    let (opening, _) =
        lines.next().ok_or_else(|| Finding::new(&source.path, "has no block ```layers"))?;
    let mut layers = Vec::new();
    for (at, line) in lines {
        let line = line.trim();
        if line == "```" {
            return Ok(layers);
        }
        let layer = parse_line(at, line).ok_or_else(|| {
            Finding::at(source, at, "is not `crate::module -> module, module`, or with `<-`")
        })?;
        layers.push(layer);
    }
    Err(Finding::at(source, opening, "the block is not closed"))
}

fn parse_line(at: usize, line: &str) -> Option<Layer> {
    let is_outward = line.contains("->");
    let (of, names) = line.split_once(if is_outward { "->" } else { "<-" })?;
    let (crate_name, module) = of.trim().split_once("::")?;
    let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
    Some(Layer {
        line: at,
        crate_name: crate_name.to_owned(),
        module: module.to_owned(),
        is_outward,
        names: names.map(str::to_owned).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::source::Source;
    use super::check;

    fn found(table: &str, sources: &[(&str, &str)]) -> Vec<String> {
        let source =
            |path: &str, text: &str| Source { path: path.to_owned(), text: text.to_owned() };
        let sources: Vec<_> = sources.iter().map(|(path, text)| source(path, text)).collect();
        let findings = check(&source("A.md", table), &sources).into_iter();
        findings.map(|finding| finding.place + ": " + &finding.message).collect()
    }

    const VIEW: &str = "crates/data-plane/gateway/src/view.rs";
    const PAGES: &str = "crates/data-plane/gateway/src/view/pages.rs";
    const RUN: &str = "crates/data-plane/gateway/src/run.rs";
    const TABLE: &str = "```layers\ngateway::view -> clock\n```\n";

    #[test]
    fn imports_that_the_table_names_are_allowed() {
        let view = (VIEW, "use crate::{clock::now, view::Pages};\nfn a() { crate::clock::b() }");
        let pages = (PAGES, "use super::View;\nuse super::super::clock;\nuse crate::view::X;");
        assert_eq!(found(TABLE, &[view, pages]), Vec::<String>::new());
        // Others are not concerned.
        let run = (RUN, "use crate::{view::View, session::Session};");
        assert_eq!(found(TABLE, &[view, run]), Vec::<String>::new());
    }

    #[test]
    fn every_other_import_is_found() {
        for text in [
            "use crate::run::Run;",
            "use crate::{clock, run::{Run, view}};",
            "use super::run;",
            "fn a() -> crate::run::Run { b!(crate::run) }",
            "mod b { use super::super::run; }",
        ] {
            let found = found(TABLE, &[(VIEW, text)]);
            let expected = "crates/data-plane/gateway/src/view.rs:1: `gateway::view` imports \
                `run`, which the layer `view` does not allow";
            assert!(!found.is_empty(), "{text}");
            assert!(found.iter().all(|one| one == expected), "{text}: {found:?}");
        }
        let test = "#[cfg(test)]\nmod tests { use crate::run::Run; }";
        assert_eq!(found(TABLE, &[(VIEW, test)]), Vec::<String>::new());
        let test = ("crates/data-plane/gateway/src/view/tests.rs", "use crate::run::Run;");
        assert_eq!(found(TABLE, &[(VIEW, ""), test]), Vec::<String>::new());
    }

    #[test]
    fn an_upper_layer_is_imported_by_nothing_else() {
        let table = "```layers\ngateway::view <- route\n```\n";
        let route = ("crates/data-plane/gateway/src/route.rs", "use crate::view::View;");
        let root = ("crates/data-plane/gateway/src/lib.rs", "pub use crate::view::View;");
        let view = (VIEW, "use crate::{view::Pages, run::Run};");
        assert_eq!(found(table, &[view, route, root]), Vec::<String>::new());
        let run = (RUN, "\nuse crate::view::View;");
        let expected = "crates/data-plane/gateway/src/run.rs:2: `gateway::run` imports `view`, \
            which the layer `view` does not allow";
        assert_eq!(found(table, &[view, run]), [expected]);
    }

    #[test]
    fn a_stale_line_and_a_table_that_cannot_be_read_are_found() {
        assert_eq!(found(TABLE, &[]), ["A.md:2: there is no module `gateway::view`"]);
        assert_eq!(found("none", &[]), ["A.md: has no block ```layers"]);
        let line = "A.md:2: is not `crate::module -> module, module`, or with `<-`";
        assert_eq!(found("```layers\nview -> a\n```\n", &[]), [line]);
        assert_eq!(found("```layers\n", &[]), ["A.md:1: the block is not closed"]);
    }
}
