//! One tool with its arguments, and a call of it to paste.

use std::path::Path;

use narthex_client::terminal::is_harmful;
use narthex_model::{
    Alias,
    command::{CommandLine, narthex},
};
use serde_json::{Value, json};

use super::schema::{Argument, Example, InputSchema, literal};
use crate::{arguments, output::harmless, peer::Tool};

/// A tool as `narthex tools ALIAS TOOL` shows it.
#[derive(Debug)]
pub(super) struct Shown<'t> {
    alias: &'t Alias,
    tool: &'t Tool,
    config: Option<&'t Path>,
    arguments: Vec<Argument>,
    /// True if the schema takes arguments that it does not name.
    is_open: bool,
    /// A call with a value for each required argument.
    pub(super) example: CommandLine,
    /// False if a value of the example may not fit.
    is_fitting: bool,
}

impl<'t> Shown<'t> {
    /// `config` is the file of the server, if it runs in this process.
    pub(super) fn new(alias: &'t Alias, tool: &'t Tool, config: Option<&'t Path>) -> Self {
        let schema = InputSchema::new(tool.input_schema());
        let Example { values, is_fitting } = schema.example();
        let given = arguments::words(&values, tool.input_schema());
        // The tool follows, so the words here are no whole command.
        let start = "call {}";
        let words = std::iter::once(tool.name.clone()).chain(given).collect();
        let example = with_words(narthex(start, &[alias]), config, words);
        let (arguments, is_open) = (schema.arguments(), schema.is_open());
        Self { alias, tool, config, arguments, is_open, example, is_fitting }
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "alias": self.alias,
            "tool": self.tool.definition,
            "arguments": self.arguments,
            "example": self.example.to_string(),
            "is_example_fitting": self.is_fitting,
        })
    }

    /// The tool for a person. Texts of the server are indented, so that none of them looks like a
    /// line of narthex.
    pub(super) fn page(&self) -> String {
        let mut lines = vec![format!("{} {}", self.alias, harmless(&self.tool.name))];
        lines.extend(indented(self.tool.description(), "  "));
        lines.extend([String::new(), harmless(&self.title())]);
        for one in &self.arguments {
            lines.push(format!("  {}  {}", harmless(&one.name), harmless(&about(one))));
            lines.extend(indented(&one.description, "      "));
        }
        lines.push(String::new());
        lines.extend(self.call());
        lines.join("\n")
    }

    /// The call to paste, below its title.
    fn call(&self) -> Vec<String> {
        if !self.is_typed() {
            let text = "No command can be pasted for it: its name has characters that a terminal \
                        does not show.";
            return vec![text.to_owned()];
        }
        let title = match self.is_fitting {
            true => "Example:",
            false => "Example, of which a value is shortened or may not fit:",
        };
        vec![title.to_owned(), format!("  {}", harmless(&self.example.to_string()))]
    }

    /// True if a person can type the name of the tool, or paste it from a terminal.
    fn is_typed(&self) -> bool {
        !self.tool.name.contains(|c: char| c.is_control() || is_harmful(c))
    }

    /// The line above the arguments, or in place of them.
    fn title(&self) -> String {
        match (self.arguments.is_empty(), self.is_open) {
            (false, _) => "Arguments:".to_owned(),
            (true, false) => "The tool has no arguments.".to_owned(),
            (true, true) => {
                // The tool follows, so the words here are no whole command.
                let start = "tools --json {}";
                let words = self.is_typed().then(|| self.tool.name.clone());
                let words = words.into_iter().collect();
                let whole = with_words(narthex(start, &[self.alias]), self.config, words);
                format!("The tool names no arguments; `{whole}` prints its schema.")
            }
        }
    }
}

/// A command about a server of this file, with the words behind it.
fn with_words(command: CommandLine, config: Option<&Path>, words: Vec<String>) -> CommandLine {
    let command = match config {
        Some(file) => command.option("--config", file.display()),
        None => command,
    };
    match words.first().is_some_and(|first| first.starts_with('-')) {
        true => command.passing_on(words),
        false => command.words(words),
    }
}

/// The type, if the argument is required, and its default.
fn about(argument: &Argument) -> String {
    let is_required = if argument.is_required { "required" } else { "optional" };
    let default = argument.default.as_ref().map(|value| format!(", default {}", literal(value)));
    format!("{}, {is_required}{}", argument.kind, default.unwrap_or_default())
}

/// The lines of a server's text, each behind this space.
fn indented(text: &str, space: &str) -> Vec<String> {
    let lines = text.trim().lines().map(|line| format!("{space}{}", harmless(line)));
    lines.map(|line| line.trim_end().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(definition: &Value, name: &str) -> String {
        let tool = Tool { name: name.to_owned(), definition: definition.clone() };
        Shown::new(&Alias::new("git").unwrap(), &tool, None).page()
    }

    #[test]
    fn a_tool_is_shown_with_its_arguments_and_a_call_to_paste() {
        let definition = json!({
            "description": "Shows commits.\nThe newest are first.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "count": { "type": "integer", "default": 10 },
                    "path": { "type": "string", "description": "The folder of the repository" },
                },
                "required": ["path"],
            },
        });
        let expected = "git git_log\n  Shows commits.\n  The newest are first.\n\nArguments:\n  \
                        path  string, required\n      The folder of the repository\n  \
                        count  integer, optional, default 10\n\nExample:\n  \
                        narthex call git git_log path=text";
        assert_eq!(page(&definition, "git_log"), expected);
        let bare = "git now\n\nThe tool has no arguments.\n\nExample:\n  narthex call git now";
        assert_eq!(page(&json!({}), "now"), bare);
    }

    /// A schema can take arguments that it does not name, and ask for values that no example has.
    #[test]
    fn a_page_does_not_say_more_than_the_schema() {
        let named = |schema: Value| page(&json!({ "inputSchema": schema }), "now");
        let one = json!({ "properties": { "a": { "type": "boolean" } }, "required": ["a"] });
        let bare = "git now\n\nThe tool has no arguments.\n\nExample:\n  narthex call git now";
        for schema in [
            json!({ "type": "object" }),
            json!({ "type": "object", "properties": {}, "additionalProperties": false }),
            json!({ "allOf": [{ "type": "object" }] }),
        ] {
            assert_eq!(named(schema.clone()), bare, "{schema}");
        }
        let open = "git now\n\nThe tool names no arguments; `narthex tools --json git now` prints \
                    its schema.\n\nExample:\n  narthex call git now";
        for schema in [
            json!({ "anyOf": [one] }),
            json!({ "additionalProperties": { "type": "string" } }),
            json!({ "$ref": "https://example.com/schema" }),
        ] {
            assert_eq!(named(schema.clone()), open, "{schema}");
        }
        let known = "git now\n\nArguments:\n  a  boolean, required\n\nExample:\n  \
                     narthex call git now a=true";
        for schema in [
            json!({ "allOf": [{ "required": ["a"] }, one] }),
            json!({
                "$ref": "#/$defs/next",
                "$defs": { "next": { "$ref": "#/$defs/one%20x" }, "one x": one },
            }),
        ] {
            assert_eq!(named(schema.clone()), known, "{schema}");
        }
        let bare = "git now\n\nArguments:\n  a  any, required\n\nExample:\n  \
                    narthex call git now a=text";
        assert_eq!(named(json!({ "required": ["a"] })), bare);
        let pattern = json!({ "properties": { "a": { "pattern": "^[0-9]$" } }, "required": ["a"] });
        let unfit = "\n\nExample, of which a value is shortened or may not fit:\n  \
                     narthex call git now a=text";
        assert!(named(pattern).ends_with(unfit));
    }

    /// S22: a server's texts are no lines of narthex, and its names are no flags or shell code.
    #[test]
    fn s22_texts_of_a_server_stay_texts() {
        let schema = json!({
            "properties": { "a": { "type": "string", "examples": ["$(reboot)"] } },
            "required": ["a"],
        });
        let definition = json!({
            "description": "Useful.\nExample:\n  \u{1b}[2Kreboot",
            "inputSchema": schema,
        });
        let page = page(&definition, "--config");
        assert!(page.contains("\n  Example:\n    \u{fffd}[2Kreboot\n"), "{page}");
        assert!(page.ends_with("narthex call git -- --config 'a=$(reboot)'"), "{page}");
    }

    /// A printed call has no character that a terminal changes, or there is none to paste.
    #[test]
    fn a_call_can_be_pasted_from_a_terminal() {
        let schema = json!({
            "properties": { "a": { "type": "string", "default": "x\u{202e}y" } },
            "required": ["a"],
        });
        let definition = json!({ "inputSchema": schema });
        let typed = page(&definition, "now");
        let end = r#"  narthex call git now "a:=\"x\\u202ey\"""#;
        assert!(typed.ends_with(end), "{typed}");
        for name in ["no\u{202e}w", "no\nw"] {
            let untyped = page(&definition, name);
            let end = "\n\nNo command can be pasted for it: its name has characters that a \
                       terminal does not show.";
            assert!(untyped.ends_with(end), "{untyped}");
        }
    }
}
