//! A server as it was found, and the texts of its entry.

use std::collections::{BTreeMap, BTreeSet};

use narthex_model::Secret;
use sha2::{Digest as _, Sha256};

use super::placeholder::Placeholder;
use super::secrets::{self, HIDDEN};
use crate::clients::Transport;

/// A text of an entry, in narthex's notation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Text {
    /// A text that may be shown.
    Plain(String),
    /// A text that looks like a secret, or has one in it.
    Secret(Secret),
}

/// The way to reach a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A program.
    Stdio {
        /// The program.
        command: Text,
        /// Its arguments.
        args: Vec<Text>,
        /// Its environment variables.
        env: BTreeMap<String, Text>,
        /// Its working folder.
        cwd: Option<String>,
    },
    /// A server over HTTP.
    Remote {
        /// True for HTTP+SSE of 2024-11-05.
        is_sse: bool,
        /// The address.
        url: Text,
        /// Headers of each request.
        headers: BTreeMap<String, Text>,
    },
}

/// Names of tools that a client shows or hides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolLists {
    /// The only tools that are shown; `None`: all.
    pub allow: Option<Vec<String>>,
    /// Tools that are hidden.
    pub deny: Vec<String>,
}

/// A fact of an entry that narthex does not keep.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeftOut {
    /// The field, such as `oauth`.
    pub field: String,
    /// The consequence, in words for people.
    pub words: String,
}

/// A server in the file of a client.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundServer {
    /// The name in the file.
    pub name: String,
    /// The way to reach the server.
    pub target: Target,
    /// The longest time of a call, in milliseconds.
    pub timeout_ms: Option<u64>,
    /// The longest time of a start, in milliseconds.
    pub start_timeout_ms: Option<u64>,
    /// The tools that are shown.
    pub tools: ToolLists,
    /// True if the client does not start the server.
    pub is_disabled: bool,
    /// The placeholders of all texts.
    pub placeholders: BTreeSet<Placeholder>,
    /// The texts that tell what starts, by their places, as the file has them where that differs
    /// from narthex's notation. Secrets are not among them.
    pub spelled: BTreeMap<String, String>,
    /// Facts that narthex does not keep.
    pub left_out: Vec<LeftOut>,
}

/// An entry of a client's file.
#[derive(Debug, Clone, PartialEq)]
pub enum Found {
    /// A server that narthex can run.
    Server(Box<FoundServer>),
    /// An entry that narthex cannot use.
    Unusable {
        /// The name in the file.
        name: String,
        /// The reason, as a sentence without its end.
        reason: String,
    },
}

impl Found {
    /// The name in the file.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Server(server) => &server.name,
            Self::Unusable { name, .. } => name,
        }
    }

    /// The server; `None` for an entry that narthex cannot use.
    #[must_use]
    pub fn server(&self) -> Option<&FoundServer> {
        match self {
            Self::Server(server) => Some(server),
            Self::Unusable { .. } => None,
        }
    }
}

impl Text {
    /// The text for people: secrets are hidden.
    #[must_use]
    pub fn shown(&self) -> &str {
        match self {
            Self::Plain(text) => text,
            Self::Secret(_) => HIDDEN,
        }
    }

    /// The text itself, for a configuration and nothing else.
    #[must_use]
    pub fn expose(&self) -> &str {
        match self {
            Self::Plain(text) => text,
            Self::Secret(secret) => secret.expose(),
        }
    }

    /// True if the text looks like a secret.
    #[must_use]
    pub fn is_secret(&self) -> bool {
        matches!(self, Self::Secret(_))
    }
}

impl FoundServer {
    /// The transport.
    #[must_use]
    pub fn transport(&self) -> Transport {
        match self.target {
            Target::Stdio { .. } => Transport::Stdio,
            Target::Remote { is_sse: true, .. } => Transport::Sse,
            Target::Remote { is_sse: false, .. } => Transport::Http,
        }
    }

    /// The places of secrets, such as `env.API_KEY`, `headers.Authorization`, `args[2]`, `url`.
    #[must_use]
    pub fn secrets(&self) -> Vec<String> {
        let texts = self.texts().into_iter();
        texts.filter(|(_, text)| text.is_secret()).map(|(place, _)| place).collect()
    }

    /// The program with its arguments, or the address, with the placeholders of the file; secrets
    /// are hidden.
    #[must_use]
    pub fn starts(&self) -> String {
        match &self.target {
            Target::Stdio { command, args, .. } => {
                let args = args.iter().enumerate();
                let args = args.map(|(index, arg)| (format!("args[{index}]"), arg));
                let words = std::iter::once(("command".to_owned(), command)).chain(args);
                let words = words.map(|(place, word)| quoted(self.as_written(&place, word)));
                words.collect::<Vec<_>>().join(" ")
            }
            Target::Remote { url, .. } => match url {
                Text::Plain(_) => self.as_written("url", url).to_owned(),
                Text::Secret(url) => secrets::without_secrets(url.expose()),
            },
        }
    }

    /// A text at a place as the file has it; a secret is hidden.
    fn as_written<'s>(&'s self, place: &str, text: &'s Text) -> &'s str {
        match (text, self.spelled.get(place)) {
            (Text::Plain(_), Some(written)) => written,
            (Text::Plain(_) | Text::Secret(_), _) => text.shown(),
        }
    }

    /// The names of the fields in which two servers differ; names of servers do not count, and
    /// neither does being disabled.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<&'static str> {
        let mut fields = match (&self.target, &other.target) {
            (
                Target::Stdio { command, args, env, cwd },
                Target::Stdio { command: c, args: a, env: e, cwd: d },
            ) => vec![
                (command != c, "command"),
                (args != a, "args"),
                (env != e, "env"),
                (cwd != d, "cwd"),
            ],
            (
                Target::Remote { is_sse, url, headers },
                Target::Remote { is_sse: s, url: u, headers: h },
            ) => vec![(is_sse != s, "transport"), (url != u, "url"), (headers != h, "headers")],
            (Target::Stdio { .. }, Target::Remote { .. })
            | (Target::Remote { .. }, Target::Stdio { .. }) => vec![(true, "transport")],
        };
        fields.push((self.timeout_ms != other.timeout_ms, "timeout"));
        fields.push((self.start_timeout_ms != other.start_timeout_ms, "start timeout"));
        fields.push((self.tools != other.tools, "tools"));
        fields.into_iter().filter(|(differs, _)| *differs).map(|(_, field)| field).collect()
    }

    /// Hash of the whole server, by which an equal one is known again after its secrets have left.
    #[must_use]
    pub fn seal(&self) -> String {
        hex::encode(Sha256::digest(self.entry().expose()))
    }

    /// True if the server starts at a path below a folder that the client chooses.
    #[must_use]
    pub fn has_relative_path(&self) -> bool {
        let is_relative = |path: &str| !path.starts_with('/') && !path.starts_with("${");
        match &self.target {
            Target::Stdio { command, cwd, .. } => {
                let command = command.expose();
                cwd.as_deref().is_some_and(is_relative)
                    || command.contains('/') && is_relative(command)
            }
            Target::Remote { .. } => false,
        }
    }

    pub(super) fn texts(&self) -> Vec<(String, &Text)> {
        fn of<'t>(
            field: &'static str,
            map: &'t BTreeMap<String, Text>,
        ) -> impl Iterator<Item = (String, &'t Text)> {
            map.iter().map(move |(name, text)| (format!("{field}.{name}"), text))
        }
        match &self.target {
            Target::Stdio { command, args, env, .. } => {
                let args = args.iter().enumerate();
                let args = args.map(|(index, text)| (format!("args[{index}]"), text));
                let command = std::iter::once(("command".to_owned(), command));
                command.chain(args).chain(of("env", env)).collect()
            }
            Target::Remote { url, headers, .. } => {
                let url = std::iter::once(("url".to_owned(), url));
                url.chain(of("headers", headers)).collect()
            }
        }
    }
}

/// A word that is distinct from its neighbours.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| !c.is_whitespace() && !c.is_control() && !matches!(c, '"' | '\\');
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("{word:?}"),
    }
}
