//! Definitions read from lists: most runs get the same lists.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use narthex_control::ControlError;
use narthex_upstream::Inventory;

use crate::judging::{ByList, judge::Seen};

use crate::reviews::ReviewError;

/// The definitions read from each list that is still in use.
#[derive(Debug, Default)]
pub(crate) struct ReadLists(Mutex<ByList<Read>>);

#[derive(Debug)]
struct Read {
    /// The server's instructions to models beside it.
    told: Option<String>,
    seen: Arc<Vec<Seen>>,
}

impl ReadLists {
    /// The definitions in a server's list, and in its instructions to models.
    ///
    /// # Errors
    /// When the thread that reads fails.
    pub(crate) async fn of(
        &self,
        list: &Arc<Inventory>,
        told: Option<String>,
    ) -> Result<Arc<Vec<Seen>>, ReviewError> {
        let known = self.all().get(list).filter(|read| read.told == told).map(Read::seen);
        if let Some(known) = known {
            return Ok(known);
        }
        let own = list.clone();
        let reading = move || {
            let seen = Arc::new(Seen::all(&own, told.as_deref()));
            Read { told, seen }
        };
        let read = tokio::task::spawn_blocking(reading).await.map_err(ControlError::Bug)?;
        let seen = read.seen();
        let mut all = self.all();
        all.forget_gone();
        all.insert(list, read);
        Ok(seen)
    }

    fn all(&self) -> MutexGuard<'_, ByList<Read>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Read {
    fn seen(&self) -> Arc<Vec<Seen>> {
        self.seen.clone()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use narthex_upstream::{InventoryEntry, Listed};

    use super::*;

    #[tokio::test]
    async fn a_list_is_read_once_and_its_definitions_are_dropped_with_the_list() {
        let list = |name: &str| {
            let raw = Bytes::from(format!(r#"{{"name":"{name}"}}"#));
            Arc::new(Inventory::new([(Listed::Tool, InventoryEntry::new(name, raw))]))
        };
        let lists = ReadLists::default();
        let one = list("a");
        let first = lists.of(&one, None).await.unwrap();
        assert!(Arc::ptr_eq(&first, &lists.of(&one, None).await.unwrap()));
        // The instructions are a definition, too.
        let told = lists.of(&one, Some("use me".to_owned())).await.unwrap();
        assert_eq!((first.len(), told.len()), (1, 2));
        let again = lists.of(&one, None).await.unwrap();
        assert_eq!(again.len(), 1);
        // The same content in another object is another list.
        let other = list("a");
        assert!(!Arc::ptr_eq(&again, &lists.of(&other, None).await.unwrap()));
        assert_eq!(lists.all().count(), 2);
        drop((one, other));
        let last = list("b");
        assert_eq!(lists.of(&last, None).await.unwrap()[0].name, "b");
        assert_eq!(lists.all().count(), 1);
    }
}
