//! One tool with its arguments, and a call of it to paste.

use std::path::Path;

use narthex_model::{
    Alias,
    command::{CommandLine, narthex},
};
use serde_json::{Value, json};

use super::schema::{Argument, InputSchema};
use crate::{arguments, output::harmless, peer::Tool};

/// A tool as `narthex tools ALIAS TOOL` shows it.
#[derive(Debug)]
pub(super) struct Shown<'t> {
    alias: &'t Alias,
    tool: &'t Tool,
    arguments: Vec<Argument>,
    /// A call with a value for each required argument.
    pub(super) example: CommandLine,
}

impl<'t> Shown<'t> {
    /// `config` is the file of the server, if it runs in this process.
    pub(super) fn new(alias: &'t Alias, tool: &'t Tool, config: Option<&Path>) -> Self {
        let schema = InputSchema::new(tool.input_schema());
        // The tool follows, so the words here are no whole command.
        let start = "call {}";
        let call = narthex(start, &[alias]);
        let call = match config {
            Some(file) => call.option("--config", file.display()),
            None => call,
        };
        let given = arguments::words(&schema.example(), tool.input_schema());
        let words = std::iter::once(tool.name.clone()).chain(given);
        let example = match tool.name.starts_with('-') {
            true => call.passing_on(words),
            false => call.words(words),
        };
        Self { alias, tool, arguments: schema.arguments(), example }
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "alias": self.alias,
            "tool": self.tool.definition,
            "arguments": self.arguments,
            "example": self.example.to_string(),
        })
    }

    /// The tool for a person. Texts of the server are indented, so that none of them looks like a
    /// line of narthex.
    pub(super) fn page(&self) -> String {
        let mut lines = vec![format!("{} {}", self.alias, harmless(&self.tool.name))];
        lines.extend(indented(self.tool.description(), "  "));
        let is_without = self.arguments.is_empty();
        let title = if is_without { "The tool has no arguments." } else { "Arguments:" };
        lines.extend([String::new(), title.to_owned()]);
        for one in &self.arguments {
            lines.push(format!("  {}  {}", harmless(&one.name), harmless(&about(one))));
            lines.extend(indented(&one.description, "      "));
        }
        lines.extend([String::new(), "Example:".to_owned(), format!("  {}", self.example)]);
        lines.join("\n")
    }
}

/// The type, if the argument is required, and its default.
fn about(argument: &Argument) -> String {
    let is_required = if argument.is_required { "required" } else { "optional" };
    let default = argument.default.as_ref().map(|value| format!(", default {value}"));
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
}
