//! First lists of a run's servers on further links. Clients that can answer questions have their
//! own links, and servers may list more for them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use bytes::Bytes;
use narthex_model::Alias;
use narthex_upstream::{ClientIdentity, Inventory};
use narthex_wire::Revision;

use crate::{FirstList, KeptFurther, KeptVariant};

/// Largest number of variants whose first lists are stored; clients choose what they declare.
const VARIANTS_MAX: usize = 64;
/// Longest declaration of a client, in bytes: it is stored.
const CAPABILITIES_MAX: usize = 8 * 1024;

/// First lists by the identity that the clients of a link declare.
#[derive(Debug, Default)]
pub struct FirstVariants {
    first: Mutex<HashMap<Variant, FirstList>>,
    /// The unchanged part of lists on pooled links, cached while the run is used: calls do not
    /// compare these lists again.
    compared: Mutex<HashMap<Variant, Compared>>,
}

/// A server, with the capabilities and the revision of the clients for which it lists.
type Variant = (Alias, Bytes, Revision);

/// A list, and its part that is unchanged since the first list.
type Compared = (Weak<Inventory>, Arc<Inventory>);

impl FirstVariants {
    /// Restores the stored lists.
    #[must_use]
    pub fn again(kept: KeptFurther) -> Self {
        let variant = |one: KeptVariant| {
            let KeptVariant { alias, capabilities, revision, lists } = one;
            let variant = (alias, Bytes::from(capabilities), Revision::parse(&revision)?);
            Some((variant, FirstList::Kept(Arc::new(lists))))
        };
        let first = kept.0.into_iter().filter_map(variant).collect();
        Self { first: Mutex::new(first), compared: Mutex::default() }
    }

    /// True if a first list of the server on links of this kind is known.
    #[must_use]
    pub fn has(&self, alias: &Alias, client: &ClientIdentity) -> bool {
        self.first().contains_key(&variant(alias, client))
    }

    /// The first list of a server on a further link of this kind, which limits the client. If none
    /// is known, `listed` becomes the first list, and the flag is true.
    #[must_use]
    pub fn first_of(
        &self,
        alias: &Alias,
        client: &ClientIdentity,
        listed: &Arc<Inventory>,
    ) -> (FirstList, bool) {
        let (variant, mut all) = (variant(alias, client), self.first());
        if let Some(first) = all.get(&variant) {
            return (first.clone(), false);
        }
        if all.len() >= VARIANTS_MAX || client.capabilities.len() > CAPABILITIES_MAX {
            return (FirstList::Listed(Arc::default()), false);
        }
        let first = FirstList::Listed(listed.clone());
        all.insert(variant, first.clone());
        (first, true)
    }

    /// The unchanged part of a server's list on a link of this kind. If no first list is known,
    /// `first` becomes the first list, and the flag is true.
    #[must_use]
    pub fn unchanged(
        &self,
        alias: &Alias,
        client: &ClientIdentity,
        first: &Arc<Inventory>,
        listed: &Arc<Inventory>,
    ) -> (Arc<Inventory>, bool) {
        let (first, is_new) = self.first_of(alias, client, first);
        if matches!(&first, FirstList::Listed(first) if Arc::ptr_eq(first, listed)) {
            return (listed.clone(), is_new);
        }
        let variant = variant(alias, client);
        let mut compared = self.compared.lock().unwrap_or_else(PoisonError::into_inner);
        let known = compared.get(&variant);
        if let Some((_, seen)) = known.filter(|(of, _)| of.as_ptr() == Arc::as_ptr(listed)) {
            return (seen.clone(), is_new);
        }
        let seen = first.of(listed);
        compared.insert(variant, (Arc::downgrade(listed), seen.clone()));
        (seen, is_new)
    }

    /// All first lists as digests, for the store.
    #[must_use]
    pub fn kept(&self) -> KeptFurther {
        let all = self.first();
        let kept = all.iter().map(|((alias, capabilities, revision), first)| KeptVariant {
            alias: alias.clone(),
            // The capabilities are JSON, so this conversion loses no character.
            capabilities: String::from_utf8_lossy(capabilities).into_owned(),
            revision: revision.as_str().to_owned(),
            lists: first.kept(),
        });
        let mut kept: Vec<_> = kept.collect();
        let key =
            |one: &KeptVariant| (one.alias.clone(), one.capabilities.clone(), one.revision.clone());
        kept.sort_by_cached_key(key);
        KeptFurther(kept)
    }

    /// Drops the cached comparisons; the next call compares anew.
    pub fn forget_compared(&self) {
        self.compared.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn first(&self) -> MutexGuard<'_, HashMap<Variant, FirstList>> {
        self.first.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn variant(alias: &Alias, client: &ClientIdentity) -> Variant {
    (alias.clone(), client.capabilities.clone(), client.revision)
}
