//! The whole state of the fixture, and the values that several endpoints derive from it.

use serde_json::Value;

use super::{
    books::{Books, Client, Grant},
    quirks::{Quirks, WrongResource},
    settings::Settings,
    signer::Signer,
};

/// The state, behind one lock.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) settings: Settings,
    pub(super) books: Books,
    /// The origins of the MCP server and the issuers.
    pub(super) origins: Vec<String>,
    /// The origin that redirects lead to.
    pub(super) elsewhere: String,
    /// The keys of the issuers.
    pub(super) signers: Vec<Signer>,
    pub(super) now_ms: u64,
}

impl Site {
    pub(super) fn quirks(&self) -> &Quirks {
        &self.settings.quirks
    }

    pub(super) fn now_s(&self) -> u64 {
        self.now_ms / 1000
    }

    /// The address of the MCP server.
    pub(super) fn mcp_url(&self) -> String {
        format!("{}{}", self.origins[0], self.settings.mcp_path)
    }

    /// The paths of all MCP servers.
    pub(super) fn mcp_paths(&self) -> impl Iterator<Item = &str> {
        let others = self.settings.other_mcp_paths.iter().map(String::as_str);
        std::iter::once(self.settings.mcp_path.as_str()).chain(others)
    }

    /// The `resource` in the metadata of the MCP server with this path.
    pub(super) fn resource(&self, path: &str) -> String {
        match self.quirks().wrong_resource {
            None => format!("{}{path}", self.origins[0]),
            Some(WrongResource::OtherOrigin) => format!("{}{path}", self.elsewhere),
            Some(WrongResource::OtherPath) => format!("{}/other", self.origins[0]),
            Some(WrongResource::Parent) => self.origins[0].clone(),
        }
    }

    /// The identifier of an issuer, which is the address of its endpoints too.
    pub(super) fn issuer(&self, number: usize) -> String {
        let issuer = &self.settings.issuers[number];
        format!("{}{}", self.origins[issuer.origin], issuer.path)
    }

    /// The identifier of an issuer as its own metadata and tokens spell it.
    pub(super) fn spelt_issuer(&self, number: usize) -> String {
        let slash = if self.quirks().metadata_trailing_slash { "/" } else { "" };
        self.issuer(number) + slash
    }

    /// A client of an issuer, registered in any way and not forgotten.
    pub(super) fn client(&self, issuer: usize, id: &str) -> Option<Client> {
        let by_hand = self.settings.clients.iter().cloned();
        let by_hand =
            by_hand.map(|settings| Client { settings, ends_ms: None, secret_ends_ms: None });
        let registered = self.books.registered.iter().cloned();
        let mut all = by_hand.chain(registered);
        all.find(|client| {
            let is_known = client.ends_ms.is_none_or(|ends| self.now_ms < ends);
            is_known && client.settings.issuer == issuer && client.settings.id == id
        })
    }

    /// The rights of a live access token, opaque or signed.
    pub(super) fn holder(&self, token: &str) -> Option<&Grant> {
        self.books.live(token, self.now_ms)
    }

    /// The keys that sign assertions and subject tokens.
    pub(super) fn believed_keys(&self) -> Vec<Value> {
        let own = self.signers.iter().map(Signer::jwk);
        own.chain(self.settings.trusted_keys.iter().cloned()).collect()
    }

    /// True if the quirks have every token be for all MCP servers.
    pub(super) fn has_one_audience(&self) -> bool {
        let quirks = self.quirks();
        quirks.ignores_resource || quirks.refuses_resource_with_scope || quirks.slack_like
    }

    /// The audience of a token for these resources, or the fault of the request.
    pub(super) fn audience(
        &self,
        resources: Vec<String>,
        has_scope: bool,
    ) -> Result<Vec<String>, String> {
        if self.quirks().refuses_resource_with_scope && has_scope && !resources.is_empty() {
            return Err("AADSTS9010010: The resource parameter provided in the request doesn't \
                        match with the requested scopes."
                .to_owned());
        }
        if self.has_one_audience() {
            let all = self.mcp_paths().map(|path| format!("{}{path}", self.origins[0]));
            return Ok(all.collect());
        }
        let own = &self.origins[0];
        let foreign = resources.iter().find(|resource| !resource.starts_with(own.as_str()));
        match foreign {
            Some(foreign) => Err(format!("this server knows no resource {foreign}")),
            None => Ok(resources),
        }
    }

    /// The granted scopes for a request, or the scopes that are not known.
    pub(super) fn granted(&self, requested: Option<&str>) -> Result<Vec<String>, String> {
        let requested = words(requested.unwrap_or_default());
        let is_unknown = |scope: &&String| {
            !self.settings.scopes.contains(scope) && !self.settings.required_scopes.contains(scope)
        };
        let unknown: Vec<_> = requested.iter().filter(is_unknown).cloned().collect();
        if !unknown.is_empty() {
            return Err(format!("unknown scopes: {}", unknown.join(" ")));
        }
        let mut granted = requested;
        if granted.is_empty() {
            granted.clone_from(&self.settings.required_scopes);
        }
        if let Some(only) = &self.quirks().grants_only {
            granted.retain(|scope| only.contains(scope));
        }
        Ok(granted)
    }
}

/// The scopes of a list with blanks or commas.
pub(super) fn words(list: &str) -> Vec<String> {
    let words = list.split([' ', ',']).filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}
