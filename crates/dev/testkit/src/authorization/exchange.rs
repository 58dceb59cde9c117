//! Token exchange, and assertions as grants: the two halves of enterprise-managed authorization.

use serde_json::{Value, json};

use super::{
    answer::Fault,
    asked::Asked,
    books::Grant,
    client_auth::{is_for, is_over},
    issue::{Issue, issue, resources},
    settings::ClientSettings,
    signer::verified,
    site::Site,
};

const TYPE: &str = "urn:ietf:params:oauth:token-type:";
/// The `typ` of an identity assertion.
const ASSERTION: &str = "oauth-id-jag+jwt";
/// Lifetime of an identity assertion.
const ASSERTION_S: u64 = 300;

/// Answers a token exchange: with an identity assertion for another issuer if that is wanted, and
/// otherwise with an access token of this one.
///
/// The client has the same id at both issuers.
pub(super) fn exchanged(
    site: &mut Site,
    client: &ClientSettings,
    asked: &Asked,
) -> Result<Value, Fault> {
    let subject = subject(site, asked)?;
    let wanted = asked.field("requested_token_type");
    let kind = wanted.as_deref().map_or("access_token", |kind| kind.trim_start_matches(TYPE));
    match kind {
        "id-jag" => assertion(site, client, asked, &subject),
        "access_token" | "jwt" => {
            let scope = asked.field("scope");
            let grant = grant(site, client, subject, scope.as_deref(), resources(asked))?;
            let mut answer = issue(site, Issue { grant, gives_refresh: false, nonce: None });
            answer["issued_token_type"] = format!("{TYPE}access_token").into();
            Ok(answer)
        }
        other => Err(Fault::of("invalid_request", format!("{other} is not issued"))),
    }
}

/// The person of the subject token.
fn subject(site: &Site, asked: &Asked) -> Result<String, Fault> {
    let token = asked.field("subject_token").unwrap_or_default();
    let kind = asked.field("subject_token_type").unwrap_or_default();
    let found = match kind.trim_start_matches(TYPE) {
        "access_token" => site.holder(&token).map(|grant| grant.subject.clone()),
        "refresh_token" => {
            let refresh = site.books.refresh.get(&token);
            refresh.filter(|one| one.used_ms.is_none()).map(|one| one.grant.subject.clone())
        }
        "id_token" | "jwt" => {
            let signed = verified(&token, &site.believed_keys());
            let claims = signed.map_err(|text| Fault::of("invalid_grant", text))?.claims;
            let live = Some(&claims).filter(|claims| !is_over(claims, site.now_s()));
            live.and_then(|claims| claims["sub"].as_str()).map(str::to_owned)
        }
        other => {
            let text = format!("subject_token_type {other:?} is not supported");
            return Err(Fault::of("invalid_request", text));
        }
    };
    found.ok_or_else(|| Fault::of("invalid_grant", "the subject token is not alive"))
}

fn assertion(
    site: &mut Site,
    client: &ClientSettings,
    asked: &Asked,
    subject: &str,
) -> Result<Value, Fault> {
    let Some(audience) = asked.field("audience") else {
        return Err(Fault::of("invalid_request", "audience is required"));
    };
    let claims = json!({
        "iss": site.spelt_issuer(client.issuer),
        "sub": subject,
        "aud": audience,
        "resource": asked.field("resource"),
        "client_id": client.id,
        "scope": asked.field("scope"),
        "iat": site.now_s(),
        "exp": site.now_s() + ASSERTION_S,
        "jti": site.books.token("id of an assertion"),
    });
    let token = site.signers[client.issuer].sign(ASSERTION, &claims);
    let token = site.books.noted("identity assertion", token);
    Ok(json!({
        "access_token": token,
        "issued_token_type": format!("{TYPE}id-jag"),
        "token_type": "N_A",
        "expires_in": ASSERTION_S,
    }))
}

/// Answers an assertion of another issuer with an access token.
pub(super) fn asserted(
    site: &mut Site,
    client: &ClientSettings,
    asked: &Asked,
) -> Result<Value, Fault> {
    let sent = asked.field("assertion").unwrap_or_default();
    let signed = verified(&sent, &site.believed_keys());
    let signed = signed.map_err(|text| Fault::of("invalid_grant", text))?;
    let (claims, issuer) = (&signed.claims, site.spelt_issuer(client.issuer));
    let fault = match claims {
        _ if signed.typ != ASSERTION => format!("typ is {:?}, not {ASSERTION}", signed.typ),
        claims if !is_for(claims, &issuer) => format!("aud is {}, not {issuer}", claims["aud"]),
        claims if claims["client_id"] != client.id.as_str() => {
            format!("client_id is {}, not {}", claims["client_id"], client.id)
        }
        claims if is_over(claims, site.now_s()) => format!("exp is {}", claims["exp"]),
        claims if !claims["sub"].is_string() => "sub is missing".to_owned(),
        claims if !site.books.is_first_use(claims) => {
            format!("jti {} was used before, or is missing", claims["jti"])
        }
        _ => String::new(),
    };
    if !fault.is_empty() {
        return Err(Fault::of("invalid_grant", fault));
    }
    let text = |name: &str| claims[name].as_str().map(str::to_owned);
    let scope = asked.field("scope").or_else(|| text("scope"));
    let subject = text("sub").unwrap_or_default();
    let resources = Vec::from_iter(text("resource"));
    let grant = grant(site, client, subject, scope.as_deref(), resources)?;
    Ok(issue(site, Issue { grant, gives_refresh: false, nonce: None }))
}

fn grant(
    site: &mut Site,
    client: &ClientSettings,
    subject: String,
    scope: Option<&str>,
    resources: Vec<String>,
) -> Result<Grant, Fault> {
    let scopes = site.granted(scope).map_err(|text| Fault::of("invalid_scope", text))?;
    let audience = site.audience(resources, scope.is_some());
    let audience = audience.map_err(|text| Fault::of("invalid_target", text))?;
    let (issuer, client) = (client.issuer, client.id.clone());
    let family = site.books.new_family();
    Ok(Grant { issuer, client, subject, scopes, audience, family })
}
