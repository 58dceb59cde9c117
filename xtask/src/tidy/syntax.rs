//! Rules that need a parser: how long functions and test modules are, and what of a file is tests.

use std::ops::RangeInclusive;

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::Finding;
use super::source::Source;

const FUNCTION_LINES: usize = 70;
const TEST_MODULE_LINES: usize = 150;

/// The facts about a parsed file that the rules need.
#[derive(Default)]
pub(super) struct Syntax {
    functions: Vec<Function>,
    test_items: Vec<RangeInclusive<usize>>,
}

struct Function {
    name: String,
    line: usize,
    body_lines: usize,
}

impl Syntax {
    pub(super) fn parse(source: &Source) -> Result<Self, Finding> {
        let file = syn::parse_file(&source.text).map_err(|error| {
            Finding::at(source, error.span().start().line, format!("does not parse: {error}"))
        })?;
        let mut syntax = Self::default();
        syntax.visit_file(&file);
        Ok(syntax)
    }

    /// Functions and test modules that are too long.
    pub(super) fn findings(&self, source: &Source) -> Vec<Finding> {
        let long = self.functions.iter().filter(|f| f.body_lines > FUNCTION_LINES).map(|f| {
            let (name, lines) = (&f.name, f.body_lines);
            let message = format!("`{name}` has {lines} lines, the limit is {FUNCTION_LINES}");
            Finding::at(source, f.line, message)
        });
        let modules =
            self.test_items.iter().filter(|lines| lines.end() - lines.start() >= TEST_MODULE_LINES);
        let modules = modules.map(|lines| {
            let message =
                format!("tests of more than {TEST_MODULE_LINES} lines go to a file `x/tests.rs`");
            Finding::at(source, *lines.start(), message)
        });
        long.chain(modules).collect()
    }

    /// The lines of each item that is there for tests alone.
    pub(super) fn test_items(&self) -> &[RangeInclusive<usize>] {
        &self.test_items
    }

    /// The number of lines that are not tests.
    pub(super) fn code_lines(&self, source: &Source) -> usize {
        let is_test = |at: usize| self.test_items.iter().any(|lines| lines.contains(&at));
        source.lines().filter(|(at, _)| !is_test(*at)).count()
    }

    fn function(&mut self, name: &syn::Ident, block: &syn::Block) {
        let braces = block.brace_token.span;
        let (first, last) = (braces.open().start().line, braces.close().end().line);
        let body_lines = (last - first).saturating_sub(1);
        self.functions.push(Function { name: name.to_string(), line: first, body_lines });
    }
}

impl<'ast> Visit<'ast> for Syntax {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let attributes = match item {
            syn::Item::Mod(item) => &item.attrs,
            syn::Item::Fn(item) => &item.attrs,
            syn::Item::Impl(item) => &item.attrs,
            syn::Item::Use(item) => &item.attrs,
            _ => return visit::visit_item(self, item),
        };
        if attributes.iter().any(is_cfg_test) {
            self.test_items.push(lines(item.span()));
        }
        visit::visit_item(self, item);
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.sig.ident, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.sig.ident, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.function(&item.sig.ident, block);
        }
        visit::visit_trait_item_fn(self, item);
    }
}

/// `#[cfg(test)]`, also inside `all(…)`.
fn is_cfg_test(attribute: &syn::Attribute) -> bool {
    let syn::Meta::List(list) = &attribute.meta else { return false };
    let condition = list.tokens.to_string();
    let mut words = condition.split(|c: char| !c.is_alphanumeric() && c != '_');
    list.path.is_ident("cfg") && !condition.contains("not") && words.any(|word| word == "test")
}

fn lines(span: Span) -> RangeInclusive<usize> {
    span.start().line..=span.end().line
}

#[cfg(test)]
mod tests {
    use super::super::source::Source;
    use super::Syntax;

    fn source(text: String) -> Source {
        Source { path: "a.rs".to_owned(), text }
    }

    fn findings(text: String) -> Vec<String> {
        let source = source(text);
        let found = Syntax::parse(&source).map(|syntax| syntax.findings(&source));
        let found = found.unwrap_or_else(|finding| vec![finding]);
        found.into_iter().map(|f| f.place + ": " + &f.message).collect()
    }

    fn body(lines: usize) -> String {
        format!("{{\n{}}}\n", "    x();\n".repeat(lines))
    }

    #[test]
    fn a_long_function_is_found_in_each_kind_of_item() {
        assert!(findings(format!("fn a() {}", body(70))).is_empty());
        let long = body(71);
        for text in [
            format!("fn a() {long}"),
            format!("impl A {{ async fn a() {long} }}"),
            format!("trait A {{ fn a() {long} }}"),
            format!("mod m {{ fn b() {{ fn a() {long} }} }}"),
        ] {
            let found = findings(text);
            assert!(found.iter().any(|f| f.starts_with("a.rs:1: `a` has 71 lines")), "{found:?}");
        }
    }

    #[test]
    fn a_long_test_module_is_found_and_is_no_code() {
        let module = format!("fn a() {{}}\n\n#[cfg(test)]\nmod tests {{\n{}}}\n", "\n".repeat(148));
        assert_eq!(
            findings(module.clone()),
            ["a.rs:3: tests of more than 150 lines go to a file `x/tests.rs`"]
        );
        let source = source(module);
        let syntax = Syntax::parse(&source).unwrap_or_default();
        assert_eq!(syntax.code_lines(&source), 2);
    }

    #[test]
    fn code_for_builds_without_tests_is_code() {
        let source = source("#[cfg(not(test))]\nmod a {\n}\n".to_owned());
        assert_eq!(Syntax::parse(&source).unwrap_or_default().code_lines(&source), 3);
    }

    #[test]
    fn a_file_that_does_not_parse_is_a_finding() {
        let found = findings("fn a() {\n".to_owned());
        assert!(found[0].contains("does not parse"), "{found:?}");
    }
}
