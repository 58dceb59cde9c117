//! The `Authorization` header of a link's requests, and the second attempt of a refused request.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Request, StatusCode, header};
use narthex_http_client::{ClientError, HttpClient, HttpResponse};
use narthex_wire::{Limits, Message, Payload, Raw, method};

use crate::{
    AtHand, CredentialFault, Credentials, LinkError, RefusedRequest, redaction::Redaction,
};

/// The credential of one link, if the credential can change.
#[derive(Debug, Clone)]
pub(crate) struct Authorization {
    credentials: Option<Arc<dyn Credentials>>,
    /// True if it is the grant of one human.
    has_holder: bool,
    /// Learns each token that the server gets.
    redaction: Redaction,
}

/// A request that can be built again after a refusal.
pub(crate) trait Resend: Sync {
    /// The request with this `Authorization`. `None`: the header of the definition, if it has one.
    ///
    /// # Errors
    /// When the request has no valid form.
    fn build(&self, authorization: Option<&HeaderValue>) -> Result<Request<Payload>, LinkError>;

    /// The method of MCP, with the tool of a call.
    fn operation(&self) -> String;

    /// Finds words about a lost session in an answer. `None` outside of a session.
    fn lost_session(&self) -> Option<fn(&[u8]) -> bool> {
        None
    }
}

impl Authorization {
    /// The credential of a link to be opened.
    pub(crate) fn new(
        credentials: Option<Arc<dyn Credentials>>,
        has_holder: bool,
        redaction: Redaction,
    ) -> Self {
        Self { credentials, has_holder, redaction }
    }

    /// True if the credential can change.
    pub(crate) fn changes(&self) -> bool {
        self.credentials.is_some()
    }

    /// The header of the next request. Costs no wait while the credential is at hand.
    ///
    /// # Errors
    /// When no credential can be had.
    pub(crate) async fn value(&self) -> Result<Option<HeaderValue>, LinkError> {
        let Some(credentials) = &self.credentials else { return Ok(None) };
        let mut value = match credentials.at_hand() {
            AtHand::Ready(value) => value,
            AtHand::Ask => credentials.obtain().await.map_err(|fault| self.failed(fault, false))?,
        };
        value.iter_mut().for_each(|value| self.learn(value));
        Ok(value)
    }

    /// Sends a request with the credential that is valid now. A server that refuses the credential
    /// did not carry the request out, so the request is sent again with another one: at most once
    /// after a 401, and once after a 403. An answer that no credential changes is returned.
    ///
    /// # Errors
    /// When no answer arrives, or no credential can be had.
    pub(crate) async fn send<R: Resend>(
        &self,
        client: &HttpClient,
        request: &R,
    ) -> Result<HttpResponse, LinkError> {
        let value = self.value().await?;
        let response = send_once(client, request, value.as_ref()).await?;
        match &self.credentials {
            Some(credentials) if is_refusal(response.status) => {
                let refused = Refused { value, response };
                Box::pin(self.send_again(&**credentials, client, request, refused)).await
            }
            Some(_) | None => Ok(response),
        }
    }

    /// Sends a refused request again, as long as its credential can be improved.
    async fn send_again<R: Resend>(
        &self,
        credentials: &dyn Credentials,
        client: &HttpClient,
        request: &R,
        refused: Refused,
    ) -> Result<HttpResponse, LinkError> {
        let Refused { mut value, mut response } = refused;
        let (mut is_renewed, mut is_stepped_up) = (false, false);
        while is_refusal(response.status) && !is_about_session(request, &mut response).await {
            // Some servers refuse requests without a credential in this way, too.
            let is_step_up = response.status == StatusCode::FORBIDDEN && value.is_some();
            let refused = RefusedRequest {
                status: response.status.as_u16(),
                challenges: challenges(&response.headers),
                sent: value.clone(),
                operation: request.operation(),
                is_repeated: is_renewed || is_stepped_up,
            };
            let is_done = if is_step_up { &mut is_stepped_up } else { &mut is_renewed };
            let may_repeat = !std::mem::replace(is_done, true);
            match credentials.refused(refused).await {
                Ok(Some(mut better)) if may_repeat => {
                    // The connection is free for the next request, and the body explains a refusal
                    // that no longer counts.
                    drop(response);
                    self.learn(&mut better);
                    response = send_once(client, request, Some(&better)).await?;
                    value = Some(better);
                }
                Ok(_) | Err(CredentialFault::Rejected { .. }) => break,
                Err(fault) => return Err(self.failed(fault, is_step_up)),
            }
        }
        Ok(response)
    }

    /// Reports a refusal that an answer with another status shows. True if there is another
    /// credential, with which the request can be sent once more.
    ///
    /// # Errors
    /// When no credential can be had.
    pub(crate) async fn refused_within(
        &self,
        sent: Option<HeaderValue>,
        operation: String,
        is_repeated: bool,
    ) -> Result<bool, LinkError> {
        let Some(credentials) = &self.credentials else { return Ok(false) };
        let (status, challenges) = (StatusCode::UNAUTHORIZED.as_u16(), Vec::new());
        let refused = RefusedRequest { status, challenges, sent, operation, is_repeated };
        match credentials.refused(refused).await {
            Ok(better) => Ok(better.is_some()),
            Err(CredentialFault::Rejected { .. }) => Ok(false),
            Err(fault) => Err(self.failed(fault, false)),
        }
    }

    /// Marks a credential that is about to be sent as a secret, wherever it comes back.
    fn learn(&self, value: &mut HeaderValue) {
        value.set_sensitive(true);
        self.redaction.learn(value);
    }

    fn failed(&self, fault: CredentialFault, is_step_up: bool) -> LinkError {
        match fault {
            CredentialFault::Rejected { status } => LinkError::AuthRejected { status },
            fault => {
                let (fault, has_holder) = (Arc::new(fault), self.has_holder);
                LinkError::SignIn { fault, is_step_up, has_holder }
            }
        }
    }
}

/// A refused request: its credential, and the answer.
struct Refused {
    value: Option<HeaderValue>,
    response: HttpResponse,
}

fn is_refusal(status: StatusCode) -> bool {
    matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
}

async fn send_once<R: Resend>(
    client: &HttpClient,
    request: &R,
    value: Option<&HeaderValue>,
) -> Result<HttpResponse, LinkError> {
    match client.send(request.build(value)?).await {
        // The server has moved within its origin, and did not take the request.
        Err(ClientError::Moved { .. }) => {
            let again = Box::pin(client.send(request.build(value)?));
            Ok(again.await?)
        }
        sent => Ok(sent?),
    }
}

/// True if a 401 without a challenge says that the server does not know the session: no credential
/// mends that.
async fn is_about_session<R: Resend>(request: &R, response: &mut HttpResponse) -> bool {
    let Some(names_lost_session) = request.lost_session() else { return false };
    let is_challenge = response.headers.contains_key(header::WWW_AUTHENTICATE);
    if is_challenge || response.status != StatusCode::UNAUTHORIZED {
        return false;
    }
    // An unreadable body names no session.
    let Some(Ok(start)) = response.body.chunk().await else { return false };
    let is_lost = names_lost_session(&start);
    response.body.unread(start);
    is_lost
}

/// The values of `WWW-Authenticate`, in their order.
fn challenges(headers: &HeaderMap) -> Vec<String> {
    let all = headers.get_all(header::WWW_AUTHENTICATE).iter();
    all.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect()
}

/// The method of a message, with the tool of a call.
pub(crate) fn operation(body: &Payload, limits: &Limits) -> String {
    let Ok(message) = Message::parse_lenient(body.clone().into_bytes(), limits) else {
        return String::new();
    };
    let tool = (message.method() == method::TOOLS_CALL)
        .then(|| message.get("name").and_then(Raw::as_str))
        .flatten();
    match tool {
        Some(tool) => format!("{} {tool}", message.method()),
        None => message.method().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(text: &str) -> Payload {
        Payload::from(bytes::Bytes::from(text.to_owned()))
    }

    /// C22: the limit of step-ups counts for each operation, and a tool is one.
    #[test]
    fn oauth_c22_an_operation_is_a_method_or_one_tool() {
        let of = |text: &str| operation(&payload(text), &Limits::default());
        let call =
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wr\u0069te"}}"#;
        assert_eq!(of(call), "tools/call write");
        let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"name":"x"}}"#;
        assert_eq!(of(list), "tools/list");
        assert_eq!(of(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#), "");
        assert_eq!(of("{"), "");
    }

    /// C2: every challenge is passed on, also several values of one header.
    #[test]
    fn oauth_c2_all_challenges_of_an_answer_are_read() {
        let mut headers = HeaderMap::new();
        for value in ["Negotiate", "Bearer scope=\"a, b\""] {
            headers.append(header::WWW_AUTHENTICATE, HeaderValue::from_static(value));
        }
        assert_eq!(challenges(&headers), ["Negotiate", "Bearer scope=\"a, b\""]);
    }

    /// C25: a refusal that no token changes is a refused credential, as one of an API key is.
    #[test]
    fn oauth_c25_a_fault_is_a_sign_in_unless_no_token_helps() {
        let redaction = Redaction::new(Vec::new(), true);
        let authorization = Authorization { credentials: None, has_holder: true, redaction };
        let rejected = authorization.failed(CredentialFault::Rejected { status: 403 }, true);
        assert!(matches!(rejected, LinkError::AuthRejected { status: 403 }), "{rejected}");
        let (why, scopes) = ("no scope".to_owned(), vec!["write".to_owned()]);
        let fault = CredentialFault::NeedsConsent { why, address: None, scopes: scopes.clone() };
        let failed = authorization.failed(fault.clone(), true);
        assert_eq!(failed.credential_fault(), Some(&fault));
        assert!(!failed.needs_sign_in(), "other requests still work");
        assert!(authorization.failed(fault, false).needs_sign_in());
        let wanted = failed.wanted_sign_in().unwrap();
        assert_eq!((wanted.scopes, wanted.is_callers), (scopes, true));
    }
}
