//! Rules by which a text looks like a secret. When in doubt, a text counts as one.
//!
//! Only plain parts of a text are looked at: the value of a placeholder is not in the file.
//!
//! 1. The name of a variable, header, flag or parameter has a word of [`NAMES`] or [`DOUBTFUL`].
//!    Its value counts unless it is a flag, a short number, a path, or an address without a
//!    password.
//! 2. The text begins as keys and tokens of well-known services do.
//! 3. The text is an address with a password, or with a parameter or step that counts.
//! 4. The text has [`RUN_MIN`] letters and digits in a row, of both kinds.
//! 5. The text has a pair `NAME=value` that counts, as connection strings have.

use narthex_model::{is_known_key, written::is_digits};

/// The text in place of a secret.
pub(super) const HIDDEN: &str = "[hidden]";

/// Words of names whose values are secrets. A name is split at signs and at capital letters.
const NAMES: [&str; 20] = [
    "apikey",
    "authorization",
    "bearer",
    "cookie",
    "credential",
    "credentials",
    "jwt",
    "key",
    "keys",
    "pass",
    "passphrase",
    "passwd",
    "password",
    "pat",
    "pw",
    "pwd",
    "secret",
    "secrets",
    "token",
    "tokens",
];
/// Words of names whose values may be secrets.
const DOUBTFUL: [&str; 7] = ["auth", "dsn", "pin", "private", "session", "signature", "webhook"];
/// Ends of words without a sign before them, as in `GITHUBTOKEN`.
const ENDS: [&str; 4] = ["apikey", "password", "secret", "token"];

/// Names of schemes before a credential.
const SCHEMES: [&str; 4] = ["bearer", "basic", "token", "apikey"];

/// Values that are never secret.
const FLAGS: [&str; 9] = ["true", "false", "yes", "no", "on", "off", "none", "null", "auto"];

/// The flag by which many programs of databases take a password, and launchers a package or port.
const SHORT_PASSWORD: &str = "-p";
/// Programs that start another one, which is among their arguments.
const LAUNCHERS: [&str; 11] =
    ["bun", "bunx", "docker", "npm", "npx", "pipx", "pnpm", "podman", "uv", "uvx", "yarn"];
/// Words of a launcher that no value follows.
const LAUNCHING: [&str; 14] = [
    "--interactive",
    "--quiet",
    "--rm",
    "--yes",
    "-d",
    "-i",
    "-it",
    "-q",
    "-y",
    "dlx",
    "exec",
    "run",
    "tool",
    "x",
];

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
pub(super) fn secret_args(command: &str, args: &[Vec<String>]) -> Vec<bool> {
    let own = own_args(command, args);
    let mut flag = String::new();
    let mut found = Vec::with_capacity(args.len());
    for (at, literals) in args.iter().enumerate() {
        let first = literals.first().map_or("", String::as_str);
        let before = std::mem::take(&mut flag);
        let inner = pair(first);
        let is_inside = inner.is_some_and(|(name, value)| {
            let rest = std::iter::once(value.to_owned()).chain(literals.iter().skip(1).cloned());
            is_secret(name, &rest.collect::<Vec<_>>())
        });
        if first.starts_with('-') && inner.is_none() && !first.contains(char::is_whitespace) {
            flag = first.to_owned();
            found.push(literals.iter().any(|text| by_itself(text)));
        } else {
            let is_password = before == SHORT_PASSWORD && at > own;
            let is_password = is_password && literals.iter().any(|text| is_short_password(text));
            found.push(is_inside || is_password || is_secret(&before, literals));
        }
    }
    found
}

/// The index of the first argument of the server itself, after those of its launcher.
pub(super) fn own_args(command: &str, args: &[Vec<String>]) -> usize {
    let program = command.rsplit(['/', '\\']).next().unwrap_or_default();
    if !LAUNCHERS.contains(&program.trim_end_matches(".exe").trim_end_matches(".cmd")) {
        return 0;
    }
    let words = args.iter().map(|literals| literals.first().map_or("", String::as_str));
    let mut is_value = false;
    for (at, word) in words.enumerate() {
        let is_of_launcher = LAUNCHING.contains(&word);
        let is_flag = word.starts_with('-');
        if !is_of_launcher && !is_flag && !is_value {
            return at + 1;
        }
        is_value = is_flag && !is_of_launcher && !word.contains('=');
    }
    args.len()
}

/// True unless the value after [`SHORT_PASSWORD`] is a port, a path or an address.
fn is_short_password(text: &str) -> bool {
    let is_port = text.chars().all(|c| c.is_ascii_digit() || ":.-".contains(c));
    counts(text) && !is_port
}

fn is_name(text: &str) -> bool {
    let name = text.trim_start_matches('-');
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

/// True if a text has a pair such as `Password=x`, as in `Server=a;Password=x;` and
/// `host=a password=x`.
fn has_secret_pair(text: &str) -> bool {
    let parts = text.split(|c: char| c == ';' || c == ',' || c.is_whitespace());
    parts.filter_map(|part| part.split_once('=')).any(|(name, value)| {
        let value = value.trim_matches(['"', '\'']);
        is_name(name) && has_secret_word(name) && counts(value)
    })
}

/// The name and the value of `--name=value`, `NAME=value` and `Name: value`.
pub(super) fn pair(text: &str) -> Option<(&str, &str)> {
    let found = text.split_once('=').filter(|(name, _)| is_name(name));
    found.or_else(|| text.split_once(": ").filter(|(name, _)| is_name(name)))
}

/// An address with its host alone.
pub(super) fn without_secrets(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return HIDDEN.to_owned() };
    // Clients connect to a host behind any number of slashes, and leave out breaks of lines.
    let rest = rest.replace(['\t', '\n', '\r'], "");
    let rest = rest.trim_start_matches(['/', '\\']);
    // A `\` ends the host as a `/` does.
    let host = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default();
    let host = host.replace(|c: char| !c.is_ascii(), "\u{fffd}");
    format!("{scheme}://{host}/{HIDDEN}")
}

/// True for a name whose value may be a secret.
fn has_secret_word(name: &str) -> bool {
    says_secret(name) || names_in(name).iter().any(|word| DOUBTFUL.contains(&word.as_str()))
}

/// True for a name whose value is a secret.
pub(super) fn says_secret(name: &str) -> bool {
    names_in(name)
        .iter()
        .any(|word| NAMES.contains(&word.as_str()) || ENDS.iter().any(|end| word.ends_with(end)))
}

/// The words of a name, in small letters.
fn names_in(name: &str) -> Vec<String> {
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
    words
}

/// True if a value under the name of a secret is one.
pub(super) fn counts(text: &str) -> bool {
    let text = without_scheme(text.trim());
    let is_number = text.len() <= NUMBER_MAX && is_digits(text);
    let is_flag = FLAGS.iter().any(|flag| text.eq_ignore_ascii_case(flag));
    let is_path = text.starts_with(['/', '~', '.'])
        || text.get(1..3).is_some_and(|rest| rest == ":\\" || rest == ":/");
    let is_address = text.contains("://");
    !(text.is_empty() || is_number || is_flag || is_path || is_address)
}

/// The credential after the name of its scheme.
pub(super) fn without_scheme(text: &str) -> &str {
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
        || is_known_key(credential)
        || is_secret_address(credential)
        || has_secret_pair(credential)
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
        let found = secret_args("npx", &literals).into_iter().zip(args);
        let found: Vec<_> = found.filter(|(is, _)| *is).map(|(_, arg)| arg).collect();
        assert_eq!(found, ["abc", "--token=abc", "KEY=abc", "Authorization: Bearer abc"]);
    }

    fn of_line(line: &str) -> Vec<String> {
        let mut words = line.split('|').map(str::to_owned);
        let command = words.next().unwrap();
        let literals: Vec<_> = words.map(|word| vec![word]).collect();
        let found = secret_args(&command, &literals).into_iter().zip(literals);
        found.filter(|(is, _)| *is).map(|(_, mut word)| word.remove(0)).collect()
    }

    #[test]
    fn passwords_in_connection_strings_are_recognized() {
        for text in [
            "Server=db.example;Password=hunter2;",
            "Server=db.example;User Id=ada;pwd='hunter2'",
            "--connection=Server=db.example;Token=hunter2",
            "host=db.example user=ada password=hunter2",
            "cache.example:6379,password=hunter2,ssl=True",
            "AccountName=ada;AccountKey=hunter2",
            "jdbc:sqlserver://db.example;user=ada;password=hunter2",
        ] {
            assert_eq!(of_line(&format!("db|--connection-string|{text}")), [text]);
            assert_eq!(of_line(&format!("db|{text}")), [text]);
            assert!(secret("DB", text), "{text}");
        }
        for text in [
            "Server=db.example;Integrated Security=true;Max Tokens=4096",
            "a=1,b=2",
            "Server=db.example;Password=;",
            "https://a.example/x?b=1,c=2",
        ] {
            assert_eq!(of_line(&format!("db|--connection-string|{text}")), [""; 0], "{text}");
        }
    }

    #[test]
    fn the_value_after_a_flag_for_a_password_is_recognized() {
        for line in [
            "mysql-mcp|-p|hunter2hunter",
            "mysql-mcp|--password|hunter2",
            "mysql-mcp|--db-pw|hunter2",
            "npx|-y|mysql-mcp|-p|hunter2hunter",
            "/usr/bin/docker|run|-i|--rm|-p|8080:80|mysql-mcp|-p|hunter2hunter",
        ] {
            assert_eq!(of_line(line), [line.rsplit('|').next().unwrap()], "{line}");
        }
        for line in [
            "server|-p|8080",
            "server|-p|127.0.0.1:8080",
            "server|-p|./project",
            "npx|-y|-p|mcp-remote2|mcp-remote",
            "npx|-p|@example/server@1.2.3|server",
            "docker|run|-p|8080:80|image",
        ] {
            assert_eq!(of_line(line), [""; 0], "{line}");
        }
    }

    #[test]
    fn an_address_is_shown_by_its_host() {
        assert_eq!(without_secrets("https://me:pw@a.example/x?k=1"), "https://a.example/[hidden]");
        assert_eq!(without_secrets("x"), "[hidden]");
        assert_eq!(without_secrets("http:///evil.example/x"), "http://evil.example/[hidden]");
        assert_eq!(without_secrets("http://\u{435}.example"), "http://\u{fffd}.example/[hidden]");
    }
}
