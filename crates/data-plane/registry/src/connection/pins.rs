//! Decides which lists and facts of a pinned server callers may see.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use narthex_model::CallErrorKind;
use narthex_upstream::{Inventory, Link, ServerFacts};
use tokio::{
    sync::{Mutex, OwnedMutexGuard},
    time::sleep,
};

use super::{Connection, open::Fault};
use crate::{
    DefinitionPins, Held, LookError, PinnedList, PinnedSaid, Said, pins::FurtherLists,
    registry::Shared,
};

/// The pauses before a starting server is reviewed again.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(2)];
/// The longest pause before a ready server is reviewed again.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// Held by the task that reviews, until its result is published.
pub(crate) type Turn = OwnedMutexGuard<()>;

/// State of a connection for definitions that are pinned.
#[derive(Debug)]
pub(super) struct Pins {
    /// The file with the entry.
    file: Option<Arc<Path>>,
    /// Locked by the task that reviews.
    turn: Arc<Mutex<()>>,
    /// Locked by the task that lists anew and reviews the result, so that the newest list counts.
    /// Locked before `turn`, so that no slow server delays other reviews.
    listing: Arc<Mutex<()>>,
    further: FurtherLists,
    /// True if a task will review again.
    is_owed: AtomicBool,
    /// True if the visible definitions on some link have changed without a report to callers.
    has_news: AtomicBool,
}

/// The part of a server's lists and facts that callers may see.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) inventory: Arc<Inventory>,
    pub(super) facts: Arc<ServerFacts>,
    /// All lists and facts of the server, if its definitions are pinned.
    pub(super) pinned: Option<Arc<PinnedSaid>>,
}

impl Pins {
    pub(super) fn new(file: Option<Arc<Path>>) -> Self {
        Self {
            file,
            turn: Arc::default(),
            listing: Arc::default(),
            further: FurtherLists::default(),
            is_owed: AtomicBool::new(false),
            has_news: AtomicBool::new(false),
        }
    }
}

impl Connection {
    fn is_pinned(&self) -> bool {
        self.definition.pins_definitions
    }

    /// Waits until no other task reviews; returns at once, if nothing is pinned.
    pub(crate) async fn turn_to_look(&self) -> Option<Turn> {
        match self.is_pinned() {
            true => Some(self.pins.turn.clone().lock_owned().await),
            false => None,
        }
    }

    /// Waits until no other task lists anew; returns at once, if nothing is pinned.
    pub(super) async fn turn_to_list(&self) -> Option<Turn> {
        match self.is_pinned() {
            true => Some(self.pins.listing.clone().lock_owned().await),
            false => None,
        }
    }

    /// Registers a list on a further link, so that the list is reviewed again after each decision.
    pub(crate) fn keeps_list(&self, list: &Arc<PinnedList>) {
        self.pins.further.add(list);
    }

    /// Reviews a server that is about to be ready: none of its definitions are visible before that.
    /// Also returns the turn to review, which the caller holds until it has published the result: a
    /// decision made meanwhile causes another review afterwards.
    pub(super) async fn seen_first(
        &self,
        shared: &Shared,
        inventory: Inventory,
        link: &Arc<Link>,
    ) -> Result<(Seen, Option<Turn>), Fault> {
        let (listed, facts) = (Arc::new(inventory), Arc::new(link.facts().clone()));
        if !self.is_pinned() {
            return Ok((Seen { inventory: listed, facts, pinned: None }, None));
        }
        self.busy(shared, "reviewing its definitions");
        let turn = self.turn_to_look().await;
        let mut pauses = PAUSES.into_iter();
        loop {
            let looked = tokio::select! {
                biased;
                () = link.closed().cancelled() => Err(LookError("it has ended".to_owned())),
                looked = self.look(shared, &listed, Some(&facts)) => looked,
            };
            let error = match looked {
                Ok(held) => return Ok((self.seen(held, &listed, &facts), turn)),
                Err(error) => error,
            };
            match pauses.next().filter(|_| !link.closed().is_cancelled()) {
                Some(pause) => sleep(pause).await,
                None => {
                    let text = format!("{error}; reconnect the server when that is repaired");
                    return Err(Fault::new(CallErrorKind::TransportError, text));
                }
            }
        }
    }

    /// Reviews the new lists of a server. Definitions that cannot be reviewed stay hidden until a
    /// review succeeds.
    pub(super) async fn seen_anew(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        inventory: Inventory,
        facts: &ServerFacts,
        turn: Option<&Turn>,
    ) -> Seen {
        let (listed, facts) = (Arc::new(inventory), Arc::new(facts.clone()));
        if turn.is_none() {
            return Seen { inventory: listed, facts, pinned: None };
        }
        match self.look(shared, &listed, Some(&facts)).await {
            Ok(held) => self.seen(held, &listed, &facts),
            Err(error) => {
                self.look_later(shared, &error);
                let before = self.found();
                let names = Held::but(self.alias(), &before.inventory, &listed);
                let told = before.facts.as_ref().and_then(|facts| facts.instructions());
                let is_silent = told.as_deref() != facts.instructions().as_deref();
                self.seen(Held { names, is_silent }, &listed, &facts)
            }
        }
    }

    fn seen(&self, held: Held, listed: &Arc<Inventory>, facts: &Arc<ServerFacts>) -> Seen {
        let said = PinnedSaid {
            listed: listed.clone(),
            facts: facts.clone(),
            held,
            decided: self.found().pinned.as_ref().map_or(0, |before| before.decided),
        };
        self.seen_of(Arc::new(said))
    }

    fn seen_of(&self, said: Arc<PinnedSaid>) -> Seen {
        let inventory = said.held.of(self.alias(), &said.listed);
        let facts = match said.held.is_silent {
            true => Arc::new(said.facts.without_instructions()),
            false => said.facts.clone(),
        };
        Seen { inventory, facts, pinned: Some(said) }
    }

    /// Has the decider review the definitions. Without facts, only the lists are reviewed.
    pub(crate) async fn look(
        &self,
        shared: &Shared,
        listed: &Arc<Inventory>,
        facts: Option<&ServerFacts>,
    ) -> Result<Held, LookError> {
        let told = facts.and_then(ServerFacts::instructions);
        let said = Said {
            alias: self.alias().clone(),
            file: self.pins.file.clone(),
            listed: listed.clone(),
            told: told.map(std::borrow::Cow::into_owned),
            shows_flagged: self.definition.shows_flagged,
        };
        decider(shared).await?.look(&said).await
    }

    /// Reviews all lists and facts of the server again, on all links, after a decision. Lists on
    /// further links come first: a caller that receives the notification of a change finds the
    /// change there.
    pub(crate) async fn look_again(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
    ) -> Result<(), LookError> {
        let turn = self.turn_to_look().await;
        let looked = self.look_at_all(shared, turn.as_ref()).await;
        if let Err(error) = &looked {
            self.look_later(shared, error);
        }
        looked
    }

    async fn look_at_all(&self, shared: &Shared, turn: Option<&Turn>) -> Result<(), LookError> {
        for list in self.pins.further.all() {
            if list.look(turn).await? {
                self.pins.has_news.store(true, Ordering::Release);
            }
        }
        let Some(before) = self.found().pinned.clone() else { return Ok(()) };
        let held = self.look(shared, &before.listed, Some(&before.facts)).await?;
        let has_news = self.pins.has_news.swap(false, Ordering::AcqRel);
        let is_other = has_news || held != before.held;
        // Without a difference no snapshot is published: each follower of rows would read all of
        // them for it.
        if !is_other {
            return Ok(());
        }
        let said = PinnedSaid {
            listed: before.listed.clone(),
            facts: before.facts.clone(),
            held,
            decided: before.decided + 1,
        };
        let seen = self.seen_of(Arc::new(said));
        self.update(shared, |found| self.listed(found, seen));
        Ok(())
    }

    /// Tries the review again in the background until it works, or the connection ends.
    pub(crate) fn look_later(self: &Arc<Self>, shared: &Arc<Shared>, error: &LookError) {
        tracing::warn!(
            server.name = %self.alias(),
            "{error}; its new definitions stay under review"
        );
        if self.pins.is_owed.swap(true, Ordering::AcqRel) {
            return;
        }
        let (connection, of) = (self.clone(), shared.clone());
        let looking = async move {
            let mut pause = PAUSES[0];
            loop {
                tokio::select! {
                    biased;
                    () = connection.ending() => return,
                    () = sleep(pause) => {}
                }
                let turn = connection.turn_to_look().await;
                // A review that fails from here on schedules another one.
                connection.pins.is_owed.store(false, Ordering::Release);
                if connection.look_at_all(&of, turn.as_ref()).await.is_ok() {
                    return;
                }
                if connection.pins.is_owed.swap(true, Ordering::AcqRel) {
                    return;
                }
                pause = (pause * 2).min(PAUSE_MAX);
            }
        };
        shared.tasks.spawn_on(looking, &shared.home());
    }
}

/// Returns the decider of definitions; waits until it is known.
async fn decider(shared: &Shared) -> Result<Arc<dyn DefinitionPins>, LookError> {
    let mut pins = shared.pins.subscribe();
    tokio::select! {
        biased;
        () = shared.shutdown.cancelled() => Err(LookError("the daemon is stopping".to_owned())),
        // The sender exists as long as the registry.
        known = pins.wait_for(Option::is_some) => {
            let known = known.ok().and_then(|known| known.clone());
            known.ok_or_else(|| LookError("there is no reviewer of definitions".to_owned()))
        }
    }
}
