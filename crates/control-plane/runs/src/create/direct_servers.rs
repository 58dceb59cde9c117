//! Direct mode: a run's servers with all values, for a runner that starts them itself (O24).

use std::fmt;

use narthex_catalog::{OpenError, Opening, ResolvedServer};
use narthex_model::Alias;
use serde_json::{Map, Value, json};

/// The servers of a run by alias, each with type, place and config with all values, including
/// secrets. They belong only into the answer to the creator or the claimer of the run.
#[derive(Clone, Default)]
pub struct DirectServers(Map<String, Value>);

impl DirectServers {
    /// The servers with their values, for the answer.
    #[must_use]
    pub fn expose(&self) -> &Map<String, Value> {
        &self.0
    }

    /// Direct servers with the built-in server, which every run has.
    pub(crate) fn new(built_in_url: Option<&str>) -> Self {
        let mut servers = Map::new();
        if let Some(url) = built_in_url {
            let built_in = json!({ "type": "http", "url": url, "config": {} });
            servers.insert(Alias::built_in().to_string(), built_in);
        }
        Self(servers)
    }

    pub(crate) fn add(
        &mut self,
        server: &ResolvedServer,
        opening: Opening<'_>,
    ) -> Result<(), OpenError> {
        let mut payload = server.payload(opening)?;
        if server.is_built_in() {
            at_own_endpoint(&mut payload, &server.alias);
        }
        self.0.insert(server.alias.to_string(), payload);
        Ok(())
    }

    /// The aliases, in alphabetical order.
    pub(crate) fn aliases(&self) -> Vec<&str> {
        let mut aliases: Vec<_> = self.0.keys().map(String::as_str).collect();
        aliases.sort_unstable();
        aliases
    }
}

/// Replaces the built-in server's own name in the address by the alias: the endpoint of the alias
/// has the tools that start agents.
fn at_own_endpoint(payload: &mut Value, alias: &Alias) {
    let url = payload["url"].as_str().and_then(|url| url.rsplit_once('/'));
    if let Some(url) = url.map(|(endpoints, _name)| format!("{endpoints}/{alias}")) {
        payload["url"] = url.into();
    }
}

impl fmt::Debug for DirectServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DirectServers").field(&self.aliases()).finish()
    }
}
