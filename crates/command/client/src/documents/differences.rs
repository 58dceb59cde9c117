//! Differences between two objects, for people.

use serde_json::Value;

/// The differences, one line per place.
#[must_use]
pub fn differences(before: &Value, after: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    compare("", before, after, &mut lines);
    lines
}

fn compare(at: &str, before: &Value, after: &Value, lines: &mut Vec<String>) {
    match (before, after) {
        (before, after) if before == after => {}
        (Value::Object(old), Value::Object(new)) => {
            let added = new.keys().filter(|key| !old.contains_key(*key));
            for key in old.keys().chain(added) {
                let place = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
                match (old.get(key), new.get(key)) {
                    (Some(old), Some(new)) => compare(&place, old, new, lines),
                    (Some(old), None) => lines.push(format!("- {place}: {old}")),
                    (None, Some(new)) => lines.push(format!("+ {place}: {new}")),
                    (None, None) => {}
                }
            }
        }
        (before, after) => lines.push(format!("~ {at}: {before} -> {after}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn differences_name_each_place() {
        let before = json!({ "a": 1, "b": { "c": [1], "d": "x" }, "e": null });
        let after = json!({ "a": 1, "b": { "c": [1, 2], "f": true }, "e": {} });
        let wanted = ["~ b.c: [1] -> [1,2]", "- b.d: \"x\"", "+ b.f: true", "~ e: null -> {}"];
        assert_eq!(differences(&before, &after), wanted);
    }
}
