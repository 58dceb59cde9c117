//! Forms of the token requests.

use narthex_model::Secret;
use url::Url;

use super::{RequestFault, TokenEndpoint};
use crate::{
    client::{Attempt, AuthMethod, Binding, ClientIdentity, FormRequest, Plan},
    metadata::ServerMetadata,
    scopes::Scopes,
};

const NOW: u64 = 2_000_000_000;

fn metadata() -> ServerMetadata {
    ServerMetadata {
        issuer: "https://as.example".to_owned(),
        authorization_endpoint: Url::parse("https://as.example/authorize").ok(),
        token_endpoint: Url::parse("https://as.example/token").ok(),
        ..ServerMetadata::default()
    }
}

fn public() -> ClientIdentity {
    ClientIdentity::new("c", None, None)
}

fn endpoint<'a>(metadata: &'a ServerMetadata, client: &'a ClientIdentity) -> TokenEndpoint<'a> {
    TokenEndpoint { metadata, client, resource: Some("https://mcp.example/mcp"), now: NOW }
}

fn attempt(metadata: &ServerMetadata, resource: Option<&str>) -> Attempt {
    let plan = Plan {
        metadata,
        client: &public(),
        redirect_uri: "https://narthex.example/cb",
        resource,
        scopes: &Scopes::default(),
        place: None,
        binding: Binding { workspace: "w".into(), server: "s".into(), user: None, session: None },
    };
    Attempt::begin(plan, NOW).unwrap().1
}

fn shown(request: &FormRequest) -> &str {
    assert_eq!(request.url.as_str(), "https://as.example/token");
    request.form.expose()
}

#[test]
fn oauth_c18_the_code_is_exchanged_with_resource_and_verifier() {
    let (metadata, client) = (metadata(), public());
    let code = Secret::new("c+1");
    let of = |resource| {
        let attempt = attempt(&metadata, resource);
        let request = endpoint(&metadata, &client).code(&attempt, &code).unwrap();
        shown(&request).replace(attempt.verifier().expose(), "V")
    };
    assert_eq!(
        of(Some("https://r")),
        "grant_type=authorization_code&code=c%2B1&redirect_uri=https%3A%2F%2Fnarthex.example%2Fcb\
         &code_verifier=V&resource=https%3A%2F%2Fr&client_id=c"
    );
    assert!(!of(None).contains("resource"));
}

#[test]
fn oauth_c21_a_code_is_not_sent_by_another_client_or_to_another_server() {
    let (metadata, client) = (metadata(), public());
    let attempt = attempt(&metadata, None);
    let code = Secret::new("c");
    let other = ClientIdentity::new("other", None, None);
    let refused = endpoint(&metadata, &other).code(&attempt, &code).unwrap_err();
    assert_eq!(refused, RequestFault::OtherClient);
    let moved = ServerMetadata { issuer: "https://evil.example".to_owned(), ..metadata.clone() };
    assert!(endpoint(&moved, &client).code(&attempt, &code).is_err());
}

#[test]
fn oauth_q13_and_q14_a_refresh_has_the_resource_and_scopes_only_if_asked() {
    let (metadata, client) = (metadata(), public());
    let token = Secret::new("r");
    let endpoint = endpoint(&metadata, &client);
    let request = endpoint.refresh(&token, None).unwrap();
    let usual = "grant_type=refresh_token&refresh_token=r&resource=https%3A%2F%2Fmcp.example%2Fmcp\
                 &client_id=c";
    assert_eq!(shown(&request), usual);
    let scopes = Scopes::parse("b a");
    let request = endpoint.refresh(&token, Some(&scopes)).unwrap();
    assert!(shown(&request).contains("&scope=a+b&"));
    let omitting = TokenEndpoint { resource: None, ..endpoint };
    let request = omitting.refresh(&token, None).unwrap();
    assert_eq!(shown(&request), "grant_type=refresh_token&refresh_token=r&client_id=c");
}

#[test]
fn oauth_e97_client_credentials_go_in_the_form() {
    let metadata = metadata();
    let client = ClientIdentity::new("c", Some(Secret::new("s&")), None);
    let client = client.registered_as(AuthMethod::Post);
    let request = endpoint(&metadata, &client);
    let request = request.client_credentials(&Scopes::parse("a"), Some("aud")).unwrap();
    assert_eq!(
        shown(&request),
        "grant_type=client_credentials&audience=aud&scope=a\
         &resource=https%3A%2F%2Fmcp.example%2Fmcp&client_id=c&client_secret=s%26"
    );
    assert!(request.authorization.is_none());
    assert!(!format!("{request:?} {client:?}").contains("s%26"));
}

#[test]
fn oauth_c31_an_assertion_is_redeemed() {
    let (metadata, client) = (metadata(), public());
    let request = endpoint(&metadata, &client);
    let request = request.assertion(&Secret::new("e30.e30.x"), &Scopes::default()).unwrap();
    assert_eq!(
        shown(&request),
        "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=e30.e30.x\
         &resource=https%3A%2F%2Fmcp.example%2Fmcp&client_id=c"
    );
}

#[test]
fn a_server_without_the_endpoint_is_an_error() {
    let (metadata, client) = (ServerMetadata::default(), public());
    let error = endpoint(&metadata, &client).refresh(&Secret::new("r"), None).unwrap_err();
    assert_eq!(error.to_string(), "the authorization server has no `token_endpoint`");
}
