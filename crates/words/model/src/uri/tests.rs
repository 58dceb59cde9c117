//! Tests of the spellings of URIs, and that no spelling evades a rule about a URI.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::{Gates, ToolScope, ToolScopes, UriRule};

fn gate(pattern: &str) -> Gates {
    let scopes: ToolScopes = [ToolScope::new("s.read").unwrap()].into();
    Gates::new(BTreeMap::new(), &[(pattern.to_owned(), scopes)].into(), BTreeMap::new())
}

/// S14, D5: what servers on the official SDKs take for one URI is one: they read it by the URL
/// Standard.
#[test]
fn s14_other_spellings_of_a_uri_meet_the_same_gate_and_rule() {
    let cases: &[(&str, &[&str])] = &[
        (
            "demo://resource/*",
            &[
                "DEMO://resource/a",
                "de\tmo://resource/a",
                " demo://resource/a",
                "demo://re\nsource/a\r\n",
                "demo://resource/b/../a",
                "demo://resource/%61",
            ],
        ),
        (
            "file:///secret/a",
            &[
                "file:/secret/a",
                "file://localhost/secret/a",
                "file:///secret\\a",
                "file:\\\\\\secret/%61",
                "FILE:secret/a",
                "file:///%73ecret/./a",
                "file:///secret/a#",
                "file:///secret/a?",
                "FILE:/secret/%61#x",
                "file:///secret/a?x#y",
                "file://127.0.0.1/secret/a",
                "file://user@localhost/secret/a",
                "file://LOCALHOST:80/%73ecret/a?x",
                "file://other.example/b/../secret/a",
                "file:\\\\host\\secret\\a",
                "file:////secret/a",
            ],
        ),
        (
            "http://example.com/",
            &["http://EXAMPLE.com:80/", "http:example.com", "http:/\\ex%61mple.com"],
        ),
        ("demo://one", &["demo://one#x", "DEMO://one#", "demo://%6fne#a%23b"]),
        ("HTTP://EXAMPLE.com:80", &["http://example.com/", "http://example.com"]),
        ("http://EXA*", &["http://example.com/a", "Http://EXAMPLE.com"]),
        ("HTTP://*:8080/*", &["http://example.com:8080/a"]),
        ("file:///a b/*", &["file:///a%20b/c", "file:///a b/c", "FILE:/a b/c"]),
        ("file:///a%20b/*", &["file:///a%20b/c", "file:///a b/c", "FILE:/a b/c"]),
    ];
    for (pattern, uris) in cases {
        let deny = UriRule::new(None, &[pattern]);
        for uri in *uris {
            assert!(!gate(pattern).of_resource(uri).is_empty(), "{pattern} {uri:?}");
            assert!(!deny.lets(uri), "{pattern} {uri:?}");
        }
    }
    for free in ["demo://resources/a", "demo:/resource/a", "demo://RESOURCE/a"] {
        assert!(gate("demo://resource/*").of_resource(free).is_empty(), "{free}");
        assert!(UriRule::new(None, &["demo://resource/*"]).lets(free), "{free}");
    }
}

/// D5: what is let in is let in by each of its spellings.
#[test]
fn d5_no_spelling_of_a_uri_widens_a_rule() {
    for (pattern, uri, passes) in [
        ("file:///docs/*", "file:///docs/a%20b", true),
        ("file:///docs/*", "file:///docs/../secret", false),
        ("file:///docs/*", "file:///docs/.\t./secret", false),
        ("file:///docs/*", "file:docs/a", false),
        ("file:///a b", "file:///a%20b", true),
        ("file:///%2A", "file:///secret", false),
        ("file:///%2A", "file:///%2A", false),
        ("http://h?st/x", "http://h/1st/x", false),
        ("http://h?st/x", "http://host/x", true),
        ("http://EXAMPLE.com", "http://EXAMPLE.com", true),
        ("demo://x/{id}", "demo://x/{id}", true),
        ("demo://x/{id}", "demo://x/1", false),
    ] {
        assert_eq!(UriRule::new(Some(&[pattern]), &[]).lets(uri), passes, "{pattern} {uri:?}");
    }
    let both = UriRule::new(Some(&["demo://*"]), &["demo://x/{id}"]);
    assert!(both.lets("demo://y/1") && !both.lets("demo://x/1") && !both.lets("demo://x/{id}"));
}

/// D5: a text that is no URI is absent, also where all are visible: readers may read different
/// URIs.
#[test]
fn d5_a_text_that_is_no_uri_is_always_hidden() {
    let open = UriRule::default();
    for uri in [" a:b", "a:b\u{a0}", "\u{feff}a:b", "a:\tb", "a:b\n", "a:\u{7f}b", "a:\0b"] {
        assert!(!is_plain(uri) && !open.lets(uri), "{uri:?}");
    }
    for uri in ["", "a:b", "file:///a b", "a:\u{fc}", "a"] {
        assert!(is_plain(uri) && open.lets(uri), "{uri:?}");
    }
}

/// A spelling of a part of a URI by another writer, by the URL Standard.
fn rewritten(uri: &str, how: &[u8]) -> String {
    let mut text = String::new();
    let scheme = uri.find(':').unwrap_or_default();
    for ((at, one), how) in uri.char_indices().zip(how.iter().cycle()) {
        match (how % 8, one) {
            (1, _) => text.push('\t'),
            (2, _) => text.push_str("\r\n"),
            (3, '/') if at > scheme + 2 => text.push_str("/."),
            (4, '/') if at > scheme + 2 => text.push_str("/b/%2e."),
            _ => {}
        }
        match (how % 8, one) {
            (5, '/') if !uri.starts_with("demo") => text.push('\\'),
            (6, _) if at < scheme || (uri.starts_with("http") && at < uri.len() - 4) => {
                text.push(one.to_ascii_uppercase());
            }
            _ => text.push(one),
        }
    }
    match how.first().map_or(0, |how| how % 3) {
        0 => text,
        1 => format!(" \u{1}{text}"),
        _ => format!("{text} "),
    }
}

proptest! {
    /// S14, D5: whatever the URL Standard makes equal is gated equally, whichever of both is what
    /// is written in the gate.
    #[test]
    fn s14_equal_urls_are_gated_equally(
        start in prop::sample::select(vec![
            "demo://resource/", "file:///", "http://example.com/", "http://example.com:80/",
        ]),
        rest in "[a-d]{1,3}(/[a-d .%é]{1,4}[a-d]){0,2}/[a-d]{3}",
        how in prop::collection::vec(any::<u8>(), 1..12),
    ) {
        let plain = format!("{start}{rest}");
        let other = rewritten(&plain, &how);
        let normal = |text: &str| Url::parse(text).map(String::from);
        prop_assume!(normal(&plain).is_ok() && normal(&plain) == normal(&other));
        for (written, asked) in [(&plain, &other), (&other, &plain), (&other, &other)] {
            prop_assert!(!gate(written).of_resource(asked).is_empty(), "{written:?} {asked:?}");
            prop_assert!(!UriRule::new(None, &[written]).lets(asked), "{written:?} {asked:?}");
        }
        let all = format!("{start}*");
        prop_assert!(!gate(&all).of_resource(&other).is_empty(), "{all} {other:?}");
        prop_assert!(!UriRule::new(None, &[&all]).lets(&other), "{all} {other:?}");
    }

    /// D5: a rule lets no spelling through that means what it does not let through.
    #[test]
    fn d5_equal_urls_are_allowed_equally(
        rest in "[a-d]{1,2}(/[a-d]{1,2}){0,2}",
        how in prop::collection::vec(any::<u8>(), 1..12),
    ) {
        let rule = UriRule::new(Some(&["demo://x/a*", "file:///b/*"]), &["demo://x/a/b*"]);
        for start in ["demo://x/", "file:///"] {
            let plain = format!("{start}{rest}");
            let other = rewritten(&plain, &how);
            let is_same = Url::parse(&plain).unwrap() == Url::parse(&other).unwrap();
            prop_assert!(!is_same || rule.lets(&plain) || !rule.lets(&other), "{other:?}");
        }
    }
}
