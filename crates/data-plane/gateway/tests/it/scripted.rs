//! Servers as shell scripts, which behave as no good server behaves.

use narthex_model::{ServerDefinition, StdioTarget, Target};
use narthex_registry::config::Entry;

use super::world::alias;

/// Answers the handshake and the lists, and answers `{}` to other requests. `$1` runs first on each
/// line, and may `continue`. The script notes its process id in `$PIDS`.
const SERVER: &str = r#"
echo $$ >> "$PIDS"
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
while read -r line; do
  id=${line#*'"id":'}; id=${id%%[,\}]*}
  eval "$1"
  case $line in
    *'"method":"server/discover"'*)
      printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id" ;;
    *'"method":"initialize"'*) answer '{"protocolVersion":"2025-11-25","capabilities":
      {"tools":{},"logging":{},"resources":{"subscribe":true}},
      "serverInfo":{"name":"script","version":"1"}}' ;;
    *'"method":"tools/list"'*)
      answer '{"tools":[{"name":"act","inputSchema":{"type":"object"}}]}' ;;
    *'"method":"resources/list"'*) answer '{"resources":[{"uri":"test://a","name":"a"}]}' ;;
    *'"method":"resources/templates/list"'*) answer '{"resourceTemplates":[]}' ;;
    *'"method":"notifications/'*|*'"result":'*|*'"error":'*) ;;
    *) answer '{}' ;;
  esac
done
"#;

/// A folder in which scripts note their process ids.
pub(crate) struct Scripts {
    dir: tempfile::TempDir,
}

impl Scripts {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    /// A server that runs `first` when it starts, `each` with every line, and `last` at the end of
    /// its input.
    pub(crate) fn server(&self, name: &str, [first, each, last]: [&str; 3]) -> ServerDefinition {
        let pids = self.dir.path().join(name);
        // Each message must be one line.
        let script = SERVER.replace("capabilities\":\n      ", "capabilities\":");
        let script = script.replace(",\n      \"serverInfo", ",\"serverInfo");
        let script = format!("PIDS={}\n{first}\n{script}\n{last}", pids.display());
        let target = Target::Stdio(StdioTarget {
            command: "sh".to_owned(),
            args: vec!["-c".to_owned(), script, name.to_owned(), each.to_owned()],
            env: std::collections::BTreeMap::new(),
            working_dir: None,
            confinement: None,
        });
        ServerDefinition::new(alias(name), target)
    }

    pub(crate) fn entry(&self, name: &str, does: [&str; 3]) -> Entry {
        Entry::Server(self.server(name, does))
    }

    /// A pipe whose reader waits until the test writes.
    pub(crate) fn pipe(&self, name: &str) -> std::path::PathBuf {
        let path = self.dir.path().join(name);
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        path
    }

    /// True if a server has written a line to this file.
    pub(crate) fn has_noted(&self, name: &str) -> bool {
        fs_err::metadata(self.dir.path().join(name)).is_ok_and(|file| file.len() > 0)
    }

    /// Number of lines that a server has written to this file.
    pub(crate) fn lines(&self, name: &str) -> usize {
        fs_err::read_to_string(self.dir.path().join(name)).unwrap_or_default().lines().count()
    }

    /// The text that a server has written besides its process ids.
    pub(crate) fn said(&self, name: &str) -> String {
        fs_err::read_to_string(self.dir.path().join(format!("{name}.said"))).unwrap_or_default()
    }

    /// The process ids of all children that a server ever had.
    pub(crate) fn started(&self, name: &str) -> Vec<u32> {
        let text = fs_err::read_to_string(self.dir.path().join(name)).unwrap_or_default();
        text.lines().map(|line| line.parse().unwrap()).collect()
    }
}

pub(crate) fn is_alive(pid: u32) -> bool {
    let state = fs_err::read_to_string(format!("/proc/{pid}/stat"));
    state.is_ok_and(|text| !text.contains(") Z "))
}
