//! Servers that the company's identity provider authorizes: no human connects to them, and the
//! sign-in to narthex counts (C31).

use narthex_testkit::{
    authorization::{AuthMethod, AuthorizationFixture, ClientSettings, Endpoint, Issuer, Settings},
    canary::Everything,
};
use serde_json::{Value, json};
use url::Url;

use super::site::{HOME, SERVER, Site};

/// The number of the company's provider among the issuers of the fixture.
const IDP: usize = 1;

/// A daemon with the login provider `corp`, and a server that the provider authorizes.
fn site(keeps_identity: bool) -> Site {
    let scopes = ["mcp", "openid", "email", "profile", "offline_access"];
    let back = "http://localhost/signin/oidc/corp/callback";
    let settings = Settings {
        issuers: vec![Issuer::at(1, ""), Issuer::at(2, "/idp")],
        clients: vec![
            ClientSettings::confidential("narthex", "s3cret", AuthMethod::Basic),
            ClientSettings { issuer: IDP, ..ClientSettings::public("narthex", &[back]) },
        ],
        scopes: scopes.map(str::to_owned).to_vec(),
        ..Settings::default()
    };
    let text = |fixture: &AuthorizationFixture| {
        let issuer = fixture.issuer(IDP);
        format!(
            "[signin.oidc.corp]\nissuer = \"{issuer}\"\nclient_id = \"narthex\"\n\
             claims = [\"aud=narthex\"]\nroles = [\"default=runner\"]\n\
             keep_identity = {keeps_identity}\n[grants]\nrequire_proof = false\n"
        )
    };
    Site::with(settings, text)
}

fn entry(site: &Site, provider: &str) -> Value {
    json!({ "id": "tracker", "url": site.fixture.url, "auth": {
        "mode": "authorizationCode",
        "client": { "clientId": "narthex", "clientSecret": "s3cret" },
        "exchange": { "type": "idJag", "identityProvider": provider },
    } })
}

/// The server, and an agent that uses it.
fn started() -> Site {
    let site = site(true);
    site.operator("PUT", SERVER, &entry(&site, "corp")).succeeded();
    let agent = json!({ "name": "clerk", "mcpServers": { "work": { "ref": "tracker" } } });
    site.operator("PUT", &format!("{HOME}/agents/clerk"), &agent).succeeded();
    site
}

/// C31: each run acts as its driver without a browser at the server. A human who signs out is led
/// to the login provider, and the open run works again after the next sign-in.
#[tokio::test(flavor = "multi_thread")]
async fn oauth_c31_the_sign_in_to_narthex_counts_at_the_server() {
    let site = started();
    let ada = site.signs_in_at_corp("ada", None);
    site.signs_in_at_corp("bob", None);
    let (of_ada, of_bob) = (site.run_of(Some("ada")), site.run_of(Some("bob")));
    site.until_is(&of_ada, "ada").await;
    site.until_is(&of_bob, "bob").await;
    // Another sign-in in the same browser ends the earlier session, and no identity.
    let ada = site.signs_in_at_corp("ada", Some(&ada));
    site.fixture.end_access_tokens();
    site.until_is(&of_ada, "ada").await;
    site.signs_out(&ada);
    site.fixture.end_access_tokens();
    site.until_refused(&of_ada).await;
    let refused = site.whoami(&of_ada).await.json().to_string();
    assert!(refused.contains("/signin/oidc/corp"), "{refused}");
    site.until_is(&of_bob, "bob").await;
    site.signs_in_at_corp("ada", None);
    site.until_is(&of_ada, "ada").await;
    // No human was at the authorization server of the server.
    let origin = site.fixture.issuer(0);
    let asked = site.fixture.asked_of(Endpoint::Authorize);
    assert!(asked.iter().all(|asked| asked.origin != origin), "a browser was there");
}

/// C31: a disabled human has no identity.
#[tokio::test(flavor = "multi_thread")]
async fn oauth_c31_a_disabled_human_has_no_identity() {
    let site = started();
    site.signs_in_at_corp("ada", None);
    let run = site.run_of(Some("ada"));
    site.until_is(&run, "ada").await;
    site.place.run(["users", "disable", "ada"]).succeeded();
    site.until(&run, |reply| reply.json()["result"]["content"][0]["text"] != "ada").await;
}

/// C31: a server is stored only if the daemon keeps identities of its login provider.
#[tokio::test(flavor = "multi_thread")]
async fn oauth_c31_a_login_provider_that_keeps_nothing_is_refused_at_the_save() {
    for (site, provider) in [(site(true), "okta"), (site(false), "corp")] {
        let refused = site.operator("PUT", SERVER, &entry(&site, provider));
        assert_eq!(refused.status, 422, "{refused:?}");
        let field = &refused.json()["errors"][0]["field"];
        assert_eq!(field, "auth.exchange.identityProvider", "{refused:?}");
    }
}

/// C32: the author of an entry has tokens of the provider sent to no server that the operator has
/// not listed.
#[tokio::test(flavor = "multi_thread")]
async fn s16_a_server_that_is_not_listed_is_refused_at_the_save() {
    let site = site(true);
    let exchange = json!({ "type": "token", "identityProvider": "corp", "audience": "payroll" });
    let auth = json!({ "mode": "authorizationCode", "exchange": exchange });
    let entry = json!({ "id": "tracker", "url": site.fixture.url, "auth": auth });
    let refused = site.operator("PUT", SERVER, &entry);
    assert_eq!(refused.status, 422, "{refused:?}");
    let fault = &refused.json()["errors"][0];
    assert_eq!(fault["field"], "url", "{refused:?}");
    assert!(refused.body.contains("exchange_servers"), "{refused:?}");
}

/// C31: where the entry has a fallback, a human without an identity at the provider connects as to
/// other servers.
#[tokio::test(flavor = "multi_thread")]
async fn oauth_c31_a_human_without_an_identity_connects_where_the_entry_lets_them() {
    let site = site(true);
    let mut entry = entry(&site, "corp");
    entry["auth"]["exchange"]["fallback"] = json!("signIn");
    site.operator("PUT", SERVER, &entry).succeeded();
    let agent = json!({ "name": "clerk", "mcpServers": { "work": { "ref": "tracker" } } });
    site.operator("PUT", &format!("{HOME}/agents/clerk"), &agent).succeeded();
    let eve = site.signs_in("eve");
    let run = site.run_of(Some("eve"));
    site.until_refused(&run).await;
    assert_eq!(site.connection(&eve)["connected"], false);
    let path = format!("{HOME}/users/me/mcp-tokens/tracker/connect");
    let begun = site.human(&eve, "POST", &path, "").succeeded().json();
    let address = Url::parse(begun["url"].as_str().unwrap()).unwrap();
    let uri = address.query_pairs().find(|(name, _)| name == "redirect_uri").unwrap().1;
    site.fixture.change(|settings| {
        settings.clients[0].redirect_uris.push(uri.into_owned());
        "eve".clone_into(&mut settings.subject);
    });
    let back = site.fixture.browse(address.as_str()).unwrap();
    assert_eq!(site.brings(&eve, &back).status, 200);
    site.until_is(&run, "eve").await;
    // Others use the exchange.
    site.signs_in_at_corp("ada", None);
    let of_ada = site.run_of(Some("ada"));
    site.until_is(&of_ada, "ada").await;
    site.until_is(&run, "eve").await;
}

/// S27: no token of an identity is in an answer, a page, a log or a file.
#[tokio::test(flavor = "multi_thread")]
async fn s27_tokens_of_identities_are_shown_nowhere() {
    let site = started();
    let ada = site.signs_in_at_corp("ada", None);
    let run = site.run_of(Some("ada"));
    site.until_is(&run, "ada").await;
    let mut everything = Everything::default();
    for path in [&format!("{HOME}/users/me/mcp-tokens"), "/api/users/me/mcp-tokens", "/signin"] {
        everything.note(path.to_owned(), site.human(&ada, "GET", path, "").body.as_bytes());
    }
    for path in [&format!("{HOME}/runs"), &format!("{HOME}/audit")] {
        let answer = site.operator("GET", path, &Value::Null);
        everything.note(path.to_owned(), answer.body.as_bytes());
    }
    everything.note("call", format!("{:?}", site.whoami(&run).await).as_bytes());
    for file in ["data/audit/audit.jsonl", "data/store.db"] {
        everything.note(file, &fs_err::read(site.place.path(file)).unwrap());
    }
    let leaks = everything.leaks(&site.fixture.canaries());
    assert!(leaks.is_empty(), "{leaks:#?}");
}
