//! Texts that models read: they name no way around a human (D28).

use std::{borrow::Cow, fmt::Display};

use serde_json::Value;

/// The longest text of a refusal for want of a grant, in bytes.
pub const REFUSAL_TEXT_MAX: usize = 300;

/// Marks of a command or an address that only an operator uses.
const OPERATOR: [&str; 5] =
    ["`narthex ", "/api/", "narthex grants ", "grants create", "grants approve"];

/// The beginning of the part of a text that only operators read, to the text's end.
const FOR_OPERATORS: &str = "for operators: ";

/// Replaces a text of which every clause is for operators.
const MENDED_BY_HUMANS: &str = "a human must repair this";

/// Marks the last part of a text, such as the places of a value, as one that only operators read:
/// [`for_models`] leaves it out with all that follows it, with any content.
#[must_use]
pub fn for_operators(part: impl Display) -> String {
    format!("{FOR_OPERATORS}{part}")
}

/// The text without what [`for_operators`] marks, and without its clauses that name a command or an
/// address of operators. A clause ends at a semicolon, a full stop or the end of its line.
#[must_use]
pub fn for_models(text: &str) -> Cow<'_, str> {
    if !is_for_operators(text) {
        return Cow::Borrowed(text);
    }
    let text = text.split_once(FOR_OPERATORS).map_or(text, |(before, _)| before);
    let mut kept = String::new();
    for clause in clauses(text) {
        if !is_for_operators(clause) {
            kept.push_str(clause);
        } else if clause.ends_with('\n') && !kept.ends_with('\n') {
            kept.truncate(kept.trim_end_matches([' ', ';']).len());
            kept.push('\n');
        }
    }
    let kept = kept.trim_end_matches([' ', ';', '\n']);
    Cow::Owned(if kept.is_empty() { MENDED_BY_HUMANS.to_owned() } else { kept.to_owned() })
}

/// As [`for_models`], for each text inside a value; names of members stay unchanged.
pub fn value_for_models(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(kept) = for_models(text) {
                *text = kept;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(value_for_models),
        Value::Object(members) => members.values_mut().for_each(value_for_models),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn is_for_operators(text: &str) -> bool {
    text.contains(FOR_OPERATORS) || OPERATOR.iter().any(|mark| text.contains(mark))
}

/// The clauses of a text, each with what ends it.
fn clauses(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let ends = ["; ", ". ", "\n"].iter();
        let end = ends.filter_map(|sign| Some(rest.find(sign)? + sign.len())).min();
        let (clause, left) = rest.split_at(end.unwrap_or(rest.len()));
        rest = left;
        Some(clause)
    })
}

/// The longest of these texts that fits into so many bytes, of texts in the order in which they are
/// better; the last one is cut if it does not fit either.
pub(crate) fn fitting<const N: usize>(texts: [String; N], max: usize) -> String {
    let mut last = String::new();
    for text in texts {
        if text.len() <= max {
            return text;
        }
        last = text;
    }
    last.truncate(last.floor_char_boundary(max.saturating_sub('…'.len_utf8())));
    last.push('…');
    last
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// D28: what is for operators goes, and what happened stays.
    #[test]
    fn d28_clauses_for_operators_are_left_out() {
        for (text, kept) in [
            ("the disk is full", "the disk is full"),
            ("secret `A` is not set; set it with `narthex secrets set A`", "secret `A` is not set"),
            ("look at `narthex grants pending`. Then go on", "Then go on"),
            ("it failed; try again; see `narthex status`", "it failed; try again"),
            ("ask for it at POST /api/workspaces/default/grants", MENDED_BY_HUMANS),
            ("`narthex up` does it", MENDED_BY_HUMANS),
            ("the server `narthex` has no such tool", "the server `narthex` has no such tool"),
        ] {
            assert_eq!(for_models(text), kept);
        }
        let mut value = json!({ "a": ["no; `narthex up`"], "`narthex x`": { "b": 1 } });
        value_for_models(&mut value);
        assert_eq!(value, json!({ "a": ["no"], "`narthex x`": { "b": 1 } }));
    }

    /// D28: a part for operators goes, also one without a command, and all that follows it.
    #[test]
    fn d28_a_part_for_operators_is_removed_with_the_following_text() {
        let part = for_operators("the header `x-key` has the value of `config.key`: correct it");
        assert_eq!(for_models(&format!("HTTP 401; {part}; so be it. Yes")), "HTTP 401");
        assert_eq!(for_models(&part), MENDED_BY_HUMANS);
    }

    /// D28: a fault in a line of its own is kept, whatever the lines before it say.
    #[test]
    fn d28_lines_are_clauses() {
        let text = "nothing was stored:\n`a`: is not set; set it with `narthex secrets set A`\n\
                    `b`: is no name; choose another";
        let kept = "nothing was stored:\n`a`: is not set\n`b`: is no name; choose another";
        assert_eq!(for_models(text), kept);
    }

    #[test]
    fn the_first_text_within_the_limit_is_used() {
        let texts = || ["four".to_owned(), "two".to_owned()];
        assert_eq!(fitting(texts(), 4), "four");
        assert_eq!(fitting(texts(), 3), "two");
        assert_eq!(fitting(["ééé".to_owned()], 5), "é…");
    }
}
