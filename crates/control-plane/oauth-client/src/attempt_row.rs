//! An open attempt as the store has it, so that any process can finish it (C16).

use narthex_model::Secret;
use narthex_oauth::client::Attempt;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::{
    grant_row::{Client, StoredClient},
    store::GrantKey,
};

/// An attempt with all that finishes it.
#[derive(Debug)]
pub(crate) struct OpenedAttempt {
    pub(crate) attempt: Attempt,
    pub(crate) key: GrantKey,
    pub(crate) alias: String,
    /// The address of the MCP server.
    pub(crate) server: Url,
    /// Further addresses of an operator's choice.
    pub(crate) chosen: Vec<Url>,
    pub(crate) client: Client,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    attempt: String,
    key: GrantKey,
    alias: String,
    server: String,
    chosen: Vec<String>,
    client: StoredClient,
}

impl OpenedAttempt {
    pub(crate) fn to_stored(&self) -> Secret {
        let Self { attempt, key, alias, server, chosen, client } = self;
        let stored = Stored {
            attempt: attempt.to_stored().expose().to_owned(),
            key: key.clone(),
            alias: alias.clone(),
            server: server.to_string(),
            chosen: chosen.iter().map(Url::to_string).collect(),
            client: client.to_stored(),
        };
        // All members are texts.
        Secret::new(serde_json::to_string(&stored).unwrap_or_default())
    }

    /// Reads a text of [`Self::to_stored`]; `None` for others.
    pub(crate) fn from_stored(text: &Secret) -> Option<Self> {
        let stored: Stored = serde_json::from_str(text.expose()).ok()?;
        let chosen = stored.chosen.iter().filter_map(|text| Url::parse(text).ok());
        Some(Self {
            attempt: Attempt::from_stored(&Secret::new(stored.attempt)).ok()?,
            key: stored.key,
            alias: stored.alias,
            server: Url::parse(&stored.server).ok()?,
            chosen: chosen.collect(),
            client: Client::from_stored(stored.client),
        })
    }
}
