//! The documents at well-known addresses: resource metadata, server metadata, and keys.

use serde_json::{Value, json};

use super::{answer::Answer, settings::GRANT_TYPES, site::Site};

/// Scope that only the metadata of the resource knows.
const UNKNOWN_SCOPE: &str = "mcp:unknown";

/// The place of resource metadata: an address with a path behind the well-known part, or below the
/// path of an MCP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Of {
    Behind(String),
    Below(String),
}

/// The part of an address of resource metadata that no client guesses.
pub(super) const ELSEWHERE: &str = "/elsewhere";

/// One address of resource metadata.
pub(super) fn resource(site: &Site, of: &Of) -> Answer {
    let quirks = site.quirks();
    let main = &site.settings.mcp_path;
    if quirks.resource_metadata_elsewhere {
        let Of::Behind(path) = of else { return miss(site) };
        return match path.strip_prefix(ELSEWHERE) {
            Some(path) if site.mcp_paths().any(|one| one == path) => named(site, path),
            Some(_) | None => miss(site),
        };
    }
    let is_served = |path: &str| site.mcp_paths().any(|one| one == path);
    let found = match of {
        Of::Below(path) if quirks.resource_metadata_appended => Some(path),
        Of::Below(_) => None,
        Of::Behind(_) if quirks.resource_metadata_appended => None,
        Of::Behind(path) if path.is_empty() || path == "/" => Some(main),
        Of::Behind(_) if quirks.metadata_only_at_root || quirks.html_at_well_known => None,
        Of::Behind(path) => Some(path),
    };
    let found = found.filter(|path| is_served(path) && !quirks.no_resource_metadata);
    match found {
        Some(path) => named(site, path),
        None => miss(site),
    }
}

/// The metadata of the MCP server with this path.
fn named(site: &Site, path: &str) -> Answer {
    let quirks = site.quirks();
    let slash = if quirks.issuer_trailing_slash { "/" } else { "" };
    let issuers = site.settings.advertised.iter();
    let issuers: Vec<_> = issuers.map(|&number| site.issuer(number) + slash).collect();
    let mut scopes = site.settings.required_scopes.clone();
    if quirks.unknown_scopes {
        scopes.push(UNKNOWN_SCOPE.to_owned());
    }
    Answer::json(
        200,
        &json!({
            "resource": site.resource(path),
            "authorization_servers": issuers,
            "scopes_supported": scopes,
            "bearer_methods_supported": ["header"],
        }),
    )
}

/// A form of the addresses of server metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// `oauth-authorization-server` before the path.
    Inserted,
    /// `openid-configuration` before the path.
    OpenidInserted,
    /// `openid-configuration` behind the path.
    OpenidAppended,
}

/// One address of server metadata: its form, the path in it, and the number of its origin.
pub(super) fn server(site: &Site, origin: usize, form: Form, path: &str) -> Answer {
    let quirks = site.quirks();
    let path = path.trim_end_matches('/');
    let mut issuers = site.settings.issuers.iter().enumerate();
    let found = issuers.find(|(_, issuer)| {
        let is_path = match quirks.metadata_only_at_root {
            true => path.is_empty(),
            false => issuer.path == path,
        };
        issuer.origin == origin && is_path
    });
    let is_miss =
        quirks.no_server_metadata || (quirks.html_at_well_known && form == Form::Inserted);
    match found {
        Some((number, _)) if !is_miss => Answer::json(200, &document(site, number)),
        _ => miss(site),
    }
}

fn document(site: &Site, number: usize) -> Value {
    let (quirks, base) = (site.quirks(), site.issuer(number));
    let issuer = match quirks.wrong_issuer_in_metadata {
        true => "https://other.example".to_owned(),
        false => site.spelt_issuer(number),
    };
    let mut scopes = site.settings.scopes.clone();
    scopes.dedup();
    let mut document = json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{base}/authorize"),
        "token_endpoint": format!("{base}/token"),
        "revocation_endpoint": format!("{base}/revoke"),
        "device_authorization_endpoint": format!("{base}/device"),
        "jwks_uri": format!("{base}/keys"),
        "response_types_supported": ["code"],
        "grant_types_supported": GRANT_TYPES,
        "scopes_supported": scopes,
    });
    if let Some(named) = &quirks.authorization_endpoint {
        document["authorization_endpoint"] = named.clone().into();
    }
    if !(quirks.no_dcr || quirks.slack_like) {
        document["registration_endpoint"] = format!("{base}/register").into();
    }
    if !quirks.no_s256_advertised {
        document["code_challenge_methods_supported"] = json!(["S256"]);
    }
    if !site.settings.auth_methods.is_empty() {
        document["token_endpoint_auth_methods_supported"] = json!(site.settings.auth_methods);
        document["token_endpoint_auth_signing_alg_values_supported"] =
            json!(["ES256", "EdDSA", "RS256"]);
    }
    if quirks.wrong_iss_in_callback.is_announced() {
        document["authorization_response_iss_parameter_supported"] = true.into();
    }
    if site.settings.takes_client_documents {
        document["client_id_metadata_document_supported"] = true.into();
    }
    document
}

/// The public key of an issuer.
pub(super) fn keys(site: &Site, issuer: usize) -> Answer {
    Answer::json(200, &json!({"keys": [site.signers[issuer].jwk()]}))
}

/// The answer of a well-known address without metadata.
pub(super) fn miss(site: &Site) -> Answer {
    let quirks = site.quirks();
    if quirks.html_at_well_known {
        return Answer::html(200, "Welcome to the application.");
    }
    let status = quirks.miss_status.unwrap_or(404);
    Answer::text(status, "no such page")
}
