//! Dynamic client registration.

use serde_json::{Value, json};

use super::{
    answer::Answer, asked::Asked, books::Client, kinds::AuthMethod, settings::ClientSettings,
    site::Site,
};

/// A refusal of this registration.
struct Refusal {
    status: u16,
    code: &'static str,
    text: String,
}

impl Refusal {
    fn of(code: &'static str, text: &str) -> Self {
        Self { status: 400, code, text: text.to_owned() }
    }

    fn plain(status: u16, text: &str) -> Self {
        Self { status, code: "", text: text.to_owned() }
    }

    fn answer(&self) -> Answer {
        match self.code {
            "" => Answer::text(self.status, &self.text),
            code => Answer::error(self.status, code, &self.text),
        }
    }
}

/// Registers a client.
pub(super) fn register(site: &mut Site, issuer: usize, asked: &Asked) -> Answer {
    let body = asked.json();
    if let Err(refusal) = check(site, &body) {
        return refusal.answer();
    }
    let client = match made(site, issuer, &body) {
        Ok(client) => client,
        Err(refusal) => return refusal.answer(),
    };
    site.books.counts.registrations += 1;
    let answer = told(site, &client, body);
    site.books.registered.push(client);
    let status = if site.quirks().dcr_answers_200 { 200 } else { 201 };
    Answer::json(status, &answer).header("cache-control", "no-store")
}

fn check(site: &Site, body: &Value) -> Result<(), Refusal> {
    let quirks = site.quirks();
    if quirks.no_dcr || quirks.slack_like {
        return Err(Refusal::plain(404, "no such page"));
    }
    if let Some(status) = quirks.dcr_refuses {
        return Err(Refusal::plain(status, "this server registers no clients"));
    }
    let name = body["client_name"].as_str();
    if quirks.dcr_only_named.as_deref().is_some_and(|only| name != Some(only)) {
        return Err(Refusal::plain(403, "Forbidden: this client is not approved"));
    }
    let kind = body["application_type"].as_str().unwrap_or("web");
    if quirks.dcr_refuses_application_type.as_deref() == Some(kind) {
        let text = format!("application_type {kind} is not allowed");
        return Err(Refusal::of("invalid_client_metadata", &text));
    }
    if quirks.dcr_refuses_scope && !body["scope"].is_null() {
        return Err(Refusal::of("invalid_client_metadata", "scope is not allowed"));
    }
    let addresses = texts(&body["redirect_uris"]);
    let needs_address = texts_or(&body["grant_types"], "authorization_code")
        .iter()
        .any(|grant| grant == "authorization_code");
    if needs_address && addresses.is_empty() {
        return Err(Refusal::of("invalid_redirect_uri", "redirect_uris is empty"));
    }
    for address in &addresses {
        let refused = match is_loopback(address) {
            true => quirks.dcr_refuses_loopback,
            false => quirks.dcr_refuses_without_loopback,
        };
        if refused {
            let text = format!("{address} is not allowed");
            return Err(Refusal::of("invalid_redirect_uri", &text));
        }
    }
    Ok(())
}

fn made(site: &mut Site, issuer: usize, body: &Value) -> Result<Client, Refusal> {
    let quirks = site.quirks().clone();
    let wanted = body["token_endpoint_auth_method"].as_str().unwrap_or("client_secret_basic");
    let known = AuthMethod::of(wanted).filter(|_| {
        let methods = &site.settings.auth_methods;
        methods.is_empty() || methods.iter().any(|method| method == wanted)
    });
    let Some(mut method) = quirks.dcr_forces_method.or(known) else {
        let text = format!("token_endpoint_auth_method {wanted} is not supported");
        return Err(Refusal::of("invalid_client_metadata", &text));
    };
    if method == AuthMethod::None && quirks.returns_secret_for_none {
        method = AuthMethod::AnySecret;
    }
    let number = site.books.counts.registrations + 1;
    let id = match quirks.odd_client_ids {
        true => format!("client:{number}/ä&+%20"),
        false => format!("client-{number}"),
    };
    let secret = method.has_secret().then(|| site.books.secret("client secret"));
    let keys = body["jwks"]["keys"].as_array().cloned().unwrap_or_default();
    let ends = |seconds: Option<u64>| seconds.map(|seconds| site.now_ms + seconds * 1000);
    let (ends_ms, secret_ends_ms) = (ends(quirks.purged_clients), ends(quirks.secret_lives_s));
    let redirect_uris = quirks.dcr_forces_redirects;
    let redirect_uris = redirect_uris.unwrap_or_else(|| texts(&body["redirect_uris"]));
    let grant_types = texts_or(&body["grant_types"], "authorization_code");
    let settings = ClientSettings { issuer, id, secret, method, redirect_uris, grant_types, keys };
    Ok(Client { settings, ends_ms, secret_ends_ms })
}

/// The answer to a registration: its own body, and the fields of the server.
fn told(site: &mut Site, client: &Client, body: Value) -> Value {
    let mut answer = if body.is_object() { body } else { json!({}) };
    let settings = &client.settings;
    answer["client_id"] = settings.id.clone().into();
    answer["client_id_issued_at"] = site.now_s().into();
    answer["token_endpoint_auth_method"] = settings.method.name().into();
    answer["grant_types"] = json!(settings.grant_types);
    answer["redirect_uris"] = json!(settings.redirect_uris);
    answer["registration_access_token"] = site.books.token("registration token").into();
    let base = site.issuer(settings.issuer);
    answer["registration_client_uri"] = format!("{base}/register/{}", settings.id).into();
    if let Some(secret) = &settings.secret {
        answer["client_secret"] = secret.clone().into();
        let ends = client.secret_ends_ms.map_or(0, |ends| ends / 1000);
        answer["client_secret_expires_at"] = ends.into();
    }
    answer
}

/// True if an address is on this machine.
pub(super) fn is_loopback(address: &str) -> bool {
    let rest = address.strip_prefix("http://").unwrap_or_default();
    ["127.0.0.1", "localhost", "[::1]"].iter().any(|host| {
        rest.strip_prefix(host).is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '/']))
    })
}

fn texts(list: &Value) -> Vec<String> {
    let texts = list.as_array().into_iter().flatten().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

fn texts_or(list: &Value, default: &str) -> Vec<String> {
    if list.is_null() { vec![default.to_owned()] } else { texts(list) }
}
