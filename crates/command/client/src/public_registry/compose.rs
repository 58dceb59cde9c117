//! Puts the values of an entry together from fixed texts and a user's answers.

use narthex_model::Secret;

use super::inputs::Answer;

/// The parts of an entry as they are put together.
#[derive(Default)]
pub(super) struct Parts {
    pub(super) first: Vec<String>,
    /// The arguments that a bundle's manifest has.
    pub(super) own: Vec<String>,
    pub(super) rest: Vec<String>,
    pub(super) values: Vec<(String, Composed)>,
    pub(super) opened: Vec<(String, String)>,
    pub(super) url: Option<String>,
}

/// A value of an entry.
#[derive(Debug, Clone)]
pub(super) enum Composed {
    /// The text in the notation of the file.
    Written(String),
    Secret(Secret),
}

/// A part of a value.
pub(super) enum Piece<'a> {
    /// A text of the publisher.
    Fixed(&'a str),
    Value(&'a Answer),
}

impl Composed {
    /// One value of its pieces for the place of these words. A value with a secret in it is a
    /// secret as a whole.
    pub(super) fn of(place: &str, pieces: &[Piece<'_>]) -> Result<Self, String> {
        let is_secret = |piece: &Piece<'_>| matches!(piece, Piece::Value(Answer::Secret(_)));
        match pieces.iter().any(is_secret) {
            true => secret(place, pieces),
            false => written(place, pieces),
        }
    }

    /// The text for a place that other programs can read.
    pub(super) fn visible(self, place: &str) -> Result<String, String> {
        match self {
            Self::Written(text) => Ok(text),
            Self::Secret(_) => Err(format!(
                "{place} would hold a secret, which other programs could read; narthex stores \
                 secrets only for variables and headers"
            )),
        }
    }
}

fn secret(place: &str, pieces: &[Piece<'_>]) -> Result<Composed, String> {
    let mut whole = String::new();
    for piece in pieces {
        match piece {
            Piece::Fixed(text) => whole.push_str(text),
            Piece::Value(Answer::Text(text)) => whole.push_str(text),
            Piece::Value(Answer::Secret(secret)) => whole.push_str(secret.expose()),
            Piece::Value(Answer::Reference(text)) => {
                return Err(format!("{place} has a secret beside `{text}`: give both as values"));
            }
        }
    }
    Ok(Composed::Secret(Secret::new(whole)))
}

/// A text in the notation of the file. Only references of the user are placeholders there: texts
/// that meet are joined before `${` is escaped, so that two of them never make a placeholder.
fn written(place: &str, pieces: &[Piece<'_>]) -> Result<Composed, String> {
    let (mut written, mut plain) = (String::new(), String::new());
    for piece in pieces {
        match piece {
            Piece::Fixed(text) => plain.push_str(text),
            Piece::Value(Answer::Text(text)) => plain.push_str(text),
            Piece::Value(Answer::Reference(text)) => {
                if text.starts_with("${secret:") && pieces.len() > 1 {
                    return Err(format!(
                        "{place} is a longer text, and `{text}` must be a whole value; store the \
                         longer text as a secret, or give the value with --set-secret"
                    ));
                }
                if plain.ends_with('$') {
                    return Err(format!(
                        "{place} has `$` in front of `{text}`, so the reference would stay a text; \
                         give the value itself"
                    ));
                }
                written.push_str(&literal(&plain));
                plain.clear();
                written.push_str(text);
            }
            Piece::Value(Answer::Secret(_)) => {}
        }
    }
    written.push_str(&literal(&plain));
    Ok(Composed::Written(written))
}

/// A text that the daemon reads as itself: no part of it is a placeholder.
pub(super) fn literal(text: &str) -> String {
    text.replace("${", "$${")
}

/// A text of the file as the daemon reads it, with this word in the place of each reference.
pub(super) fn as_read(text: &str, reference: &str) -> String {
    let mut read = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let (before, from) = rest.split_at(start);
        if let Some(before) = before.strip_suffix('$') {
            read.push_str(before);
            read.push_str("${");
            rest = &from[2..];
            continue;
        }
        read.push_str(before);
        read.push_str(reference);
        rest = from.split_once('}').map_or("", |(_, after)| after);
    }
    read.push_str(rest);
    read
}

/// The references in a text of the file, as the daemon reads it.
#[cfg(test)]
pub(super) fn placeholders(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let (before, from) = rest.split_at(start);
        // `$${` is a text, as the daemon reads it.
        if before.ends_with('$') {
            rest = &from[2..];
            continue;
        }
        let end = from.find('}').map_or(from.len(), |end| end + 1);
        found.push(&from[..end]);
        rest = &from[end..];
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn text(pieces: &[Piece<'_>]) -> String {
        Composed::of("the header `X`", pieces).unwrap().visible("").unwrap()
    }

    /// E206: texts that meet make no placeholder, and a `$` disables no reference of the user.
    #[test]
    fn e206_texts_that_meet_make_no_placeholder() {
        let answer = |text: &str| Answer::Text(text.to_owned());
        let secret = answer("{secret:GITHUB_TOKEN}");
        assert_eq!(text(&[Piece::Fixed("$"), Piece::Value(&secret)]), "$${secret:GITHUB_TOKEN}");
        let (dollar, rest) = (answer("$"), answer("{env:A}"));
        let met = text(&[Piece::Value(&dollar), Piece::Value(&rest)]);
        assert_eq!((met.as_str(), placeholders(&met).len()), ("$${env:A}", 0));
        let met = text(&[Piece::Fixed("$$"), Piece::Value(&rest)]);
        assert_eq!(placeholders(&met), [""; 0], "{met}");
        let users = Answer::Reference("${env:B}".to_owned());
        let met = text(&[Piece::Value(&users), Piece::Fixed("{env:A}$"), Piece::Value(&rest)]);
        assert_eq!(met, "${env:B}{env:A}$${env:A}");
        assert_eq!(placeholders(&met), ["${env:B}"]);
        let pieces = [Piece::Fixed("a$"), Piece::Value(&users)];
        let fault = Composed::of("the header `X`", &pieces).unwrap_err();
        assert!(fault.contains("`$` in front of `${env:B}`"), "{fault}");
    }
}
