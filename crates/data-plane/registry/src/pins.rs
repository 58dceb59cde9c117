//! Pinned definitions of live servers: the port for their review, and the definitions that callers
//! may see (D10, S22 to S24).

use std::{
    collections::HashMap,
    fmt,
    path::Path,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use arc_swap::ArcSwap;
use narthex_model::Alias;
use narthex_upstream::{Inventory, InventoryEntry, Listed, ServerFacts};

use crate::{
    HeldNames, Registry, ServerRow,
    connection::{Connection, Turn},
    registry::Shared,
};

/// Future of a review of a server's definitions.
pub type Looking<'a> = Pin<Box<dyn Future<Output = Result<Held, LookError>> + Send + 'a>>;

/// Decides on definitions of live servers whose entries pin them.
pub trait DefinitionPins: Send + Sync + fmt::Debug {
    /// Reviews the definitions: returns those that no caller may see until a human has accepted
    /// them.
    fn look<'a>(&'a self, said: &'a Said) -> Looking<'a>;
}

/// Definitions and instructions of a server.
#[derive(Debug, Clone)]
pub struct Said {
    /// The server.
    pub alias: Alias,
    /// The file with the server's entry; `None` for an entry of no file.
    pub file: Option<Arc<Path>>,
    /// All lists of the server.
    pub listed: Arc<Inventory>,
    /// The server's instructions to models; `None` also if they were reviewed apart from the lists.
    pub told: Option<String>,
    /// True if callers may see a flagged definition that is the first of its name.
    pub shows_flagged: bool,
}

/// Definitions and instructions of a server that are under review.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Held {
    /// Names in the lists.
    pub names: HeldNames,
    /// True if the server's instructions to models are under review.
    pub is_silent: bool,
}

/// The reason why a server could not be reviewed. None of its definitions are then known to be
/// harmless.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("its definitions could not be compared: {0}")]
pub struct LookError(pub String);

/// Definitions and instructions of a server on its shared link at the last review.
#[derive(Debug)]
pub struct PinnedSaid {
    pub(crate) listed: Arc<Inventory>,
    /// The facts as the server gave them.
    pub(crate) facts: Arc<ServerFacts>,
    pub(crate) held: Held,
    /// Number of changes to the available definitions by a decision, or by lists on further links,
    /// since the connection was made.
    pub(crate) decided: u64,
}

/// A server's list on a further link, and the part that callers may see.
pub struct PinnedList {
    pub(crate) shared: Arc<Shared>,
    pub(crate) connection: Arc<Connection>,
    listed: Mutex<Arc<Inventory>>,
    seen: ArcSwap<Inventory>,
    held: ArcSwap<HeldNames>,
}

impl PinnedSaid {
    /// The complete lists, including definitions under review.
    #[must_use]
    pub fn listed(&self) -> &Arc<Inventory> {
        &self.listed
    }

    /// The definitions under review.
    #[must_use]
    pub fn held(&self) -> &Held {
        &self.held
    }

    /// A number that changes each time the visible definitions of this connection change without a
    /// message of the server.
    #[must_use]
    pub fn decided(&self) -> u64 {
        self.decided
    }
}

impl Held {
    /// Number of definitions under review.
    #[must_use]
    pub fn count(&self) -> usize {
        self.names.count() + usize::from(self.is_silent)
    }

    /// The part of the lists that callers may see. If two definitions have one name the first
    /// counts.
    #[must_use]
    pub(crate) fn of(&self, alias: &Alias, listed: &Arc<Inventory>) -> Arc<Inventory> {
        let first = firsts(listed);
        listed.frozen(|list, entry| {
            let is_first =
                first.get(&(list, &*entry.key)).is_some_and(|first| std::ptr::eq(*first, entry));
            is_first && !self.names.has(alias, list, &entry.key)
        })
    }

    /// Names of all definitions that differ from the visible ones: no review could cover them.
    pub(crate) fn but(alias: &Alias, seen: &Inventory, listed: &Inventory) -> HeldNames {
        let before = firsts(seen);
        let mut names = HeldNames::default();
        for ((list, key), entry) in firsts(listed) {
            let before = before.get(&(list, key));
            if !before.is_some_and(|before| before.says(list, &entry.raw)) {
                names.add(alias, list, key);
            }
        }
        names
    }
}

/// The first entry of each name.
fn firsts(listed: &Inventory) -> HashMap<(Listed, &str), &InventoryEntry> {
    let mut first = HashMap::new();
    for (list, entry) in listed.entries() {
        first.entry((list, &*entry.key)).or_insert(entry);
    }
    first
}

impl Registry {
    /// Sets the reviewer of pinned definitions. Servers with pinned definitions are `connecting`
    /// until then. Only the first call counts.
    pub fn set_pins(&self, pins: Arc<dyn DefinitionPins>) {
        let is_first = self.shared.pins.send_if_modified(|known| {
            let is_first = known.is_none();
            known.get_or_insert(pins);
            is_first
        });
        if !is_first {
            tracing::warn!("a second reviewer of definitions was set and is ignored");
        }
    }

    /// Reviews all definitions of a server again, on all its links, after a decision. Afterwards
    /// callers see the accepted definitions and no others. Does nothing for a server that is
    /// missing or not pinned.
    ///
    /// # Errors
    /// When the review fails: then it is retried in the background.
    pub async fn look_again(&self, alias: &Alias) -> Result<(), LookError> {
        let snapshot = self.snapshot();
        let row = snapshot.get(alias.as_str()).filter(|row| row.is_pinned());
        match row.and_then(|row| self.shared.connection(row)) {
            Some(connection) => connection.look_again(&self.shared).await,
            None => Ok(()),
        }
    }

    /// The part of a server's list on a further link that callers may see. `None` if the server is
    /// not pinned: callers may see the whole list.
    ///
    /// # Errors
    /// When the review fails, or the row has changed meanwhile.
    pub async fn pinned_list(
        &self,
        row: &ServerRow,
        listed: &Arc<Inventory>,
    ) -> Result<Option<Arc<PinnedList>>, LookError> {
        if !row.is_pinned() {
            return Ok(None);
        }
        let gone = || LookError("the server was changed at the same time".to_owned());
        let connection = self.shared.connection(row).ok_or_else(gone)?;
        let list = Arc::new(PinnedList {
            shared: self.shared.clone(),
            connection: connection.clone(),
            listed: Mutex::new(listed.clone()),
            seen: ArcSwap::default(),
            held: ArcSwap::default(),
        });
        // The list is registered before its review: a decision that is made meanwhile causes
        // another review.
        connection.keeps_list(&list);
        let turn = connection.turn_to_look().await;
        list.look(turn.as_ref()).await?;
        Ok(Some(list))
    }
}

impl PinnedList {
    /// The part that callers may see now.
    #[must_use]
    pub fn seen(&self) -> Arc<Inventory> {
        self.seen.load_full()
    }

    /// The names under review now.
    #[must_use]
    pub fn held(&self) -> Arc<HeldNames> {
        self.held.load_full()
    }

    /// Takes the server's new list. Definitions that cannot be reviewed stay hidden until a review
    /// succeeds.
    pub async fn lists(&self, listed: Inventory) {
        let turn = self.connection.turn_to_look().await;
        *self.listed() = Arc::new(listed);
        if let Err(error) = self.look(turn.as_ref()).await {
            let (alias, listed) = (self.connection.alias(), self.listed().clone());
            let names = Held::but(alias, &self.seen(), &listed);
            self.shows(Held { names, is_silent: false }, &listed);
            self.connection.look_later(&self.shared, &error);
        }
    }

    /// Reviews the list; returns true if the names under review have changed. `_turn` proves that
    /// no other task is reviewing.
    pub(crate) async fn look(&self, _turn: Option<&Turn>) -> Result<bool, LookError> {
        let listed = self.listed().clone();
        let held = self.connection.look(&self.shared, &listed, None).await?;
        Ok(self.shows(held, &listed))
    }

    fn shows(&self, held: Held, listed: &Arc<Inventory>) -> bool {
        self.seen.store(held.of(self.connection.alias(), listed));
        let before = self.held.swap(Arc::new(held.names.clone()));
        *before != held.names
    }

    fn listed(&self) -> std::sync::MutexGuard<'_, Arc<Inventory>> {
        self.listed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for PinnedList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PinnedList").field("connection", &self.connection).finish_non_exhaustive()
    }
}

/// Lists on further links, as long as a caller holds them.
#[derive(Debug, Default)]
pub(crate) struct FurtherLists(Mutex<Vec<Weak<PinnedList>>>);

impl FurtherLists {
    pub(crate) fn add(&self, list: &Arc<PinnedList>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|list| list.strong_count() > 0);
        all.push(Arc::downgrade(list));
    }

    pub(crate) fn all(&self) -> Vec<Arc<PinnedList>> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter_map(Weak::upgrade).collect()
    }
}
