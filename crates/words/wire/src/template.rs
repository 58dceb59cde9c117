//! Tests whether a URI could have come from a URI template (RFC 6570), for routing.

use std::borrow::Cow;

/// A parsed template. Matching is generous: it only decides which server is asked.
#[derive(Debug, Clone)]
pub struct Template {
    text: Box<str>,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    /// An expression, which stands for any text; with `may_span`, also across `/`.
    Gap {
        may_span: bool,
        may_be_empty: bool,
    },
}

impl Template {
    /// Parses a template. Every text is a valid template.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((literal, after)) = rest.split_once('{') {
            if !literal.is_empty() {
                parts.push(Part::Literal(canonical(literal).into_owned()));
            }
            let (expression, tail) = after.split_once('}').unwrap_or((after, ""));
            let may_be_empty = expression.starts_with(['?', '&', '#', '/', ';', '.']);
            let may_span = may_be_empty || expression.starts_with('+') || expression.ends_with('*');
            parts.push(Part::Gap { may_span, may_be_empty });
            rest = tail;
        }
        if !rest.is_empty() {
            parts.push(Part::Literal(canonical(rest).into_owned()));
        }
        Self { text: text.into(), parts }
    }

    /// The template as written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// True if a URI could have come from the template, in any spelling. Expansion percent-encodes
    /// the text between expressions (RFC 6570 §3.1), and clients write either form.
    #[must_use]
    pub fn matches(&self, uri: &str) -> bool {
        matches(&self.parts, &canonical(uri))
    }
}

/// The canonical spelling of a part of a URI: percent-encoding only where it is required, in
/// capital letters.
fn canonical(text: &str) -> Cow<'_, str> {
    let is_unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let is_plain = |byte: u8| is_unreserved(byte) || b":/?#[]@!$&'()*+,;=".contains(&byte);
    if text.bytes().all(is_plain) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let (byte, is_encoded) = match (first, after) {
            (b'%', [high, low, ..]) => match hex(*high).zip(hex(*low)) {
                Some((high, low)) => (high << 4 | low, true),
                None => (b'%', false),
            },
            (byte, _) => (*byte, false),
        };
        rest = if is_encoded { &after[2..] } else { after };
        match is_unreserved(byte) || (!is_encoded && is_plain(byte)) {
            true => out.push(char::from(byte)),
            false => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out.into()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
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
            // Each spelling of the text between expressions.
            ("a://café/{x}", "a://café/1", true),
            ("a://café/{x}", "a://caf%C3%A9/1", true),
            ("a://caf%c3%a9/{x}", "a://café/1", true),
            ("a://my notes/{x}", "a://my%20notes/1", true),
            ("a://my%20notes/{x}", "a://my notes/1", true),
            ("a://{x}/日本", "a://1/%E6%97%A5%E6%9C%AC", true),
            ("a://%7Euser/{x}", "a://~user/1", true),
            ("a://100%/{x}", "a://100%25/1", true),
            ("a://café/{x}", "a://cafe/1", false),
            ("a://b/{x}", "a://b/1%2F2", true),
            ("a://b/{x}", "a://b/1/2", false),
            ("a://b%2Fc/{x}", "a://b/c/1", false),
        ];
        for (template, uri, wanted) in cases {
            assert_eq!(Template::parse(template).matches(uri), wanted, "{template} {uri}");
        }
    }
}
