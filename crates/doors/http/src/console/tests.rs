//! Tests of the table of pages, and of the page to open after a sign-in.

use std::collections::BTreeSet;

use narthex_console::parts::ICONS;

use super::{topics::TOPICS, *};

/// The page of a cookie is one of ours, also if another site has set the cookie.
#[test]
fn s7_a_cookie_leads_to_pages_of_this_console_alone() {
    for path in ["/operator", "/operator/", "/operator/keys", "/operator/workspaces/new"] {
        assert_eq!(onward(&format!("page:{path}")).as_deref(), Some(path));
    }
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
        "page:/operatorx",
        "page:/operator/nothing",
        "page:/operator/keys/rotate",
        "page:/operator//evil.example",
    ] {
        assert_eq!(onward(bad), None, "{bad}");
    }
}

/// Each page is there once, is found by its own path, and has an icon that exists.
#[test]
fn pages_are_found_by_their_paths() {
    let mut seen = BTreeSet::new();
    let of = |table: Table, name| table.all().map(move |one| (table, name, one));
    for (table, name, one) in of(PAGES, "w").chain(of(OPERATOR_PAGES, "operator")) {
        assert!(seen.insert((name, one.path, one.method)), "{} {}", one.method, one.path);
        let path = one.path.replace(['{', '}'], "");
        let method = Method::from_bytes(one.method.as_bytes()).unwrap();
        let found = table.find(&path).page(&method).map(|found| found.path);
        assert_eq!(found, Some(one.path));
        assert!(one.nav.is_none_or(|nav| ICONS.contains(&nav.icon)), "{}", one.path);
        let braces = one.path.matches('{').count();
        assert!(braces <= 2 && !one.path.starts_with('/'), "{}", one.path);
    }
    for nothing in ["x", "servers/", "servers//tools", "servers/a/tools/b", "/servers"] {
        assert_eq!(PAGES.find(nothing).path, None, "{nothing}");
    }
}

/// A page that can be reached by a link changes nothing.
#[test]
fn only_forms_change_anything() {
    let all: Vec<_> = PAGES.all().filter(|page| page.nav.is_some()).collect();
    assert!(all.len() >= 2);
    assert!(all.iter().all(|page| page.method == "GET"));
}

/// Each page of the navigation is in one group, the groups name no other page, and the last group
/// takes what none of them names.
#[test]
fn each_page_of_the_navigation_is_in_one_group() {
    let linked: BTreeSet<_> =
        PAGES.all().filter(|page| page.nav.is_some()).map(|page| page.path).collect();
    let mut named = BTreeSet::new();
    for (heading, paths) in nav::GROUPS {
        for path in *paths {
            assert!(named.insert(*path), "{path} is named twice");
            assert!(linked.contains(path), "{heading} names `{path}`, which is not linked");
        }
    }
    let headings: BTreeSet<_> = nav::GROUPS.iter().map(|(heading, _)| *heading).collect();
    assert_eq!(headings.len(), nav::GROUPS.len());
    assert!(nav::GROUPS.first().is_some_and(|(heading, _)| heading.is_empty()));
}

/// Names of live parts differ, since addresses have them.
#[test]
fn names_of_topics_are_unique() {
    let names: BTreeSet<_> = TOPICS.iter().map(|topic| topic.name).collect();
    assert_eq!(names.len(), TOPICS.len());
}
