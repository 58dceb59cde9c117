//! Tests of renewals by several daemons, at an authorization server that revokes what is used
//! twice.

use std::{collections::BTreeMap, sync::atomic::Ordering};

use narthex_model::Secret;
use narthex_oauth_client::store::{GrantFacts, GrantKey, GrantRow, LeaseOutcome, TokenStore};

use super::{Daemon, Place, docs, facts};

/// Length of a lease in milliseconds.
const LEASE_MS: u64 = 30_000;
/// Longest time for a request and the storing of its answer.
const REQUEST_MS: u64 = 10_000;
/// Renewals of each owner in a simulation.
const RENEWALS: usize = 3;

/// An authorization server with families of refresh tokens. A token that is used twice revokes its
/// family.
#[derive(Default)]
struct Server {
    /// The number of the last refresh token of each family.
    families: BTreeMap<u64, u64>,
    revoked: Vec<u64>,
}

/// An owner of leases, at its step.
struct Owner {
    name: &'static str,
    daemon: Daemon,
    step: Step,
    renewals: usize,
}

enum Step {
    Idle,
    /// The grant may be renewed up to a time.
    Leased {
        row: GrantRow,
        until_ms: u64,
    },
    /// The answer has come, and is not stored.
    Answered {
        generation: u64,
        token: String,
        until_ms: u64,
    },
}

/// The order of a simulation: numbers from a seed.
struct Order(u64);

impl Order {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

impl Server {
    /// The first refresh token after a new consent.
    fn consent(&mut self) -> String {
        let family = u64::try_from(self.families.len()).unwrap();
        self.families.insert(family, 0);
        format!("{family}:0")
    }

    /// The refresh token that replaces another.
    fn renew(&mut self, token: &str) -> String {
        let (family, number) = token.split_once(':').unwrap();
        let (family, number): (u64, u64) = (family.parse().unwrap(), number.parse().unwrap());
        let last = self.families.get_mut(&family).unwrap();
        if *last != number {
            self.revoked.push(family);
        }
        *last += 1;
        format!("{family}:{last}")
    }
}

impl Owner {
    fn new(name: &'static str, daemon: Daemon) -> Self {
        Self { name, daemon, step: Step::Idle, renewals: 0 }
    }

    /// True if the answer must be stored now: a request has a deadline, which is before the end of
    /// its lease.
    fn is_urgent(&self, now_ms: u64) -> bool {
        matches!(&self.step, Step::Answered { until_ms, .. } if now_ms + REQUEST_MS >= *until_ms)
    }

    /// Does one step. Without `is_leasing`, it takes no lease.
    async fn go(&mut self, key: &GrantKey, server: &mut Server, now_ms: u64, is_leasing: bool) {
        let tokens = &self.daemon.tokens;
        let until_ms = now_ms + LEASE_MS;
        self.step = match std::mem::replace(&mut self.step, Step::Idle) {
            Step::Idle if is_leasing => {
                match tokens.lease(key.clone(), self.name.to_owned(), LEASE_MS).await.unwrap() {
                    LeaseOutcome::Taken(row) => Step::Leased { row, until_ms },
                    LeaseOutcome::Held { wait_ms } => {
                        assert!(wait_ms > 0);
                        Step::Idle
                    }
                    LeaseOutcome::Absent => panic!("the grant is gone"),
                }
            }
            Step::Idle => {
                let row = tokens.grant(key.clone()).await.unwrap().unwrap();
                Step::Leased { row, until_ms }
            }
            // Too late for a request: another may have the lease before it has its answer.
            Step::Leased { until_ms, .. } if now_ms + 2 * REQUEST_MS >= until_ms => Step::Idle,
            Step::Leased { row, until_ms } => {
                let token = server.renew(row.value.expose());
                Step::Answered { generation: row.generation, token, until_ms }
            }
            Step::Answered { generation, token, .. } => {
                let value = Secret::new(token);
                let stored = tokens.renew_grant(key.clone(), generation, value, facts()).await;
                // Without a row, another consent has come: its grant counts.
                self.renewals += usize::from(stored.unwrap().is_some());
                Step::Idle
            }
        };
    }
}

/// Renews one grant by two owners in the order of a seed. Returns the server.
async fn simulate(place: &Place, owners: &mut [Owner; 2], seed: u64, is_leasing: bool) -> Server {
    let key = GrantKey { server: format!("s{seed}"), ..docs() };
    let (mut server, mut order) = (Server::default(), Order(seed));
    let put = async |owner: &Owner, token: String| {
        owner.daemon.put(&key, &token).await;
    };
    put(&owners[0], server.consent()).await;
    for owner in owners.iter_mut() {
        (owner.step, owner.renewals) = (Step::Idle, 0);
    }
    for _ in 0..2000 {
        if owners.iter().all(|owner| owner.renewals >= RENEWALS) {
            break;
        }
        let now_ms = place.time.load(Ordering::Acquire);
        let urgent = owners.iter().position(|owner| owner.is_urgent(now_ms));
        if urgent.is_none() && order.below(40) == 0 {
            // A human signs in again, while a renewal may be under way.
            put(&owners[1], server.consent()).await;
            continue;
        }
        let next = usize::try_from(order.below(2)).unwrap();
        let next = urgent.unwrap_or(next);
        owners[next].go(&key, &mut server, now_ms, is_leasing).await;
        place.pass(order.below(5));
    }
    assert!(!is_leasing || owners.iter().all(|owner| owner.renewals >= RENEWALS), "seed {seed}");
    server
}

async fn owners(place: &Place) -> [Owner; 2] {
    [Owner::new("a", place.daemon().await), Owner::new("b", place.daemon().await)]
}

/// Q10, C23: in 200 orders of two daemons, no refresh token is used twice, and the stored one is
/// the last of its family.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn q10_two_daemons_use_no_refresh_token_twice() {
    for place in Place::both() {
        let mut owners = owners(&place).await;
        for seed in 0..200 {
            let server = simulate(&place, &mut owners, seed, true).await;
            assert!(server.revoked.is_empty(), "seed {seed}: families {:?}", server.revoked);
            let key = GrantKey { server: format!("s{seed}"), ..docs() };
            let stored = owners[0].daemon.value(&key).await.unwrap();
            let (family, last) = server.families.last_key_value().unwrap();
            let is_under_way =
                owners.iter().any(|owner| matches!(owner.step, Step::Answered { .. }));
            assert!(is_under_way || stored == format!("{family}:{last}"), "seed {seed}: {stored}");
        }
    }
}

/// Q10: the server of these tests revokes the families of daemons that take no leases.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn q10_without_leases_families_are_revoked() {
    let place = Place::in_a_file();
    let mut owners = owners(&place).await;
    let mut revoked = 0;
    for seed in 0..20 {
        revoked += simulate(&place, &mut owners, seed, false).await.revoked.len();
    }
    assert!(revoked > 0);
}

/// C23: a daemon that dies with a lease, whatever its step was, leaves the old grant or the new
/// one. Another daemon renews it when the lease has ended, and not before.
#[tokio::test]
async fn c23_a_dead_daemon_holds_a_lease_for_its_time_alone() {
    for place in Place::both() {
        for step in ["lease", "request", "store"] {
            let key = GrantKey { server: step.to_owned(), ..docs() };
            let mut server = Server::default();
            let dead = place.daemon().await;
            dead.put(&key, &server.consent()).await;
            let row = dead.taken(&key, "dead").await;
            let token = (step != "lease").then(|| server.renew(row.value.expose()));
            if let Some(token) = token.filter(|_| step == "store") {
                let (key, token) = (key.clone(), Secret::new(token));
                let renewed = dead.tokens.renew_grant(key, row.generation, token, facts());
                renewed.await.unwrap().unwrap();
            }
            dead.store.close().await;
            let other = place.daemon().await;
            let is_stored = step == "store";
            let value = other.value(&key).await.unwrap();
            assert_eq!(value, if is_stored { "0:1" } else { "0:0" }, "{step}");
            place.pass(29);
            let early = other.lease(&key, "other").await;
            assert_eq!(matches!(early, LeaseOutcome::Taken(_)), is_stored, "{step}: {early:?}");
            place.pass(1);
            let taken = other.taken(&key, "other").await;
            assert_eq!(taken.value.expose(), value, "{step}");
            other.store.close().await;
        }
    }
}

/// C23: a failed renewal keeps the grant, ends the lease, and is shown with its reason. A late one
/// ends no lease of another daemon.
#[tokio::test]
async fn c23_a_failed_renewal_keeps_the_grant_and_ends_its_lease() {
    for place in Place::both() {
        let (one, other) = (place.daemon().await, place.daemon().await);
        let row = one.put(&docs(), "tokens").await;
        let failure = Some("the token endpoint cannot be reached".to_owned());
        let failed = GrantFacts { failed_at: Some(7), failure, ..facts() };
        let note = async |daemon: &Daemon| {
            let noted = daemon.tokens.note_failure(docs(), row.generation, failed.clone()).await;
            noted.unwrap();
        };
        one.taken(&docs(), "one").await;
        assert!(matches!(other.lease(&docs(), "other").await, LeaseOutcome::Held { .. }));
        note(&one).await;
        assert_eq!(other.taken(&docs(), "other").await.facts, failed);
        place.pass(30);
        one.taken(&docs(), "one").await;
        note(&other).await;
        assert!(matches!(other.lease(&docs(), "third").await, LeaseOutcome::Held { .. }));
        assert_eq!(other.value(&docs()).await.as_deref(), Some("tokens"));
        let absent = GrantKey { server: "none".to_owned(), ..docs() };
        assert!(matches!(one.lease(&absent, "one").await, LeaseOutcome::Absent));
    }
}
