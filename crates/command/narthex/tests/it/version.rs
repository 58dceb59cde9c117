//! `narthex version`, with a server that knows the newest release.

use narthex_testkit::public_registry::RegistryFixture;
use serde_json::{Value, json};

use crate::support::{Done, Place};

const OWN: &str = env!("CARGO_PKG_VERSION");

/// Runs the command with the newest release at this address.
fn run(place: &Place, words: &[&str], url: &str) -> Done {
    Done::from(place.command(words).env("NARTHEX_RELEASES", url).output().unwrap())
}

/// Nothing is asked without `--check`, and an older program is no failure.
#[test]
fn the_newest_version_is_asked_for_on_demand_alone() {
    let (place, server) = (Place::new(), RegistryFixture::start(Vec::new(), 1));
    let release = |tag: &str| {
        let release = json!({ "tag_name": tag, "html_url": "https://host.example/release" });
        server.serve_file("/latest", release.to_string().into_bytes())
    };
    let url = release("v99.1.0");
    let plain = run(&place, &["version"], &url).succeeded();
    assert!(plain.stdout.starts_with(&format!("narthex {OWN} (")), "{plain:?}");
    assert_eq!(run(&place, &["version", "--quiet"], &url).succeeded().stdout, format!("{OWN}\n"));
    let data = run(&place, &["version", "--json"], &url).succeeded().json()["data"].take();
    assert_eq!((&data["version"], &data["newest"]), (&json!(OWN), &Value::Null));
    assert_eq!(server.asked(), [""; 0]);
    let check = ["version", "--check"];
    let older = run(&place, &check, &url).succeeded();
    for told in ["99.1.0 is newer: https://host.example/release", "to update: ", "daemon restart"] {
        assert!(older.stdout.contains(told), "no {told} in {older:?}");
    }
    assert_eq!(server.asked(), ["/latest"]);
    let data = run(&place, &["version", "--check", "--json"], &url).succeeded().json();
    assert_eq!(data["data"]["newest"]["is_newer"], true);
    let same = run(&place, &check, &release(&format!("v{OWN}"))).succeeded();
    assert!(same.stdout.contains("this is the newest version"), "{same:?}");
    let faulty = run(&place, &check, &release("next"));
    faulty.failed(1, &["named `next`, which is no version", "try again later"]);
}

#[test]
fn a_newest_version_that_cannot_be_read_is_a_failure_with_its_remedy() {
    let (place, server) = (Place::new(), RegistryFixture::start(Vec::new(), 1));
    let check = ["version", "--check"];
    let absent = run(&place, &check, &format!("{}/absent", server.url));
    absent.failed(1, &["unavailable", "it answered 404", "try again later"]);
    let url = server.url.clone();
    drop(server);
    run(&place, &check, &format!("{url}/latest?key=1")).failed(1, &[&url, "try again later"]);
    let plain = run(&place, &check, "http://host.example/latest");
    plain.failed(2, &["NARTHEX_RELEASES `http://host.example/latest` is not an address of https"]);
    let example = "https://api.github.com/repos/OWNER/NAME/releases/latest";
    place.run(check).failed(
        2,
        &[
            "the setting `releases` is not set",
            &format!("`releases = \"{example}\"` to "),
            &place.path("config/narthex/narthex.toml").display().to_string(),
            &format!("`NARTHEX_RELEASES={example} narthex version --check"),
        ],
    );
}
