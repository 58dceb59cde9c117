//! The settings of signing in: the daemon's address for browsers, and OpenID providers.

use std::{collections::BTreeMap, net::SocketAddr};

use narthex_control::{LoginOptions, ProviderOptions};
use narthex_login::{
    PublicOrigin,
    oidc::{Admission, Claim, Client},
};
use narthex_model::{Role, Roles, WorkspaceId, meant_hint};
use narthex_oauth_client::SharedClients;
use toml::{Table, Value};
use url::Url;

use super::{
    oauth::DoorGiven,
    reading::{Reading, is_name, variable},
};

/// Prefix of the variable with narthex's password at a provider; the provider's name follows.
pub(crate) const SECRET: &str = "NARTHEX_OIDC_SECRET_";
/// The member with the servers that may have tokens for identities.
const SERVERS: &str = "exchange_servers";
/// All members of a provider.
const MEMBERS: [&str; 8] = [
    "issuer",
    "client_id",
    "client_secret_file",
    "email_domains",
    "claims",
    "roles",
    "keep_identity",
    SERVERS,
];

/// The sign-in of humans, as set in the settings.
#[derive(Debug, Clone, Default)]
pub(crate) struct SignIn {
    public_url: Option<PublicOrigin>,
    providers: Vec<ProviderOptions>,
    /// The door as a protected resource and an authorization server.
    door: DoorGiven,
    client_metadata_url: Option<Url>,
    shared_clients: SharedClients,
}

impl SignIn {
    /// The options; unset ones depend on the address of the listener, and on its encryption.
    #[must_use]
    pub(crate) fn options(&self, listen: SocketAddr, is_tls: bool) -> LoginOptions {
        let usual = || {
            let scheme = if is_tls { "https" } else { "http" };
            let url = format!("{scheme}://localhost:{}", listen.port());
            PublicOrigin::parse(&url).expect("localhost is a secure origin")
        };
        let origin = self.public_url.clone().unwrap_or_else(usual);
        let door = self.door.options(&origin, self.public_url.is_some(), listen);
        LoginOptions { providers: self.providers.clone(), door, ..LoginOptions::new(origin) }
    }

    /// The address of the pages, if it is set.
    #[must_use]
    pub(crate) fn public_url(&self) -> Option<&str> {
        self.public_url.as_ref().map(PublicOrigin::as_str)
    }

    /// The address of narthex's client id metadata document, if it is elsewhere.
    #[must_use]
    pub(crate) fn client_metadata_url(&self) -> Option<&Url> {
        self.client_metadata_url.as_ref()
    }

    /// The apps that an operator has registered at providers.
    #[must_use]
    pub(crate) fn shared_clients(&self) -> &SharedClients {
        &self.shared_clients
    }

    /// The same settings with registered apps.
    pub(super) fn with_shared_clients(self, shared_clients: SharedClients) -> Self {
        Self { shared_clients, ..self }
    }

    /// The same settings with the address of a client id metadata document; a fault is added.
    pub(super) fn with_client_metadata(
        mut self,
        given: Option<(&str, &str)>,
        faults: &mut Vec<String>,
    ) -> Self {
        let Some((text, source)) = given else { return self };
        let url = Url::parse(text)
            .ok()
            .filter(|url| url.scheme() == "https" && url.path() != "/" && url.fragment().is_none());
        if url.is_none() {
            faults.push(format!(
                "{source} is no address of a client id metadata document: write one that begins \
                 with https:// and has a path"
            ));
        }
        self.client_metadata_url = url;
        self
    }

    /// The same settings with those of the door. An issuer of the company has to be one at which
    /// humans sign in; a fault is added otherwise.
    pub(super) fn with_door(mut self, door: DoorGiven, faults: &mut Vec<String>) -> Self {
        for issuer in door.issuers() {
            let is_it = |one: &&ProviderOptions| one.client.issuer_text == issuer.trusted.issuer;
            let provider = self.providers.iter().find(is_it);
            let place = format!("`oauth.issuers.{}`", issuer.name);
            match provider {
                None => faults.push(format!(
                    "{place}: no provider of `signin.oidc` has this `issuer`, so that no account \
                     can belong to a token: add one, by which your people sign in once"
                )),
                Some(one) if issuer.audience.as_ref() == Some(&one.client.client_id) => {
                    faults.push(format!(
                        "{place}: `audience` is the `client_id` of `signin.oidc.{}`, so that ID \
                         tokens would open the door: give the API a name of its own at the issuer",
                        one.name
                    ));
                }
                Some(_) => {}
            }
        }
        self.door = door;
        self
    }

    /// The value of `Host` that browsers send.
    #[must_use]
    pub(crate) fn host(&self) -> Option<&str> {
        self.public_url.as_ref().map(PublicOrigin::authority)
    }
}

/// Reads the address of the pages and the table `signin.oidc`; all faults are added.
pub(crate) fn read(
    public_url: Option<(&str, &str)>,
    providers: Option<(&str, &Table)>,
    env: &dyn Fn(&str) -> Option<String>,
    faults: &mut Vec<String>,
) -> SignIn {
    let mut sign_in = SignIn::default();
    if let Some((text, source)) = public_url {
        match PublicOrigin::parse(text) {
            Ok(origin) => sign_in.public_url = Some(origin),
            Err(error) => faults.push(format!("{source}: {error}")),
        }
    }
    let Some((file, table)) = providers else { return sign_in };
    for (name, value) in table {
        let place = format!("{file}: `signin.oidc.{name}`");
        if !is_name(name) {
            faults.push(format!("{place}: a name is 1 to 64 of a-z, 0-9 and `-`"));
        }
        let Value::Table(table) = value else {
            faults.push(format!("{place} is a section: write it as [signin.oidc.{name}]"));
            continue;
        };
        let mut reading = Reading { place, table, faults };
        sign_in.providers.extend(reading.provider(name, env));
    }
    sign_in
}

impl Reading<'_> {
    fn provider(
        &mut self,
        name: &str,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Option<ProviderOptions> {
        for member in self.table.keys().filter(|member| !MEMBERS.contains(&member.as_str())) {
            let hint = meant_hint(member, MEMBERS);
            self.fault(&format!("`{member}` is not a setting{hint}"));
        }
        let (issuer, client_id) = (self.needed("issuer"), self.needed("client_id"));
        let secret = self.secret(&variable(SECRET, name), env);
        let email_domains = self.list("email_domains");
        let email_domains = email_domains.iter().map(|one| one.to_ascii_lowercase()).collect();
        let claims = self.pairs("claims", "claim=value");
        let claims = claims.into_iter().map(|(name, value)| Claim { name, value }).collect();
        let roles = self.roles();
        let keeps_identity = self.flag("keep_identity");
        let servers = self.exchange_servers(keeps_identity);
        let (issuer, client_id) = (issuer?, client_id?);
        match Client::new(&issuer, client_id, secret) {
            Ok(client) => {
                let client = client.keeping_identity(keeps_identity).exchanging_for(servers);
                let admission = Admission { email_domains, claims };
                Some(ProviderOptions { name: name.to_owned(), client, admission, roles })
            }
            Err(error) => {
                self.fault(&format!("`issuer`: {error}"));
                None
            }
        }
    }

    /// The origins of servers that may have tokens for identities; `None` without a list.
    fn exchange_servers(&mut self, keeps_identity: bool) -> Option<Vec<String>> {
        if !self.table.contains_key(SERVERS) {
            return None;
        }
        if !keeps_identity {
            self.fault(&format!("`{SERVERS}` needs `keep_identity = true`"));
        }
        let mut origins = Vec::new();
        for text in self.list(SERVERS) {
            match Url::parse(&text).ok().filter(is_origin) {
                Some(url) => origins.push(url.origin().ascii_serialization()),
                None => self.fault(&format!(
                    "`{SERVERS}`: write each as the address of a server without a path, such as \
                     \"https://orders.example.com\""
                )),
            }
        }
        Some(origins)
    }

    /// Roles by workspace, each as `workspace=role`.
    fn roles(&mut self) -> Vec<(WorkspaceId, Roles)> {
        let mut all: BTreeMap<WorkspaceId, Roles> = BTreeMap::new();
        for (workspace, role) in self.pairs("roles", "workspace=role") {
            match (WorkspaceId::new(&workspace), Role::parse(&role)) {
                (Ok(workspace), Some(role)) => {
                    all.entry(workspace).or_default().insert(role);
                }
                (Err(error), _) => self.fault(&format!("`roles`: {error}")),
                (Ok(_), None) => {
                    let known = Role::ALL.map(Role::as_str).join("`, `");
                    self.fault(&format!(
                        "`roles`: there is no role `{role}`; use some of `{known}`"
                    ));
                }
            }
        }
        all.into_iter().collect()
    }

    fn pairs(&mut self, member: &str, form: &str) -> Vec<(String, String)> {
        let mut pairs = Vec::new();
        for text in self.list(member) {
            match text.split_once('=') {
                Some((name, value)) if !name.is_empty() && !value.is_empty() => {
                    pairs.push((name.to_owned(), value.to_owned()));
                }
                _ => self.fault(&format!("`{member}`: write each as \"{form}\"")),
            }
        }
        pairs
    }
}

/// True for the address of a server without anything after its port.
fn is_origin(url: &Url) -> bool {
    let is_plain = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    let has_nobody = url.username().is_empty() && url.password().is_none();
    matches!(url.scheme(), "http" | "https") && is_plain && has_nobody
}

#[cfg(test)]
mod tests {
    use narthex_model::Secret;

    use super::*;

    fn reading(text: &str) -> (SignIn, Vec<String>) {
        let table = text.parse::<Table>().unwrap();
        let mut faults = Vec::new();
        let env = |name: &str| (name == "NARTHEX_OIDC_SECRET_CORP_ID").then(|| "s".to_owned());
        let sign_in = read(None, Some(("f", &table)), &env, &mut faults);
        (sign_in, faults)
    }

    #[test]
    fn all_settings_of_a_provider_are_read() {
        let (sign_in, faults) = reading(
            "[corp-id]\nissuer = 'https://id.example'\nclient_id = 'n'\n\
             email_domains = ['Corp.Example']\nclaims = ['groups=a=b']\n\
             roles = ['default=author', 'default=runner', 'team=auditor']\n",
        );
        assert_eq!(faults, Vec::<String>::new());
        let provider = &sign_in.providers[0];
        assert_eq!(provider.client.client_secret, Some(Secret::new("s")));
        assert_eq!(provider.admission.email_domains, ["corp.example"]);
        assert_eq!(provider.admission.claims[0].value, "a=b");
        assert_eq!(provider.roles.len(), 2);
        assert_eq!(provider.roles[0].1, Roles::from([Role::Author, Role::Runner]));
    }

    /// C31: identities are kept only where the settings say so.
    #[test]
    fn oauth_c31_identities_are_kept_on_demand() {
        let kept = |line: &str| {
            let (sign_in, faults) = reading(&format!(
                "[corp]\nissuer = 'https://id.example'\nclient_id = 'n'\n{line}\n"
            ));
            (sign_in.providers[0].client.keeps_identity, faults)
        };
        assert_eq!(kept(""), (false, Vec::new()));
        assert_eq!(kept("keep_identity = true"), (true, Vec::new()));
        let (keeps, faults) = kept("keep_identity = 'yes'");
        assert!(
            !keeps && faults[0].contains("`keep_identity` must be true or false"),
            "{faults:?}"
        );
    }

    /// C32: the operator lists the servers that may have tokens for identities of humans.
    #[test]
    fn oauth_c32_servers_of_exchanges_are_listed_by_origin() {
        let read = |lines: &str| {
            let (sign_in, faults) = reading(&format!(
                "[corp]\nissuer = 'https://id.example'\nclient_id = 'n'\n{lines}\n"
            ));
            (sign_in.providers[0].client.exchange_servers.clone(), faults.join(" "))
        };
        let kept = |list: &str| read(&format!("keep_identity = true\nexchange_servers = {list}"));
        assert_eq!(read("keep_identity = true"), (None, String::new()));
        assert_eq!(kept("[]"), (Some(Vec::new()), String::new()));
        let origins = vec!["https://a.example".to_owned(), "http://127.0.0.1:1".to_owned()];
        let both = kept("['https://A.example:443/', 'http://127.0.0.1:1']");
        assert_eq!(both, (Some(origins), String::new()));
        for bad in ["a.example", "https://a.example/mcp", "https://u@a.example", "file:///a"] {
            let (origins, faults) = kept(&format!("['{bad}']"));
            assert!(faults.contains("without a path"), "{bad}: {faults}");
            assert_eq!(origins, Some(Vec::new()), "{bad}");
        }
        let (_, faults) = read("exchange_servers = []");
        assert!(faults.contains("needs `keep_identity = true`"), "{faults}");
    }

    #[test]
    fn all_faults_of_sign_in_settings_are_reported_together() {
        let (sign_in, faults) = reading(
            "Bad = 1\n[corp]\nissuer = 'http://id.example'\nclient_id = 'n'\nclaims = ['x']\n\
             roles = ['default=king']\nclient_secret = 's'\n[other]\nclient_id = 5\n",
        );
        assert!(sign_in.providers.is_empty());
        let all = faults.join("\n");
        for word in [
            "a name is 1 to 64",
            "section",
            "must be an https",
            "claim=value",
            "king",
            "client_secret_file",
            "`issuer` is missing",
            "`client_id` must be",
        ] {
            assert!(all.contains(word), "{word}: {all}");
        }
        assert!(!all.contains("'s'"));
    }

    /// Only an https address with a path can be a client id.
    #[test]
    fn oauth_c12_the_address_of_the_client_document_is_https_with_a_path() {
        let read = |text: &str| {
            let mut faults = Vec::new();
            let sign_in = SignIn::default().with_client_metadata(Some((text, "x")), &mut faults);
            (sign_in.client_metadata_url().map(Url::to_string), faults.len())
        };
        let good = "https://narthex.example/client.json";
        assert_eq!(read(good), (Some(good.to_owned()), 0));
        for bad in ["http://narthex.example/client.json", "https://narthex.example", "client"] {
            assert_eq!(read(bad), (None, 1), "{bad}");
        }
    }

    /// Tokens lead to accounts by issuer and subject, and ID tokens are no access tokens.
    #[test]
    fn door_r5_people_of_an_issuer_sign_in_there_as_well() {
        let (sign_in, _) = reading("[corp]\nissuer = 'https://id.example'\nclient_id = 'n'\n");
        let faults = |issuer: &str, audience: &str| {
            let text = format!("[corp]\nissuer = '{issuer}'\naudience = '{audience}'\n");
            let table = text.parse::<Table>().unwrap();
            let mut faults = Vec::new();
            let door = crate::config::oauth::read(|_| None, Some(("f", &table)), &mut faults);
            sign_in.clone().with_door(door, &mut faults);
            faults.join("\n")
        };
        assert_eq!(faults("https://id.example", "api://narthex"), "");
        let foreign = faults("https://other.example", "api://narthex");
        assert!(foreign.contains("no provider of `signin.oidc`"), "{foreign}");
        let own = faults("https://id.example", "n");
        assert!(own.contains("`client_id` of `signin.oidc.corp`"), "{own}");
    }

    #[test]
    fn pages_are_at_localhost_without_a_configured_url() {
        let listen = SocketAddr::from(([127, 0, 0, 1], 7717));
        let origin = |is_tls| SignIn::default().options(listen, is_tls).origin.as_str().to_owned();
        assert_eq!(origin(false), "http://localhost:7717");
        assert_eq!(origin(true), "https://localhost:7717");
        let mut faults = Vec::new();
        let env = |_: &str| None;
        let url = "https://narthex.example";
        let sign_in = read(Some((url, "x")), None, &env, &mut faults);
        assert_eq!(sign_in.options(listen, false).origin.as_str(), url);
        assert_eq!(sign_in.host(), Some("narthex.example"));
        read(Some(("http://narthex.example", "x")), None, &env, &mut faults);
        assert_eq!(faults.len(), 1);
    }
}
