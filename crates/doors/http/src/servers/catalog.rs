//! The catalog: servers, capabilities and agents of a workspace, listed, shown and changed.

use std::fmt;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, StatusCode, header};
use http_body::Body;
use narthex_control::{
    CatalogChange, CatalogObject, CatalogValid, CatalogWritten, EnvNames, ManifestDocument,
    Precondition,
};
use narthex_model::{CatalogKind, ErrorKind, Role, Timestamp, WorkspaceId};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use super::{Answered, Asked, document, ok, query::Query, transfer::Apart};
use crate::{problem::Problem, respond};

impl Asked<'_> {
    /// All objects of a kind, page by page, or a new one.
    pub(super) async fn objects<B>(&self, kind: CatalogKind, body: B) -> Answered
    where
        B: Body<Data = Bytes, Error: fmt::Display> + Unpin,
    {
        let (workspace, control) = (self.workspace()?, self.control()?);
        if self.parts.method == Method::POST {
            self.query(&[])?;
            let change = self.change(kind)?;
            let text = self.entry(body, &[]).await?;
            let written = control.catalog_create(change, text.into_bytes()).await?;
            return self.written(kind, &written).await;
        }
        let query = self.query(&["after", "limit"])?;
        let (after, limit) = (query.text("after"), query.limit()?);
        let page = control.catalog_list(&workspace, kind, after, limit).await?;
        let is_whole = self.sees_all_of(kind, &workspace);
        let env = self.env_names(kind).await?;
        let item = |one| with_env(seen(kind, one, is_whole), one, env.as_ref());
        let items: Vec<_> = page.items.iter().map(item).collect();
        Ok(ok(&json!({ "items": items, "next": page.next })))
    }

    /// One object: shown, replaced, changed or removed.
    pub(super) async fn object<B>(&self, kind: CatalogKind, body: B) -> Answered
    where
        B: Body<Data = Bytes, Error: fmt::Display> + Unpin,
    {
        let control = self.control()?;
        let id = percent_decode_str(self.segments[1]).decode_utf8_lossy();
        match self.parts.method {
            Method::PUT => {
                self.query(&[])?;
                let change = self.change(kind)?;
                let text = self.entry(body, &[]).await?;
                let written = control.catalog_put(change, &id, text.into_bytes()).await?;
                self.written(kind, &written).await
            }
            Method::PATCH => {
                self.query(&[])?;
                let change = self.change(kind)?;
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

    /// Says what storing an object would say, and stores nothing.
    pub(super) async fn validate<B>(&self, body: B) -> Answered
    where
        B: Body<Data = Bytes, Error: fmt::Display> + Unpin,
    {
        let (workspace, control) = (self.workspace()?, self.control()?);
        let kind = match self.query(&["kind"])?.word("kind", &["agent", "capability", "server"])? {
            "server" => CatalogKind::Server,
            "capability" => CatalogKind::Capability,
            _ => CatalogKind::Agent,
        };
        let text = self.entry(body, &[]).await?.into_bytes();
        let valid = control.catalog_validate(&workspace, kind, text).await?;
        let CatalogValid { id, definition, warnings } = valid;
        Ok(ok(&json!({ "id": id, "definition": definition, "warnings": warnings })))
    }

    /// The merged view of the agent that is sent.
    pub(super) async fn preview<B>(&self, body: B) -> Answered
    where
        B: Body<Data = Bytes, Error: fmt::Display> + Unpin,
    {
        let (workspace, control) = (self.workspace()?, self.control()?);
        self.query(&[])?;
        let apart = Apart::of(self.entry(body, &[]).await?, ManifestDocument::of_agent);
        let shown = control.catalog_preview(&workspace, apart.text.clone().into_bytes()).await;
        Ok(ok(&apart.told(shown)?))
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
            return Ok(ok(&control.catalog_merged(&workspace, id).await?));
        }
        let object = control.catalog_get(&workspace, kind, id).await?;
        let env = self.env_names(kind).await?;
        let shown = with_env(seen(kind, &object, is_whole), &object, env.as_ref());
        Ok(with_tag(ok(&shown), &object.tag))
    }

    /// Of servers only who changes them sees how they are reached and configured (X-D12), and of
    /// agents only who writes them sees the values that they set (D39).
    fn sees_all_of(&self, kind: CatalogKind, workspace: &WorkspaceId) -> bool {
        let roles: &[Role] = match kind {
            CatalogKind::Server => &[Role::Admin],
            CatalogKind::Agent | CatalogKind::Capability => &[Role::Admin, Role::Author],
        };
        self.principal.has_any(workspace, roles)
    }

    pub(super) fn query(&self, known: &[&str]) -> Result<Query, Problem> {
        Query::of(&self.parts.uri, known)
    }

    pub(super) fn change(&self, kind: CatalogKind) -> Result<CatalogChange, Problem> {
        let precondition = self.precondition()?;
        let by = self.by();
        Ok(CatalogChange { workspace: self.workspace()?, kind, precondition, by })
    }

    /// Reads the condition of `If-Match` and `If-None-Match` (RFC 9110, 13.1).
    pub(super) fn precondition(&self) -> Result<Precondition, Problem> {
        let (wanted, unwanted) =
            (self.tags(&header::IF_MATCH)?, self.tags(&header::IF_NONE_MATCH)?);
        match (wanted, unwanted) {
            (None, None) => Ok(Precondition::None),
            (Some(tags), None) if tags == ["*"] => Ok(Precondition::Exists),
            (Some(tags), None) => {
                // A tag that is weak, or of another form, is none of ours.
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

    /// The tags of all headers of a name.
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

    /// The names that agents get in their own environment, if the request is about agents.
    async fn env_names(&self, kind: CatalogKind) -> Result<Option<EnvNames>, Problem> {
        match kind {
            CatalogKind::Agent => Ok(Some(self.control()?.env_names(&self.workspace()?).await?)),
            CatalogKind::Server | CatalogKind::Capability => Ok(None),
        }
    }

    async fn written(&self, kind: CatalogKind, written: &CatalogWritten) -> Answered {
        let CatalogWritten { object, was_there, warnings } = written;
        let env = self.env_names(kind).await?;
        let mut told = with_env(shown(object), object, env.as_ref());
        let gates = match kind {
            CatalogKind::Server => {
                let definition = object.definition.as_ref().unwrap_or(&Value::Null);
                self.gates_unmatched(&object.id, definition).await?
            }
            CatalogKind::Agent | CatalogKind::Capability => Vec::new(),
        };
        told["warnings"] = warnings.iter().chain(&gates).map(|one| json!(one)).collect();
        let status = if *was_there { StatusCode::OK } else { StatusCode::CREATED };
        let mut response = document(status, &told);
        if !was_there {
            let own = self.parts.uri.path();
            let place = match self.parts.method == Method::POST {
                // Ids need no escapes.
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

pub(super) fn with_tag(mut response: respond::Response, tag: &str) -> respond::Response {
    if let Ok(tag) = HeaderValue::from_str(&format!("\"{tag}\"")) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}

/// The members of a server that an author may know: names and what attaching takes (X-D12).
const MANIFEST: [&str; 7] = [
    "id",
    "name",
    "description",
    "config_schema",
    "tool_scopes",
    "resource_scopes",
    "prompt_scopes",
];

/// The members of an attachment that are no value.
const ATTACHED: [&str; 3] = ["ref", "optional", "tools"];

/// An object; of a server the part that authors see, and of an agent the part that runners see.
fn seen(kind: CatalogKind, object: &CatalogObject, is_whole: bool) -> Value {
    let mut told = shown(object);
    if is_whole {
        return told;
    }
    if let Some(members) = told["definition"].as_object_mut() {
        match kind {
            CatalogKind::Server => members.retain(|name, _| MANIFEST.contains(&name.as_str())),
            CatalogKind::Agent | CatalogKind::Capability => {
                let attached = members.get_mut("mcpServers").and_then(Value::as_object_mut);
                let each = attached.into_iter().flat_map(|all| all.values_mut());
                for members in each.filter_map(Value::as_object_mut) {
                    members.retain(|name, _| ATTACHED.contains(&name.as_str()));
                }
            }
        }
    }
    // Faults of the hidden members would reveal them.
    if let Some(members) = told.as_object_mut() {
        members.remove("errors");
    }
    told
}

/// Says of an agent that it holds credentials which the gateway does not keep from it (X-E60).
fn with_env(mut shown: Value, object: &CatalogObject, env: Option<&EnvNames>) -> Value {
    if let Some(env) = env {
        shown["agent_env_names"] = json!(env.of_agent(&object.id));
    }
    shown
}

fn shown(object: &CatalogObject) -> Value {
    let CatalogObject { id, definition, revision, tag, .. } = object;
    let mut shown = json!({
        "id": id,
        "definition": definition,
        "revision": revision,
        "etag": format!("\"{tag}\""),
        "created_at": Timestamp::new(object.created_at).to_string(),
        "updated_at": Timestamp::new(object.updated_at).to_string(),
        "updated_by": object.updated_by,
    });
    if !object.errors.is_empty() {
        shown["errors"] = json!(object.errors);
    }
    shown
}
