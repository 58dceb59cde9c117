//! Entries by which clients reach narthex: the daemon of a set-up, or another one.

use std::path::{Path, PathBuf};

use narthex_model::{Alias, variable::OWN_PREFIX};

use crate::clients::Client;
use crate::servers::{Found, FoundServer, Target, Text};

/// The name of the program.
const PROGRAM: &str = "narthex";
/// The command by which a client reaches a daemon.
const CONNECT: &str = "connect";
/// The flag with the data directory of a daemon, and the variable.
const DATA: (&str, &str) = ("--data", "NARTHEX_DATA");

/// Programs that start a package by its name.
const RUNNERS: [&str; 4] = ["npx", "bunx", "pnpx", "uvx"];

/// The daemon that clients are to reach.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnDaemon {
    /// The data directory.
    pub data: PathBuf,
    /// The addresses, without paths.
    pub addresses: Vec<String>,
}

impl OwnDaemon {
    /// True for an entry that starts `narthex connect` for this daemon, or has an address of it.
    ///
    /// An entry that starts narthex by way of another program, such as `ssh` or `docker`, reaches
    /// a narthex elsewhere.
    #[must_use]
    pub fn is_reached_by(&self, client: &Client, server: &FoundServer) -> bool {
        if client.is_of_project() {
            return is_this_narthex(server);
        }
        match &server.target {
            Target::Stdio { .. } => starts_itself(server) && !self.is_other(server),
            Target::Remote { url, .. } => {
                self.addresses.iter().any(|address| is_endpoint(url.expose(), address))
            }
        }
    }

    /// True for an entry that names another data directory.
    fn is_other(&self, server: &FoundServer) -> bool {
        let Target::Stdio { args, env, .. } = &server.target else { return false };
        let (flag, variable) = DATA;
        let is_flag = |arg: &Text| {
            let rest = arg.expose().strip_prefix(flag);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
        };
        let named =
            args.iter().position(is_flag).and_then(|at| match args[at].expose().split_once('=') {
                Some((_, path)) => Some(path),
                None => args.get(at + 1).map(Text::expose),
            });
        let named = named.or_else(|| env.get(variable).map(Text::expose));
        named.is_some_and(|path| !is_same(Path::new(path), &self.data))
    }
}

/// True for two paths of one folder.
fn is_same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| fs_err::canonicalize(path).ok();
    one == other || real(one).is_some_and(|one| real(other) == Some(one))
}

/// True for an endpoint of a daemon.
fn is_endpoint(url: &str, address: &str) -> bool {
    let rest = url.strip_prefix(address).and_then(|rest| rest.strip_prefix("/mcp"));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']))
}

/// True for an entry whose own program is `narthex … connect`, under any name of this program, or
/// a runner of packages for it.
fn starts_itself(server: &FoundServer) -> bool {
    let Target::Stdio { command, args, .. } = &server.target else { return false };
    let program = command.expose();
    let is_own = || name_of(program) == PROGRAM || is_this_program(Path::new(program));
    let is_connect = args.iter().any(|arg| arg.expose() == CONNECT);
    is_connect && is_own() || runs_narthex(server)
}

/// True for the entry by which a client would start a narthex whose program no longer exists, such
/// as an earlier version in a folder of its own.
#[must_use]
pub fn is_gone_narthex(client: &Client, server: &FoundServer) -> bool {
    let Target::Stdio { command, .. } = &server.target else { return false };
    let program = Path::new(command.expose());
    is_narthex(client, server)
        && name_of(command.expose()) == PROGRAM
        && program.is_absolute()
        && !program.exists()
}

/// True for an entry by which a client reaches narthex.
#[must_use]
pub fn is_own(client: &Client, found: &Found) -> bool {
    found.server().is_some_and(|server| is_narthex(client, server))
}

/// True for the server by which a client reaches a narthex, this one or another: it never becomes
/// a server of narthex.
///
/// The files of a project are by others, so in them no name and no path but that of this program
/// counts (D27).
#[must_use]
pub fn is_narthex(client: &Client, server: &FoundServer) -> bool {
    match client.is_of_project() {
        true => is_this_narthex(server),
        false => is_some_narthex(server),
    }
}

/// True for an entry as a set-up writes it: this program, by its whole path or by its name.
fn is_this_narthex(server: &FoundServer) -> bool {
    let Target::Stdio { command, args, env, .. } = &server.target else { return false };
    let command = command.expose();
    let is_connect = args.first().is_some_and(|first| first.expose() == CONNECT);
    let is_plain = env.keys().all(|name| name.starts_with(OWN_PREFIX));
    is_connect && is_plain && (command == PROGRAM || is_this_program(Path::new(command)))
}

fn is_this_program(path: &Path) -> bool {
    let real = |path: &Path| fs_err::canonicalize(path).ok();
    let own = std::env::current_exe().ok().and_then(|own| real(&own));
    path.is_absolute() && own.is_some_and(|own| real(path) == Some(own))
}

/// True for a narthex in a file of the user, which may be another one than this.
fn is_some_narthex(server: &FoundServer) -> bool {
    starts_narthex(server) || starts_itself(server) || Alias::suggest(&server.name).is_built_in()
}

/// True for an entry that starts `narthex connect` somewhere, also by way of other programs.
fn starts_narthex(server: &FoundServer) -> bool {
    match &server.target {
        Target::Stdio { command, args, .. } => {
            let words = std::iter::once(name_of(command.expose()));
            // The command of a shell is one argument with several words.
            let args = args.iter().flat_map(|arg| arg.expose().split_whitespace());
            let words = words.chain(args.map(|word| word.trim_matches(['"', '\'', ';'])));
            let mut words = words.skip_while(|word| !word.ends_with(PROGRAM));
            words.next().is_some() && words.any(|word| word == CONNECT)
        }
        Target::Remote { .. } => false,
    }
}

/// True for an entry whose own program is `narthex connect`, or a runner of packages for it.
///
/// The path and the further arguments do not matter. An entry that reaches a narthex elsewhere,
/// such as by `ssh` or `docker exec`, is another program.
#[must_use]
pub fn runs_narthex(server: &FoundServer) -> bool {
    let Target::Stdio { command, args, .. } = &server.target else { return false };
    let args: Vec<_> = args.iter().map(Text::expose).collect();
    match name_of(command.expose()) {
        PROGRAM => args.first() == Some(&CONNECT),
        runner if RUNNERS.contains(&runner) => {
            let mut words = args.into_iter().skip_while(|word| word.starts_with('-'));
            let package = words.next().map(|word| word.split('@').next().unwrap_or(word));
            package == Some(PROGRAM) && words.next() == Some(CONNECT)
        }
        _ => false,
    }
}

/// The name of a program at a path.
fn name_of(program: &str) -> &str {
    program.rsplit(['/', '\\']).next().unwrap_or(program)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::clients::{Scope, Shape, clients};
    use crate::servers::read_entry;

    fn server(entry: &Value) -> FoundServer {
        let found = read_entry(Shape::Cursor, "narthex", entry, false).unwrap();
        found.server().unwrap().clone()
    }

    fn cursor() -> &'static Client {
        let mut rows = clients().iter();
        rows.find(|row| row.id == "cursor" && row.scope == Scope::User).unwrap()
    }

    /// Only an entry that leads to the daemon of a set-up connects a client to it. Others are no
    /// servers to move all the same: `bash -c "narthex connect"` would lead narthex to itself.
    #[test]
    fn only_an_entry_for_this_daemon_connects_a_client() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        fs_err::create_dir(&data).unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&data, &link).unwrap();
        let addresses =
            vec!["http://127.0.0.1:7717".to_owned(), "http://localhost:7717".to_owned()];
        let daemon = OwnDaemon { data: data.clone(), addresses };
        let stdio = |command: &str, args: &[&str]| json!({ "command": command, "args": args });
        let (here, linked) = (data.to_str().unwrap(), link.to_str().unwrap());
        let elsewhere = folder.path().to_str().unwrap();
        let program = std::env::current_exe().unwrap();
        let own = [
            stdio("narthex", &["connect"]),
            stdio(program.to_str().unwrap(), &["connect"]),
            stdio("/opt/bin/narthex", &["--data", here, "connect"]),
            stdio("narthex", &["connect", "--data", linked]),
            stdio("narthex", &["connect", &format!("--data={here}")]),
            stdio("npx", &["-y", "narthex", "connect"]),
            json!({ "command": "narthex", "args": ["connect"], "env": { "NARTHEX_DATA": here } }),
            json!({ "url": "http://127.0.0.1:7717/mcp" }),
            json!({ "url": "http://localhost:7717/mcp/p/work" }),
        ];
        for entry in own {
            assert!(daemon.is_reached_by(cursor(), &server(&entry)), "{entry}");
        }
        let others = [
            stdio("ssh", &["devbox", "narthex", "connect"]),
            stdio("bash", &["-c", "narthex connect"]),
            stdio("docker", &["run", "-i", "box", "narthex", "connect"]),
            stdio("narthex", &["connect", "--data", elsewhere]),
            stdio("narthex", &["connect", &format!("--data={elsewhere}")]),
            json!({ "command": "narthex", "args": ["connect"], "env": { "NARTHEX_DATA": "/x" } }),
            stdio("other", &["--stdio"]),
            json!({ "url": "http://127.0.0.1:77170/mcp" }),
            json!({ "url": "http://127.0.0.1:7717/api" }),
            json!({ "url": "https://narthex.example.com/mcp" }),
        ];
        for entry in others {
            let server = server(&entry);
            assert!(!daemon.is_reached_by(cursor(), &server), "{entry}");
            assert!(is_narthex(cursor(), &server), "{entry}");
        }
    }

    /// A set-up replaces an entry of a narthex that is gone, and no other program's.
    #[test]
    fn only_a_narthex_can_be_gone() {
        let gone = |command: &str, args: &[&str]| {
            let entry = json!({ "command": command, "args": args });
            is_gone_narthex(cursor(), &server(&entry))
        };
        assert!(gone("/no/such/narthex", &["connect"]));
        assert!(!gone("/no/such/ssh", &["devbox", "narthex", "connect"]));
        assert!(!gone("narthex", &["connect"]));
    }
}
