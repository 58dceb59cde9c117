//! The way from an address to its endpoint.

use super::{
    answer::Answer,
    asked::Asked,
    authorize, client_auth,
    kinds::Endpoint,
    metadata::{self, Form, Of},
    protected, registration,
    site::Site,
    token,
};

/// Bytes by which an answer is larger where it is too large.
const PADDING: usize = 1 << 20;

/// The endpoint of an address, with the parts of the address that it needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Route {
    ResourceMetadata(Of),
    ServerMetadata(Form, String),
    Registration(usize),
    Authorize(usize),
    Token(usize),
    Revocation(usize),
    Device(usize),
    Keys(usize),
    /// The path of the MCP server.
    Mcp(String),
    Unknown,
}

impl Route {
    pub(super) fn endpoint(&self) -> Endpoint {
        match self {
            Self::ResourceMetadata(_) => Endpoint::ResourceMetadata,
            Self::ServerMetadata(..) => Endpoint::ServerMetadata,
            Self::Registration(_) => Endpoint::Registration,
            Self::Authorize(_) => Endpoint::Authorize,
            Self::Token(_) => Endpoint::Token,
            Self::Revocation(_) => Endpoint::Revocation,
            Self::Device(_) => Endpoint::Device,
            Self::Keys(_) => Endpoint::Keys,
            Self::Mcp(_) => Endpoint::Mcp,
            Self::Unknown => Endpoint::Unknown,
        }
    }

    /// True if requests carry a form or JSON.
    fn is_posted(&self) -> bool {
        matches!(
            self,
            Self::Registration(_) | Self::Token(_) | Self::Revocation(_) | Self::Device(_)
        )
    }
}

/// The place of a request: an origin of the fixture, and the path at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) origin: usize,
    /// Path and query.
    pub(super) target: String,
    /// True if the request came by a redirect to another origin.
    pub(super) is_redirected: bool,
}

impl Place {
    /// The place that a redirect to another origin leads back to.
    pub(super) fn redirected(target: &str) -> Option<Self> {
        let rest = target.strip_prefix("/from/")?;
        let (origin, target) = rest.split_at(rest.find('/')?);
        let (origin, target) = (origin.parse().ok()?, target.to_owned());
        Some(Self { origin, target, is_redirected: true })
    }
}

/// Finds the endpoint of a place.
pub(super) fn route(site: &Site, place: &Place) -> Route {
    let path = place.target.split('?').next().unwrap_or_default();
    let is_first = place.origin == 0;
    let is_mcp = |path: &str| is_first && site.mcp_paths().any(|one| one == path);
    if let Some(rest) = path.strip_prefix("/.well-known/oauth-protected-resource") {
        return match is_first {
            true => Route::ResourceMetadata(Of::Behind(rest.to_owned())),
            false => Route::Unknown,
        };
    }
    if let Some(rest) = path.strip_prefix("/.well-known/oauth-authorization-server") {
        return Route::ServerMetadata(Form::Inserted, rest.to_owned());
    }
    if let Some(rest) = path.strip_prefix("/.well-known/openid-configuration") {
        return Route::ServerMetadata(Form::OpenidInserted, rest.to_owned());
    }
    match path.strip_suffix("/.well-known/oauth-protected-resource") {
        Some(rest) if is_mcp(rest) => return Route::ResourceMetadata(Of::Below(rest.to_owned())),
        Some(_) | None => {}
    }
    if let Some(rest) = path.strip_suffix("/.well-known/openid-configuration") {
        return Route::ServerMetadata(Form::OpenidAppended, rest.to_owned());
    }
    if is_mcp(path) {
        return Route::Mcp(path.to_owned());
    }
    let mut issuers = site.settings.issuers.iter().enumerate();
    let found = issuers.find_map(|(number, issuer)| {
        let rest = path.strip_prefix(issuer.path.as_str())?;
        let route = match rest {
            "/register" => Route::Registration(number),
            "/authorize" => Route::Authorize(number),
            "/token" => Route::Token(number),
            "/revoke" => Route::Revocation(number),
            "/device" => Route::Device(number),
            "/keys" => Route::Keys(number),
            _ => return None,
        };
        (issuer.origin == place.origin).then_some(route)
    });
    found.unwrap_or(Route::Unknown)
}

/// Answers a request.
pub(super) fn answer(site: &mut Site, place: &Place, asked: &Asked) -> Answer {
    let route = route(site, place);
    let (endpoint, quirks) = (route.endpoint(), site.quirks());
    if quirks.redirects_to_itself.contains(&endpoint) && !place.is_redirected {
        return Answer::redirect(307, &format!("{}{}", asked.origin, asked.target));
    }
    if quirks.redirects.contains(&endpoint) && !place.is_redirected {
        let to = format!("{}/from/{}{}", site.elsewhere, place.origin, place.target);
        return Answer::redirect(307, &to);
    }
    if quirks.unavailable.contains(&endpoint) {
        return Answer::html(503, "Try again later.");
    }
    let is_oversized = quirks.oversized.contains(&endpoint);
    if route.is_posted() && asked.method != http::Method::POST {
        return Answer::text(405, "only POST").header("allow", "POST");
    }
    let answer = match &route {
        Route::ResourceMetadata(of) => metadata::resource(site, of),
        Route::ServerMetadata(form, path) => metadata::server(site, place.origin, *form, path),
        Route::Registration(issuer) => registration::register(site, *issuer, asked),
        Route::Authorize(issuer) => authorize::authorize(site, *issuer, asked),
        Route::Token(issuer) => token::token(site, *issuer, asked),
        Route::Revocation(issuer) => revoke(site, *issuer, asked),
        Route::Device(issuer) => match client_auth::authenticated(site, *issuer, asked) {
            Ok(client) => authorize::device(site, *issuer, asked, &client.id),
            Err(fault) => fault.answer(),
        },
        Route::Keys(issuer) => metadata::keys(site, *issuer),
        Route::Mcp(path) => protected::answer(site, path, asked),
        Route::Unknown if place.target.contains("/.well-known/") => metadata::miss(site),
        Route::Unknown => Answer::text(404, "no such page"),
    };
    if is_oversized { answer.padded(PADDING) } else { answer }
}

/// Revokes a token of the client. A refresh token takes its family along.
fn revoke(site: &mut Site, issuer: usize, asked: &Asked) -> Answer {
    let client = match client_auth::authenticated(site, issuer, asked) {
        Ok(client) => client,
        Err(fault) => return fault.answer(),
    };
    let token = asked.field("token").unwrap_or_default();
    let access = site.books.access.get(&token).map(|access| &access.grant);
    let refresh = site.books.refresh.get(&token).map(|refresh| &refresh.grant);
    let is_refresh = refresh.is_some();
    let is_own = |client_id: &str, of: usize| client_id == client.id && of == issuer;
    match access.or(refresh).filter(|grant| is_own(&grant.client, grant.issuer)) {
        Some(grant) if is_refresh => {
            let family = grant.family;
            site.books.end_family(family);
            site.books.counts.revocations += 1;
        }
        Some(_) => {
            site.books.access.remove(&token);
            site.books.counts.revocations += 1;
        }
        None => {}
    }
    Answer::empty(200)
}
