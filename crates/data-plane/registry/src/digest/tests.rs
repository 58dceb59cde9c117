//! Configurations with equal digests, and configurations with different ones.

use std::{collections::BTreeMap, path::PathBuf};

use narthex_model::{Alias, ExchangeKind, SecretId, SecretPlace, ServerId};

use super::*;

fn stdio(args: &[&str]) -> ServerDefinition {
    let target = StdioTarget {
        command: "tool".to_owned(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        env: BTreeMap::from([("KEY".to_owned(), Secret::new("one"))]),
        working_dir: None,
        confinement: None,
    };
    define(Target::Stdio(target))
}

fn http() -> ServerDefinition {
    let target = HttpTarget {
        url: "http://localhost/mcp".to_owned(),
        is_sse: false,
        headers: BTreeMap::from([("X-Team".to_owned(), Secret::new("a"))]),
        auth: ServerAuth::ApiKey(ApiKeyAuth {
            header_name: "Authorization".to_owned(),
            value_prefix: "Bearer ".to_owned(),
            key: Some(Secret::new("key")),
        }),
    };
    define(Target::Http(target))
}

fn define(target: Target) -> ServerDefinition {
    let alias = Alias::new("x").unwrap();
    ServerDefinition::new(alias, target)
}

fn digest(definition: &ServerDefinition) -> Digest {
    DigestKey::new(&[7; 32]).of(definition)
}

type Change = (&'static str, fn(&mut ServerDefinition));

fn assert_all_differ(of: fn() -> ServerDefinition, changes: &[Change]) {
    let mut seen = vec![("unchanged", digest(&of()))];
    for (what, change) in changes {
        let mut changed = of();
        change(&mut changed);
        let found = digest(&changed);
        for (other, digest) in &seen {
            assert_ne!(*digest, found, "{what} looks like {other}");
        }
        seen.push((what, found));
    }
}

fn child(definition: &mut ServerDefinition) -> &mut StdioTarget {
    let Target::Stdio(target) = &mut definition.target else { panic!("not stdio") };
    target
}

fn remote(definition: &mut ServerDefinition) -> &mut HttpTarget {
    let Target::Http(target) = &mut definition.target else { panic!("not http") };
    target
}

fn api_key(definition: &mut ServerDefinition) -> &mut ApiKeyAuth {
    let ServerAuth::ApiKey(auth) = &mut remote(definition).auth else { panic!("no key") };
    auth
}

/// E42, E50, E52: each input of a child counts, and no field is mistaken for another one.
#[test]
fn e52_each_field_of_a_program_counts() {
    assert_all_differ(
        || stdio(&["a"]),
        &[
            ("command", |d| child(d).command.push('x')),
            ("argument", |d| child(d).args[0].push('b')),
            ("another argument", |d| child(d).args.push("b".to_owned())),
            ("value", |d| {
                child(d).env.insert("KEY".to_owned(), Secret::new("two"));
            }),
            ("variable", |d| {
                child(d).env.insert("KEY2".to_owned(), Secret::new("one"));
            }),
            ("folder", |d| child(d).working_dir = Some(PathBuf::from("/tmp"))),
            ("confinement", |d| {
                let strict = narthex_model::Confinement::strict(Some(PathBuf::from("/tmp")));
                child(d).confinement = Some(Box::new(strict));
            }),
            ("mount timeout", |d| d.mount_timeout = Some(Duration::from_secs(1))),
            ("timeout", |d| d.timeout = Some(Duration::from_secs(1))),
            ("alias", |d| d.alias = Alias::new("y").unwrap()),
            ("filled in", |d| d.filled_in.push(Secret::new("s"))),
            ("named secret", |d| d.named_secrets.push(secret(None))),
        ],
    );
}

/// E23, E52, E42: each input of a server over HTTP counts, keys and headers included.
#[test]
fn e52_each_field_of_a_url_counts() {
    assert_all_differ(
        http,
        &[
            ("url", |d| remote(d).url.push('2')),
            ("transport", |d| remote(d).is_sse = true),
            ("header", |d| {
                remote(d).headers.insert("X-Team".to_owned(), Secret::new("b"));
            }),
            ("key", |d| api_key(d).key = Some(Secret::new("key2"))),
            ("no key", |d| api_key(d).key = None),
            ("header name", |d| api_key(d).header_name = "X-Key".to_owned()),
            ("prefix", |d| api_key(d).value_prefix.clear()),
            ("mode", |d| remote(d).auth = ServerAuth::None),
        ],
    );
}

fn with_oauth(oauth: OAuth) -> ServerDefinition {
    let mut definition = http();
    remote(&mut definition).auth = ServerAuth::OAuth(Box::new(oauth));
    definition
}

fn by_secret(secret: &str, method: Option<SecretMethod>) -> ClientProof {
    ClientProof::Secret { secret: Secret::new(secret), method }
}

fn by_key(pem: &str, key_id: Option<&str>, algorithm: Option<&str>) -> ClientProof {
    let [key_id, algorithm] = [key_id, algorithm].map(|text| text.map(str::to_owned));
    ClientProof::Key { pem: Secret::new(pem), key_id, algorithm }
}

fn grant(workspace: &str, id: &str) -> SharedGrant {
    SharedGrant::of_catalog(&WorkspaceId::new(workspace).unwrap(), &ServerId::new(id).unwrap())
}

fn client_credentials() -> ServerDefinition {
    with_oauth(OAuth::ClientCredentials(ClientCredentialsAuth {
        token_url: Some("https://id/token".to_owned()),
        client_id: "c".to_owned(),
        proof: by_secret("s", None),
        scopes: ["a", "b"].map(str::to_owned).into(),
        audience: None,
        resource: None,
        authorization_server: None,
        auth_error: None,
        grant: None,
    }))
}

fn exchange(definition: &mut ServerDefinition) -> &mut ClientCredentialsAuth {
    let ServerAuth::OAuth(oauth) = &mut remote(definition).auth else { panic!("no OAuth") };
    let OAuth::ClientCredentials(auth) = &mut **oauth else { panic!("another mode") };
    auth
}

fn authorization_code() -> ServerDefinition {
    with_oauth(OAuth::AuthorizationCode(AuthorizationCodeAuth {
        scopes: ["a", "b"].map(str::to_owned).into(),
        client: Some(OAuthClient { id: "c".to_owned(), secret: Some(Secret::new("s")) }),
        tokens: Some(OAuthTokens {
            access_token: Secret::new("access"),
            refresh_token: Some(Secret::new("refresh")),
            expires_at: Some(1),
        }),
        ..AuthorizationCodeAuth::default()
    }))
}

fn sign_in(definition: &mut ServerDefinition) -> &mut AuthorizationCodeAuth {
    let ServerAuth::OAuth(oauth) = &mut remote(definition).auth else { panic!("no OAuth") };
    let OAuth::AuthorizationCode(auth) = &mut **oauth else { panic!("another mode") };
    auth
}

fn identity() -> ServerDefinition {
    with_oauth(OAuth::AuthorizationCode(AuthorizationCodeAuth {
        exchange: Some(Box::new(OAuthExchange {
            kind: ExchangeKind::IdJag,
            identity: ExchangeIdentity::Given(Box::new(GivenIdentity {
                token_url: "https://idp/token".to_owned(),
                client: OAuthClient { id: "c".to_owned(), secret: Some(Secret::new("s")) },
                id_token: Some(Secret::new("id")),
                refresh_token: Some(Secret::new("refresh")),
            })),
            audience: None,
            fallback: None,
        })),
        ..AuthorizationCodeAuth::default()
    }))
}

fn exchanged(definition: &mut ServerDefinition) -> &mut OAuthExchange {
    sign_in(definition).exchange.as_mut().unwrap()
}

fn given(definition: &mut ServerDefinition) -> &mut GivenIdentity {
    match &mut exchanged(definition).identity {
        ExchangeIdentity::Given(given) => given,
        ExchangeIdentity::Login(provider) => panic!("{provider}"),
    }
}

/// E49, C31: another identity of a person is another configuration.
#[test]
fn e49_each_field_of_an_exchange_counts() {
    assert_all_differ(
        identity,
        &[
            ("no exchange", |d| sign_in(d).exchange = None),
            ("kind", |d| exchanged(d).kind = ExchangeKind::Token),
            ("audience", |d| exchanged(d).audience = Some("x".to_owned())),
            ("fallback", |d| exchanged(d).fallback = Some(ExchangeFallback::SignIn)),
            ("provider", |d| exchanged(d).identity = ExchangeIdentity::Login("x".to_owned())),
            ("token url", |d| given(d).token_url.push('2')),
            ("client id", |d| given(d).client.id.push('2')),
            ("client secret", |d| given(d).client.secret = None),
            ("ID token", |d| given(d).id_token = Some(Secret::new("id2"))),
            ("refresh token", |d| given(d).refresh_token = None),
        ],
    );
}

/// E49, E52: every setting of a sign-in counts, and the order of scopes does not.
#[test]
fn e49_each_field_of_client_credentials_counts() {
    assert_all_differ(
        client_credentials,
        &[
            ("token url", |d| exchange(d).token_url = Some("https://id/token2".to_owned())),
            ("no token url", |d| exchange(d).token_url = None),
            ("client id", |d| exchange(d).client_id.push('2')),
            ("client secret", |d| exchange(d).proof = by_secret("s2", None)),
            ("header", |d| exchange(d).proof = by_secret("s", Some(SecretMethod::Basic))),
            ("form", |d| exchange(d).proof = by_secret("s", Some(SecretMethod::Post))),
            ("private key", |d| exchange(d).proof = by_key("s", None, None)),
            ("key id", |d| exchange(d).proof = by_key("s", Some("ES256"), None)),
            ("algorithm", |d| exchange(d).proof = by_key("s", None, Some("ES256"))),
            ("one more scope", |d| {
                exchange(d).scopes.insert("c".to_owned());
            }),
            ("joined scopes", |d| exchange(d).scopes = ["ab".to_owned()].into()),
            ("audience", |d| exchange(d).audience = Some("x".to_owned())),
            ("resource", |d| exchange(d).resource = Some("x".to_owned())),
            ("issuer", |d| exchange(d).authorization_server = Some("x".to_owned())),
            ("refusal in an error", |d| {
                exchange(d).auth_error = AuthErrorPattern::new("not logged in").ok();
            }),
            ("grant", |d| exchange(d).grant = Some(grant("team", "a"))),
            ("grant of another workspace", |d| exchange(d).grant = Some(grant("other", "a"))),
            ("grant of another server", |d| exchange(d).grant = Some(grant("team", "b"))),
            ("mode", |d| remote(d).auth = ServerAuth::None),
        ],
    );
    let mut turned = client_credentials();
    exchange(&mut turned).scopes = ["b", "a"].map(str::to_owned).into();
    assert_eq!(digest(&turned), digest(&client_credentials()));
}

/// E49, E52: every setting of a sign-in in a browser counts, and the order of scopes does not.
#[test]
fn e49_each_field_of_an_authorization_code_counts() {
    assert_all_differ(
        authorization_code,
        &[
            ("scope", |d| {
                sign_in(d).scopes.insert("c".to_owned());
            }),
            ("no client", |d| sign_in(d).client = None),
            ("client id", |d| sign_in(d).client.as_mut().unwrap().id.push('2')),
            ("client secret", |d| {
                sign_in(d).client.as_mut().unwrap().secret = Some(Secret::new("s2"));
            }),
            ("public client", |d| sign_in(d).client.as_mut().unwrap().secret = None),
            ("no tokens", |d| sign_in(d).tokens = None),
            ("access token", |d| {
                sign_in(d).tokens.as_mut().unwrap().access_token = Secret::new("x");
            }),
            ("refresh token", |d| sign_in(d).tokens.as_mut().unwrap().refresh_token = None),
            ("end of the token", |d| sign_in(d).tokens.as_mut().unwrap().expires_at = Some(2)),
            ("redirect", |d| sign_in(d).redirect_uri = Some("x".to_owned())),
            ("resource", |d| sign_in(d).resource = Some(OAuthResource::Url("x".to_owned()))),
            ("no resource", |d| sign_in(d).resource = Some(OAuthResource::Omit)),
            ("any client", |d| sign_in(d).registration = Some(OAuthRegistration::Auto)),
            ("own client", |d| sign_in(d).registration = Some(OAuthRegistration::Preregistered)),
            ("document", |d| sign_in(d).registration = Some(OAuthRegistration::Cimd)),
            ("registered", |d| sign_in(d).registration = Some(OAuthRegistration::Dcr)),
            ("strict PKCE", |d| sign_in(d).pkce = Some(OAuthPkce::Require)),
            ("assumed PKCE", |d| sign_in(d).pkce = Some(OAuthPkce::Assume)),
            ("scopes of a refresh", |d| sign_in(d).refresh_scope = Some(true)),
            ("no scopes of a refresh", |d| sign_in(d).refresh_scope = Some(false)),
            ("name", |d| sign_in(d).client_name = Some("x".to_owned())),
            ("issuer", |d| sign_in(d).authorization_server = Some("x".to_owned())),
            ("legacy", |d| sign_in(d).legacy = true),
            ("keep alive", |d| sign_in(d).keep_alive = true),
            ("refusal in an error", |d| {
                sign_in(d).auth_error = AuthErrorPattern::new("not logged in").ok();
            }),
            ("grant", |d| sign_in(d).grant = Some(grant("team", "a"))),
            ("grant of another workspace", |d| sign_in(d).grant = Some(grant("other", "a"))),
            ("grant of another server", |d| sign_in(d).grant = Some(grant("team", "b"))),
        ],
    );
    let mut turned = authorization_code();
    sign_in(&mut turned).scopes = ["b", "a"].map(str::to_owned).into();
    assert_eq!(digest(&turned), digest(&authorization_code()));
}

fn secret(version: Option<u64>) -> NamedSecret {
    let id = |version| SecretId { key: "default/KEY".into(), version };
    NamedSecret {
        name: SecretName::new("KEY").unwrap(),
        key: "servers.x.env.KEY".to_owned(),
        place: SecretPlace::Variable("KEY".to_owned()),
        opened: version.map(id),
    }
}

/// D38: a new version of a secret is another configuration, also with the same value.
#[test]
fn d38_each_version_of_a_secret_counts() {
    let with = |version| {
        let mut definition = stdio(&[]);
        definition.named_secrets.push(secret(version));
        digest(&definition)
    };
    assert_ne!(with(None), with(Some(1)));
    assert_ne!(with(Some(1)), with(Some(2)));
    assert_eq!(with(Some(2)), with(Some(2)));
}

/// E53: arguments are compared one by one.
#[test]
fn e53_each_argument_counts_in_the_digest() {
    assert_ne!(digest(&stdio(&["a b"])), digest(&stdio(&["a", "b"])));
    assert_ne!(digest(&stdio(&["a", "bc"])), digest(&stdio(&["ab", "c"])));
}

/// E52: a digest reveals nothing without the key.
#[test]
fn e52_digests_are_keyed() {
    assert_ne!(DigestKey::new(&[1; 32]).of(&http()), DigestKey::new(&[2; 32]).of(&http()));
}
