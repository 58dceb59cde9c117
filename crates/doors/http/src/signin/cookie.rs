//! The cookies of a browser: its session, an unfinished sign-in at a provider, the page to open
//! after the sign-in, and the page of consent where no human has signed in.

use std::time::Duration;

use http::{HeaderMap, HeaderValue, header};

use crate::respond::Response;

/// The time for which a browser stores the cookie of an unfinished sign-in.
pub(super) const ATTEMPT: Duration = Duration::from_mins(15);
/// The time for which a browser remembers the page that it asked for before the sign-in.
pub(super) const ONWARD: Duration = Duration::from_mins(15);

/// The kinds of cookies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    Session,
    Attempt,
    Onward,
    /// The browser of this machine that sees a page of consent. Sent with requests of our own pages
    /// alone.
    Visitor,
}

/// Reads and sets cookies; their names depend on whether the origin uses https.
#[derive(Debug, Clone, Copy)]
pub(super) struct Jar {
    is_https: bool,
}

/// The session token in the cookie that a browser sent.
pub(crate) fn session_cookie(headers: &HeaderMap, is_https: bool) -> Option<&str> {
    Jar::new(is_https).find(headers, Kept::Session)
}

impl Jar {
    pub(super) fn new(is_https: bool) -> Self {
        Self { is_https }
    }

    /// The name of a cookie. With `__Host-`, browsers refuse a cookie of this name that another
    /// host or an unencrypted page has set. They accept the prefix over https only.
    fn name(self, kept: Kept) -> &'static str {
        match (kept, self.is_https) {
            (Kept::Session, true) => "__Host-narthex",
            (Kept::Session, false) => "narthex",
            (Kept::Attempt, true) => "__Host-narthex-oidc",
            (Kept::Attempt, false) => "narthex-oidc",
            (Kept::Onward, true) => "__Host-narthex-onward",
            (Kept::Onward, false) => "narthex-onward",
            (Kept::Visitor, true) => "__Host-narthex-visitor",
            (Kept::Visitor, false) => "narthex-visitor",
        }
    }

    /// The value of a cookie. `None` if the cookie occurs twice, since another site may have set
    /// one of them.
    pub(super) fn find(self, headers: &HeaderMap, kept: Kept) -> Option<&str> {
        let name = self.name(kept);
        let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
        let pairs = lines.flat_map(|line| line.split(';')).filter_map(|one| one.split_once('='));
        let mut found = pairs.filter(|(key, _)| key.trim() == name).map(|(_, value)| value.trim());
        let first = found.next().filter(|value| !value.is_empty());
        if found.next().is_some() { None } else { first }
    }

    pub(super) fn set(self, response: &mut Response, kept: Kept, value: &str, life: Duration) {
        let secure = if self.is_https { "; Secure" } else { "" };
        let name = self.name(kept);
        let life = life.as_secs();
        let site = match kept {
            Kept::Session | Kept::Attempt | Kept::Onward => "Lax",
            Kept::Visitor => "Strict",
        };
        let line =
            format!("{name}={value}; Path=/; HttpOnly; SameSite={site}; Max-Age={life}{secure}");
        let mut line = HeaderValue::from_str(&line).expect("tokens are base64url, and ids plain");
        line.set_sensitive(true);
        response.headers_mut().append(header::SET_COOKIE, line);
    }

    pub(super) fn clear(self, response: &mut Response, kept: Kept) {
        self.set(response, kept, "", Duration::ZERO);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[&str]) -> HeaderMap {
        let lines = lines.iter().map(|line| (header::COOKIE, line.parse().unwrap()));
        lines.collect()
    }

    #[test]
    fn a_cookie_is_found_by_its_whole_name_and_only_if_it_is_unique() {
        let table: [(&[&str], Option<&str>); 8] = [
            (&["__Host-narthex=abc"], Some("abc")),
            (&["a=b; __Host-narthex=abc ;c=d"], Some("abc")),
            (&["a=b", "__Host-narthex=abc"], Some("abc")),
            (&["__Host-narthex=abc; __Host-narthex=def"], None),
            (&["__Host-narthex=abc", "__Host-narthex=def"], None),
            (&["narthex=abc", "x__Host-narthex=abc", "__Host-narthex-oidc=abc"], None),
            (&["__Host-narthex="], None),
            (&[], None),
        ];
        for (lines, found) in table {
            let headers = headers(lines);
            assert_eq!(Jar::new(true).find(&headers, Kept::Session), found, "{lines:?}");
        }
    }

    #[test]
    fn cookies_are_out_of_reach_of_scripts_and_other_sites() {
        let line = |is_https| {
            let mut response = crate::respond::empty(http::StatusCode::OK);
            Jar::new(is_https).set(&mut response, Kept::Session, "abc", Duration::from_secs(7));
            response.headers()[header::SET_COOKIE].to_str().unwrap().to_owned()
        };
        let rest = "; Path=/; HttpOnly; SameSite=Lax; Max-Age=7";
        assert_eq!(line(true), format!("__Host-narthex=abc{rest}; Secure"));
        assert_eq!(line(false), format!("narthex=abc{rest}"));
        let mut response = crate::respond::empty(http::StatusCode::OK);
        Jar::new(false).set(&mut response, Kept::Visitor, "abc", Duration::from_secs(7));
        let line = response.headers()[header::SET_COOKIE].to_str().unwrap();
        assert!(line.contains("; HttpOnly; SameSite=Strict; "), "{line}");
    }
}
