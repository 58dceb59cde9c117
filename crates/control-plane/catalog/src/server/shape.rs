//! The shape of a server: a URL, or a program, a script or an image to start.

use narthex_model::{
    ClientVariable, VariablePlace,
    json::{Node, Place},
    package::unpinned,
};
use serde::Serialize;

use super::{
    confinement::{self, ProgramConfinement},
    url,
};
use crate::{
    fault::FaultCode,
    reader::{Object, Reader},
    schema::word,
    template::{Source, Template},
};

/// The shape of a server: exactly one (X-M9).
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Shape {
    /// Streamable HTTP, or the older HTTP+SSE if the server speaks only that.
    Http(HttpShape),
    /// HTTP+SSE of revision 2024-11-05.
    Sse(HttpShape),
    /// A child process.
    Stdio(StdioShape),
}

/// A server that runs elsewhere.
#[derive(Clone, PartialEq, Serialize)]
pub struct HttpShape {
    /// May hold placeholders (O3).
    pub(crate) url: Template,
}

/// A server that narthex starts.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum StdioShape {
    /// A program with its arguments.
    Command(CommandShape),
    /// A container image.
    Image {
        /// The image's OCI reference.
        image: String,
    },
    /// A script that the daemon stores (O95).
    Script {
        /// The script's name.
        script: String,
    },
}

/// A program with its arguments.
#[derive(Clone, PartialEq, Serialize)]
pub struct CommandShape {
    /// The program, looked up in PATH.
    pub command: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) args: Vec<Template>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cwd: Option<Template>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) confinement: Option<Box<ProgramConfinement>>,
}

impl std::fmt::Debug for HttpShape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // An address can hold a password.
        f.debug_struct("HttpShape").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for CommandShape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (command, args) = (&self.command, self.args.len());
        f.debug_struct("CommandShape").field("command", command).field("args", &args).finish()
    }
}

impl Shape {
    /// True if configuration travels in headers.
    #[must_use]
    pub fn is_http(&self) -> bool {
        matches!(self, Self::Http(_) | Self::Sse(_))
    }
}

/// The transport named in an entry.
#[derive(Clone, Copy, PartialEq)]
enum Transport {
    Http,
    Sse,
    Stdio,
}

const TRANSPORTS: [(&str, Transport); 3] =
    [("http", Transport::Http), ("sse", Transport::Sse), ("stdio", Transport::Stdio)];
const KINDS: [(&str, Transport); 2] =
    [("stdio", Transport::Stdio), ("remote_oauth", Transport::Http)];
/// The fields of which an entry has one.
const SHAPES: [&str; 4] = ["url", "command", "image", "script"];
/// X-E3, X-E5.
const IMAGE_MAX: usize = 512;
const ARGS_MAX: usize = 32;
const ARG_MAX: usize = 256;

pub(super) fn read(reader: &mut Reader, object: &Object<'_>) -> Option<Shape> {
    reader.excluding(object, "type", "transport");
    let said = [("type", TRANSPORTS.as_slice()), ("transport", &TRANSPORTS), ("kind", &KINDS)]
        .map(|(key, known)| Some((key, word(reader, object, key, known)?)));
    let given: Vec<&str> = SHAPES.into_iter().filter(|key| object.get(key).is_some()).collect();
    let key = match given.as_slice() {
        [key] => *key,
        [] => {
            reader.fault(
                &object.at,
                FaultCode::FieldMissing,
                "the entry does not say how the server is reached",
                "add `url`, `command`, `image` or `script`",
            );
            return None;
        }
        [_, others @ ..] => {
            for key in others {
                let message = "the server is reached in more than one way";
                let remedy = format!("keep one of `{}`", given.join("`, `"));
                reader.fault(&object.at.key(key), FaultCode::FieldsExclude, message, remedy);
            }
            return None;
        }
    };
    for (word, transport) in said.iter().flatten() {
        if (*transport == Transport::Stdio) == (key == "url") {
            let message = format!("`{word}` and `{key}` contradict each other");
            let remedy = format!("correct `{word}`, or give the server another way than `{key}`");
            reader.fault(&object.at.key(word), FaultCode::FieldsExclude, message, remedy);
        }
    }
    let is_sse = said.iter().flatten().any(|(_, transport)| *transport == Transport::Sse);
    for key in ["args", "cwd", "confinement"].iter().filter(|_| key != "command") {
        if object.get(key).is_some() {
            let message = format!("`{key}` belongs to a `command`");
            reader.fault(&object.at.key(key), FaultCode::FieldsExclude, message, "remove it");
        }
    }
    one(reader, object, key, is_sse)
}

fn one(reader: &mut Reader, object: &Object<'_>, key: &str, is_sse: bool) -> Option<Shape> {
    let at = object.at.key(key);
    match key {
        "url" => {
            let url = reader.template(object.get(key)?, &at)?;
            url::check(reader, &at, &url);
            let http = HttpShape { url };
            Some(if is_sse { Shape::Sse(http) } else { Shape::Http(http) })
        }
        "command" => command(reader, object).map(|shape| Shape::Stdio(StdioShape::Command(shape))),
        "image" => {
            let image = plain(reader, object, key, IMAGE_MAX)?;
            if image.contains(char::is_whitespace) || image.starts_with('-') {
                let message = "this is not a reference of an image";
                reader.invalid(&at, message, "write one such as `ghcr.io/org/server:1.2.0`");
            }
            Some(Shape::Stdio(StdioShape::Image { image }))
        }
        _ => {
            let script = plain(reader, object, key, 64)?;
            let is_fine =
                |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-');
            if !script.chars().all(is_fine) {
                let message = "this is not a name of a script";
                reader.invalid(&at, message, "use a-z, 0-9, `_` and `-`");
            }
            Some(Shape::Stdio(StdioShape::Script { script }))
        }
    }
}

/// A text without placeholders, not empty and not too long.
fn plain(reader: &mut Reader, object: &Object<'_>, key: &str, longest: usize) -> Option<String> {
    let text = reader.text(object, key)?;
    let at = object.at.key(key);
    if text.is_empty() || text.len() > longest {
        let message = format!("the text is empty or longer than {longest} bytes");
        reader.invalid(&at, message, "correct its length");
    }
    if text.contains("${") {
        let (message, remedy) = match ClientVariable::find(text) {
            Some(variable) => (variable.to_string(), variable.remedy(VariablePlace::Text)),
            None => (
                "a placeholder is not possible here".to_owned(),
                "write the text itself".to_owned(),
            ),
        };
        reader.fault(&at, FaultCode::PlaceholderNotAllowed, message, remedy);
    }
    Some(text.to_owned())
}

fn command(reader: &mut Reader, object: &Object<'_>) -> Option<CommandShape> {
    let command = plain(reader, object, "command", 64);
    let is_fine = |c: char| c.is_ascii_alphanumeric() || "_./-".contains(c);
    // A placeholder has a fault of its own already.
    let is_line = |command: &String| !command.contains("${") && !command.chars().all(is_fine);
    if command.as_ref().is_some_and(is_line) {
        // X-E4: no shell ever reads it, but a person might paste a whole line.
        let message = "this is not only the name of a program";
        reader.invalid(&object.at.key("command"), message, "put its arguments into `args`");
    }
    let mut args = Vec::new();
    for (at, node) in reader.list(object, "args").unwrap_or_default() {
        args.extend(argument(reader, node, &at));
    }
    if args.len() > ARGS_MAX {
        let message = format!("there are more than {ARGS_MAX} arguments");
        reader.invalid(&object.at.key("args"), message, "use fewer, or a script");
    }
    let cwd = object.get("cwd").and_then(|node| argument(reader, node, &object.at.key("cwd")));
    let confinement = confinement::read(reader, object).map(Box::new);
    let written: Vec<_> = args.iter().map(Template::written).collect();
    for package in unpinned(command.as_deref().unwrap_or_default(), &written) {
        reader.warn(&object.at.key("args"), package.to_string());
    }
    Some(CommandShape { command: command?, args, cwd, confinement })
}

/// Reads an argument. Other processes can read it, and a run's value could become an option: so
/// only values that the daemon itself knows may be filled in.
pub(super) fn argument(reader: &mut Reader, node: &Node, at: &Place) -> Option<Template> {
    let template = reader.template(node, at)?;
    let is_own = |source| matches!(source, Source::Runtime | Source::Runner);
    for placeholder in template.placeholders().filter(|p| !is_own(p.source)) {
        let message = format!("`${{{placeholder}}}` is not possible in an argument");
        let remedy = "pass the value in `env`, as a variable of the program";
        reader.fault(at, FaultCode::PlaceholderNotAllowed, message, remedy);
    }
    if template.written().len() > ARG_MAX {
        let message = format!("the argument is longer than {ARG_MAX} bytes");
        reader.invalid(at, message, "shorten it");
    }
    Some(template)
}
