//! The new address of the daemon in the files of clients that reach it over HTTP, after `narthex
//! service port N`.

use std::path::{Path, PathBuf};

use narthex_client::{
    commands::service::{PortChange, Readdressed},
    environment::{home, variable},
};
use narthex_client_files::{
    clients::{Machine, Scope, System},
    file,
    inventory::{Content, FoundFile, look},
    rewrite::parse,
    servers::{Found, Target},
};
use narthex_model::with_causes;

/// Puts the new address into the user's files of clients. A file that cannot be written is named.
pub(crate) fn readdress_all(change: &PortChange) -> Vec<Readdressed> {
    let Some(home) = home(&variable) else { return Vec::new() };
    let machine =
        Machine { system: System::current(), home: &home, folder: &home, variable: &variable };
    let addresses = addresses(change);
    let files = look(&machine, &|client| client.scope == Scope::User);
    let mut done: Vec<PathBuf> = Vec::new();
    let mut results = Vec::new();
    for found in files.iter().filter(|found| has_address(found, &addresses)) {
        if !done.contains(&found.path) {
            done.push(found.path.clone());
            let error = readdress(found, &addresses).err();
            results.push(Readdressed { file: found.path.clone(), error });
        }
    }
    results
}

/// An old address of the daemon, and the new one in its place.
type Readdress = (String, String);

/// The addresses by which clients reach the daemon: by the number and by the name of this machine.
fn addresses(change: &PortChange) -> [Readdress; 2] {
    let named = |url: &str| url.replacen("://127.0.0.1:", "://localhost:", 1);
    let PortChange { old_url, new_url, .. } = change;
    [(old_url.clone(), new_url.clone()), (named(old_url), named(new_url))]
}

/// True if a server of the file has an address of the daemon.
fn has_address(found: &FoundFile, addresses: &[Readdress]) -> bool {
    let Content::Servers(servers) = &found.content else { return false };
    servers.iter().filter_map(Found::server).any(|server| match &server.target {
        Target::Remote { url, .. } => addresses.iter().any(|(old, _)| is_below(url.expose(), old)),
        Target::Stdio { .. } => false,
    })
}

/// True for the endpoints of a daemon.
fn is_below(address: &str, daemon: &str) -> bool {
    let rest = address.strip_prefix(daemon).and_then(|rest| rest.strip_prefix("/mcp"));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']))
}

/// Replaces the address where the file has it, and nothing else.
fn readdress(found: &FoundFile, addresses: &[Readdress]) -> Result<(), String> {
    let told = |error: &dyn std::error::Error| with_causes(error);
    let bytes = file::read(&found.path).map_err(|error| told(&error))?.ok_or("it is gone")?;
    let text = String::from_utf8(bytes.clone()).map_err(|error| told(&error))?;
    let new = addresses.iter().fold(text, |text, (old, new)| with_address(&text, old, new));
    parse(found.client.format, new.as_bytes()).map_err(|error| told(&error))?;
    write(&found.path, &bytes, &new)
}

fn write(path: &Path, before: &[u8], new: &str) -> Result<(), String> {
    file::write_if_unchanged(path, Some(before), new.as_bytes())
        .map(drop)
        .map_err(|error| with_causes(&error))
}

/// The text with another address of the daemon.
fn with_address(text: &str, old: &str, new: &str) -> String {
    let mut written = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(old) {
        let (before, from) = rest.split_at(at);
        let after = &from[old.len()..];
        written.push_str(before);
        // A longer port, and an address without an endpoint, are others.
        let is_endpoint = after.strip_prefix("/mcp").is_some_and(|after| {
            after.starts_with(['/', '?', '"', '\'', '\n', '\r', ' ', ',']) || after.is_empty()
        });
        written.push_str(if is_endpoint { new } else { old });
        rest = after;
    }
    written.push_str(rest);
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_this_machine_is_an_address_as_its_number_is() {
        let [of_number, of_name] = addresses(&PortChange {
            port: std::num::NonZeroU16::new(7720).unwrap(),
            old_url: "https://127.0.0.1:7717".to_owned(),
            new_url: "https://127.0.0.1:7720".to_owned(),
            is_restarted: true,
            listening: None,
        });
        assert_eq!(of_number.0, "https://127.0.0.1:7717");
        assert_eq!(of_name.0, "https://localhost:7717");
        assert_eq!(of_name.1, "https://localhost:7720");
    }

    #[test]
    fn only_endpoints_of_the_daemon_get_the_new_address() {
        let (old, new) = ("http://127.0.0.1:7717", "http://127.0.0.1:7720");
        let text = "{\"a\": \"http://127.0.0.1:7717/mcp\", // http://127.0.0.1:7717\n\
                    \"b\": 'http://127.0.0.1:7717/mcp/p/work?x', \"c\": \"http://127.0.0.1:77170/mcp\",\n\
                    \"d\": \"http://127.0.0.1:7717/mcpx\"}";
        let expected = "{\"a\": \"http://127.0.0.1:7720/mcp\", // http://127.0.0.1:7717\n\
                    \"b\": 'http://127.0.0.1:7720/mcp/p/work?x', \"c\": \"http://127.0.0.1:77170/mcp\",\n\
                    \"d\": \"http://127.0.0.1:7717/mcpx\"}";
        assert_eq!(with_address(text, old, new), expected);
        assert!(is_below("http://127.0.0.1:7717/mcp", old));
        assert!(is_below("http://127.0.0.1:7717/mcp/docs", old));
        assert!(!is_below("http://127.0.0.1:77170/mcp", old));
        assert!(!is_below("http://127.0.0.1:7717/api", old));
    }
}
