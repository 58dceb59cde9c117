//! Splits strings: the grammar of placeholders, escapes and references to secrets.

use narthex_model::{ClientVariable, SecretName, VariablePlace};

use super::{BadText, Placeholder, Source, Template};

/// The keys of `runtime` (O13, O95).
const RUNTIME_KEYS: [&str; 3] = ["run_id", "session_id", "project_dir"];
/// The keys of `runner` (O14, O70, O95).
const RUNNER_KEYS: [&str; 2] = ["orchestrator_mcp_url", "scripts_dir"];

/// The meaning of a string.
pub(crate) enum Text {
    Secret(SecretName),
    Template(Template),
}

/// Takes a string apart; with `takes_secret` the whole of it may be a secret.
pub(crate) fn parse(text: &str, takes_secret: bool) -> Result<Text, BadText> {
    let mut template = Template::default();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let (before, from) = rest.split_at(start);
        if let Some(before) = before.strip_suffix('$') {
            template.push_text(before);
            template.push_text("${");
            rest = &from[2..];
            continue;
        }
        template.push_text(before);
        let Some((inside, after)) = from[2..].split_once('}') else {
            return Err(bad(
                "`${` has no closing `}`",
                "close the placeholder, or write `$${` for a literal `${`",
            ));
        };
        match SecretName::new(inside) {
            Ok(name) if text.len() == inside.len() + 3 => return Ok(Text::Secret(name)),
            Ok(name) => return Err(partial_secret(&name)),
            Err(_) => match ClientVariable::read(inside) {
                Some(variable) => return Err(of_clients(variable, text, takes_secret)),
                None => template.push(placeholder(inside)?),
            },
        }
        rest = after;
    }
    template.push_text(rest);
    Ok(Text::Template(template))
}

pub(super) fn bad(message: impl Into<String>, remedy: impl Into<String>) -> BadText {
    BadText { is_secret: false, message: message.into(), remedy: remedy.into() }
}

fn of_clients(variable: ClientVariable<'_>, text: &str, takes_secret: bool) -> BadText {
    let place = match takes_secret {
        true => VariablePlace::in_value(text, None),
        false => VariablePlace::Text,
    };
    bad(variable.to_string(), variable.remedy(place))
}

pub(super) fn partial_secret(name: &SecretName) -> BadText {
    let message = format!("the secret `{name}` is only a part of the text");
    let remedy = format!(
        "make `${{{name}}}` the whole value and let the server put the text together; for a \
         header with a prefix use `auth` with `valuePrefix`"
    );
    BadText { is_secret: true, message, remedy }
}

fn placeholder(inside: &str) -> Result<Placeholder, BadText> {
    let parts = inside.split_once('.').and_then(|(source, key)| {
        Some((Source::ALL.into_iter().find(|known| known.as_str() == source)?, key))
    });
    let Some((source, key)) = parts else { return Err(unknown(inside)) };
    let shown = shown(inside);
    let known = match source {
        Source::Params | Source::Scope => {
            let is_plain = |c: char| !c.is_control() && !"${".contains(c);
            if key.is_empty() || key.len() > 256 || !key.chars().all(is_plain) {
                return Err(bad(
                    format!("`${{{shown}}}` names no value"),
                    "write a key after the dot, of at most 256 characters",
                ));
            }
            return Ok(Placeholder { source, key: key.to_owned() });
        }
        Source::Env if is_variable(key) => {
            return Ok(Placeholder { source, key: key.to_owned() });
        }
        Source::Env => {
            return Err(bad(
                format!("`${{{shown}}}` names no variable"),
                "after `env.` write a letter or `_`, then letters, digits and `_`",
            ));
        }
        Source::Runtime => RUNTIME_KEYS.as_slice(),
        Source::Runner => RUNNER_KEYS.as_slice(),
    };
    if known.contains(&key) {
        return Ok(Placeholder { source, key: key.to_owned() });
    }
    let word = source.as_str();
    Err(bad(
        format!("`${{{shown}}}` names nothing that `{word}` has"),
        format!("use one of `{word}.{}`", known.join(&format!("`, `{word}."))),
    ))
}

pub(crate) fn is_variable(name: &str) -> bool {
    name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && name.len() <= 256
}

fn unknown(inside: &str) -> BadText {
    let remedy = match inside.strip_prefix("env:").or_else(|| inside.strip_prefix("ENV.")) {
        Some(name) if is_variable(name) => format!("write `${{env.{name}}}`"),
        _ => "use `params.`, `scope.`, `env.`, `runtime.` or `runner.` and a key, a secret's name \
              in capitals, or `$${` for a literal `${`"
            .to_owned(),
    };
    bad(format!("`${{{}}}` is not a placeholder here", shown(inside)), remedy)
}

/// Shows text that is shaped like a name; other text could be part of a secret.
fn shown(inside: &str) -> &str {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.:-".contains(c);
    if inside.len() <= 60 && inside.chars().all(is_plain) { inside } else { "…" }
}
