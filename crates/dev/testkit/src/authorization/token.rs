//! The token endpoint.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{
    answer::{Answer, Fault},
    asked::Asked,
    books::{Consent, Grant, Refresh},
    client_auth::authenticated,
    exchange,
    issue::{Issue, issue, resources},
    kinds::AuthMethod,
    quirks::TokenFailure,
    settings::{ClientSettings, DEVICE_CODE, JWT_BEARER, TOKEN_EXCHANGE},
    site::{Site, words},
};

/// The scope of a refresh that names none, at a server that needs one.
const OTHER_SCOPE: &str = "profile";

/// Answers a request for tokens.
pub(super) fn token(site: &mut Site, issuer: usize, asked: &Asked) -> Answer {
    if let Some(failure) = failing(site) {
        return failure;
    }
    let kind = asked.field("grant_type").unwrap_or_default();
    let is_refresh = kind == "refresh_token";
    let answered = granted(site, issuer, asked, &kind);
    if is_refresh {
        match answered {
            Ok(_) => site.books.counts.refreshes += 1,
            Err(_) => site.books.counts.refused_refreshes += 1,
        }
    }
    let answer = match answered {
        Ok(value) => shaped(site, value),
        Err(fault) if site.quirks().slack_like => {
            Answer::json(200, &json!({"ok": false, "error": slack_code(&fault.code, is_refresh)}))
        }
        Err(mut fault) => {
            let quirks = site.quirks();
            if quirks.errors_with_200 {
                fault.status = 200;
            }
            let value = json!({"error": fault.code, "error_description": fault.text});
            match quirks.form_encoded_answers {
                true => Answer::form(fault.status, &value),
                false => fault.answer(),
            }
        }
    };
    answer.header("cache-control", "no-store")
}

fn failing(site: &mut Site) -> Option<Answer> {
    let quirks = &mut site.settings.quirks;
    quirks.failing_token_requests = quirks.failing_token_requests.checked_sub(1)?;
    Some(match quirks.token_failure {
        TokenFailure::Unavailable => {
            Answer::error(503, "temporarily_unavailable", "come back later")
        }
        TokenFailure::Html => Answer::html(500, "Something went wrong."),
        TokenFailure::HtmlAsSuccess => Answer::html(200, "Welcome to the application."),
        TokenFailure::TooMany => {
            Answer::error(429, "slow_down", "too many requests").header("retry-after", "7")
        }
        TokenFailure::BrokenJson => Answer::text(200, "{\"access_token\": \"x"),
        TokenFailure::Hangup => Answer::hangup(),
    })
}

/// The answer as this server writes it.
fn shaped(site: &Site, value: Value) -> Answer {
    match (site.quirks().slack_like, site.quirks().form_encoded_answers) {
        (true, _) => Answer::json(200, &as_slack(value)),
        (false, true) => Answer::form(200, &value),
        (false, false) => Answer::json(200, &value),
    }
}

fn as_slack(mut user: Value) -> Value {
    let scope = user["scope"].as_str().unwrap_or_default().replace(' ', ",");
    user["scope"] = scope.into();
    user["token_type"] = "user".into();
    user["id"] = "U1".into();
    json!({"ok": true, "app_id": "A1", "team": {"id": "T1"}, "authed_user": user})
}

fn slack_code(code: &str, is_refresh: bool) -> &str {
    match (code, is_refresh) {
        ("invalid_grant", true) => "invalid_refresh_token",
        ("invalid_grant", false) => "invalid_code",
        ("invalid_client", _) => "bad_client_secret",
        (other, _) => other,
    }
}

fn granted(site: &mut Site, issuer: usize, asked: &Asked, kind: &str) -> Result<Value, Fault> {
    let content = asked.header("content-type").unwrap_or_default();
    if !content.starts_with("application/x-www-form-urlencoded") {
        return Err(Fault::of("invalid_request", "the body is no form"));
    }
    if let Some(name) = asked.repeated() {
        return Err(Fault::of("invalid_request", format!("{name} comes twice")));
    }
    let client = authenticated(site, issuer, asked)?;
    if !client.grant_types.iter().any(|name| name == kind) {
        let text = format!("the client may not use {kind:?}");
        return Err(Fault::of("unauthorized_client", text));
    }
    match kind {
        "authorization_code" => code(site, &client, asked),
        "refresh_token" => refresh(site, &client, asked),
        "client_credentials" => credentials(site, &client, asked),
        DEVICE_CODE => device(site, &client, asked),
        TOKEN_EXCHANGE => exchange::exchanged(site, &client, asked),
        JWT_BEARER => exchange::asserted(site, &client, asked),
        _ => Err(Fault::of("unsupported_grant_type", format!("{kind:?} is not supported"))),
    }
}

fn code(site: &mut Site, client: &ClientSettings, asked: &Asked) -> Result<Value, Fault> {
    let sent = asked.field("code").unwrap_or_default();
    let Some(code) = site.books.codes.get(&sent).cloned() else {
        return Err(Fault::of("invalid_grant", "the code is unknown"));
    };
    check_owner(&code.grant, client)?;
    if code.is_used {
        site.books.punish(code.grant.family);
        return Err(Fault::of("invalid_grant", "the code was used before"));
    }
    if code.ends_ms <= site.now_ms {
        return Err(Fault::of("invalid_grant", "the code has expired"));
    }
    if asked.field("redirect_uri").as_deref() != Some(&code.redirect_uri) {
        return Err(Fault::of("invalid_grant", "redirect_uri is another one"));
    }
    let verifier = asked.field("code_verifier").unwrap_or_default();
    let is_long = (43..=128).contains(&verifier.len());
    if !is_long || URL_SAFE_NO_PAD.encode(Sha256::digest(&verifier)) != code.challenge {
        return Err(Fault::of("invalid_grant", "code_verifier does not fit the challenge"));
    }
    let grant = for_resources(site, code.grant, asked)?;
    if let Some(code) = site.books.codes.get_mut(&sent) {
        code.is_used = true;
    }
    site.books.counts.exchanged_codes += 1;
    let gives_refresh = has_refresh(site, client, &grant);
    Ok(issue(site, Issue { grant, gives_refresh, nonce: code.nonce }))
}

fn check_owner(grant: &Grant, client: &ClientSettings) -> Result<(), Fault> {
    match grant.client == client.id && grant.issuer == client.issuer {
        true => Ok(()),
        false => Err(Fault::of("invalid_grant", "it was given to another client")),
    }
}

/// A grant for the resources of a token request, which are some of those that were authorized.
fn for_resources(site: &Site, mut grant: Grant, asked: &Asked) -> Result<Grant, Fault> {
    let wanted = resources(asked);
    let is_empty = wanted.is_empty();
    let fault = |text| Fault::of("invalid_target", text);
    let audience = site.audience(wanted, true).map_err(fault)?;
    if is_empty || site.has_one_audience() {
        return Ok(grant);
    }
    match audience.iter().find(|resource| !grant.audience.contains(resource)) {
        Some(other) => Err(fault(format!("{other} was not authorized"))),
        None => {
            grant.audience = audience;
            Ok(grant)
        }
    }
}

fn has_refresh(site: &Site, client: &ClientSettings, grant: &Grant) -> bool {
    let quirks = site.quirks();
    let is_asked_for =
        !quirks.offline_access_needed || grant.scopes.iter().any(|scope| scope == "offline_access");
    let is_registered = client.grant_types.iter().any(|name| name == "refresh_token");
    is_asked_for && is_registered && !quirks.no_refresh_token
}

fn refresh(site: &mut Site, client: &ClientSettings, asked: &Asked) -> Result<Value, Fault> {
    let sent = asked.field("refresh_token").unwrap_or_default();
    let Some(refresh) = site.books.refresh.get(&sent).cloned() else {
        return Err(Fault::of("invalid_grant", "the refresh token is unknown or revoked"));
    };
    check_owner(&refresh.grant, client)?;
    if refresh.ends_ms.is_some_and(|ends| ends <= site.now_ms) {
        return Err(Fault::of("invalid_grant", "the refresh token has expired"));
    }
    let is_second = is_second(site, &refresh)?;
    let grant = refreshed(site, refresh.grant, asked)?;
    let is_rotated = !is_second || site.quirks().grace_rotates;
    let gives_refresh = is_rotated && !site.quirks().never_rotates;
    // The grace begins with the first use.
    if gives_refresh
        && !is_second
        && let Some(used) = site.books.refresh.get_mut(&sent)
    {
        used.used_ms = Some(site.now_ms);
    }
    Ok(issue(site, Issue { grant, gives_refresh, nonce: None }))
}

/// True if a refresh token comes a second time within its grace. Later, the family ends.
fn is_second(site: &mut Site, refresh: &Refresh) -> Result<bool, Fault> {
    let Some(used_ms) = refresh.used_ms else { return Ok(false) };
    let grace = site.quirks().rotates_with_grace;
    if grace.is_some_and(|grace| site.now_ms - used_ms <= grace) {
        return Ok(true);
    }
    site.books.punish(refresh.grant.family);
    Err(Fault::of("invalid_grant", "the refresh token was used before: its family is revoked"))
}

/// The grant of a refreshed token.
fn refreshed(site: &Site, grant: Grant, asked: &Asked) -> Result<Grant, Fault> {
    let quirks = site.quirks();
    if quirks.resource_needed_on_refresh && asked.field("resource").is_none() {
        return Err(Fault::of("invalid_target", "resource is required"));
    }
    let mut grant = for_resources(site, grant, asked)?;
    match asked.field("scope") {
        None if quirks.scope_needed_on_refresh => grant.scopes = vec![OTHER_SCOPE.to_owned()],
        None => {}
        Some(_) if quirks.scope_refused_on_refresh => {
            return Err(Fault::of("invalid_scope", "scope is not allowed"));
        }
        Some(scope) => {
            let wanted = words(&scope);
            if let Some(other) = wanted.iter().find(|scope| !grant.scopes.contains(scope)) {
                return Err(Fault::of("invalid_scope", format!("{other} was not granted")));
            }
            grant.scopes = wanted;
        }
    }
    Ok(grant)
}

fn credentials(site: &mut Site, client: &ClientSettings, asked: &Asked) -> Result<Value, Fault> {
    if client.method == AuthMethod::None {
        return Err(Fault::of("unauthorized_client", "the client is public"));
    }
    let scope = asked.field("scope");
    let scopes = site.granted(scope.as_deref());
    let scopes = scopes.map_err(|text| Fault::of("invalid_scope", text))?;
    let audience = site.audience(resources(asked), scope.is_some());
    let audience = audience.map_err(|text| Fault::of("invalid_target", text))?;
    let (issuer, client) = (client.issuer, client.id.clone());
    let (subject, family) = (client.clone(), site.books.new_family());
    let grant = Grant { issuer, client, subject, scopes, audience, family };
    Ok(issue(site, Issue { grant, gives_refresh: false, nonce: None }))
}

fn device(site: &mut Site, client: &ClientSettings, asked: &Asked) -> Result<Value, Fault> {
    let sent = asked.field("device_code").unwrap_or_default();
    let Some(device) = site.books.devices.get(&sent).cloned() else {
        return Err(Fault::of("invalid_grant", "the device code is unknown or used"));
    };
    check_owner(&device.grant, client)?;
    if device.ends_ms <= site.now_ms {
        return Err(Fault::of("expired_token", "the device code has expired"));
    }
    let quirks = &mut site.settings.quirks;
    if let Some(left) = quirks.slow_down_polls.checked_sub(1) {
        quirks.slow_down_polls = left;
        return Err(Fault::of("slow_down", "poll less often"));
    }
    match device.consent {
        Consent::Pending => Err(Fault::of("authorization_pending", "the person has not answered")),
        Consent::Denied => Err(Fault::of("access_denied", "the person refused")),
        Consent::Given => {
            site.books.devices.remove(&sent);
            let gives_refresh = has_refresh(site, client, &device.grant);
            Ok(issue(site, Issue { grant: device.grant, gives_refresh, nonce: None }))
        }
    }
}
