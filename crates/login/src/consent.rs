//! Consent: a page on which somebody decides is answered once, by whom it was shown to, and while
//! they may still know what it said (X-E82).

use std::time::Duration;

use crate::{Pending, PendingFull, Token, TokenHash};

/// For how long a page can be answered after it was shown.
pub const CONSENT_LIFE: Duration = Duration::from_mins(5);
/// How many pages may wait for their answer.
const SHOWN_MAX: usize = 10_000;

/// The pages that were shown and wait for their answer.
#[derive(Debug)]
pub struct Consents {
    shown: Pending<Bound>,
}

/// To whom a page was shown, and about what.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Bound {
    session: TokenHash,
    about: String,
}

/// Why a page cannot be shown or answered.
#[derive(Debug, thiserror::Error)]
pub enum ConsentError {
    /// It was answered before, or too long ago, or not to whoever answers; or it is another page.
    #[error("this page was used before, or was open for more than five minutes")]
    Used,
    /// As many wait as there may be.
    #[error("too many pages wait for a decision; try again in a few minutes")]
    Full,
    /// The system has no randomness to give.
    #[error("the system has no randomness to give")]
    NoRandomness(#[source] getrandom::Error),
}

impl Default for Consents {
    fn default() -> Self {
        Self { shown: Pending::new(CONSENT_LIFE, SHOWN_MAX) }
    }
}

impl Consents {
    /// A page about something is shown to whoever has a login session, by the token of that. Gives
    /// what its answer has to repeat.
    ///
    /// # Errors
    /// When too many wait, or the system has no randomness to give.
    pub fn show(&self, session: &str, about: &str) -> Result<Token, ConsentError> {
        let bound = Bound { session: TokenHash::of(session), about: about.to_owned() };
        self.shown.put(bound).map_err(|error| match error {
            PendingFull::Full => ConsentError::Full,
            PendingFull::NoRandomness(error) => ConsentError::NoRandomness(error),
        })
    }

    /// A page is answered. Whatever comes of it, its token is used up.
    ///
    /// # Errors
    /// When there is no such page, or it was for another session or about something else.
    pub fn answer(&self, token: &str, session: &str, about: &str) -> Result<(), ConsentError> {
        let bound = Bound { session: TokenHash::of(session), about: about.to_owned() };
        match self.shown.take(token) {
            Some(shown) if shown == bound => Ok(()),
            Some(_) | None => Err(ConsentError::Used),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// X-E82: once, in time, by whom it was shown to, and about what it said.
    #[tokio::test(start_paused = true)]
    async fn x_e82_a_page_is_answered_once() {
        let consents = Consents::default();
        let show = || consents.show("of ada", "grq_1").unwrap();
        let answer = |token: &Token, session: &str, about: &str| {
            consents.answer(token.expose(), session, about).is_ok()
        };
        let (one, other, late) = (show(), show(), show());
        assert!(answer(&one, "of ada", "grq_1"));
        assert!(!answer(&one, "of ada", "grq_1"), "a second time");
        assert!(!answer(&other, "of bob", "grq_1"), "shown to somebody else");
        assert!(!answer(&other, "of ada", "grq_1"), "it was tried");
        assert!(!answer(&show(), "of ada", "grq_2"), "about something else");
        tokio::time::advance(CONSENT_LIFE).await;
        assert!(!answer(&late, "of ada", "grq_1"), "too late");
        assert!(consents.answer("", "of ada", "grq_1").is_err());
    }
}
