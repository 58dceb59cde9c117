//! The command that adds one server of a client's file to the user's settings, ready for a shell.

use std::collections::{BTreeMap, BTreeSet};

use narthex_client_files::servers::{FoundServer, Target, Text, ToolLists};
use narthex_model::{
    Alias, SecretName,
    command::{CommandLine, narthex},
};
use serde_json::Value;

/// The numbers that a name may get at its end.
const NUMBERS: std::ops::Range<u32> = 2..100;

/// A command that adds a server, with the names of its secrets in place of their values.
pub(in crate::commands) struct Adding {
    pub(in crate::commands) command: CommandLine,
    /// The secrets that the command names.
    pub(in crate::commands) secrets: Vec<SecretName>,
}

impl Adding {
    /// The command for a server under this name; `None` if the server has a secret at a place that
    /// cannot name one, such as an argument.
    pub(in crate::commands) fn of(server: &FoundServer, alias: &Alias) -> Option<Self> {
        let nameable = server.nameable_secrets();
        if server.secrets().len() > nameable.len() {
            return None;
        }
        let mut names = BTreeMap::<String, SecretName>::new();
        for secret in nameable {
            let is_taken = |name: &str| names.values().any(|one| one.as_str() == name);
            let name = SecretName::for_server(alias, &secret.key, is_taken);
            names.insert(secret.key, name);
        }
        let command = command(server, alias, &names);
        Some(Self { command, secrets: names.into_values().collect() })
    }

    /// The way to add the server, as a clause. `effect` says what the command does.
    pub(in crate::commands) fn told(&self, effect: &str) -> String {
        let add = format!("`{}` {effect}", self.command);
        let set = |name: &SecretName| format!("`{}`", narthex("secrets set {}", &[&name.as_str()]));
        match &self.secrets[..] {
            [] => add,
            [one] => format!("store its secret first with {}, then {add}", set(one)),
            more => {
                let all: Vec<_> = more.iter().map(set).collect();
                format!("store its secrets first with {}, then {add}", all.join(", "))
            }
        }
    }
}

fn command(
    server: &FoundServer,
    alias: &Alias,
    names: &BTreeMap<String, SecretName>,
) -> CommandLine {
    // The words of the server follow, so the words here are no whole command.
    let start = "mcp add";
    let add = narthex(start, &[]).words([alias.as_str()]);
    let pair = |key: &str, value: &Text| match names.get(key) {
        Some(name) => format!("{key}=${{secret:{}}}", name.as_str()),
        None => format!("{key}={}", value.expose()),
    };
    match &server.target {
        _ if has_more(server) => add.words([in_one_line(server.entry_naming(names).expose())]),
        Target::Remote { is_sse, url, headers } => {
            let add = add.words(is_sse.then_some("--sse")).option("--url", url.expose());
            let headers = headers.iter();
            headers.fold(add, |add, (key, value)| add.option("--header", pair(key, value)))
        }
        Target::Stdio { command, args, env, cwd } => {
            let variables = env.iter();
            let add =
                variables.fold(add, |add, (key, value)| add.option("--env", pair(key, value)));
            let add = cwd.iter().fold(add, |add, folder| add.option("--cwd", folder));
            add.passing_on(std::iter::once(command).chain(args).map(Text::expose))
        }
    }
}

/// True for a server with facts that no flag has, so that its whole entry is the description.
fn has_more(server: &FoundServer) -> bool {
    server.is_disabled
        || server.timeout_ms.is_some()
        || server.start_timeout_ms.is_some()
        || server.tools != ToolLists::default()
}

fn in_one_line(entry: &str) -> String {
    serde_json::from_str(entry).map_or_else(|_| entry.to_owned(), |all: Value| all.to_string())
}

/// A name that no server has: that of the entry, or with `end` behind it, or with a number behind
/// that. It is taken from then on.
pub(in crate::commands) fn free_name(name: &str, end: &str, taken: &mut BTreeSet<String>) -> Alias {
    let with_end = format!("{name}-{end}");
    let numbered = NUMBERS.map(|number| format!("{with_end}-{number}"));
    let names = [name.to_owned(), with_end.clone()].into_iter().chain(numbered);
    let mut names = names.map(|name| Alias::suggest(&name));
    let free = names.find(|alias| !taken.contains(alias.as_str()));
    let alias = free.unwrap_or_else(|| Alias::suggest(name));
    taken.insert(alias.as_str().to_owned());
    alias
}

#[cfg(test)]
mod tests {
    use narthex_model::Secret;

    use super::*;

    fn server(target: Target) -> FoundServer {
        FoundServer {
            name: "docs".to_owned(),
            target,
            timeout_ms: None,
            start_timeout_ms: None,
            tools: ToolLists::default(),
            is_disabled: false,
            placeholders: BTreeSet::new(),
            spelled: BTreeMap::new(),
            left_out: Vec::new(),
        }
    }

    fn plain(text: &str) -> Text {
        Text::Plain(text.to_owned())
    }

    fn program(args: Vec<Text>, env: BTreeMap<String, Text>) -> FoundServer {
        server(Target::Stdio {
            command: plain("npx"),
            args,
            env,
            cwd: Some("/srv/my shop".to_owned()),
        })
    }

    fn told(server: &FoundServer) -> Option<String> {
        Some(Adding::of(server, &Alias::suggest("docs"))?.told("adds it"))
    }

    /// A printed command works when it is pasted: it has the server's own words, quoted, and no
    /// value of a secret.
    #[test]
    fn a_command_has_the_words_of_its_server_and_names_its_secrets() {
        let secret = || Text::Secret(Secret::new("adding-canary-5731".to_owned()));
        let env = BTreeMap::from([
            ("DOCS_KEY".to_owned(), secret()),
            ("LOG".to_owned(), plain("${env:LOG:-info}")),
        ]);
        assert_eq!(
            told(&program(vec![plain("-y"), plain("@example/docs@1.0.0"), plain("a b")], env))
                .unwrap(),
            "store its secret first with `narthex secrets set DOCS_KEY`, then `narthex mcp add \
             docs --env 'DOCS_KEY=${secret:DOCS_KEY}' --env 'LOG=${env:LOG:-info}' --cwd '/srv/my \
             shop' -- npx -y @example/docs@1.0.0 'a b'` adds it"
        );
        let remote = |url| {
            let headers = BTreeMap::from([("X-Key".to_owned(), secret())]);
            server(Target::Remote { is_sse: true, url, headers })
        };
        assert_eq!(
            told(&remote(plain("https://docs.example.com/sse"))).unwrap(),
            "store its secret first with `narthex secrets set DOCS_X_KEY`, then `narthex mcp add \
             docs --sse --url https://docs.example.com/sse --header \
             'X-Key=${secret:DOCS_X_KEY}'` adds it"
        );
        // A fact that no flag has is in an entry.
        let slow = FoundServer { timeout_ms: Some(5), ..program(vec![], BTreeMap::new()) };
        assert_eq!(
            told(&slow).unwrap(),
            "`narthex mcp add docs '{\"transport\":\"stdio\",\"command\":\"npx\",\"cwd\":\
             \"/srv/my shop\",\"timeoutMs\":5}'` adds it"
        );
        // A secret in an argument or an address cannot be named.
        assert_eq!(told(&program(vec![secret()], BTreeMap::new())), None);
        assert_eq!(told(&remote(secret())), None);
    }

    #[test]
    fn a_name_that_is_taken_gets_an_end_and_a_number() {
        let mut taken = BTreeSet::from(["docs".to_owned()]);
        let mut names = Vec::new();
        for name in ["My Docs", "docs", "docs", "docs"] {
            names.push(free_name(name, "shop", &mut taken).as_str().to_owned());
        }
        assert_eq!(names, ["my-docs", "docs-shop", "docs-shop-2", "docs-shop-3"]);
    }
}
