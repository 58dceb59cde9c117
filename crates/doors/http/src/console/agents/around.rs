//! The objects of the workspace that a capability or an agent can refer to.

use std::collections::BTreeMap;

use narthex_control::CatalogObject;
use narthex_model::CatalogKind;
use serde_json::{Map, Value};

use crate::{console::viewer::Viewer, problem::Problem};

/// More objects than a workspace can have of a kind.
pub(super) const ALL: u32 = 10_000;

/// The neighbours of an object.
#[derive(Debug, Default)]
pub(super) struct Around {
    pub(super) servers: BTreeMap<String, Server>,
    /// The names of capabilities, sorted.
    pub(super) capabilities: Vec<String>,
    /// The names of secrets, and true for those that are set.
    pub(super) secrets: Vec<(String, bool)>,
    /// The names of the executors that this daemon has for the workspace.
    pub(super) executors: Vec<String>,
}

/// The part of a server that authors see (X-D12).
#[derive(Debug, Default)]
pub(super) struct Server {
    pub(super) name: String,
    pub(super) about: String,
    /// The keys that it declares; `None` if it takes any.
    pub(super) schema: Option<Map<String, Value>>,
}

impl Around {
    /// Reads them. Only authors may.
    pub(super) async fn read(viewer: &Viewer<'_>, kind: CatalogKind) -> Result<Self, Problem> {
        let (control, workspace) = (viewer.control(), &viewer.workspace);
        let servers = control.catalog_list(workspace, CatalogKind::Server, "", ALL).await?;
        let servers = servers.items.into_iter().map(|one| (one.id.clone(), server(one)));
        let capabilities = match kind {
            CatalogKind::Agent => {
                let kind = CatalogKind::Capability;
                control.catalog_list(workspace, kind, "", ALL).await?.items
            }
            CatalogKind::Server | CatalogKind::Capability => Vec::new(),
        };
        // Without a vault there are no secrets to refer to.
        let secrets = control.secrets(workspace).await.unwrap_or_default();
        let executors = control.executors().of_workspace(workspace);
        let secret = |one: &narthex_model::SecretSummary| (one.name.to_string(), one.is_set());
        Ok(Self {
            servers: servers.collect(),
            capabilities: capabilities.into_iter().map(|one| one.id).collect(),
            secrets: secrets.iter().map(secret).collect(),
            executors: executors.iter().map(ToString::to_string).collect(),
        })
    }

    /// The schema of a key; an empty one if the server declares none.
    pub(super) fn keys(&self, server: &str) -> impl Iterator<Item = (&String, &Value)> {
        let schema = self.servers.get(server).and_then(|server| server.schema.as_ref());
        schema.into_iter().flatten()
    }
}

fn server(object: CatalogObject) -> Server {
    let definition = object.definition.unwrap_or_default();
    let text = |member: &str| definition[member].as_str().unwrap_or_default().to_owned();
    Server {
        name: text("name"),
        about: text("description"),
        schema: definition["config_schema"].as_object().cloned(),
    }
}
