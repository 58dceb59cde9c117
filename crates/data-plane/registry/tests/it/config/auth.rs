//! The four auth modes.

use narthex_model::{
    AuthErrorPattern, AuthorizationCodeAuth, ClientCredentialsAuth, ClientProof, ExchangeFallback,
    ExchangeIdentity, ExchangeKind, GivenIdentity, OAuth, OAuthClient, OAuthExchange, OAuthPkce,
    OAuthRegistration, OAuthResource, OAuthScopes, OAuthTokens, Secret, SecretMethod, ServerAuth,
};

use super::*;

fn with(auth: &str) -> String {
    format!(r#"{{ "transport": "http", "url": "https://x.test/mcp", "auth": {auth} }}"#)
}

#[test]
fn e112_an_entry_without_an_auth_block_has_no_authentication() {
    for json in [r#"{ "transport": "http", "url": "https://x" }"#, &with("null")] {
        assert_eq!(http(entry(json).0).auth, ServerAuth::Unstated);
    }
    assert_eq!(http(entry(&with(r#"{ "mode": "none" }"#)).0).auth, ServerAuth::None);
}

#[test]
fn e22_an_api_key_has_a_header_and_a_prefix() {
    let key = |json: &str| match http(entry(&with(json)).0).auth {
        ServerAuth::ApiKey(key) => key,
        other => panic!("{other:?}"),
    };
    let plain = key(r#"{ "mode": "apiKey", "key": "${env:KEY}" }"#);
    assert_eq!((plain.header_name.as_str(), plain.value_prefix.as_str()), ("Authorization", ""));
    assert_eq!(plain.key.unwrap().expose(), "k-123");
    let full =
        key(r#"{ "mode": "apiKey", "key": "v", "headerName": "X-Key", "valuePrefix": "Bearer " }"#);
    assert_eq!((full.header_name.as_str(), full.value_prefix.as_str()), ("X-Key", "Bearer "));
    assert_eq!(full.key.unwrap().expose(), "v");
}

/// E16: a key in the file works, with a warning that does not show it.
#[test]
fn e16_a_literal_key_causes_a_warning() {
    let (_, warnings) = entry(&with(r#"{ "mode": "apiKey", "key": "s3" }"#));
    assert_warned(&warnings, &["servers.x.auth.key", "${env:NAME}"]);
    let (_, warnings) = entry(&with(r#"{ "mode": "apiKey", "key": "${env:KEY}" }"#));
    assert_eq!(warnings, [] as [String; 0]);
}

/// E62: without a key the definition is valid, and connecting answers `auth_unavailable`.
#[test]
fn e62_an_api_key_block_without_a_key_is_valid() {
    for json in [
        r#"{ "mode": "apiKey", "headerName": "X-Api-Key" }"#,
        r#"{ "mode": "apiKey", "headerName": "X-Api-Key", "key": "" }"#,
        r#"{ "mode": "apiKey", "headerName": "X-Api-Key", "key": "${env:EMPTY}" }"#,
    ] {
        let ServerAuth::ApiKey(key) = http(entry(&with(json)).0).auth else { panic!("{json}") };
        assert_eq!((key.header_name.as_str(), key.key), ("X-Api-Key", None), "{json}");
    }
}

/// E62: missing client credentials are an auth fault that names the server.
#[test]
fn e62_client_credentials_need_id_and_secret() {
    for (json, key) in [
        (
            r#"{ "mode": "clientCredentials", "tokenUrl": "https://i", "clientId": "c" }"#,
            "clientSecret",
        ),
        (
            r#"{ "mode": "clientCredentials", "tokenUrl": "https://i", "clientSecret": "s" }"#,
            "clientId",
        ),
        (r#"{ "mode": "clientCredentials", "clientId": "c" }"#, "clientSecret"),
    ] {
        let fault = fault(entry(&with(json)).0);
        assert_eq!(fault.error.kind, CallErrorKind::AuthUnavailable);
        let wanted = format!("`servers.x.auth`: `{key}` is missing");
        assert!(fault.error.message.contains(&wanted), "{}", fault.error);
    }
}

#[test]
fn e110_unknown_and_missing_modes_are_refused() {
    assert_refused(
        r#"{ "transport": "stdio", "command": "true", "auth": { "mode": "wat" } }"#,
        &["`servers.x.auth.mode`: unknown auth mode `wat`", "`clientCredentials`"],
    );
    assert_refused(&with("{}"), &["`servers.x.auth`: the mode is missing"]);
    assert_refused(&with("\"apiKey\""), &["`servers.x.auth`: expected an object, found a string"]);
    assert_refused(
        &with(r#"{ "mode": 1 }"#),
        &["`servers.x.auth.mode`: expected a string, found a number"],
    );
}

/// A filled-in value may be a secret in the wrong place.
#[test]
fn s27_faults_show_placeholders_and_not_filled_in_values() {
    for json in [
        r#"{ "mode": "api ${env:KEY}" }"#,
        r#"{ "mode": "apiKey", "key": "k", "headerName": "api ${env:KEY}" }"#,
    ] {
        let text = refused(&with(json));
        assert!(text.contains("`api ${env:KEY}`") && !text.contains("k-123"), "{text}");
    }
}

#[test]
fn e111_references_are_refused_by_name() {
    for (mode, key, instead) in [
        ("apiKey", "valueRef", "key"),
        ("clientCredentials", "clientIdRef", "clientId"),
        ("clientCredentials", "clientSecretRef", "clientSecret"),
        ("authorizationCode", "clientIdRef", "clientId"),
    ] {
        let json = with(&format!(r#"{{ "mode": "{mode}", "{key}": "k" }}"#));
        let path = format!("`servers.x.auth.{key}`: `{key}` is not supported");
        assert_refused(&json, &[&path, &format!("as `{instead}`")]);
    }
    let json = with(r#"{ "mode": "authorizationCode", "client": { "clientSecretRef": "k" } }"#);
    assert_refused(&json, &["`servers.x.auth.client.clientSecretRef`"]);
}

/// The code-level entries of document 001, under their names.
#[test]
fn e24_e26_complete_oauth_entries_are_valid() {
    let client_credentials = with(
        r#"{ "mode": "clientCredentials", "tokenUrl": "https://id.test/token", "clientId": "c",
             "clientSecret": "s", "scopes": ["read"], "audience": "aud",
             "resource": "https://svc.test", "authError": "not logged in" }"#,
    );
    let (read, warnings) = entry(&client_credentials);
    let wanted = OAuth::ClientCredentials(ClientCredentialsAuth {
        token_url: Some("https://id.test/token".to_owned()),
        client_id: "c".to_owned(),
        proof: ClientProof::Secret { secret: Secret::new("s"), method: None },
        scopes: OAuthScopes::from(["read".to_owned()]),
        audience: Some("aud".to_owned()),
        resource: Some("https://svc.test".to_owned()),
        authorization_server: None,
        auth_error: AuthErrorPattern::new("not logged in").ok(),
        grant: None,
    });
    assert_eq!(http(read).auth, ServerAuth::OAuth(Box::new(wanted)));
    assert_warned(&warnings, &["servers.x.auth.clientSecret"]);
    let authorization_code = with(
        r#"{ "mode": "authorizationCode", "client": { "clientId": "pre" },
             "tokens": { "accessToken": "a", "refreshToken": "r", "expiresAt": 1900000000 },
             "redirectUri": "http://127.0.0.1:53117/cb", "resource": "https://notes.test" }"#,
    );
    let (read, warnings) = entry(&authorization_code);
    let wanted = OAuth::AuthorizationCode(AuthorizationCodeAuth {
        scopes: OAuthScopes::new(),
        client: Some(OAuthClient { id: "pre".to_owned(), secret: None }),
        tokens: Some(OAuthTokens {
            access_token: Secret::new("a"),
            refresh_token: Some(Secret::new("r")),
            expires_at: Some(1_900_000_000),
        }),
        redirect_uri: Some("http://127.0.0.1:53117/cb".to_owned()),
        resource: Some(OAuthResource::Url("https://notes.test".to_owned())),
        ..AuthorizationCodeAuth::default()
    });
    assert_eq!(http(read).auth, ServerAuth::OAuth(Box::new(wanted)));
    assert_warned(&warnings, &["servers.x.auth.tokens.accessToken"]);
}

/// The clientCredentials block of an entry.
fn exchange(fields: &str) -> String {
    with(&format!(r#"{{ "mode": "clientCredentials", "clientId": "c", {fields} }}"#))
}

/// The authorizationCode block of an entry.
fn sign_in(fields: &str) -> String {
    with(&format!(r#"{{ "mode": "authorizationCode", {fields} }}"#))
}

fn oauth(json: &str) -> OAuth {
    match http(entry(json).0).auth {
        ServerAuth::OAuth(oauth) => *oauth,
        other => panic!("{other:?}"),
    }
}

fn read_exchange(fields: &str) -> ClientCredentialsAuth {
    match oauth(&exchange(fields)) {
        OAuth::ClientCredentials(auth) => auth,
        other @ OAuth::AuthorizationCode(_) => panic!("{other:?}"),
    }
}

/// C30: without a token endpoint the server's metadata leads to one; a key replaces the secret.
#[test]
fn oauth_c30_client_credentials_have_discovery_and_a_private_key() {
    let plain = read_exchange(r#""clientSecret": "${env:KEY}""#);
    assert_eq!((plain.token_url, plain.authorization_server), (None, None));
    assert_eq!(plain.proof.method(), None);
    let pinned = read_exchange(
        r#""clientSecret": "${env:KEY}", "tokenEndpointAuthMethod": "client_secret_basic",
           "authorizationServer": "https://id.test""#,
    );
    let method = Some(SecretMethod::Basic);
    assert_eq!(pinned.proof, ClientProof::Secret { secret: Secret::new("k-123"), method });
    assert_eq!(pinned.authorization_server.as_deref(), Some("https://id.test"));
    let pem = "-----BEGIN PRIVATE KEY-----\\nAA==\\n-----END PRIVATE KEY-----";
    let by_key = |more: &str| read_exchange(&format!(r#""privateKey": "{pem}"{more}"#)).proof;
    let key = |key_id: Option<&str>, algorithm: Option<&str>| ClientProof::Key {
        pem: Secret::new(pem.replace("\\n", "\n")),
        key_id: key_id.map(str::to_owned),
        algorithm: algorithm.map(str::to_owned),
    };
    assert_eq!(by_key(""), key(None, None));
    let full = r#", "keyId": "k1", "algorithm": "ES256",
                  "tokenEndpointAuthMethod": "private_key_jwt""#;
    assert_eq!(by_key(full), key(Some("k1"), Some("ES256")));
}

/// C30: contradictory settings of a client are refused, with the field and the remedy.
#[test]
fn oauth_c30_contradictory_client_credentials_are_refused() {
    let secret = r#""clientSecret": "${env:KEY}""#;
    let key = r#""privateKey": "-----BEGIN PRIVATE KEY-----""#;
    for (fields, parts) in [
        (
            format!("{secret}, {key}"),
            ["`servers.x.auth`: `clientSecret` and `privateKey` exclude", "keep one"],
        ),
        (r#""scopes": []"#.to_owned(), ["`clientSecret` is missing", "or a `privateKey`"]),
        (
            format!(r#"{secret}, "tokenEndpointAuthMethod": "private_key_jwt""#),
            ["auth.tokenEndpointAuthMethod`: `private_key_jwt` needs `privateKey`", "add"],
        ),
        (
            format!(r#"{key}, "tokenEndpointAuthMethod": "client_secret_post""#),
            ["auth.tokenEndpointAuthMethod`: `client_secret_post` needs `clientSecret`", "add"],
        ),
        (
            format!(r#"{secret}, "tokenEndpointAuthMethod": "none""#),
            ["auth.tokenEndpointAuthMethod`: unknown choice `none`", "`client_secret_basic`, "],
        ),
        (
            format!(r#"{secret}, "keyId": "k""#),
            ["`servers.x.auth`: `keyId` needs `privateKey`", "or remove `keyId`"],
        ),
        (
            format!(r#"{key}, "algorithm": "HS256""#),
            ["auth.algorithm`: unknown choice `HS256`", "`ES256`, `RS256`"],
        ),
        (
            r#""privateKey": "${env:KEY}""#.to_owned(),
            ["auth.privateKey`: this is no private key", "BEGIN PRIVATE KEY"],
        ),
        (
            format!(r#"{secret}, "tokenUrl": "http://id.test/token""#),
            ["auth.tokenUrl`: the address gets credentials", "write one with https"],
        ),
        (
            format!(r#"{secret}, "authorizationServer": "id.test""#),
            ["auth.authorizationServer`: the address is not absolute", "https://"],
        ),
    ] {
        let text = refused(&exchange(&fields));
        for part in parts {
            assert!(text.contains(part), "{fields}: {text}");
        }
        assert!(!text.contains("k-123"), "{text}");
    }
    let fine = format!(r#"{secret}, "tokenUrl": "http://127.0.0.1:1/token""#);
    assert_eq!(read_exchange(&fine).token_url.unwrap(), "http://127.0.0.1:1/token");
}

/// E25: each setting of a sign-in is read.
#[test]
fn e25_each_setting_of_a_sign_in_is_read() {
    let read = oauth(&sign_in(
        r#""client": { "clientId": "c" }, "resource": "omit", "registration": "preregistered",
           "pkce": "assume", "refreshScope": false, "clientName": "Agents",
           "authorizationServer": "https://id.test/t", "legacy": true, "keepAlive": true,
           "authError": "$.structuredContent.code=401""#,
    ));
    let wanted = AuthorizationCodeAuth {
        client: Some(OAuthClient { id: "c".to_owned(), secret: None }),
        resource: Some(OAuthResource::Omit),
        registration: Some(OAuthRegistration::Preregistered),
        pkce: Some(OAuthPkce::Assume),
        refresh_scope: Some(false),
        client_name: Some("Agents".to_owned()),
        authorization_server: Some("https://id.test/t".to_owned()),
        legacy: true,
        keep_alive: true,
        auth_error: AuthErrorPattern::new("$.structuredContent.code=401").ok(),
        ..AuthorizationCodeAuth::default()
    };
    assert_eq!(read, OAuth::AuthorizationCode(wanted));
    let plain = oauth(&sign_in(r#""scopes": []"#));
    assert_eq!(plain, OAuth::AuthorizationCode(AuthorizationCodeAuth::default()));
}

fn identity(exchange: &str) -> String {
    sign_in(&format!(r#""client": {{ "clientId": "c" }}, "exchange": {{ {exchange} }}"#))
}

/// C31: the identity of a person is given by tokens of the company's provider.
#[test]
fn oauth_c31_each_setting_of_an_exchange_is_read() {
    let read = oauth(&identity(
        r#""type": "idJag", "tokenUrl": "https://idp.test/token", "clientId": "i",
           "clientSecret": "${env:KEY}", "idToken": "${env:KEY}", "refreshToken": "${env:KEY}""#,
    ));
    let given = GivenIdentity {
        token_url: "https://idp.test/token".to_owned(),
        client: OAuthClient { id: "i".to_owned(), secret: Some(Secret::new("k-123")) },
        id_token: Some(Secret::new("k-123")),
        refresh_token: Some(Secret::new("k-123")),
    };
    let exchange = OAuthExchange {
        kind: ExchangeKind::IdJag,
        identity: ExchangeIdentity::Given(Box::new(given)),
        audience: None,
        fallback: None,
    };
    let wanted = AuthorizationCodeAuth {
        client: Some(OAuthClient { id: "c".to_owned(), secret: None }),
        exchange: Some(Box::new(exchange)),
        ..AuthorizationCodeAuth::default()
    };
    assert_eq!(read, OAuth::AuthorizationCode(wanted));
}

/// C31, C32: settings that cannot work are refused with their field.
#[test]
fn oauth_c31_an_exchange_that_cannot_work_is_refused() {
    let idp = r#""tokenUrl": "https://idp.test/token", "clientId": "i""#;
    let token = r#""idToken": "${env:KEY}""#;
    for (exchange, parts) in [
        (format!("{idp}, {token}"), ["`servers.x.auth.exchange`: `type` is missing", ""]),
        (format!(r#""type": "idJag", {idp}"#), ["auth.exchange`: the identity", "`refreshToken`"]),
        (
            format!(r#""type": "idJag", "clientId": "i", {token}"#),
            ["auth.exchange`: `tokenUrl` is missing", ""],
        ),
        (
            format!(
                r#""type": "idJag", "tokenUrl": "http://idp.test/t", "clientId": "i", {token}"#
            ),
            ["auth.exchange.tokenUrl`: the address gets credentials", "https"],
        ),
        (
            format!(r#""type": "token", {idp}, {token}"#),
            ["auth.client`: `client` and `token` exclude each other", ""],
        ),
        (
            format!(r#""type": "idJag", {idp}, {token}, "audience": "a""#),
            ["auth.exchange.audience`: `audience` and `idJag` exclude each other", ""],
        ),
        (
            r#""type": "idJag", "identityProvider": "okta""#.to_owned(),
            ["auth.exchange.identityProvider`: a server of a file belongs to no human", "catalog"],
        ),
    ] {
        let text = refused(&identity(&exchange));
        for part in parts {
            assert!(text.contains(part), "{exchange}: {text}");
        }
        assert!(!text.contains("k-123"), "{text}");
    }
    let alone = format!(r#""exchange": {{ "type": "idJag", {idp}, {token} }}"#);
    assert_refused(&sign_in(&alone), &["auth.exchange.type`: `idJag` needs `client`"]);
    let legacy = format!(r#""legacy": true, "exchange": {{ "type": "token", {idp}, {token} }}"#);
    assert_refused(&sign_in(&legacy), &["auth.legacy`: `legacy` and `exchange` exclude"]);
}

/// C31: an exchange that is refused can lead to a sign-in, whose settings count then.
#[test]
fn oauth_c31_a_fallback_has_the_settings_of_a_sign_in() {
    let idp = r#""tokenUrl": "https://idp.test/token", "clientId": "i", "idToken": "${env:KEY}""#;
    let with = |more: &str, way: &str| {
        format!(r#"{more}, "exchange": {{ "type": "token", {idp}, "fallback": "{way}" }}"#)
    };
    let own = with(r#""client": { "clientId": "c" }, "keepAlive": true"#, "signIn");
    let OAuth::AuthorizationCode(read) = oauth(&sign_in(&own)) else { panic!("another mode") };
    assert_eq!(read.exchange.unwrap().fallback, Some(ExchangeFallback::SignIn));
    assert!(read.keep_alive && read.client.is_some());
    let unknown = with(r#""keepAlive": true"#, "browser");
    assert_refused(&sign_in(&unknown), &["auth.exchange.fallback`", "signIn"]);
    let tokens = with(r#""tokens": { "accessToken": "${env:KEY}" }"#, "signIn");
    assert_refused(&sign_in(&tokens), &["auth.tokens`: `tokens` and `exchange` exclude"]);
}

/// D8: a sign-in sets the header itself.
#[test]
fn d8_a_sign_in_excludes_an_authorization_header() {
    for auth in [
        r#"{ "mode": "authorizationCode" }"#,
        r#"{ "mode": "clientCredentials", "clientId": "c", "clientSecret": "${env:KEY}" }"#,
    ] {
        let json = format!(
            r#"{{ "transport": "http", "url": "https://x",
                  "headers": {{ "authorization": "${{env:KEY}}" }}, "auth": {auth} }}"#
        );
        assert_refused(&json, &["`servers.x.headers.authorization`", "set twice"]);
    }
}

/// E49: `scopes` is a set, so that neither their order nor one given twice is a change.
#[test]
fn e49_scopes_have_no_order() {
    for mode in [
        r#""mode": "authorizationCode""#,
        r#""mode": "clientCredentials", "tokenUrl": "https://i", "clientId": "c",
           "clientSecret": "${env:KEY}""#,
    ] {
        let auth = |scopes: &str| {
            http(entry(&with(&format!(r#"{{ {mode}, "scopes": {scopes} }}"#))).0).auth
        };
        assert_eq!(auth(r#"["read", "write"]"#), auth(r#"["write", "read", "write"]"#));
        assert_ne!(auth(r#"["read", "write"]"#), auth(r#"["read"]"#));
    }
}

/// D22, E49: credentials of a sign-in are as secret as a key.
#[test]
fn d22_credentials_of_a_sign_in_are_secret() {
    let secrets = |auth: &str| {
        let Entry::Server(definition) = entry(&with(auth)).0 else { panic!("{auth}") };
        let shown = format!("{definition:?}");
        assert!(!shown.contains("s3cr3t"), "{shown}");
        definition.secrets().iter().map(|secret| secret.expose().to_owned()).collect::<Vec<_>>()
    };
    let found = secrets(
        r#"{ "mode": "clientCredentials", "tokenUrl": "https://i", "clientId": "c",
             "clientSecret": "s3cr3t-1" }"#,
    );
    assert_eq!(found, ["s3cr3t-1"]);
    let pem = "-----BEGIN PRIVATE KEY-----s3cr3t-2";
    let found = secrets(&format!(
        r#"{{ "mode": "clientCredentials", "clientId": "c", "privateKey": "{pem}" }}"#
    ));
    assert_eq!(found[0], pem);
    let found = secrets(
        r#"{ "mode": "authorizationCode",
             "client": { "clientId": "c", "clientSecret": "s3cr3t-1" },
             "tokens": { "accessToken": "s3cr3t-2", "refreshToken": "s3cr3t-3" } }"#,
    );
    assert_eq!(found, ["s3cr3t-1", "s3cr3t-2", "s3cr3t-3"]);
}

/// E119: a field of an older form has no effect and is let through.
#[test]
fn e119_flow_is_tolerated() {
    let (read, warnings) = entry(&with(r#"{ "mode": "authorizationCode", "flow": "pkce" }"#));
    assert_eq!((http(read).auth.mode(), warnings.len()), ("authorizationCode", 0));
}

#[test]
fn e25_oauth_fields_are_checked() {
    for (json, part) in [
        (
            r#"{ "mode": "authorizationCode", "redirectUri": "cb" }"#,
            "auth.redirectUri`: the url cannot",
        ),
        (r#"{ "mode": "authorizationCode", "resource": "x" }"#, "auth.resource`: the url cannot"),
        (r#"{ "mode": "authorizationCode", "scopes": "a b" }"#, "auth.scopes`: expected an array"),
        (r#"{ "mode": "authorizationCode", "scopes": [1] }"#, "auth.scopes[0]`: expected a str"),
        (r#"{ "mode": "authorizationCode", "client": {} }"#, "auth.client`: `clientId` is missing"),
        (r#"{ "mode": "authorizationCode", "client": "c" }"#, "auth.client`: expected an object"),
        (r#"{ "mode": "authorizationCode", "tokens": {} }"#, "auth.tokens`: `accessToken` is miss"),
        (
            r#"{ "mode": "authorizationCode",
                 "tokens": { "accessToken": "a", "expiresAt": "x" } }"#,
            "auth.tokens.expiresAt`: expected a num",
        ),
        (
            r#"{ "mode": "authorizationCode",
                 "tokens": { "accessToken": "a", "expiresAt": -1 } }"#,
            "auth.tokens.expiresAt`: expected a num",
        ),
        (
            r#"{ "mode": "authorizationCode", "pkce": "off" }"#,
            "auth.pkce`: unknown choice `off`; use one of `require`, `assume`",
        ),
        (
            r#"{ "mode": "authorizationCode", "registration": "manual" }"#,
            "auth.registration`: unknown choice `manual`; use one of `auto`, `preregistered`, ",
        ),
        (
            r#"{ "mode": "authorizationCode", "registration": "preregistered" }"#,
            "auth.registration`: `preregistered` needs `client`, which is missing",
        ),
        (
            r#"{ "mode": "authorizationCode", "registration": "dcr",
                 "client": { "clientId": "c" } }"#,
            "auth.registration`: `dcr` and `client` exclude each other",
        ),
        (
            r#"{ "mode": "authorizationCode", "authorizationServer": "http://id.test" }"#,
            "auth.authorizationServer`: the address gets credentials",
        ),
        (r#"{ "mode": "authorizationCode", "pkce": true }"#, "auth.pkce`: expected a string"),
        (
            r#"{ "mode": "authorizationCode", "refreshScope": "yes" }"#,
            "auth.refreshScope`: expected true or false",
        ),
        (
            r#"{ "mode": "authorizationCode", "keepAlive": 1 }"#,
            "auth.keepAlive`: expected true or false",
        ),
        (
            r#"{ "mode": "authorizationCode", "authError": "$." }"#,
            "auth.authError`: a pattern has 3 to 300 bytes",
        ),
        (
            r#"{ "mode": "authorizationCode", "authError": "$.a..b" }"#,
            "auth.authError`: after `$.` come 1 to 8 names",
        ),
    ] {
        assert_refused(&with(json), &[part]);
    }
}

/// D8: two ways to set one header are refused.
#[test]
fn d8_a_header_and_an_api_key_never_share_a_name() {
    let json = r#"{ "transport": "http", "url": "https://x",
        "headers": { "authorization": "${env:KEY}" },
        "auth": { "mode": "apiKey", "key": "${env:KEY}" } }"#;
    assert_refused(json, &["`servers.x.headers.authorization`", "set twice"]);
}

#[test]
fn a_key_that_no_header_can_carry_is_refused_unseen() {
    let message = refused(&with(r#"{ "mode": "apiKey", "key": "${env:LINE}" }"#));
    assert!(message.contains("line breaks") && !message.contains("k-123"), "{message}");
    assert_refused(&with(r#"{ "mode": "apiKey", "headerName": "X Y" }"#), &["auth.headerName`"]);
}

#[test]
fn auth_on_a_stdio_server_is_checked_and_unused() {
    let json = r#"{ "transport": "stdio", "command": "true", "auth": { "mode": "apiKey" } }"#;
    let (read, warnings) = entry(json);
    stdio(read);
    assert_warned(&warnings, &["servers.x.auth", "use `env`"]);
}
