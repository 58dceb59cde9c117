//! Commands that a person can paste into a shell: the one place that builds them (D36).
//!
//! A command is written as a template of this program's own words, filled with values that are
//! quoted where a shell needs it. Flags that lead to the same daemon and workspace are added when
//! the command is printed: a process has them once, and each door adds its workspace.

use std::{borrow::Cow, fmt, sync::OnceLock};

/// The name of the program.
const PROGRAM: &str = "narthex";
/// The flags that choose a daemon; each takes a value.
const CHOOSING: [&str; 4] = ["--data", "--daemon-url", "--token-file", "--settings"];
/// The flags that name a daemon. A command that names one gets no flag for another.
const NAMING: [&str; 2] = ["--data", "--daemon-url"];
/// The flag of the settings file, of which only its own process knows the use.
const SETTINGS: [&str; 1] = ["--settings"];
const WORKSPACE: &str = "--workspace";

/// The commands that take `--workspace`; a group covers all its commands.
const WORKSPACED: [&str; 24] = [
    "agents",
    "audit",
    "capabilities",
    "channels",
    "clients",
    "connections",
    "env-bindings",
    "export",
    "grants",
    "import",
    "limits",
    "members",
    "policy",
    "runs",
    "secrets",
    "servers",
    "sessions",
    "shares",
    "strace",
    "tokens",
    "top",
    "usage",
    "users create",
    "webhooks",
];
/// Commands of those groups that belong to no workspace.
const NOT_WORKSPACED: [&str; 3] = ["policy schema", "secrets keys", "secrets rotate-key"];

/// The commands that work on this machine, and reach no daemon but that of the data directory: a
/// token and an address are nothing to them.
const LOCAL: [&str; 6] = ["init", "service", "setup", "trust", "uninstall", "up"];
/// The flags that lead to a daemon, and to nothing else.
const REACHING: [&str; 2] = ["--daemon-url", "--token-file"];

/// Chosen once, when the process starts.
static CHOSEN: OnceLock<Chosen> = OnceLock::new();

/// The daemon and workspace that the commands of a process are about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chosen {
    /// Flags that choose the daemon, each with its value. Empty for the user's usual daemon.
    pub flags: Vec<(&'static str, String)>,
    /// The workspace; `None` or `default` needs no flag.
    pub workspace: Option<String>,
}

/// A command of this program, printed as a shell reads it.
///
/// ```
/// # use narthex_model::command::narthex;
/// let command = narthex("secrets set {}", &[&"KEY"]).in_workspace("team");
/// assert_eq!(command.to_string(), "narthex secrets set KEY --workspace team");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    /// Without the program's name.
    words: Vec<String>,
    workspace: Option<String>,
}

/// A command with the words of `template`; each `{}` is replaced by the next of `values`.
/// Words in capitals, such as `NAME`, are for the reader to fill in.
#[must_use]
pub fn narthex(template: &'static str, values: &[&dyn fmt::Display]) -> CommandLine {
    let mut values = values.iter();
    let filled = |word: &str| match word.contains("{}") {
        true => word.replace("{}", &values.next().map(ToString::to_string).unwrap_or_default()),
        false => word.to_owned(),
    };
    CommandLine { words: template.split_whitespace().map(filled).collect(), workspace: None }
}

/// Sets the daemon and the workspace for the commands of this process. Only the first time
/// counts.
pub fn choose(chosen: Chosen) {
    CHOSEN.get_or_init(|| chosen);
}

/// `text` with its commands completed for the daemon and workspace of this process.
///
/// They replace the daemon that another process has named. A command that has the flags of this
/// process already stays as it is.
#[must_use]
pub fn completed(text: &str) -> Cow<'_, str> {
    match CHOSEN.get() {
        Some(chosen) => completed_for(text, chosen),
        None => Cow::Borrowed(text),
    }
}

/// `text` with its commands completed for a workspace.
#[must_use]
pub fn completed_in<'t>(text: &'t str, workspace: &str) -> Cow<'t, str> {
    let chosen = Chosen { flags: Vec::new(), workspace: Some(workspace.to_owned()) };
    completed_for(text, &chosen)
}

/// `text` with what is missing of `chosen` in each of its commands in backticks.
fn completed_for<'t>(text: &'t str, chosen: &Chosen) -> Cow<'t, str> {
    let mut done = String::new();
    let mut rest = text;
    while let Some((before, command, after)) = next_command(rest) {
        done.push_str(before);
        done.push_str(&command.led_by(chosen));
        rest = after;
    }
    match done.is_empty() {
        true => Cow::Borrowed(text),
        false => Cow::Owned(done + rest),
    }
}

/// The commands in backticks of a text, as words without the program's name.
#[must_use]
pub fn commands_in(text: &str) -> Vec<Vec<String>> {
    let mut rest = text;
    let next = || {
        let (_, command, after) = next_command(rest)?;
        rest = after;
        Some(command.words)
    };
    std::iter::from_fn(next).collect()
}

/// The first command between backticks, with the text up to it and after it.
fn next_command(text: &str) -> Option<(&str, CommandLine, &str)> {
    let opening = concat!("`", "narthex", " ");
    let mut from = 0;
    loop {
        let start = from + text[from..].find(opening)? + 1;
        if let Some(end) = closing(&text[start..]).map(|length| start + length)
            && let Some(mut words) = shlex::split(&text[start..end])
        {
            words.remove(0);
            let command = CommandLine { words, workspace: None };
            return Some((&text[..start], command, &text[end..]));
        }
        from = start;
    }
}

/// The place of the first backtick that a shell would not find inside quotes.
fn closing(text: &str) -> Option<usize> {
    let (mut quote, mut is_escaped) = (None, false);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            _ if is_escaped => is_escaped = false,
            (None | Some('"'), '\\') => is_escaped = true,
            (None, '`') => return Some(at),
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            _ => {}
        }
    }
    None
}

impl CommandLine {
    /// Adds an option and its value.
    #[must_use]
    pub fn option(mut self, name: &'static str, value: impl fmt::Display) -> Self {
        self.words.extend([name.to_owned(), value.to_string()]);
        self
    }

    /// Adds words of this program's own, such as flags that a person has typed.
    #[must_use]
    pub fn words<W: fmt::Display>(mut self, words: impl IntoIterator<Item = W>) -> Self {
        self.words.extend(words.into_iter().map(|word| word.to_string()));
        self
    }

    /// Adds words for another program, behind `--`. Options are added before.
    #[must_use]
    pub fn passing_on<W: fmt::Display>(mut self, words: impl IntoIterator<Item = W>) -> Self {
        self.words.push("--".to_owned());
        self.words.extend(words.into_iter().map(|word| word.to_string()));
        self
    }

    /// About a workspace, in place of the process's own.
    #[must_use]
    pub fn in_workspace(mut self, workspace: impl fmt::Display) -> Self {
        self.workspace = Some(workspace.to_string());
        self
    }

    /// The text, with the flags of `chosen` that the command does not have itself. A command that
    /// names a daemon of its own gets no token and no address of the chosen one.
    #[must_use]
    pub fn with(&self, chosen: &Chosen) -> String {
        let (own, passed_on) = self.parts();
        let mut words = vec![PROGRAM.to_owned()];
        words.extend_from_slice(own);
        let workspace = self.workspace.as_ref().or(chosen.workspace.as_ref());
        if let Some(workspace) = workspace.filter(|name| *name != "default")
            && takes_workspace(own)
        {
            words.extend([WORKSPACE.to_owned(), workspace.clone()]);
        }
        let is_local = is_local(own);
        let names_daemon = NAMING.iter().any(|flag| has_flag(own, flag));
        let leads_on = |flag: &str| {
            let leads_elsewhere = names_daemon && (is_reaching(flag) || NAMING.contains(&flag));
            !(has_flag(own, flag) || leads_elsewhere || is_local && is_reaching(flag))
        };
        for (flag, value) in chosen.flags.iter().filter(|(flag, _)| leads_on(flag)) {
            words.extend([(*flag).to_owned(), value.clone()]);
        }
        words.extend_from_slice(passed_on);
        words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
    }

    /// The text of a command that another process may have printed: the flags of `chosen` replace
    /// those that lead to a daemon from there. A command with the flags of `chosen` is one of this
    /// process, and keeps its own.
    fn led_by(&self, chosen: &Chosen) -> String {
        let (own, passed_on) = self.parts();
        let is_local = is_local(own);
        let mut flags = chosen.flags.iter().filter(|(flag, _)| !is_local || !is_reaching(flag));
        let is_ours = flags.all(|(flag, value)| value_of(own, flag) == Some(value));
        let replaced: &[&str] = match is_ours {
            true if is_local || chosen.flags.is_empty() => &[],
            true => &SETTINGS,
            false => &CHOOSING,
        };
        let words = [without(own, replaced).as_slice(), passed_on].concat();
        Self { words, workspace: self.workspace.clone() }.with(chosen)
    }

    /// The words of the command itself, and those that it passes on to another program.
    fn parts(&self) -> (&[String], &[String]) {
        let end = self.words.iter().position(|word| word == "--").unwrap_or(self.words.len());
        self.words.split_at(end)
    }
}

impl fmt::Display for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.with(CHOSEN.get().unwrap_or(&Chosen::default())))
    }
}

/// True if a command works in this process and reaches no daemon.
fn is_local(words: &[String]) -> bool {
    words.first().is_some_and(|first| LOCAL.contains(&first.as_str()))
}

/// True for a flag that leads to a daemon, and to nothing else.
fn is_reaching(flag: &str) -> bool {
    REACHING.contains(&flag)
}

/// Without these flags, each of which takes a value.
fn without(words: &[String], flags: &[&str]) -> Vec<String> {
    let mut kept = Vec::new();
    let mut all = words.iter();
    while let Some(word) = all.next() {
        match word.split_once('=') {
            Some((flag, _)) if flags.contains(&flag) => {}
            None if flags.contains(&word.as_str()) => drop(all.next()),
            _ => kept.push(word.clone()),
        }
    }
    kept
}

/// True if a command has a flag, in either spelling: `--flag VALUE` or `--flag=VALUE`.
fn has_flag(words: &[String], flag: &str) -> bool {
    words.iter().any(|word| word.split('=').next() == Some(flag))
}

/// The value of a flag that stands in a word of its own.
fn value_of<'w>(words: &'w [String], flag: &str) -> Option<&'w String> {
    let at = words.iter().position(|word| word == flag)?;
    words.get(at + 1)
}

/// True if a command takes `--workspace` and does not have it yet.
fn takes_workspace(words: &[String]) -> bool {
    let starts = |path: &&str| {
        let path: Vec<_> = path.split(' ').collect();
        words.len() >= path.len() && path.iter().zip(words).all(|(one, other)| one == other)
    };
    let has_place = |word: &String| matches!(word.as_str(), WORKSPACE | "--installation");
    WORKSPACED.iter().any(starts)
        && !NOT_WORKSPACED.iter().any(starts)
        && !words.iter().any(has_place)
}

/// A word as a shell reads it back.
#[must_use]
pub fn quoted(word: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@,+%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => Cow::Borrowed(word),
        // The one word that a shell cannot be given is one with a NUL.
        false => shlex::try_quote(word).unwrap_or(Cow::Borrowed("''")),
    }
}

#[cfg(test)]
mod tests;
