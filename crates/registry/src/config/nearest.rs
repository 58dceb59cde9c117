//! Finds the known word that a misspelt one was meant to be.

/// Other programs' words for the same thing.
const SYNONYMS: [(&str, &str); 20] = [
    ("type", "transport"),
    ("transportType", "transport"),
    ("transport_type", "transport"),
    ("serverUrl", "url"),
    ("httpUrl", "url"),
    ("endpoint", "url"),
    ("uri", "url"),
    ("arguments", "args"),
    ("environment", "env"),
    ("workingDirectory", "cwd"),
    ("request_timeout", "timeoutMs"),
    ("mcp_servers", "mcpServers"),
    ("includeTools", "tools"),
    ("excludeTools", "tools"),
    ("allowedTools", "tools"),
    ("disabledTools", "tools"),
    ("enabled_tools", "tools"),
    ("disabled_tools", "tools"),
    ("apiKey", "key"),
    ("prefix", "valuePrefix"),
];

/// The nearest of `known`, or `None` if none is near.
pub(super) fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    let synonym = SYNONYMS.iter().find(|(other, _)| *other == word).map(|(_, meant)| *meant);
    if let Some(found) = known.iter().find(|name| Some(**name) == synonym) {
        return Some(found);
    }
    narthex_model::nearest(word, known.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_words_find_the_one_that_was_meant() {
        let known = ["transport", "url", "command", "args", "env", "timeoutMs", "servers"];
        for (word, meant) in [
            ("severs", Some("servers")),
            ("Servers", Some("servers")),
            ("comand", Some("command")),
            ("timeoutms", Some("timeoutMs")),
            ("environment", Some("env")),
            ("type", Some("transport")),
            ("autoApprove", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, &known), meant, "{word}");
        }
    }
}
