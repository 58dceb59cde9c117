//! `narthex open`: a link into the console for the only operator, who is created at first.

use serde_json::json;

use crate::support::Place;

const UP: [&str; 5] = ["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"];

/// the first call creates an operator, and later ones make links for the same human. Where it
/// is unclear who is meant, a name is needed.
#[test]
fn a_9_open_makes_a_link_for_the_only_operator() {
    let place = Place::with(&json!({}));
    let daemon = place.start(&UP);
    daemon.event("ready");
    let first = place.run(["open", "--no-browser"]).succeeded();
    assert!(first.stdout.starts_with("http://localhost:"), "{first:?}");
    assert!(first.stdout.contains("/signin/link/"), "{first:?}");
    assert!(first.stderr.contains("created the account me, an operator"), "{first:?}");
    let again = place.run(["open", "--no-browser", "--quiet"]).succeeded();
    assert!(again.stdout.contains("/signin/link/") && again.stdout != first.stdout, "{again:?}");
    assert_eq!(again.stderr, "");
    let json = place.run(["open", "--no-browser", "--json"]).succeeded().json();
    assert_eq!(json["data"]["adds_passkey"], true, "{json}");

    place.run(["users", "create", "grace", "--operator"]).succeeded();
    place.run(["open", "--no-browser"]).failed(1, &["several humans are operators", "open NAME"]);
    place.run(["open", "grace", "--no-browser", "--quiet"]).succeeded();
    place.run(["users", "disable", "grace"]).succeeded();
    place.run(["open", "--no-browser", "--quiet"]).succeeded();
}
