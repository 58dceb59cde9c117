//! Entries of a run's sockets, for clients that start programs.

use std::path::Path;

use narthex_runs::OpenSockets;

use crate::shapes::{SocatEntries, SocatEntry};

/// Client entries that start one program per server. The program only copies bytes, and needs no
/// secret in its environment (X-M47).
pub(super) fn entries(sockets: &OpenSockets) -> SocatEntries {
    let entry = |path: &Path| SocatEntry {
        command: "socat",
        args: ["-".to_owned(), format!("UNIX-CONNECT:{}", socat_text(path))],
        env: [].into_iter().collect(),
    };
    let servers = sockets.servers.iter().map(|(alias, path)| (alias.to_string(), entry(path)));
    SocatEntries {
        mcp_servers: [("narthex".to_owned(), entry(&sockets.aggregated))].into(),
        mcp_servers_by_alias: servers.collect(),
    }
}

/// A path in socat's syntax, with its special characters escaped.
fn socat_text(path: &Path) -> String {
    let mut text = String::new();
    for letter in path.to_string_lossy().chars() {
        if letter.is_ascii_punctuation() && !matches!(letter, '/' | '.' | '-' | '_') {
            text.push('\\');
        }
        text.push(letter);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// X-M47: special characters of socat are plain text in a path.
    #[test]
    fn x_m47_special_characters_of_socat_are_escaped_in_a_path() {
        for (path, text) in [
            ("/run/user/1000/narthex-0a/x_1.sock", "/run/user/1000/narthex-0a/x_1.sock"),
            ("/a,b/c:d!!e.sock", r"/a\,b/c\:d\!\!e.sock"),
            ("/a b/é.sock", "/a b/é.sock"),
        ] {
            assert_eq!(socat_text(Path::new(path)), text);
        }
    }
}
