//! Consent on another device (RFC 8628).

use std::{fmt, time::Duration};

use narthex_model::{ErrorKind, Secret};
use serde_json::Value;
use url::Url;

use super::{
    Asked, Failure, Form, FormRequest, Refusal, Reply, TokenEndpoint, Tokens,
    token_endpoint::RequestFault, tokens::successful,
};
use crate::{address::Reach, scopes::Scopes};

/// The grant type of a device.
pub(super) const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// The pause between two requests if the server names none (RFC 8628, 3.2).
const INTERVAL: u64 = 5;
/// More seconds of pause after `slow_down` (RFC 8628, 3.5).
const SLOWER: u64 = 5;
/// The longest pause.
const INTERVAL_MAX: u64 = 300;
/// Lifetime of a code if the server names none.
const LIFE: u64 = 600;
/// The longest user code that is shown.
const USER_CODE_MAX: usize = 32;

/// A consent under way on another device.
#[derive(Debug)]
pub struct Device {
    device_code: Secret,
    /// The code that the person types.
    pub user_code: String,
    /// The address that the person opens.
    pub verification_uri: Url,
    /// The address with the code, for a link.
    pub verification_uri_complete: Option<Url>,
    expires_at: u64,
    interval: u64,
}

/// The next step of a consent.
#[derive(Debug)]
pub enum DeviceStep {
    /// Ask again after this pause.
    Wait(Duration),
    /// The person has agreed.
    Granted(Box<Tokens>),
    /// The consent has failed.
    Failed(DeviceError),
}

/// The reason why a consent on another device failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceError {
    /// The person has not agreed in time.
    Expired,
    /// The person has declined.
    Denied,
    /// The server has refused a request.
    Refused(Refusal),
}

impl DeviceError {
    /// The error's kind.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Expired | Self::Denied => ErrorKind::Unauthenticated,
            Self::Refused(refusal) => refusal.kind(),
        }
    }
}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expired => f.write_str("the code has ended before it was entered; start again"),
            Self::Denied => f.write_str("the sign-in was declined on the other device"),
            Self::Refused(refusal) => refusal.fmt(f),
        }
    }
}

impl std::error::Error for DeviceError {}

impl TokenEndpoint<'_> {
    /// Asks for a code for another device (RFC 8628, 3.1).
    ///
    /// # Errors
    /// When the server has no such endpoint, or the request cannot be made.
    pub fn authorize_device(&self, scopes: &Scopes) -> Result<FormRequest, RequestFault> {
        let form = self.with_scopes_and_resource(Form::default(), Some(scopes));
        let url = self.metadata.device_authorization_endpoint.as_ref();
        self.request("device_authorization_endpoint", url, form)
    }

    /// Asks if the person has agreed (RFC 8628, 3.4).
    ///
    /// # Errors
    /// When the request cannot be made.
    pub fn device(&self, device: &Device) -> Result<FormRequest, RequestFault> {
        let mut form = Form::of(GRANT);
        form.add("device_code", device.device_code.expose());
        self.token_request(self.with_scopes_and_resource(form, None))
    }
}

impl Device {
    /// Reads the reply to [`TokenEndpoint::authorize_device`]; `now` in seconds since 1970.
    ///
    /// # Errors
    /// When the server refused, or its answer has no usable code or address.
    pub fn read(reply: &Reply<'_>, reach: Reach, now: u64) -> Result<Self, Refusal> {
        let members = successful(reply)?;
        let unusable = |reason: &str| Refusal::unusable(reply, reason);
        let text = |name: &str| members.get(name).and_then(Value::as_str);
        let number = |name: &str| {
            let value = members.get(name)?;
            value.as_u64().or_else(|| value.as_str()?.trim().parse().ok())
        };
        let url = |name: &str| text(name).and_then(|text| reach.parse(text).ok());
        let device_code = text("device_code").filter(|code| !code.is_empty());
        let user_code = text("user_code").filter(|code| is_user_code(code));
        // Some servers use the older name.
        let address = url("verification_uri").or_else(|| url("verification_url"));
        let life = number("expires_in").unwrap_or(LIFE);
        Ok(Self {
            device_code: Secret::new(device_code.ok_or_else(|| unusable("no device code"))?),
            user_code: user_code.ok_or_else(|| unusable("no usable user code"))?.to_owned(),
            verification_uri: address.ok_or_else(|| unusable("no usable verification address"))?,
            verification_uri_complete: url("verification_uri_complete"),
            expires_at: now.saturating_add(life),
            interval: number("interval").unwrap_or(INTERVAL).clamp(1, INTERVAL_MAX),
        })
    }

    /// The end of the code, in seconds since 1970.
    #[must_use]
    pub fn expires_at(&self) -> u64 {
        self.expires_at
    }

    /// The pause before the next request.
    #[must_use]
    pub fn pause(&self) -> Duration {
        Duration::from_secs(self.interval)
    }

    /// Takes the reply to [`TokenEndpoint::device`].
    pub fn answer(&mut self, reply: &Reply<'_>, asked: Asked<'_>) -> DeviceStep {
        let refusal = match Tokens::read(reply, asked) {
            Ok(tokens) => return DeviceStep::Granted(Box::new(tokens)),
            Err(refusal) => refusal,
        };
        let slower = match refusal.code.as_str() {
            "authorization_pending" => self.interval,
            "slow_down" => self.interval + SLOWER,
            "access_denied" => return DeviceStep::Failed(DeviceError::Denied),
            "expired_token" => return DeviceStep::Failed(DeviceError::Expired),
            // A server that cannot answer is asked less and less often (RFC 8628, 3.5).
            _ if refusal.failure == Failure::Unavailable => self.interval * 2,
            _ => return DeviceStep::Failed(DeviceError::Refused(refusal)),
        };
        self.interval = slower.min(INTERVAL_MAX);
        match asked.now.saturating_add(self.interval) < self.expires_at {
            true => DeviceStep::Wait(self.pause()),
            false => DeviceStep::Failed(DeviceError::Expired),
        }
    }
}

/// True for a code that can be shown: short, and nothing but visible ASCII without markup.
fn is_user_code(code: &str) -> bool {
    let is_shown = |b: u8| b.is_ascii_alphanumeric() || b"- ._".contains(&b);
    !code.is_empty() && code.len() <= USER_CODE_MAX && code.bytes().all(is_shown)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        client::{ClientIdentity, TokenGrant},
        metadata::ServerMetadata,
    };

    const NOW: u64 = 2_000_000_000;

    fn reach() -> Reach {
        Reach::of(&Url::parse("https://mcp.example/mcp").unwrap())
    }

    fn answer() -> Value {
        json!({
            "device_code": "s3cret",
            "user_code": "WDJB-MJHT",
            "verification_uri": "https://as.example/device",
            "verification_uri_complete": "https://as.example/device?user_code=WDJB-MJHT",
            "expires_in": 100,
            "interval": 5,
        })
    }

    fn device(answer: &Value) -> Result<Device, Refusal> {
        Device::read(&Reply::of(200, answer.to_string().as_bytes()), reach(), NOW)
    }

    fn poll(device: &mut Device, status: u16, body: &str, now: u64) -> DeviceStep {
        let asked = Asked { grant: TokenGrant::Device, scopes: &Scopes::default(), now };
        device.answer(&Reply::of(status, body.as_bytes()), asked)
    }

    fn pause(step: DeviceStep) -> u64 {
        match step {
            DeviceStep::Wait(pause) => pause.as_secs(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_code_is_requested_and_polled_for() {
        let url = |text: &str| Url::parse(text).ok();
        let metadata = ServerMetadata {
            token_endpoint: url("https://as.example/token"),
            device_authorization_endpoint: url("https://as.example/device_authorization"),
            ..ServerMetadata::default()
        };
        let client = ClientIdentity::new("c", None, None);
        let endpoint =
            TokenEndpoint { metadata: &metadata, client: &client, resource: None, now: NOW };
        let request = endpoint.authorize_device(&Scopes::parse("b a")).unwrap();
        assert_eq!(request.url.path(), "/device_authorization");
        assert_eq!(request.form.expose(), "scope=a+b&client_id=c");
        let request = endpoint.device(&device(&answer()).unwrap()).unwrap();
        assert_eq!(
            request.form.expose(),
            "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Adevice_code&device_code=s3cret\
             &client_id=c"
        );
        let none = ServerMetadata::default();
        let none = TokenEndpoint { metadata: &none, ..endpoint };
        assert!(none.authorize_device(&Scopes::default()).is_err());
    }

    #[test]
    fn the_answer_is_checked_before_it_is_shown() {
        let good = device(&answer()).unwrap();
        assert_eq!(good.pause().as_secs(), 5);
        assert!(good.verification_uri_complete.is_some());
        assert!(!format!("{good:?}").contains("s3cret"));
        for (name, value) in [
            ("device_code", json!("")),
            ("user_code", json!("<script>")),
            ("user_code", json!("call 0800 to win a price at our hotline")),
            ("user_code", json!(7)),
            ("verification_uri", json!("http://as.example/device")),
            ("verification_uri", json!("javascript:alert(1)")),
        ] {
            let mut document = answer();
            document[name] = value.clone();
            let error = device(&document).unwrap_err();
            assert!(error.code.starts_with("no "), "{name} {value}: {error}");
        }
        let mut sparse = answer();
        sparse["interval"] = Value::Null;
        sparse["expires_in"] = json!("1800");
        sparse["verification_uri_complete"] = json!("data:x");
        let sparse = device(&sparse).unwrap();
        assert_eq!((sparse.interval, sparse.expires_at), (INTERVAL, NOW + 1800));
        assert!(sparse.verification_uri_complete.is_none());
    }

    #[test]
    fn pauses_grow_when_the_server_asks_for_it() {
        let mut device = device(&answer()).unwrap();
        let pending = "{\"error\":\"authorization_pending\"}";
        assert_eq!(pause(poll(&mut device, 400, pending, NOW)), 5);
        assert_eq!(pause(poll(&mut device, 400, "{\"error\":\"slow_down\"}", NOW)), 10);
        assert_eq!(pause(poll(&mut device, 400, pending, NOW)), 10);
        assert_eq!(pause(poll(&mut device, 503, "", NOW)), 20);
        let step = poll(&mut device, 200, "{\"access_token\":\"a\"}", NOW);
        assert!(matches!(step, DeviceStep::Granted(_)), "{step:?}");
    }

    #[test]
    fn a_consent_ends_by_time_refusal_or_error() {
        let pending = "{\"error\":\"authorization_pending\"}";
        for (status, body, after, error) in [
            (400, pending, 95, DeviceError::Expired),
            (400, "{\"error\":\"expired_token\"}", 1, DeviceError::Expired),
            (400, "{\"error\":\"access_denied\"}", 1, DeviceError::Denied),
            (
                401,
                "{\"error\":\"invalid_client\"}",
                1,
                DeviceError::Refused(Refusal::of_code("invalid_client", Some(401))),
            ),
        ] {
            let mut device = device(&answer()).unwrap();
            let step = poll(&mut device, status, body, NOW + after);
            let DeviceStep::Failed(found) = step else { panic!("{body}: {step:?}") };
            assert_eq!(found, error, "{body}");
        }
        let mut device = device(&answer()).unwrap();
        assert_eq!(pause(poll(&mut device, 400, pending, NOW + 94)), 5);
    }
}
