//! Consent: each page for a decision is answered once, by the user who has seen it, and while the
//! user may still remember its text (X-E82).

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use narthex_model::PrincipalId;
use tokio::time::Instant;

use crate::{Token, TokenHash};

/// Time for which a page can be answered after it was shown.
pub const CONSENT_LIFE: Duration = Duration::from_mins(5);
/// Most pages of one user that wait for their answer; the oldest of more can be answered no more.
const SHOWN_MAX: usize = 100;

/// Shown pages that wait for their answer.
#[derive(Debug, Default)]
pub struct Consents {
    /// The pages of each user, in the order in which they were shown.
    shown: Mutex<HashMap<PrincipalId, VecDeque<Shown>>>,
}

/// A page that was shown.
#[derive(Debug)]
struct Shown {
    token: TokenHash,
    until: Instant,
    bound: Bound,
}

/// The login session that a page was shown to, and the page's subject.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Bound {
    session: TokenHash,
    about: String,
}

/// The reason why a page cannot be shown or answered.
#[derive(Debug, thiserror::Error)]
pub enum ConsentError {
    /// The page was answered before, was shown too long ago or to another session, or was shown
    /// again since. Or the answer is for another page.
    #[error("this page was used or reloaded already, or was open for more than five minutes")]
    Used,
    /// The operating system gives no random bytes.
    #[error("the operating system gives no random bytes")]
    NoRandomness(#[source] getrandom::Error),
}

impl Consents {
    /// Registers a page about a subject that is shown to a user in a login session; `session` is
    /// that session's token. Returns the token that the answer has to repeat. An earlier showing of
    /// the page to this session can no longer be answered.
    ///
    /// # Errors
    /// When the operating system gives no random bytes.
    pub fn show(
        &self,
        user: &PrincipalId,
        session: &str,
        about: &str,
    ) -> Result<Token, ConsentError> {
        let token = Token::generate().map_err(ConsentError::NoRandomness)?;
        let now = Instant::now();
        let bound = Bound { session: TokenHash::of(session), about: about.to_owned() };
        let mut shown = self.lock();
        shown.retain(|_, pages| {
            pages.retain(|page| page.until > now && page.bound != bound);
            !pages.is_empty()
        });
        let pages = shown.entry(user.clone()).or_default();
        if pages.len() == SHOWN_MAX {
            pages.pop_front();
        }
        pages.push_back(Shown { token: token.hash(), until: now + CONSENT_LIFE, bound });
        Ok(token)
    }

    /// Accepts the answer to a page. Its token is used up, also after an error.
    ///
    /// # Errors
    /// When there is no such page, or it was shown to another session or about another subject.
    pub fn answer(&self, token: &str, session: &str, about: &str) -> Result<(), ConsentError> {
        let bound = Bound { session: TokenHash::of(session), about: about.to_owned() };
        match self.take(&TokenHash::of(token)) {
            Some(page) if page.bound == bound && page.until > Instant::now() => Ok(()),
            Some(_) | None => Err(ConsentError::Used),
        }
    }

    fn take(&self, token: &TokenHash) -> Option<Shown> {
        self.lock().values_mut().find_map(|pages| {
            let at = pages.iter().position(|page| page.token == *token)?;
            pages.remove(at)
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PrincipalId, VecDeque<Shown>>> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// X-E82: a page is answered once, in time, by the session that it was shown to, about its
    /// subject.
    #[tokio::test(start_paused = true)]
    async fn x_e82_a_page_is_answered_once() {
        let consents = Consents::default();
        let ada = user(1);
        let show = |about: &str| consents.show(&ada, "of ada", about).unwrap();
        let answer = |token: &Token, session: &str, about: &str| {
            consents.answer(token.expose(), session, about).is_ok()
        };
        let (one, other) = (show("grq_1"), show("grq_2"));
        assert!(answer(&one, "of ada", "grq_1"));
        assert!(!answer(&one, "of ada", "grq_1"), "a second time");
        assert!(!answer(&other, "of bob", "grq_2"), "shown to another human");
        assert!(!answer(&other, "of ada", "grq_2"), "it was tried");
        assert!(!answer(&show("grq_1"), "of ada", "grq_2"), "about something else");
        let late = show("grq_1");
        tokio::time::advance(CONSENT_LIFE).await;
        assert!(!answer(&late, "of ada", "grq_1"), "too late");
        let refused = consents.answer("", "of ada", "grq_1").unwrap_err();
        assert!(matches!(refused, ConsentError::Used), "{refused}");
    }

    /// X-E82: the newest showing of a page counts, and no user takes other users' room.
    #[tokio::test(start_paused = true)]
    async fn x_e82_consent_pages_of_one_user_do_not_displace_those_of_others() {
        let consents = Consents::default();
        let (ada, bob) = (user(1), user(2));
        let of_bob = consents.show(&bob, "of bob", "grq_1").unwrap();
        let elsewhere = consents.show(&ada, "of ada elsewhere", "grq_1").unwrap();
        let mut tokens = Vec::new();
        // Loaded again and again, it is one page.
        for _ in 0..2 * SHOWN_MAX {
            tokens.push(consents.show(&ada, "of ada", "grq_1").unwrap());
        }
        let answer = |token: &Token, session: &str, about: &str| {
            consents.answer(token.expose(), session, about).is_ok()
        };
        assert!(!answer(&tokens[2 * SHOWN_MAX - 2], "of ada", "grq_1"), "it was shown again");
        assert!(answer(&elsewhere, "of ada elsewhere", "grq_1"), "another browser is another");
        assert!(answer(&tokens[2 * SHOWN_MAX - 1], "of ada", "grq_1"));
        let abouts: Vec<_> = (0..=SHOWN_MAX).map(|number| format!("grq_{number}")).collect();
        let show = |about: &String| consents.show(&ada, "of ada", about).unwrap();
        let tokens: Vec<_> = abouts.iter().map(show).collect();
        assert!(!answer(&tokens[0], "of ada", &abouts[0]), "the oldest makes room");
        assert!(answer(&tokens[1], "of ada", &abouts[1]));
        assert!(answer(&of_bob, "of bob", "grq_1"));
        tokio::time::advance(CONSENT_LIFE).await;
        let last = consents.show(&bob, "of bob", "grq_1").unwrap();
        assert_eq!(consents.lock().len(), 1, "what is over is not remembered");
        assert!(answer(&last, "of bob", "grq_1"));
    }

    fn user(digit: u8) -> PrincipalId {
        PrincipalId::new(&format!("prn_{}", digit.to_string().repeat(16))).unwrap()
    }
}
