//! Grants to create runs of agents. A lookup reads all grants: no call of a server needs one.

use std::{collections::BTreeSet, sync::Arc, time::SystemTime};

use narthex_model::{AgentName, GrantId, GrantOf, SpawnGrant};

use super::{Actors, Grants, LiveGrant, OPEN};

/// The run that a parent run wants to create.
#[derive(Debug, Clone, Copy)]
pub struct Spawning<'a> {
    /// The agent of the child run.
    pub child: &'a AgentName,
    /// The model of the child run, if the request names one.
    pub model: Option<&'a str>,
    /// The runtime of the child run, if the request names one.
    pub runtime: Option<&'a str>,
}

/// A grant by which one run may be created. A grant for a single use is reserved until this is
/// dropped, or for good once it is [used](Self::used).
#[derive(Debug)]
pub struct SpawnPermit {
    live: Arc<LiveGrant>,
    is_single: bool,
}

/// The reason why no grant allows the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpawnRefusal {
    /// No grant covers the agent.
    NotGranted,
    /// Grants cover the agent, but with other models or runtimes.
    OtherModels,
}

impl SpawnPermit {
    /// The grant to be used up, if it is for a single use.
    #[must_use]
    pub fn single(&self) -> Option<GrantId> {
        self.is_single.then(|| self.live.grant().id)
    }

    /// Reports that the run was created: a grant for a single use no longer counts.
    pub fn used(mut self) {
        self.is_single = false;
    }
}

impl Drop for SpawnPermit {
    fn drop(&mut self) {
        if self.is_single {
            self.live.put_back();
        }
    }
}

impl Grants {
    /// The agents whose runs the actors may create.
    #[must_use]
    pub fn spawnable(&self, actors: &Actors, now: SystemTime) -> BTreeSet<AgentName> {
        let found = self.spawn_grants(actors, now);
        found.iter().filter_map(|live| of_spawn(live)).map(|of| of.child_agent.clone()).collect()
    }

    /// Reserves a grant by which a run may be created: a lasting one if there is one, otherwise one
    /// for a single use.
    ///
    /// # Errors
    /// When no grant allows the run.
    pub fn take_spawn(
        &self,
        actors: &Actors,
        wanted: Spawning<'_>,
        now: SystemTime,
    ) -> Result<SpawnPermit, SpawnRefusal> {
        let mut found = self.spawn_grants(actors, now);
        found.retain(|live| of_spawn(live).is_some_and(|of| of.child_agent == *wanted.child));
        if found.is_empty() {
            return Err(SpawnRefusal::NotGranted);
        }
        found.retain(|live| of_spawn(live).is_some_and(|of| allows(of, &wanted)));
        if found.is_empty() {
            return Err(SpawnRefusal::OtherModels);
        }
        let is_single = |live: &Arc<LiveGrant>| live.grant.duration.is_single();
        if let Some(live) = found.iter().find(|live| !is_single(live)) {
            return Ok(SpawnPermit { live: live.clone(), is_single: false });
        }
        let taken = found.into_iter().find(|live| live.take());
        taken.map(|live| SpawnPermit { live, is_single: true }).ok_or(SpawnRefusal::NotGranted)
    }

    fn spawn_grants(&self, actors: &Actors, now: SystemTime) -> Vec<Arc<LiveGrant>> {
        let by_id = self.by_id.pin();
        let counts = |live: &&Arc<LiveGrant>| {
            let is_open = live.is(OPEN) && live.has_time(now);
            of_spawn(live).is_some() && is_open && live.is_theirs(actors) && live.is_for_run(actors)
        };
        by_id.values().filter(counts).cloned().collect()
    }
}

fn of_spawn(live: &LiveGrant) -> Option<&SpawnGrant> {
    match &live.grant.of {
        GrantOf::Spawn(of) => Some(of),
        GrantOf::ToolScope(_) => None,
    }
}

/// True if the grant allows this child. A grant that names models or runtimes requires one of them
/// in the request.
fn allows(of: &SpawnGrant, wanted: &Spawning<'_>) -> bool {
    let is_among = |allowed: &Option<Vec<String>>, asked: Option<&str>| {
        let Some(allowed) = allowed else { return true };
        asked.is_some_and(|asked| allowed.iter().any(|one| one == asked))
    };
    is_among(&of.allowed_models, wanted.model)
        && is_among(&of.allowed_runtime_types, wanted.runtime)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use narthex_model::{Grant, GrantDuration, GrantSubject, PrincipalId, RunId, SessionId};

    use super::*;

    const NOW: SystemTime = SystemTime::UNIX_EPOCH;

    fn name(text: &str) -> AgentName {
        AgentName::new(text).unwrap()
    }

    fn actors() -> Actors {
        Actors {
            user: Some(PrincipalId::local_admin()),
            agent: Some(name("lead")),
            turn: 0,
            session: Some(SessionId::new([1; 6])),
            run: Some(RunId::new([1; 6])),
            agent_type: None,
            is_child: false,
        }
    }

    fn grant(number: u8, duration: GrantDuration, models: Option<&[&str]>) -> Grant {
        let models = models.map(|models| models.iter().map(|&one| one.to_owned()).collect());
        let of = SpawnGrant {
            child_agent: name("reader"),
            allowed_runtime_types: None,
            allowed_models: models,
        };
        Grant {
            id: GrantId::new([number; 8]),
            subject: GrantSubject::Agent(name("lead")),
            of: GrantOf::Spawn(of),
            duration,
            expires_at: Some(NOW + Duration::from_secs(60)),
        }
    }

    fn wanted<'a>(child: &'a AgentName, model: Option<&'a str>) -> Spawning<'a> {
        Spawning { child, model, runtime: None }
    }

    /// X-E74: a grant for a single use is for one run at a time, comes back if none begins, and is
    /// gone once one has.
    #[test]
    fn x_e74_a_single_use_spawn_grant_starts_one_run() {
        let (grants, reader) = (Grants::default(), name("reader"));
        let take = |grants: &Grants| grants.take_spawn(&actors(), wanted(&reader, None), NOW);
        assert_eq!(take(&grants).unwrap_err(), SpawnRefusal::NotGranted);
        grants.add(grant(1, GrantDuration::Once, None));
        let permit = take(&grants).unwrap();
        assert_eq!(permit.single(), Some(GrantId::new([1; 8])));
        assert_eq!(take(&grants).unwrap_err(), SpawnRefusal::NotGranted);
        assert!(grants.spawnable(&actors(), NOW).is_empty());
        drop(permit);
        take(&grants).unwrap().used();
        assert_eq!(take(&grants).unwrap_err(), SpawnRefusal::NotGranted);
        // A persistent grant is not used up.
        grants.add(grant(2, GrantDuration::Persistent, None));
        for _ in 0..2 {
            let permit = take(&grants).unwrap();
            assert_eq!(permit.single(), None);
            permit.used();
        }
        assert_eq!(grants.spawnable(&actors(), NOW), BTreeSet::from([reader.clone()]));
    }

    /// X-E74, X-E84: it counts for its subject, its run or session, its time, and its models alone.
    #[test]
    fn x_e74_a_spawn_grant_counts_within_its_bounds() {
        let (grants, reader, other) = (Grants::default(), name("reader"), name("other"));
        grants.add(grant(1, GrantDuration::Run(RunId::new([1; 6])), Some(&["small"])));
        let take = |actors: &Actors, child, model, now| {
            let permit = grants.take_spawn(actors, wanted(child, model), now);
            permit.map(drop)
        };
        assert_eq!(take(&actors(), &reader, Some("small"), NOW), Ok(()));
        for model in [None, Some("large")] {
            let refused = take(&actors(), &reader, model, NOW);
            assert_eq!(refused, Err(SpawnRefusal::OtherModels));
        }
        let none = Err(SpawnRefusal::NotGranted);
        assert_eq!(take(&actors(), &other, Some("small"), NOW), none);
        let late = NOW + Duration::from_secs(60);
        assert_eq!(take(&actors(), &reader, Some("small"), late), none);
        let foreign = Actors { agent: Some(name("reader")), ..actors() };
        assert_eq!(take(&foreign, &reader, Some("small"), NOW), none);
        let later = Actors { run: Some(RunId::new([2; 6])), ..actors() };
        assert_eq!(take(&later, &reader, Some("small"), NOW), none);
        assert!(grants.remove(GrantId::new([1; 8])));
        assert_eq!(take(&actors(), &reader, Some("small"), NOW), none);
    }
}
