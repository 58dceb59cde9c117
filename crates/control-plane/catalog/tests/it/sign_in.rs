//! The settings of OAuth of a server: read, written, refused and opened.

use narthex_catalog::ServerEntry;
use narthex_model::{
    AuthErrorPattern, AuthorizationCodeAuth, ClientCredentialsAuth, ClientProof, ExchangeFallback,
    ExchangeIdentity, ExchangeKind, OAuth, OAuthClient, OAuthExchange, OAuthPkce,
    OAuthRegistration, OAuthResource, Secret, SecretMethod, ServerAuth, Target,
};
use serde_json::{Value, json};

use crate::world::{World, reasons, server, text};

const PEM: &str = "-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----";

fn entry(auth: &Value) -> Value {
    json!({ "id": "s", "url": "https://s.test/mcp", "auth": auth })
}

/// The settings that a run's server has.
#[track_caller]
fn opened(auth: &Value) -> OAuth {
    let world = World::new(&[entry(auth)])
        .using(json!({ "a": { "ref": "s" } }))
        .secret("SECRET", "canary")
        .secret("KEY", PEM)
        .env("CID", "client-1");
    assert!(!format!("{:?}", world.run()).contains("canary"));
    let definition = world.definition("a").unwrap();
    assert!(!format!("{definition:?}").contains("canary"), "{definition:?}");
    match definition.target {
        Target::Http(target) => match target.auth {
            ServerAuth::OAuth(oauth) => *oauth,
            other => panic!("{other:?}"),
        },
        Target::Stdio(_) => panic!("it is called"),
    }
}

/// O92, E97: a run has the client of its server with all values, in both spellings.
#[test]
fn o92_a_run_gets_the_client_with_its_secret() {
    let wanted = OAuth::ClientCredentials(ClientCredentialsAuth {
        token_url: Some("https://id.test/t".to_owned()),
        client_id: "client-1".to_owned(),
        proof: ClientProof::Secret {
            secret: Secret::new("canary"),
            method: Some(SecretMethod::Post),
        },
        scopes: ["a", "b"].map(str::to_owned).into(),
        audience: Some("aud".to_owned()),
        resource: Some("https://s.test/mcp".to_owned()),
        authorization_server: Some("https://id.test".to_owned()),
        auth_error: None,
        grant: None,
    });
    let ours = json!({ "mode": "clientCredentials", "tokenUrl": "https://id.test/t",
        "clientId": "${env.CID}", "clientSecret": { "$secret": "SECRET" },
        "tokenEndpointAuthMethod": "client_secret_post", "scopes": ["a", "b"],
        "audience": "aud", "resource": "https://s.test/mcp",
        "authorizationServer": "https://id.test" });
    assert_eq!(opened(&ours), wanted);
    let typed = json!({ "type": "oauth2_client_credentials", "token_url": "https://id.test/t",
        "client_id": "${env.CID}", "client_secret": "${SECRET}",
        "token_endpoint_auth_method": "client_secret_post", "scope": "a b",
        "audience": "aud", "resource": "https://s.test/mcp",
        "authorization_server": "https://id.test" });
    assert_eq!(opened(&typed), wanted);
}

/// C30: a private key takes the place of the secret, and the token endpoint may be discovered.
#[test]
fn oauth_c30_a_private_key_takes_the_place_of_the_secret() {
    let key = |key_id: Option<&str>, algorithm: Option<&str>| ClientProof::Key {
        pem: Secret::new(PEM),
        key_id: key_id.map(str::to_owned),
        algorithm: algorithm.map(str::to_owned),
    };
    for (auth, proof) in [
        (
            json!({ "mode": "clientCredentials", "clientId": "c", "privateKey": "${KEY}",
                    "keyId": "k1", "algorithm": "ES256",
                    "tokenEndpointAuthMethod": "private_key_jwt" }),
            key(Some("k1"), Some("ES256")),
        ),
        (
            json!({ "type": "oauth2_client_credentials", "client_id": "c",
                    "private_key": "${KEY}" }),
            key(None, None),
        ),
    ] {
        let OAuth::ClientCredentials(read) = opened(&auth) else { panic!("{auth}") };
        assert_eq!((read.token_url, read.proof), (None, proof));
    }
}

/// X-M13: a server that people sign in to has all settings of a file.
#[test]
fn x_m13_a_sign_in_has_all_settings_of_a_file() {
    let auth = json!({ "mode": "authorizationCode", "scopes": ["a"],
        "client": { "clientId": "c", "clientSecret": "${SECRET}" },
        "redirectUri": "https://n.test/oauth/callback", "resource": "omit",
        "registration": "preregistered", "pkce": "assume", "refreshScope": false,
        "clientName": "Agents", "authorizationServer": "https://id.test", "legacy": true,
        "keepAlive": true, "authError": "$.structuredContent.code=401" });
    let wanted = AuthorizationCodeAuth {
        scopes: ["a".to_owned()].into(),
        client: Some(OAuthClient { id: "c".to_owned(), secret: Some(Secret::new("canary")) }),
        tokens: None,
        redirect_uri: Some("https://n.test/oauth/callback".to_owned()),
        resource: Some(OAuthResource::Omit),
        registration: Some(OAuthRegistration::Preregistered),
        pkce: Some(OAuthPkce::Assume),
        refresh_scope: Some(false),
        client_name: Some("Agents".to_owned()),
        authorization_server: Some("https://id.test".to_owned()),
        legacy: true,
        keep_alive: true,
        exchange: None,
        auth_error: AuthErrorPattern::new("$.structuredContent.code=401").ok(),
        grant: None,
    };
    assert_eq!(opened(&auth), OAuth::AuthorizationCode(wanted));
}

/// C31, C32: the identity is that of the human who drives the run.
#[test]
fn oauth_c31_an_exchange_names_a_login_provider() {
    let assertion = json!({ "mode": "authorizationCode", "client": { "clientId": "c" },
        "exchange": { "type": "idJag", "identityProvider": "okta" } });
    let token = json!({ "mode": "authorizationCode", "exchange": { "type": "token",
        "identityProvider": "okta", "audience": "orders" } });
    let falling = json!({ "mode": "authorizationCode", "pkce": "assume",
        "client": { "clientId": "c" }, "exchange": { "type": "token",
        "identityProvider": "okta", "fallback": "signIn" } });
    let (sign_in, orders) = (Some(ExchangeFallback::SignIn), Some("orders".to_owned()));
    for (auth, kind, audience, fallback) in [
        (assertion, ExchangeKind::IdJag, None, None),
        (token, ExchangeKind::Token, orders, None),
        (falling, ExchangeKind::Token, None, sign_in),
    ] {
        let OAuth::AuthorizationCode(read) = opened(&auth) else { panic!("{auth}") };
        let identity = ExchangeIdentity::Login("okta".to_owned());
        let wanted = OAuthExchange { kind, identity, audience, fallback };
        assert_eq!(read.exchange, Some(Box::new(wanted)));
    }
}

/// O35: the normal form of each setting is read as the same entry.
#[test]
fn o35_the_normal_form_of_a_sign_in_is_read_again() {
    let [secret, key] = ["${SECRET}", "${KEY}"];
    for auth in [
        json!({ "mode": "clientCredentials", "clientId": "c", "clientSecret": secret }),
        json!({ "type": "oauth2_client_credentials", "client_id": "c", "client_secret": secret,
                "token_url": "https://id.test/t", "scope": "a b", "audience": "x",
                "token_endpoint_auth_method": "client_secret_basic",
                "auth_error": "not logged in" }),
        json!({ "mode": "clientCredentials", "clientId": "c", "privateKey": key, "keyId": "k",
                "algorithm": "RS256", "authorizationServer": "https://id.test" }),
        json!({ "mode": "authorizationCode" }),
        json!({ "mode": "authorizationCode", "client": { "clientId": "c" },
                "exchange": { "type": "idJag", "identityProvider": "okta" } }),
        json!({ "mode": "authorizationCode",
                "exchange": { "type": "token", "identityProvider": "okta", "audience": "x" } }),
        json!({ "mode": "authorizationCode", "resource": "https://s.test", "pkce": "require",
                "registration": "dcr", "refreshScope": true, "clientName": "n",
                "authorizationServer": "https://id.test", "legacy": true, "keepAlive": true,
                "authError": "not logged in" }),
    ] {
        let read = server(&entry(&auth));
        let written = serde_json::to_value(&read).unwrap();
        assert_eq!(written["auth"]["mode"], read.auth.mode(), "{written}");
        assert_eq!(server(&written), read, "{written}");
    }
}

/// C30, X-E32, D9: contradictory settings and unsafe addresses are refused when they are saved.
#[test]
fn x_e32_contradictory_settings_and_unsafe_addresses_are_refused_when_saved() {
    let client = |more: Value| {
        let mut auth = json!({ "mode": "clientCredentials", "clientId": "c" });
        auth.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        auth
    };
    let sign_in = |more: Value| {
        let mut auth = json!({ "mode": "authorizationCode" });
        auth.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        auth
    };
    let (secret, key) = ("${SECRET}", "${KEY}");
    for (auth, reason) in [
        (client(json!({})), "auth.clientSecret: FieldMissing"),
        (
            client(json!({ "clientSecret": secret, "privateKey": key })),
            "auth.privateKey: FieldsExclude",
        ),
        (client(json!({ "clientSecret": secret, "keyId": "k" })), "auth.keyId: FieldsExclude"),
        (
            client(json!({ "clientSecret": secret, "tokenEndpointAuthMethod": "private_key_jwt" })),
            "auth.tokenEndpointAuthMethod: FieldsExclude",
        ),
        (
            client(json!({ "privateKey": key, "tokenEndpointAuthMethod": "client_secret_basic" })),
            "auth.tokenEndpointAuthMethod: FieldsExclude",
        ),
        (
            client(json!({ "clientSecret": secret, "tokenEndpointAuthMethod": "none" })),
            "auth.tokenEndpointAuthMethod: ValueInvalid",
        ),
        (
            client(json!({ "privateKey": key, "algorithm": "HS256" })),
            "auth.algorithm: ValueInvalid",
        ),
        (client(json!({ "privateKey": "no key" })), "auth.privateKey: ValueInvalid"),
        (
            client(json!({ "clientSecret": secret, "tokenUrl": "http://id.test/t" })),
            "auth.tokenUrl: ValueInvalid",
        ),
        (
            sign_in(json!({ "authorizationServer": "http://id.test" })),
            "auth.authorizationServer: ValueInvalid",
        ),
        (
            sign_in(json!({ "authorizationServer": "https://u:p@id.test" })),
            "auth.authorizationServer: ValueInvalid",
        ),
        (sign_in(json!({ "registration": "preregistered" })), "auth.registration: FieldsExclude"),
        (
            sign_in(json!({ "registration": "cimd", "client": { "clientId": "c" } })),
            "auth.registration: FieldsExclude",
        ),
        (sign_in(json!({ "registration": "manual" })), "auth.registration: ValueInvalid"),
        (sign_in(json!({ "pkce": "off" })), "auth.pkce: ValueInvalid"),
        (sign_in(json!({ "refreshScope": "no" })), "auth.refreshScope: TypeWrong"),
        (sign_in(json!({ "resource": "x" })), "auth.resource: ValueInvalid"),
        (sign_in(json!({ "tokens": {} })), "auth.tokens: UnknownField"),
    ] {
        let found = reasons(ServerEntry::parse(&text(&entry(&auth)), None));
        assert_eq!(found, [reason], "{auth}");
    }
}

/// C31, C32: settings that cannot work together are refused when they are saved.
#[test]
fn oauth_c31_contradictory_settings_of_an_exchange_are_refused_when_saved() {
    let client = json!({ "clientId": "c" });
    for (more, exchange, reason) in [
        (json!({}), json!({ "identityProvider": "okta" }), "auth.exchange.type: FieldMissing"),
        (
            json!({ "client": client }),
            json!({ "type": "idJag" }),
            "auth.exchange.identityProvider: FieldMissing",
        ),
        (
            json!({}),
            json!({ "type": "jwt", "identityProvider": "okta" }),
            "auth.exchange.type: ValueInvalid",
        ),
        (
            json!({}),
            json!({ "type": "idJag", "identityProvider": "okta" }),
            "auth.exchange.type: FieldsExclude",
        ),
        (
            json!({ "client": client }),
            json!({ "type": "token", "identityProvider": "okta" }),
            "auth.client: FieldsExclude",
        ),
        (
            json!({ "client": client }),
            json!({ "type": "idJag", "identityProvider": "okta", "audience": "x" }),
            "auth.exchange.audience: FieldsExclude",
        ),
        (
            json!({ "pkce": "assume" }),
            json!({ "type": "token", "identityProvider": "okta" }),
            "auth.pkce: FieldsExclude",
        ),
        (
            json!({}),
            json!({ "type": "token", "identityProvider": "okta", "idToken": "x" }),
            "auth.exchange.idToken: UnknownField",
        ),
        (
            json!({}),
            json!({ "type": "token", "identityProvider": "okta", "fallback": "browser" }),
            "auth.exchange.fallback: ValueInvalid",
        ),
    ] {
        let mut auth = json!({ "mode": "authorizationCode", "exchange": exchange });
        auth.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let found = reasons(ServerEntry::parse(&text(&entry(&auth)), None));
        assert_eq!(found, [reason], "{auth}");
    }
}

/// X-E32: tokens of people go by https, or to this machine.
#[test]
fn x_e32_people_sign_in_to_servers_with_https() {
    for (url, is_fine) in [
        ("https://s.test/mcp", true),
        ("http://127.0.0.1:9000/mcp", true),
        ("http://localhost/mcp", true),
        ("${env.BASE}/mcp", true),
        ("http://s.test/mcp", false),
        ("HTTP://s.test/mcp", false),
    ] {
        let remote = json!({ "id": "s", "url": url, "kind": "remote_oauth" });
        let read = ServerEntry::parse(&text(&remote), None);
        match is_fine {
            true => assert!(read.is_ok(), "{url}: {read:?}"),
            false => assert_eq!(reasons(read), ["url: ValueInvalid"], "{url}"),
        }
    }
    let alone = json!({ "id": "s", "url": "http://s.test/mcp" });
    assert!(ServerEntry::parse(&text(&alone), None).is_ok());
}

/// D16: a server of a client starts, and so does one that people sign in to.
#[test]
fn o92_servers_with_a_sign_in_start() {
    let client = entry(&json!({ "mode": "clientCredentials", "clientId": "c",
                                "clientSecret": "${SECRET}" }));
    assert_eq!(server(&client).never_starts(), None);
    let person = entry(&json!({ "mode": "authorizationCode" }));
    assert_eq!(server(&person).never_starts(), None);
}
