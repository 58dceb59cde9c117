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
    // Long words are no misspellings, and measuring them takes time.
    if word.len() > 40 {
        return None;
    }
    let close = |name: &str| distance(&word.to_lowercase(), &name.to_lowercase());
    let (name, distance) = known.iter().map(|name| (*name, close(name))).min_by_key(|(_, d)| *d)?;
    (distance <= 1 + name.len() / 4 && distance < name.len()).then_some(name)
}

/// How many letters must be changed, added or removed.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, letter) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for column in 0..other.len() {
            let changed = diagonal + usize::from(letter != other[column]);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
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
