//! A text that a person pastes: the file of a client, one entry of it, a server of the catalog, or
//! a manifest. Its form tells which client has written it.

use narthex_model::{
    is_secret_name,
    json::{Node, TextProblem},
};
use serde_json::{Map, Value, json};

use super::{OfClient, Pasted, of_client};
use crate::{
    clients::{Client, clients},
    edit::{EditError, Format},
    rewrite::parse,
    servers::{FoundServer, Target, Text, read_placed},
};

/// A text that was read.
#[derive(Debug)]
pub struct Snippet {
    /// The name of the client whose form the text has; `None` for a form of narthex.
    pub client: Option<&'static str>,
    /// The contents.
    pub taken: Taken,
    /// True if the text has a value that looks like a secret.
    pub has_secret: bool,
}

/// The contents of a text.
#[derive(Debug)]
pub enum Taken {
    /// Servers of a client.
    Servers(Pasted),
    /// One server of the catalog, as it is written.
    Entry(Value),
    /// A manifest: the variables and scopes of a server.
    Manifest(Value),
}

/// The reason why a text is not read.
#[derive(Debug, thiserror::Error)]
pub enum SnippetError {
    /// There is no text.
    #[error("there is no text; paste the entry of a server, as a client writes it")]
    Empty,
    /// The text has no known language.
    #[error("this is neither JSON, TOML nor YAML: {0}; paste the whole entry")]
    Unread(TextProblem),
    /// The text is not of the language of its client.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// A key is there twice.
    #[error("`{0}` is given twice; keep one")]
    Twice(String),
    /// The text has no servers.
    #[error(
        "no server is in this text; paste an entry with `command` or `url`, or the object \
         `mcpServers`, `servers` or `context_servers` of a client"
    )]
    NoServer,
}

/// The name of a server that was pasted without one.
const NAMELESS: &str = "server";
/// The members that only servers of the catalog have.
const OF_CATALOG: [&str; 7] =
    ["id", "image", "script", "config_schema", "default_config", "manifest", "tool_scopes"];
/// The members by which an entry of a client reaches its server.
const TARGETS: [&str; 4] = ["command", "url", "serverUrl", "httpUrl"];
/// Words in texts that may have a secret.
const SUSPECT: [&str; 6] = ["authorization", "cookie", "token", "secret", "key", "password"];

/// Reads a pasted text.
///
/// # Errors
/// When the text has no server, or cannot be read.
pub fn snippet(text: &str) -> Result<Snippet, SnippetError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(SnippetError::Empty);
    }
    match json_of(text) {
        Ok(node) => {
            if let Some(place) = node.keys_given_twice().first() {
                return Err(SnippetError::Twice(place.to_string()));
            }
            of_json(node.to_value())
        }
        Err(problem) => of_other(text, problem),
    }
}

/// True if a text, whatever its form, may have the value of a secret.
#[must_use]
pub fn may_hold_secret(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    SUSPECT.iter().any(|word| text.contains(word))
}

/// The text as JSON, also if it is cut out of an object.
fn json_of(text: &str) -> Result<Node, TextProblem> {
    Node::parse_written(text.as_bytes()).or_else(|problem| {
        let whole = format!("{{{}}}", text.trim_end_matches(','));
        Node::parse_written(whole.as_bytes()).map_err(|_same| problem)
    })
}

fn of_json(root: Value) -> Result<Snippet, SnippetError> {
    let Value::Object(mut root) = root else { return Err(SnippetError::NoServer) };
    // VS Code has its servers one level deeper in its settings, and others below a dotted key.
    if let Some(Value::Object(inner)) = root.get("mcp").cloned()
        && inner.contains_key("servers")
    {
        root = inner;
    }
    if let Some(dotted) = root.keys().find(|key| key.ends_with(".mcpServers")).cloned()
        && let Some(servers) = root.remove(&dotted)
    {
        root.insert("mcpServers".to_owned(), servers);
    }
    for (key, client) in [("servers", "vscode"), ("context_servers", "zed"), ("mcp", "opencode")] {
        if root.get(key).is_some_and(Value::is_object) {
            return of_file(client, &root.into());
        }
    }
    if let Some(Value::Object(servers)) = root.get("mcpServers") {
        let client = client_of(servers);
        return of_file(client, &json!({ "mcpServers": servers }));
    }
    let has = |keys: &[&str]| keys.iter().any(|key| root.contains_key(*key));
    if has(&OF_CATALOG) {
        let is_manifest =
            !has(&["id", "image", "script", "config_schema", "default_config"]) && !has(&TARGETS);
        let manifest = root.get("manifest").cloned();
        return Ok(match (is_manifest, manifest) {
            (true, Some(manifest)) => narthex_own(Taken::Manifest(manifest)),
            (true, None) => narthex_own(Taken::Manifest(root.into())),
            (false, _) => narthex_own(Taken::Entry(root.into())),
        });
    }
    if has(&TARGETS) {
        return of_file_named(NAMELESS, root.into());
    }
    let variables = root.get("env").and_then(Value::as_object);
    if variables.is_some_and(|all| all.values().any(|one| one.get("kind").is_some())) {
        return Ok(narthex_own(Taken::Manifest(root.into())));
    }
    let is_entry = |value: &Value| TARGETS.iter().any(|key| value.get(*key).is_some());
    if !root.is_empty() && root.values().all(is_entry) {
        let client = client_of(&root);
        return of_file(client, &json!({ "mcpServers": root }));
    }
    Err(SnippetError::NoServer)
}

/// The entry of one server, under a name.
fn of_file_named(name: &str, entry: Value) -> Result<Snippet, SnippetError> {
    let servers: Map<String, Value> = std::iter::once((name.to_owned(), entry)).collect();
    let client = client_of(&servers);
    of_file(client, &json!({ "mcpServers": servers }))
}

fn narthex_own(taken: Taken) -> Snippet {
    let has_secret = match &taken {
        Taken::Entry(value) => {
            let values = ["default_config", "env"].into_iter().filter_map(|key| value.get(key));
            let mut values = values.filter_map(Value::as_object).flatten();
            values.any(|(key, value)| {
                is_secret_name(key) && value.as_str().is_some_and(|text| !text.contains("${"))
            })
        }
        Taken::Servers(_) | Taken::Manifest(_) => false,
    };
    Snippet { client: None, taken, has_secret }
}

/// The client that writes `mcpServers` in this way. Without a mark of another one, the variables
/// are those of Claude Code, which is the most common form.
fn client_of(servers: &Map<String, Value>) -> &'static str {
    let has = |key: &str| servers.values().any(|entry| entry.get(key).is_some());
    let text = Value::Object(servers.clone()).to_string();
    let mentions = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if has("httpUrl") {
        "gemini-cli"
    } else if has("serverUrl") {
        "windsurf"
    } else if mentions(&["${env:", "${userHome}", "${workspaceFolder}"]) {
        "cursor"
    } else {
        "claude-code"
    }
}

/// A text that is no JSON: the file of a client in another language.
fn of_other(text: &str, problem: TextProblem) -> Result<Snippet, SnippetError> {
    let begins = |words: &str| text.lines().any(|line| line.starts_with(words));
    let clients =
        [("[mcp_servers", "codex"), ("extensions:", "goose"), ("mcpServers:", "continue")];
    match clients.into_iter().find(|(words, _)| begins(words)) {
        Some((_, client)) => read_as(client, text.as_bytes()),
        None => Err(SnippetError::Unread(problem)),
    }
}

fn of_file(client: &'static str, file: &Value) -> Result<Snippet, SnippetError> {
    read_as(client, file.to_string().as_bytes())
}

/// The servers in the text of a client's file.
fn read_as(id: &'static str, text: &[u8]) -> Result<Snippet, SnippetError> {
    let client = row(id).ok_or(SnippetError::NoServer)?;
    let format = if client.format == Format::Json { Format::Jsonc } else { client.format };
    let document = parse(format, text)?;
    let servers = read_placed(client, &document, "")?;
    if servers.is_empty() {
        return Err(SnippetError::NoServer);
    }
    let has_secret = servers.iter().filter_map(|placed| placed.found.server()).any(is_secret);
    let taken = Taken::Servers(of_client(&OfClient { client, servers }));
    Ok(Snippet { client: Some(client.name.as_str()), taken, has_secret })
}

fn row(id: &str) -> Option<&'static Client> {
    clients().iter().find(|client| client.id == id)
}

/// True if a text of the server looks like a secret.
fn is_secret(server: &FoundServer) -> bool {
    match &server.target {
        Target::Stdio { command, args, env, .. } => {
            command.is_secret()
                || args.iter().any(Text::is_secret)
                || env.values().any(Text::is_secret)
        }
        Target::Remote { url, headers, .. } => {
            url.is_secret() || headers.values().any(Text::is_secret)
        }
    }
}

#[cfg(test)]
mod tests;
