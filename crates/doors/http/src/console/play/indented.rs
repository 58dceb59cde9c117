//! JSON in lines, with each member and each number as it was written.

/// Number of levels that get their own indentation.
const LEVELS_MAX: usize = 40;

/// The text with a line for each member and item. Text that is no JSON is only cut into lines.
pub(super) fn indented(json: &str) -> String {
    let mut shown = String::with_capacity(json.len().saturating_mul(2));
    let (mut depth, mut is_text, mut is_escaped) = (0_usize, false, false);
    let mut rest = json.trim().chars().peekable();
    while let Some(c) = rest.next() {
        if is_text {
            shown.push(c);
            is_text = is_escaped || c != '"';
            is_escaped = !is_escaped && c == '\\';
            continue;
        }
        match c {
            '{' | '[' => {
                shown.push(c);
                while rest.next_if(|next| next.is_ascii_whitespace()).is_some() {}
                if let Some(end) = rest.next_if(|next| matches!(next, '}' | ']')) {
                    shown.push(end);
                } else {
                    depth += 1;
                    line(&mut shown, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut shown, depth);
                shown.push(c);
            }
            ',' => {
                shown.push(c);
                line(&mut shown, depth);
            }
            ':' => shown.push_str(": "),
            c if c.is_ascii_whitespace() => {}
            c => {
                is_text = c == '"';
                shown.push(c);
            }
        }
    }
    shown
}

fn line(shown: &mut String, depth: usize) {
    shown.push('\n');
    shown.extend(std::iter::repeat_n("  ", depth.min(LEVELS_MAX)));
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// The order of members and the spelling of numbers stay.
    #[test]
    fn json_stays_as_it_was_written() {
        let text = r#"{"b":[1.0,{}],"a":"x,{\"y\":[\\","c":[ ]}"#;
        let lines = [
            "{",
            r#"  "b": ["#,
            "    1.0,",
            "    {}",
            "  ],",
            r#"  "a": "x,{\"y\":[\\","#,
            r#"  "c": []"#,
            "}",
        ];
        assert_eq!(indented(text), lines.join("\n"));
        let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        assert_eq!(read(&indented(text)), read(text));
    }

    #[test]
    fn hostile_texts_end() {
        for text in ["", "]]]", "\"", "{", "\"\\"] {
            assert!(indented(text).len() < 20, "{text}");
        }
        assert!(indented(&"[".repeat(1_000)).len() < 100_000);
    }
}
