//! The registry of the settings, for pages of the console.

use narthex_client::{
    FailureKind,
    cli::PublicRegistryArgs,
    commands::search::{RegistrySettings, words_of},
    public_registry::{
        client::PublicRegistry,
        document::{ListedServer, ServerStatus},
        inputs::Question,
        ways::{Way, ways},
    },
};
use narthex_http::{
    FindFault, Finding, FoundInput, FoundServer, FoundServers, FoundWay, PublicServers,
};
use narthex_model::ErrorKind;

use crate::Failure;

/// The registry that commands search, asked by the daemon.
#[derive(Debug)]
pub(crate) struct Registry(pub(crate) RegistrySettings);

impl Registry {
    fn client(&self) -> Result<PublicRegistry, Failure> {
        let args = PublicRegistryArgs { registry: None, offline: false };
        PublicRegistry::new(self.0.address(&args)?, self.0.proxies.clone())
    }
}

impl PublicServers for Registry {
    fn address(&self) -> String {
        match self.client() {
            Ok(client) => client.address().to_string(),
            Err(failure) => failure.message,
        }
    }

    fn search<'a>(&'a self, words: &'a str) -> Finding<'a, FoundServers> {
        Box::pin(async move {
            let words = words_of(&[words.to_owned()]).map_err(fault)?;
            let found = self.client().map_err(fault)?.search(&words).await.map_err(fault)?;
            let servers = found.listings.iter().map(|listing| server(&listing.listed));
            Ok(FoundServers {
                servers: servers.collect(),
                is_cut: found.is_cut,
                unread: found.unread,
            })
        })
    }

    fn describe<'a>(&'a self, name: &'a str, version: &'a str) -> Finding<'a, FoundServer> {
        Box::pin(async move {
            let client = self.client().map_err(fault)?;
            let listing = client.version(name, version).await.map_err(fault)?;
            Ok(server(&listing.listed))
        })
    }
}

fn fault(failure: Failure) -> FindFault {
    let kind = match failure.kind {
        FailureKind::Usage => ErrorKind::Invalid,
        FailureKind::Operation(kind) => kind,
        FailureKind::Call(_) => ErrorKind::Unavailable,
    };
    FindFault { kind, sentence: failure.message }
}

fn server(listed: &ListedServer) -> FoundServer {
    let described = &listed.server;
    let (usable, unusable) = ways(described);
    let status = match (listed.status(), listed.status_message()) {
        (ServerStatus::Active, _) => None,
        (status, Some(why)) => Some(format!("{}: {why}", status.as_str())),
        (status, None) => Some(status.as_str().to_owned()),
    };
    let way = |way: &Way| FoundWay {
        kind: way.kind.as_str(),
        target: way.target.clone(),
        inputs: way.questions().into_iter().map(input).collect(),
        draft: way.catalog_entry(described),
    };
    FoundServer {
        name: described.name.clone(),
        title: described.title.clone(),
        version: described.version.clone(),
        description: described.description.clone(),
        publisher: described.publisher().to_owned(),
        source: described.source(),
        website: described.website_url.clone(),
        status,
        ways: usable.iter().map(way).collect(),
        unusable: unusable.iter().map(|one| format!("{}: {}", one.what, one.why)).collect(),
    }
}

fn input(question: Question) -> FoundInput {
    let Question { name, place, description, is_required, is_secret, default, .. } = question;
    FoundInput { name, place, description, is_required, is_secret, default }
}
