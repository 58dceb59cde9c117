//! The check of the client at the token endpoint: exactly the way that it registered.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::Value;

use super::{
    answer::Fault, asked::Asked, authorize::known, books::Client, kinds::AuthMethod,
    settings::ClientSettings, signer::verified, site::Site,
};

const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// The proofs of a request.
struct Shown {
    id: String,
    basic: Option<String>,
    post: Option<String>,
    assertion: Option<String>,
}

/// The client of a request.
pub(super) fn authenticated(
    site: &mut Site,
    issuer: usize,
    asked: &Asked,
) -> Result<ClientSettings, Fault> {
    let shown = shown(asked)?;
    let Some(client) = known(site, issuer, &shown.id) else {
        return Err(Fault::client(format!("unknown client {:?}", shown.id)));
    };
    if client.settings.method == AuthMethod::KeyJwt {
        let Some(assertion) = &shown.assertion else {
            return Err(Fault::client("the client has to sign an assertion"));
        };
        let issuer = site.spelt_issuer(issuer);
        signed(site, &client.settings, assertion, &issuer).map_err(Fault::client)?;
    } else {
        secret(site, &client, &shown).map_err(Fault::client)?;
    }
    Ok(client.settings)
}

fn shown(asked: &Asked) -> Result<Shown, Fault> {
    let has_header = asked.header("authorization").is_some();
    let basic = asked.basic();
    if has_header && basic.is_none() {
        return Err(Fault::client("the header Authorization is no Basic"));
    }
    let (post, assertion) = (asked.field("client_secret"), asked.field("client_assertion"));
    let ways = [basic.is_some(), post.is_some(), assertion.is_some()];
    if ways.into_iter().filter(|&is_used| is_used).count() > 1 {
        return Err(Fault::of("invalid_request", "the client authenticates itself in two ways"));
    }
    let kind = asked.field("client_assertion_type");
    if assertion.is_some() && kind.as_deref() != Some(ASSERTION_TYPE) {
        return Err(Fault::client(format!("client_assertion_type is {kind:?}")));
    }
    let (mut ids, mut secret) = (Vec::from_iter(asked.field("client_id")), None);
    if let Some(basic) = basic {
        ids.push(basic.id);
        secret = Some(basic.secret);
    }
    ids.extend(assertion.as_deref().and_then(subject));
    ids.dedup();
    match ids.as_slice() {
        [id] => Ok(Shown { id: id.clone(), basic: secret, post, assertion }),
        [] => Err(Fault::client("no client_id")),
        _ => Err(Fault::client(format!("several clients: {}", ids.join(", ")))),
    }
}

/// The subject of an assertion that is not yet believed.
fn subject(assertion: &str) -> Option<String> {
    let claims = URL_SAFE_NO_PAD.decode(assertion.split('.').nth(1)?).ok()?;
    let claims: Value = serde_json::from_slice(&claims).ok()?;
    claims["sub"].as_str().map(str::to_owned)
}

fn secret(site: &Site, client: &Client, shown: &Shown) -> Result<(), String> {
    let (method, secret) = (client.settings.method, &client.settings.secret);
    if client.secret_ends_ms.is_some_and(|ends| ends <= site.now_ms) {
        return Err("the client's secret has expired".to_owned());
    }
    let (basic, post) = (shown.basic.as_ref(), shown.post.as_ref());
    let sent = match method {
        AuthMethod::Basic => basic,
        AuthMethod::Post => post,
        AuthMethod::AnySecret => basic.or(post),
        AuthMethod::None | AuthMethod::KeyJwt => {
            let is_bare = basic.is_none() && post.is_none() && shown.assertion.is_none();
            return if is_bare { Ok(()) } else { Err("the client is public".to_owned()) };
        }
    };
    match sent {
        Some(sent) if Some(sent) == secret.as_ref() => Ok(()),
        Some(_) => Err("the secret is wrong".to_owned()),
        None => Err(format!("the client has to use {}", method.name())),
    }
}

fn signed(
    site: &mut Site,
    client: &ClientSettings,
    assertion: &str,
    issuer: &str,
) -> Result<(), String> {
    let claims = verified(assertion, &client.keys)?.claims;
    if claims["iss"] != client.id.as_str() || claims["sub"] != client.id.as_str() {
        return Err(format!("iss is {} and sub is {}", claims["iss"], claims["sub"]));
    }
    if !is_for(&claims, issuer) {
        return Err(format!("aud is {}, not {issuer}", claims["aud"]));
    }
    if is_over(&claims, site.now_s()) {
        return Err(format!("exp is {}, now is {}", claims["exp"], site.now_s()));
    }
    match site.books.is_first_use(&claims) {
        true => Ok(()),
        false => Err(format!("jti {} was used before, or is missing", claims["jti"])),
    }
}

/// True if a token is for this audience alone.
pub(super) fn is_for(claims: &Value, audience: &str) -> bool {
    let audiences =
        claims["aud"].as_array().map_or_else(|| vec![&claims["aud"]], |list| list.iter().collect());
    matches!(audiences.as_slice(), [only] if **only == audience)
}

/// True if a token has expired, or never does.
pub(super) fn is_over(claims: &Value, now_s: u64) -> bool {
    claims["exp"].as_u64().is_none_or(|ends| ends <= now_s)
}
