//! Turns in the sessions with active runs at this daemon (X-E81).
//!
//! A turn that is taken at this daemon counts at once in all runs of its session. A turn at another
//! daemon on the store counts within [`super::POLL`], and before its message is read here. Turns
//! are numbered, and the highest number counts, in whatever order they become known.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use narthex_model::{PrincipalId, RunId, SessionId, TurnOf, WorkspaceId};
use narthex_policy::Acting;
use narthex_store::{RunTurn, StatementError, Store};
use tokio_util::sync::CancellationToken;

use crate::live::Polls;

/// The speaker of a message to an agent, for the turn of the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Speaker {
    turn: Option<TurnOf>,
    may_name: bool,
}

/// The runs of one session that are active here.
type Followed = Vec<(RunId, Weak<Acting>)>;

/// The turns of all sessions with active runs here.
#[derive(Debug, Default)]
pub struct LiveTurns {
    runs: Mutex<HashMap<(WorkspaceId, SessionId), Followed>>,
    /// The number of the last known turn, locked while turns are read.
    last: tokio::sync::Mutex<u64>,
}

impl Speaker {
    /// A human, who takes the turn and speaks for no other human.
    #[must_use]
    pub fn human(who: PrincipalId) -> Self {
        Self { turn: Some(TurnOf::User(who)), may_name: false }
    }

    /// A human without a required proof (D15), or a service with a token that such a human created.
    /// The turn then belongs to no user: otherwise any holder of a file would have the grants of
    /// others.
    #[must_use]
    pub fn unproved() -> Self {
        Self { turn: Some(TurnOf::NoUser), may_name: false }
    }

    /// A caller with this machine's operator token, who takes the turn or gives it to a named
    /// human.
    #[must_use]
    pub fn local() -> Self {
        Self { turn: Some(TurnOf::User(PrincipalId::local_admin())), may_name: true }
    }

    /// A service, which gives the turn to a human that it names, and otherwise does not change the
    /// turn.
    #[must_use]
    pub fn service() -> Self {
        Self { turn: None, may_name: true }
    }

    /// A run that passes its own turn on to another session.
    #[must_use]
    pub fn handing_on(acts_for: Option<PrincipalId>) -> Self {
        Self { turn: Some(TurnOf::of(acts_for)), may_name: false }
    }

    /// A speaker that takes no turn.
    #[must_use]
    pub fn aside() -> Self {
        Self { turn: None, may_name: false }
    }

    /// The speaker on behalf of `named`; `None` if the speaker may not name this human.
    #[must_use]
    pub fn naming(self, named: PrincipalId) -> Option<Self> {
        let is_own = self.turn.as_ref().and_then(TurnOf::user) == Some(&named);
        let turn = Some(TurnOf::User(named));
        (self.may_name || is_own).then_some(Self { turn, ..self })
    }

    /// The user who takes the turn; `None` if the turn does not change.
    #[must_use]
    pub fn turn(&self) -> Option<&TurnOf> {
        self.turn.as_ref()
    }
}

impl LiveTurns {
    /// Turns without runs yet.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn load(store: Option<&Store>) -> Result<Self, StatementError> {
        let last = match store {
            Some(store) => store.runs().last_turn().await?,
            None => 0,
        };
        Ok(Self { last: tokio::sync::Mutex::new(last), ..Self::default() })
    }

    /// Gives a run the turns of its session from now on, for as long as `acting` lives. A turn of
    /// the last moment may be missed: read the store after this.
    pub fn join(
        &self,
        workspace: &WorkspaceId,
        session: SessionId,
        run: RunId,
        acting: &Arc<Acting>,
    ) {
        let mut runs = self.runs();
        runs.retain(|_, followed| {
            followed.retain(|(_, one)| one.strong_count() > 0);
            !followed.is_empty()
        });
        let followed = runs.entry((workspace.clone(), session)).or_default();
        followed.retain(|(id, _)| *id != run);
        followed.push((run, Arc::downgrade(acting)));
    }

    /// Gives a user the turn of a session, if no turn with a higher number is known.
    pub fn take(&self, workspace: &WorkspaceId, session: SessionId, number: u64, turn: &TurnOf) {
        for (_, acting) in self.followed(workspace, session) {
            acting.take_turn(number, turn.user());
        }
    }

    /// Reads the turn of a session from the store, for a caller that has just read a message there.
    ///
    /// # Errors
    /// When the statement fails; the caller must not act on the message then.
    pub async fn hear(
        &self,
        store: &Store,
        workspace: &WorkspaceId,
        session: SessionId,
    ) -> Result<(), StatementError> {
        if !self.followed(workspace, session).is_empty() {
            let turns = store.runs().turns_of(workspace, session).await?;
            turns.iter().for_each(|turn| self.apply(turn));
        }
        Ok(())
    }

    /// Follows changes by other daemons until `closing` is cancelled.
    pub async fn follow(self: Arc<Self>, store: Store, closing: CancellationToken) {
        let mut polls = Polls::until(closing);
        while polls.next().await {
            if let Err(error) = self.read_news(&store).await {
                tracing::warn!("changes of turns cannot be read from the store: {error}");
            }
        }
    }

    async fn read_news(&self, store: &Store) -> Result<(), StatementError> {
        let mut last = self.last.lock().await;
        let news = store.runs().turns_since(*last).await?;
        news.iter().for_each(|turn| self.apply(turn));
        *last = news.last().map_or(*last, |turn| turn.number);
        Ok(())
    }

    fn apply(&self, turn: &RunTurn) {
        for (run, acting) in self.followed(&turn.workspace, turn.session) {
            if run == turn.run {
                acting.take_turn(turn.number, turn.user.as_ref());
            }
        }
    }

    fn followed(&self, workspace: &WorkspaceId, session: SessionId) -> Vec<(RunId, Arc<Acting>)> {
        let runs = self.runs();
        let followed = runs.get(&(workspace.clone(), session));
        let living = |(run, one): &(RunId, Weak<Acting>)| Some((*run, one.upgrade()?));
        followed.into_iter().flatten().filter_map(living).collect()
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<(WorkspaceId, SessionId), Followed>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use narthex_policy::Actors;

    use super::*;

    fn user(digit: char) -> PrincipalId {
        PrincipalId::new(&format!("prn_{}", String::from(digit).repeat(16))).unwrap()
    }

    /// X-E81: a turn belongs to one session, and reaches all runs of it that are in memory.
    #[test]
    fn x_e81_a_turn_reaches_the_runs_of_its_session() {
        let (turns, here) = (LiveTurns::default(), WorkspaceId::default());
        let (one, other) = (SessionId::new([1; 6]), SessionId::new([2; 6]));
        let acting =
            || Arc::new(Acting::new(Actors { user: Some(user('1')), ..Actors::default() }));
        let (first, second, foreign) = (acting(), acting(), acting());
        turns.join(&here, one, RunId::new([1; 6]), &first);
        turns.join(&here, one, RunId::new([2; 6]), &second);
        turns.join(&here, other, RunId::new([3; 6]), &foreign);
        turns.take(&here, one, 7, &TurnOf::User(user('2')));
        let users = [&first, &second, &foreign].map(|one| one.now().user.clone().unwrap());
        assert_eq!(users, [user('2'), user('2'), user('1')]);
        let team = WorkspaceId::new("team").unwrap();
        turns.take(&team, one, 8, &TurnOf::NoUser);
        assert_eq!(first.now().user, Some(user('2')), "another workspace");
        drop((first, second));
        turns.join(&here, other, RunId::new([3; 6]), &foreign);
        assert_eq!(turns.runs().len(), 1, "a run without a holder is forgotten");
        assert_eq!(turns.followed(&here, other).len(), 1, "a run that begins again is one");
    }

    /// X-E81: a human speaks for themselves, and a service for the human that it names.
    #[test]
    fn x_e81_a_human_acts_alone_and_a_service_for_the_named_human() {
        let (ada, bob) = (user('1'), user('2'));
        let named = |speaker: Speaker, who: &PrincipalId| {
            speaker.naming(who.clone()).and_then(|one| one.turn().cloned())
        };
        let of_bob = Some(TurnOf::User(bob.clone()));
        assert_eq!(named(Speaker::human(ada.clone()), &bob), None);
        assert_eq!(named(Speaker::human(bob.clone()), &bob), of_bob);
        assert_eq!(named(Speaker::service(), &bob), of_bob);
        assert_eq!(named(Speaker::local(), &bob), of_bob);
        for speaker in [Speaker::unproved(), Speaker::aside(), Speaker::handing_on(None)] {
            assert_eq!(named(speaker, &bob), None);
        }
        assert_eq!(Speaker::service().turn(), None);
        assert_eq!(Speaker::aside().turn(), None);
        assert_eq!(Speaker::unproved().turn(), Some(&TurnOf::NoUser));
        assert_eq!(Speaker::handing_on(Some(ada.clone())).turn(), Some(&TurnOf::User(ada)));
    }
}
