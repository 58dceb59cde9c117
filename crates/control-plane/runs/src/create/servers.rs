//! From the parts of a run to its mounts.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use narthex_catalog::{
    BUILT_IN_URL, EnvValue, Fault, Isolation, OnFlagged, OpenError, Opening, Plan, ResolvedRun,
    ResolvedServer, RunInputs, Surroundings, Variables,
};
use narthex_control::{AgentParts, secret_key, server_key};
use narthex_model::{
    AgentEnv, Alias, CallErrorKind, EnvName, PrincipalId, RunId, RunScope, Secret, SecretName,
    SecretReference, SecretVersion, ServerDefinition, ServerFailure, ServerId, SessionId,
    SharedGrant, Target, WorkspaceId,
};
use narthex_policy::RunPolicy;
use narthex_registry::{MountFault, MountIdentity, Mountable, PinnedServer, Sharing, Snapshot};
use narthex_vault::{Vault, VaultError};
use serde::Serialize;

use crate::{
    DirectServers, RunError, RunFault, RunWarning, create::personal_sign_in::withheld,
    frozen::Inputs,
};

/// The servers to mount, with warnings for people.
#[derive(Debug, Default)]
pub(crate) struct RunServers {
    pub(crate) servers: Vec<Mountable>,
    pub(crate) policy: RunPolicy,
    /// The servers among them that come from the catalog, by alias.
    pub(crate) counted: Vec<(Alias, String)>,
    /// The catalog's servers with the data for reviews of their definitions.
    pub(crate) pinned: BTreeMap<Alias, PinnedServer>,
    pub(crate) warnings: Vec<RunWarning>,
    /// Optional servers that the run does without, and the reasons.
    pub(crate) skipped: Vec<RunFault>,
    /// Servers whose configuration cannot be opened now.
    pub(crate) failed: Vec<UnopenedServer>,
    /// Servers that the run may not have in its present state, each with the answer to calls of it.
    pub(crate) withheld: Vec<MountFault>,
    /// The values of all secrets that the servers were configured with.
    pub(crate) secrets: Vec<Secret>,
    /// Optional keys of servers that the run does without.
    pub(crate) omitted: Vec<OmittedKey>,
    /// The servers with all values, if the run's creator is to get them.
    pub(crate) direct: Option<DirectServers>,
    /// The run's names for the built-in server besides its own name.
    pub(crate) built_in: BTreeSet<Alias>,
}

/// A server whose configuration cannot be opened.
#[derive(Debug)]
pub(crate) struct UnopenedServer {
    pub(crate) alias: Alias,
    /// True if a run may begin without it.
    pub(crate) is_optional: bool,
    pub(crate) error: OpenError,
}

impl UnopenedServer {
    /// The fault for the creator of a run.
    pub(crate) fn fault(&self) -> RunFault {
        RunFault::invalid(self.alias.to_string(), self.error.to_string())
    }

    /// The fault for calls of a run that had the server before.
    pub(crate) fn into_mount_fault(self) -> MountFault {
        let kind = match &self.error {
            OpenError::Secret { .. } => CallErrorKind::SecretCleared,
            OpenError::Unknown { .. }
            | OpenError::Unfit { .. }
            | OpenError::UnfitSecret { .. }
            | OpenError::NotStarted { .. } => CallErrorKind::TransportError,
        };
        let error = ServerFailure::new(kind, self.error.to_string());
        MountFault { alias: self.alias, error, lines: Vec::new() }
    }
}

/// A run, and the inputs for its servers.
#[derive(Clone, Copy)]
pub(crate) struct ServerInputs<'a> {
    pub(crate) workspace: &'a WorkspaceId,
    pub(crate) run: RunId,
    pub(crate) session: SessionId,
    pub(crate) inputs: &'a Inputs,
    pub(crate) scope: &'a RunScope,
    /// The part of `scope` that the run's request gives. `None` for a run that begins again.
    pub(crate) given_scope: Option<&'a RunScope>,
    /// Keys of the scope that servers of other agents take: agents that the run's agent may start.
    pub(crate) of_children: &'a BTreeSet<String>,
    pub(crate) variables: &'a Variables,
    /// The human who drives the run.
    pub(crate) driver: Option<&'a PrincipalId>,
    /// The variables for the agent's own environment.
    pub(crate) env: &'a BTreeMap<EnvName, SecretName>,
    /// True if the creator gets the servers with all values.
    pub(crate) is_direct: bool,
    /// The address of the built-in server, if clients connect from outside.
    pub(crate) built_in_url: Option<&'a str>,
}

/// Values of secrets, each of one version.
#[derive(Debug, Default)]
pub(crate) struct OpenedSecrets {
    values: BTreeMap<SecretName, (Secret, SecretVersion)>,
    /// Names of the secrets that the run was made with; some may have been cleared since.
    bound: BTreeSet<SecretName>,
}

impl OpenedSecrets {
    /// Opens the newest values of the secrets that an agent and its servers may need; unset ones
    /// are left out.
    ///
    /// # Errors
    /// When the vault fails.
    pub(crate) async fn newest(
        vault: &Vault,
        workspace: &WorkspaceId,
        parts: &AgentParts,
        variables: &Variables,
        agent_env: &BTreeMap<EnvName, SecretName>,
    ) -> Result<Self, VaultError> {
        // The names of the set secrets are not known yet.
        let env = |name: &str| variables.find(name);
        let surroundings = Surroundings {
            workspace,
            env: &env,
            allowing: &|names| variables.allowing(names),
            is_secret_set: &|_| true,
        };
        let needed = Plan::new(&parts.catalog, &parts.agent, surroundings).secrets();
        let mut opened = Self::default();
        let needed = needed.into_iter().map(|needed| needed.name);
        for name in needed.chain(agent_env.values().cloned()) {
            if !opened.values.contains_key(&name) {
                opened.open(vault, workspace, SecretReference::newest(name)).await?;
            }
        }
        opened.bound = opened.values.keys().cloned().collect();
        Ok(opened)
    }

    /// Opens the newest values of the secrets that an earlier run was bound to, and of those for
    /// the agent; secrets cleared since are left out.
    ///
    /// # Errors
    /// When the vault fails.
    pub(crate) async fn newest_of(
        vault: &Vault,
        workspace: &WorkspaceId,
        versions: &BTreeMap<SecretName, u64>,
        agent_env: &BTreeMap<EnvName, SecretName>,
    ) -> Result<Self, VaultError> {
        let bound = versions.keys().cloned().collect();
        let mut opened = Self { bound, ..Self::default() };
        let env = agent_env.values().filter(|name| !versions.contains_key(*name));
        for name in versions.keys().chain(env) {
            opened.open(vault, workspace, SecretReference::newest(name.clone())).await?;
        }
        opened.bound.extend(opened.values.keys().cloned());
        Ok(opened)
    }

    /// Opens the values that a run is bound to; secrets cleared since are left out.
    ///
    /// # Errors
    /// When the vault fails.
    pub(crate) async fn pinned(
        vault: &Vault,
        workspace: &WorkspaceId,
        versions: &BTreeMap<SecretName, u64>,
    ) -> Result<Self, VaultError> {
        let bound = versions.keys().cloned().collect();
        let mut opened = Self { bound, ..Self::default() };
        for (name, version) in versions {
            let Some(version) = SecretVersion::new(*version) else { continue };
            let reference = SecretReference::pinned(name.clone(), version);
            opened.open(vault, workspace, reference).await?;
        }
        Ok(opened)
    }

    async fn open(
        &mut self,
        vault: &Vault,
        workspace: &WorkspaceId,
        reference: SecretReference,
    ) -> Result<(), VaultError> {
        match vault.open(workspace, &reference).await {
            Ok(opened) => {
                self.values.insert(reference.name, (opened.value, opened.version));
                Ok(())
            }
            Err(VaultError::NotSet(_) | VaultError::VersionGone { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The versions of the secrets that a run of these servers needs.
    pub(crate) fn versions(&self) -> BTreeMap<SecretName, u64> {
        self.values.iter().map(|(name, (_, version))| (name.clone(), version.get())).collect()
    }

    /// The values for the agent's own environment.
    pub(crate) fn agent_env(&self, env: &BTreeMap<EnvName, SecretName>) -> AgentEnv {
        let value = |(name, secret): (&EnvName, _)| Some((name.clone(), self.value(secret)?));
        AgentEnv::new(env.iter().filter_map(value).collect())
    }

    fn value(&self, name: &SecretName) -> Option<Secret> {
        self.values.get(name).map(|(value, _)| value.clone())
    }
}

/// The servers of a run of an agent, with all values in them. `isolation` is a number that no
/// other run has.
///
/// # Errors
/// All faults of the run: parameters, and all servers that are not optional. A server that cannot
/// be opened is no error here: it is among the `failed` servers.
pub(crate) fn agent(
    of: ServerInputs<'_>,
    parts: &AgentParts,
    opened: &OpenedSecrets,
    isolation: u64,
) -> Result<RunServers, RunError> {
    let is_secret_set = |name: &SecretName| opened.bound.contains(name);
    let env = |name: &str| of.variables.find(name);
    let surroundings = Surroundings {
        workspace: of.workspace,
        env: &env,
        allowing: &|names| of.variables.allowing(names),
        is_secret_set: &is_secret_set,
    };
    let (run_id, session_id) = (of.run.to_text(), of.session.to_text());
    let plan = Plan::new(&parts.catalog, &parts.agent, surroundings).with_agent_env(of.env);
    let given = of.given_scope.into_iter().flat_map(|scope| scope.values());
    let plan = plan.with_given_scope(given, of.of_children.clone());
    let resolved = plan.resolve(RunInputs {
        run_id: &run_id,
        session_id: &session_id,
        project_dir: of.inputs.project_dir.as_deref(),
        params: &of.inputs.params,
        scope: of.scope,
    });
    let ResolvedRun { servers, skipped, warnings, .. } = resolved.map_err(RunError::Refused)?;
    let counted =
        servers.values().map(|server| (server.alias.clone(), server.reference.to_string()));
    let mut prepared = RunServers {
        counted: counted.collect(),
        pinned: servers.values().map(pinned).collect(),
        warnings: warnings
            .iter()
            .map(|one| RunWarning::of_operators(format!("{}: {}", one.path, one.message)))
            .collect(),
        skipped: skipped.iter().flat_map(|one| one.faults.iter().map(of_fault)).collect(),
        omitted: servers.values().flat_map(omitted).collect(),
        secrets: opened.values.values().map(|(value, _)| value.clone()).collect(),
        direct: of.is_direct.then(|| DirectServers::new(of.built_in_url)),
        ..RunServers::default()
    };
    for server in servers.values() {
        if let Some(fault) = withheld(parts, of.driver, server) {
            prepared.withheld.push(fault);
            continue;
        }
        match add(&mut prepared, of, server, opened, isolation) {
            Ok(()) => {}
            Err(error) => {
                let (alias, is_optional) = (server.alias.clone(), server.is_optional);
                prepared.failed.push(UnopenedServer { alias, is_optional, error });
            }
        }
    }
    Ok(prepared)
}

/// An optional key of a server that a run does without, since a value for it is missing (O17).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OmittedKey {
    /// The server's alias.
    #[serde(rename = "server_name")]
    pub server: Alias,
    /// The key.
    pub key: String,
    /// The placeholders without a value, such as `scope.team_partition`.
    pub missing: Vec<String>,
}

impl fmt::Display for OmittedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { server, key, missing } = self;
        write!(f, "`{server}` starts without its key `{key}`: no value for {}", missing.join(", "))
    }
}

fn omitted(server: &ResolvedServer) -> Vec<OmittedKey> {
    let omitted = |one: &narthex_catalog::Omitted| OmittedKey {
        server: server.alias.clone(),
        key: one.key.clone(),
        missing: one.missing.clone(),
    };
    server.omitted.iter().map(omitted).collect()
}

fn pinned(server: &ResolvedServer) -> (Alias, PinnedServer) {
    let shows_flagged = server.settings.on_flagged == Some(OnFlagged::Warn);
    let id = server.reference.clone();
    (server.alias.clone(), PinnedServer { id, shows_flagged })
}

fn add(
    prepared: &mut RunServers,
    of: ServerInputs<'_>,
    server: &ResolvedServer,
    opened: &OpenedSecrets,
    isolation: u64,
) -> Result<(), OpenError> {
    let opening = Opening {
        secret: &|name| opened.value(name),
        env: &|name| match of.variables.find(name) {
            EnvValue::Set(value) => Some(value),
            EnvValue::Unset | EnvValue::NotAllowed => None,
        },
        // The runner has no folder of scripts: its only key is the address of the built-in server.
        runner: &|key| of.built_in_url.filter(|_| key == BUILT_IN_URL).map(str::to_owned),
    };
    let mut definition = server.definition(opening)?;
    for source in &mut definition.header_sources {
        source.workspace = source.secret.as_ref().map(|_| of.workspace.clone());
    }
    share_grant(&mut definition, of.workspace, &server.reference);
    if let Some(direct) = &mut prepared.direct {
        direct.add(server, opening)?;
    }
    // The built-in server is called in process, with the run of the caller's token.
    if server.is_built_in() && !definition.is_disabled {
        prepared.built_in.insert(server.alias.clone());
        return Ok(());
    }
    let secrets = server.secrets().into_iter().filter_map(|needed| {
        let (_, version) = opened.values.get(&needed.name)?;
        Some((secret_key(of.workspace, &needed.name), version.get()))
    });
    let identity = MountIdentity {
        server: Some(server_key(of.workspace, server.reference.as_str())),
        secrets: secrets.collect(),
        credential: None,
    };
    // A program reads its environment once, and may store data of one run (O91, D12).
    let sharing = match server.isolation() {
        Isolation::Run => Sharing::Only(isolation),
        Isolation::Shared => Sharing::Everybody,
    };
    prepared.servers.push(Mountable {
        definition: Arc::new(definition),
        is_optional: server.is_optional,
        sharing,
        identity: Arc::new(identity),
    });
    Ok(())
}

/// Lets all runs of the workspace share the tokens of a client, and all runs of one human that
/// human's tokens: they belong to the server of the catalog, whatever its alias in the run is.
fn share_grant(definition: &mut ServerDefinition, workspace: &WorkspaceId, id: &ServerId) {
    if let Target::Http(target) = &mut definition.target {
        target.auth.set_grant(SharedGrant::of_catalog(workspace, id));
    }
}

fn of_fault(fault: &Fault) -> RunFault {
    let server = fault.alias.as_ref().map(Alias::to_string).unwrap_or_default();
    RunFault::invalid(server, fault.to_string())
}

/// The servers that a policy names and that do not exist.
pub(crate) fn missing(policy: &RunPolicy, snapshot: &Snapshot) -> Vec<Alias> {
    match policy {
        RunPolicy::AllAttached | RunPolicy::Profile(_) => Vec::new(),
        RunPolicy::Attached(named) => {
            let is_missing =
                |alias: &&Alias| !alias.is_built_in() && snapshot.get(alias.as_str()).is_none();
            named.iter().filter(is_missing).cloned().collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use narthex_model::{
        AuthorizationCodeAuth, ClientCredentialsAuth, ClientProof, HttpTarget, OAuth, ServerAuth,
    };

    use super::*;

    fn grant_of(auth: ServerAuth) -> Option<SharedGrant> {
        let url = "https://s.test/mcp".to_owned();
        let target =
            Target::Http(HttpTarget { url, is_sse: false, headers: BTreeMap::new(), auth });
        let mut definition = ServerDefinition::new(Alias::new("any").unwrap(), target);
        let id = ServerId::new("orders").unwrap();
        share_grant(&mut definition, &WorkspaceId::new("team").unwrap(), &id);
        let Target::Http(target) = definition.target else { panic!("{definition:?}") };
        target.auth.grant().cloned()
    }

    /// O92: runs share the tokens of a client by workspace and catalog id; aliases do not count.
    #[test]
    fn o92_runs_share_the_grant_of_their_server() {
        let auth = ClientCredentialsAuth {
            token_url: None,
            client_id: "c".to_owned(),
            proof: ClientProof::Secret { secret: Secret::new("s"), method: None },
            scopes: [].into(),
            audience: None,
            resource: None,
            authorization_server: None,
            auth_error: None,
            grant: None,
        };
        let grant = grant_of(ServerAuth::OAuth(Box::new(OAuth::ClientCredentials(auth)))).unwrap();
        assert_eq!((grant.workspace.as_str(), grant.server.as_str()), ("team", "catalog/orders"));
        assert_eq!(grant_of(ServerAuth::None), None);
        let person = OAuth::AuthorizationCode(AuthorizationCodeAuth::default());
        assert_eq!(grant_of(ServerAuth::OAuth(Box::new(person))), Some(grant));
    }
}
