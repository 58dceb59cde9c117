//! The rows of a store as values, for the stores of this crate.

use std::collections::BTreeMap;

use narthex_model::Secret;
use serde::{Deserialize, Serialize};

use crate::store::{AttemptRow, ClientKey, GrantFacts, GrantKey, GrantRow, LeaseOutcome};

/// Number of attempts that are stored; the oldest ends first.
const ATTEMPTS_MAX: usize = 1000;

/// All rows. Each method is one step of a store.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    grants: BTreeMap<GrantKey, Grant>,
    clients: BTreeMap<ClientKey, Secret>,
    attempts: BTreeMap<String, AttemptRow>,
    /// The last given generation. None is given twice, so that a row that was dropped and given
    /// anew differs from the old one.
    generations: u64,
}

#[derive(Debug)]
struct Grant {
    row: GrantRow,
    lease: Option<Lease>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Lease {
    owner: String,
    /// Its end on the store's own clock.
    until_ms: u64,
}

/// A renewed grant.
pub(crate) struct Renewed {
    pub(crate) generation: u64,
    pub(crate) value: Secret,
    pub(crate) facts: GrantFacts,
}

impl Tables {
    pub(crate) fn grant(&self, key: &GrantKey) -> Option<GrantRow> {
        self.grants.get(key).map(|grant| grant.row.clone())
    }

    pub(crate) fn grants(
        &self,
        workspace: &str,
        user: Option<&str>,
    ) -> Vec<(GrantKey, GrantFacts)> {
        let is_wanted = |key: &GrantKey| {
            key.workspace == workspace && user.is_none_or(|user| key.user.as_deref() == Some(user))
        };
        let grants = self.grants.iter().filter(|(key, _)| is_wanted(key));
        grants.map(|(key, grant)| (key.clone(), grant.row.facts.clone())).collect()
    }

    pub(crate) fn put_grant(
        &mut self,
        key: GrantKey,
        value: Secret,
        facts: GrantFacts,
    ) -> GrantRow {
        let row = GrantRow { value, generation: self.next_generation(), facts };
        self.grants.insert(key, Grant { row: row.clone(), lease: None });
        row
    }

    pub(crate) fn lease(
        &mut self,
        key: &GrantKey,
        owner: String,
        lease_ms: u64,
        now_ms: u64,
    ) -> LeaseOutcome {
        let Some(grant) = self.grants.get_mut(key) else { return LeaseOutcome::Absent };
        match &grant.lease {
            Some(lease) if lease.until_ms > now_ms && lease.owner != owner => {
                LeaseOutcome::Held { wait_ms: lease.until_ms - now_ms }
            }
            Some(_) | None => {
                grant.lease = Some(Lease { owner, until_ms: now_ms.saturating_add(lease_ms) });
                LeaseOutcome::Taken(grant.row.clone())
            }
        }
    }

    pub(crate) fn renew_grant(&mut self, key: &GrantKey, renewed: Renewed) -> Option<GrantRow> {
        let Renewed { generation, value, facts } = renewed;
        self.of_generation(key, generation)?;
        let next = self.next_generation();
        let grant = self.grants.get_mut(key)?;
        grant.row = GrantRow { value, generation: next, facts };
        grant.lease = None;
        Some(grant.row.clone())
    }

    pub(crate) fn note_failure(&mut self, key: &GrantKey, generation: u64, facts: GrantFacts) {
        if let Some(grant) = self.of_generation(key, generation) {
            grant.row.facts = facts;
            grant.lease = None;
        }
    }

    pub(crate) fn drop_grant(&mut self, key: &GrantKey, generation: Option<u64>) -> bool {
        let is_it = |grant: &Grant| generation.is_none_or(|number| grant.row.generation == number);
        self.grants.get(key).is_some_and(is_it) && self.grants.remove(key).is_some()
    }

    pub(crate) fn client(&self, key: &ClientKey) -> Option<Secret> {
        self.clients.get(key).cloned()
    }

    pub(crate) fn put_client(
        &mut self,
        key: ClientKey,
        value: Secret,
        replaces: Option<&Secret>,
    ) -> Secret {
        match self.clients.get(&key) {
            Some(stored) if replaces != Some(stored) => stored.clone(),
            Some(_) | None => {
                self.clients.insert(key, value.clone());
                value
            }
        }
    }

    pub(crate) fn drop_client(&mut self, key: &ClientKey) {
        self.clients.remove(key);
    }

    pub(crate) fn put_attempt(&mut self, state_hash: String, attempt: AttemptRow, now_s: u64) {
        self.attempts.retain(|_, attempt| attempt.expires_at > now_s);
        while self.attempts.len() >= ATTEMPTS_MAX {
            let oldest = self.attempts.iter().min_by_key(|(_, attempt)| attempt.expires_at);
            let Some(oldest) = oldest.map(|(hash, _)| hash.clone()) else { break };
            self.attempts.remove(&oldest);
        }
        self.attempts.insert(state_hash, attempt);
    }

    pub(crate) fn drop_attempts(&mut self, key: &GrantKey) {
        self.attempts.retain(|_, attempt| attempt.key != *key);
    }

    pub(crate) fn open_attempts(&self, workspace: &str, now_s: u64) -> Vec<String> {
        let is_open =
            |attempt: &AttemptRow| attempt.key.workspace == workspace && attempt.expires_at > now_s;
        let open = self.attempts.iter().filter(|(_, attempt)| is_open(attempt));
        open.map(|(hash, _)| hash.clone()).collect()
    }

    pub(crate) fn take_attempt(&mut self, state_hash: &str, now_s: u64) -> Option<AttemptRow> {
        self.attempts.remove(state_hash).filter(|attempt| attempt.expires_at > now_s)
    }

    fn next_generation(&mut self) -> u64 {
        self.generations = self.generations.saturating_add(1);
        self.generations
    }

    fn of_generation(&mut self, key: &GrantKey, generation: u64) -> Option<&mut Grant> {
        self.grants.get_mut(key).filter(|grant| grant.row.generation == generation)
    }
}

/// The tables as JSON.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Stored {
    grants: Vec<StoredGrant>,
    clients: Vec<StoredClient>,
    attempts: Vec<StoredAttempt>,
    generations: u64,
}

#[derive(Serialize, Deserialize)]
struct StoredGrant {
    key: GrantKey,
    value: String,
    generation: u64,
    facts: GrantFacts,
    #[serde(default)]
    lease: Option<Lease>,
}

#[derive(Serialize, Deserialize)]
struct StoredClient {
    key: ClientKey,
    value: String,
}

#[derive(Serialize, Deserialize)]
struct StoredAttempt {
    state_hash: String,
    key: GrantKey,
    value: String,
    expires_at: u64,
}

impl Tables {
    /// All rows as JSON, with their secrets.
    pub(crate) fn to_json(&self) -> Secret {
        let text = |secret: &Secret| secret.expose().to_owned();
        let grants = self.grants.iter().map(|(key, Grant { row, lease })| StoredGrant {
            key: key.clone(),
            value: text(&row.value),
            generation: row.generation,
            facts: row.facts.clone(),
            lease: lease.clone(),
        });
        let clients = self.clients.iter();
        let clients =
            clients.map(|(key, value)| StoredClient { key: key.clone(), value: text(value) });
        let attempts = self.attempts.iter().map(|(state_hash, attempt)| StoredAttempt {
            state_hash: state_hash.clone(),
            key: attempt.key.clone(),
            value: text(&attempt.value),
            expires_at: attempt.expires_at,
        });
        let stored = Stored {
            grants: grants.collect(),
            clients: clients.collect(),
            attempts: attempts.collect(),
            generations: self.generations,
        };
        Secret::new(serde_json::to_string_pretty(&stored).unwrap_or_default())
    }

    /// Reads rows of [`Self::to_json`].
    pub(crate) fn from_json(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        let Stored { grants, clients, attempts, generations } = serde_json::from_slice(bytes)?;
        let grants = grants.into_iter().map(|stored| {
            let StoredGrant { key, value, generation, facts, lease } = stored;
            let row = GrantRow { value: Secret::new(value), generation, facts };
            (key, Grant { row, lease })
        });
        let clients = clients.into_iter().map(|stored| (stored.key, Secret::new(stored.value)));
        let attempts = attempts.into_iter().map(|stored| {
            let StoredAttempt { state_hash, key, value, expires_at } = stored;
            (state_hash, AttemptRow { key, value: Secret::new(value), expires_at })
        });
        Ok(Self {
            grants: grants.collect(),
            clients: clients.collect(),
            attempts: attempts.collect(),
            generations,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(server: &str) -> GrantKey {
        GrantKey { workspace: "w".to_owned(), server: server.to_owned(), user: None }
    }

    fn client_key() -> ClientKey {
        let [workspace, issuer, redirect_base] = ["w", "i", "r"].map(str::to_owned);
        ClientKey { workspace, issuer, redirect_base }
    }

    fn put(tables: &mut Tables, value: &str) -> GrantRow {
        tables.put_grant(key("a"), Secret::new(value), GrantFacts::default())
    }

    fn renewed(generation: u64, value: &str) -> Renewed {
        Renewed { generation, value: Secret::new(value), facts: GrantFacts::default() }
    }

    #[test]
    fn oauth_c23_one_of_several_writers_with_one_generation_wins() {
        let mut tables = Tables::default();
        let first = put(&mut tables, "one");
        let second = tables.renew_grant(&key("a"), renewed(first.generation, "two")).unwrap();
        assert_eq!(second.generation, first.generation + 1);
        assert!(tables.renew_grant(&key("a"), renewed(first.generation, "three")).is_none());
        assert_eq!(tables.grant(&key("a")).unwrap().value.expose(), "two");
        assert!(!tables.drop_grant(&key("a"), Some(first.generation)));
        assert!(tables.drop_grant(&key("a"), Some(second.generation)));
        assert!(tables.grant(&key("a")).is_none());
        assert!(put(&mut tables, "four").generation > second.generation);
    }

    #[test]
    fn oauth_c23_a_lease_is_for_one_owner_until_it_ends() {
        let mut tables = Tables::default();
        let lease =
            |tables: &mut Tables, owner: &str, now| tables.lease(&key("a"), owner.into(), 10, now);
        assert!(matches!(lease(&mut tables, "x", 0), LeaseOutcome::Absent));
        let row = put(&mut tables, "one");
        assert!(matches!(lease(&mut tables, "x", 100), LeaseOutcome::Taken(_)));
        assert!(matches!(lease(&mut tables, "x", 101), LeaseOutcome::Taken(_)));
        assert!(matches!(lease(&mut tables, "y", 105), LeaseOutcome::Held { wait_ms: 6 }));
        assert!(matches!(lease(&mut tables, "y", 111), LeaseOutcome::Taken(_)));
        tables.note_failure(&key("a"), row.generation, GrantFacts::default());
        assert!(matches!(lease(&mut tables, "x", 112), LeaseOutcome::Taken(_)));
    }

    #[test]
    fn oauth_c13_of_two_registrations_at_once_the_first_wins() {
        let mut tables = Tables::default();
        let mut put = |value: &str, replaces: Option<&str>| {
            let replaces = replaces.map(Secret::new);
            let stored = tables.put_client(client_key(), Secret::new(value), replaces.as_ref());
            stored.expose().to_owned()
        };
        assert_eq!(put("one", None), "one");
        assert_eq!(put("two", None), "one");
        assert_eq!(put("two", Some("one")), "two");
        assert_eq!(put("three", Some("one")), "two");
    }

    #[test]
    fn oauth_c16_an_attempt_is_taken_once_and_in_time() {
        let mut tables = Tables::default();
        for (hash, expires_at) in [("a", 10), ("b", 20)] {
            let attempt = AttemptRow { key: key("a"), value: Secret::new("v"), expires_at };
            tables.put_attempt(hash.to_owned(), attempt, 0);
        }
        assert_eq!(tables.open_attempts("w", 10), ["b"]);
        assert!(tables.open_attempts("other", 0).is_empty());
        assert!(tables.take_attempt("b", 19).is_some());
        assert!(tables.open_attempts("w", 10).is_empty());
        assert!(tables.take_attempt("b", 19).is_none());
        assert!(tables.take_attempt("a", 10).is_none());
        for (hash, server) in [("c", "a"), ("d", "b")] {
            let attempt = AttemptRow { key: key(server), value: Secret::new("v"), expires_at: 10 };
            tables.put_attempt(hash.to_owned(), attempt, 0);
        }
        tables.drop_attempts(&key("a"));
        assert_eq!(tables.open_attempts("w", 0), ["d"]);
    }

    #[test]
    fn all_rows_are_read_back() {
        let mut tables = Tables::default();
        put(&mut tables, "s3cret");
        tables.lease(&key("a"), "x".to_owned(), 10, 5);
        tables.put_client(client_key(), Secret::new("c"), None);
        let attempt = AttemptRow { key: key("a"), value: Secret::new("v"), expires_at: 9 };
        tables.put_attempt("h".to_owned(), attempt, 0);
        let text = tables.to_json();
        let read = Tables::from_json(text.expose().as_bytes()).unwrap();
        assert_eq!(read.to_json().expose(), text.expose());
        assert!(!format!("{read:?}").contains("s3cret"));
        assert!(Tables::from_json(b"{").is_err());
    }
}
