//! The grants for a single call that calls have used up, through tries and rounds. Each grant is
//! for one call. A call that no server has seen has used none (D25).

use std::{
    collections::{HashSet, VecDeque},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime},
};

use narthex_model::{ArgumentsDigest, GrantId};
use narthex_wire::Raw;
use sha2::{Digest, Sha256};

use crate::{Basis, Request, Verdict};

/// Most states known to be spent at a time. With more, no state pays for anything.
const SPENT_MAX: usize = 100_000;
/// Most grants that a run keeps from calls that no server has seen.
const UNUSED_MAX: usize = 64;

/// The unique id of the state of one round of a call.
pub type StateId = [u8; 12];

/// The used grants of earlier rounds of a call, as the sealed state carries them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Paid {
    /// The grants.
    pub grants: Vec<GrantId>,
    /// The arguments that the grants are for: see [`bound_arguments`].
    pub arguments: [u8; 32],
}

/// The grants for a single call that one call has used up, through all its tries.
#[derive(Debug, Default)]
pub struct Payment {
    /// All grants of the call.
    pub grants: Vec<GrantId>,
    /// The grants among them that no earlier round has used.
    fresh: Vec<GrantId>,
    /// The state that carried the other grants.
    state: Option<StateId>,
}

/// The states that have paid for a round, until they expire: each pays once.
#[derive(Debug)]
pub struct SpentStates {
    lifetime: Duration,
    spent: Mutex<Spent>,
}

#[derive(Debug, Default)]
struct Spent {
    ids: HashSet<StateId>,
    in_order: VecDeque<(SystemTime, StateId)>,
}

/// Used grants of calls that certainly no server has seen, for the run's next calls.
///
/// The store has them as used up. The next call that such a grant allows gets the grant. Lookups
/// take no lock while there is none.
#[derive(Debug, Default)]
pub struct Unused {
    is_any: AtomicBool,
    grants: Mutex<Vec<GrantId>>,
}

/// A fixed-size stand-in for the arguments of a call: their digest. Arguments without a digest get
/// the hash of their very bytes, as readers may read those in several ways.
#[must_use]
pub fn bound_arguments(request: &Request) -> [u8; 32] {
    let exactly = || match &request.origin {
        // A task has the arguments of the call that made it.
        Some(_) => [0; 32],
        None => {
            let sent = request.message.get("arguments");
            Sha256::digest(sent.map_or(&b"{}"[..], Raw::as_bytes)).into()
        }
    };
    request.arguments_digest().map_or_else(exactly, ArgumentsDigest::bytes)
}

impl Paid {
    /// Writes this in front of a server's state: a flag for the state, the number of grants, the
    /// grants, and the arguments.
    #[must_use]
    pub fn with_state(&self, state: Option<&[u8]>) -> Vec<u8> {
        let grants = self.grants.iter().take(usize::from(u8::MAX));
        let ids: Vec<u8> = grants.clone().flat_map(|id| id.bytes()).collect();
        let head = [u8::from(state.is_some()), u8::try_from(grants.count()).unwrap_or(u8::MAX)];
        [&head[..], &ids, &self.arguments, state.unwrap_or_default()].concat()
    }

    /// Reads this and the server's state; `None` if the bytes are no such text.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<(Self, Option<&[u8]>)> {
        let (&[has_state, count], mut rest) = bytes.split_first_chunk::<2>()?;
        let mut grants = Vec::new();
        for _ in 0..count {
            let (id, after) = rest.split_first_chunk()?;
            grants.push(GrantId::new(*id));
            rest = after;
        }
        let (&arguments, rest) = rest.split_first_chunk()?;
        Some((Self { grants, arguments }, (has_state == 1).then_some(rest)))
    }
}

impl Payment {
    /// Adds the grants that earlier rounds have used up. Each state counts only once.
    pub fn bring(
        &mut self,
        (state, grants): (StateId, Vec<GrantId>),
        spent: &SpentStates,
        now: SystemTime,
    ) {
        if self.state != Some(state) && spent.spend(state, now) {
            self.state = Some(state);
            self.grants.extend(grants);
        }
    }

    /// Adds the grants for a single call that the decision needs.
    pub fn uses(&mut self, basis: &Basis) {
        for id in basis.single() {
            if !self.grants.contains(&id) {
                self.grants.push(id);
                self.fresh.push(id);
            }
        }
    }

    /// Releases the grants of a call that no server has seen: the next call of the run may use
    /// them, and the state counts again.
    pub fn give_back(self, unused: &Unused, spent: &SpentStates) {
        unused.add(self.fresh);
        if let Some(state) = self.state {
            let mut spent = spent.lock();
            spent.ids.remove(&state);
            spent.in_order.retain(|(_, one)| *one != state);
        }
    }
}

impl SpentStates {
    /// An empty set, for states with this lifetime.
    #[must_use]
    pub fn new(lifetime: Duration) -> Self {
        // The states' own expiry may be counted in whole seconds.
        Self { lifetime: lifetime + Duration::from_secs(2), spent: Mutex::default() }
    }

    /// Spends a state; false if it was spent before or too many are.
    fn spend(&self, state: StateId, now: SystemTime) -> bool {
        let mut all = self.lock();
        while let Some((_, expired)) = all.in_order.pop_front_if(|(until, _)| *until < now) {
            all.ids.remove(&expired);
        }
        if all.in_order.len() >= SPENT_MAX || !all.ids.insert(state) {
            return false;
        }
        all.in_order.push_back((now + self.lifetime, state));
        true
    }

    fn lock(&self) -> MutexGuard<'_, Spent> {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Unused {
    /// Runs a decision with the grants of a call and the unused ones. The call takes over the
    /// unused grants that the decision needs.
    ///
    /// # Errors
    /// The errors of `decide`.
    pub fn lend<E>(
        &self,
        payment: &mut Payment,
        decide: impl FnOnce(&[GrantId]) -> Result<Verdict, E>,
    ) -> Result<Verdict, E> {
        if !self.is_any.load(Ordering::Acquire) {
            return decide(&payment.grants);
        }
        let mut all = self.lock();
        let verdict = decide(&[&payment.grants[..], &all].concat())?;
        let is_used = |id: &mut GrantId| verdict.basis().ids().any(|used| used == *id);
        let used: Vec<_> = all.extract_if(.., is_used).collect();
        self.is_any.store(!all.is_empty(), Ordering::Release);
        payment.grants.extend(&used);
        payment.fresh.extend(used);
        Ok(verdict)
    }

    fn add(&self, grants: Vec<GrantId>) {
        let mut all = self.lock();
        all.extend(grants);
        let over = all.len().saturating_sub(UNUSED_MAX);
        all.drain(..over);
        self.is_any.store(!all.is_empty(), Ordering::Release);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<GrantId>> {
        self.grants.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grants(numbers: &[u8]) -> Vec<GrantId> {
        numbers.iter().map(|number| GrantId::new([*number; 8])).collect()
    }

    /// S26: a state pays once, unless no server has seen the call that came with it; when it has
    /// expired, nothing is known of it.
    #[test]
    fn s26_a_request_state_provides_its_grants_once() {
        let (second, at) = (Duration::from_secs(1), SystemTime::UNIX_EPOCH);
        let (spent, unused) = (SpentStates::new(10 * second), Unused::default());
        let bring = |now| {
            let mut payment = Payment::default();
            payment.bring(([1; 12], grants(&[1])), &spent, now);
            payment
        };
        let mut first = bring(at);
        first.bring(([1; 12], grants(&[1])), &spent, at);
        assert_eq!(first.grants, grants(&[1]), "a second try of the same call brings no more");
        assert!(bring(at + 12 * second).grants.is_empty(), "its last moment");
        first.give_back(&unused, &spent);
        assert!(spent.lock().in_order.is_empty());
        assert!(!unused.is_any.load(Ordering::Acquire), "an earlier round has used it");
        assert_eq!(bring(at + second).grants, grants(&[1]));
        assert!(bring(at + 2 * second).grants.is_empty());
        assert_eq!(bring(at + 20 * second).grants, grants(&[1]), "its seal has expired by then");
        assert_eq!(spent.lock().in_order.len(), 1, "what has expired is forgotten");
    }

    /// D25: a run stores only the newest unused grants.
    #[test]
    fn d25_the_number_of_unused_grants_is_bounded() {
        let (spent, unused) = (SpentStates::new(Duration::ZERO), Unused::default());
        for number in 0..=100 {
            let fresh = grants(&[number]);
            Payment { fresh, ..Payment::default() }.give_back(&unused, &spent);
        }
        assert_eq!(unused.lock().len(), UNUSED_MAX);
        assert_eq!(unused.lock().last(), grants(&[100]).last());
    }

    /// The grants in a state are read back unchanged, and a text of any other form is not read.
    #[test]
    fn the_grants_in_a_state_survive_a_round_trip() {
        let paid = Paid { grants: grants(&[1, 2]), arguments: [7; 32] };
        for state in [None, Some(&b"\"s\""[..]), Some(b"")] {
            let written = paid.with_state(state);
            assert_eq!(Paid::read(&written), Some((paid.clone(), state)));
            assert!(Paid::read(&written[..40]).is_none());
        }
        assert!(Paid::read(b"").is_none());
    }
}
