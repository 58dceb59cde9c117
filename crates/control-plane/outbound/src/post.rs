//! Posts one text to an address of another system.

use std::{fmt, sync::Arc, time::Duration};

use http::{HeaderMap, Method, Request, StatusCode};
use narthex_http_client::{AllowedAddresses, ClientError, ClientSettings, HttpClient, Proxies};
use narthex_model::Secret;
use narthex_wire::Payload;
use tokio::time::{Instant, sleep, timeout_at};
use url::Url;

/// Pauses after the first attempts, while a caller waits; their number is that of further attempts.
const PAUSES: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(1)];

/// Posts to addresses of others.
#[derive(Debug)]
pub(crate) struct Poster {
    allowed_hosts: Vec<String>,
    proxies: Arc<Proxies>,
}

/// The content of a post.
#[derive(Debug, Clone)]
pub(crate) struct Letter {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

/// The reason why a post did not arrive. Never contains the address: that is a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PostFailure {
    /// The address can never be used, for this reason.
    Unfit(&'static str),
    /// The server answered with this status.
    Answered(StatusCode),
    /// No answer arrived, for this reason.
    Unreachable(&'static str),
    /// No answer arrived in time.
    TooLate,
}

impl Poster {
    pub(crate) fn new(allowed_hosts: Vec<String>, proxies: Arc<Proxies>) -> Self {
        Self { allowed_hosts, proxies }
    }

    /// Posts once, until `deadline` at the latest.
    pub(crate) async fn post(
        &self,
        address: &Secret,
        letter: &Letter,
        deadline: Instant,
    ) -> Result<(), PostFailure> {
        let (url, reach) = self.target(address)?;
        let proxies = self.proxies.clone();
        let settings = ClientSettings { reach, proxies, max_idle: 0, ..ClientSettings::default() };
        let client = HttpClient::new(&url, settings).map_err(|error| unreachable(&error))?;
        let mut request = Request::new(Payload::from(letter.body.clone()));
        *request.method_mut() = Method::POST;
        let path = url[url::Position::BeforePath..url::Position::AfterQuery].parse();
        *request.uri_mut() = path.map_err(|_unfit| PostFailure::Unfit("it has no usable path"))?;
        *request.headers_mut() = letter.headers.clone();
        let answer = timeout_at(deadline, client.send(request)).await;
        match answer.map_err(|_elapsed| PostFailure::TooLate)? {
            Ok(answer) if answer.status.is_success() => Ok(()),
            Ok(answer) => Err(PostFailure::Answered(answer.status)),
            Err(error) => Err(unreachable(&error)),
        }
    }

    /// Posts, and repeats transient failures, until `deadline` at the latest.
    pub(crate) async fn post_soon(
        &self,
        address: &Secret,
        letter: &Letter,
        deadline: Instant,
    ) -> Result<(), PostFailure> {
        for pause in PAUSES {
            match self.post(address, letter, deadline).await {
                Err(failure) if failure.is_transient() && Instant::now() + pause < deadline => {
                    sleep(pause).await;
                }
                done => return done,
            }
        }
        self.post(address, letter, deadline).await
    }

    /// Refuses an address that can never be posted to, with the reason.
    pub(crate) fn check(&self, address: &Secret) -> Result<(), &'static str> {
        match self.target(address) {
            Err(PostFailure::Unfit(why)) => Err(why),
            _ => Ok(()),
        }
    }

    fn target(&self, address: &Secret) -> Result<(Url, AllowedAddresses), PostFailure> {
        let url = Url::parse(address.expose().trim());
        let url = url.map_err(|_unfit| PostFailure::Unfit("it is not a URL"))?;
        let Some(host) = url.host_str() else {
            return Err(PostFailure::Unfit("it has no host"));
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(PostFailure::Unfit("it has a user name or a password"));
        }
        let with_port = url.port().map(|port| format!("{host}:{port}"));
        let is_allowed =
            self.allowed_hosts.iter().any(|one| one == host || Some(one) == with_port.as_ref());
        match url.scheme() {
            "https" if is_allowed => Ok((url, AllowedAddresses::Anywhere)),
            "https" => Ok((url, AllowedAddresses::Public)),
            "http" if is_allowed => Ok((url, AllowedAddresses::Anywhere)),
            "http" => Err(PostFailure::Unfit("it is not https")),
            _ => Err(PostFailure::Unfit("it is neither https nor http")),
        }
    }
}

impl PostFailure {
    /// True if a later attempt may succeed.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Unfit(_) => false,
            Self::Answered(status) => {
                status.is_server_error()
                    || matches!(
                        *status,
                        StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT
                    )
            }
            Self::Unreachable(_) | Self::TooLate => true,
        }
    }
}

impl fmt::Display for PostFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unfit(why) => write!(f, "its address cannot be used: {why}"),
            Self::Answered(status) => write!(f, "it answered {}", status.as_u16()),
            Self::Unreachable(why) => f.write_str(why),
            Self::TooLate => f.write_str("there was no answer in time"),
        }
    }
}

/// Without the words of the client, which may have the path.
fn unreachable(error: &ClientError) -> PostFailure {
    match error {
        ClientError::NotPublic { .. } => PostFailure::Unfit("its host has no public address"),
        ClientError::Address { .. } => PostFailure::Unfit("it is not an HTTP address"),
        ClientError::Dns { .. } => PostFailure::Unreachable("its host name has no address"),
        ClientError::Proxy { .. } => PostFailure::Unreachable("the proxy refuses the connection"),
        ClientError::Tls { .. } => PostFailure::Unreachable("TLS failed"),
        ClientError::Redirected { .. }
        | ClientError::Moved { .. }
        | ClientError::TooManyRedirects { .. } => PostFailure::Unreachable("it redirects"),
        _ => PostFailure::Unreachable("the connection failed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// X-E37: an address that only this host reaches is refused, in any spelling, unless it is
    /// allowed.
    #[test]
    fn x_e37_addresses_that_cannot_be_posted_to() {
        let allowed = vec!["hooks.internal".to_owned(), "127.0.0.1:8080".to_owned()];
        let poster = Poster::new(allowed, Arc::default());
        let check = |text: &str| poster.check(&Secret::new(text.to_owned()));
        for good in [
            "https://hooks.example.com/a?b=c",
            "http://hooks.internal/x",
            "http://127.0.0.1:8080/x",
            "https://hooks.internal:9/x",
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for (bad, why) in [
            ("http://hooks.example.com/", "it is not https"),
            ("http://127.0.0.1:8081/", "it is not https"),
            ("ftp://hooks.internal/", "it is neither https nor http"),
            ("https://me:secret@hooks.example.com/", "it has a user name or a password"),
            ("hooks.example.com", "it is not a URL"),
            ("data:text/plain,x", "it has no host"),
            ("", "it is not a URL"),
        ] {
            assert_eq!(check(bad), Err(why), "{bad}");
        }
    }

    #[test]
    fn only_transient_failures_are_retried() {
        for (failure, is_transient) in [
            (PostFailure::Unfit("x"), false),
            (PostFailure::Answered(StatusCode::UNAUTHORIZED), false),
            (PostFailure::Answered(StatusCode::TOO_MANY_REQUESTS), true),
            (PostFailure::Answered(StatusCode::BAD_GATEWAY), true),
            (PostFailure::Unreachable("x"), true),
            (PostFailure::TooLate, true),
        ] {
            assert_eq!(failure.is_transient(), is_transient, "{failure}");
        }
    }
}
