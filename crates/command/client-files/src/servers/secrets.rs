//! Rules by which a text looks like a secret. When in doubt, a text counts as one.
//!
//! Only plain parts of a text are looked at: the value of a placeholder is not in the file.
//!
//! 1. The name of a variable, header, flag or parameter has a word of [`NAMES`]. Its value counts
//!    unless it is a flag, a short number, a path, or an address without a password.
//! 2. The text begins as keys and tokens of well-known services do.
//! 3. The text is an address with a password, or with a parameter or step that counts.
//! 4. The text has [`RUN_MIN`] letters and digits in a row, of both kinds.

use narthex_model::written::is_digits;

/// The text in place of a secret.
pub(super) const HIDDEN: &str = "[hidden]";

/// Words of names whose values are secrets. A name is split at signs and at capital letters.
const NAMES: [&str; 26] = [
    "apikey",
    "auth",
    "authorization",
    "bearer",
    "cookie",
    "credential",
    "credentials",
    "dsn",
    "jwt",
    "key",
    "keys",
    "pass",
    "passphrase",
    "passwd",
    "password",
    "pat",
    "pin",
    "private",
    "pwd",
    "secret",
    "secrets",
    "session",
    "signature",
    "token",
    "tokens",
    "webhook",
];

/// Beginnings of keys and tokens of well-known services.
const STARTS: [&str; 27] = [
    "sk-",
    "sk_",
    "rk_",
    "pk_",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xapp-",
    "AKIA",
    "ASIA",
    "AIza",
    "ya29.",
    "eyJ",
    "npm_",
    "pypi-",
    "hf_",
    "lin_api_",
    "ntn_",
    "secret_",
    "figd_",
    "-----BEGIN",
];

/// Names of schemes before a credential.
const SCHEMES: [&str; 4] = ["bearer", "basic", "token", "apikey"];

/// Values that are never secret.
const FLAGS: [&str; 9] = ["true", "false", "yes", "no", "on", "off", "none", "null", "auto"];

/// Length of a row of letters and digits that counts.
const RUN_MIN: usize = 16;
/// The longest number that is no secret.
const NUMBER_MAX: usize = 7;

/// True if the plain parts of a value look like a secret, by themselves or under this name.
pub(super) fn is_secret(name: &str, literals: &[String]) -> bool {
    let is_named = has_secret_word(name);
    literals.iter().any(|text| by_itself(text) || is_named && counts(text))
}

/// True for each argument of a program that looks like a secret: under the flag before it, under a
/// name inside of it, or by itself.
pub(super) fn secret_args(args: &[Vec<String>]) -> Vec<bool> {
    let mut flag = String::new();
    let mut found = Vec::with_capacity(args.len());
    for literals in args {
        let first = literals.first().map_or("", String::as_str);
        let before = std::mem::take(&mut flag);
        let inner = named_part(first);
        let is_inside = inner.is_some_and(|(name, value)| {
            let rest = std::iter::once(value.to_owned()).chain(literals.iter().skip(1).cloned());
            is_secret(name, &rest.collect::<Vec<_>>())
        });
        if first.starts_with('-') && inner.is_none() && !first.contains(char::is_whitespace) {
            flag = first.to_owned();
            found.push(literals.iter().any(|text| by_itself(text)));
        } else {
            found.push(is_inside || is_secret(&before, literals));
        }
    }
    found
}

/// The name and the value of `--name=value`, `NAME=value` and `Name: value`.
fn named_part(text: &str) -> Option<(&str, &str)> {
    let is_name = |name: &str| {
        let name = name.trim_start_matches('-');
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
    };
    let found = text.split_once('=').filter(|(name, _)| is_name(name));
    found.or_else(|| text.split_once(": ").filter(|(name, _)| is_name(name)))
}

/// An address with its host alone.
pub(super) fn without_secrets(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return HIDDEN.to_owned() };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{host}/{HIDDEN}")
}

fn has_secret_word(name: &str) -> bool {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut was_lower = false;
    for c in name.chars() {
        let begins = c.is_uppercase() && was_lower;
        if (begins || !c.is_alphanumeric()) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase();
    }
    words.push(word);
    // Names such as `GITHUBTOKEN` have no sign between their words.
    let ends = ["token", "secret", "password", "apikey"];
    words
        .iter()
        .any(|word| NAMES.contains(&word.as_str()) || ends.iter().any(|end| word.ends_with(end)))
}

/// True if a value under the name of a secret is one.
fn counts(text: &str) -> bool {
    let text = without_scheme(text.trim());
    let is_number = text.len() <= NUMBER_MAX && is_digits(text);
    let is_flag = FLAGS.iter().any(|flag| text.eq_ignore_ascii_case(flag));
    let is_path = text.starts_with(['/', '~', '.'])
        || text.get(1..3).is_some_and(|rest| rest == ":\\" || rest == ":/");
    let is_address = text.contains("://");
    !(text.is_empty() || is_number || is_flag || is_path || is_address)
}

/// The credential after the name of its scheme.
fn without_scheme(text: &str) -> &str {
    let first = text.split_whitespace().next().unwrap_or_default();
    match SCHEMES.iter().any(|scheme| first.eq_ignore_ascii_case(scheme)) {
        true => text[first.len()..].trim_start(),
        false => text,
    }
}

/// True if a text looks like a secret whatever its name is.
fn by_itself(text: &str) -> bool {
    let trimmed = text.trim();
    let credential = without_scheme(trimmed);
    let has_scheme = credential.len() < trimmed.len() && !credential.is_empty();
    has_scheme && counts(credential) && !credential.contains(char::is_whitespace)
        || STARTS.iter().any(|start| credential.starts_with(start))
        || is_secret_address(credential)
        || !credential.contains("://") && has_long_run(credential)
}

fn is_secret_address(text: &str) -> bool {
    let Some((_, rest)) = text.split_once("://") else { return false };
    let (host, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let has_password = host.rsplit_once('@').is_some_and(|(user, _)| {
        user.split_once(':').is_some_and(|(_, password)| !password.is_empty()) || has_long_run(user)
    });
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let is_id = |step: &str| has_long_run(step) || is_uuid(step);
    let has_parameter = query.split(['&', '#']).any(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        has_secret_word(name) && counts(value) || has_long_run(value) || is_uuid(value)
    });
    has_password || path.split('/').any(is_id) || has_parameter
}

/// True if letters and digits follow each other without a sign, as in keys.
fn has_long_run(text: &str) -> bool {
    let runs = text.split(|c: char| !c.is_ascii_alphanumeric());
    runs.filter(|run| run.len() >= RUN_MIN).any(|run| {
        run.contains(|c: char| c.is_ascii_digit())
            && run.contains(|c: char| c.is_ascii_alphabetic())
    })
}

fn is_uuid(text: &str) -> bool {
    let lengths = text.split('-').map(str::len);
    lengths.eq([8, 4, 4, 4, 12]) && text.chars().all(|c| c.is_ascii_hexdigit() || c == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(name: &str, value: &str) -> bool {
        is_secret(name, &[value.to_owned()])
    }

    #[test]
    fn names_and_values_of_secrets_are_recognized() {
        for (name, value) in [
            ("API_KEY", "abc"),
            ("X-Api-Key", "not-a-real-key"),
            ("githubToken", "x"),
            ("GITHUBTOKEN", "x"),
            ("Authorization", "Bearer x1y2"),
            ("DB_PASSWORD", "correct horse"),
            ("MODE", "ghp_0123456789"),
            ("DATABASE", "postgres://ada:pw@db.example/x"),
            ("URL", "https://a.example/s/0123456789abcdef0/mcp"),
            ("URL", "https://a.example/mcp?api_key=abc"),
            ("URL", "https://a.example/123e4567-e89b-12d3-a456-426614174000"),
            ("MODE", "Bearer x1"),
            ("X", "a1b2c3d4e5f6a7b8c9"),
        ] {
            assert!(secret(name, value), "{name}={value}");
        }
    }

    #[test]
    fn plain_settings_are_not_secret() {
        for (name, value) in [
            ("LOG", "warn"),
            ("MAX_TOKENS", "4096"),
            ("KEYBOARD", "de"),
            ("MONKEY", "x"),
            ("TOKEN_FILE", "/run/secrets/token"),
            ("SSH_KEY", "C:\\keys\\id"),
            ("TOKEN_URL", "https://a.example/token"),
            ("USE_AUTH", "true"),
            ("API_KEY", ""),
            ("MODEL", "claude-3-5-sonnet-20241022"),
            ("URL", "https://mcp.example.com/v1/mcp?team=blue"),
            ("REPO", "https://github.com/modelcontextprotocol/servers"),
            ("NAME", "internationalization"),
        ] {
            assert!(!secret(name, value), "{name}={value}");
        }
    }

    #[test]
    fn arguments_are_secret_by_their_flag_or_their_own_name() {
        let args = [
            "-y",
            "@example/server@1.2.3",
            "--api-key",
            "abc",
            "--token=abc",
            "--port",
            "8080",
            "-e",
            "MODE=fast",
            "-e",
            "KEY=abc",
            "--header",
            "Authorization: Bearer abc",
            "--verbose",
        ];
        let literals: Vec<_> = args.iter().map(|arg| vec![(*arg).to_owned()]).collect();
        let found = secret_args(&literals).into_iter().zip(args);
        let found: Vec<_> = found.filter(|(is, _)| *is).map(|(_, arg)| arg).collect();
        assert_eq!(found, ["abc", "--token=abc", "KEY=abc", "Authorization: Bearer abc"]);
    }

    #[test]
    fn an_address_is_shown_by_its_host() {
        assert_eq!(without_secrets("https://me:pw@a.example/x?k=1"), "https://a.example/[hidden]");
        assert_eq!(without_secrets("x"), "[hidden]");
    }
}
