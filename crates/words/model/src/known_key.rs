//! Keys and tokens of well-known services, which are recognized by their first characters.

/// First characters of the keys and tokens of well-known services.
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

/// True for a text that begins as the keys and tokens of well-known services do.
#[must_use]
pub fn is_known_key(text: &str) -> bool {
    STARTS.iter().any(|start| text.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_services_are_known_by_their_first_characters() {
        for key in ["sk-abc", "ghr_1", "xapp-1", "ASIA123", "hf_x", "eyJhbGciOi", "-----BEGIN KEY"]
        {
            assert!(is_known_key(key), "{key}");
        }
        for text in ["", "sk", "task-list", "Bearer x", "githubber", "akia", " sk-a"] {
            assert!(!is_known_key(text), "{text}");
        }
    }

    /// A start that another one begins would never decide.
    #[test]
    fn no_start_is_in_another_one() {
        for (at, one) in STARTS.iter().enumerate() {
            let mut others = STARTS.iter().enumerate().filter(|(other, _)| *other != at);
            assert!(!others.any(|(_, other)| one.starts_with(other)), "{one}");
        }
    }
}
