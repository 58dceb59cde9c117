//! URLs with placeholders: a run fills in parts of them, and chooses no destination.

use narthex_catalog::{FaultCode, ServerEntry};
use narthex_model::Target;
use serde_json::{Value, json};

use crate::world::{World, refused, text};

fn at(url: &str) -> World {
    World::new(&[json!({ "id": "s", "url": url })]).using(json!({ "a": { "ref": "s" } }))
}

#[track_caller]
fn url(world: &World) -> String {
    match world.definition("a").unwrap_or_else(|error| panic!("{error}")).target {
        Target::Http(target) => target.url,
        Target::Stdio(_) => panic!("no URL"),
    }
}

/// O3, O42: URLs may hold placeholders, and are checked once they are filled in.
#[test]
fn o3_urls_may_hold_placeholders() {
    for (template, expected) in [
        ("https://x.test/${scope.t}/mcp", "https://x.test/a%20b%2Fc/mcp"),
        ("${env.BASE}/mcp", "https://base.test/v1/mcp"),
        (
            "${env.BASE}/${scope.t}?s=${runtime.session_id}",
            "https://base.test/v1/a%20b%2Fc?s=ses_0a1b2c3d4e5f",
        ),
        ("https://${scope.h}.x.test:8080/", "https://team-1.x.test:8080/"),
        ("https://a-${scope.h}-b.x.test", "https://a-team-1-b.x.test"),
        ("http://${scope.h}.localhost:8080/mcp", "http://team-1.localhost:8080/mcp"),
        ("https://${scope.h}.${env.DOMAIN}/", "https://team-1.own.test/"),
        ("https://${scope.h}@x.test/", "https://team-1@x.test/"),
        ("${runner.orchestrator_mcp_url}", "http://127.0.0.1:54321/mcp"),
    ] {
        let world = at(template)
            .env("BASE", "https://base.test/v1")
            .env("DOMAIN", "own.test")
            .scope(json!({ "t": "a b/c", "h": "team-1" }));
        assert_eq!(url(&world), expected);
    }
}

/// O66, O42: a placeholder of a URL that has no value refuses the run.
#[test]
fn o66_an_unresolved_url_is_refused() {
    for template in ["https://x.test/${scope.t}", "https://x.test/${env.T}"] {
        let world = at(template).unset("T");
        let faults = world.faults();
        assert_eq!(faults[0].code, FaultCode::MissingRequiredMcpConfig);
        assert_eq!(faults[0].path, "servers.s.url");
    }
    assert_eq!(at("${env.T}/x").env("T", "file:///etc").codes(), [FaultCode::ValueInvalid]);
    assert_eq!(at("${env.T}").env("T", "x y").codes(), [FaultCode::ValueInvalid]);
}

/// O69, S4: neither the model nor a run's creator chooses where requests go.
#[test]
fn o69_no_run_chooses_the_destination() {
    for template in [
        "https://x.test/${params.t}",
        "${scope.url}",
        "${scope.scheme}://x.test",
        "http${scope.s}://x.test",
        "${env.BASE}${scope.t}",
        "${env.BASE}x${scope.t}/",
        "${env.SCHEME}://${env.HOST}${scope.t}",
        "https://${env.HOST}${scope.t}/",
        "http://${scope.host}/mcp",
        "http://${runtime.run_id}:80/",
        "http://x.${scope.host}/mcp",
        "https://api.${scope.t}:443",
        "https://${scope.t}.com/",
        "https://${scope.t}.example.${scope.u}/",
        "https://${scope.t}..com/",
        "https://x.test:${scope.port}/",
        "https://user@${scope.t}/",
        "http://${scope.t}.0.0.1/",
        "http://[${scope.t}]/",
        "${API_URL}",
        "https://x.test/?key=${API_KEY}",
    ] {
        let entry = json!({ "id": "s", "url": template });
        let codes = refused(ServerEntry::parse(&text(&entry), None));
        let is_told = codes.contains(&FaultCode::PlaceholderNotAllowed)
            || codes.contains(&FaultCode::SecretMisplaced);
        assert!(is_told, "{template} {codes:?}");
    }
}

/// S4, S30: a scope's value stays in the part of the URL where it was put.
#[test]
fn s4_scope_values_stay_in_their_part_of_the_url() {
    let host = at("https://${scope.v}.x.test/mcp");
    for value in ["evil.test/", "a@evil.test", "evil.test#", "a:b", "a.b", "", "ä", "%2f", "a\\b"]
    {
        let world = host.clone().scope(json!({ "v": value }));
        assert_eq!(world.codes(), [FaultCode::ValueInvalid], "{value}");
    }
    let path = at("https://x.test/t/${scope.v}/mcp");
    for value in ["", ".", "..", &"a".repeat(3000)] {
        let world = path.clone().scope(json!({ "v": value }));
        assert_eq!(world.codes(), [FaultCode::ValueInvalid], "{value}");
    }
    for (value, expected) in [
        (json!("../admin"), "..%2Fadmin"),
        (json!("%2e%2e"), "%252e%252e"),
        (json!("a?b#c&d=e"), "a%3Fb%23c%26d%3De"),
        (json!("${env.X}"), "%24%7Benv.X%7D"),
        (json!("a\r\nb"), "a%0D%0Ab"),
        (json!(7), "7"),
    ] {
        let world = path.clone().scope(json!({ "v": value }));
        assert_eq!(url(&world), format!("https://x.test/t/{expected}/mcp"));
    }
}

/// O42: URLs that are none are refused when they are saved.
#[test]
fn o42_invalid_urls_are_refused_when_saved() {
    for bad in
        ["", "x", "/mcp", "ftp://x", "https://", "https://x y", "file:///etc", "javascript:1"]
    {
        let entry: Value = json!({ "id": "s", "url": bad });
        let codes = refused(ServerEntry::parse(&text(&entry), None));
        assert!(codes.contains(&FaultCode::ValueInvalid), "{bad}");
    }
}

/// S27: a URL with a password is refused at its field, since all readers of the catalog see it. The
/// refusal does not contain the password, and names the remedy. A user name alone, and a password
/// that only a run fills in, are allowed as before.
#[test]
fn s27_a_password_in_a_url_is_refused() {
    for url in [
        "https://user:hush@x.test/mcp",
        "https://:hush@x.test/mcp",
        "http://user:hush@127.0.0.1:8080/mcp",
        "HTTPS://user:%68ush@x.test",
    ] {
        let entry = json!({ "id": "s", "url": url });
        let faults = ServerEntry::parse(&text(&entry), None).unwrap_err();
        let told: Vec<_> = faults.iter().collect();
        assert_eq!((told.len(), told[0].path.as_str()), (1, "url"), "{url}: {faults}");
        assert_eq!(told[0].code, FaultCode::ValueInvalid);
        assert!(told[0].message.contains("the URL holds a password"), "{faults}");
        for word in ["secret", "`apiKey`", "`Basic `"] {
            assert!(told[0].remedy.contains(word), "{faults}");
        }
        assert!(!format!("{faults} {told:?}").contains("ush"), "{faults}");
    }
    for url in ["https://user@x.test/mcp", "https://x.test/a:b@c", "https://x.test/?a=b:c@d"] {
        let entry = json!({ "id": "s", "url": url });
        assert!(ServerEntry::parse(&text(&entry), None).is_ok(), "{url}");
    }
}
