//! The limits of a workspace: traffic (O100), the servers of one of its runs (X-E115), and the
//! children of its sessions.

use std::{
    num::{NonZeroU32, NonZeroU64},
    time::Duration,
};

use serde::Serialize;

use crate::{
    Alias, LimitProblem, ServerDefinition, Target, TrafficLimits,
    json::{Node, Place, TextProblem, field},
    traffic,
};

/// All limits of a workspace. What is `None` is not limited.
///
/// Serializes to its one normal form, which [`WorkspaceLimits::parse`] reads as the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct WorkspaceLimits {
    /// The limits of calls.
    #[serde(flatten)]
    pub traffic: TrafficLimits,
    /// The limits of one run's servers.
    #[serde(flatten)]
    pub run: RunBudget,
    /// The limits of agents that start others.
    #[serde(flatten)]
    pub children: ChildLimits,
}

/// The limits of agents that start others, as far as the workspace sets them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ChildLimits {
    /// The most active children of a session at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub children_per_session: Option<NonZeroU32>,
    /// The most sessions above one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub child_depth: Option<NonZeroU32>,
    /// The most children that all sessions of the workspace may begin on a day, in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub children_per_day: Option<NonZeroU32>,
    /// Minutes of silence after which a worker ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub child_silence_minutes: Option<NonZeroU32>,
}

impl ChildLimits {
    /// The default most children of a session.
    const PER_SESSION: u32 = 32;
    /// The default most sessions above one.
    const DEPTH: u32 = 8;
    /// The default most children of a workspace on a day: a bound for agents that go astray.
    const PER_DAY: u32 = 1000;
    /// The default minutes of silence.
    const SILENCE_MINUTES: u32 = 30;

    /// The most active children of a session at a time.
    #[must_use]
    pub fn per_session(&self) -> u32 {
        self.children_per_session.map_or(Self::PER_SESSION, NonZeroU32::get)
    }

    /// The most children that all sessions of the workspace begin on a day, in UTC.
    #[must_use]
    pub fn per_day(&self) -> u32 {
        self.children_per_day.map_or(Self::PER_DAY, NonZeroU32::get)
    }

    /// The most sessions above one.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.child_depth.map_or(Self::DEPTH, NonZeroU32::get)
    }

    /// Time of silence after which a worker ends.
    #[must_use]
    pub fn silence(&self) -> Duration {
        let minutes = self.child_silence_minutes.map_or(Self::SILENCE_MINUTES, NonZeroU32::get);
        Duration::from_secs(60 * u64::from(minutes))
    }
}

/// The limits of all servers of one run together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct RunBudget {
    /// The most servers of a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub servers_per_run: Option<NonZeroU32>,
    /// The most memory that the programs of a run are allowed together, in MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_mb_per_run: Option<NonZeroU64>,
}

/// All excesses of a run over the budget of its workspace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct OverBudget(pub Vec<BudgetProblem>);

/// One thing of which a run has too much.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BudgetProblem {
    /// The run has too many servers.
    #[error(
        "the run would have {wanted} servers, and the limit is {most} (`servers_per_run` of the \
         workspace); attach fewer, or ask an admin to raise the limit"
    )]
    Servers {
        /// Number of servers that the run would have.
        wanted: usize,
        /// Number of servers allowed.
        most: NonZeroU32,
    },
    /// The run's programs are allowed too much memory.
    #[error(
        "the programs of the run can use {wanted} MiB of memory, and the limit is {most} MiB \
         (`memory_mb_per_run` of the workspace); lower their `confinement.limits.memoryMb`, attach \
         fewer, or ask an admin to raise the limit"
    )]
    Memory {
        /// The memory that the programs are allowed together, in MiB.
        wanted: u64,
        /// The most memory allowed, in MiB.
        most: NonZeroU64,
    },
    /// The run has programs that are allowed any amount of memory.
    #[error(
        "the memory of {} is not limited, but the workspace limits the memory of runs \
         (`memory_mb_per_run`); give each a `confinement` with `limits.memoryMb`",
        listed(.0)
    )]
    Unlimited(Vec<Alias>),
}

/// The keys beside those of traffic, each with the largest number that it takes.
const KEYS: [(&str, u64); 6] = [
    ("servers_per_run", 1_000_000),
    ("memory_mb_per_run", 1_000_000_000),
    ("children_per_session", 1_000),
    ("child_depth", 32),
    ("children_per_day", 1_000_000),
    ("child_silence_minutes", 1_440),
];

impl WorkspaceLimits {
    /// Reads a whole text that consists of limits alone.
    ///
    /// # Errors
    /// When it is no JSON. Faults of the limits are reported to `tell`, each with its place.
    pub fn parse(
        text: &[u8],
        tell: &mut dyn FnMut(&Place, LimitProblem),
    ) -> Result<Self, TextProblem> {
        let node = Node::parse(text)?;
        let root = Place::default();
        node.keys_given_twice().iter().for_each(|place| tell(place, LimitProblem::Twice));
        let Node::Object(fields) = &node else {
            return Ok(Self {
                traffic: TrafficLimits::read(&node, &root, tell),
                ..Self::default()
            });
        };
        let traffic = TrafficLimits::read_beside(fields, &root, &KEYS, tell);
        let [servers, memory, per_session, depth, per_day, silence] =
            KEYS.map(|key| traffic::amount_of(field(fields, key.0)?, &root, key, tell));
        let small =
            |most: Option<NonZeroU64>| most.and_then(|most| NonZeroU32::try_from(most).ok());
        let run = RunBudget { servers_per_run: small(servers), memory_mb_per_run: memory };
        let children = ChildLimits {
            children_per_session: small(per_session),
            child_depth: small(depth),
            children_per_day: small(per_day),
            child_silence_minutes: small(silence),
        };
        Ok(Self { traffic, run, children })
    }
}

impl RunBudget {
    /// Holds what a run would start against the budget.
    ///
    /// # Errors
    /// When it does not fit: everything that is too much.
    pub fn check<'a>(
        &self,
        servers: impl Iterator<Item = &'a ServerDefinition> + Clone,
    ) -> Result<(), OverBudget> {
        let problems = self.problems(servers);
        if problems.is_empty() { Ok(()) } else { Err(OverBudget(problems)) }
    }

    fn problems<'a>(
        &self,
        servers: impl Iterator<Item = &'a ServerDefinition> + Clone,
    ) -> Vec<BudgetProblem> {
        let mut found = Vec::new();
        let wanted = servers.clone().count();
        if let Some(most) = self.servers_per_run.filter(|most| wanted > most.get() as usize) {
            found.push(BudgetProblem::Servers { wanted, most });
        }
        let Some(most) = self.memory_mb_per_run else { return found };
        let mut total = 0_u64;
        let mut unlimited = Vec::new();
        for server in servers {
            let Target::Stdio(program) = &server.target else { continue };
            let confinement = program.confinement.as_deref();
            match confinement.and_then(|confinement| confinement.limits.memory_mb) {
                Some(memory) => total = total.saturating_add(memory),
                None => unlimited.push(server.alias.clone()),
            }
        }
        if total > most.get() {
            found.push(BudgetProblem::Memory { wanted: total, most });
        }
        if !unlimited.is_empty() {
            found.push(BudgetProblem::Unlimited(unlimited));
        }
        found
    }
}

fn listed(aliases: &[Alias]) -> String {
    aliases.iter().map(|alias| format!("`{alias}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{Confinement, HttpTarget, ProcessLimits, ServerAuth, StdioTarget};

    fn read(value: &Value) -> (WorkspaceLimits, Vec<String>) {
        let mut told = Vec::new();
        let text = value.to_string();
        let limits = WorkspaceLimits::parse(text.as_bytes(), &mut |place, problem| {
            told.push(format!("{place}: {}", problem.remedy()));
        });
        (limits.unwrap(), told)
    }

    fn program(alias: &str, memory_mb: Option<u64>) -> ServerDefinition {
        let limits = ProcessLimits { memory_mb, ..ProcessLimits::default() };
        let confinement = Confinement { limits, ..Confinement::default() };
        let target = StdioTarget {
            command: "x".to_owned(),
            args: Vec::new(),
            env: std::collections::BTreeMap::new(),
            working_dir: None,
            confinement: Some(Box::new(confinement)),
        };
        ServerDefinition::new(Alias::new(alias).unwrap(), Target::Stdio(target))
    }

    fn remote(alias: &str) -> ServerDefinition {
        let target = HttpTarget {
            url: "https://x.test".to_owned(),
            is_sse: false,
            headers: std::collections::BTreeMap::new(),
            auth: ServerAuth::None,
        };
        ServerDefinition::new(Alias::new(alias).unwrap(), Target::Http(target))
    }

    /// X-E115, D9: limits of runs are beside those of traffic, in one normal form, and all faults
    /// of either are reported.
    #[test]
    fn x_e115_limits_of_runs_and_traffic_have_one_normal_form() {
        for value in [
            json!({}),
            json!({ "servers_per_run": 3 }),
            json!({ "calls_per_day": 5, "servers_per_run": 1, "memory_mb_per_run": 4096 }),
            json!({ "servers_per_run": 3, "children_per_session": 2, "child_depth": 1,
                    "children_per_day": 9, "child_silence_minutes": 5 }),
        ] {
            let (limits, told) = read(&value);
            assert_eq!((json!(limits), told), (value, Vec::new()));
        }
        let null = json!({ "servers_per_run": null, "memory_mb_per_run": null });
        assert_eq!(read(&null), (WorkspaceLimits::default(), Vec::new()));
        let wrong = json!({ "servers_per_run": 0, "memory_mb_per_run": 1_000_000_001,
            "calls_per_day": -1, "server_per_run": 1 });
        let (limits, told) = read(&wrong);
        assert_eq!(limits, WorkspaceLimits::default());
        let places: Vec<_> = told.iter().map(|told| told.split(": ").next().unwrap()).collect();
        let expected = ["server_per_run", "calls_per_day", "servers_per_run", "memory_mb_per_run"];
        assert_eq!(places, expected);
        assert!(told[0].ends_with("did you mean `servers_per_run`?"), "{}", told[0]);
        assert_eq!(read(&json!([])).1.len(), 1);
        let mut told = 0;
        let twice = br#"{"servers_per_run": 1, "servers_per_run": 2}"#;
        WorkspaceLimits::parse(twice, &mut |_, _| told += 1).unwrap();
        assert_eq!(told, 1);
    }

    /// X-E86: without a setting children are bounded all the same, also on a day.
    #[test]
    fn x_e86_children_have_default_limits() {
        let none = ChildLimits::default();
        assert_eq!((none.per_session(), none.depth(), none.per_day()), (32, 8, 1000));
        let said = read(&json!({ "children_per_day": 3 })).0.children;
        assert_eq!(said.per_day(), 3);
    }

    /// X-E115: the servers of a run are compared with its budget, and each excess is reported; a
    /// run that just fits passes.
    #[test]
    fn x_e115_a_budget_is_for_all_servers_of_a_run() {
        let budget = |value: Value| read(&value).0.run;
        let servers = [program("a", Some(1000)), program("b", Some(24)), remote("c")];
        let problems = |value: Value| budget(value).problems(servers.iter());
        assert_eq!(problems(json!({})), []);
        assert_eq!(problems(json!({ "servers_per_run": 3, "memory_mb_per_run": 1024 })), []);
        let [few, little] = [NonZeroU32::new(2).unwrap(), NonZeroU32::new(1023).unwrap()];
        assert_eq!(
            problems(json!({ "servers_per_run": 2, "memory_mb_per_run": 1023 })),
            [
                BudgetProblem::Servers { wanted: 3, most: few },
                BudgetProblem::Memory { wanted: 1024, most: little.into() },
            ]
        );
        let endless = [program("a", None), program("b", Some(u64::MAX)), program("c", Some(1))];
        let found = budget(json!({ "memory_mb_per_run": 8 })).problems(endless.iter());
        let most = NonZeroU64::new(8).unwrap();
        let unlimited = BudgetProblem::Unlimited(vec![Alias::new("a").unwrap()]);
        assert_eq!(found, [BudgetProblem::Memory { wanted: u64::MAX, most }, unlimited.clone()]);
        let all = budget(json!({ "memory_mb_per_run": 8 })).check(endless.iter()).unwrap_err();
        assert_eq!(all.to_string(), format!("{}; {unlimited}", found[0]));
        assert!(unlimited.to_string().contains("the memory of `a` is not limited"), "{unlimited}");
    }
}
