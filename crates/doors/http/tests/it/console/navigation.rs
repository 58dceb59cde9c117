//! Tests of the navigation: its groups, the open page in it, and the way to one's own account.

use super::{Html, all, site, values};

/// The headings of the groups, and that of the open one.
fn groups(page: &Html) -> (Vec<String>, Vec<String>) {
    (all(page, "nav.pages summary"), all(page, "nav.pages details[open] > summary"))
}

/// Few entries are shown at first: those of each day, and the headings of the groups. The group
/// around the open page is open, and names that page.
#[tokio::test]
async fn the_group_around_the_open_page_is_open() {
    let site = site().await;
    let browser = site.browser("ada").await;
    let home = browser.see("/w/default/").await;
    let daily = ["Home", "Approvals", "Runs", "Connected services"];
    assert_eq!(all(&home, "nav.pages > ul:first-child > li > a"), daily);
    assert_eq!(values(&home, "nav.pages a[aria-current=page]", "href"), ["/w/default/"]);
    let (headings, open) = groups(&home);
    assert!(headings.len() >= 4 && headings.contains(&"Servers".to_owned()), "{headings:?}");
    assert!(open.is_empty(), "{open:?}");
    for (path, heading, list) in [
        ("secrets", "Servers", "Secrets"),
        ("catalog/docs", "Servers", "Catalog"),
        ("agents/reader", "Agents", "Agents"),
        ("audit/event", "Rules and records", "Audit"),
    ] {
        let page = browser.see(&format!("/w/default/{path}")).await;
        assert_eq!(groups(&page).1, [heading], "{path}");
        assert_eq!(all(&page, "nav.pages a[aria-current]"), [list], "{path}");
        let expected = if path == "secrets" { "page" } else { "true" };
        assert_eq!(values(&page, "nav.pages a[aria-current]", "aria-current"), [expected]);
    }
    let server = browser.see("/w/default/servers/one").await;
    assert_eq!(all(&server, "nav.pages a[aria-current=true]"), ["Connected services"]);
    assert!(groups(&server).1.is_empty());
}

/// The pages are one landmark with a name, and a button opens it where it is hidden.
#[tokio::test]
async fn the_navigation_is_one_landmark_that_a_button_opens() {
    let site = site().await;
    let page = site.browser("ada").await.see("/w/default/").await;
    assert_eq!(values(&page, "nav.pages", "aria-label"), ["Pages"]);
    assert_eq!(values(&page, "button[popovertarget]", "popovertarget"), ["pages"]);
    assert_eq!(values(&page, "nav#pages[popover]", "id"), ["pages"]);
    assert_eq!(all(&page, "main").len(), 1);
    assert_eq!(values(&page, "form[role=search] input[type=search]", "id")[0], "q");
}

/// The menu of the human leads to their own page of the open workspace.
#[tokio::test]
async fn the_account_is_a_page_of_the_workspace() {
    let site = site().await;
    let browser = site.browser("ada").await;
    let page = browser.see("/w/default/").await;
    let account = values(&page, ".menu.right a", "href");
    assert_eq!(account, ["/w/default/me"]);
    assert_eq!(all(&browser.see(&account[0]).await, "h1"), ["My account"]);
}
