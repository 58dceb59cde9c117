//! Pages at size: each asks the store as often whatever there is, and stays small.
//!
//! `cargo xtask bench --only console` measures the time of the same pages.

mod fill;

use std::collections::BTreeMap;

use http::StatusCode;
use narthex_http::pages;
use narthex_store::statements_of;
use scraper::Html;

use self::fill::{Filled, Size};
use super::{FILES, filled, is_of_the_settings, values};

const SMALL: Size = Size { servers: 4, runs: 20, calls: 100, others: 4 };
const LARGE: Size = Size { servers: 119, runs: 300, calls: 3_000, others: 120 };

/// Largest number of statements of a page.
const STATEMENTS: usize = 20;
/// Number of statements by which a page of a large site may exceed that of a small one, such as
/// those of a second batch.
const MORE: usize = 2;
/// Largest number of bytes of a page.
const BYTES: usize = 100_000;

/// Pages with filters, below a workspace. `RUN` stands for the id of the first run.
const FILTERED: &[&str] = &[
    "servers?state=ready&q=many",
    "servers/one/calls?show=failed",
    "tools?q=tool-1&sort=size",
    "tools?page=1",
    "catalog?q=docs",
    "secrets?q=KEY&state=set",
    "agents?q=reader",
    "runs?status=running",
    "runs?parent=RUN",
    "runs?agent=reader&before=15",
    "runs/RUN?status=failed",
    "runs/RUN?requests=all&view=timeline",
    "approvals?status=decided",
    "approvals?agent=reader",
    "grants?agent=reader&ended=true",
    "audit?run=RUN",
    "audit?kind=workspace.&actor=admin",
    "audit?outcome=none",
    "clients?q=client",
    "search?q=e",
    "search?q=1",
];

/// The cost of a page.
struct Cost {
    statements: Vec<&'static str>,
    bytes: usize,
}

/// The cost of each page that a person can look at.
async fn costs(size: Size) -> BTreeMap<String, Cost> {
    let Filled { site, run, .. } = &Filled::new(size).await;
    let browser = site.browser("ada").await;
    let is_listed = |path: &str| !FILES.contains(&path) && !is_of_the_settings(path);
    let listed = pages().filter(|(path, method, _)| *method == "GET" && is_listed(path));
    let listed = listed.map(|(path, ..)| (path, filled("default", path)));
    let filters = FILTERED
        .iter()
        .map(|path| (*path, format!("/w/default/{}", path.replace("RUN", &run.to_text()))));
    let mut costs = BTreeMap::new();
    for (name, path) in listed.chain(filters) {
        // The first time fills caches, and moves the last events of the audit into the store.
        browser.look(&path).await;
        let (answer, statements) = statements_of(browser.look(&path)).await;
        assert_eq!(answer.status, StatusCode::OK, "{path}: {}", answer.text());
        let page = Html::parse_document(answer.text());
        for (selector, attribute) in
            [("[src]", "src"), ("[href]", "href"), ("form", "action"), ("use", "href")]
        {
            for to in values(&page, selector, attribute) {
                assert!(to.starts_with('/') || to.starts_with('#'), "{path}: {to}");
                assert!(!to.starts_with("//"), "{path}: {to}");
            }
        }
        costs.insert(name.to_owned(), Cost { statements, bytes: answer.body.len() });
    }
    costs
}

/// The names of statements, each with its number, for a person who reads a failed test.
fn counted(statements: &[&'static str]) -> String {
    let mut counts = BTreeMap::<_, usize>::new();
    for name in statements {
        *counts.entry(*name).or_default() += 1;
    }
    let counts = counts.into_iter().map(|(name, count)| format!("{name} × {count}"));
    counts.collect::<Vec<_>>().join(", ")
}

/// Each page asks the store a handful of times, as often for a large site as for a small one, and
/// has fewer than 100 KB. Nothing in it is of another host.
#[tokio::test]
async fn pages_of_large_sites_cost_no_more_statements_and_stay_small() {
    let (small, large) = (costs(SMALL).await, costs(LARGE).await);
    let mut faults = Vec::new();
    for (page, cost) in &large {
        let before = small[page].statements.len();
        let (count, bytes) = (cost.statements.len(), cost.bytes);
        println!("{page:45} {before:3} {count:3} statements {bytes:7} bytes");
        let asked = counted(&cost.statements);
        if count > before + MORE {
            faults.push(format!("`{page}` runs {count} statements, before {before}: {asked}"));
        }
        if count > STATEMENTS {
            faults.push(format!("`{page}` runs {count} statements: {asked}"));
        }
        if bytes >= BYTES {
            faults.push(format!("`{page}` has {bytes} bytes"));
        }
    }
    assert!(large.len() > 30, "{}", large.len());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
