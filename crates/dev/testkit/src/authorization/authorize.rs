//! The authorization endpoint, which approves or denies at once, and the device's one.

use serde_json::{Value, json};

use super::{
    answer::{Answer, Fault},
    asked::{Asked, form},
    books::{Client, Code, Consent, Device, Grant},
    kinds::AuthMethod,
    registration::is_loopback,
    settings::{ClientSettings, DEVICE_CODE},
    site::Site,
};
use crate::canary::Canary;

/// Lifetime of a code.
const CODE_MS: u64 = 60_000;
/// Lifetime of a device's code.
const DEVICE_S: u64 = 600;

/// Approves a request at once, and redirects back.
pub(super) fn authorize(site: &mut Site, issuer: usize, asked: &Asked) -> Answer {
    let id = asked.query("client_id").unwrap_or_default();
    let Some(client) = known(site, issuer, &id) else {
        return Answer::html(400, "Unknown client.");
    };
    let address = asked.query("redirect_uri").unwrap_or_default();
    if !is_allowed(site, &client.settings, &address) {
        return Answer::html(400, "The redirect address is not registered.");
    }
    let quirk = site.quirks().wrong_iss_in_callback;
    let iss = quirk.sent(&site.spelt_issuer(issuer));
    let state = asked.query("state").map(|state| match site.quirks().wrong_state_in_callback {
        true => format!("{state}x"),
        false => state,
    });
    match approved(site, issuer, asked, &client.settings) {
        Ok(code) => Answer::back(&address, &[("code", Some(code)), ("state", state), ("iss", iss)]),
        Err(Fault { code, text, .. }) => {
            let (error, text) = (("error", Some(code)), ("error_description", Some(text)));
            Answer::back(&address, &[error, text, ("state", state), ("iss", iss)])
        }
    }
}

fn approved(
    site: &mut Site,
    issuer: usize,
    asked: &Asked,
    client: &ClientSettings,
) -> Result<String, Fault> {
    if asked.query("response_type").as_deref() != Some("code") {
        return Err(Fault::of("unsupported_response_type", "response_type must be code"));
    }
    let method = asked.query("code_challenge_method");
    let challenge = asked.query("code_challenge").filter(|text| text.len() == 43);
    let Some(challenge) = challenge.filter(|_| method.as_deref() == Some("S256")) else {
        return Err(Fault::of("invalid_request", "a code_challenge of S256 is required"));
    };
    let grant = granted(site, issuer, asked, client)?;
    if let Some(code) = &site.quirks().denies {
        return Err(Fault::of(code, "the person refused"));
    }
    site.books.counts.codes += 1;
    let code = site.books.token("code");
    let redirect_uri = asked.query("redirect_uri").unwrap_or_default();
    let ends_ms = site.now_ms + CODE_MS;
    let nonce = asked.query("nonce");
    let entry = Code { grant, redirect_uri, challenge, nonce, ends_ms, is_used: false };
    site.books.codes.insert(code.clone(), entry);
    Ok(code)
}

fn granted(
    site: &mut Site,
    issuer: usize,
    asked: &Asked,
    client: &ClientSettings,
) -> Result<Grant, Fault> {
    let text = match asked.target.split_once('?') {
        Some((_, query)) if asked.body.is_empty() => query,
        _ => &asked.body,
    };
    let mut fields = form(text);
    let scope = fields.iter().find(|(name, _)| name == "scope").map(|(_, value)| value.clone());
    let scopes = site.granted(scope.as_deref());
    let scopes = scopes.map_err(|text| Fault::of("invalid_scope", text))?;
    fields.retain(|(name, _)| name == "resource");
    let resources = fields.into_iter().map(|(_, value)| value).collect();
    let audience = site.audience(resources, scope.is_some());
    let audience = audience.map_err(|text| Fault::of("invalid_target", text))?;
    let (subject, family) = (site.settings.subject.clone(), site.books.new_family());
    Ok(Grant { issuer, client: client.id.clone(), subject, scopes, audience, family })
}

/// Gives a device its codes.
pub(super) fn device(site: &mut Site, issuer: usize, asked: &Asked, id: &str) -> Answer {
    let client = known(site, issuer, id);
    let is_allowed =
        |client: &Client| client.settings.grant_types.iter().any(|name| name == DEVICE_CODE);
    let Some(client) = client.filter(is_allowed) else {
        return Answer::error(400, "unauthorized_client", "the client may not use devices");
    };
    let grant = match granted(site, issuer, asked, &client.settings) {
        Ok(grant) => grant,
        Err(fault) => return fault.answer(),
    };
    let code = site.books.token("device code");
    let user_code = Canary::plain("user code").value[1..9].to_uppercase();
    let ends_ms = site.now_ms + DEVICE_S * 1000;
    let consent = Consent::Pending;
    let device = Device { grant, user_code: user_code.clone(), ends_ms, consent };
    site.books.devices.insert(code.clone(), device);
    let page = format!("{}/device/page", site.issuer(issuer));
    Answer::json(
        200,
        &json!({
            "device_code": code,
            "user_code": user_code,
            "verification_uri": page,
            "verification_uri_complete": format!("{page}?user_code={user_code}"),
            "expires_in": DEVICE_S,
            "interval": 5,
        }),
    )
}

/// A client that may be known by its document.
pub(super) fn known(site: &Site, issuer: usize, id: &str) -> Option<Client> {
    if !(site.settings.takes_client_documents && id.starts_with("http")) {
        return site.client(issuer, id);
    }
    let mut documents = site.settings.client_documents.iter();
    let document = documents.find(|document| document["client_id"] == id);
    let addresses = document.map(|document| &document["redirect_uris"]);
    let addresses = addresses.and_then(Value::as_array).into_iter().flatten();
    let addresses: Vec<_> = addresses.filter_map(Value::as_str).collect();
    let mut settings = ClientSettings { issuer, ..ClientSettings::public(id, &addresses) };
    if let Some(keys) = document.and_then(|document| document["jwks"]["keys"].as_array()) {
        settings.method = AuthMethod::KeyJwt;
        settings.keys.clone_from(keys);
    }
    Some(Client { settings, ends_ms: None, secret_ends_ms: None })
}

/// True if a client may be sent to an address.
fn is_allowed(site: &Site, client: &ClientSettings, address: &str) -> bool {
    let has_any_port = !site.quirks().loopback_ports_matter;
    let is_by_document = client.id.starts_with("http") && client.redirect_uris.is_empty();
    let is_it = |registered: &String| {
        registered == address
            || (has_any_port
                && is_loopback(registered)
                && is_loopback(address)
                && without_port(registered) == without_port(address))
    };
    !address.is_empty() && (is_by_document || client.redirect_uris.iter().any(is_it))
}

/// An address of loopback without its port.
fn without_port(address: &str) -> String {
    let rest = address.strip_prefix("http://").unwrap_or(address);
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    };
    format!("{host}{path}")
}
