//! The flow of a person's sign-in, from the first refusal to the end.

use narthex_model::{
    AuthorizationCodeAuth, OAuthClient, OAuthRegistration, OAuthResource, OAuthTokens, Secret,
    ServerAuth,
};
use narthex_oauth_client::{
    BeginAs, BrowserAnswer, ClientOrigin, IssuerRule, Revoked, SharedClient, SharedClients,
    SignInError, SignInTarget, SignIns, store::GrantKey,
};
use narthex_testkit::authorization::{AuthMethod, ClientSettings, Endpoint, Settings};
use narthex_upstream::AtHand;
use serde_json::json;
use url::Url;

use crate::world::{REDIRECT, World, key, of_session, parameter, person, preregistered};

/// E27, E28, E29: the owner gets the address, the client and the tokens, once each.
#[tokio::test]
async fn e25_a_refused_call_leads_to_a_sign_in_without_any_settings() {
    let world = World::new();
    let server = world.server(ServerAuth::Unstated);
    let mut changes = server.sign_ins.changes();
    let address = server.address("whoami").await;
    // The open attempt is the same for each call (E107).
    assert_eq!(server.address("echo").await, address);
    assert_eq!(world.recorder.opened.lock().unwrap().as_slice(), [format!("linear {address}")]);
    assert_eq!(parameter(&address, "redirect_uri").as_deref(), Some(REDIRECT));
    assert_eq!(parameter(&address, "resource").as_deref(), Some(world.fixture.url.as_str()));
    let pending = server.sign_ins.status(&key()).unwrap().pending.unwrap();
    assert_eq!(pending.as_str(), address);
    let finished = server.browse(&address).await.unwrap();
    assert_eq!((finished.alias.as_str(), &finished.key), ("linear", &key()));
    assert!(finished.facts.can_renew);
    assert_eq!(changes.try_recv().unwrap(), key());
    server.works().await;
    let status = server.sign_ins.status(&key()).unwrap();
    assert_eq!((status.pending, status.facts), (None, finished.facts));
    let counts = world.fixture.counts();
    assert_eq!((counts.registrations, counts.exchanged_codes, counts.calls), (1, 1, 1));
    // E27: one call for the client, one for the tokens.
    assert_eq!(world.recorder.clients.lock().unwrap().len(), 1);
    assert_eq!(world.recorder.tokens.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn oauth_c1_a_server_that_asks_for_no_token_is_asked_for_nothing() {
    let world = World::new();
    let server = world.server(ServerAuth::Unstated);
    assert!(matches!(server.credential.at_hand(), AtHand::Ask));
    assert!(server.credential.obtain().await.unwrap().is_none());
    assert!(matches!(server.credential.at_hand(), AtHand::Ready(None)));
    assert!(world.fixture.asked().is_empty());
}

#[tokio::test]
async fn oauth_c11_each_way_to_a_client_id_leads_to_tokens() {
    let clients = vec![ClientSettings {
        redirect_uris: vec![REDIRECT.to_owned()],
        ..ClientSettings::confidential("known", "s3cret", AuthMethod::Basic)
    }];
    let id = "https://narthex.example/client.json";
    let common = "http://127.0.0.1:4711/oauth/callback";
    let settings = Settings {
        clients,
        takes_client_documents: true,
        client_documents: vec![json!({"client_id": id, "redirect_uris": [common]})],
        ..Settings::default()
    };
    let pinned = |registration| {
        person(AuthorizationCodeAuth {
            registration: Some(registration),
            ..AuthorizationCodeAuth::default()
        })
    };
    for (auth, client, registrations) in [
        (preregistered("known", Some("s3cret")), "known", 0),
        (ServerAuth::Unstated, id, 0),
        (pinned(OAuthRegistration::Cimd), id, 0),
        (pinned(OAuthRegistration::Dcr), "client-1", 1),
    ] {
        let world = World::with(settings.clone());
        let mut options = world.options("one");
        options.client_metadata_url = Url::parse(id).ok();
        let sign_ins = SignIns::new(options);
        let server = world.server_of(&sign_ins, auth);
        let address = server.address("whoami").await;
        assert_eq!(parameter(&address, "client_id").as_deref(), Some(client));
        server.browse(&address).await.unwrap();
        server.works().await;
        assert_eq!(world.fixture.counts().registrations, registrations, "{client}");
    }
}

/// The shared client `app` at the issuer of the fixture.
fn shared(world: &World) -> SharedClient {
    SharedClient {
        name: "chat".to_owned(),
        issuer: IssuerRule::parse(&world.fixture.issuer(0)).unwrap(),
        client_id: "app".to_owned(),
        client_secret: Some(Secret::new("s3cret")),
        servers: Vec::new(),
        workspaces: Vec::new(),
    }
}

/// A process whose settings have these shared clients.
fn process_with(world: &World, clients: Vec<SharedClient>) -> SignIns {
    let mut options = world.options("one");
    options.shared_clients = SharedClients::new(clients);
    SignIns::new(options)
}

/// Q6, C11: a client of the settings goes before a registration, and the entry's own before it. It
/// has the common redirect URI, and its origin is shown.
#[tokio::test]
async fn oauth_q6_a_shared_client_serves_entries_that_name_none() {
    let common = "http://127.0.0.1:4711/oauth/callback";
    let known = |id: &str, redirect: &str| ClientSettings {
        redirect_uris: vec![redirect.to_owned()],
        ..ClientSettings::confidential(id, "s3cret", AuthMethod::Basic)
    };
    let settings = Settings {
        clients: vec![known("app", common), known("known", REDIRECT)],
        ..Settings::default()
    };
    let dcr = person(AuthorizationCodeAuth {
        registration: Some(OAuthRegistration::Dcr),
        ..AuthorizationCodeAuth::default()
    });
    let of_settings = ClientOrigin::Settings(Some("chat".to_owned()));
    for (auth, client, redirect, origin) in [
        (ServerAuth::Unstated, "app", common, of_settings),
        (preregistered("known", Some("s3cret")), "known", REDIRECT, ClientOrigin::Entry),
        (dcr, "client-1", REDIRECT, ClientOrigin::Registration),
    ] {
        let world = World::with(settings.clone());
        let sign_ins = process_with(&world, vec![shared(&world)]);
        let server = world.server_of(&sign_ins, auth);
        let address = server.address("whoami").await;
        assert_eq!(parameter(&address, "client_id").as_deref(), Some(client));
        assert_eq!(parameter(&address, "redirect_uri").as_deref(), Some(redirect));
        server.browse(&address).await.unwrap();
        server.works().await;
        let status = sign_ins.status(&key()).unwrap();
        assert_eq!(status.client, Some(origin), "{client}");
    }
}

/// Q6: a client for other hosts or workspaces is not used, so that a server that was not
/// chosen for it gets no tokens of it.
#[tokio::test]
async fn oauth_q6_a_shared_client_for_other_servers_is_not_used() {
    for is_of_host in [true, false] {
        let world = World::new();
        let mut client = shared(&world);
        match is_of_host {
            true => client.servers = vec!["mcp.chat.example".to_owned()],
            false => client.workspaces = vec!["other".to_owned()],
        }
        let sign_ins = process_with(&world, vec![client]);
        let server = world.server_of(&sign_ins, ServerAuth::Unstated);
        let address = server.address("whoami").await;
        assert_eq!(parameter(&address, "client_id").as_deref(), Some("client-1"));
    }
}

/// Q6: a renewal takes the secret that the settings have now, and a client that they have no more
/// is not used any more.
#[tokio::test]
async fn oauth_q6_renewals_use_the_shared_client_of_the_settings() {
    let common = "http://127.0.0.1:4711/oauth/callback";
    let known = ClientSettings {
        redirect_uris: vec![common.to_owned()],
        ..ClientSettings::confidential("app", "s3cret", AuthMethod::Basic)
    };
    let world = World::with(Settings { clients: vec![known], ..Settings::default() });
    let before = world.server_of(&process_with(&world, vec![shared(&world)]), ServerAuth::Unstated);
    let address = before.address("whoami").await;
    before.browse(&address).await.unwrap();
    before.works().await;

    world.advance(3601);
    let again = world.server_of(&process_with(&world, vec![shared(&world)]), ServerAuth::Unstated);
    again.works().await;
    assert_eq!(world.fixture.asked_of(Endpoint::Authorize).len(), 1);

    world.advance(3601);
    let without = world.server_of(&process_with(&world, Vec::new()), ServerAuth::Unstated);
    let address = without.address("whoami").await;
    assert_eq!(parameter(&address, "client_id").as_deref(), Some("client-1"));
}

/// C15, Q6: an app with one redirect URI serves several servers. The `state` tells their answers
/// apart, in any order.
#[tokio::test]
async fn oauth_c15_and_q6_one_app_and_one_address_serve_several_servers() {
    let common = "http://127.0.0.1:4711/oauth/callback";
    let clients = vec![ClientSettings::public("app", &[common])];
    let world = World::with(Settings { clients, ..Settings::default() });
    let server = world.server(person(AuthorizationCodeAuth {
        client: Some(OAuthClient { id: "app".to_owned(), secret: None }),
        redirect_uri: Some(common.to_owned()),
        ..AuthorizationCodeAuth::default()
    }));
    let targets = ["linear", "notes"].map(|name| SignInTarget {
        key: GrantKey { server: name.to_owned(), ..key() },
        alias: name.to_owned(),
        ..server.target()
    });
    let mut answers = Vec::new();
    for target in &targets {
        let begun = server.sign_ins.begin(target, BeginAs::Reuse).await.unwrap();
        let address = begun.url.as_str();
        assert_eq!(parameter(address, "redirect_uri").as_deref(), Some(common));
        answers.push(world.fixture.browse(address).unwrap());
    }
    for (target, back) in targets.iter().zip(&answers).rev() {
        let (_, query) = back.split_once('?').unwrap();
        let answer = BrowserAnswer { query, server: None, session: None };
        let finished = server.sign_ins.finish(answer).await.unwrap();
        assert_eq!((&finished.alias, &finished.key), (&target.alias, &target.key));
    }
    let counts = world.fixture.counts();
    assert_eq!((counts.registrations, counts.exchanged_codes), (0, 2));
}

#[tokio::test]
async fn oauth_c12_the_metadata_document_has_the_common_redirect_uri() {
    let world = World::new();
    let mut options = world.options("one");
    assert!(world.process("two").client_document().is_none());
    options.client_metadata_url = Url::parse("https://n.example/oauth/client.json").ok();
    options.redirect_base.public = Url::parse("https://n.example").ok();
    let document = SignIns::new(options).client_document().unwrap();
    let document = document.to_json();
    assert_eq!(document["client_id"], "https://n.example/oauth/client.json");
    assert_eq!(document["redirect_uris"][0], "https://n.example/oauth/callback");
}

#[tokio::test]
async fn oauth_c16_an_answer_counts_once_and_for_its_browser() {
    let world = World::new();
    let server = world.server(ServerAuth::Unstated);
    let mut target = server.target();
    target.session = Some("hash".to_owned());
    let begun = server.sign_ins.begin(&target, BeginAs::Reuse).await.unwrap();
    assert_eq!(begun.expires_at, world.fixture.now_s() + 600);
    assert_eq!(begun.redirect_uri.as_str(), REDIRECT);
    let back = world.fixture.browse(begun.url.as_str()).unwrap();
    let (_, query) = back.split_once('?').unwrap();
    let error = server.sign_ins.finish(of_session(query, "other")).await.unwrap_err().error;
    assert!(matches!(error, SignInError::Authorization(_)), "{error}");
    // It was taken: the right browser comes too late.
    let error = server.sign_ins.finish(of_session(query, "hash")).await.unwrap_err().error;
    assert!(matches!(error, SignInError::NoAttempt { .. }), "{error}");
    assert_eq!(world.fixture.counts().exchanged_codes, 0);
    let begun = server.sign_ins.begin(&target, BeginAs::Reuse).await.unwrap();
    let back = world.fixture.browse(begun.url.as_str()).unwrap();
    let (_, query) = back.split_once('?').unwrap();
    server.sign_ins.finish(of_session(query, "hash")).await.unwrap();
    server.works().await;
}

#[tokio::test]
async fn e104_an_attempt_ends_after_ten_minutes_and_another_is_opened_on_demand() {
    let world = World::new();
    let server = world.server(ServerAuth::Unstated);
    let first = server.address("whoami").await;
    world.advance(601);
    let error = server.browse(&first).await.unwrap_err();
    assert!(error.to_string().contains("it has ended after 10 minutes"), "{error}");
    let second = server.address("whoami").await;
    assert_ne!(parameter(&first, "state"), parameter(&second, "state"));
    assert_eq!(world.fixture.counts().registrations, 1);
    server.browse(&second).await.unwrap();
    server.works().await;
}

#[tokio::test]
async fn e107_a_new_attempt_replaces_the_open_one() {
    let world = World::new();
    let server = world.server(ServerAuth::Unstated);
    let first = server.address("whoami").await;
    let begun = server.sign_ins.begin(&server.target(), BeginAs::Reuse).await.unwrap();
    assert_eq!(begun.url.as_str(), first);
    let again = server.sign_ins.begin(&server.target(), BeginAs::Anew).await.unwrap();
    assert_ne!(again.url, begun.url);
    let error = server.browse(&first).await.unwrap_err();
    assert!(matches!(error, SignInError::NoAttempt { .. }), "{error}");
    server.browse(again.url.as_str()).await.unwrap();
}

#[tokio::test]
async fn e103_reauthorize_drops_tokens_and_the_registered_client() {
    let world = World::new();
    let server = world.server(ServerAuth::Unstated);
    server.sign_in().await;
    let begun = server.sign_ins.begin(&server.target(), BeginAs::Anew).await.unwrap();
    assert!(world.store.grant(key()).await.unwrap().is_none());
    assert_eq!(parameter(begun.url.as_str(), "client_id").as_deref(), Some("client-2"));
    assert_eq!(server.address("whoami").await, begun.url.as_str());
    server.browse(begun.url.as_str()).await.unwrap();
    server.works().await;
}

#[tokio::test]
async fn oauth_c29_a_sign_out_revokes_and_drops_the_tokens() {
    let world = World::new();
    let server = world.server(ServerAuth::Unstated);
    let nothing = server.sign_ins.sign_out(&key()).await.unwrap();
    assert_eq!((nothing.had_grant, nothing.revoked), (false, Revoked::Nothing));
    server.sign_in().await;
    server.works().await;
    let mut changes = server.sign_ins.changes();
    let done = server.sign_ins.sign_out(&key()).await.unwrap();
    assert_eq!((done.had_grant, done.revoked), (true, Revoked::Yes));
    assert_eq!(changes.try_recv().unwrap(), key());
    assert!(world.store.grant(key()).await.unwrap().is_none());
    assert!(world.fixture.counts().revocations > 0);
    assert!(matches!(server.credential.at_hand(), AtHand::Ready(None)));
    server.sign_in().await;
    server.works().await;
}

/// E102: tokens of the entry never replace newer ones.
#[tokio::test]
async fn e26_tokens_of_the_configuration_serve_until_newer_ones_exist() {
    let clients = vec![ClientSettings::public("known", &[REDIRECT])];
    let world = World::with(Settings { clients, ..Settings::default() });
    let given = world.fixture.give(0, "known", &["mcp"]);
    let text = |name: &str| Secret::new(given[name].as_str().unwrap());
    let auth = |expires_at| match preregistered("known", None) {
        ServerAuth::OAuth(oauth) => match *oauth {
            narthex_model::OAuth::AuthorizationCode(auth) => person(AuthorizationCodeAuth {
                tokens: Some(OAuthTokens {
                    access_token: text("access_token"),
                    refresh_token: Some(text("refresh_token")),
                    expires_at: Some(expires_at),
                }),
                ..auth
            }),
            other @ narthex_model::OAuth::ClientCredentials(_) => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    let auth = auth(world.fixture.now_s() + 3600);
    let server = world.server(auth.clone());
    server.works().await;
    assert!(world.fixture.asked_of(Endpoint::Authorize).is_empty());
    world.advance(3601);
    server.works().await;
    assert_eq!(world.fixture.counts().refreshes, 1);
    // A restart reads the renewed tokens, and not the old ones.
    world.server_of(&world.process("two"), auth).works().await;
    assert_eq!(world.fixture.counts().refreshes, 1);
}

#[tokio::test]
async fn e105_another_redirect_uri_gets_a_registration_of_its_own() {
    let world = World::new();
    world.server(ServerAuth::Unstated).address("whoami").await;
    let mut options = world.options("two");
    options.redirect_base.loopback = Url::parse("http://127.0.0.1:4712").unwrap();
    let sign_ins = SignIns::new(options);
    let server = world.server_of(&sign_ins, ServerAuth::Unstated);
    let address = server.address("whoami").await;
    let redirect = "http://127.0.0.1:4712/oauth/callback/linear";
    assert_eq!(parameter(&address, "redirect_uri").as_deref(), Some(redirect));
    assert_eq!(parameter(&address, "client_id").as_deref(), Some("client-2"));
}

#[tokio::test]
async fn e106_a_configured_resource_goes_with_all_requests() {
    let world = World::new();
    let resource = format!("{}/part", world.fixture.url);
    let server = world.server(person(AuthorizationCodeAuth {
        resource: Some(OAuthResource::Url(resource.clone())),
        ..AuthorizationCodeAuth::default()
    }));
    let address = server.address("whoami").await;
    assert_eq!(parameter(&address, "resource").as_deref(), Some(resource.as_str()));
    server.browse(&address).await.unwrap();
    world.advance(3601);
    server.credential.obtain().await.unwrap();
    let asked = world.fixture.asked_of(Endpoint::Token);
    assert_eq!(asked.len(), 2);
    for asked in asked {
        assert_eq!(asked.field("resource").as_deref(), Some(resource.as_str()));
    }
}

#[tokio::test]
async fn grants_are_not_used_for_another_server_of_the_same_name() {
    let world = World::new();
    let server = world.server(ServerAuth::Unstated);
    server.sign_in().await;
    let elsewhere = format!("{}/other", world.fixture.url);
    let other = crate::world::credential(&server.sign_ins, &elsewhere, &ServerAuth::Unstated);
    assert!(other.obtain().await.unwrap().is_none());
}
