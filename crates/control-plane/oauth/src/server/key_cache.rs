//! The keys of one issuer, and the times at which they are fetched.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

use crate::jwt::Keys;

/// Time for which fetched keys are used without another look.
const KEYS_LIFE: Duration = Duration::from_hours(1);
/// Time in which an unknown key leads to one fetch.
const PAUSE: Duration = Duration::from_mins(1);
/// Most fetches in this time, since strangers can name any number of keys.
const FETCHES_MAX: usize = 5;

/// The keys of an issuer, with the fetches of the last minute.
#[derive(Debug, Default)]
pub struct KeyCache {
    keys: Keys,
    fetched_at: Option<SystemTime>,
    /// Times of fetches in the last minute, by their reason.
    fetches: BTreeMap<String, SystemTime>,
}

impl KeyCache {
    /// The keys as they were fetched last. Empty before the first fetch.
    #[must_use]
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// True if the caller has to fetch the keys before it checks a token, as they are missing or
    /// older than an hour. It then has to do so: the answer is `false` for the next minute.
    pub fn begins_fetch(&mut self, now: SystemTime) -> bool {
        let age = self.fetched_at.map(|then| now.duration_since(then).unwrap_or_default());
        age.is_none_or(|age| age >= KEYS_LIFE) && self.begins("", now)
    }

    /// True if the caller has to fetch the keys once more, after a check failed by
    /// [`UnknownKey`](crate::jwt::JwtFault::UnknownKey), and check again. `kid` is the id of the
    /// key that the token names. For each id, the answer is `true` once a minute.
    pub fn begins_retry(&mut self, kid: Option<&str>, now: SystemTime) -> bool {
        self.begins(&format!("kid {}", kid.unwrap_or_default()), now)
    }

    fn begins(&mut self, reason: &str, now: SystemTime) -> bool {
        self.fetches.retain(|_, then| now.duration_since(*then).is_ok_and(|ago| ago < PAUSE));
        if self.fetches.contains_key(reason) || self.fetches.len() >= FETCHES_MAX {
            return false;
        }
        self.fetches.insert(reason.to_owned(), now);
        true
    }

    /// Takes fetched keys. After a failed fetch the old keys stay; the caller does not call this.
    pub fn fetched(&mut self, keys: Keys, now: SystemTime) {
        self.keys = keys;
        self.fetched_at = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use serde_json::json;

    use super::*;

    fn keys(kid: &str) -> Keys {
        let key = json!({"kty": "OKP", "crv": "Ed25519", "x": "AA", "kid": kid});
        Keys::read(json!({ "keys": [key] }).to_string().as_bytes()).unwrap()
    }

    #[test]
    fn door_r5_an_unknown_key_leads_to_one_fetch_a_minute() {
        let start = UNIX_EPOCH + Duration::from_hours(1000);
        let mut cache = KeyCache::default();
        cache.fetched(keys("a"), start);
        for kid in [Some("b"), None] {
            assert!(cache.begins_retry(kid, start));
            assert!(!cache.begins_retry(kid, start + PAUSE - Duration::from_secs(1)));
            assert!(cache.begins_retry(kid, start + PAUSE));
        }
        assert_eq!(cache.keys(), &keys("a"));
    }

    #[test]
    fn door_r5_strangers_cannot_cause_many_fetches() {
        let start = UNIX_EPOCH + Duration::from_hours(1000);
        let mut cache = KeyCache::default();
        let began = (0..100).filter(|kid| cache.begins_retry(Some(&kid.to_string()), start));
        assert_eq!(began.count(), FETCHES_MAX);
        assert_eq!(cache.fetches.len(), FETCHES_MAX);
    }

    #[test]
    fn door_r5_missing_and_old_keys_are_fetched() {
        let start = UNIX_EPOCH + Duration::from_hours(1000);
        let mut cache = KeyCache::default();
        assert!(cache.begins_fetch(start));
        assert!(!cache.begins_fetch(start), "a fetch runs already");
        cache.fetched(keys("a"), start);
        assert!(!cache.begins_fetch(start + KEYS_LIFE - Duration::from_secs(1)));
        assert!(cache.begins_fetch(start + KEYS_LIFE));
        assert!(!cache.begins_fetch(start + KEYS_LIFE), "the issuer may be down");
        assert_eq!(cache.keys(), &keys("a"), "the old keys stay");
        assert!(cache.begins_fetch(start + KEYS_LIFE + PAUSE));
    }
}
