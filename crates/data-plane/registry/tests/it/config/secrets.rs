//! Secrets that an entry names by `${secret:NAME}`.

use narthex_model::{AuthSecret, Secret, SecretPlace, ServerDefinition};

use super::{assert_refused, entry, foreign, http, refused, server, stdio};

fn named(server: &ServerDefinition) -> Vec<(&str, &str)> {
    server.named_secrets.iter().map(|one| (one.name.as_str(), one.key.as_str())).collect()
}

/// D38: a whole value of `env` names a secret, in both documents, and holds no value yet.
#[test]
fn d38_a_variable_names_a_secret() {
    let json = r#""command": "x", "env": {"TOKEN": "${secret:GITHUB_TOKEN}", "LOG": "info"}"#;
    let (read, warnings) = entry(&format!(r#"{{"transport": "stdio", {json}}}"#));
    assert!(warnings.is_empty(), "{warnings:?}");
    let read = server(read);
    assert_eq!(named(&read), [("GITHUB_TOKEN", "servers.x.env.TOKEN")]);
    assert_eq!(read.named_secrets[0].place, SecretPlace::Variable("TOKEN".to_owned()));
    assert_eq!(read.unopened_secrets().count(), 1);
    let (shared, warnings) = foreign(&format!("{{{json}}}"));
    assert!(warnings.is_empty(), "{warnings:?}");
    assert_eq!(named(&server(shared)), [("GITHUB_TOKEN", "mcpServers.x.env.TOKEN")]);
}

/// D38, E88: a header and a key name secrets; the source of the header is known.
#[test]
fn d38_headers_and_keys_name_secrets() {
    let (read, warnings) = entry(
        r#"{"transport": "http", "url": "https://a.test/mcp",
            "headers": {"X-Api-Key": "${secret:TEAM_KEY}"},
            "auth": {"mode": "apiKey", "valuePrefix": "Bearer ", "key": "${secret:PAY_KEY}"}}"#,
    );
    assert!(warnings.is_empty(), "{warnings:?}");
    let read = server(read);
    let keys = [("PAY_KEY", "servers.x.auth.key"), ("TEAM_KEY", "servers.x.headers.X-Api-Key")];
    assert_eq!(named(&read), keys);
    assert_eq!(read.named_secrets[0].place, SecretPlace::Auth(AuthSecret::Key));
    assert!(read.named_secrets.iter().all(narthex_model::NamedSecret::is_in_header));
    let of = |header: &str| {
        let source = read.header_sources.iter().find(|source| source.header == header);
        source.unwrap().secret.as_ref().unwrap().as_str().to_owned()
    };
    assert_eq!((of("Authorization"), of("X-Api-Key")), ("PAY_KEY".into(), "TEAM_KEY".into()));
}

/// D38: the secret fields of the OAuth modes name secrets, and no other field does.
#[test]
fn d38_secret_fields_of_oauth_name_secrets() {
    let with = |auth: &str| {
        format!(r#"{{"transport": "http", "url": "https://a.test/mcp", "auth": {{{auth}}}}}"#)
    };
    let client = |id: &str| {
        with(&format!(
            r#""mode": "clientCredentials", "tokenUrl": "https://id.test/t", "clientId": "{id}",
               "clientSecret": "${{secret:ID_SECRET}}""#
        ))
    };
    let read = server(entry(&client("c")).0);
    assert_eq!(named(&read), [("ID_SECRET", "servers.x.auth.clientSecret")]);
    let by_key =
        with(r#""mode": "clientCredentials", "clientId": "c", "privateKey": "${secret:ID_KEY}""#);
    let read = server(entry(&by_key).0);
    assert_eq!(named(&read), [("ID_KEY", "servers.x.auth.privateKey")]);
    assert_eq!(read.named_secrets[0].place, SecretPlace::Auth(AuthSecret::PrivateKey));
    let code = r#""mode": "authorizationCode",
        "client": {"clientId": "c", "clientSecret": "${secret:A}"},
        "tokens": {"accessToken": "${secret:B}", "refreshToken": "${secret:C}"}"#;
    let read = server(entry(&with(code)).0);
    let keys = ["client.clientSecret", "tokens.accessToken", "tokens.refreshToken"];
    let keys = keys.map(|key| format!("servers.x.auth.{key}"));
    assert_eq!(read.named_secrets.iter().map(|one| &one.key).collect::<Vec<_>>(), keys.each_ref());
    let place = ["`servers.x.auth.clientId`: `${secret:A}` works only as the whole value"];
    assert_refused(&client("${secret:A}"), &place);
}

/// D38: inside a longer text, and at a place that other programs can read, a secret is refused, and
/// the message names the field and the remedy.
#[test]
fn d38_a_secret_is_never_a_part_of_a_text() {
    let stdio = |json: &str| format!(r#"{{"transport": "stdio", "command": "x", {json}}}"#);
    let http = |json: &str| format!(r#"{{"transport": "http", {json}}}"#);
    let url = r#""url": "https://a.test/mcp""#;
    for (json, place) in [
        (stdio(r#""env": {"A": "x${secret:K}"}"#), "env.A"),
        (stdio(r#""env": {"A": "${secret:K} "}"#), "env.A"),
        (stdio(r#""env": {"A": "${secret:K}${secret:L}"}"#), "env.A"),
        (stdio(r#""env": {"A": "${env:KEY}${secret:K}"}"#), "env.A"),
        (stdio(r#""args": ["${secret:K}"]"#), "args[0]"),
        (stdio(r#""args": ["--key=${secret:K}"]"#), "args[0]"),
        (stdio(r#""cwd": "${secret:K}""#), "cwd"),
        (r#"{"transport": "stdio", "command": "${secret:K}"}"#.to_owned(), "command"),
        (http(r#""url": "${secret:K}""#), "url"),
        (http(r#""url": "https://a.test/${secret:K}/mcp""#), "url"),
        (http(&format!(r#"{url}, "headers": {{"A": "Bearer ${{secret:K}}"}}"#)), "headers.A"),
        (
            http(&format!(
                r#"{url}, "auth": {{"mode": "apiKey", "key": "a", "valuePrefix": "${{secret:K}}"}}"#
            )),
            "auth.valuePrefix",
        ),
    ] {
        let place = format!("`servers.x.{place}`: `${{secret:K}}` works only as the whole value");
        assert_refused(&json, &[&place, "store all of the value", "`valuePrefix`"]);
    }
}

/// D38, S27: a text that is no name of a secret may be the secret itself, so it is not repeated.
#[test]
fn d38_a_wrong_name_of_a_secret_is_not_repeated() {
    for name in ["", "hunter2-lower", "9A", "A B", "A:-x"] {
        for value in [format!("${{secret:{name}}}"), format!("Bearer ${{secret:{name}}}")] {
            let json = format!(
                r#"{{"transport": "http", "url": "https://a.test/mcp",
                     "headers": {{"X-Api-Key": "{value}"}}}}"#
            );
            let text = refused(&json);
            assert!(text.contains("`servers.x.headers.X-Api-Key`"), "{text}");
            assert!(text.contains("this is not a name of a secret"), "{text}");
            assert!(!text.contains("hunter2"), "{text}");
        }
    }
}

/// D38, S30: the escape writes the text itself, and values of variables are never read as names.
#[test]
fn d38_only_the_text_of_the_file_names_secrets() {
    let json = r#"{"transport": "stdio", "command": "x", "env": {"A": "$${secret:KEY}"}}"#;
    let read = server(entry(json).0);
    assert!(read.named_secrets.is_empty());
    assert_eq!(stdio(entry(json).0).env["A"], Secret::new("${secret:KEY}"));
    let json =
        r#"{"transport": "http", "url": "https://a.test", "headers": {"A": "${env:SECRET}"}}"#;
    let read = server(entry(json).0);
    assert!(read.named_secrets.is_empty(), "{read:?}");
    assert_eq!(http(entry(json).0).headers["A"], Secret::new("${secret:KEY}"));
}
