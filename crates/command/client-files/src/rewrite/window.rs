//! The lines that a rewrite changed, to find them again after edits of others elsewhere.

use serde::{Deserialize, Serialize};

/// The whole lines in which two texts differ, with one more line on each side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Window {
    /// The lines of the earlier text.
    old: String,
    /// The lines of the new text.
    new: String,
    before: String,
    after: String,
}

impl Window {
    /// The lines in which two texts differ.
    pub(super) fn between(old: &str, new: &str) -> Self {
        let start = same(old.bytes(), new.bytes());
        // A line begins at the same place in both.
        let start = new.as_bytes()[..start].iter().rposition(|byte| *byte == b'\n');
        let start = start.map_or(0, |at| at + 1);
        let end = same(old[start..].bytes().rev(), new[start..].bytes().rev());
        let tail = &new.as_bytes()[new.len() - end..];
        let end = tail.iter().position(|byte| *byte == b'\n').map_or(0, |at| end - at - 1);
        let (head, tail) = (&new[..start], &new[new.len() - end..]);
        let before = head.strip_suffix('\n').map_or(head, |head| {
            let begin = head.rfind('\n').map_or(0, |at| at + 1);
            &new[begin..start]
        });
        let after = tail.find('\n').map_or(tail, |at| &tail[..=at]);
        Self {
            old: old[start..old.len() - end].to_owned(),
            new: new[start..new.len() - end].to_owned(),
            before: before.to_owned(),
            after: after.to_owned(),
        }
    }

    /// A text with the earlier lines in place of the new ones, for each way to find these: with
    /// their neighbours, or alone.
    pub(super) fn undone(&self, text: &str) -> impl Iterator<Item = String> {
        let Self { old, new, before, after } = self;
        let with_neighbours = (format!("{before}{new}{after}"), format!("{before}{old}{after}"));
        let alone = (new.clone(), old.clone());
        [with_neighbours, alone].into_iter().filter_map(move |(new, old)| {
            let at = text.find(&new).filter(|_| !new.is_empty())?;
            // A second place may overlap the first one.
            let next = at + new.chars().next().map_or(1, char::len_utf8);
            let is_only_one = !text[next..].contains(&new);
            let rest = &text[at + new.len()..];
            // The earlier text may have ended there without a line break.
            let ends = old.is_empty() || old.ends_with('\n') || rest.is_empty();
            let line = if ends || rest.starts_with(['\n', '\r']) { "" } else { "\n" };
            is_only_one.then(|| format!("{}{old}{line}{rest}", &text[..at]))
        })
    }
}

/// Number of equal bytes at the beginning.
fn same(one: impl Iterator<Item = u8>, other: impl Iterator<Item = u8>) -> usize {
    one.zip(other).take_while(|(one, other)| one == other).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_after_edits_elsewhere() {
        let (old, new) = ("a\nb\nx\ny\nc\nd\n", "a\nb\nz\nc\nd\n");
        let window = Window::between(old, new);
        let undone = |text: &str| window.undone(text).collect::<Vec<_>>();
        assert_eq!(undone(new)[0], old);
        assert_eq!(undone("1\nb\nz\nc\n2\n")[0], "1\nb\nx\ny\nc\n2\n");
        // A neighbour has changed.
        assert_eq!(undone("b2\nz\nc\n"), ["b2\nx\ny\nc\n"]);
        assert_eq!(undone("z\nz\n"), [""; 0], "two places");
        assert_eq!(undone("a\nb\nc\n"), [""; 0]);
    }

    #[test]
    fn texts_of_any_kind_lead_back() {
        for (old, new) in [
            ("", "a\n"),
            ("a\n", ""),
            ("{é}", "{è}"),
            ("a\nb\n", "a\n"),
            ("a\n", "a\nb\n"),
            ("a\r\nb", "a\r\nb\r\nc"),
            ("x\nx\nx\n", "x\nx\n"),
            ("same\n", "same\n"),
        ] {
            let window = Window::between(old, new);
            let found = window.undone(new).next();
            // Without a line of the new text, or with several equal ones, no place is sure.
            assert!(found.is_none_or(|text| text == old), "{old:?} {new:?}");
        }
    }
}
