//! Commands that the program prints are built by `narthex_model::command`, never written out.
//!
//! A command in a string lacks the workspace, the data folder and the quotes that make it work when
//! a reader pastes it. Help (attributes of the command line) and comments may name commands.

use std::ops::RangeInclusive;

use proc_macro2::{TokenStream, TokenTree};

use super::Finding;
use super::source::Source;
use super::syntax::Syntax;

/// The file that declares the command line.
const COMMAND_LINE: &str = "crates/command/narthex/src/cli.rs";
/// The builder itself, the search for commands that no model may read, and programs that print
/// nothing of the product's.
const EXEMPT: [&str; 4] = [
    "crates/words/model/src/command.rs",
    "crates/words/model/src/model_text.rs",
    "crates/dev/testkit/",
    "xtask/",
];
/// Attributes whose texts are printed.
const PRINTED: &str = "error";

/// Literals of a source that write a command out.
pub(super) fn check(source: &Source, syntax: &Syntax, commands: &[String]) -> Vec<Finding> {
    if source.is_test() || EXEMPT.iter().any(|path| source.path.starts_with(path)) {
        return Vec::new();
    }
    let Ok(tokens) = source.text.parse::<TokenStream>() else { return Vec::new() };
    let mut findings = Vec::new();
    walk(tokens, &mut |line, text| {
        let is_test =
            syntax.test_items().iter().any(|lines: &RangeInclusive<_>| lines.contains(&line));
        if let Some(command) = command_in(text, commands).filter(|_| !is_test) {
            let message = format!(
                "build `narthex {command} …` with `narthex_model::command::narthex`, so that it \
                 works when it is pasted"
            );
            findings.push(Finding::at(source, line, message));
        }
    });
    findings
}

/// The commands that the command line declares, as they are typed.
pub(super) fn declared(sources: &[Source]) -> Vec<String> {
    let text = sources.iter().find(|source| source.path == COMMAND_LINE).map(|one| &*one.text);
    let file = text.and_then(|text| syn::parse_file(text).ok());
    let items = file.into_iter().flat_map(|file| file.items);
    let variants = items.filter_map(|item| match item {
        syn::Item::Enum(item) if item.ident == "Command" => Some(item.variants),
        _ => None,
    });
    variants.flatten().map(|variant| kebab(&variant.ident.to_string())).collect()
}

fn kebab(name: &str) -> String {
    let mut kebab = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !kebab.is_empty() {
            kebab.push('-');
        }
        kebab.push(c.to_ascii_lowercase());
    }
    kebab
}

/// Visits each string literal with its line, apart from those of attributes that are not printed.
fn walk(tokens: TokenStream, visit: &mut impl FnMut(usize, &str)) {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(punct) if punct.as_char() == '#' => {
                let is_inner =
                    matches!(tokens.peek(), Some(TokenTree::Punct(next)) if next.as_char() == '!');
                if is_inner {
                    tokens.next();
                }
                let is_hidden = matches!(tokens.peek(), Some(TokenTree::Group(group))
                    if !is_printed(&group.stream()));
                if is_hidden {
                    tokens.next();
                }
            }
            TokenTree::Group(group) => walk(group.stream(), visit),
            TokenTree::Literal(literal) => {
                let line = literal.span().start().line;
                if let Ok(text) = syn::parse_str::<syn::LitStr>(&literal.to_string()) {
                    visit(line, &text.value());
                }
            }
            TokenTree::Punct(_) | TokenTree::Ident(_) => {}
        }
    }
}

fn is_printed(attribute: &TokenStream) -> bool {
    let first = attribute.clone().into_iter().next();
    matches!(first, Some(TokenTree::Ident(name)) if name == PRINTED)
}

/// The command that a text writes out.
fn command_in<'c>(text: &str, commands: &'c [String]) -> Option<&'c str> {
    let opening = "narthex ";
    text.match_indices(opening).find_map(|(at, _)| {
        let is_word = !text[..at].ends_with(|c: char| c.is_alphanumeric() || "-_/".contains(c));
        let rest = &text[at + opening.len()..];
        let begins = |word: &&String| {
            rest.strip_prefix(word.as_str()).is_some_and(|after| {
                !after.starts_with(|c: char| c.is_alphanumeric() || "-_:/".contains(c))
            })
        };
        commands.iter().filter(|_| is_word).find(begins).map(String::as_str)
    })
}

#[cfg(test)]
mod tests {
    use super::super::source::Source;
    use super::super::syntax::Syntax;
    use super::{check, declared};

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.to_owned(), text: text.to_owned() }
    }

    fn found(path: &str, text: &str) -> Vec<String> {
        let source = source(path, text);
        let commands = ["up", "secrets", "env-bindings"].map(str::to_owned);
        let syntax = Syntax::parse(&source).ok().unwrap();
        check(&source, &syntax, &commands).into_iter().map(|finding| finding.place).collect()
    }

    /// D36.
    #[test]
    fn a_command_written_as_text_is_found_in_all_printed_strings() {
        for text in [
            "fn a() { b(\"set it with `narthex secrets set X`\") }",
            "fn a() { println!(\"run narthex up\") }",
            "const A: &str = \"narthex env-bindings list\";",
            "#[error(\"start it with `narthex up`\")] struct A;",
            "fn a() { format!(\"{}\", b(r\"narthex up\")) }",
        ] {
            assert_eq!(found("crates/a/src/lib.rs", text), ["crates/a/src/lib.rs:1"], "{text}");
        }
    }

    #[test]
    fn comments_help_names_and_tests_are_left_alone() {
        for text in [
            "/// See `narthex up`.\nfn a() {}",
            "#[command(after_help = \"narthex secrets set X\")] struct A;",
            "fn a() { b(\"secrets set {}\", \"narthex upholds\", \"narthex up: busy\") }",
            "fn a() { b(\"narthex itself\", \"/opt/narthex up\") }",
            "#[cfg(test)]\nmod tests { fn a() { b(\"narthex up\") } }",
        ] {
            assert_eq!(found("crates/a/src/lib.rs", text), Vec::<String>::new(), "{text}");
        }
        let text = "fn a() { b(\"narthex up\") }";
        assert_eq!(found("crates/a/tests/it/main.rs", text), Vec::<String>::new());
        assert_eq!(found("crates/words/model/src/command.rs", text), Vec::<String>::new());
    }

    #[test]
    fn commands_are_read_from_the_command_line_enum() {
        let text = "enum Command { Up(A), EnvBindings(B) } enum Other { C }";
        let declared = declared(&[source(super::COMMAND_LINE, text)]);
        assert_eq!(declared, ["up", "env-bindings"]);
    }
}
