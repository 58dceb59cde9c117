//! Placeholders in a file's strings: `${env:NAME}`, `${env:NAME:-default}`, `${workspaceRoot}`.
//! `${secret:NAME}` is none: as a whole value it names a secret, and inside a text it is refused.
//!
//! The text is read once, from left to right, and results are never read again: a variable that
//! holds placeholder text stays that text (S30). `$${` is a literal `${`. In files of other
//! programs, their spellings (`${NAME}`, `${workspaceFolder}`) are rewritten to narthex's and
//! reported.

use narthex_model::{Secret, SecretName, SecretNameError, is_secret_variable};

use super::loaded::{Env, LoadContext};

/// The kind of document that a string comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// `servers`: only narthex's own placeholders.
    Strict,
    /// `mcpServers`: also the spellings of other programs.
    Tolerant,
}

/// A string with its placeholders filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Expanded {
    /// The result.
    pub(super) value: String,
    /// The variables that parts of the result came from.
    pub(super) variables: Vec<String>,
    /// Values of variables whose names suggest a secret.
    pub(super) secrets: Vec<Secret>,
    /// Rewritten placeholders: the other program's spelling, and narthex's. Defaults are left out.
    pub(super) rewritten: Vec<(String, String)>,
    /// The secret that the whole text names. The value is then the text as it is written.
    pub(super) secret: Option<SecretName>,
}

/// The reason why a string cannot be filled in. Shows names, never values or defaults.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum PlaceholderError {
    #[error(
        "`${{` has no closing `}}`; close the placeholder, or write `$${{` for a literal `${{`"
    )]
    Unclosed,
    #[error(
        "`${{env:{name}}}` names no variable; after `env:` write a letter or `_`, \
         then letters, digits and `_`"
    )]
    BadName { name: String },
    #[error(
        "the default of `${{env:{name}:-…}}` holds another placeholder; a default is plain text"
    )]
    NestedDefault { name: String },
    #[error("`${{{name}}}` is not a placeholder of this file; {remedy}")]
    Unknown { name: String, remedy: String },
    #[error(
        "the environment variable `{name}` is not set; set it before narthex starts, or write \
         `${{env:{name}:-…}}` with a default"
    )]
    Missing { name: String },
    #[error("`${{workspaceRoot}}` is not valid UTF-8; rename the folder")]
    WorkspaceRoot,
    #[error(
        "`${{secret:{name}}}` works only as the whole value of a variable in `env`, of a header, \
         or of a secret field of `auth`; move it there, and store all of the value as the secret \
         (a key behind `Bearer ` is also `auth` of mode `apiKey` with a `valuePrefix`)"
    )]
    SecretInText { name: SecretName },
    #[error("`${{secret:…}}`: {0}")]
    BadSecretName(#[from] SecretNameError),
}

impl PlaceholderError {
    /// The fault's name for programs.
    pub(super) fn code(&self) -> &'static str {
        match self {
            Self::Unclosed => "placeholder_unclosed",
            Self::BadName { .. } => "placeholder_bad_name",
            Self::NestedDefault { .. } => "placeholder_nested",
            Self::Unknown { .. } => "placeholder_unknown",
            Self::Missing { .. } => "variable_missing",
            Self::WorkspaceRoot => "workspace_root_invalid",
            Self::SecretInText { .. } => "secret_in_text",
            Self::BadSecretName(_) => "secret_bad_name",
        }
    }
}

/// The secret that `text` names as a whole; `None` for any other text.
pub(super) fn named_secret(text: &str) -> Option<SecretName> {
    let name = text.strip_prefix("${secret:")?.strip_suffix('}')?;
    SecretName::new(name).ok()
}

/// Fills in every placeholder of `text`.
pub(super) fn expand(
    text: &str,
    dialect: Dialect,
    context: &LoadContext<'_>,
) -> Result<Expanded, PlaceholderError> {
    let mut out = Expanded::literal(String::new());
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let (before, from) = rest.split_at(start);
        if let Some(before) = before.strip_suffix('$') {
            out.value.push_str(before);
            out.value.push_str(match context.env {
                Env::Values(_) => "${",
                Env::AsWritten => "$${",
            });
            rest = &from[2..];
            continue;
        }
        out.value.push_str(before);
        let (inside, after) = from[2..].split_once('}').ok_or(PlaceholderError::Unclosed)?;
        fill_in(inside, dialect, context, &mut out)?;
        rest = after;
    }
    out.value.push_str(rest);
    Ok(out)
}

fn fill_in(
    inside: &str,
    dialect: Dialect,
    context: &LoadContext<'_>,
    out: &mut Expanded,
) -> Result<(), PlaceholderError> {
    if inside == "workspaceRoot" {
        return push_root(context, out);
    }
    if let Some(variable) = inside.strip_prefix("env:") {
        return push_env(variable, context, out);
    }
    if let Some(name) = inside.strip_prefix("secret:") {
        return Err(PlaceholderError::SecretInText { name: SecretName::new(name)? });
    }
    match dialect {
        Dialect::Strict => Err(unknown(inside)),
        Dialect::Tolerant => rewrite(inside, context, out),
    }
}

/// Rewrites another program's spelling to narthex's.
fn rewrite(
    inside: &str,
    context: &LoadContext<'_>,
    out: &mut Expanded,
) -> Result<(), PlaceholderError> {
    let report = |ours: String, out: &mut Expanded| {
        let (name, _) = split_default(inside);
        out.rewritten.push((format!("${{{name}}}"), ours));
    };
    match inside {
        "workspaceFolder" => {
            report("${workspaceRoot}".to_owned(), out);
            push_root(context, out)
        }
        "userHome" => {
            report("${env:HOME}".to_owned(), out);
            push_env("HOME", context, out)
        }
        _ if is_variable(split_default(inside).0) => {
            report(format!("${{env:{}}}", split_default(inside).0), out);
            push_env(inside, context, out)
        }
        _ => Err(unknown(inside)),
    }
}

fn push_root(context: &LoadContext<'_>, out: &mut Expanded) -> Result<(), PlaceholderError> {
    out.value.push_str(context.workspace_root.to_str().ok_or(PlaceholderError::WorkspaceRoot)?);
    Ok(())
}

/// Appends a variable's value. `:-` is used if the variable is unset or empty, as in a shell.
fn push_env(
    variable: &str,
    context: &LoadContext<'_>,
    out: &mut Expanded,
) -> Result<(), PlaceholderError> {
    let (name, default) = split_default(variable);
    if !is_variable(name) {
        return Err(PlaceholderError::BadName { name: printable(name) });
    }
    if default.is_some_and(|default| default.contains("${")) {
        return Err(PlaceholderError::NestedDefault { name: name.to_owned() });
    }
    let Env::Values(value_of) = context.env else {
        out.push_from_env(name, &format!("${{env:{variable}}}"));
        return Ok(());
    };
    match (value_of(name), default) {
        (Some(value), None) => out.push_from_env(name, &value),
        (Some(value), Some(_)) if !value.is_empty() => out.push_from_env(name, &value),
        (_, Some(default)) => out.value.push_str(default),
        (None, None) => return Err(PlaceholderError::Missing { name: name.to_owned() }),
    }
    Ok(())
}

impl Expanded {
    /// A text without placeholders.
    pub(super) fn literal(value: String) -> Self {
        Self {
            value,
            variables: Vec::new(),
            secrets: Vec::new(),
            rewritten: Vec::new(),
            secret: None,
        }
    }

    /// The text of a value that names this secret.
    pub(super) fn naming(secret: SecretName, text: &str) -> Self {
        Self { secret: Some(secret), ..Self::literal(text.to_owned()) }
    }

    /// True if the value, or a part of it, is not in the file.
    pub(super) fn is_from_elsewhere(&self) -> bool {
        !self.variables.is_empty() || self.secret.is_some()
    }

    fn push_from_env(&mut self, name: &str, value: &str) {
        self.value.push_str(value);
        self.variables.push(name.to_owned());
        if is_secret_variable(name) {
            self.secrets.push(Secret::new(value));
        }
    }
}

fn split_default(variable: &str) -> (&str, Option<&str>) {
    match variable.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (variable, None),
    }
}

fn is_variable(name: &str) -> bool {
    name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && name.len() <= 256
}

fn unknown(inside: &str) -> PlaceholderError {
    let (name, _) = split_default(inside);
    let variable = ["env.", "ENV:", "Env:", "input:"].iter().find_map(|p| name.strip_prefix(p));
    let meant = match name {
        "workspaceFolder" | "workspace_root" | "workspaceroot" | "WorkspaceRoot" => {
            Some("workspaceRoot".to_owned())
        }
        "userHome" => Some("env:HOME".to_owned()),
        _ => variable
            .or(Some(name))
            .filter(|name| is_variable(name))
            .map(|variable| format!("env:{variable}")),
    };
    let remedy = match meant {
        Some(meant) => format!("write `${{{meant}}}`, or `$${{` for a literal `${{`"),
        None => {
            "use `${env:NAME}`, `${secret:NAME}` or `${workspaceRoot}`, or `$${` for a literal \
                 `${`"
                .to_owned()
        }
    };
    PlaceholderError::Unknown { name: printable(name), remedy }
}

/// Shows text that is shaped like a name; other text could be part of a secret.
fn printable(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.:-".contains(c);
    if name.len() <= 60 && name.chars().all(is_plain) { name.to_owned() } else { "…".to_owned() }
}

#[cfg(test)]
mod tests;
