//! Tests of the table of pages, and of the page to open after a sign-in.

use super::*;

/// The page of a cookie is one of ours, whoever has set the cookie.
#[test]
fn s7_a_cookie_leads_to_pages_of_this_console_alone() {
    for path in ["/", "/w/default/", "/w/default/servers", "/w/default/servers/a%20b/tools"] {
        assert_eq!(onward(&format!("page:{path}")).as_deref(), Some(path));
    }
    for bad in [
        "/w/default/",
        "page:",
        "page://evil.example",
        "page:/w/default//evil.example",
        "page:/w/default/../../api/me",
        "page:/w/Def ault/servers",
        "page:/w/default/servers?x=1",
        "page:/w/default/servers/a/disable",
        "page:/w/default/nothing",
        "page:/api/me",
    ] {
        assert_eq!(onward(bad), None, "{bad}");
    }
}

/// Each page is there once, is found by its own path, and has an icon that exists.
#[test]
fn pages_are_found_by_their_paths() {
    let mut seen = std::collections::BTreeSet::new();
    for one in page::all() {
        assert!(seen.insert((one.path, one.method)), "{} {}", one.method, one.path);
        let path = one.path.replace(['{', '}'], "");
        let spot = page::find(&path).unwrap();
        let method = Method::from_bytes(one.method.as_bytes()).unwrap();
        assert_eq!(spot.page(&method).map(|found| found.path), Some(one.path));
        assert!(one.nav.is_none_or(page::has_icon), "{}", one.path);
        let braces = one.path.matches('{').count();
        assert!(braces <= 2 && !one.path.starts_with('/'), "{}", one.path);
    }
    for nothing in ["x", "servers/", "servers//tools", "servers/a/tools/b", "/servers"] {
        assert!(page::find(nothing).is_none(), "{nothing}");
    }
}

/// A page that can be reached by a link changes nothing.
#[test]
fn only_forms_change_anything() {
    let all: Vec<_> = page::all().filter(|page| page.nav.is_some()).collect();
    assert!(all.len() >= 2);
    assert!(all.into_iter().all(|page| page.method == "GET"));
}

/// Names of live parts differ, since addresses have them.
#[test]
fn names_of_topics_are_unique() {
    let names: std::collections::BTreeSet<_> = TOPICS.iter().map(|topic| topic.name).collect();
    assert_eq!(names.len(), TOPICS.len());
}
