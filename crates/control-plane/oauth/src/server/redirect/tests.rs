//! Redirect URIs that are admitted, and the tricks that are not.

use proptest::prelude::*;

use super::*;

fn admit(text: &str) -> Result<RedirectUri, RedirectError> {
    RedirectRules::default().admit(text)
}

fn admits(registered: &str, requested: &str) -> bool {
    admit(registered).unwrap().admits(requested)
}

#[test]
fn door_a5_https_loopback_and_known_schemes_are_admitted() {
    let table = [
        ("https://claude.ai/api/mcp/auth_callback", RedirectKind::Web, "claude.ai"),
        ("https://a.example:8443/cb?x=1", RedirectKind::Web, "a.example:8443"),
        ("https://a.example", RedirectKind::Web, "a.example"),
        ("http://127.0.0.1:33418/", RedirectKind::Loopback, "127.0.0.1"),
        ("http://localhost/callback", RedirectKind::Loopback, "localhost"),
        ("http://[::1]:8080/cb", RedirectKind::Loopback, "[::1]"),
        ("https://localhost:8443/cb", RedirectKind::Loopback, "localhost"),
        (KNOWN[0], RedirectKind::PrivateUse, "cursor://anysphere.cursor-mcp"),
        ("claude://claude.ai/cb", RedirectKind::PrivateUse, "claude://claude.ai"),
        (
            "vscode://dynamicauthprovider/x",
            RedirectKind::PrivateUse,
            "vscode://dynamicauthprovider",
        ),
    ];
    for (text, kind, place) in table {
        let uri = admit(text).unwrap();
        assert_eq!((uri.as_str(), uri.kind(), &*uri.place()), (text, kind, place));
        assert!(uri.admits(text));
    }
}

#[test]
fn door_a5_dangerous_redirect_uris_are_refused() {
    use RedirectError::{Fragment, NoUri, PlainHttp, Scheme, User, Wildcard};
    let long = format!("https://a.example/{}", "a".repeat(URI_MAX));
    let table = [
        ("", NoUri),
        ("callback", NoUri),
        ("//a.example/cb", NoUri),
        (&long, NoUri),
        ("https://a.example/cb#x", Fragment),
        ("https://*.example/cb", Wildcard),
        ("https://a.example/*", Wildcard),
        ("https://good.example@evil.example/", User),
        ("https://:x@evil.example/", User),
        ("http://a.example/cb", PlainHttp),
        ("http://127.0.0.2/cb", PlainHttp),
        ("http://localhost.evil.example/cb", PlainHttp),
        ("http://localhost.:80/cb", NoUri),
        ("http://127.1/cb", NoUri),
        ("http://2130706433/cb", NoUri),
        ("http://LOCALHOST/cb", NoUri),
        ("https://a.example\\@evil.example/", NoUri),
        ("https://a.example/a/../b", NoUri),
        ("https://a.example/%2e%2e/b", NoUri),
        ("https:a.example", NoUri),
        ("https:///a.example", NoUri),
        ("https://a.example/\tcb", NoUri),
        ("https://ex\u{e4}mple.example/", NoUri),
        ("javascript:alert(1)", Scheme),
        ("data:text/html,x", Scheme),
        ("file:///etc/passwd", Scheme),
        ("vbscript:x", Scheme),
        ("ftp://a.example/", Scheme),
        ("cursor://anysphere.cursor-mcp/oauth/callback2", Scheme),
        ("cursor://evil/oauth/callback", Scheme),
        ("unknown://x/y", Scheme),
    ];
    for (text, error) in table {
        let found = admit(text).unwrap_err();
        // The order of faults in one text is of no interest: `NoUri` may be found first.
        assert!(found == error || error == PlainHttp && found == NoUri, "{text}: {found:?}");
    }
}

#[test]
fn door_a5_the_port_of_a_loopback_address_is_free() {
    assert!(admits("http://localhost/callback", "http://localhost:3118/callback"));
    assert!(admits("http://127.0.0.1:33418/", "http://127.0.0.1:51234/"));
    assert!(admits("http://127.0.0.1:33418", "http://127.0.0.1:51234/"));
    assert!(admits("http://[::1]/cb?a=1", "http://[::1]:9/cb?a=1"));
    for (registered, requested) in [
        ("http://localhost/callback", "http://localhost:3118/other"),
        ("http://localhost/callback", "http://127.0.0.1/callback"),
        ("http://localhost/callback", "http://localhost:1/callback?x=1"),
        ("http://localhost/callback", "http://localhost:1/callback#x"),
        ("http://localhost/callback", "http://localhost:1@evil.example/callback"),
        ("http://localhost/callback", "http://localhost.evil.example/callback"),
        ("http://localhost/callback", "https://localhost/callback"),
        ("http://localhost/callback", "http://localhost:1/x/../callback"),
    ] {
        assert!(!admits(registered, requested), "{registered} {requested}");
    }
}

#[test]
fn door_a5_all_other_addresses_are_compared_letter_by_letter() {
    for requested in [
        "https://a.example/cb/",
        "https://a.example/CB",
        "https://a.example:443/cb",
        "https://a.example:8443/cb",
        "https://A.example/cb",
        "https://a.example/cb?x=1",
        "https://a.example/c%62",
        "http://a.example/cb",
        "https://evil.example/cb",
    ] {
        assert!(!admits("https://a.example/cb", requested), "{requested}");
    }
    assert!(!admits("claude://claude.ai/cb", "claude://claude.ai:1/cb"));
    assert!(!admits("https://localhost/cb", "https://localhost:1/cb"));
}

#[test]
fn door_a5_settings_allow_private_schemes_alone() {
    let rules = RedirectRules::new(["zed:", "app.example:/cb"]).unwrap();
    assert!(rules.admit("zed://any/where").is_ok());
    assert!(rules.admit("app.example:/cb").is_ok());
    assert_eq!(rules.admit("app.example:/other"), Err(RedirectError::Scheme));
    assert_eq!(rules.admit(KNOWN[0]), Err(RedirectError::Scheme), "they replace the known ones");
    for bad in
        ["javascript:", "data:", "https:", "http://localhost/", "file:", "zed", "", "Zed:", "z:#x"]
    {
        assert_eq!(RedirectRules::new([bad]), Err(BadRule(bad.to_owned())), "{bad}");
    }
}

#[test]
fn parameters_are_added_to_the_query() {
    let with = |text: &str| admit(text).unwrap().with("code=1");
    assert_eq!(with("https://a.example/cb"), "https://a.example/cb?code=1");
    assert_eq!(with("https://a.example/cb?x=1"), "https://a.example/cb?x=1&code=1");
    assert_eq!(with("https://a.example/cb?"), "https://a.example/cb?code=1");
    assert_eq!(with(KNOWN[0]), format!("{}?code=1", KNOWN[0]));
}

/// Addresses that look like one another, from parts that parsers disagree about.
fn tricky() -> impl Strategy<Value = String> {
    let scheme = prop::sample::select(vec![
        "https://",
        "http://",
        "HTTPS://",
        "https:",
        "http:/",
        "claude://",
        "cursor://",
        "vscode:",
        "javascript:",
        "data:",
        "file://",
        "javascript://",
        "",
    ]);
    let user = prop::sample::select(vec!["", "", "", "a@", "localhost@", "a:b@", "@"]);
    let host = prop::sample::select(vec![
        "localhost",
        "127.0.0.1",
        "[::1]",
        "a.example",
        "evil.example",
        "127.1",
        "0x7f.1",
        "localhost.",
        "LOCALHOST",
        "anysphere.cursor-mcp",
        "*.example",
        "a.example\\",
        "",
        "[::]",
        "localhost%2eevil.example",
    ]);
    let port = prop::sample::select(vec!["", "", ":", ":0", ":80", ":443", ":3118", ":99999"]);
    let path = prop::sample::select(vec![
        "",
        "/",
        "/cb",
        "/callback",
        "/oauth/callback",
        "/cb/",
        "/cb?x=1",
        "/cb#f",
        "/a/../cb",
        "/%2e%2e/cb",
        "/cb*",
        "/c b",
        "/cb\n",
        "/cb?",
        "//cb",
        ",text/html",
        "/cb;x",
    ]);
    (scheme, user, host, port, path)
        .prop_map(|(scheme, user, host, port, path)| format!("{scheme}{user}{host}{port}{path}"))
}

/// The rules again, in other words: the parts of a text, without a parser of URLs.
fn follows_the_rules(text: &str) -> bool {
    let authority = |rest: &str| rest.split(['/', '?']).next().unwrap().to_owned();
    let is_clean = text.bytes().all(|b| b.is_ascii_graphic()) && !text.contains(['#', '*', '\\']);
    let is_place = if let Some(rest) = text.strip_prefix("https://") {
        !authority(rest).is_empty() && !authority(rest).contains('@')
    } else if let Some(rest) = text.strip_prefix("http://") {
        let authority = authority(rest);
        let is_port = |port: &str| port.bytes().all(|b| b.is_ascii_digit());
        let mut hosts = ["localhost", "127.0.0.1", "[::1]"].iter();
        hosts.any(|host| match authority.strip_prefix(host) {
            Some("") => true,
            Some(port) => port.strip_prefix(':').is_some_and(is_port),
            None => false,
        })
    } else {
        let mut schemes = ["claude:", "vscode:", "vscode-insiders:"].iter();
        text == KNOWN[0] || schemes.any(|scheme| text.starts_with(scheme))
    };
    is_clean && is_place
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn door_a5_outside_of_the_rules_nothing_is_admitted(text in tricky()) {
        if admit(&text).is_ok() {
            prop_assert!(follows_the_rules(&text), "{}", text);
        }
    }

    #[test]
    fn door_a5_any_text_is_refused_or_follows_the_rules(text in "(?s).{0,60}") {
        prop_assert!(admit(&text).is_err() || follows_the_rules(&text), "{}", text);
    }

    #[test]
    fn door_a5_outside_of_the_rules_nothing_matches(one in tricky(), other in tricky()) {
        let Ok(registered) = admit(&one) else { return Ok(()) };
        if !registered.admits(&other) {
            return Ok(());
        }
        prop_assert!(follows_the_rules(&other), "{} {}", one, other);
        let without_port = |text: &str| {
            let text = text.strip_suffix('/').unwrap_or(text);
            let (scheme, rest) = text.split_once("://").unwrap();
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let end = authority.rfind(':').filter(|at| !authority[*at..].contains(']'));
            format!("{scheme}://{}{path}", &authority[..end.unwrap_or(authority.len())])
        };
        let is_loopback = registered.kind() == RedirectKind::Loopback;
        let is_same = one == other || is_loopback && without_port(&one) == without_port(&other);
        prop_assert!(is_same, "{} {}", one, other);
    }
}
