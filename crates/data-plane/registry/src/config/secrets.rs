//! Guesses if a text in a file is a secret that should not be in the file (E16, E138).

use narthex_model::{command::narthex, is_known_key};

/// Values of names that tell of a secret are at least as long as this in a header. Variables have
/// more names that only resemble those, such as `MAX_TOKENS`.
const HEADER_MIN: usize = 4;
const VALUE_MIN: usize = 8;

const NAME_PARTS: [&str; 9] =
    ["key", "token", "secret", "passw", "credential", "authorization", "cookie", "bearer", "pwd"];

/// Names of schemes before a credential.
const SCHEMES: [&str; 2] = ["Bearer ", "Basic "];

/// Advice for a secret in a file.
pub(super) fn advice() -> String {
    format!(
        "this looks like a secret; keep it out of the file: store it with `{}`, and write \
         `${{secret:NAME}}` in its place, or `${{env:NAME}}` for a variable",
        narthex("secrets set NAME", &[])
    )
}

/// True if `value`, under the key `name`, seems to be a secret.
pub(super) fn looks_secret(name: &str, value: &str) -> bool {
    if value.len() < VALUE_MIN {
        return false;
    }
    is_named_so(name, value)
        || is_known_key(value)
        || SCHEMES.iter().any(|scheme| value.starts_with(scheme))
}

/// True if `value` seems to be a secret in the header `name`.
pub(super) fn looks_secret_in_header(name: &str, value: &str) -> bool {
    looks_secret(name, value) || value.len() >= HEADER_MIN && is_named_so(name, value)
}

/// True if the name tells of a secret, and the value is no path of one.
fn is_named_so(name: &str, value: &str) -> bool {
    let name = name.to_lowercase();
    let is_path = value.starts_with(['/', '.', '~']) || value.contains("://");
    NAME_PARTS.iter().any(|part| name.contains(part)) && !is_path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e16_names_and_values_of_secrets_are_recognized() {
        for (name, value) in [
            ("API_KEY", "abcdefgh12"),
            ("Authorization", "Bearer x1y2"),
            ("X", "ghp_0123456789"),
            ("X", "hf_0123456789"),
            ("X", "Basic eDp5"),
            ("DB_PASSWORD", "correct horse"),
        ] {
            assert!(looks_secret(name, value), "{name}");
        }
        for (name, value) in [
            ("LOG", "warn"),
            ("API_KEY", "short"),
            ("TOKEN_FILE", "/run/secrets/token"),
            ("MODE", "production"),
        ] {
            assert!(!looks_secret(name, value), "{name}");
        }
        assert!(looks_secret_in_header("X-Key", "abc1") && looks_secret_in_header("X", "ghp_0123"));
        for (name, value) in [("X-Key", "abc"), ("X-Team", "blue-1"), ("X-Key-Url", "http://a")] {
            assert!(!looks_secret_in_header(name, value), "{name}");
        }
    }
}
