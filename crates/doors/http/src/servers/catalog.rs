//! The catalog: lists, shows and changes the servers, capabilities and agents of a workspace.

use http::{HeaderName, HeaderValue, Method, StatusCode, header};
use narthex_control::{
    CatalogChange, CatalogObject, CatalogValid, CatalogWritten, EnvNames, ManifestDocument,
    Precondition,
};
use narthex_model::{CatalogKind, ErrorKind, Role, WorkspaceId};
use percent_encoding::percent_decode_str;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Answered, Asked, document, names::gates_unmatched, ok, query::Query, transfer::Apart};
use crate::{
    auth::Principal,
    body::RequestBody,
    problem::Problem,
    respond,
    shapes::{
        Agent, AgentObject, AgentWritten, As, Capability, CapabilityObject, CapabilityWritten,
        CatalogServer, Definition, Merged, ObjectMembers, Page, ServerObject, ServerWritten,
        Stored, Validated,
    },
};

impl Asked<'_> {
    /// Lists the objects of a kind page by page, or creates one.
    pub(super) async fn objects(&self, kind: CatalogKind, body: RequestBody) -> Answered {
        let (workspace, control) = (self.workspace()?, self.control()?);
        if self.parts.method == Method::POST {
            let change = self.change_or_offline(kind)?;
            let text = self.entry(body, &[]).await?;
            let written = control.catalog_create(change, text.into_bytes()).await?;
            return self.written(kind, &written).await;
        }
        let query = self.query(&["after", "limit"])?;
        let (after, limit) = (query.text("after"), query.limit()?);
        let page = control.catalog_list(&workspace, kind, after, limit).await?;
        let is_whole = self.sees_all_of(kind, &workspace);
        Ok(match kind {
            CatalogKind::Server => ok(&listed(&page, |one| server(one, is_whole))),
            CatalogKind::Capability => ok(&listed(&page, |one| capability(one, is_whole))),
            CatalogKind::Agent => {
                let env = control.env_names(&workspace).await?;
                ok(&listed(&page, |one| agent(one, is_whole, &env)))
            }
        })
    }

    /// Shows, replaces, changes or removes one object.
    pub(super) async fn object(&self, kind: CatalogKind, body: RequestBody) -> Answered {
        let control = self.control()?;
        let id = percent_decode_str(self.segments[1]).decode_utf8_lossy();
        match self.parts.method {
            Method::PUT => {
                let change = self.change_or_offline(kind)?;
                let text = self.entry(body, &[]).await?;
                let written = control.catalog_put(change, &id, text.into_bytes()).await?;
                self.written(kind, &written).await
            }
            Method::PATCH => {
                let change = self.change_or_offline(kind)?;
                let patch = self.entry(body, &["application/merge-patch+json"]).await?;
                let written = control.catalog_merge(change, &id, patch.into_bytes()).await?;
                self.written(kind, &written).await
            }
            Method::DELETE => {
                let is_forced = self.query(&["force"])?.flag("force")?;
                control.catalog_delete(self.change(kind)?, &id, is_forced).await?;
                Ok(respond::empty(StatusCode::NO_CONTENT))
            }
            _ => self.show(kind, &id).await,
        }
    }

    /// Answers as storing the object would, but stores nothing.
    pub(super) async fn validate(&self, body: RequestBody) -> Answered {
        let (workspace, control) = (self.workspace()?, self.control()?);
        let kind = match self.query(&["kind"])?.word("kind", &["agent", "capability", "server"])? {
            "server" => CatalogKind::Server,
            "capability" => CatalogKind::Capability,
            _ => CatalogKind::Agent,
        };
        let text = self.entry(body, &[]).await?.into_bytes();
        let valid = control.catalog_validate(&workspace, kind, text).await?;
        let CatalogValid { id, definition, warnings } = valid;
        let warnings = warnings.iter().map(As::of).collect();
        Ok(ok(&Validated { id, definition, warnings }))
    }

    /// The merged view of the agent in the body.
    pub(super) async fn preview(&self, body: RequestBody) -> Answered {
        let (workspace, control) = (self.workspace()?, self.control()?);
        self.query(&[])?;
        let apart = Apart::of(self.entry(body, &[]).await?, ManifestDocument::of_agent);
        let shown = control.catalog_preview(&workspace, apart.text.clone().into_bytes()).await;
        Ok(ok(&As::<Merged>::json(apart.told(shown)?)))
    }

    async fn show(&self, kind: CatalogKind, id: &str) -> Answered {
        let (workspace, control) = (self.workspace()?, self.control()?);
        let is_merged = match kind {
            CatalogKind::Agent => {
                self.query(&["view"])?.word("view", &["raw", "merged"])? == "merged"
            }
            CatalogKind::Server | CatalogKind::Capability => {
                self.query(&[])?;
                false
            }
        };
        let is_whole = self.sees_all_of(kind, &workspace);
        if is_merged && !is_whole {
            let text = "the merged view has values of servers, which are for authors";
            return Err(Problem::new(ErrorKind::Denied, text));
        }
        if is_merged {
            return Ok(ok(&As::<Merged>::json(control.catalog_merged(&workspace, id).await?)));
        }
        let object = control.catalog_get(&workspace, kind, id).await?;
        let shown = match kind {
            CatalogKind::Server => ok(&server(&object, is_whole)),
            CatalogKind::Capability => ok(&capability(&object, is_whole)),
            CatalogKind::Agent => {
                ok(&agent(&object, is_whole, &control.env_names(&workspace).await?))
            }
        };
        Ok(with_tag(shown, &object.tag))
    }

    fn sees_all_of(&self, kind: CatalogKind, workspace: &WorkspaceId) -> bool {
        sees_all_of(&self.principal, kind, workspace)
    }

    pub(super) fn query(&self, known: &[&str]) -> Result<Query, Problem> {
        Query::of(&self.parts.uri, known)
    }

    /// A change whose request may set `offline`: then a saved server is not asked for its
    /// authorization server.
    fn change_or_offline(&self, kind: CatalogKind) -> Result<CatalogChange, Problem> {
        let is_offline = match kind {
            CatalogKind::Server => self.query(&["offline"])?.flag("offline")?,
            CatalogKind::Capability | CatalogKind::Agent => {
                self.query(&[])?;
                false
            }
        };
        Ok(CatalogChange { is_offline, ..self.change(kind)? })
    }

    pub(super) fn change(&self, kind: CatalogKind) -> Result<CatalogChange, Problem> {
        let precondition = self.precondition()?;
        let by = self.by();
        Ok(CatalogChange {
            workspace: self.workspace()?,
            kind,
            precondition,
            by,
            is_offline: false,
        })
    }

    /// Reads the condition of `If-Match` and `If-None-Match` (RFC 9110, 13.1).
    pub(super) fn precondition(&self) -> Result<Precondition, Problem> {
        let (wanted, unwanted) =
            (self.tags(&header::IF_MATCH)?, self.tags(&header::IF_NONE_MATCH)?);
        match (wanted, unwanted) {
            (None, None) => Ok(Precondition::None),
            (Some(tags), None) if tags == ["*"] => Ok(Precondition::Exists),
            (Some(tags), None) => {
                // A weak tag, or one of another form, is never a tag of this API.
                let inside = |tag: &&str| {
                    tag.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).map(str::to_owned)
                };
                Ok(Precondition::Tags(tags.iter().filter_map(inside).collect()))
            }
            (None, Some(tags)) if tags == ["*"] => Ok(Precondition::New),
            (_, Some(_)) => {
                let text = "a change takes `If-Match` or `If-None-Match: *`, not both";
                Err(Problem::new(ErrorKind::Invalid, text))
            }
        }
    }

    /// The tags in all headers with this name.
    fn tags(&self, name: &HeaderName) -> Result<Option<Vec<&str>>, Problem> {
        let mut all = None;
        for value in self.parts.headers.get_all(name) {
            let text = value.to_str().map_err(|_bytes| {
                Problem::new(ErrorKind::Invalid, format!("the header `{name}` is not text"))
            })?;
            all.get_or_insert_with(Vec::new).extend(text.split(',').map(str::trim));
        }
        Ok(all)
    }

    async fn written(&self, kind: CatalogKind, written: &CatalogWritten) -> Answered {
        let CatalogWritten { object, was_there, warnings } = written;
        let mut warnings: Vec<_> = warnings.iter().map(As::of).collect();
        let status = if *was_there { StatusCode::OK } else { StatusCode::CREATED };
        let mut response = match kind {
            CatalogKind::Server => {
                let definition = object.definition.as_ref().unwrap_or(&Value::Null);
                let workspace = self.workspace()?;
                let gates = gates_unmatched(self.door, &workspace, &object.id, definition).await?;
                warnings.extend(gates.iter().map(As::of));
                let ServerObject { object } = server(object, true);
                document(status, &ServerWritten { object, warnings })
            }
            CatalogKind::Capability => {
                let CapabilityObject { object } = capability(object, true);
                document(status, &CapabilityWritten { object, warnings })
            }
            CatalogKind::Agent => {
                let env = self.control()?.env_names(&self.workspace()?).await?;
                let AgentObject { object, agent_env_names } = agent(object, true, &env);
                document(status, &AgentWritten { object, agent_env_names, warnings })
            }
        };
        if !was_there {
            let own = self.parts.uri.path();
            let place = match self.parts.method == Method::POST {
                // Ids contain no characters that need escapes.
                true => format!("{own}/{}", object.id),
                false => own.to_owned(),
            };
            if let Ok(place) = HeaderValue::from_str(&place) {
                response.headers_mut().insert(header::LOCATION, place);
            }
        }
        Ok(with_tag(response, &object.tag))
    }
}

/// True if a caller sees the whole definition.
///
/// Only admins see how servers are reached and configured (X-D12). Only admins and authors see the
/// values that agents and capabilities set (D39).
pub(crate) fn sees_all_of(
    principal: &Principal,
    kind: CatalogKind,
    workspace: &WorkspaceId,
) -> bool {
    let roles: &[Role] = match kind {
        CatalogKind::Server => &[Role::Admin],
        CatalogKind::Agent | CatalogKind::Capability => &[Role::Admin, Role::Author],
    };
    principal.has_any(workspace, roles)
}

/// The definition of a server: the whole, or the part that authors see, which is null for a
/// definition without the shape of a server.
pub(crate) fn server_definition(object: &CatalogObject, is_whole: bool) -> Value {
    let ServerObject { object } = server(object, is_whole);
    match object.definition {
        Definition::Stored(whole) => whole,
        Definition::Part(part) => serde_json::to_value(part).unwrap_or_default(),
    }
}

pub(super) fn with_tag(mut response: respond::Response, tag: &str) -> respond::Response {
    if let Ok(tag) = HeaderValue::from_str(&format!("\"{tag}\"")) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}

/// A page of stored objects.
fn listed<S>(
    page: &narthex_control::Page<CatalogObject>,
    shown: impl Fn(&CatalogObject) -> S,
) -> Page<S> {
    Page { items: page.items.iter().map(shown).collect(), next: page.next.clone() }
}

/// A server. If `is_whole` is false, only the part that authors see.
fn server(object: &CatalogObject, is_whole: bool) -> ServerObject {
    ServerObject { object: seen(object, is_whole, CatalogServer::for_authors) }
}

/// A capability. If `is_whole` is false, only the part that runners see.
fn capability(object: &CatalogObject, is_whole: bool) -> CapabilityObject {
    CapabilityObject { object: seen(object, is_whole, Capability::without_values) }
}

/// An agent, with the names of credentials in its environment, which the gateway does not keep from
/// it (X-E60). If `is_whole` is false, only the part that runners see.
fn agent(object: &CatalogObject, is_whole: bool, env: &EnvNames) -> AgentObject {
    let names = env.of_agent(&object.id);
    AgentObject {
        object: seen(object, is_whole, Agent::without_values),
        agent_env_names: Some(names.iter().map(ToString::to_string).collect()),
    }
}

/// An object with its whole definition, or with the part that the caller may see.
fn seen<D: DeserializeOwned>(
    object: &CatalogObject,
    is_whole: bool,
    part: impl FnOnce(D) -> D,
) -> Stored<D> {
    let CatalogObject { id, definition, revision, tag, errors, .. } = object;
    let definition = definition.clone().unwrap_or_default();
    let (definition, errors) = match is_whole {
        true => (Definition::Stored(definition), &errors[..]),
        // Faults in hidden members would reveal them.
        false => (Definition::part(definition, part), &[][..]),
    };
    let members = ObjectMembers {
        id: id.clone(),
        revision: *revision,
        etag: format!("\"{tag}\""),
        created_at: object.created_at.into(),
        updated_at: object.updated_at.into(),
        updated_by: object.updated_by.clone(),
        errors: (!errors.is_empty()).then(|| errors.iter().map(As::of).collect()),
    };
    Stored { members, definition }
}
