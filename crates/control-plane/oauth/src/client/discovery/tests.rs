//! Discoveries against servers that answer from a table.

use serde_json::{Value, json};
use url::Url;

use super::{Discovery, DiscoveryError, Found, Step};
use crate::{
    challenge::Bearer,
    client::{Flow, PkceRule, Reply, ResourceRule, Settings},
    scopes::Scopes,
};

const SERVER: &str = "https://mcp.example/v1/mcp";
const ISSUER: &str = "https://as.example";
const RESOURCE: &str = "/.well-known/oauth-protected-resource";
const METADATA: &str = "/.well-known/oauth-authorization-server";
const OPENID: &str = "/.well-known/openid-configuration";

/// The documents of servers; other addresses answer 404.
struct World {
    pages: Vec<(String, u16, String)>,
    challenge: Option<Bearer>,
    flow: Flow,
    settings: Settings,
}

/// The result of a discovery, and the addresses that were asked.
struct End {
    result: Result<Found, DiscoveryError>,
    asked: Vec<String>,
}

impl World {
    fn new() -> Self {
        Self {
            pages: Vec::new(),
            challenge: None,
            flow: Flow::Browser,
            settings: Settings::default(),
        }
    }

    fn page(mut self, url: impl Into<String>, status: u16, body: impl ToString) -> Self {
        self.pages.push((url.into(), status, body.to_string()));
        self
    }

    fn json(self, url: impl Into<String>, body: &Value) -> Self {
        self.page(url, 200, body)
    }

    fn challenge(mut self, header: &str) -> Self {
        self.challenge = Bearer::find([header]);
        self
    }

    fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    fn discover(&self) -> End {
        self.discover_at(SERVER)
    }

    fn discover_at(&self, server: &str) -> End {
        let server = Url::parse(server).unwrap();
        let (challenge, settings) = (self.challenge.as_ref(), self.settings.clone());
        let (mut discovery, mut step) = Discovery::begin(&server, challenge, self.flow, settings);
        let mut asked = Vec::new();
        let result = loop {
            let url = match step {
                Step::Get(url) => url,
                Step::Found(found) => break Ok(*found),
                Step::Failed(error) => break Err(error),
            };
            asked.push(url.to_string());
            assert!(asked.len() < 30, "it does not end: {asked:?}");
            let page = self.pages.iter().find(|(place, ..)| place == url.as_str());
            step = match page {
                Some((_, 0, _)) => discovery.answer(&Reply::Missing),
                Some((_, status, body)) => discovery.answer(&Reply::of(*status, body.as_bytes())),
                None => discovery.answer(&Reply::of(404, b"not found")),
            };
        };
        End { result, asked }
    }
}

impl End {
    fn found(self) -> Found {
        self.result.unwrap()
    }

    fn error(self) -> DiscoveryError {
        self.result.unwrap_err()
    }
}

fn at(origin: &str, path: &str) -> String {
    format!("{origin}{path}")
}

fn resource() -> Value {
    json!({"resource": SERVER, "authorization_servers": [ISSUER], "scopes_supported": ["a", "b"]})
}

fn metadata(issuer: &str) -> Value {
    json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"),
        "code_challenge_methods_supported": ["S256"],
    })
}

/// A server with its metadata in the first places.
fn usual() -> World {
    World::new()
        .json(at("https://mcp.example", &format!("{RESOURCE}/v1/mcp")), &resource())
        .json(at(ISSUER, METADATA), &metadata(ISSUER))
}

/// The usual server whose resource names this issuer, whose metadata is this.
fn of_issuer(issuer: &str, metadata: &Value) -> World {
    let mut resource = resource();
    resource["authorization_servers"] = json!([issuer]);
    let origin = Url::parse(issuer).unwrap().origin().ascii_serialization();
    World::new()
        .json(at("https://mcp.example", RESOURCE), &resource)
        .json(at(&origin, METADATA), metadata)
}

#[test]
fn oauth_c3_the_documents_of_the_known_places_are_used() {
    let end = usual().discover();
    assert_eq!(
        end.asked,
        [at("https://mcp.example", &format!("{RESOURCE}/v1/mcp")), at(ISSUER, METADATA)]
    );
    let found = end.found();
    assert_eq!((found.issuer.as_str(), found.identifier.as_str()), (ISSUER, SERVER));
    assert_eq!(found.resource.as_deref(), Some(SERVER));
    assert_eq!(found.scopes.to_string(), "a b");
    assert_eq!(found.metadata.token_endpoint.unwrap().as_str(), "https://as.example/token");
    assert!(!found.is_legacy);
}

/// X-E33.
#[test]
fn oauth_c3_the_address_of_the_challenge_is_asked_first() {
    let end = World::new()
        .json("https://mcp.example/custom/meta", &resource())
        .json(at("https://mcp.example", RESOURCE), &json!({"resource": "https://trap.example"}))
        .json(at(ISSUER, METADATA), &metadata(ISSUER))
        .challenge("Bearer resource_metadata=\"https://mcp.example/custom/meta\", scope=\"c\"")
        .discover();
    assert_eq!(end.asked.len(), 2);
    assert_eq!(end.found().scopes.to_string(), "c");
    // An address that must not be asked is passed over.
    let end = usual().challenge("Bearer resource_metadata=\"http://169.254.169.254/\"").discover();
    assert_eq!(end.asked.len(), 2);
    end.found();
}

#[test]
fn oauth_c3_all_places_of_a_resource_are_tried_in_order() {
    let end = World::new().discover();
    let places = [format!("{RESOURCE}/v1/mcp"), RESOURCE.to_owned(), format!("/v1/mcp{RESOURCE}")];
    assert_eq!(end.asked, places.map(|place| at("https://mcp.example", &place)));
    let error = end.error();
    assert_eq!(error.kind(), narthex_model::ErrorKind::Invalid);
    assert_eq!(
        error.to_string(),
        "the server asks for a sign-in, but says nowhere which authorization server it trusts \
         (asked: https://mcp.example/.well-known/oauth-protected-resource/v1/mcp, \
         https://mcp.example/.well-known/oauth-protected-resource, \
         https://mcp.example/v1/mcp/.well-known/oauth-protected-resource); set \
         auth.authorizationServer to the issuer that its documentation names"
    );
}

#[test]
fn oauth_c4_metadata_of_another_resource_is_refused() {
    for said in [
        "https://evil.example/v1/mcp",
        "https://mcp.example/v1/mcp2",
        "https://mcp.example/v1/mcp/x",
    ] {
        let mut resource = resource();
        resource["resource"] = json!(said);
        let end = World::new().json(at("https://mcp.example", RESOURCE), &resource).discover();
        let error = end.error();
        assert!(matches!(error, DiscoveryError::ResourceMismatch { .. }), "{said}: {error:?}");
        assert!(error.to_string().contains(said), "{error}");
    }
    let mut parent = resource();
    parent["resource"] = json!("https://mcp.example/");
    let world = World::new().json(at("https://mcp.example", RESOURCE), &parent);
    let found =
        world.json(at(ISSUER, METADATA), &metadata(ISSUER)).discover_at(&format!("{SERVER}?k=1"));
    assert_eq!(found.found().resource.as_deref(), Some("https://mcp.example/"));
}

/// X-E34: the first authorization server that can be used is taken.
#[test]
fn oauth_c5_all_places_of_all_issuers_are_tried_in_order() {
    let mut resource = resource();
    resource["authorization_servers"] = json!(["https://one.example/t", "https://two.example"]);
    let place = at("https://mcp.example", &format!("{RESOURCE}/v1/mcp"));
    let end = World::new()
        .json(&place, &resource)
        .json(at("https://two.example", OPENID), &metadata("https://two.example"))
        .discover();
    let asked = [
        place,
        at("https://one.example", &format!("{METADATA}/t")),
        at("https://one.example", &format!("{OPENID}/t")),
        at("https://one.example/t", OPENID),
        at("https://one.example", METADATA),
        at("https://two.example", METADATA),
        at("https://two.example", OPENID),
    ];
    assert_eq!(end.asked, asked);
    assert_eq!(end.found().issuer, "https://two.example");
}

#[test]
fn oauth_c5_the_issuer_of_the_settings_replaces_the_named_ones() {
    let own = "https://own.example";
    let settings =
        || Settings { authorization_server: Some(own.to_owned()), ..Settings::default() };
    let world = usual().json(at(own, METADATA), &metadata(own)).settings(settings());
    let end = world.discover();
    assert!(!end.asked.contains(&at(ISSUER, METADATA)));
    assert_eq!(end.found().scopes.to_string(), "a b");
    // Without metadata of the resource, the server's URL is the resource.
    let silent = World::new().json(at(own, METADATA), &metadata(own)).settings(settings());
    let found = silent.discover_at("https://mcp.example/v1/mcp/?key=s3cret").found();
    assert_eq!((found.issuer.as_str(), found.resource.as_deref()), (own, Some(SERVER)));
    let wrong = Settings {
        authorization_server: Some("http://own.example".to_owned()),
        ..Settings::default()
    };
    let error = World::new().settings(wrong).discover().error();
    assert!(matches!(error, DiscoveryError::BadSetting(_)), "{error:?}");
}

#[test]
fn oauth_c6_servers_of_2025_03_26_are_tried_if_the_settings_say_so() {
    let legacy = || Settings { legacy: true, ..Settings::default() };
    let end = World::new().settings(legacy()).discover();
    assert_eq!(end.asked.last().unwrap(), &at("https://mcp.example", METADATA));
    let found = end.found();
    assert!(found.is_legacy && found.metadata.supports_s256());
    let endpoints: Vec<_> = found.metadata.endpoints().map(|(_, url)| url.path()).collect();
    assert_eq!(endpoints, ["/authorize", "/token", "/register"]);
    let issuer = "https://mcp.example";
    let world = World::new().json(at(issuer, METADATA), &metadata(issuer)).settings(legacy());
    let found = world.discover().found();
    assert!(!found.is_legacy);
    assert_eq!(found.metadata.authorization_endpoint.unwrap().path(), "/authorize");
    // A document of another issuer is no reason to guess.
    let foreign = World::new().json(at(issuer, METADATA), &metadata(ISSUER)).settings(legacy());
    assert!(matches!(foreign.discover().error(), DiscoveryError::NoServerMetadata { .. }));
}

#[test]
fn oauth_c7_metadata_of_another_issuer_is_not_used() {
    let error = of_issuer(ISSUER, &metadata("https://evil.example")).discover().error();
    assert_eq!(
        error.to_string(),
        "no metadata of the authorization server https://as.example/ can be used: the document is \
         of another issuer (asked: \
         https://mcp.example/.well-known/oauth-protected-resource/v1/mcp, \
         https://mcp.example/.well-known/oauth-protected-resource, \
         https://as.example/.well-known/oauth-authorization-server, \
         https://as.example/.well-known/openid-configuration); set auth.authorizationServer to \
         another issuer"
    );
    // The next place may have the right one.
    let world = of_issuer(ISSUER, &metadata("https://evil.example"));
    let found = world.json(at(ISSUER, OPENID), &metadata(ISSUER)).discover().found();
    assert_eq!(found.issuer, ISSUER);
}

#[test]
fn oauth_q1_the_slash_of_an_issuer_without_path_is_that_of_its_metadata() {
    for (named, said) in [
        ("https://accounts.google.com/", "https://accounts.google.com"),
        ("https://accounts.google.com", "https://accounts.google.com/"),
    ] {
        let found = of_issuer(named, &metadata(said)).discover().found();
        assert_eq!(found.issuer, said);
    }
    let with_path = World::new()
        .json(
            at("https://mcp.example", RESOURCE),
            &json!({"authorization_servers": ["https://a.example/t"]}),
        )
        .json(at("https://a.example", &format!("{METADATA}/t")), &metadata("https://a.example/t/"));
    assert!(with_path.discover().result.is_err());
}

#[test]
fn oauth_c8_and_q5_servers_without_s256_are_refused_unless_set() {
    let mut silent = metadata(ISSUER);
    silent.as_object_mut().unwrap().remove("code_challenge_methods_supported");
    let mut plain = metadata(ISSUER);
    plain["code_challenge_methods_supported"] = json!(["plain"]);
    for document in [&silent, &plain] {
        let error = of_issuer(ISSUER, document).discover().error();
        assert!(matches!(error, DiscoveryError::NoS256 { .. }), "{error:?}");
        assert!(error.to_string().ends_with("set auth.pkce to \"assume\""), "{error}");
        let assume = Settings { pkce: Some(PkceRule::Assume), ..Settings::default() };
        of_issuer(ISSUER, document).settings(assume).discover().found();
        let mut machine = of_issuer(ISSUER, document);
        machine.flow = Flow::Machine;
        machine.discover().found();
    }
    let entra = "https://login.microsoftonline.com";
    silent["issuer"] = json!(entra);
    let found = of_issuer(entra, &silent).discover().found();
    assert_eq!(found.resource, None, "Entra refuses `resource`");
}

/// X-E40, S9.
#[test]
fn oauth_c9_addresses_of_the_metadata_are_checked() {
    for (name, address) in [
        ("token_endpoint", "http://as.example/token"),
        ("authorization_endpoint", "javascript:alert(1)"),
        ("registration_endpoint", "http://127.0.0.1/register"),
        ("revocation_endpoint", "https://user@as.example/"),
    ] {
        let mut document = metadata(ISSUER);
        document[name] = json!(address);
        let error = of_issuer(ISSUER, &document).discover().error().to_string();
        assert!(error.contains(&format!(": `{name}` cannot be used")), "{error}");
    }
    let insecure = json!({"authorization_servers": ["http://as.example"]});
    let world = World::new().json(at("https://mcp.example", RESOURCE), &insecure);
    let error = world.discover().error().to_string();
    assert!(error.contains("`authorization_servers` cannot be used: it is not https"), "{error}");
    let local = json!({"authorization_servers": ["http://127.0.0.1:9001"]});
    let issuer = "http://127.0.0.1:9001";
    let world = World::new()
        .json(at("http://127.0.0.1:9000", RESOURCE), &local)
        .json(at(issuer, METADATA), &metadata(issuer));
    world.discover_at("http://127.0.0.1:9000/mcp").found();
}

#[test]
fn oauth_c9_a_document_without_the_needed_endpoint_is_not_used() {
    let mut document = metadata(ISSUER);
    document.as_object_mut().unwrap().remove("authorization_endpoint");
    let error = of_issuer(ISSUER, &document).discover().error().to_string();
    assert!(error.contains("the document has no `authorization_endpoint`"), "{error}");
    let mut machine = of_issuer(ISSUER, &document);
    machine.flow = Flow::Machine;
    machine.discover().found();
    machine.flow = Flow::Device;
    assert!(machine.discover().error().to_string().contains("device_authorization_endpoint"));
}

#[test]
fn oauth_q2_refusals_lead_to_the_next_place_and_faults_end_it() {
    let path = at("https://mcp.example", &format!("{RESOURCE}/v1/mcp"));
    for status in [301, 400, 401, 403, 404, 405, 410] {
        let end = World::new()
            .page(&path, status, "{}")
            .json(at("https://mcp.example", RESOURCE), &resource())
            .page(at(ISSUER, METADATA), status, "")
            .json(at(ISSUER, OPENID), &metadata(ISSUER))
            .discover();
        assert_eq!(end.asked.len(), 4, "{status}");
        end.found();
    }
    for (status, text) in [(0, "does not answer"), (500, "answers 500"), (429, "answers 429")] {
        let error = World::new().page(&path, status, "").discover().error();
        assert_eq!(error.kind(), narthex_model::ErrorKind::Unavailable);
        let wanted = format!(
            "OAuth metadata of the server cannot be read now: {path} {text}; try again later"
        );
        assert_eq!(error.to_string(), wanted);
    }
}

#[test]
fn oauth_q2_an_issuer_with_a_path_may_have_its_document_for_the_whole_host() {
    let issuer = "https://as.example/tenant";
    let found = of_issuer(issuer, &metadata(issuer)).discover().found();
    assert_eq!(found.issuer, issuer);
    let root = of_issuer(issuer, &metadata(ISSUER)).discover();
    assert!(root.result.is_err(), "the document of the host is another issuer's");
}

#[test]
fn oauth_q3_web_pages_are_no_documents() {
    let page = "<!doctype html><title>App</title>";
    let end = World::new()
        .page(at("https://mcp.example", &format!("{RESOURCE}/v1/mcp")), 200, page)
        .json(at("https://mcp.example", RESOURCE), &resource())
        .page(at(ISSUER, METADATA), 200, page)
        .json(at(ISSUER, OPENID), &metadata(ISSUER))
        .discover();
    end.found();
}

#[test]
fn oauth_c18_the_setting_of_the_resource_is_sent() {
    for (rule, wanted) in [
        (ResourceRule::Omit, None),
        (ResourceRule::Fixed("urn:x".to_owned()), Some("urn:x")),
        (ResourceRule::Discovered, Some(SERVER)),
    ] {
        let settings = Settings { resource: Some(rule), ..Settings::default() };
        let found = usual().settings(settings).discover().found();
        assert_eq!((found.resource.as_deref(), found.identifier.as_str()), (wanted, SERVER));
    }
}

#[test]
fn oauth_c19_scopes_of_settings_and_challenge_are_joined() {
    let settings = Settings { scopes: Some(Scopes::parse("own")), ..Settings::default() };
    let world = usual().settings(settings).challenge("Bearer scope=\"asked\"");
    assert_eq!(world.discover().found().scopes.to_string(), "asked own");
}
