//! Credentials in a URL, as in `https://user:password@host/`: sent as Basic, and secret.

use base64::{Engine, engine::general_purpose::STANDARD};
use url::Url;

use crate::{Secret, uri::percent_decoded};

/// The credentials in a URL.
struct UserInfo {
    user: String,
    password: String,
    /// The password as written in the URL.
    written: String,
}

impl UserInfo {
    fn of(url: &str) -> Option<Self> {
        let url = Url::parse(url).ok()?;
        if url.username().is_empty() && url.password().is_none() {
            return None;
        }
        let written = url.password().unwrap_or_default().to_owned();
        let user = percent_decoded(url.username()).into_owned();
        Some(Self { user, password: percent_decoded(&written).into_owned(), written })
    }

    fn encoded(&self) -> String {
        STANDARD.encode(format!("{}:{}", self.user, self.password))
    }
}

/// The value of `Authorization` for the credentials in a URL (RFC 7617); `None` if there are none.
#[must_use]
pub fn basic_credentials(url: &str) -> Option<Secret> {
    UserInfo::of(url).map(|info| Secret::new(format!("Basic {}", info.encoded())))
}

/// The secrets among the credentials in a URL: the password in each spelling, and the two as they
/// are sent.
pub(crate) fn secrets_of(url: &str) -> Vec<Secret> {
    let Some(info) = UserInfo::of(url) else { return Vec::new() };
    let encoded = info.encoded();
    // A user alone is a key, as some services have it.
    let parts = match info.password.is_empty() {
        true => [info.user.clone(), info.user],
        false => [info.password, info.written],
    };
    parts.into_iter().chain([encoded]).map(Secret::new).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(secrets: &[Secret]) -> Vec<&str> {
        secrets.iter().map(Secret::expose).collect()
    }

    /// E168: a user and a password in a URL are what `curl` sends, and both spellings are secret.
    #[test]
    fn e168_credentials_in_a_url_are_basic_and_secret() {
        let basic = |url: &str| basic_credentials(url).map(|value| value.expose().to_owned());
        let url = "http://user:p%40ss@host/mcp";
        assert_eq!(basic(url).as_deref(), Some("Basic dXNlcjpwQHNz"));
        assert_eq!(texts(&secrets_of(url)), ["p@ss", "p%40ss", "dXNlcjpwQHNz"]);
        assert_eq!(basic("https://key@host/").as_deref(), Some("Basic a2V5Og=="));
        assert!(texts(&secrets_of("https://key@host/")).contains(&"key"));
        assert_eq!(basic("https://host/a@b"), None);
        assert!(secrets_of("https://host/a@b").is_empty());
    }
}
