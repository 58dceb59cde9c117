//! Tests of entries: each kind of way, the places of values, secrets, and faults of answers.

use narthex_testkit::public_registry::example;

use super::{
    super::{
        document::ServerDocument,
        testing::{answers, folders},
        ways::{WayKind, ways},
    },
    *,
};

/// The way of this kind of an example.
fn way(name: &str, kind: WayKind) -> Way {
    let version = if name.ends_with("weather") { "1.4.0" } else { "0.5.0" };
    let server: ServerDocument =
        serde_json::from_value(example(name, version)["server"].clone()).unwrap();
    ways(&server).0.into_iter().find(|way| way.kind == kind).unwrap()
}

/// The entry, with the names of variables and headers as names of secrets, and the secrets.
#[track_caller]
fn entry(way: &Way, given: &[(&str, &str)]) -> (Value, Vec<String>) {
    let draft = way.draft(&answers(given), &folders()).unwrap();
    let name = |of: &str| SecretName::new(&of.to_uppercase().replace('-', "_")).unwrap();
    let names = draft.secrets().map(|(of, _)| (of.to_owned(), name(of))).collect();
    let values = draft.secrets().map(|(_, value)| value.expose().to_owned()).collect();
    (draft.entry(&names), values)
}

#[track_caller]
fn faults(way: &Way, given: &[(&str, &str)]) -> Vec<String> {
    way.draft(&answers(given), &folders()).unwrap_err()
}

/// E204: a package of npm, with arguments of both kinds, defaults, and a secret in the vault.
#[test]
fn e204_a_package_of_npm_becomes_an_entry() {
    let way = way("io.github.ada/weather", WayKind::Npm);
    let (made, secrets) = entry(&way, &[("WEATHER_KEY", "!k-1234")]);
    let expected = json!({
        "transport": "stdio",
        "command": "npx",
        "args": ["-y", "@ada/weather-mcp@1.4.0", "serve", "--units", "metric"],
        "env": { "WEATHER_KEY": "${secret:WEATHER_KEY}", "LOG_LEVEL": "info" },
    });
    assert_eq!((made, secrets), (expected, vec!["k-1234".to_owned()]));
    let given = [
        ("WEATHER_KEY", "${secret:MINE}"),
        ("--units", "imperial"),
        ("days", "3"),
        ("place", "Rome"),
        ("place", "-x"),
        ("CACHE_DIR", "~/c"),
        ("LOG_LEVEL", "${env:LEVEL}"),
    ];
    let (made, secrets) = entry(&way, &given);
    let args = ["serve", "--units", "imperial", "--days", "3", "Rome", "-x"];
    assert_eq!(made["args"].as_array().unwrap()[2..], args);
    let env = json!({
        "WEATHER_KEY": "${secret:MINE}", "LOG_LEVEL": "${env:LEVEL}", "CACHE_DIR": "/home/ada/c",
    });
    assert_eq!((&made["env"], secrets.len()), (&env, 0));
}

/// E204: a named argument of which nothing is said but its name is a flag alone.
#[test]
fn e204_a_flag_without_a_value_stands_alone() {
    let package = json!({ "registryType": "npm", "identifier": "a", "version": "1.0.0",
        "packageArguments": [
            { "type": "named", "name": "--stdio", "isRequired": true },
            { "type": "named", "name": "--mode", "description": "Mode", "isRequired": true },
        ] });
    let server = json!({ "name": "a/b", "packages": [package] });
    let way = ways(&serde_json::from_value(server).unwrap()).0.remove(0);
    let (made, _) = entry(&way, &[("mode", "")]);
    assert_eq!(made["args"], json!(["-y", "a@1.0.0", "--stdio", "--mode"]));
    assert!(faults(&way, &[])[0].contains("--set mode=VALUE"));
}

/// E204: packages of `PyPI` and images; secrets of images stay out of the command.
#[test]
fn e204_packages_of_pypi_and_images_become_entries() {
    let (made, secrets) = entry(&way("com.example/papers", WayKind::Pypi), &[("token", "!abcd")]);
    assert_eq!((&made["command"], &made["args"]), (&json!("uvx"), &json!(["papers-mcp==0.5.0"])));
    // The text around a secret is stored with it, since a reference is a whole value.
    assert_eq!(
        (&made["env"]["PAPERS_TOKEN"], &secrets[0]),
        (&json!("${secret:PAPERS_TOKEN}"), &"Token abcd".to_owned())
    );
    let oci = way("com.example/papers", WayKind::Oci);
    let (made, secrets) =
        entry(&oci, &[("token", "!abcd"), ("source", "a"), ("source", "/b"), ("target", "/t")]);
    let args = json!([
        "run",
        "-i",
        "--rm",
        "-e",
        "PAPERS_TOKEN",
        "--mount",
        "type=bind,src=/here/a,dst=/t",
        "--mount",
        "type=bind,src=/b,dst=/t",
        "registry.example/papers-mcp:0.5.0",
        "/papers",
    ]);
    assert_eq!((&made["command"], &made["args"]), (&json!("docker"), &args));
    assert_eq!(made["env"], json!({ "PAPERS_TOKEN": "${secret:PAPERS_TOKEN}" }));
    assert_eq!(secrets, ["abcd"]);
    let draft = oci.draft(&answers(&[("token", "!abcd"), ("source", "x y")]), &folders()).unwrap();
    assert!(draft.target().contains("'type=bind,src=/here/x y,dst=/papers'"), "{}", draft.target());
    assert!(!format!("{draft:?}").contains("abcd"));
}

/// E204: a remote server with variables in its address and a secret in a header.
#[test]
fn e204_a_remote_server_becomes_an_entry() {
    let http = way("com.example/papers", WayKind::Http);
    let (made, secrets) = entry(&http, &[("token", "!abcd"), ("X-Team", "us"), ("region", "us")]);
    let expected = json!({
        "transport": "http",
        "url": "https://us.papers.example/mcp",
        "headers": {
            "Authorization": "${secret:AUTHORIZATION}",
            "X-Team": "us",
            "X-Note": "costs $${env:HOME} {braces}",
        },
    });
    assert_eq!((made, secrets), (expected, vec!["Bearer abcd".to_owned()]));
    let (made, _) = entry(&way("com.example/papers", WayKind::Sse), &[]);
    let sse = json!({ "transport": "sse", "url": "https://eu.papers.example/sse" });
    assert_eq!(made, sse);
    // A variable of the daemon may be a part of a value; a secret may not.
    let (made, _) = entry(&http, &[("token", "${env:TOKEN}"), ("X-Team", "us")]);
    assert_eq!(made["headers"]["Authorization"], "Bearer ${env:TOKEN}");
    let told = faults(&http, &[("token", "${secret:T}"), ("X-Team", "us")]);
    assert!(told[0].contains("must be a whole value"), "{told:?}");
}

/// E204: all faults of the answers are reported at once, each with the flag that mends it.
#[test]
fn e204_faults_of_answers_are_reported_at_once() {
    let told = faults(
        &way("io.github.ada/weather", WayKind::Npm),
        &[("units", "kelvin"), ("days", "x"), ("LOG_LEVEL", "a"), ("LOG_LEVEL", "b"), ("NEW", "1")],
    );
    let all = told.join("\n");
    for part in [
        "no value `NEW`; it takes units, days, place, WEATHER_KEY, LOG_LEVEL, CACHE_DIR",
        "the argument `--units` must be one of `metric`, `imperial`",
        "the argument `--days` must be a number",
        "the variable `LOG_LEVEL` takes one value; it is given twice",
        "the variable `WEATHER_KEY` is required; give it with --set-secret WEATHER_KEY",
    ] {
        assert!(all.contains(part), "no {part:?} in {all}");
    }
    let told = faults(&way("com.example/papers", WayKind::Http), &[("token", "!abcd")]);
    assert_eq!(told, ["the header `X-Team` is required; give it with --set X-Team=VALUE"]);
}

/// E206: a secret never becomes an argument or a part of an address.
#[test]
fn e206_secrets_are_refused_where_other_programs_see_them() {
    let weather = way("io.github.ada/weather", WayKind::Npm);
    let told = faults(&weather, &[("WEATHER_KEY", "!abcd"), ("place", "!abcd")]);
    assert!(told[0].contains("the argument `place` would hold a secret"), "{told:?}");
    let http = way("com.example/papers", WayKind::Http);
    let told = faults(&http, &[("token", "!abcd"), ("X-Team", "us"), ("region", "!eu")]);
    assert!(told[0].contains("the address would hold a secret"), "{told:?}");
}

#[test]
fn texts_are_split_at_known_variables_alone() {
    let (one, two) = (Answer::Text("1".to_owned()), Answer::Text("2".to_owned()));
    let variables = BTreeMap::from([("a", &one), ("b", &two)]);
    let whole = |template: &str| {
        let parts = pieces(template, &variables).into_iter().map(|piece| match piece {
            Piece::Fixed(text) => text.to_owned(),
            Piece::Value(Answer::Text(text)) => text.clone(),
            Piece::Value(_) => String::new(),
        });
        parts.collect::<String>()
    };
    let table = [
        ("{a}{b}", "12"),
        ("x{a}y{c}{b}", "x1y{c}2"),
        ("{", "{"),
        ("{{a}}", "{1}"),
        ("{a}{a", "1{a"),
        ("", ""),
        ("é{a}", "é1"),
    ];
    for (template, expected) in table {
        assert_eq!(whole(template), expected, "{template}");
    }
}
