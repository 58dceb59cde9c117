//! MCP clients that connect without an operator starting a run for them: their registration, their
//! runs, and their revocation.

use std::{collections::BTreeSet, sync::Arc, time::SystemTime};

use narthex_audit::{AuditEvent, kind};
use narthex_catalog::fields::Fields;
use narthex_login::BearerHash;
use narthex_model::{
    AgentName, BuiltInTools, ClientOrigin, McpClientId, PrincipalId, PrincipalKind, PrincipalName,
    ProfileName, RunId, SessionId, Timestamp, WorkspaceId,
    json::{Node, Place, shortened},
};
use narthex_store::{McpClientRow, NewPrincipal, Store};
use serde_json::{Map, Value};

use super::{AccessError, KnownClient, McpClientToken, change::of_statement, principals::new_id};
use crate::{By, Control, ControlError};

/// Largest number of admitted clients of a workspace.
pub(crate) const LIVE_MAX: usize = 1000;
const FIELDS: [&str; 8] =
    ["client", "agent_name", "profile", "params", "scope", "builtin", "origins", "expires_at"];
/// The fields of a client of an agent.
const OF_AGENT: [&str; 3] = ["params", "scope", "builtin"];

/// A request to register a client.
pub struct ClientRequest {
    /// Full name, with the workspace in front.
    pub name: PrincipalName,
    /// The agent of the client's runs, or the profile that the client sees.
    pub sees: Sees,
    /// The origins that the client may give to its writes.
    pub origins: BTreeSet<ClientOrigin>,
    /// Time from which the client is no longer admitted.
    pub expires_at: Option<SystemTime>,
    /// The members `agent_name`, `params`, `scope` and `builtin` of the request for its runs.
    pub run: Map<String, Value>,
}

/// The servers that a client sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sees {
    /// The servers of an agent's runs.
    Agent(AgentName),
    /// The servers of a profile of the live configuration.
    Profile(ProfileName),
    /// All servers of the live configuration. Only a human at the door gives this.
    Live,
}

impl Sees {
    /// The agent whose runs have the servers.
    pub(crate) fn agent(&self) -> Option<&AgentName> {
        match self {
            Self::Agent(agent) => Some(agent),
            Self::Profile(_) | Self::Live => None,
        }
    }
}

/// A client to register, with the sealed request for its runs.
pub struct NewClient {
    /// The request.
    pub request: ClientRequest,
    /// The request for its runs, sealed for the client's id.
    pub sealed: String,
    /// The client's token, which contains the id.
    pub token: McpClientToken,
    /// The id of the client.
    pub id: McpClientId,
}

/// A client that was registered now.
#[derive(Debug)]
pub struct CreatedClient {
    /// The token, for the caller alone: it is shown once, and stored nowhere.
    pub token: McpClientToken,
    /// The stored client.
    pub known: Arc<KnownClient>,
}

impl ClientRequest {
    /// Reads `{"client": …, "agent_name": …, "params": {…}, "scope": {…}, "origins": […],
    /// "expires_at": …}`, or `"profile"` in place of `"agent_name"`. The parameters are not checked
    /// against the agent, and the profile is not looked up.
    ///
    /// # Errors
    /// All faults of the fields.
    pub fn read(workspace: &WorkspaceId, text: &[u8]) -> Result<Self, ControlError> {
        let mut fields = Fields::read(text, &FIELDS)?;
        let name = fields.named("client", |name| PrincipalName::of_service(workspace, name));
        let sees = sees(&mut fields);
        let origins = origins(&mut fields);
        let expires_at = fields.text("expires_at").map(|text| Timestamp::parse(&text));
        if expires_at.is_some_and(|at| at.is_none_or(|at| at <= SystemTime::now())) {
            let remedy = "write a future time, such as 2027-01-31T12:00:00Z";
            fields.fault("expires_at", "it is not a time in the future", remedy);
        }
        let mut run = Map::new();
        for name in ["params", "scope"] {
            match fields.take(name) {
                None => {}
                Some(node @ Node::Object(_)) => {
                    run.insert(name.to_owned(), node.to_value());
                }
                Some(other) => {
                    let message = format!("it is {}, not an object", other.found());
                    fields.fault(name, message, "write an object");
                }
            }
        }
        if let Some(node) = fields.take("builtin") {
            match BuiltInTools::read(&node) {
                Ok(_) => drop(run.insert("builtin".to_owned(), node.to_value())),
                Err(faults) => {
                    for (index, message, remedy) in faults {
                        let place = Place::root("builtin");
                        let place = index.map_or(place.clone(), |index| place.index(index));
                        fields.fault(&place.to_string(), message, &remedy);
                    }
                }
            }
        }
        fields.done().map_err(ControlError::from)?;
        let missing = "what is missing is a fault";
        let (name, sees) = (name.expect(missing), sees.expect(missing));
        if let Sees::Agent(agent) = &sees {
            run.insert("agent_name".to_owned(), agent.as_str().into());
        }
        Ok(Self { name, sees, origins, expires_at: expires_at.flatten(), run })
    }

    /// The request with a new token, which still has to be stored.
    ///
    /// # Errors
    /// When the operating system gives no random bytes.
    pub fn with_token(self) -> Result<NewClient, ControlError> {
        let (token, id) = McpClientToken::generate().map_err(AccessError::Randomness)?;
        Ok(NewClient { request: self, sealed: String::new(), token, id })
    }
}

impl Control {
    /// All clients of a workspace, also revoked ones, in the order of their ids.
    ///
    /// # Errors
    /// When there is no such workspace, or no store.
    pub fn clients(&self, workspace: &WorkspaceId) -> Result<Vec<Arc<KnownClient>>, ControlError> {
        self.known_workspace(workspace)?;
        let table = self.access();
        let is_here = |one: &&Arc<KnownClient>| one.row.workspace == *workspace;
        Ok(table.clients.values().filter(is_here).cloned().collect())
    }

    /// One client of a workspace, also a revoked one.
    ///
    /// # Errors
    /// When the id is unknown, no such workspace, or no store.
    pub fn client(
        &self,
        workspace: &WorkspaceId,
        id: &str,
    ) -> Result<Arc<KnownClient>, ControlError> {
        let all = self.clients(workspace)?;
        let found = all.into_iter().find(|one| one.row.id.as_str() == id);
        found.ok_or_else(|| AccessError::UnknownClient(shortened(id)).into())
    }

    /// Stores a client.
    ///
    /// # Errors
    /// When the client's name is taken, or there are too many clients; when there is no such
    /// workspace or no store, or the store fails.
    pub async fn client_register(
        &self,
        workspace: &WorkspaceId,
        new: NewClient,
        by: &By,
    ) -> Result<CreatedClient, ControlError> {
        self.known_workspace(workspace)?;
        let (workspace, by) = (workspace.clone(), by.clone());
        let NewClient { request, sealed, token, id } = new;
        let hash = BearerHash::of(token.expose()).to_text();
        let of = id.clone();
        self.change_access(async move |this, store| {
            let now = SystemTime::now();
            let live: Vec<_> =
                this.clients(&workspace)?.into_iter().filter(|one| one.is_live(now)).collect();
            if live.len() >= LIVE_MAX {
                return Err(AccessError::TooManyClients(LIVE_MAX).into());
            }
            let ClientRequest { name, sees, origins, expires_at, .. } = request;
            if live.iter().any(|one| one.account.name == name) {
                return Err(AccessError::ClientTaken(name).into());
            }
            let event = of_client(kind::CLIENT_REGISTERED, &workspace, &of, by.clone());
            let event = event.with("name", name.as_str());
            let (event, agent, profile) = match sees {
                Sees::Agent(agent) => (event.with("agent", agent.as_str()), Some(agent), None),
                Sees::Profile(profile) => {
                    (event.with("profile", profile.as_str()), None, Some(profile))
                }
                Sees::Live => (event, None, None),
            };
            let event =
                event.with("origins", origins.iter().map(|one| one.as_str()).collect::<Vec<_>>());
            let noted = this.note(event).await?;
            let principal = this.client_principal(&store, &workspace, name, &by).await?;
            let row = McpClientRow {
                id: of,
                workspace,
                principal,
                hash,
                agent,
                profile,
                origins,
                session: None,
                run: None,
                created_at: now,
                created_by: by.id.into_owned(),
                expires_at,
                revoked_at: None,
            };
            store.mcp_clients().create(&row, &sealed).await.map_err(ControlError::Store)?;
            noted.done().await;
            Ok(())
        })
        .await?;
        let known = self.access().clients.get(&id).cloned();
        let known = known.ok_or_else(|| AccessError::UnknownClient(id.to_string()))?;
        Ok(CreatedClient { token, known })
    }

    /// Revokes a client's token: at this daemon at once, at others within [`crate::POLL`]. Returns
    /// the client with its last run, which stays active.
    ///
    /// # Errors
    /// When no client with this id has a valid token; when there is no such workspace or no store,
    /// or the store fails.
    pub async fn client_revoke(
        &self,
        workspace: &WorkspaceId,
        id: &str,
        by: &By,
    ) -> Result<Arc<KnownClient>, ControlError> {
        self.known_workspace(workspace)?;
        let (here, asked) = (workspace, id);
        let (workspace, id, by) = (workspace.clone(), id.to_owned(), by.clone());
        let revoking = async move |this: Self, store: Store| {
            let found = this.client(&workspace, &id)?;
            let unknown = || AccessError::UnknownClient(shortened(&id));
            if found.row.revoked_at.is_some() {
                return Err(unknown().into());
            }
            let event = of_client(kind::CLIENT_REVOKED, &workspace, &found.row.id, by);
            let noted = this.note(event).await?;
            let revoked = store.mcp_clients().revoke(&workspace, &found.row.id).await;
            if !revoked.map_err(ControlError::Store)? {
                return Err(unknown().into());
            }
            noted.done().await;
            Ok(found)
        };
        let found = self.change_access(revoking).await?;
        // Another daemon may have given the client a run until the moment of its revocation.
        Ok(self.client(here, asked).unwrap_or(found))
    }

    /// Gives a client its next run, in place of the run in `before`. Returns `false` and changes
    /// nothing if another daemon has given the client a run since, or the client is revoked.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn client_bind(
        &self,
        before: &KnownClient,
        session: SessionId,
        run: RunId,
    ) -> Result<bool, ControlError> {
        let McpClientRow { workspace, id, run: old, .. } = before.row.clone();
        self.change_access(async move |_this, store| {
            let bound = store.mcp_clients().bind(&workspace, &id, old, (session, run)).await;
            bound.map_err(ControlError::Store)
        })
        .await
    }

    /// Returns the principal with this client name, and creates one if there is none. A name can be
    /// used again after its client was revoked.
    pub(crate) async fn client_principal(
        &self,
        store: &Store,
        workspace: &WorkspaceId,
        name: PrincipalName,
        by: &By,
    ) -> Result<PrincipalId, ControlError> {
        let table = self.access();
        match table.accounts.values().find(|one| one.name == name) {
            Some(found) if found.kind == PrincipalKind::Client => match found.disabled_at {
                None => Ok(found.id.clone()),
                Some(_) => Err(AccessError::NameDisabled(found.name.clone()).into()),
            },
            Some(found) => Err(AccessError::NameTaken(found.name.clone()).into()),
            None => {
                let id = new_id()?;
                let new = NewPrincipal {
                    id: &id,
                    name: &name,
                    kind: PrincipalKind::Client,
                    workspace: Some(workspace),
                    is_operator: false,
                    by: &by.id,
                };
                let created = store.principals().create(new, None).await;
                created.map_err(of_statement(AccessError::NameTaken(name.clone())))?;
                Ok(id)
            }
        }
    }
}

/// The event of an action on a client.
pub(crate) fn of_client(
    kind: &'static str,
    workspace: &WorkspaceId,
    id: &McpClientId,
    by: By,
) -> AuditEvent<'static> {
    AuditEvent::new(kind, by).in_workspace(workspace).on("client", id.to_string())
}

/// The agent of a client, or its profile.
fn sees(fields: &mut Fields) -> Option<Sees> {
    if fields.take("profile").is_none() {
        return fields.named("agent_name", AgentName::new).map(Sees::Agent);
    }
    let profile = fields.named("profile", ProfileName::new);
    if fields.take("agent_name").is_some() {
        fields.fault("agent_name", "a client has an agent or a profile", "leave one out");
    }
    for name in OF_AGENT {
        if fields.take(name).is_some() {
            fields.fault(name, "only runs of agents have this", "leave it out");
        }
    }
    profile.map(Sees::Profile)
}

/// The requested origins. If the request names none, `agent-produced` is the only one.
fn origins(fields: &mut Fields) -> BTreeSet<ClientOrigin> {
    let all = ClientOrigin::ALL.map(ClientOrigin::as_str).join("`, `");
    let remedy = format!("write a list of some of `{all}`");
    let items = match fields.take("origins") {
        None => return [ClientOrigin::AgentProduced].into(),
        Some(Node::List(items)) if !items.is_empty() => items,
        Some(_) => {
            fields.fault("origins", "it is not a list with at least one item", &remedy);
            return BTreeSet::new();
        }
    };
    let mut origins = BTreeSet::new();
    for (index, item) in items.iter().enumerate() {
        let origin = match item {
            Node::Text(word) => ClientOrigin::parse(word),
            _ => None,
        };
        match origin {
            Some(origin) => _ = origins.insert(origin),
            None => {
                let place = Place::root("origins").index(index).to_string();
                fields.fault(&place, "a client cannot have this", &remedy);
            }
        }
    }
    origins
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::CatalogError;

    fn read(text: Value) -> Result<ClientRequest, ControlError> {
        ClientRequest::read(&WorkspaceId::default(), text.to_string().as_bytes())
    }

    /// I-D2: a client has the origins that it is registered with, `agent-produced` if none is
    /// named, and never those of a person or of the platform.
    #[test]
    fn i_d2_origins_are_bound_at_registration() {
        let plain = json!({ "client": "desktop", "agent_name": "reader" });
        assert_eq!(read(plain.clone()).unwrap().origins, [ClientOrigin::AgentProduced].into());
        let with = |origins: Value| {
            let mut text = plain.clone();
            text["origins"] = origins;
            read(text)
        };
        let both = with(json!(["imported", "agent-produced"])).unwrap();
        assert_eq!(both.origins, ClientOrigin::ALL.into());
        let fault_places = |origins: Value| match with(origins) {
            Err(ControlError::Catalog(CatalogError::Refused(faults))) => {
                faults.iter().map(|fault| fault.field.to_string()).collect::<Vec<_>>()
            }
            other => panic!("{:?}", other.err()),
        };
        for unfit in ["authored", "observed", "canonical"] {
            let places = fault_places(json!(["imported", unfit]));
            assert_eq!(places, ["origins[1]"], "{unfit}");
        }
        for (unfit, place) in
            [(json!([]), "origins"), (json!("imported"), "origins"), (json!([1]), "origins[0]")]
        {
            assert_eq!(fault_places(unfit), [place]);
        }
    }

    /// P9: a client sees by an agent or by a profile.
    #[test]
    fn p9_a_client_has_a_profile_in_place_of_an_agent() {
        let of = |members: Value| {
            let mut text = json!({ "client": "desktop" });
            text.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
            read(text)
        };
        let request = of(json!({ "profile": "work" })).unwrap();
        assert_eq!(request.sees, Sees::Profile(ProfileName::new("work").unwrap()));
        assert!(request.run.is_empty());
        for (members, field) in [
            (json!({}), "agent_name"),
            (json!({ "profile": "A b" }), "profile"),
            (json!({ "profile": "work", "agent_name": "reader" }), "agent_name"),
            (json!({ "profile": "work", "params": {} }), "params"),
            (json!({ "profile": "work", "builtin": [] }), "builtin"),
        ] {
            let Err(ControlError::Catalog(CatalogError::Refused(faults))) = of(members.clone())
            else {
                panic!("{members}");
            };
            assert!(faults.iter().any(|fault| fault.field == field), "{members}: {faults:?}");
        }
    }

    #[test]
    fn all_faults_of_a_client_request_are_reported_together() {
        let wrong = json!({ "client": "A b", "agent_name": "../x", "params": [], "scope": 1,
                            "origins": ["authored"], "expires_at": "2020-01-01T00:00:00Z",
                            "prompt": "x" });
        let Err(ControlError::Catalog(CatalogError::Refused(faults))) = read(wrong) else {
            panic!("it is taken");
        };
        let mut fields: Vec<_> = faults.iter().map(|fault| &*fault.field).collect();
        fields.sort_unstable();
        let all = ["agent_name", "client", "expires_at", "origins[0]", "params", "prompt", "scope"];
        assert_eq!(fields, all);
    }
}
