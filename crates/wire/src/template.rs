//! Whether a URI could have come from a URI template (RFC 6570), for routing.

/// A template taken apart. Matching is generous: it decides only which server is asked.
#[derive(Debug, Clone)]
pub struct Template {
    text: Box<str>,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    /// Some text; with `may_span`, also across `/`.
    Gap {
        may_span: bool,
        may_be_empty: bool,
    },
}

impl Template {
    /// Takes a template apart. Any text is one.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((literal, after)) = rest.split_once('{') {
            if !literal.is_empty() {
                parts.push(Part::Literal(literal.to_owned()));
            }
            let (expression, tail) = after.split_once('}').unwrap_or((after, ""));
            let may_be_empty = expression.starts_with(['?', '&', '#', '/', ';', '.']);
            let may_span = may_be_empty || expression.starts_with('+') || expression.ends_with('*');
            parts.push(Part::Gap { may_span, may_be_empty });
            rest = tail;
        }
        if !rest.is_empty() {
            parts.push(Part::Literal(rest.to_owned()));
        }
        Self { text: text.into(), parts }
    }

    /// The template as it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether a URI could have come from it.
    #[must_use]
    pub fn matches(&self, uri: &str) -> bool {
        matches(&self.parts, uri)
    }
}

/// Takes the earliest place for each literal, which is enough unless a gap forbids `/` before it;
/// then later places are further away and fail as well.
fn matches(parts: &[Part], uri: &str) -> bool {
    let mut rest = uri;
    let mut gap: Option<(bool, bool)> = None;
    for (index, part) in parts.iter().enumerate() {
        match part {
            Part::Gap { may_span, may_be_empty } => {
                let (spans, empties) = gap.unwrap_or((false, true));
                gap = Some((spans || *may_span, empties && *may_be_empty));
            }
            Part::Literal(literal) => {
                let is_last = index + 1 == parts.len();
                let at = match (gap, is_last) {
                    (None, _) => rest.starts_with(literal.as_str()).then_some(0),
                    (Some(_), true) if rest.ends_with(literal.as_str()) => {
                        Some(rest.len() - literal.len())
                    }
                    (Some(_), true) => None,
                    (Some((_, may_be_empty)), false) => {
                        let from = usize::from(!may_be_empty && !rest.is_empty());
                        rest.get(from..)
                            .and_then(|text| text.find(literal.as_str()))
                            .map(|at| at + from)
                    }
                };
                let Some(at) = at else { return false };
                if !gap_fits(gap, &rest[..at]) {
                    return false;
                }
                rest = &rest[at + literal.len()..];
                gap = None;
            }
        }
    }
    if gap.is_some() { gap_fits(gap, rest) } else { rest.is_empty() }
}

fn gap_fits(gap: Option<(bool, bool)>, text: &str) -> bool {
    match gap {
        None => text.is_empty(),
        Some((may_span, may_be_empty)) => {
            (may_span || !text.contains('/')) && (may_be_empty || !text.is_empty())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_match_their_templates() {
        let cases = [
            ("test://template/{id}/data", "test://template/7/data", true),
            ("test://template/{id}/data", "test://template/7/8/data", false),
            ("test://template/{id}/data", "test://template//data", false),
            ("file:///{+path}", "file:///a/b/c.txt", true),
            ("a://x{?q,r}", "a://x", true),
            ("a://x{?q,r}", "a://x?q=1", true),
            ("a://{b}", "a://b", true),
            ("a://{b}", "b://b", false),
            ("a://{b}-{c}.md", "a://one-two.md", true),
            ("a://fixed", "a://fixed", true),
            ("a://fixed", "a://fixed2", false),
        ];
        for (template, uri, wanted) in cases {
            assert_eq!(Template::parse(template).matches(uri), wanted, "{template} {uri}");
        }
    }
}
