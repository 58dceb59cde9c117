//! A server to which humans sign in, opened outside of runs.

use std::collections::BTreeMap;

use narthex_model::{Alias, Gates, HttpTarget, SecretName};

use super::{OpenError, Opener, Opening, ResolvedServer, ResolvedTarget};
use crate::{
    server::{ServerEntry, Shape},
    template::ConfigValue,
};

impl ServerEntry {
    /// The address of a server to which humans sign in, and its authentication, for a sign-in
    /// outside of runs. `None` for other servers.
    ///
    /// # Errors
    /// The first value that is not available, such as a part of the address that only runs have.
    pub fn sign_in(&self, opening: Opening<'_>) -> Result<Option<HttpTarget>, OpenError> {
        let (http, is_sse) = match &self.shape {
            Shape::Http(http) => (http, false),
            Shape::Sse(http) => (http, true),
            Shape::Stdio(_) => return Ok(None),
        };
        let Ok(alias) = Alias::new(self.id.as_str()) else { return Ok(None) };
        if !self.auth.is_per_user() {
            return Ok(None);
        }
        let (url, auth) = (http.url.clone(), self.auth.clone());
        let server = ResolvedServer {
            alias,
            reference: self.id.clone(),
            target: ResolvedTarget::Http { url: url.clone(), is_sse, auth: auth.clone() },
            config: BTreeMap::new(),
            omitted: Vec::new(),
            settings: self.settings.clone(),
            tools: Vec::new(),
            gates: Gates::default(),
            is_optional: false,
        };
        let opener = Opener { server: &server, opening };
        Ok(Some(HttpTarget {
            url: opener.url(&url)?,
            is_sse,
            headers: BTreeMap::new(),
            auth: opener.auth(&auth, &mut Vec::new())?,
        }))
    }

    /// The secrets of a sign-in by humans.
    pub fn sign_in_secrets(&self) -> impl Iterator<Item = &SecretName> {
        let texts = self.auth.texts().into_iter().filter(|_| self.auth.is_per_user());
        texts.filter_map(|(_, text)| match &text.0 {
            ConfigValue::Secret(name) => Some(name),
            ConfigValue::Tree(_) | ConfigValue::Removed => None,
        })
    }
}
