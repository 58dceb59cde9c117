//! The issue of tokens, and the answer that carries them.

use serde_json::{Value, json};

use super::{
    asked::{Asked, form},
    books::{Access, Grant, Refresh},
    quirks::ExpiresIn,
    site::Site,
};

/// Tokens to issue.
pub(super) struct Issue {
    pub(super) grant: Grant,
    pub(super) gives_refresh: bool,
    /// The nonce of the request at the authorization endpoint, for an ID token.
    pub(super) nonce: Option<String>,
}

/// The issuer, the client and the person of an ID token.
pub(super) struct IdTokenOf<'a> {
    pub(super) issuer: usize,
    pub(super) client: &'a str,
    pub(super) subject: &'a str,
}

/// The resources of a form.
pub(super) fn resources(asked: &Asked) -> Vec<String> {
    let fields = form(&asked.body).into_iter();
    fields.filter(|(name, _)| name == "resource").map(|(_, value)| value).collect()
}

/// Issues tokens.
pub(super) fn issue(site: &mut Site, issue: Issue) -> Value {
    let Issue { grant, gives_refresh, nonce } = issue;
    let lives_s = site.settings.access_lives_s;
    let token = access_token(site, &grant, lives_s);
    let ends_ms = site.now_ms + lives_s * 1000;
    site.books.counts.access_tokens += 1;
    let access = Access { grant: grant.clone(), ends_ms };
    site.books.access.insert(token.clone(), access);
    let mut answer = json!({"access_token": token, "scope": grant.scopes.join(" ")});
    let quirks = site.quirks();
    if quirks.scope_missing {
        answer.as_object_mut().map(|fields| fields.remove("scope"));
    }
    match (quirks.token_type_missing, quirks.token_type_lower_case) {
        (true, _) => {}
        (false, true) => answer["token_type"] = "bearer".into(),
        (false, false) => answer["token_type"] = "Bearer".into(),
    }
    match quirks.expires_in {
        ExpiresIn::Number => answer["expires_in"] = lives_s.into(),
        ExpiresIn::Text => answer["expires_in"] = lives_s.to_string().into(),
        ExpiresIn::Zero => answer["expires_in"] = 0.into(),
        ExpiresIn::Null => answer["expires_in"] = Value::Null,
        ExpiresIn::Missing => {}
        ExpiresIn::Junk => answer["expires_in"] = "soon".into(),
    }
    if grant.scopes.iter().any(|scope| scope == "openid") {
        let of = IdTokenOf { issuer: grant.issuer, client: &grant.client, subject: &grant.subject };
        answer["id_token"] = id_token(site, &of, nonce.as_deref()).into();
    }
    if gives_refresh {
        let ends_ms = site.settings.refresh_lives_s.map(|lives| site.now_ms + lives * 1000);
        let token = site.books.token("refresh token");
        let refresh = Refresh { grant, ends_ms, used_ms: None };
        site.books.refresh.insert(token.clone(), refresh);
        answer["refresh_token"] = token.into();
    }
    answer
}

fn access_token(site: &mut Site, grant: &Grant, lives_s: u64) -> String {
    if !site.quirks().jwt_access_tokens {
        return site.books.token("access token");
    }
    let claims = json!({
        "iss": site.spelt_issuer(grant.issuer),
        "sub": grant.subject,
        "aud": grant.audience,
        "client_id": grant.client,
        "scope": grant.scopes.join(" "),
        "iat": site.now_s(),
        "exp": site.now_s() + lives_s,
        "jti": site.books.token("id of an access token"),
    });
    let token = site.signers[grant.issuer].sign("at+jwt", &claims);
    site.books.noted("access token", token)
}

/// An ID token of an issuer about a person, for a client.
pub(super) fn id_token(site: &mut Site, of: &IdTokenOf<'_>, nonce: Option<&str>) -> String {
    let IdTokenOf { issuer, client, subject } = *of;
    let mut claims = json!({
        "iss": site.spelt_issuer(issuer),
        "sub": subject,
        "aud": client,
        "iat": site.now_s(),
        "exp": site.now_s() + site.settings.access_lives_s,
    });
    if let Some(nonce) = nonce {
        claims["nonce"] = nonce.into();
    }
    let token = site.signers[issuer].sign("JWT", &claims);
    site.books.noted("ID token", token)
}
