//! Metadata of the authorization server (RFC 8414).

use serde_json::{Value, json};

use super::door::Door;
use crate::{
    jwt::Algorithms,
    pkce::METHOD,
    scopes::Scopes,
    urns::{ID_JAG_PROFILE, JWT_BEARER, TOKEN_EXCHANGE},
};

/// Path of the page on which people consent. It is at the root, where also clients look that read
/// no metadata.
pub const AUTHORIZE_PATH: &str = "/authorize";
/// Path of the token endpoint.
pub const TOKEN_PATH: &str = "/token";
/// Path of the registration endpoint.
pub const REGISTER_PATH: &str = "/register";
/// Path of the revocation endpoint.
pub const REVOKE_PATH: &str = "/revoke";
/// Path of the introspection endpoint.
pub const INTROSPECT_PATH: &str = "/introspect";

/// The methods by which clients prove themselves. `none` is the first: some clients send their
/// metadata document only where it is listed.
const AUTH_METHODS: [&str; 4] =
    ["none", "client_secret_basic", "client_secret_post", "private_key_jwt"];

/// The parts of the authorization server that are switched on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerFeatures {
    /// Clients may register themselves (RFC 7591).
    pub registration: Feature,
    /// Clients may use the address of their metadata document as id.
    pub client_documents: Feature,
    /// Assertions of identity providers are taken (ID-JAG).
    pub assertions: Feature,
    /// Services get tokens in their own name (`client_credentials`).
    pub services: Feature,
}

/// A part of the server that is on or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// It is offered.
    On,
    /// It is neither offered nor named.
    Off,
}

/// The methods by which services and clients prove themselves at the introspection endpoint. A
/// client without a secret may not ask there.
const INTROSPECTION_METHODS: [&str; 4] =
    ["Bearer", "client_secret_basic", "client_secret_post", "private_key_jwt"];

/// The metadata of the authorization server of the door.
///
/// `scopes` are the scopes that clients may ask for. Some clients ask for all of them in their
/// order.
#[must_use]
pub fn server_metadata(door: &Door, features: ServerFeatures, scopes: &Scopes) -> Value {
    let mut grants = vec!["authorization_code", "refresh_token"];
    let algorithms = Algorithms::default().names();
    let mut document = json!({
        "issuer": door.issuer(),
        "authorization_endpoint": door.at(AUTHORIZE_PATH),
        "token_endpoint": door.at(TOKEN_PATH),
        "token_endpoint_auth_methods_supported": AUTH_METHODS,
        "token_endpoint_auth_signing_alg_values_supported": algorithms,
        "revocation_endpoint": door.at(REVOKE_PATH),
        "revocation_endpoint_auth_methods_supported": AUTH_METHODS,
        "revocation_endpoint_auth_signing_alg_values_supported": algorithms,
        "introspection_endpoint": door.at(INTROSPECT_PATH),
        "introspection_endpoint_auth_methods_supported": INTROSPECTION_METHODS,
        "introspection_endpoint_auth_signing_alg_values_supported": algorithms,
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "code_challenge_methods_supported": [METHOD],
        "authorization_response_iss_parameter_supported": true,
        "scopes_supported": scopes.iter().collect::<Vec<_>>(),
    });
    if features.registration == Feature::On {
        document["registration_endpoint"] = json!(door.at(REGISTER_PATH));
    }
    if features.client_documents == Feature::On {
        document["client_id_metadata_document_supported"] = json!(true);
    }
    if features.services == Feature::On {
        grants.push("client_credentials");
    }
    if features.assertions == Feature::On {
        grants.extend([JWT_BEARER, TOKEN_EXCHANGE]);
        document["authorization_grant_profiles_supported"] = json!([ID_JAG_PROFILE]);
    }
    document["grant_types_supported"] = json!(grants);
    document
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{client::AuthMethod, metadata::ServerMetadata};

    const ALL: ServerFeatures = ServerFeatures {
        registration: Feature::On,
        client_documents: Feature::On,
        assertions: Feature::On,
        services: Feature::On,
    };

    fn metadata(features: ServerFeatures) -> Value {
        let door = Door::new("https://narthex.example").unwrap();
        server_metadata(&door, features, &Scopes::read("offline_access mcp").unwrap())
    }

    #[test]
    fn door_a1_a2_the_document_names_each_endpoint() {
        let all = metadata(ALL);
        assert_eq!(all["issuer"], "https://narthex.example");
        for (name, path) in [
            ("authorization_endpoint", "/authorize"),
            ("token_endpoint", "/token"),
            ("registration_endpoint", "/register"),
            ("revocation_endpoint", "/revoke"),
            ("introspection_endpoint", "/introspect"),
        ] {
            assert_eq!(all[name], format!("https://narthex.example{path}"), "{name}");
        }
        assert_eq!(all["response_types_supported"], json!(["code"]));
        assert_eq!(all["code_challenge_methods_supported"], json!(["S256"]));
        assert_eq!(all["scopes_supported"], json!(["mcp", "offline_access"]));
        assert_eq!(all["authorization_response_iss_parameter_supported"], true);
    }

    #[test]
    fn door_a13_clients_without_a_proof_do_not_ask_about_tokens() {
        let methods = metadata(ALL)["introspection_endpoint_auth_methods_supported"].clone();
        let methods = methods.as_array().unwrap();
        assert!(methods.contains(&json!("Bearer")) && !methods.contains(&json!("none")));
    }

    #[test]
    fn door_a2_client_documents_come_with_the_method_none() {
        let all = metadata(ALL);
        assert_eq!(all["client_id_metadata_document_supported"], true);
        assert_eq!(all["token_endpoint_auth_methods_supported"][0], "none");
        let grants = all["grant_types_supported"].as_array().unwrap();
        assert!(grants.contains(&json!(JWT_BEARER)) && grants.len() == 5);
    }

    #[test]
    fn door_a2_the_client_side_of_narthex_reads_the_document() {
        let read = ServerMetadata::read(metadata(ALL).to_string().as_bytes()).unwrap();
        assert_eq!(read.issuer, "https://narthex.example");
        assert_eq!(read.endpoints().count(), 4);
        assert!(read.supports_s256() && read.sends_issuer && read.takes_metadata_documents);
        let methods = read.token_endpoint_auth_methods_supported.unwrap();
        let usable = AuthMethod::to_register(Some(&methods[3..]), true);
        assert_eq!((usable, usable.name()), (AuthMethod::PrivateKeyJwt, "private_key_jwt"));
    }

    #[test]
    fn door_a2_features_that_are_off_are_not_named() {
        let off = Feature::Off;
        let few = ServerFeatures {
            registration: off,
            client_documents: off,
            assertions: off,
            services: off,
        };
        let document = metadata(few);
        for name in [
            "registration_endpoint",
            "client_id_metadata_document_supported",
            "authorization_grant_profiles_supported",
            "jwks_uri",
        ] {
            assert_eq!(document.get(name), None, "{name}");
        }
        assert_eq!(
            document["grant_types_supported"],
            json!(["authorization_code", "refresh_token"])
        );
    }
}
