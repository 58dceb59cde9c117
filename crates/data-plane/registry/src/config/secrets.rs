//! Guesses if a text in a file is a secret that should not be in the file (E16, E138).

use narthex_model::is_known_key;

/// Advice for a secret in a file.
pub(super) const ADVICE: &str = "this looks like a secret; keep it out of the file and write \
     `${env:NAME}` instead, or `${secret:NAME}` for a stored secret";

const NAME_PARTS: [&str; 9] =
    ["key", "token", "secret", "passw", "credential", "authorization", "cookie", "bearer", "pwd"];

/// Names of schemes before a credential.
const SCHEMES: [&str; 2] = ["Bearer ", "Basic "];

/// True if `value`, under the key `name`, seems to be a secret.
pub(super) fn looks_secret(name: &str, value: &str) -> bool {
    if value.len() < 8 {
        return false;
    }
    let name = name.to_lowercase();
    let is_path = value.starts_with(['/', '.', '~']) || value.contains("://");
    let is_named_so = NAME_PARTS.iter().any(|part| name.contains(part)) && !is_path;
    is_named_so || is_known_key(value) || SCHEMES.iter().any(|scheme| value.starts_with(scheme))
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
    }
}
