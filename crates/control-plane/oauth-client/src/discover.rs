//! Discovery of the authorization server of an MCP server, over HTTP.

use narthex_oauth::{
    challenge::Bearer,
    client::{Discovery, Flow, Found, Settings, Step},
};
use url::Url;

use crate::{SignInError, fetch::Fetcher, guard::Guard};

/// A search for the authorization server of one MCP server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Search<'a> {
    pub(crate) server: &'a Url,
    /// The challenge of a refusal, if there was one.
    pub(crate) challenge: Option<&'a Bearer>,
    pub(crate) flow: Flow,
    pub(crate) settings: &'a Settings,
}

impl Search<'_> {
    /// Asks for all documents that are needed.
    ///
    /// # Errors
    /// When no authorization server can be used.
    pub(crate) async fn run(self, fetcher: &Fetcher, guard: &Guard) -> Result<Found, SignInError> {
        let Self { server, challenge, flow, settings } = self;
        let (mut discovery, mut step) = Discovery::begin(server, challenge, flow, settings.clone());
        loop {
            step = match step {
                Step::Get(url) => discovery.answer(&fetcher.get(guard, &url).await.reply()),
                Step::Found(found) => return Ok(*found),
                Step::Failed(error) => return Err(error.into()),
            };
        }
    }
}
