//! Settings of the configuration, and those that cannot be used.

use narthex_model::OAuthClient;

use super::*;

const PEM: &str = include_str!("../../jwt/test-key.pem");

fn by_secret(method: Option<SecretMethod>) -> ClientCredentialsAuth {
    ClientCredentialsAuth {
        token_url: None,
        client_id: "c".to_owned(),
        proof: ClientProof::Secret { secret: Secret::new("s3cret"), method },
        scopes: OAuthScopes::new(),
        audience: None,
        resource: None,
        authorization_server: None,
        auth_error: None,
        grant: None,
    }
}

fn by_key(pem: &str, algorithm: Option<&str>) -> ClientCredentialsAuth {
    let proof = ClientProof::Key {
        pem: Secret::new(pem),
        key_id: Some("k1".to_owned()),
        algorithm: algorithm.map(str::to_owned),
    };
    ClientCredentialsAuth { proof, ..by_secret(None) }
}

fn metadata(methods: &[&str]) -> ServerMetadata {
    let methods = methods.iter().map(|name| (*name).to_owned()).collect();
    ServerMetadata {
        token_endpoint_auth_methods_supported: Some(methods),
        ..ServerMetadata::default()
    }
}

#[test]
fn e26_each_setting_of_a_sign_in_is_taken() {
    let auth = AuthorizationCodeAuth {
        scopes: ["b", "a"].map(str::to_owned).into(),
        client: Some(OAuthClient { id: "c".to_owned(), secret: Some(Secret::new("s3cret")) }),
        tokens: None,
        redirect_uri: None,
        resource: Some(OAuthResource::Omit),
        registration: Some(OAuthRegistration::Preregistered),
        pkce: Some(OAuthPkce::Assume),
        refresh_scope: Some(true),
        client_name: Some("Agents".to_owned()),
        authorization_server: Some("https://as.example/tenant".to_owned()),
        legacy: true,
        keep_alive: true,
        exchange: None,
        auth_error: None,
        grant: None,
    };
    let settings = Settings::of(&auth).unwrap();
    assert_eq!(settings.authorization_server.as_deref(), Some("https://as.example/tenant"));
    assert_eq!(settings.pkce, Some(PkceRule::Assume));
    assert_eq!(settings.resource, Some(ResourceRule::Omit));
    assert_eq!(settings.refresh_scope, Some(true));
    assert_eq!(settings.scopes, Some(Scopes::parse("a b")));
    assert_eq!(settings.registration, RegistrationRule::Preregistered);
    assert_eq!(settings.client.as_ref().map(|client| client.id.as_str()), Some("c"));
    assert_eq!(settings.client_name.as_deref(), Some("Agents"));
    assert!(settings.legacy);
    assert!(!format!("{settings:?}").contains("s3cret"));
}

#[test]
fn e25_without_settings_the_defaults_stand() {
    let settings = Settings::of(&AuthorizationCodeAuth::default()).unwrap();
    assert_eq!(settings.registration, RegistrationRule::Auto);
    // Presets fill in only what is unset.
    assert_eq!((settings.pkce, settings.resource, settings.refresh_scope), (None, None, None));
    assert!(settings.scopes.is_none() && settings.client.is_none() && !settings.legacy);
}

#[test]
fn e106_a_resource_of_the_settings_is_sent() {
    let resource = Some(OAuthResource::Url("https://mcp.example/x".to_owned()));
    let auth = AuthorizationCodeAuth { resource, ..AuthorizationCodeAuth::default() };
    let settings = Settings::of(&auth).unwrap();
    assert_eq!(settings.resource("https://found.example").unwrap(), "https://mcp.example/x");
    let auth = ClientCredentialsAuth {
        resource: Some("https://mcp.example/y".to_owned()),
        ..by_secret(None)
    };
    let settings = ClientCredentials::of(&auth).unwrap().settings;
    assert_eq!(settings.resource("https://found.example").unwrap(), "https://mcp.example/y");
}

#[test]
fn oauth_e97_a_token_endpoint_without_metadata_gets_the_secret_in_the_form() {
    let method = |auth: &ClientCredentialsAuth, metadata: Option<&ServerMetadata>| {
        ClientCredentials::of(auth).unwrap().client_at(metadata).method
    };
    assert_eq!(method(&by_secret(None), None), AuthMethod::Post);
    assert_eq!(method(&by_secret(Some(SecretMethod::Basic)), None), AuthMethod::Basic);
    let only_post = metadata(&["client_secret_post"]);
    let both = metadata(&["client_secret_post", "client_secret_basic"]);
    assert_eq!(method(&by_secret(None), Some(&only_post)), AuthMethod::Post);
    assert_eq!(method(&by_secret(None), Some(&both)), AuthMethod::Basic);
    assert_eq!(method(&by_secret(Some(SecretMethod::Post)), Some(&both)), AuthMethod::Post);
}

#[test]
fn oauth_c30_a_private_key_proves_the_client() {
    let escaped = PEM.replace('\n', "\\n");
    for (pem, algorithm) in [(PEM, None), (PEM, Some("RS256")), (escaped.as_str(), None)] {
        let read = ClientCredentials::of(&by_key(pem, algorithm)).unwrap();
        let client = read.client_at(Some(&metadata(&["client_secret_basic"])));
        assert_eq!(client.method, AuthMethod::PrivateKeyJwt);
        let key = client.key.as_ref().unwrap();
        assert_eq!(key.algorithm(), "RS256");
        assert_eq!(key.public_jwk()["kid"], "k1");
        assert!(!format!("{read:?}").contains(PEM.lines().nth(1).unwrap()));
    }
}

#[test]
fn oauth_c30_a_key_that_cannot_sign_is_refused() {
    let refused = |auth: &ClientCredentialsAuth| ClientCredentials::of(auth).unwrap_err();
    let fault = refused(&by_key("no key", None));
    assert_eq!(fault, ConfiguredFault::Key(KeyFault::NotPem));
    assert!(fault.to_string().starts_with("auth.privateKey cannot be used: "), "{fault}");
    let fault = refused(&by_key(PEM, Some("ES256")));
    assert_eq!(
        fault.to_string(),
        "auth.algorithm is `ES256`, but the private key signs with RS256; remove auth.algorithm, \
         or give another key"
    );
    assert_eq!(fault.kind(), ErrorKind::Invalid);
}

#[test]
fn oauth_c9_addresses_that_get_credentials_are_safe() {
    for (url, is_fine) in [
        ("https://as.example/token", true),
        ("http://127.0.0.1:1/token", true),
        ("http://as.example/token", false),
        ("https://u:p@as.example/token", false),
        ("as.example", false),
    ] {
        let token = ClientCredentialsAuth { token_url: Some(url.to_owned()), ..by_secret(None) };
        let found = ClientCredentials::of(&token).map(|read| read.token_url);
        assert_eq!(found.is_ok(), is_fine, "{url}");
        let issuer =
            ClientCredentialsAuth { authorization_server: Some(url.to_owned()), ..by_secret(None) };
        let found = ClientCredentials::of(&issuer).map(|read| read.settings.authorization_server);
        assert_eq!(found.is_ok(), is_fine, "{url}");
        let authorization_server = Some(url.to_owned());
        let auth =
            AuthorizationCodeAuth { authorization_server, ..AuthorizationCodeAuth::default() };
        assert_eq!(Settings::of(&auth).is_ok(), is_fine, "{url}");
    }
}

#[test]
fn e49_scopes_that_cannot_be_sent_are_refused() {
    let scopes = ["a\"b".to_owned()].into();
    let auth = AuthorizationCodeAuth { scopes, ..AuthorizationCodeAuth::default() };
    let fault = Settings::of(&auth).unwrap_err();
    assert!(fault.to_string().starts_with("auth.scopes cannot be used: a scope has"), "{fault}");
}
