//! The settings `oauth.clients`: apps that an operator has registered at providers, for all servers
//! that sign people in there.

use narthex_model::meant_hint;
use narthex_oauth_client::{IssuerRule, SharedClient, SharedClients};
use toml::{Table, Value};

use super::reading::{Reading, is_name, variable};

/// Prefix of the variable with a client's secret; the client's name follows.
pub(super) const SECRET: &str = "NARTHEX_OAUTH_SECRET_";
/// All members of a client.
const MEMBERS: [&str; 5] = ["issuer", "client_id", "client_secret_file", "servers", "workspaces"];

/// Reads the table `oauth.clients`; all faults are added.
pub(super) fn read(
    file: &str,
    table: &Table,
    env: &dyn Fn(&str) -> Option<String>,
    faults: &mut Vec<String>,
) -> SharedClients {
    let mut all = Vec::new();
    for (name, value) in table {
        let place = format!("{file}: `oauth.clients.{name}`");
        if !is_name(name) {
            faults.push(format!("{place}: a name is 1 to 64 of a-z, 0-9 and `-`"));
        }
        let Value::Table(table) = value else {
            faults.push(format!("{place} is a section: write it as [oauth.clients.{name}]"));
            continue;
        };
        all.extend(Reading { place, table, faults }.client(name, env));
    }
    SharedClients::new(all)
}

impl Reading<'_> {
    fn client(&mut self, name: &str, env: &dyn Fn(&str) -> Option<String>) -> Option<SharedClient> {
        for member in self.table.keys().filter(|member| !MEMBERS.contains(&member.as_str())) {
            let hint = meant_hint(member, MEMBERS);
            self.fault(&format!("`{member}` is not a setting{hint}"));
        }
        let (issuer, client_id) = (self.needed("issuer"), self.needed("client_id"));
        let issuer = issuer.and_then(|text| match IssuerRule::parse(&text) {
            Ok(issuer) => Some(issuer),
            Err(error) => {
                self.fault(&format!("`issuer`: {error}"));
                None
            }
        });
        let client_secret = self.secret(&variable(SECRET, name), env);
        let (servers, workspaces) = (self.narrowing("servers"), self.narrowing("workspaces"));
        let servers = servers.iter().map(|one| one.to_ascii_lowercase()).collect();
        Some(SharedClient {
            name: name.to_owned(),
            issuer: issuer?,
            client_id: client_id?,
            client_secret,
            servers,
            workspaces,
        })
    }

    /// A list that admits all if it is missing. An empty one admits none, and is a fault.
    fn narrowing(&mut self, member: &str) -> Vec<String> {
        let list = self.list(member);
        if self.table.contains_key(member) && list.is_empty() {
            self.fault(&format!("`{member}` is empty: name some, or leave it out to admit all"));
        }
        list
    }
}

#[cfg(test)]
mod tests {
    use narthex_model::Secret;

    use super::*;

    fn reading(text: &str) -> (Vec<SharedClient>, Vec<String>) {
        let table = text.parse::<Table>().unwrap();
        let mut faults = Vec::new();
        let env = |name: &str| (name == "NARTHEX_OAUTH_SECRET_CHAT_APP").then(|| "s".to_owned());
        let clients = read("f", &table, &env, &mut faults);
        (clients.all().to_vec(), faults)
    }

    #[test]
    fn oauth_q6_all_settings_of_a_shared_client_are_read() {
        let (all, faults) = reading(
            "[chat-app]\nissuer = 'chat.example'\nclient_id = '12.34'\n\
             servers = ['MCP.chat.example']\nworkspaces = ['team']\n\
             [id]\nissuer = 'https://id.example/tenant'\nclient_id = 'app'\n",
        );
        assert_eq!(faults, Vec::<String>::new());
        let [chat, id] = all.as_slice() else { panic!("{all:?}") };
        assert_eq!(chat.issuer, IssuerRule::Host("chat.example".to_owned()));
        assert_eq!((chat.name.as_str(), chat.client_id.as_str()), ("chat-app", "12.34"));
        assert_eq!(chat.client_secret, Some(Secret::new("s")));
        assert_eq!(chat.servers, ["mcp.chat.example"]);
        assert_eq!(chat.workspaces, ["team"]);
        assert_eq!(id.issuer, IssuerRule::Exact("https://id.example/tenant".to_owned()));
        assert_eq!((&id.client_secret, id.servers.len()), (&None, 0));
    }

    #[test]
    fn oauth_q6_all_faults_of_shared_clients_are_reported_with_their_place() {
        let (all, faults) = reading(
            "plain = 1\n[a]\nissuer = 'http://id.example'\nclient_id = 'x'\nserver = 'y'\n\
             [b]\nclient_secret = 's'\nworkspaces = []\n[C]\nissuer = 'c.example'\n\
             client_id = 'x'\nclient_secret_file = '/nowhere/secret'\n",
        );
        assert_eq!(all.len(), 1);
        let text = faults.join("\n");
        for word in [
            "f: `oauth.clients.plain` is a section",
            "`oauth.clients.a`: `issuer`: it is neither an issuer",
            "`oauth.clients.a`: `server` is not a setting; did you mean `servers`?",
            "`oauth.clients.b`: `client_secret` is not a setting",
            "`oauth.clients.b`: `issuer` is missing",
            "`oauth.clients.b`: `client_id` is missing",
            "`oauth.clients.b`: `workspaces` is empty",
            "`oauth.clients.C`: a name is",
            "`oauth.clients.C`: `client_secret_file`: ",
        ] {
            assert!(text.contains(word), "no {word} in {text}");
        }
    }
}
