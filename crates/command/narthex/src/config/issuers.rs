//! The settings `oauth.issuers`: the company's own issuers, whose access tokens open the door.

use std::sync::Arc;

use narthex_control::{IssuerAgent, IssuerOptions};
use narthex_login::oidc::Client;
use narthex_model::{AgentName, WorkspaceId, meant_hint};
use narthex_oauth::{jwt::Algorithms, scopes::Scopes, server::TrustedIssuer};
use toml::{Table, Value};
use url::Url;

use super::reading::Reading;

/// All members of an issuer.
const MEMBERS: [&str; 7] =
    ["issuer", "audience", "jwks_uri", "clients", "scopes", "algorithms", "agent"];

/// Reads the table `oauth.issuers`; all faults are added.
pub(super) fn read(file: &str, table: &Table, faults: &mut Vec<String>) -> Vec<Arc<IssuerOptions>> {
    let mut all: Vec<Arc<IssuerOptions>> = Vec::new();
    for (name, value) in table {
        let place = format!("{file}: `oauth.issuers.{name}`");
        let Value::Table(table) = value else {
            faults.push(format!("{place} is a section: write it as [oauth.issuers.{name}]"));
            continue;
        };
        let mut reading = Reading { place, table, faults };
        let Some(issuer) = reading.issuer(name) else { continue };
        match all.iter().find(|one| one.trusted.issuer == issuer.trusted.issuer) {
            Some(other) => {
                let other = &other.name;
                reading.fault(&format!(
                    "`issuer` is the one of `oauth.issuers.{other}`: write one section for it"
                ));
            }
            None => all.push(Arc::new(issuer)),
        }
    }
    all
}

impl Reading<'_> {
    fn issuer(&mut self, name: &str) -> Option<IssuerOptions> {
        for member in self.table.keys().filter(|member| !MEMBERS.contains(&member.as_str())) {
            let hint = meant_hint(member, MEMBERS);
            self.fault(&format!("`{member}` is not a setting{hint}"));
        }
        let issuer = self.needed("issuer");
        let issuer = issuer.filter(|issuer| match Client::new(issuer, "", None) {
            Ok(_) => true,
            Err(error) => {
                self.fault(&format!("`issuer`: {error}"));
                false
            }
        });
        let (algorithms, scopes) = (self.algorithms(), self.needed_scopes());
        let (jwks_uri, agent) = (self.jwks_uri(), self.agent());
        let (audience, clients) = (self.text("audience"), self.clients());
        let trusted = TrustedIssuer { issuer: issuer?, algorithms };
        let usual = IssuerOptions::new(name.to_owned(), trusted);
        Some(IssuerOptions { jwks_uri, audience, clients, scopes, agent, ..usual })
    }

    /// The admitted clients. An empty list admits none, and is a fault.
    fn clients(&mut self) -> Option<Vec<String>> {
        self.table.get("clients")?;
        let clients = self.list("clients");
        if clients.is_empty() {
            self.fault("`clients` names no client: name some, or leave it out to admit all");
        }
        Some(clients)
    }

    fn algorithms(&mut self) -> Algorithms {
        let names = self.list("algorithms");
        if names.is_empty() {
            return Algorithms::default();
        }
        Algorithms::named(names.iter().map(String::as_str)).unwrap_or_else(|error| {
            self.fault(&format!("`algorithms`: {error}"));
            Algorithms::default()
        })
    }

    fn needed_scopes(&mut self) -> Scopes {
        let scopes = Scopes::read(&self.list("scopes").join(" "));
        scopes.unwrap_or_else(|_malformed| {
            self.fault("`scopes`: a scope has no blanks, quotes and backslashes");
            Scopes::default()
        })
    }

    /// The address of the keys, which decide who is believed.
    fn jwks_uri(&mut self) -> Option<Url> {
        let text = self.text("jwks_uri")?;
        // The rules are those of an issuer, except that the address can have a query.
        let bare = text.split('?').next().unwrap_or_default();
        let url = Url::parse(&text).ok().filter(|_| Client::new(bare, "", None).is_ok());
        if url.is_none() {
            self.fault("`jwks_uri` must be an https address (http on loopback)");
        }
        url
    }

    fn agent(&mut self) -> Option<IssuerAgent> {
        let text = self.text("agent")?;
        let read = text.split_once('/').and_then(|(workspace, agent)| {
            let (workspace, agent) = (WorkspaceId::new(workspace), AgentName::new(agent));
            Some(IssuerAgent { workspace: workspace.ok()?, agent: agent.ok()? })
        });
        if read.is_none() {
            self.fault("`agent`: write it as \"workspace/agent\"");
        }
        read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(text: &str) -> (Vec<Arc<IssuerOptions>>, Vec<String>) {
        let table = text.parse::<Table>().unwrap();
        let mut faults = Vec::new();
        (read("f", &table, &mut faults), faults)
    }

    #[test]
    fn door_r5_all_settings_of_an_issuer_are_read() {
        let (all, faults) = reading(
            "[corp]\nissuer = 'https://id.example/tenant'\naudience = 'api://narthex'\n\
             jwks_uri = 'https://keys.example/jwks?v=1'\nclients = ['desk']\nscopes = ['mcp']\n\
             algorithms = ['ES256']\nagent = 'team/reader'\n[other]\n\
             issuer = 'https://other.example'\n",
        );
        assert_eq!(faults, Vec::<String>::new());
        let [corp, other] = all.as_slice() else { panic!("{all:?}") };
        assert_eq!(corp.trusted.issuer, "https://id.example/tenant");
        assert_eq!(corp.trusted.algorithms.names(), ["ES256"]);
        assert_eq!(corp.audience.as_deref(), Some("api://narthex"));
        assert_eq!(corp.clients.as_deref(), Some(&["desk".to_owned()][..]));
        assert_eq!(corp.agent.as_ref().unwrap().agent.as_str(), "reader");
        assert!(other.clients.is_none() && other.agent.is_none() && other.scopes.is_empty());
    }

    #[test]
    fn door_r5_all_faults_of_issuers_are_reported_with_their_place() {
        let (all, faults) = reading(
            "plain = 1\n[a]\nissuer = 'http://id.example'\n[b]\nissuer = 'https://b.example'\n\
             algorithms = ['HS256']\nscopes = ['a\"']\nclients = []\nagent = 'reader'\n\
             jwks_uri = 'http://b.example/keys'\naudiences = 'x'\n[c]\n\
             issuer = 'https://b.example'\n[d]\naudience = 'x'\n",
        );
        assert_eq!(all.len(), 1);
        let text = faults.join("\n");
        for word in [
            "`oauth.issuers.plain` is a section",
            "`oauth.issuers.a`: `issuer`: the issuer must be an https",
            "`algorithms`: the algorithm is not supported",
            "`scopes`: a scope",
            "`clients` names no client",
            "workspace/agent",
            "`jwks_uri` must be an https",
            "`audiences` is not a setting; did you mean `audience`",
            "`oauth.issuers.c`: `issuer` is the one of `oauth.issuers.b`",
            "`oauth.issuers.d`: `issuer` is missing",
        ] {
            assert!(text.contains(word), "{word}: {text}");
        }
    }
}
