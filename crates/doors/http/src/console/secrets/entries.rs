//! The secrets of a workspace, each with the things that refer to it.

use std::collections::BTreeMap;

use narthex_console::{pages::secrets::User, parts::Words};
use narthex_model::{EnvBindingId, EnvScope, SecretName, SecretSummary};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::{
    console::{answer::nothing, viewer::Viewer},
    problem::Problem,
    secret_users,
};

/// More bindings than a workspace can have.
const BINDINGS: u32 = 10_000;

/// The secrets that are set, and those that something refers to.
pub(super) struct Entries {
    pub(super) all: BTreeMap<SecretName, Entry>,
    /// True if the human may see which parts of the catalog refer to secrets.
    pub(super) sees_users: bool,
}

/// A secret.
#[derive(Default)]
pub(super) struct Entry {
    /// The facts about its value; `None` without one.
    pub(super) set: Option<SecretSummary>,
    pub(super) users: Vec<User>,
}

impl Entries {
    /// Reads all of them, by as many queries whatever their number.
    pub(super) async fn read(viewer: &Viewer<'_>) -> Result<Self, Problem> {
        let (control, workspace) = (viewer.control(), &viewer.workspace);
        let mut all: BTreeMap<SecretName, Entry> = BTreeMap::new();
        for one in control.secrets(workspace).await? {
            let entry = all.entry(one.name.clone()).or_default();
            entry.set = one.is_set().then_some(one);
        }
        let sees_users = viewer.principal.may_read_catalog(workspace);
        if sees_users {
            for (name, places) in secret_users::uses(viewer.door, control, workspace).await? {
                let Ok(name) = SecretName::new(&name) else { continue };
                let entry = all.entry(name).or_default();
                places.iter().for_each(|place| entry.add(user(viewer, place)));
            }
        }
        let bindings = control.env_bindings(workspace, ("", ""), "", BINDINGS).await?;
        for one in bindings.items {
            all.entry(one.secret).or_default().add(bound_user(viewer, &one.id));
        }
        // Names of cleared secrets are stored for the numbers of later versions.
        all.retain(|_, entry| entry.set.is_some() || !entry.users.is_empty());
        Ok(Self { all, sees_users })
    }
}

impl Entry {
    /// Adds a thing once, also if it refers to the secret at several places.
    fn add(&mut self, user: User) {
        if self.users.iter().all(|known| known.what != user.what) {
            self.users.push(user);
        }
    }
}

/// The secret of the path. A text that is no name is absent.
pub(super) fn named(viewer: &Viewer<'_>) -> Result<SecretName, Problem> {
    SecretName::new(&viewer.segment(0)).map_err(|_unfit| nothing())
}

/// True if a secret has a value.
pub(super) async fn is_set(viewer: &Viewer<'_>, name: &SecretName) -> Result<bool, Problem> {
    let all = viewer.control().secrets(&viewer.workspace).await?;
    Ok(all.iter().any(|one| one.name == *name && one.is_set()))
}

/// The thing at a place that refers to a secret.
fn user(viewer: &Viewer<'_>, place: &str) -> User {
    let object = Object::of(place);
    let Object { kind, id, file } = &object;
    let what = match (*kind, file) {
        ("servers", Some(file)) => format!("server {id} of {file}"),
        ("servers", None) => format!("server {id} of the catalog"),
        ("capabilities", _) => format!("capability {id}"),
        ("agents", _) => format!("agent {id}"),
        ("channels", _) => format!("channel {id}"),
        ("webhooks", _) => format!("webhook {id}"),
        _ => place.to_owned(),
    };
    User { what: Words::new(&what), href: href(viewer, &object) }
}

/// A place as a whole, such as `agents.reader.mcpServers.docs.config.key`, with its page.
pub(super) fn whole(viewer: &Viewer<'_>, place: &str) -> User {
    User { what: Words::new(place), href: href(viewer, &Object::of(place)) }
}

/// The agents that have a secret in their own environment, in words.
pub(super) fn bound(id: &EnvBindingId) -> Words {
    let name = id.name.as_str();
    Words::new(&match &id.scope {
        EnvScope::Agent(agent) => format!("agent {agent}, as {name}"),
        EnvScope::PreviewEnvironment(preview) => format!("preview {preview}, as {name}"),
        EnvScope::Workspace => format!("all agents, as {name}"),
    })
}

fn bound_user(viewer: &Viewer<'_>, id: &EnvBindingId) -> User {
    let href = match &id.scope {
        EnvScope::Agent(agent) => page(viewer, "agents", agent.as_str()),
        EnvScope::PreviewEnvironment(_) | EnvScope::Workspace => None,
    };
    User { what: Words::new(&format!("environment of {}", bound(id))), href }
}

/// The object of a place.
#[derive(Debug, PartialEq, Eq)]
struct Object<'p> {
    kind: &'p str,
    id: &'p str,
    /// The file, for a server of one.
    file: Option<String>,
}

impl<'p> Object<'p> {
    /// The object in `agents.reader.mcpServers.docs.config.key`, in `mcp.json:servers.docs.env.KEY`
    /// or in `settings.json:mcp.servers.docs.env.KEY`.
    fn of(place: &'p str) -> Self {
        let (file, rest) = match place.split_once(".json:") {
            Some((file, rest)) => {
                (Some(format!("{file}.json")), rest.strip_prefix("mcp.").unwrap_or(rest))
            }
            None => (None, place),
        };
        let (kind, rest) = rest.split_once('.').unwrap_or((rest, ""));
        let id = rest.split(['.', '[']).next().unwrap_or(rest);
        // Files of clients name the list of servers otherwise.
        let kind = if file.is_some() { "servers" } else { kind };
        Self { kind, id, file }
    }
}

/// The page of an object, if there is one that the human may open.
fn href(viewer: &Viewer<'_>, object: &Object<'_>) -> Option<String> {
    let Object { kind, id, file } = object;
    match (*kind, file) {
        ("servers", Some(_)) => viewer.sees_servers().then(|| {
            let id = utf8_percent_encode(id, NON_ALPHANUMERIC);
            viewer.path(&format!("servers?q={id}"))
        }),
        ("servers", None) => page(viewer, "catalog", id),
        ("capabilities" | "agents", _) => page(viewer, kind, id),
        _ => None,
    }
}

/// The page of one of a list, if the list is in the human's navigation.
pub(super) fn page(viewer: &Viewer<'_>, list: &str, id: &str) -> Option<String> {
    let list = viewer.in_nav(list)?;
    Some(format!("{list}/{}", utf8_percent_encode(id, NON_ALPHANUMERIC)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_lead_to_their_objects() {
        let table = [
            ("agents.reader.mcpServers.docs.config.key", "agents", "reader", None),
            ("capabilities.search", "capabilities", "search", None),
            ("servers.docs[0].key", "servers", "docs", None),
            ("mcp.json:servers.docs.env.KEY", "servers", "docs", Some("mcp.json")),
            ("settings.json:mcp.servers.docs.env.KEY", "servers", "docs", Some("settings.json")),
            ("mcp.json:mcpServers.docs.env.KEY", "servers", "docs", Some("mcp.json")),
            ("", "", "", None),
        ];
        for (place, kind, id, file) in table {
            let file = file.map(str::to_owned);
            assert_eq!(Object::of(place), Object { kind, id, file }, "{place}");
        }
    }
}
