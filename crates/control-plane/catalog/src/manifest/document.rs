//! A document of a workspace, or one agent, that contains manifests.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{ManifestFault, TakenApart, is_manifest, places::Places, take_apart};

/// A document without servers inside its agents, with the written place of each part.
#[derive(Debug, Clone)]
pub struct ManifestDocument {
    /// The usable parts: a faulty part is left out.
    pub plain: Value,
    /// All parts that cannot be used, with their places in the whole text.
    pub faults: Vec<ManifestFault>,
    /// Notices for a person, with their places in the whole text.
    pub notices: Vec<ManifestFault>,
    /// The servers that were inside agents, by id, each with the name of its agent, as in
    /// `made_by`. The caller that stores them checks that no other server has the id.
    pub inside: BTreeMap<String, String>,
    places: Places,
}

impl ManifestDocument {
    /// Splits manifests among the `agents` of a document; its `servers` then include those that
    /// were inside. `None` if no agent is a manifest, or the value is no such document.
    #[must_use]
    pub fn of_workspace(mut document: Value) -> Option<Self> {
        let agents = document.get_mut("agents").and_then(Value::as_array_mut)?;
        if !agents.iter().any(is_manifest) {
            return None;
        }
        let agents: Vec<_> = agents.iter_mut().map(Value::take).map(take_apart).collect();
        let servers = document.as_object_mut()?.entry("servers").or_insert_with(|| json!([]));
        if servers.is_null() {
            *servers = json!([]);
        }
        // A value that is no list is refused where it is read.
        let own = servers.as_array().map(Vec::len);
        let mut whole = Self::empty();
        let (mut further, mut plain) = (Vec::new(), Vec::new());
        for (index, taken) in agents.into_iter().enumerate() {
            let next = own.unwrap_or_default() + further.len();
            let servers = whole.add(&format!("agents[{index}]"), next, &taken);
            further.extend(servers);
            plain.push(taken.agent);
        }
        if let Some(servers) = document["servers"].as_array_mut() {
            servers.extend(further);
        }
        document["agents"] = plain.into();
        whole.plain = document;
        Some(whole)
    }

    /// Converts one agent, without its servers. `None` if the value is no manifest.
    #[must_use]
    pub fn of_agent(agent: Value) -> Option<Self> {
        if !is_manifest(&agent) {
            return None;
        }
        let TakenApart { agent, faults, notices, places, .. } = take_apart(agent);
        Some(Self { plain: agent, faults, notices, inside: BTreeMap::new(), places })
    }

    /// The place in the written text for a place in the result; `None` if both are the same.
    #[must_use]
    pub fn written(&self, place: &str) -> Option<String> {
        self.places.written(place)
    }

    fn empty() -> Self {
        let (faults, notices) = (Vec::new(), Vec::new());
        let (inside, places) = (BTreeMap::new(), Places::default());
        Self { plain: Value::Null, faults, notices, inside, places }
    }

    /// Adds an agent at a place, and returns its servers, whose indexes begin at `next`.
    fn add(&mut self, at: &str, next: usize, taken: &TakenApart) -> Vec<Value> {
        let below = |one: &ManifestFault| {
            let field = format!("{at}.{}", one.field);
            ManifestFault { field, ..one.clone() }
        };
        self.faults.extend(taken.faults.iter().map(below));
        self.notices.extend(taken.notices.iter().map(below));
        self.places.add_part(&[at.to_owned()], &taken.places.below(at));
        let text = |of: &Value| of.as_str().unwrap_or_default().to_owned();
        for (index, inside) in taken.servers.iter().enumerate() {
            let id = text(&inside.server["id"]);
            let made = [format!("servers[{}]", next + index), format!("servers.{id}")];
            for made in &made {
                self.places.add(made.clone(), format!("{at}.{}", inside.at));
            }
            self.places.add_part(&made, &inside.places.below(at));
            self.inside.insert(id, taken.name.clone());
        }
        taken.servers.iter().map(|inside| inside.server.clone()).collect()
    }
}
