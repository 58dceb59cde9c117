//! The servers that registries have answered with, stored in the data directory for work offline.
//!
//! The cache is a help and no source of truth: a file that cannot be read counts as empty.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{address::RegistryAddress, client::Listing, document::ServerStatus};
use crate::{Failure, data_dir::DataDir};

/// Name of the file in the data directory.
const FILE: &str = "registry-cache.json";
/// The longest cache that is read, in bytes.
const FILE_MAX: u64 = 32 * 1024 * 1024;
/// Number of versions of servers that are stored for all registries together.
const ENTRIES_MAX: usize = 2000;
/// Number of bytes of their texts.
const BYTES_MAX: usize = 16 * 1024 * 1024;

/// The cache of a data directory.
#[derive(Debug)]
pub struct RegistryCache {
    file: PathBuf,
    stored: Stored,
}

/// The content of the file: by the address of the registry, and by name and version.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Stored {
    registries: BTreeMap<String, BTreeMap<String, Entry>>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Entry {
    /// Seconds since 1970 at which the registry sent the answer.
    seen_at: u64,
    answer: Value,
}

/// A server of the cache, and the time of the registry's answer.
#[derive(Debug, Clone)]
pub struct Cached {
    pub listing: Listing,
    pub seen_at: SystemTime,
}

impl RegistryCache {
    /// Opens the cache of a data directory, whether it has one or not.
    #[must_use]
    pub fn open(data: &Path) -> Self {
        let file = data.join(FILE);
        let text = narthex_private::read(&file, FILE_MAX).unwrap_or_default();
        Self { file, stored: serde_json::from_slice(&text).unwrap_or_default() }
    }

    /// Stores servers that a registry has just answered with. The oldest ones make room.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn store<'l>(
        &mut self,
        registry: &RegistryAddress,
        listings: impl IntoIterator<Item = &'l Listing>,
        now: SystemTime,
    ) -> Result<(), Failure> {
        let seen_at = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let own = self.stored.registries.entry(registry.to_string()).or_default();
        for Listing { listed, answer } in listings {
            let key = format!("{} {}", listed.server.name, listed.server.version);
            own.insert(key, Entry { seen_at, answer: answer.clone() });
        }
        self.shrink();
        DataDir::open(self.file.parent().unwrap_or(Path::new(".")))?;
        let text = serde_json::to_vec(&self.stored).unwrap_or_default();
        narthex_private::replace(&self.file, &text)?;
        Ok(())
    }

    /// Removes the oldest entries beyond the limits.
    fn shrink(&mut self) {
        let mut all: Vec<(u64, usize, String, String)> = Vec::new();
        for (registry, entries) in &self.stored.registries {
            for (key, entry) in entries {
                let size = entry.answer.to_string().len();
                all.push((entry.seen_at, size, registry.clone(), key.clone()));
            }
        }
        // The newest ones first.
        all.sort_by(|one, other| other.0.cmp(&one.0).then_with(|| one.3.cmp(&other.3)));
        let mut bytes = 0;
        for (index, (_, size, registry, key)) in all.iter().enumerate() {
            bytes += size;
            if (index >= ENTRIES_MAX || bytes > BYTES_MAX)
                && let Some(entries) = self.stored.registries.get_mut(registry)
            {
                entries.remove(key);
            }
        }
        self.stored.registries.retain(|_, entries| !entries.is_empty());
    }

    /// The servers of a registry that have all of these words, each in its latest known version, in
    /// the order of their names.
    #[must_use]
    pub fn search(&self, registry: &RegistryAddress, words: &[String]) -> Vec<Cached> {
        let mut by_name: BTreeMap<String, Cached> = BTreeMap::new();
        for cached in self.of(registry) {
            let server = &cached.listing.listed.server;
            let is_there = cached.listing.listed.status() != ServerStatus::Deleted;
            if is_there && server.has_words(words) {
                let name = server.name.clone();
                if by_name.get(&name).is_none_or(|old| is_later(&cached, old)) {
                    by_name.insert(name, cached);
                }
            }
        }
        by_name.into_values().collect()
    }

    /// One version of a server; `latest` is the latest known one.
    #[must_use]
    pub fn version(&self, registry: &RegistryAddress, name: &str, version: &str) -> Option<Cached> {
        let of_name = self.of(registry).filter(|cached| cached.listing.listed.server.name == name);
        let is_it = |cached: &Cached| {
            version == "latest" || cached.listing.listed.server.version == version
        };
        of_name.filter(is_it).reduce(|old, new| if is_later(&new, &old) { new } else { old })
    }

    fn of(&self, registry: &RegistryAddress) -> impl Iterator<Item = Cached> {
        let own = self.stored.registries.get(&registry.to_string());
        own.into_iter().flat_map(BTreeMap::values).filter_map(|entry| {
            let seen_at = UNIX_EPOCH + Duration::from_secs(entry.seen_at);
            Some(Cached { listing: Listing::read(entry.answer.clone())?, seen_at })
        })
    }
}

/// True if the registry called the new one the latest, or sent it later.
fn is_later(new: &Cached, old: &Cached) -> bool {
    let rank = |cached: &Cached| (cached.listing.listed.is_latest(), cached.seen_at);
    rank(new) > rank(old)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn listing(name: &str, version: &str, is_latest: bool) -> Listing {
        let official = json!({ "isLatest": is_latest });
        let meta = json!({ "io.modelcontextprotocol.registry/official": official });
        let server = json!({ "name": name, "version": version, "description": "notes" });
        Listing::read(json!({ "server": server, "_meta": meta })).unwrap()
    }

    fn registry(text: &str) -> RegistryAddress {
        RegistryAddress::new(text, "--registry").unwrap()
    }

    /// E203: answers are found again by registry, words and version, with their time.
    #[test]
    fn e203_answers_are_found_again_with_their_time() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        let (here, there) = (registry("https://a.example"), registry("https://b.example"));
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        let mut cache = RegistryCache::open(&data);
        let first = [listing("x/pad", "2.0.0", true), listing("x/other", "1.0.0", true)];
        cache.store(&here, &first, at(1000)).unwrap();
        cache.store(&here, &[listing("x/pad", "1.0.0", false)], at(2000)).unwrap();
        let cache = RegistryCache::open(&data);
        let words = ["pad".to_owned()];
        let found = cache.search(&here, &words);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].listing.listed.server.version, "2.0.0");
        assert_eq!(found[0].seen_at, at(1000));
        let version = |asked| cache.version(&here, "x/pad", asked);
        assert_eq!(version("latest").unwrap().listing.listed.server.version, "2.0.0");
        assert_eq!(version("1.0.0").unwrap().seen_at, at(2000));
        assert!(version("3.0.0").is_none() && cache.search(&there, &words).is_empty());
    }

    /// E203: the cache is bounded, and a damaged one is an empty one.
    #[test]
    fn e203_the_oldest_answers_make_room_and_damage_is_no_error() {
        let dir = tempfile::tempdir().unwrap();
        let here = registry("https://a.example");
        let mut cache = RegistryCache::open(dir.path());
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        cache.store(&here, &[listing("x/old", "1.0.0", true)], at(1)).unwrap();
        let many: Vec<_> =
            (0..ENTRIES_MAX).map(|n| listing(&format!("x/s{n}"), "1.0.0", true)).collect();
        cache.store(&here, &many, at(2)).unwrap();
        assert_eq!(cache.search(&here, &[]).len(), ENTRIES_MAX);
        assert!(cache.version(&here, "x/old", "latest").is_none());
        fs_err::write(dir.path().join(FILE), "{").unwrap();
        assert!(RegistryCache::open(dir.path()).search(&here, &[]).is_empty());
    }
}
