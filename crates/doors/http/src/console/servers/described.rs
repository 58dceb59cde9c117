//! A server as a person describes it, and the entry of the settings from it.

use narthex_client_files::catalog::may_hold_secret;
use serde_json::{Map, Value, json};

/// A server with the name that its description has.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Described {
    pub(super) name: Option<String>,
    /// The entry as JSON.
    pub(super) entry: String,
}

/// A refused text, by the field that has it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refused {
    Server(String),
    Variables(String),
}

/// An entry whose text is not written yet.
type Entry = Map<String, Value>;

/// Reads a command line, an address, or an entry as JSON, and the variables for it.
pub(super) fn described(server: &str, variables: &str) -> Result<Described, Refused> {
    let server = server.trim();
    let (name, mut entry) = match server {
        "" => return Err(Refused::Server("Write a command, an address or an entry.".to_owned())),
        json if json.starts_with('{') => pasted(json).map_err(Refused::Server)?,
        url if is_address(url) => (None, address(url).map_err(Refused::Server)?),
        line => (None, program(line).map_err(Refused::Server)?),
    };
    let member = if entry.contains_key("url") { "headers" } else { "env" };
    for place in ["env", "headers"] {
        let given = entry.get(place).and_then(Value::as_object);
        for (key, value) in given.into_iter().flatten() {
            open(key, value.as_str().unwrap_or_default()).map_err(Refused::Server)?;
        }
    }
    let read = pairs(variables).map_err(Refused::Variables)?;
    if !read.is_empty() {
        let given = entry.entry(member).or_insert_with(|| json!({}));
        if let Some(given) = given.as_object_mut() {
            given.extend(read);
        }
    }
    Ok(Described { name, entry: Value::Object(entry).to_string() })
}

fn is_address(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    text.starts_with("http://") || text.starts_with("https://")
}

fn address(url: &str) -> Result<Entry, String> {
    if url.contains(char::is_whitespace) {
        return Err("An address starts no program: nothing can follow it.".to_owned());
    }
    Ok(object(json!({ "transport": "http", "url": url })))
}

/// The entry of a program with its arguments, as a shell reads them.
fn program(line: &str) -> Result<Entry, String> {
    let Some(words) = shlex::split(line) else {
        return Err("A quotation mark is not closed: close it, or take it out.".to_owned());
    };
    let Some((command, args)) = words.split_first() else {
        return Err("Write the program first, then its arguments.".to_owned());
    };
    if command.contains('=') {
        return Err("A variable is in front of the program: write it below.".to_owned());
    }
    if command.contains('/') && !command.starts_with(['/', '$']) {
        return Err("The path of the program is relative, and the daemon runs in another folder: \
                    write the whole path."
            .to_owned());
    }
    Ok(object(json!({ "transport": "stdio", "command": command, "args": args })))
}

/// The entry of a pasted text: one entry, or a whole file with one server.
fn pasted(text: &str) -> Result<(Option<String>, Entry), String> {
    let read: Entry = serde_json::from_str(text).map_err(|error| {
        format!("This is no JSON: {error}. Paste the text from `{{` to the last `}}`.")
    })?;
    let inner = read.get("mcp").and_then(|mcp| mcp.get("servers"));
    let servers = read.get("mcpServers").or_else(|| read.get("servers")).or(inner);
    let (name, mut entry) = match servers {
        None => (None, read),
        Some(servers) => {
            let all = servers.as_object().cloned().unwrap_or_default();
            let count = all.len();
            let mut all = all.into_iter();
            match (all.next(), all.next()) {
                (Some((name, Value::Object(entry))), None) => (Some(name), entry),
                _ => {
                    return Err(format!("This text has {count} servers: paste one of them alone."));
                }
            }
        }
    };
    if !entry.contains_key("transport") {
        let kind = entry.remove("type");
        let transport = match kind.as_ref().and_then(Value::as_str) {
            Some("sse") => "sse",
            Some("stdio") => "stdio",
            Some(_) => "http",
            None if entry.contains_key("url") => "http",
            None => "stdio",
        };
        entry.insert("transport".to_owned(), transport.into());
    }
    Ok((name, entry))
}

/// The variables, or the headers: `NAME=value`, one a line.
fn pairs(text: &str) -> Result<Entry, String> {
    let mut all = Map::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let pair = line.split_once('=').map(|(key, value)| (key.trim(), value.trim()));
        let Some((key, value)) = pair.filter(|(key, _)| !key.is_empty()) else {
            return Err("A line is no `NAME=value`: write one pair a line.".to_owned());
        };
        open(key, value)?;
        all.insert(key.to_owned(), value.into());
    }
    Ok(all)
}

/// Refuses a value that looks like a secret, since the settings are plain text.
fn open(key: &str, value: &str) -> Result<(), String> {
    if value.is_empty() || value.contains("${") || !may_hold_secret(key) {
        return Ok(());
    }
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    let name: String = key.chars().map(letter).collect();
    Err(format!(
        "The value of {key} looks like a secret, and the settings are plain text. Write \
         {key}=${{secret:{name}}}, and set {name} on the page Secrets."
    ))
}

fn object(value: Value) -> Entry {
    match value {
        Value::Object(entry) => entry,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(server: &str, variables: &str) -> Value {
        serde_json::from_str(&described(server, variables).unwrap().entry).unwrap()
    }

    /// E142: a command, an address and a pasted entry become entries.
    #[test]
    fn e142_descriptions_become_entries() {
        let run = json!({ "transport": "stdio", "command": "npx", "args": ["-y", "a b"] });
        assert_eq!(entry("npx -y 'a b'", ""), run);
        let url = "https://docs.example.com/mcp";
        let headers = json!({ "X-Team": "${secret:TEAM}" });
        let http = json!({ "transport": "http", "url": url, "headers": headers });
        assert_eq!(entry(url, "X-Team=${secret:TEAM}\n\n"), http);
        let text = r#"{"mcpServers":{"time":{"type":"stdio","command":"uvx","env":{"A":"1"}}}}"#;
        let read = described(text, "B=2").unwrap();
        assert_eq!(read.name.as_deref(), Some("time"));
        let both = json!({ "transport": "stdio", "command": "uvx", "env": { "A": "1", "B": "2" } });
        assert_eq!(serde_json::from_str::<Value>(&read.entry).unwrap(), both);
        assert_eq!(entry(r#"{"url":"http://a"}"#, "")["transport"], "http");
    }

    /// S27: a refusal names the key, and never repeats the value.
    #[test]
    fn s27_values_that_look_like_secrets_are_refused_and_not_repeated() {
        let text = r#"{"command":"a","env":{"API_KEY":"canary-1"}}"#;
        for (server, variables) in [("a", "api-token=canary-1"), (text, "")] {
            let (Refused::Server(fault) | Refused::Variables(fault)) =
                described(server, variables).unwrap_err();
            assert!(fault.contains("${secret:AP") && !fault.contains("canary-1"), "{fault}");
        }
        assert!(described("a", "API_KEY=${secret:API_KEY}").is_ok());
    }

    #[test]
    fn texts_that_are_no_server_are_refused() {
        let two = r#"{"servers":{"a":{},"b":{}}}"#;
        let texts = ["", "  ", "{", two, "npx 'a", "A=1 npx", "./a", "http://a b"];
        for text in texts {
            assert!(matches!(described(text, ""), Err(Refused::Server(_))), "{text}");
        }
        assert!(matches!(described("a", "b"), Err(Refused::Variables(_))));
    }
}
