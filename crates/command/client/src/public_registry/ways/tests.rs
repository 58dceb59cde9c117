//! Tests of the ways: the kinds, their places of values, and descriptions that are refused.

use narthex_testkit::public_registry::example;
use serde_json::{Value, json};

use super::{
    super::inputs::{Answers, Folders},
    *,
};

fn document(name: &str, version: &str) -> ServerDocument {
    serde_json::from_value(example(name, version)["server"].clone()).unwrap()
}

/// The ways of a server with this one package.
fn of(package: &Value) -> (Vec<Way>, Vec<Unusable>) {
    let server = json!({ "name": "a/b", "version": "1.0.0", "packages": [package] });
    ways(&serde_json::from_value(server).unwrap())
}

/// The reason for which a package cannot be used.
#[track_caller]
fn refusal(package: &Value) -> String {
    let (usable, unusable) = of(package);
    assert!(usable.is_empty(), "{usable:?}");
    unusable[0].why.clone()
}

fn npm_package(identifier: &str, version: &str) -> Value {
    json!({ "registryType": "npm", "identifier": identifier, "version": version,
        "transport": { "type": "stdio" } })
}

/// E205: packages come first, in their order, and the older transport last.
#[test]
fn e205_ways_are_listed_by_preference() {
    let kinds = |server: &ServerDocument| ways(server).0.iter().map(|w| w.kind).collect::<Vec<_>>();
    assert_eq!(kinds(&document("io.github.ada/weather", "1.4.0")), [WayKind::Npm]);
    let papers = document("com.example/papers", "0.5.0");
    assert_eq!(kinds(&papers), [WayKind::Pypi, WayKind::Oci, WayKind::Http, WayKind::Sse]);
    let targets: Vec<_> = ways(&papers).0.into_iter().map(|way| way.target).collect();
    assert_eq!(targets[..2], ["papers-mcp 0.5.0", "registry.example/papers-mcp:0.5.0"]);
}

/// E205: parts that narthex cannot use are named with the reason.
#[test]
fn e205_other_kinds_are_named_with_the_reason() {
    let (usable, unusable) = ways(&document("com.example/editor", "2.0.0"));
    assert_eq!(usable.iter().map(|way| way.kind).collect::<Vec<_>>(), [WayKind::Mcpb]);
    let told = |index: usize| (unusable[index].what.as_str(), unusable[index].why.as_str());
    assert!(matches!(told(0), ("nuget", why) if why.contains("narthex mcp add NAME -- COMMAND")));
    assert!(matches!(told(1), ("npm", why) if why.contains("--url URL")));
    let unread =
        json!({ "name": "a/b", "packages": [1], "remotes": [{ "type": "ws", "url": "x" }] });
    let (_, unusable) = ways(&serde_json::from_value(unread).unwrap());
    assert!(unusable[0].why.contains("cannot read") && unusable[1].what == "ws");
}

/// E209: a bundle is a way only with its hash, and has no entry before it is unpacked.
#[test]
fn e209_a_bundle_is_a_way_with_its_hash() {
    let (usable, _) = ways(&document("com.example/editor", "2.0.0"));
    let source = usable[0].bundle().unwrap();
    assert_eq!(source.url.as_str(), usable[0].target);
    assert_eq!(source.sha256.len(), 64);
    let faults = usable[0].draft(&Answers::default(), &Folders::default()).unwrap_err();
    assert_eq!(faults, ["its bundle is not unpacked"]);
    let mut package = json!({ "registryType": "mcpb", "identifier": "https://a.example/b" });
    assert!(refusal(&package).contains("has no `fileSha256`"));
    package["fileSha256"] = json!("x");
    assert!(refusal(&package).contains("not a SHA-256"));
}

/// E206: a description cannot slip options, paths or other code under the runner.
#[test]
fn e206_words_of_a_description_have_checked_forms() {
    assert_eq!(of(&npm_package("@a/b.c-d_e~f", "1.0.0-rc.1+x")).0.len(), 1);
    let repositories = ["a/b", "a@b", "@a", "@a/b/c", "git+https://x"];
    for name in
        ["-y", "--package=x", "../x", "a;b", "a b", "", "@../x", "$X"].iter().chain(&repositories)
    {
        assert!(refusal(&npm_package(name, "1.0.0")).contains("is not a package"), "{name}");
    }
    for version in ["latest", "^1.0.0", "~1.2", ">=1", "1.x", "1.*", "*", "1 || 2", "", "-1"] {
        let why = refusal(&npm_package("a", version));
        assert!(why.contains("not exactly one"), "{version}: {why}");
    }
    // npm reads these as ranges or words.
    for version in
        ["1", "1.2", "v1.2.3", "1.2.3.4", "1.2.x", "01.2.3", "1.2.3-", "1.2.3-a..b", "a1"]
    {
        let why = refusal(&npm_package("a", version));
        assert!(why.contains("not exactly one"), "{version}: {why}");
    }
    for version in ["1.2.3", "0.0.0", "10.20.30-rc.1", "1.0.0-x-y.7+b.01"] {
        assert_eq!(of(&npm_package("a", version)).0.len(), 1, "{version}");
    }
    let unversioned = json!({ "registryType": "pypi", "identifier": "a" });
    assert!(refusal(&unversioned).contains("has no version"));
    let image = |identifier: &str| json!({ "registryType": "oci", "identifier": identifier });
    assert!(refusal(&image("--privileged")).contains("is not an image"));
    assert!(refusal(&image("a/b:latest")).contains("`latest`"));
    assert!(refusal(&image("host:5000/a")).contains("has no version"));
    let digest = format!("a/b@sha256:{}", "0".repeat(64));
    assert_eq!(of(&image(&digest)).0[0].target, digest);
    let other = |url: &str| {
        let mut package = npm_package("a", "1.0.0");
        package["registryBaseUrl"] = json!(url);
        package
    };
    assert!(refusal(&other("http://npm.example")).contains("address of https"));
    assert!(refusal(&other("--x")).contains("address of https"));
    let Form::Program { first, .. } = &of(&other("https://npm.example/")).0[0].form else {
        panic!()
    };
    assert_eq!(first[1], "--registry=https://npm.example");
    let usual = concat!("https://registry.npm", "js.org");
    let Form::Program { first, .. } = &of(&other(usual)).0[0].form else { panic!() };
    assert_eq!(first, &["-y"]);
}

/// E204: each value has one question, by the place where it goes.
#[test]
fn e204_questions_name_the_place_the_form_and_the_default() {
    let (ways_of, _) = ways(&document("io.github.ada/weather", "1.4.0"));
    let questions = ways_of[0].questions();
    let names: Vec<_> = questions.iter().map(|question| question.name.as_str()).collect();
    assert_eq!(names, ["units", "days", "place", "WEATHER_KEY", "LOG_LEVEL", "CACHE_DIR"]);
    let [units, _, place, key, ..] = questions.as_slice() else { panic!("{questions:?}") };
    assert_eq!((units.default.as_deref(), units.choices.len()), (Some("metric"), 2));
    assert_eq!(units.place, "the argument `--units`");
    assert!(place.is_repeated && !place.is_required && !place.can_be_secret);
    assert!(key.is_secret && key.is_required && key.can_be_secret);
    let (ways_of, _) = ways(&document("com.example/papers", "0.5.0"));
    let http = ways_of.iter().find(|way| way.kind == WayKind::Http).unwrap();
    let questions = http.questions();
    let names: Vec<_> = questions.iter().map(|question| question.name.as_str()).collect();
    assert_eq!(names, ["region", "token", "X-Team"]);
    assert_eq!(questions[1].place, "a part of the header `Authorization`");
}
