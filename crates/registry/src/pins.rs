//! Definitions of live servers that are pinned: who decides on them, and what may be had of what a
//! server says (D10, S22 to S24).

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

/// Looks at what a server says.
pub type Looking<'a> = Pin<Box<dyn Future<Output = Result<Held, LookError>> + Send + 'a>>;

/// Decides on definitions of live servers whose entries pin them.
pub trait DefinitionPins: Send + Sync + fmt::Debug {
    /// What of it is held back from everybody, until a human has accepted it.
    fn look<'a>(&'a self, said: &'a Said) -> Looking<'a>;
}

/// What a server says.
#[derive(Debug, Clone)]
pub struct Said {
    /// The server.
    pub alias: Alias,
    /// The file that its entry is from; `None` for an entry of no file.
    pub file: Option<Arc<Path>>,
    /// Everything that it lists.
    pub listed: Arc<Inventory>,
    /// What it tells models of itself. `None` also where that was looked at apart from the lists.
    pub told: Option<String>,
    /// Whether a definition that is the first of its name is there although it says what it should
    /// not.
    pub shows_flagged: bool,
}

/// What is held back of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Held {
    /// What of the lists.
    pub names: HeldNames,
    /// Whether what it tells models of itself is.
    pub is_silent: bool,
}

/// A server could not be looked at, so that nothing of it is known to be harmless.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("its definitions could not be looked at: {0}")]
pub struct LookError(pub String);

/// What a server said on its shared link when it was looked at last.
#[derive(Debug)]
pub struct PinnedSaid {
    pub(crate) listed: Arc<Inventory>,
    /// As the server says them.
    pub(crate) facts: Arc<ServerFacts>,
    pub(crate) held: Held,
    /// How often something else of it came to be there by a decision, or by what others list,
    /// since the connection was made.
    pub(crate) decided: u64,
}

/// What a server lists on a link besides the shared one, and what may be had of it.
pub struct PinnedList {
    pub(crate) shared: Arc<Shared>,
    pub(crate) connection: Arc<Connection>,
    listed: Mutex<Arc<Inventory>>,
    seen: ArcSwap<Inventory>,
    held: ArcSwap<HeldNames>,
}

impl PinnedSaid {
    /// All that it listed, with what is held back.
    #[must_use]
    pub fn listed(&self) -> &Arc<Inventory> {
        &self.listed
    }

    /// What is held back of it.
    #[must_use]
    pub fn held(&self) -> &Held {
        &self.held
    }

    /// Another number each time that other definitions of this connection may be had than before,
    /// without a word of the server.
    #[must_use]
    pub fn decided(&self) -> u64 {
        self.decided
    }
}

impl Held {
    /// How many definitions that are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.names.count() + usize::from(self.is_silent)
    }

    /// What may be had of lists. Of two definitions of one name the first counts.
    #[must_use]
    pub(crate) fn of(&self, alias: &Alias, listed: &Arc<Inventory>) -> Arc<Inventory> {
        let first = firsts(listed);
        listed.frozen(|list, entry| {
            let is_first =
                first.get(&(list, &*entry.key)).is_some_and(|first| std::ptr::eq(*first, entry));
            is_first && !self.names.has(alias, list, &entry.key)
        })
    }

    /// All that is not as it was in what may be had by now: what nobody could look at.
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
    /// Names who decides on definitions that are pinned. Servers that pin them are `connecting`
    /// until then. Only the first call counts.
    pub fn set_pins(&self, pins: Arc<dyn DefinitionPins>) {
        let is_first = self.shared.pins.send_if_modified(|known| {
            let is_first = known.is_none();
            known.get_or_insert(pins);
            is_first
        });
        if !is_first {
            tracing::warn!("definitions are decided on in one place alone; the second is not used");
        }
    }

    /// Looks once more at everything that a server says on any link, as somebody has decided on it:
    /// when this returns, callers have what was accepted and nothing else. A server that is not
    /// there, or not pinned, is left alone.
    ///
    /// # Errors
    /// When it cannot be looked at: then it is tried again in the background.
    pub async fn look_again(&self, alias: &Alias) -> Result<(), LookError> {
        let snapshot = self.snapshot();
        let row = snapshot.get(alias.as_str()).filter(|row| row.is_pinned());
        match row.and_then(|row| self.shared.connection(row)) {
            Some(connection) => connection.look_again(&self.shared).await,
            None => Ok(()),
        }
    }

    /// What may be had of what a server lists on a link besides the shared one. `None`: it is not
    /// pinned, so all of it.
    ///
    /// # Errors
    /// When it cannot be looked at, or the row has changed meanwhile.
    pub async fn pinned_list(
        &self,
        row: &ServerRow,
        listed: &Arc<Inventory>,
    ) -> Result<Option<Arc<PinnedList>>, LookError> {
        if !row.is_pinned() {
            return Ok(None);
        }
        let gone = || LookError("the server was changed meanwhile".to_owned());
        let connection = self.shared.connection(row).ok_or_else(gone)?;
        let list = Arc::new(PinnedList {
            shared: self.shared.clone(),
            connection: connection.clone(),
            listed: Mutex::new(listed.clone()),
            seen: ArcSwap::default(),
            held: ArcSwap::default(),
        });
        // Kept before it is looked at: whoever decides meanwhile has it looked at again.
        connection.keeps_list(&list);
        let turn = connection.turn_to_look().await;
        list.look(turn.as_ref()).await?;
        Ok(Some(list))
    }
}

impl PinnedList {
    /// What may be had of it now.
    #[must_use]
    pub fn seen(&self) -> Arc<Inventory> {
        self.seen.load_full()
    }

    /// What is held back of it now.
    #[must_use]
    pub fn held(&self) -> Arc<HeldNames> {
        self.held.load_full()
    }

    /// Takes what the server lists now. What nobody can look at is not there until somebody can.
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

    /// Looks at what it lists, and says whether something else is held back than before. `_turn`
    /// proves that nobody else does.
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

/// Lists on links besides the shared one, as long as somebody has them.
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
