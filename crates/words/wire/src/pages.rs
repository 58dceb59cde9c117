//! The pages of one list, by their cursors (E73).

use std::collections::HashSet;

use crate::{Era, Message, Raw, json};

/// The most pages of one list that are followed.
const PAGES_MAX: usize = 1000;

/// The progress through one list. A new value is before the first page.
#[derive(Debug)]
pub struct Pages {
    era: Era,
    /// The next page's cursor, as JSON text.
    next: Option<Vec<u8>>,
    seen: HashSet<Vec<u8>>,
    count: usize,
}

/// The reason why a list cannot be read to its end. The text continues the name of the method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PagesError {
    /// The cursor of the next page is no string.
    #[error("gave a cursor that is not a string")]
    NoString,
    /// A cursor came twice, so that the pages lead in circles.
    #[error("gave the same cursor twice")]
    Twice,
    /// There are more pages than any client reads.
    #[error("has more than {PAGES_MAX} pages")]
    Endless,
}

impl Pages {
    /// Starts a list of a server that speaks this era.
    #[must_use]
    pub fn new(era: Era) -> Self {
        Self { era, next: None, seen: HashSet::new(), count: 0 }
    }

    /// The members of `params` that request the next page, as JSON text without braces.
    #[must_use]
    pub fn members(&self) -> Vec<u8> {
        let cursor = self.next.as_ref().map(|cursor| [b"\"cursor\":", &cursor[..]].concat());
        cursor.unwrap_or_default()
    }

    /// Takes the answer with a page; returns true if there is another page.
    ///
    /// # Errors
    /// When the list cannot be read to its end.
    pub fn turn(&mut self, answer: &Message) -> Result<bool, PagesError> {
        self.count += 1;
        // Some legacy servers spell the end as an empty cursor. In 2026-07-28 it is a cursor.
        let is_end = |next: &Raw<'_>| match next.as_bytes() {
            b"null" => true,
            br#""""# => self.era == Era::Legacy,
            _ => false,
        };
        let next = answer.get("nextCursor").filter(|next| !is_end(next));
        let Some(next) = next.map(|next| next.as_bytes().to_vec()) else { return Ok(false) };
        if json::decode_string(&next).is_none() {
            return Err(PagesError::NoString);
        }
        if !self.seen.insert(next.clone()) {
            return Err(PagesError::Twice);
        }
        if self.count == PAGES_MAX {
            return Err(PagesError::Endless);
        }
        self.next = Some(next);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;

    fn answer(cursor: &str) -> Message {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"nextCursor":{cursor}}}}}"#);
        Message::parse(text.into(), &Limits::default()).unwrap()
    }

    /// E73: a cursor is returned unchanged, and a cursor that leads nowhere is an error.
    #[test]
    fn e73_pages_are_followed_to_an_end() {
        let mut pages = Pages::new(Era::Legacy);
        assert_eq!(pages.members(), b"");
        assert_eq!(pages.turn(&answer(r#""a\u0062""#)), Ok(true));
        assert_eq!(pages.members(), br#""cursor":"a\u0062""#);
        assert_eq!(pages.turn(&answer(r#""c""#)), Ok(true));
        for end in ["null", r#""""#] {
            assert_eq!(pages.turn(&answer(end)), Ok(false));
        }
        assert_eq!(pages.turn(&answer("7")), Err(PagesError::NoString));
        assert_eq!(pages.turn(&answer(r#""c""#)), Err(PagesError::Twice));
        let mut pages = Pages::new(Era::Legacy);
        let turned = (1..PAGES_MAX).map(|page| pages.turn(&answer(&format!(r#""{page}""#))));
        assert!(turned.into_iter().all(|turned| turned == Ok(true)));
        assert_eq!(pages.turn(&answer(r#""x""#)), Err(PagesError::Endless));
    }

    /// E73: an empty cursor ends a list of a legacy server, and leads to a page of a modern one.
    #[test]
    fn e73_an_empty_cursor_continues_a_list_only_in_the_modern_era() {
        assert_eq!(Pages::new(Era::Legacy).turn(&answer(r#""""#)), Ok(false));
        let mut pages = Pages::new(Era::Modern);
        assert_eq!(pages.turn(&answer(r#""""#)), Ok(true));
        assert_eq!(pages.members(), br#""cursor":"""#);
        assert_eq!(pages.turn(&answer(r#""""#)), Err(PagesError::Twice));
        assert_eq!(pages.turn(&answer("null")), Ok(false));
    }
}
