//! Servers of a project's file with whole paths, so that they work from any folder.
//!
//! A client starts such a server in the folder of the project. Its placeholder for that folder,
//! a relative program and a relative working folder have no meaning elsewhere.

use std::path::Path;

use narthex_model::Secret;

use super::{Found, FoundServer, Placeholder, Target, Text};

/// The folder of the project, in narthex's notation.
const ROOT: &str = "${workspaceRoot}";
/// Beginnings of paths that do not depend on a folder: that of a whole path, and that of a
/// placeholder, which may have one.
const WHOLE: [&str; 2] = ["/", "${"];

impl Found {
    /// The entry with the paths that it has in the folder of its project. A server that cannot
    /// have them is unusable.
    #[must_use]
    pub fn in_folder(&self, folder: &Path) -> Self {
        match self {
            Self::Server(server) => match server.in_folder(folder) {
                Ok(server) => Self::Server(Box::new(server)),
                Err(reason) => Self::Unusable { name: server.name.clone(), reason },
            },
            Self::Unusable { .. } => self.clone(),
        }
    }
}

impl FoundServer {
    /// The server with the paths that it has in the folder of its project: the folder is the
    /// working folder, unless the entry names one.
    ///
    /// # Errors
    /// The reason for which the folder cannot be written, as a sentence without its end.
    pub fn in_folder(&self, folder: &Path) -> Result<Self, String> {
        let has_placeholder = self.placeholders.contains(&Placeholder::Folder);
        if !has_placeholder && matches!(self.target, Target::Remote { .. }) {
            return Ok(self.clone());
        }
        let folder = folder.to_str().filter(|folder| !folder.contains('$')).ok_or(
            "the path of its folder is not UTF-8 or has a `$`, which narthex cannot write; \
             rename the folder",
        )?;
        self.check_begins()?;
        let mut server = self.clone();
        server.placeholders.remove(&Placeholder::Folder);
        match &mut server.target {
            Target::Stdio { command, args, env, cwd } => {
                let place = match cwd.as_deref().map(|cwd| filled(cwd, folder)) {
                    None => folder.to_owned(),
                    Some(cwd) => below(folder, &cwd),
                };
                change(command, |text| {
                    let text = filled(text, folder);
                    if text.contains('/') { below(&place, &text) } else { text }
                });
                args.iter_mut().for_each(|text| change(text, |text| filled(text, folder)));
                env.values_mut().for_each(|text| change(text, |text| filled(text, folder)));
                *cwd = Some(place);
            }
            Target::Remote { url, headers, .. } => {
                change(url, |text| filled(text, folder));
                headers.values_mut().for_each(|text| change(text, |text| filled(text, folder)));
            }
        }
        // A text with the folder in it is shown with the folder.
        let changed: Vec<_> = {
            let texts = self.texts().into_iter().zip(server.texts());
            let changed = texts.filter(|((_, before), (_, now))| before != now);
            changed.map(|((place, _), _)| place).collect()
        };
        server.spelled.retain(|place, _| !changed.contains(place));
        Ok(server)
    }

    /// Refuses paths that begin at a `~` or a `$NAME`, which only a shell fills in: a program would
    /// start below the folder of the project, and not in the home folder that a reader sees (D27).
    fn check_begins(&self) -> Result<(), String> {
        let Target::Stdio { command, args, cwd, .. } = &self.target else { return Ok(()) };
        let args = args.iter().enumerate();
        let args = args.map(|(index, text)| (format!("args[{index}]"), text.expose()));
        let all = std::iter::once(("command".to_owned(), command.expose())).chain(args);
        let cwd = cwd.as_deref().map(|cwd| ("cwd".to_owned(), cwd));
        for (place, text) in all.chain(cwd) {
            if begins_for_shell(text) {
                return Err(format!(
                    "`{place}` begins with a `~` or a `$NAME`, which only a shell fills in; write \
                     the whole path, or the client's placeholder for the home folder, such as \
                     `${{userHome}}` or `${{HOME}}`"
                ));
            }
        }
        Ok(())
    }
}

/// True for `~`, `~/x`, `~ada/x`, `$HOME/x` and a literal `${HOME}/x`, also behind a flag such as
/// `--file=`.
fn begins_for_shell(text: &str) -> bool {
    let value = text.split_once('=').filter(|(flag, _)| flag.starts_with('-'));
    [Some(text), value.map(|(_, value)| value)].into_iter().flatten().any(|path| {
        let first = path.strip_prefix("./").unwrap_or(path).split('/').next().unwrap_or_default();
        let name = first.strip_prefix('$').unwrap_or_default();
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        first.starts_with('~') && (first.len() == 1 || path.contains('/'))
            || path.contains('/') && !name.is_empty() && name.chars().all(is_name)
            || path.contains('/') && path.starts_with("$${")
    })
}

/// Changes a text, which stays a secret if it is one.
fn change(text: &mut Text, new: impl Fn(&str) -> String) {
    *text = match text {
        Text::Plain(text) => Text::Plain(new(text)),
        Text::Secret(secret) => Text::Secret(Secret::new(new(secret.expose()))),
    };
}

/// A path from a folder on.
fn below(folder: &str, path: &str) -> String {
    match path.strip_prefix("./").unwrap_or(path) {
        "" | "." => folder.to_owned(),
        whole if WHOLE.iter().any(|begin| whole.starts_with(begin)) => whole.to_owned(),
        rest => format!("{}/{rest}", folder.trim_end_matches('/')),
    }
}

/// A text with the folder in place of its placeholder; behind a `$` it is a literal text.
fn filled(text: &str, folder: &str) -> String {
    let mut new = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(ROOT) {
        new.push_str(before);
        new.push_str(if new.ends_with('$') { ROOT } else { folder });
        rest = after;
    }
    new.push_str(rest);
    new
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::clients::Shape;
    use crate::servers::read_entry;

    fn server(entry: &Value) -> FoundServer {
        match read_entry(Shape::Vscode, "s", entry, false) {
            Some(Found::Server(server)) => *server,
            other => panic!("{other:?}"),
        }
    }

    fn entry(entry: &Value) -> Value {
        let server = server(entry).in_folder(Path::new("/home/ada/shop")).unwrap();
        assert!(!server.placeholders.contains(&Placeholder::Folder) && !server.has_relative_path());
        serde_json::from_str(server.entry().expose()).unwrap()
    }

    #[test]
    fn paths_of_a_project_become_whole() {
        let found = entry(&json!({
            "command": "./bin/tool", "args": ["${workspaceFolder}/a", "x", "./b"],
            "env": { "TOKEN": "k1 ${workspaceFolder}" },
        }));
        let expected = json!({
            "transport": "stdio", "command": "/home/ada/shop/bin/tool",
            "args": ["/home/ada/shop/a", "x", "./b"], "cwd": "/home/ada/shop",
            "env": { "TOKEN": "k1 /home/ada/shop" },
        });
        assert_eq!(found, expected);
        for (command, cwd, expected) in [
            ("tool", "sub", ("tool", "/home/ada/shop/sub")),
            ("bin/tool", "./sub", ("/home/ada/shop/sub/bin/tool", "/home/ada/shop/sub")),
            ("/bin/tool", ".", ("/bin/tool", "/home/ada/shop")),
            ("tool", "${env:PLACE}", ("tool", "${env:PLACE}")),
            ("bin/tool", "${env:PLACE}", ("${env:PLACE}/bin/tool", "${env:PLACE}")),
            ("${workspaceFolder}/tool", "/srv", ("/home/ada/shop/tool", "/srv")),
        ] {
            let found = entry(&json!({ "command": command, "cwd": cwd }));
            assert_eq!(
                (&found["command"], &found["cwd"]),
                (&json!(expected.0), &json!(expected.1))
            );
        }
        let url = "https://a.example/mcp";
        let found = entry(&json!({ "url": url, "headers": { "x": "${workspaceFolder}" } }));
        assert_eq!(found["headers"]["x"], "/home/ada/shop");
    }

    /// D27: a path that looks like one of the home folder would begin at the project.
    #[test]
    fn d27_paths_for_a_shell_leave_the_server_out() {
        for (refused, place) in [
            (json!({ "command": "~/bin/tool" }), "`command`"),
            (json!({ "command": "$HOME/bin/tool" }), "`command`"),
            (json!({ "command": "./~/bin/tool" }), "`command`"),
            (json!({ "command": "${HOME}/bin/tool" }), "`command`"),
            (json!({ "command": "node", "args": ["-x", "~/server.js"] }), "`args[1]`"),
            (json!({ "command": "node", "args": ["--import=$HOME/x.js"] }), "`args[0]`"),
            (json!({ "command": "tool", "cwd": "~" }), "`cwd`"),
        ] {
            let reason = server(&refused).in_folder(Path::new("/f")).unwrap_err();
            assert!(reason.starts_with(place) && reason.contains("`${userHome}`"), "{reason}");
        }
        for usable in [
            json!({ "command": "tool", "args": ["~1.2", "$1", "a~/b", "x=~", "$"] }),
            json!({ "command": "${userHome}/bin/tool", "args": ["${env:PLACE}/x"] }),
            json!({ "url": "https://a.example/~/x" }),
        ] {
            server(&usable).in_folder(Path::new("/f")).unwrap();
        }
    }

    #[test]
    fn a_literal_placeholder_stays() {
        let text = "$${workspaceRoot}/a ${workspaceRoot}";
        assert_eq!(filled(text, "/f"), "$${workspaceRoot}/a /f");
    }

    #[test]
    fn a_secret_stays_a_secret() {
        let found = server(&json!({ "command": "x", "env": { "TOKEN": "k1 ${workspaceFolder}" } }));
        let found = found.in_folder(Path::new("/f")).unwrap();
        assert_eq!(found.secrets(), ["env.TOKEN"]);
    }

    #[test]
    fn a_folder_that_cannot_be_written_leaves_the_server_out() {
        let program = Found::Server(Box::new(server(&json!({ "command": "x" }))));
        let Found::Unusable { name, reason } = program.in_folder(Path::new("/a$b")) else {
            panic!("{program:?}")
        };
        assert!(name == "s" && reason.contains("rename the folder"), "{reason}");
        let remote = Found::Server(Box::new(server(&json!({ "url": "https://a.example/mcp" }))));
        assert_eq!(remote.in_folder(Path::new("/a$b")), remote);
    }
}
