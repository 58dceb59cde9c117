//! The lines of a text at which its parts stand.

use narthex_model::json::shortened;

use super::document::Document;
use super::tree::{Kind, Node};

/// The lines of a value's parts, counted from 1 on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Lines {
    /// A value without parts.
    #[default]
    Leaf,
    /// The members of a map: key, line of the key, and the parts of the value.
    Map(Vec<(String, u64, Self)>),
    /// The items of a list: line and parts.
    List(Vec<(u64, Self)>),
}

impl Lines {
    /// The line of a place such as `mcp.servers.git.args[0]`; for a missing place, the line of the
    /// part that it is missing from. `None` for the document itself.
    #[must_use]
    pub fn of(&self, place: &str) -> Option<u64> {
        let rest = place.strip_prefix('.').unwrap_or(place);
        match self {
            Self::Leaf => None,
            Self::Map(members) => {
                let fits = |(key, line, below): &'_ (String, u64, Self)| {
                    let rest = rest.strip_prefix(shortened(key).as_str())?;
                    let is_end = rest.is_empty() || rest.starts_with(['.', '[']);
                    is_end.then(|| (rest.len(), below.of(rest).unwrap_or(*line)))
                };
                // A key may have dots itself: the longest one is meant.
                members.iter().filter_map(fits).min_by_key(|(rest, _)| *rest).map(|found| found.1)
            }
            Self::List(items) => {
                let (index, rest) = rest.strip_prefix('[')?.split_once(']')?;
                let (line, below) = items.get(index.parse::<usize>().ok()?)?;
                Some(below.of(rest).unwrap_or(*line))
            }
        }
    }
}

impl Document {
    /// The lines of all parts.
    #[must_use]
    pub fn lines(&self) -> Lines {
        let ends = self.text.match_indices('\n').map(|(at, _)| at).collect::<Vec<_>>();
        self.parsed.root.as_ref().map_or(Lines::Leaf, |root| lines(root, &ends))
    }
}

fn lines(node: &Node, ends: &[usize]) -> Lines {
    let line = |at: usize| ends.partition_point(|end| *end < at) as u64 + 1;
    match &node.kind {
        Kind::Map(members) => {
            let members = members.iter().map(|member| {
                let below = lines(&member.value, ends);
                (member.key.clone(), line(member.key_span.start), below)
            });
            Lines::Map(members.collect())
        }
        Kind::List(items) => Lines::List(
            items.iter().map(|item| (line(item.span.start), lines(item, ends))).collect(),
        ),
        Kind::Scalar(_) | Kind::Alias(..) => Lines::Leaf,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::Format;

    fn line(format: Format, text: &str) -> Vec<(String, u64)> {
        fn gather(lines: &Lines, before: &str, found: &mut Vec<(String, u64)>) {
            match lines {
                Lines::Leaf => {}
                Lines::Map(members) => {
                    for (key, line, below) in members {
                        found.push((format!("{before}.{key}"), *line));
                        gather(below, &format!("{before}.{key}"), found);
                    }
                }
                Lines::List(items) => {
                    for (index, (line, below)) in items.iter().enumerate() {
                        found.push((format!("{before}.{index}"), *line));
                        gather(below, &format!("{before}.{index}"), found);
                    }
                }
            }
        }
        let mut found = Vec::new();
        let lines = Document::parse(format, text.as_bytes()).unwrap().lines();
        gather(&lines, "", &mut found);
        found
    }

    #[test]
    fn each_format_has_the_lines_of_its_parts() {
        let of = |pairs: &[(&str, u64)]| {
            pairs.iter().map(|(place, line)| ((*place).to_owned(), *line)).collect::<Vec<_>>()
        };
        let expected = of(&[(".a", 2), (".a.b", 3), (".a.c", 4), (".a.c.0", 4)]);
        let json = "{ // x\n  \"a\": {\n    \"b\": 1,\n    \"c\": [2],\n  },\n}";
        assert_eq!(line(Format::Jsonc, json), expected);
        assert_eq!(line(Format::Yaml, "# x\na:\n  b: 1\n  c: [2]\n"), expected);
        assert_eq!(line(Format::Toml, "# x\n[a]\nb = 1\nc = [2]\n"), expected);
        assert!(line(Format::Json, "").is_empty());
    }
}
