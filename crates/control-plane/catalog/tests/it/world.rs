//! A workspace to plan and run in: objects as JSON, variables and secrets by name.

use std::collections::{BTreeMap, BTreeSet};

use narthex_catalog::{
    Agent, Capability, Catalog, EnvValue, Fault, FaultCode, Faults, OpenError, Opening, Plan,
    ResolvedRun, RunInputs, ServerEntry, Surroundings, Warning,
};
use narthex_model::{
    AgentName, Alias, CapabilityName, RunScope, Secret, SecretName, ServerDefinition, Target,
};
use serde_json::{Map, Value, json};

pub(crate) const RUN_ID: &str = "run_0a1b2c3d4e5f";
pub(crate) const SESSION_ID: &str = "ses_0a1b2c3d4e5f";

/// A workspace with one agent, and one run of it.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) catalog: Catalog,
    pub(crate) agent: Agent,
    /// Variables that may be used, with their values where they have one.
    pub(crate) env: BTreeMap<String, Option<String>>,
    pub(crate) secrets: BTreeMap<SecretName, String>,
    pub(crate) params: Map<String, Value>,
    pub(crate) scope: RunScope,
    /// Keys of the scope that children of the agent take.
    pub(crate) of_children: BTreeSet<String>,
    pub(crate) project_dir: Option<String>,
}

/// The JSON text of a value.
pub(crate) fn text(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

pub(crate) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        other => panic!("no object: {other}"),
    }
}

/// The object of a good text.
#[track_caller]
pub(crate) fn server(value: &Value) -> ServerEntry {
    ServerEntry::parse(&text(value), None).unwrap_or_else(|faults| panic!("{faults}")).value
}

#[track_caller]
pub(crate) fn agent(value: &Value) -> Agent {
    let name = AgentName::new("reader").unwrap();
    Agent::parse(&text(value), Some(&name)).unwrap_or_else(|faults| panic!("{faults}")).value
}

#[track_caller]
pub(crate) fn capability(name: &str, value: &Value) -> Capability {
    let name = CapabilityName::new(name).unwrap();
    let parsed = Capability::parse(&text(value), Some(&name));
    parsed.unwrap_or_else(|faults| panic!("{faults}")).value
}

impl World {
    /// These servers, and an agent without any.
    #[track_caller]
    pub(crate) fn new(servers: &[Value]) -> Self {
        let mut catalog = Catalog::default();
        for entry in servers.iter().map(server) {
            catalog.servers.insert(entry.id.clone(), entry);
        }
        Self {
            catalog,
            agent: agent(&json!({})),
            env: BTreeMap::new(),
            secrets: BTreeMap::new(),
            params: Map::new(),
            scope: RunScope::default(),
            of_children: BTreeSet::new(),
            project_dir: None,
        }
    }

    /// One server `s` over HTTP, used by the agent under the alias `a`.
    #[track_caller]
    pub(crate) fn one(schema: Value, default_config: Value, config: Value) -> Self {
        let entry = json!({ "id": "s", "url": "https://s.test/mcp", "config_schema": schema,
                            "default_config": default_config });
        Self::new(&[entry]).using(json!({ "a": { "ref": "s", "config": config } }))
    }

    /// The agent attaches these itself.
    #[track_caller]
    pub(crate) fn using(mut self, servers: Value) -> Self {
        let capabilities = self.agent.capabilities.clone();
        self.agent = agent(&json!({ "mcpServers": servers }));
        self.agent.capabilities = capabilities;
        self
    }

    /// The agent includes one more capability, with these attachments.
    #[track_caller]
    pub(crate) fn including(mut self, name: &str, servers: Value) -> Self {
        let capability = capability(name, &json!({ "mcpServers": servers }));
        self.agent.capabilities.push(capability.name.clone());
        self.catalog.capabilities.insert(capability.name.clone(), capability);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.env.insert(name.to_owned(), Some(value.to_owned()));
        self
    }

    pub(crate) fn unset(mut self, name: &str) -> Self {
        self.env.insert(name.to_owned(), None);
        self
    }

    pub(crate) fn secret(mut self, name: &str, value: &str) -> Self {
        self.secrets.insert(SecretName::new(name).unwrap(), value.to_owned());
        self
    }

    pub(crate) fn scope(mut self, scope: Value) -> Self {
        self.scope = RunScope::new(object(scope));
        self
    }

    /// Children of the agent take this key of the scope.
    pub(crate) fn of_children(mut self, key: &str) -> Self {
        self.of_children.insert(key.to_owned());
        self
    }

    pub(crate) fn params(mut self, params: Value) -> Self {
        self.params = object(params);
        self
    }

    /// Calls a function with the plan.
    pub(crate) fn plan<T>(&self, look: impl FnOnce(&Plan<'_>) -> T) -> T {
        self.with_plan(|plan| look(&plan))
    }

    /// A run whose request gives all of its scope.
    pub(crate) fn given(&self) -> Result<ResolvedRun, Faults> {
        self.with_plan(|plan| {
            let given = self.scope.values().iter();
            plan.with_given_scope(given, self.of_children.clone()).resolve(self.inputs())
        })
    }

    fn with_plan<T>(&self, look: impl FnOnce(Plan<'_>) -> T) -> T {
        let env = |name: &str| match self.env.get(name) {
            None => EnvValue::NotAllowed,
            Some(None) => EnvValue::Unset,
            Some(Some(value)) => EnvValue::Set(Secret::new(value.as_str())),
        };
        let is_secret_set = |name: &SecretName| self.secrets.contains_key(name);
        let workspace = narthex_model::WorkspaceId::default();
        let surroundings = Surroundings {
            workspace: &workspace,
            env: &env,
            allowing: &|names| format!("allow {}", names.join(",")),
            is_secret_set: &is_secret_set,
        };
        look(Plan::new(&self.catalog, &self.agent, surroundings))
    }

    fn inputs(&self) -> RunInputs<'_> {
        RunInputs {
            run_id: RUN_ID,
            session_id: SESSION_ID,
            project_dir: self.project_dir.as_deref(),
            params: &self.params,
            scope: &self.scope,
        }
    }

    pub(crate) fn resolve(&self) -> Result<ResolvedRun, Faults> {
        self.plan(|plan| plan.resolve(self.inputs()))
    }

    #[track_caller]
    pub(crate) fn run(&self) -> ResolvedRun {
        self.resolve().unwrap_or_else(|faults| panic!("{faults}"))
    }

    /// The faults of a run.
    #[track_caller]
    pub(crate) fn faults(&self) -> Vec<Fault> {
        self.resolve().expect_err("the run is refused").iter().cloned().collect()
    }

    #[track_caller]
    pub(crate) fn codes(&self) -> Vec<FaultCode> {
        self.faults().iter().map(|fault| fault.code).collect()
    }

    /// The codes of the agent's faults before any run.
    #[track_caller]
    pub(crate) fn plan_codes(&self) -> Vec<FaultCode> {
        match self.plan(|plan| plan.check()) {
            Ok(_) => Vec::new(),
            Err(faults) => faults.iter().map(|fault| fault.code).collect(),
        }
    }

    pub(crate) fn warnings(&self) -> Vec<Warning> {
        self.plan(|plan| plan.check()).unwrap_or_default()
    }

    /// The definition of a server, with all values.
    #[track_caller]
    pub(crate) fn definition(&self, alias: &str) -> Result<ServerDefinition, OpenError> {
        let run = self.run();
        let alias = Alias::new(alias).unwrap();
        self.open(|opening| run.servers[&alias].definition(opening))
    }

    pub(crate) fn open<T>(&self, open: impl FnOnce(Opening<'_>) -> T) -> T {
        let secret =
            |name: &SecretName| self.secrets.get(name).map(|value| Secret::new(value.as_str()));
        let env = |name: &str| self.env.get(name)?.as_deref().map(Secret::new);
        let runner = |key: &str| {
            (key == "orchestrator_mcp_url").then(|| "http://127.0.0.1:54321/mcp".to_owned())
        };
        open(Opening { secret: &secret, env: &env, runner: &runner })
    }

    /// The headers or variables of a server.
    #[track_caller]
    pub(crate) fn carried(&self, alias: &str) -> BTreeMap<String, String> {
        let definition = self.definition(alias).unwrap_or_else(|error| panic!("{error}"));
        let values = match definition.target {
            Target::Http(target) => target.headers,
            Target::Stdio(target) => target.env,
        };
        values.into_iter().map(|(name, value)| (name, value.expose().to_owned())).collect()
    }

    /// The run as a runner gets it.
    #[track_caller]
    pub(crate) fn payload(&self) -> Value {
        let run = self.run();
        self.open(|opening| run.payload(opening)).unwrap_or_else(|error| panic!("{error}"))
    }
}

/// The codes of a text that is refused, without repetition.
#[track_caller]
#[must_use = "a refusal has a reason, which the test compares"]
pub(crate) fn refused<T: std::fmt::Debug>(read: Result<T, Faults>) -> BTreeSet<FaultCode> {
    let faults = read.expect_err("the text is refused");
    for fault in faults.iter() {
        assert!(!fault.remedy.is_empty() && !fault.message.is_empty(), "{fault:?}");
    }
    faults.iter().map(|fault| fault.code).collect()
}

/// The faults of a text that is refused, each as `PATH: CODE`.
#[track_caller]
#[must_use = "a refusal has a reason, which the test compares"]
pub(crate) fn reasons<T: std::fmt::Debug>(read: Result<T, Faults>) -> Vec<String> {
    let faults = read.expect_err("the text is refused");
    faults.iter().map(|fault| format!("{}: {:?}", fault.path, fault.code)).collect()
}
