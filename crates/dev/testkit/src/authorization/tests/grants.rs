//! Grants without a browser, proofs of clients, step-up and revocation.

use serde_json::{Value, json};

use super::client::{Peer, REDIRECT, basic, origin};
use crate::authorization::{
    AuthMethod, ClientSettings, DEVICE_CODE, Issuer, JWT_BEARER, Quirks, Settings, Signer,
    TOKEN_EXCHANGE, verified,
};

const TYPE: &str = "urn:ietf:params:oauth:token-type:";

/// Each client has to use its own method, with the right secret.
#[tokio::test]
async fn clients_prove_themselves_in_their_own_way_only() {
    let signer = Signer::new("k1");
    let (odd, secret) = ("a:b+c", "p&q %=ü");
    let clients = vec![
        ClientSettings::confidential(odd, secret, AuthMethod::Basic),
        ClientSettings::confidential("post", secret, AuthMethod::Post),
        ClientSettings::with_keys("key", vec![signer.jwk()]),
        ClientSettings::public("public", &[REDIRECT]),
    ];
    let peer = Peer::start(Settings { clients, ..Settings::default() });
    let (issuer, url) = (peer.fixture.issuer(0), peer.fixture.url.clone());
    let endpoint = format!("{issuer}/token");
    let ask = async |fields: &[(&str, &str)], proof: Option<&str>| {
        let fixed = [("grant_type", "client_credentials"), ("resource", url.as_str())];
        let answer = peer.form_at(&endpoint, &[&fixed[..], fields].concat(), proof).await;
        let code = if answer.status == 200 { Value::Null } else { answer.json()["error"].clone() };
        (answer.status, code.as_str().unwrap_or_default().to_owned())
    };
    let fine = (200, String::new());
    let stranger = (401, "invalid_client".to_owned());
    assert_eq!(ask(&[], Some(&basic(odd, secret))).await, fine);
    assert_eq!(ask(&[("client_id", odd)], Some(&basic(odd, secret))).await, fine);
    assert_eq!(ask(&[("client_id", "post")], Some(&basic(odd, secret))).await, stranger);
    assert_eq!(ask(&[], Some(&basic(odd, "wrong"))).await, stranger);
    assert_eq!(ask(&[("client_id", odd), ("client_secret", secret)], None).await, stranger);
    assert_eq!(ask(&[("client_id", "post"), ("client_secret", secret)], None).await, fine);
    assert_eq!(ask(&[], Some(&basic("post", secret))).await, stranger);
    assert_eq!(ask(&[("client_id", "nothing")], None).await, stranger);
    let public = (400, "unauthorized_client".to_owned());
    assert_eq!(ask(&[("client_id", "public")], None).await, public);

    let claims = |aud: &str, jti: &str| {
        let exp = peer.fixture.now_s() + 60;
        json!({"iss": "key", "sub": "key", "aud": aud, "exp": exp, "jti": jti})
    };
    let kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
    let assert = async |signer: &Signer, claims: &Value| {
        let assertion = signer.sign("JWT", claims);
        ask(&[("client_assertion_type", kind), ("client_assertion", &assertion)], None).await
    };
    assert_eq!(assert(&signer, &claims(&issuer, "1")).await, fine);
    assert_eq!(assert(&signer, &claims(&issuer, "1")).await, stranger);
    assert_eq!(assert(&signer, &claims(&endpoint, "2")).await, stranger);
    assert_eq!(assert(&Signer::new("k1"), &claims(&issuer, "3")).await, stranger);
    assert!(signer.pem().lines().all(|line| line.len() <= 64));
}

/// A device gets its token after the person has approved it.
#[tokio::test]
async fn devices_wait_for_the_person() {
    let peer = Peer::with(Quirks { slow_down_polls: 1, ..Quirks::default() });
    let begin = [("client_id", "narthex"), ("resource", &peer.fixture.url)];
    let poll = async |code: &Value| {
        let code = code.as_str().unwrap();
        let fields = [("grant_type", DEVICE_CODE), ("device_code", code), ("client_id", "narthex")];
        peer.form("token", &fields).await.json()
    };
    let device = peer.form("device", &begin).await.json();
    let (code, user) = (&device["device_code"], device["user_code"].as_str().unwrap());
    assert_eq!(poll(code).await["error"], "slow_down");
    assert_eq!(poll(code).await["error"], "authorization_pending");
    assert!(peer.fixture.approve_device(user) && !peer.fixture.approve_device("other"));
    let tokens = poll(code).await;
    assert_eq!(peer.call(&tokens["access_token"], "whoami").await.status, 200);
    assert!(tokens["refresh_token"].is_string());
    let device = peer.form("device", &begin).await.json();
    assert!(peer.fixture.deny_device(device["user_code"].as_str().unwrap()));
    assert_eq!(poll(&device["device_code"]).await["error"], "access_denied");
}

/// An ID token of the company's issuer becomes an assertion, and that a token of the server's one.
#[tokio::test]
async fn an_identity_crosses_issuers_by_an_assertion() {
    let company = ClientSettings::confidential("narthex", "s", AuthMethod::Post);
    let own = ClientSettings { issuer: 1, ..company.clone() };
    let settings = Settings {
        issuers: vec![Issuer::at(1, ""), Issuer::at(2, "/as")],
        advertised: vec![1],
        clients: vec![company, own],
        ..Settings::default()
    };
    let peer = Peer::start(settings);
    let audience = peer.fixture.issuer(1);
    let id_token = peer.fixture.id_token(0, "narthex", "grace");
    let (id_kind, wanted) = (format!("{TYPE}id_token"), format!("{TYPE}id-jag"));
    let client = [("client_id", "narthex"), ("client_secret", "s")];
    let exchange = [
        ("grant_type", TOKEN_EXCHANGE),
        ("subject_token", &id_token),
        ("subject_token_type", &id_kind),
        ("requested_token_type", &wanted),
        ("audience", &audience),
        ("resource", &peer.fixture.url),
    ];
    let answer = peer.form("token", &[&exchange[..], &client].concat()).await.json();
    assert_eq!((&answer["token_type"], &answer["expires_in"]), (&json!("N_A"), &json!(300)));
    let assertion = answer["access_token"].as_str().unwrap();
    let keys = peer.get(&format!("{}/keys", peer.fixture.issuer(0))).await.json();
    let signed = verified(assertion, keys["keys"].as_array().unwrap()).unwrap();
    assert_eq!((signed.typ.as_str(), &signed.claims["sub"]), ("oauth-id-jag+jwt", &json!("grace")));

    let fields = [("grant_type", JWT_BEARER), ("assertion", assertion)];
    let fields = [&fields[..], &client].concat();
    let url = format!("{audience}/token");
    let tokens = peer.form_at(&url, &fields, None).await.json();
    let called = peer.call(&tokens["access_token"], "whoami").await.json();
    assert_eq!(called["result"]["content"][0]["text"], "grace");
    let again = peer.form_at(&url, &fields, None).await;
    assert!(again.text.contains("was used before"), "{}", again.text);
    let other = peer.form("token", &fields).await;
    assert!(other.text.contains("aud is"), "{}", other.text);

    let kind = format!("{TYPE}access_token");
    let token = tokens["access_token"].as_str().unwrap();
    let fields = [
        ("grant_type", TOKEN_EXCHANGE),
        ("subject_token", token),
        ("subject_token_type", &kind),
        ("resource", &peer.fixture.url),
    ];
    let plain = peer.form("token", &[&fields[..], &client].concat()).await.json();
    assert_eq!(
        peer.fixture.holder(plain["access_token"].as_str().unwrap()).unwrap().subject,
        "grace"
    );
}

/// A tool with a scope of its own is refused until the token has it; a token without audience is
/// refused always.
#[tokio::test]
async fn scopes_and_audiences_are_demanded() {
    let peer = Peer::with(Quirks::default());
    let tokens = peer.tokens().await;
    let refused = peer.call(&tokens["access_token"], "admin").await;
    assert_eq!(refused.status, 403);
    let challenge = refused.header("www-authenticate");
    assert!(challenge.contains("scope=\"mcp admin\", error=\"insufficient_scope\""), "{challenge}");
    let (resource, scope) = (("resource", &*peer.fixture.url), ("scope", "mcp admin"));
    let tokens = peer.redeem(&peer.link("narthex", &[resource, scope])).await.json();
    assert_eq!(peer.call(&tokens["access_token"], "admin").await.status, 200);
    let narrow = peer.refresh(&tokens["refresh_token"], &[("scope", "mcp")]).await.json();
    assert_eq!(peer.call(&narrow["access_token"], "admin").await.status, 403);

    let tokens = peer.redeem(&peer.link("narthex", &[])).await.json();
    let refused = peer.call(&tokens["access_token"], "whoami").await;
    assert!(refused.text.contains("for another resource"), "{}", refused.text);
    let strange = peer.link("narthex", &[("resource", "https://other.example/mcp")]);
    assert_eq!(peer.back(&strange, "error").as_deref(), Some("invalid_target"));
}

/// Two MCP servers of one issuer take their own tokens only.
#[tokio::test]
async fn each_mcp_server_is_a_resource_of_its_own() {
    let peer = Peer::with(Quirks::default());
    peer.fixture.change(|settings| settings.other_mcp_paths = vec!["/other".to_owned()]);
    let other = peer.fixture.url.replace("/mcp", "/other");
    let metadata = peer.well_known(&origin(&peer.fixture), "oauth-protected-resource/other").await;
    assert_eq!(metadata.json()["resource"], other);
    let tokens = peer.redeem(&peer.link("narthex", &[("resource", &other)])).await.json();
    let token = tokens["access_token"].as_str().unwrap();
    assert_eq!(peer.call(&tokens["access_token"], "whoami").await.status, 401);
    let proof = format!("Bearer {token}");
    let headers = [("authorization", proof.as_str())];
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    assert_eq!(peer.send("POST", &other, &headers, ping).await.status, 200);
    let refused = peer.send("GET", &other, &[], String::new()).await;
    assert!(refused.header("www-authenticate").contains("oauth-protected-resource/other"));
}

/// A revoked refresh token takes its family along.
#[tokio::test]
async fn revocation_ends_tokens() {
    let peer = Peer::with(Quirks::default());
    for (name, left) in [("access_token", 200), ("refresh_token", 400)] {
        let tokens = peer.tokens().await;
        let token = tokens[name].as_str().unwrap();
        let fields = [("token", token), ("client_id", "narthex")];
        assert_eq!(peer.form("revoke", &fields).await.status, 200);
        assert_eq!(peer.call(&tokens["access_token"], "whoami").await.status, 401);
        assert_eq!(peer.refresh(&tokens["refresh_token"], &[]).await.status, left);
    }
    assert_eq!(peer.fixture.counts().revocations, 2);
    let tokens = peer.tokens().await;
    peer.fixture.end_access_tokens();
    assert_eq!(peer.call(&tokens["access_token"], "whoami").await.status, 401);
    assert_eq!(peer.refresh(&tokens["refresh_token"], &[]).await.status, 200);
    peer.fixture.end_all_tokens();
    assert_eq!(peer.fixture.counts().families_revoked, 0);
}
