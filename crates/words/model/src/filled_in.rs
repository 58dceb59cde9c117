//! Values of secrets that an entry names, put into its definition.

use crate::{
    AuthSecret, GivenIdentity, NamedSecret, OAuth, OpenedSecret, Secret, SecretName, SecretPlace,
    ServerAuth, ServerDefinition, Target,
};

impl ServerDefinition {
    /// The secrets that the entry names and whose values are not filled in. Such a server must not
    /// be connected: it would get the text of the file.
    pub fn unopened_secrets(&self) -> impl Iterator<Item = &NamedSecret> {
        self.named_secrets.iter().filter(|secret| secret.opened.is_none())
    }

    /// Puts the values that `opened` knows into the places that name them. Redaction covers the
    /// values from now on.
    pub fn fill_in<'s>(&mut self, opened: impl Fn(&SecretName) -> Option<&'s OpenedSecret>) {
        for named in &mut self.named_secrets {
            let Some(secret) = opened(&named.name) else { continue };
            named.opened = Some(secret.id.clone());
            put(&mut self.target, &named.place, &secret.value);
            self.filled_in.push(secret.value.clone());
        }
    }
}

/// Replaces the value at a place. A place that the target does not have is left out.
fn put(target: &mut Target, place: &SecretPlace, value: &Secret) {
    let value = value.clone();
    match (target, place) {
        (Target::Stdio(target), SecretPlace::Variable(name)) => {
            target.env.insert(name.clone(), value);
        }
        (Target::Http(target), SecretPlace::Header(name)) => {
            target.headers.insert(name.clone(), value);
        }
        (Target::Http(target), SecretPlace::Auth(field)) => {
            put_into_auth(&mut target.auth, *field, value);
        }
        (Target::Stdio(_), SecretPlace::Header(_) | SecretPlace::Auth(_))
        | (Target::Http(_), SecretPlace::Variable(_)) => {}
    }
}

fn put_into_auth(auth: &mut ServerAuth, field: AuthSecret, value: Secret) {
    match auth {
        ServerAuth::None | ServerAuth::Unstated => {}
        ServerAuth::ApiKey(auth) => auth.key = Some(value),
        ServerAuth::OAuth(oauth) => match &mut **oauth {
            OAuth::ClientCredentials(auth) => *auth.proof.secret_mut() = value,
            OAuth::AuthorizationCode(auth) => match field {
                AuthSecret::Key | AuthSecret::ClientSecret | AuthSecret::PrivateKey => {
                    if let Some(client) = &mut auth.client {
                        client.secret = Some(value);
                    }
                }
                AuthSecret::AccessToken => {
                    if let Some(tokens) = &mut auth.tokens {
                        tokens.access_token = value;
                    }
                }
                AuthSecret::RefreshToken => {
                    if let Some(tokens) = &mut auth.tokens {
                        tokens.refresh_token = Some(value);
                    }
                }
                AuthSecret::ProviderSecret
                | AuthSecret::IdToken
                | AuthSecret::ProviderRefreshToken => {
                    let exchange = auth.exchange.as_mut();
                    if let Some(given) = exchange.and_then(|exchange| exchange.given_mut()) {
                        put_into_identity(given, field, value);
                    }
                }
            },
        },
    }
}

fn put_into_identity(given: &mut GivenIdentity, field: AuthSecret, value: Secret) {
    match field {
        AuthSecret::ProviderSecret => given.client.secret = Some(value),
        AuthSecret::IdToken => given.id_token = Some(value),
        AuthSecret::ProviderRefreshToken => given.refresh_token = Some(value),
        AuthSecret::Key
        | AuthSecret::ClientSecret
        | AuthSecret::PrivateKey
        | AuthSecret::AccessToken
        | AuthSecret::RefreshToken => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Alias, ApiKeyAuth, AuthorizationCodeAuth, ClientCredentialsAuth, ClientProof,
        ExchangeIdentity, ExchangeKind, HttpTarget, OAuthClient, OAuthExchange, OAuthTokens,
        SecretId, StdioTarget,
    };

    const VALUE: &str = "canary-5521-value";

    fn filled(target: Target, place: SecretPlace) -> ServerDefinition {
        let name = SecretName::new("KEY").unwrap();
        let mut definition = ServerDefinition::new(Alias::new("x").unwrap(), target);
        let key = "servers.x".to_owned();
        definition.named_secrets =
            vec![NamedSecret { name: name.clone(), key, place, opened: None }];
        assert_eq!(definition.unopened_secrets().count(), 1);
        let id = SecretId { key: "default/KEY".into(), version: 3 };
        let opened = OpenedSecret { value: Secret::new(VALUE), id };
        definition.fill_in(|asked| (*asked == name).then_some(&opened));
        assert_eq!(definition.unopened_secrets().count(), 0);
        // D22: the value is never shown, whatever the name of its place.
        assert!(definition.secrets().contains(&Secret::new(VALUE)));
        assert!(!format!("{definition:?}").contains(VALUE));
        definition
    }

    fn http(auth: ServerAuth) -> Target {
        let headers = [("X-Plain".to_owned(), Secret::new("${secret:KEY}"))].into();
        let url = "https://a.example/mcp".to_owned();
        Target::Http(HttpTarget { url, is_sse: false, headers, auth })
    }

    fn auth_of(definition: ServerDefinition) -> ServerAuth {
        let Target::Http(target) = definition.target else { panic!("{definition:?}") };
        target.auth
    }

    /// D38: each place gets the value, and redaction covers it.
    #[test]
    fn d38_each_place_gets_its_value() {
        let value = Secret::new(VALUE);
        let target = StdioTarget {
            command: "x".to_owned(),
            args: Vec::new(),
            env: [("PLAIN".to_owned(), Secret::new("${secret:KEY}"))].into(),
            working_dir: None,
            confinement: None,
        };
        let variable = SecretPlace::Variable("PLAIN".to_owned());
        let Target::Stdio(target) = filled(Target::Stdio(target), variable).target else {
            panic!()
        };
        assert_eq!(target.env["PLAIN"], value);
        let header = SecretPlace::Header("X-Plain".to_owned());
        let Target::Http(target) = filled(http(ServerAuth::None), header).target else { panic!() };
        assert_eq!(target.headers["X-Plain"], value);
        let key =
            ApiKeyAuth { header_name: "X".to_owned(), value_prefix: String::new(), key: None };
        let auth =
            auth_of(filled(http(ServerAuth::ApiKey(key)), SecretPlace::Auth(AuthSecret::Key)));
        assert!(matches!(auth, ServerAuth::ApiKey(auth) if auth.key == Some(value.clone())));
    }

    /// D38: the fields of the OAuth modes get values, too.
    #[test]
    fn d38_each_field_of_oauth_gets_its_value() {
        let value = Secret::new(VALUE);
        let oauth = |oauth| http(ServerAuth::OAuth(Box::new(oauth)));
        let place = SecretPlace::Auth;
        let empty = Secret::new("");
        let by_secret = ClientProof::Secret { secret: empty.clone(), method: None };
        let by_key = ClientProof::Key { pem: empty, key_id: None, algorithm: None };
        for (proof, field) in
            [(by_secret, AuthSecret::ClientSecret), (by_key, AuthSecret::PrivateKey)]
        {
            let client = OAuth::ClientCredentials(ClientCredentialsAuth {
                token_url: None,
                client_id: String::new(),
                proof,
                scopes: [].into(),
                audience: None,
                resource: None,
                authorization_server: None,
                auth_error: None,
                grant: None,
            });
            let auth = auth_of(filled(oauth(client), place(field)));
            assert!(auth.secrets().contains(&&value), "{auth:?}");
        }
        let code = || {
            let access_token = Secret::new("");
            let tokens = OAuthTokens { access_token, refresh_token: None, expires_at: None };
            OAuth::AuthorizationCode(AuthorizationCodeAuth {
                client: Some(OAuthClient { id: "i".to_owned(), secret: None }),
                tokens: Some(tokens),
                exchange: Some(Box::new(OAuthExchange {
                    kind: ExchangeKind::IdJag,
                    identity: ExchangeIdentity::Given(Box::new(GivenIdentity {
                        token_url: String::new(),
                        client: OAuthClient { id: "p".to_owned(), secret: None },
                        id_token: None,
                        refresh_token: None,
                    })),
                    audience: None,
                    fallback: None,
                })),
                ..AuthorizationCodeAuth::default()
            })
        };
        for field in [
            AuthSecret::ClientSecret,
            AuthSecret::AccessToken,
            AuthSecret::RefreshToken,
            AuthSecret::ProviderSecret,
            AuthSecret::IdToken,
            AuthSecret::ProviderRefreshToken,
        ] {
            let auth = auth_of(filled(oauth(code()), place(field)));
            let filled = auth.secrets().into_iter().filter(|one| **one == value).count();
            assert_eq!(filled, 1, "{field:?}: {auth:?}");
        }
    }
}
