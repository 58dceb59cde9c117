//! Names of the tools that live servers list, for all definitions that are compared with them: each
//! list is read once. One digest represents the names of all, from which that of one server can be
//! subtracted.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::Names;
use narthex_control::ControlError;
use narthex_registry::{ServerRow, Snapshot};
use narthex_upstream::Inventory;
use sha2::{Digest, Sha256};
use tokio::sync::{Mutex as AsyncMutex, watch};

use crate::judging::{ByList, judge::tools};

use crate::reviews::ReviewError;

/// A digest of names in any order: a sum of digests, one of each list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sum([u64; 4]);

/// The digest of the names with which a live server is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NamesDigest {
    /// The names of all other live servers.
    others: Sum,
    /// Names of the catalog: their number in the store.
    catalog: i64,
}

/// The known names.
#[derive(Debug, Default)]
pub(crate) struct KnownNames {
    /// Changes whenever there may be other names though no row has changed.
    news: watch::Sender<()>,
    lists: Mutex<Lists>,
    /// Number of requests for the names of all live servers.
    asked: AtomicU64,
    live: AsyncMutex<LiveNames>,
    catalog: AsyncMutex<Option<(i64, Arc<Names>)>>,
    /// The last number of the catalog of the workspace of the live configuration, once it was read.
    number: Mutex<Option<i64>>,
}

/// The digest of each list that is still in use.
#[derive(Debug, Default)]
struct Lists {
    all: ByList<OfList>,
    /// Number of lists that were read.
    read: u64,
}

#[derive(Debug)]
struct OfList {
    server: String,
    rejected: Arc<HashSet<String>>,
    sum: Sum,
}

/// The digests of the lists of all live servers at one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct NameSums {
    total: Sum,
    of: HashMap<String, Sum>,
}

/// The names of all live servers at one moment: most servers are compared with the same ones.
#[derive(Debug, Clone, Default)]
pub(crate) struct LiveNames {
    /// Requests with a smaller number may use these.
    covers: u64,
    pub(crate) sums: Arc<NameSums>,
    pub(crate) names: Arc<Names>,
    /// Number of times that names were made.
    made: u64,
}

impl Sum {
    /// The digest of the tools of one list. An empty list is like an absent one.
    fn of<'a>(server: &str, tools: impl Iterator<Item = &'a str>) -> Self {
        let mut tools: Vec<_> = tools.collect();
        if tools.is_empty() {
            return Self::default();
        }
        tools.sort_unstable();
        tools.dedup();
        let mut hash = Sha256::new();
        for text in std::iter::once(server).chain(tools) {
            hash.update(text.len().to_be_bytes());
            hash.update(text);
        }
        let digest: [u8; 32] = hash.finalize().into();
        let mut lanes = [0; 4];
        for (lane, bytes) in lanes.iter_mut().zip(digest.chunks_exact(8)) {
            *lane = bytes.iter().fold(0, |number, byte| (number << 8) | u64::from(*byte));
        }
        Self(lanes)
    }

    fn plus(self, other: Self) -> Self {
        Self(std::array::from_fn(|at| self.0[at].wrapping_add(other.0[at])))
    }

    fn minus(self, other: Self) -> Self {
        Self(std::array::from_fn(|at| self.0[at].wrapping_sub(other.0[at])))
    }
}

impl NameSums {
    /// The digest of the names with which a server is compared, with this number of the catalog.
    pub(crate) fn beside(&self, server: &str, catalog: i64) -> NamesDigest {
        let own = self.of.get(server).copied().unwrap_or_default();
        NamesDigest { others: self.total.minus(own), catalog }
    }
}

impl Lists {
    /// The digest of a list, which is read if it is unknown.
    fn sum(&mut self, server: &str, list: &Arc<Inventory>) -> Sum {
        if let Some(known) = self.known(server, list) {
            return known.sum;
        }
        self.note(server, list, Arc::default())
    }

    fn known(&self, server: &str, list: &Arc<Inventory>) -> Option<&OfList> {
        self.all.get(list).filter(|known| known.server == server)
    }

    fn note(&mut self, server: &str, list: &Arc<Inventory>, rejected: Arc<HashSet<String>>) -> Sum {
        self.read += 1;
        let sum = Sum::of(server, tools(list, &rejected));
        self.all.insert(list, OfList { server: server.to_owned(), rejected, sum });
        sum
    }

    fn rejected(&self, server: &str, list: &Arc<Inventory>) -> Arc<HashSet<String>> {
        self.known(server, list).map(|known| known.rejected.clone()).unwrap_or_default()
    }
}

impl KnownNames {
    /// Changes whenever there may be other names though no row has changed.
    pub(crate) fn news(&self) -> watch::Receiver<()> {
        self.news.subscribe()
    }

    /// The last number of the catalog; `None` if it was never read.
    pub(crate) fn number(&self) -> Option<i64> {
        *self.number.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the number of the catalog that was read.
    pub(crate) fn note_number(&self, number: i64) {
        let before = self.number.lock().unwrap_or_else(PoisonError::into_inner).replace(number);
        if before != Some(number) {
            self.news.send_modify(|()| ());
        }
    }

    /// Notes the tools of a list that a human has rejected: these have no name. If they differ from
    /// before, watchers of names are notified.
    pub(crate) fn rejects(&self, server: &str, list: &Arc<Inventory>, rejected: HashSet<String>) {
        let is_other = {
            let mut lists = self.lists();
            let is_other = *lists.rejected(server, list) != rejected;
            if is_other {
                lists.note(server, list, Arc::new(rejected));
            }
            is_other
        };
        if is_other {
            self.news.send_modify(|()| ());
        }
    }

    /// The digests of the lists of all live servers at this moment.
    pub(crate) fn sums(&self, rows: &Snapshot) -> NameSums {
        let mut lists = self.lists();
        let mut sums = NameSums::default();
        for row in shown(rows) {
            let sum = lists.sum(&row.name, listed(row));
            if sum != Sum::default() {
                sums.total = sums.total.plus(sum);
                sums.of.insert(row.name.clone(), sum);
            }
        }
        // Lists of removed servers are forgotten, some at a time.
        if lists.all.count() > rows.servers.len() * 2 {
            lists.all.forget_gone();
        }
        sums
    }

    /// The names of all live servers, at a moment after this call. Callers during the making of
    /// others share the next ones.
    pub(crate) async fn live(
        &self,
        rows: impl Fn() -> Arc<Snapshot>,
    ) -> Result<LiveNames, ReviewError> {
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        let mut last = self.live.lock().await;
        if last.covers > asked {
            return Ok(last.clone());
        }
        let covers = self.asked.load(Ordering::Relaxed);
        let rows = rows();
        let sums = Arc::new(self.sums(&rows));
        if sums.total == last.sums.total {
            *last = LiveNames { covers, sums, ..last.clone() };
            return Ok(last.clone());
        }
        let lists: Vec<_> = {
            let known = self.lists();
            let of = |row: &Arc<ServerRow>| {
                let rejected = known.rejected(&row.name, listed(row));
                (row.name.clone(), listed(row).clone(), rejected)
            };
            shown(&rows).map(of).collect()
        };
        drop(rows);
        let naming = move || {
            let all = lists.iter().flat_map(|(server, list, rejected)| {
                tools(list, rejected).map(|tool| (server.as_str(), tool))
            });
            Arc::new(Names::new(all))
        };
        let names = tokio::task::spawn_blocking(naming).await.map_err(ControlError::Bug)?;
        *last = LiveNames { covers, sums, names, made: last.made + 1 };
        Ok(last.clone())
    }

    /// The names of the catalog of this number, which are read if they are unknown.
    pub(crate) async fn catalog(
        &self,
        number: i64,
        read: impl Future<Output = Result<Vec<(String, String)>, ReviewError>>,
    ) -> Result<Arc<Names>, ReviewError> {
        let mut last = self.catalog.lock().await;
        if let Some((known, names)) = last.as_ref()
            && *known == number
        {
            return Ok(names.clone());
        }
        let tools = read.await?;
        let naming =
            move || Arc::new(Names::new(tools.iter().map(|(server, name)| (&**server, &**name))));
        let names = tokio::task::spawn_blocking(naming).await.map_err(ControlError::Bug)?;
        *last = Some((number, names.clone()));
        Ok(names)
    }

    fn lists(&self) -> MutexGuard<'_, Lists> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The rows whose entries are in use.
fn shown(rows: &Snapshot) -> impl Iterator<Item = &Arc<ServerRow>> {
    rows.servers.iter().filter(|row| !row.is_overridden)
}

/// All definitions that a server lists, also those under review.
fn listed(row: &ServerRow) -> &Arc<Inventory> {
    row.pinned.as_ref().map_or(&row.inventory, |said| said.listed())
}

#[cfg(test)]
mod tests;
