//! Secrets come in at the end: by name until then, in one server only, and never printed.

use std::collections::BTreeSet;

use narthex_catalog::OpenError;
use narthex_model::{Confinement, FileAccess, ServerAuth, Target};
use serde_json::{Value, json};

use crate::world::World;

fn two() -> World {
    let schema = json!({ "key": { "kind": "secret" }, "e": {} });
    let entry = |id: &str, url: &str| json!({ "id": id, "url": url, "config_schema": schema });
    World::new(&[entry("s", "https://s.test/mcp"), entry("t", "https://t.test/mcp")])
        .using(json!({
            "a": { "ref": "s", "config": { "key": "${ONE}", "e": "Bearer ${env.E_TOKEN}" } },
            "b": { "ref": "t", "config": { "key": "${TWO}" } },
        }))
        .secret("ONE", "canary-one")
        .secret("TWO", "canary-two")
        .env("E_TOKEN", "canary-env")
}

/// O93, X-M48, D10, O29, X-M29: a run holds names; values come in when a server starts.
#[test]
fn x_m48_a_run_holds_no_secret() {
    let world = two();
    let run = world.run();
    let told = [format!("{run:?}"), run.shown().to_string(), format!("{:?}", run.secrets())];
    assert!(!told.concat().contains("canary"), "{told:?}");
    // A changed value under the same name does not change the run.
    let rotated = world.clone().secret("ONE", "canary-new").env("E_TOKEN", "canary-other");
    assert!(rotated.run() == run);
    assert_eq!(rotated.carried("a")["x-key"], "canary-new");
    assert_eq!(rotated.carried("a")["x-e"], "Bearer canary-other");
}

/// X-E121, D22, X-M31: each server gets its own secrets alone, and they are known for redaction.
#[test]
fn x_e121_each_server_gets_only_its_own_secrets() {
    let world = two();
    assert_eq!(world.carried("a")["x-key"], "canary-one");
    assert_eq!(
        world.carried("b").into_iter().collect::<Vec<_>>(),
        [("x-key".to_owned(), "canary-two".to_owned())]
    );
    let definition = world.definition("a").unwrap();
    let secrets = definition.secrets();
    let known: Vec<&str> = secrets.iter().map(narthex_model::Secret::expose).collect();
    assert!(known.contains(&"canary-one") && known.contains(&"canary-env"), "{known:?}");
    assert!(!format!("{definition:?}").contains("canary"), "{definition:?}");
}

/// D22, O68: the values of all variables are known for redaction, at any place.
#[test]
fn d22_values_of_variables_are_redacted() {
    let url = "https://x.test/${env.API_TOKEN}/${env.REGION}";
    let entry = json!({ "id": "s", "url": url, "config_schema": { "r": {} } });
    let world = World::new(&[entry])
        .using(json!({ "a": { "ref": "s", "config": { "r": "${env.REGION}" } } }))
        .env("API_TOKEN", "canary")
        .env("REGION", "eu");
    let secrets = world.definition("a").unwrap().secrets();
    let known: BTreeSet<&str> = secrets.iter().map(narthex_model::Secret::expose).collect();
    assert_eq!(known, ["canary", "eu"].into());
}

/// D10, O70: a secret that was cleared meanwhile, or a key unknown to the runner, is named before
/// the start.
#[test]
fn o70_a_cleared_secret_or_an_unknown_key_is_named_before_the_start() {
    let mut world = two();
    let run = world.run();
    world.secrets.clear();
    world.env.clear();
    let a = narthex_model::Alias::new("a").unwrap();
    let error = world.open(|opening| run.servers[&a].definition(opening)).unwrap_err();
    assert!(
        matches!(&error, OpenError::Unknown { placeholder, .. } if placeholder == "env.E_TOKEN")
    );
    let b = narthex_model::Alias::new("b").unwrap();
    let error = world.open(|opening| run.servers[&b].definition(opening)).unwrap_err();
    assert!(matches!(&error, OpenError::Secret { name, .. } if name.as_str() == "TWO"));

    let scripts = World::new(&[json!({ "id": "s", "command": "x",
                                       "args": ["${runner.scripts_dir}/a"] })])
    .using(json!({ "a": { "ref": "s" } }));
    let error = scripts.definition("a").unwrap_err();
    assert!(error.to_string().contains("`runner.scripts_dir`"), "{error}");
}

/// O88: a secret that a header cannot carry is refused without being shown.
#[test]
fn o88_a_secret_that_its_header_cannot_carry_is_refused() {
    let world = two().secret("ONE", "canary\r\nX-Evil: 1");
    let error = world.definition("a").unwrap_err();
    assert!(matches!(&error, OpenError::UnfitSecret { name, .. } if name.as_str() == "ONE"));
    assert!(error.to_string().ends_with("set it again with `narthex secrets set ONE`"), "{error}");
    assert!(!format!("{error:?} {error}").contains("canary"));
}

/// D8, X-M31, X-M39: authentication takes the same references.
#[test]
fn x_m31_keys_of_authentication_are_secrets_too() {
    let auth = |key: Value| {
        World::new(&[json!({ "id": "s", "url": "https://s.test/mcp", "timeoutMs": 45000,
            "tools": ["get_*"], "auth": { "mode": "apiKey", "key": key,
            "headerName": "X-Api-Key", "valuePrefix": "v1 " } })])
        .using(json!({ "a": { "ref": "s" } }))
        .secret("KEY", "canary")
        .env("E", "canary")
    };
    for key in [json!("${KEY}"), json!({ "$secret": "KEY" }), json!("${env.E}")] {
        let world = auth(key);
        let definition = world.definition("a").unwrap();
        assert_eq!(definition.timeout, Some(std::time::Duration::from_secs(45)));
        assert!(definition.exposed.tools.lets("get_x") && !definition.exposed.tools.lets("set_x"));
        let Target::Http(target) = definition.target else { panic!("no URL") };
        let ServerAuth::ApiKey(auth) = target.auth else { panic!("{:?}", target.auth) };
        assert_eq!((auth.header_name.as_str(), auth.value_prefix.as_str()), ("X-Api-Key", "v1 "));
        assert_eq!(auth.key.unwrap().expose(), "canary");
        assert!(!format!("{:?}", world.run()).contains("canary"));
    }
    let mut world = auth(json!("${KEY}"));
    assert_eq!(world.run().secrets()[0].field, "auth.key");
    world.secrets.clear();
    assert_eq!(world.faults()[0].path, "servers.s.auth.key");
}

/// D22: a run's program is confined by its entry, with paths of this run; `strict` lets it read its
/// working folder.
#[test]
fn d22_programs_are_started_confined() {
    let confined = |confinement: Value, cwd: Value, project_dir: Option<&str>| {
        let entry = json!({ "id": "s", "command": "sh", "cwd": cwd, "confinement": confinement });
        let mut world = World::new(&[entry]).using(json!({ "a": { "ref": "s" } }));
        world.project_dir = project_dir.map(str::to_owned);
        world.definition("a").map(|definition| match definition.target {
            Target::Stdio(target) => target.confinement.map(|one| *one),
            Target::Http(_) => panic!("it is a program"),
        })
    };
    let parts = json!({ "filesystem": { "read": ["${runtime.project_dir}/in"] } });
    let expected = Confinement {
        files: Some(FileAccess { read: vec!["/srv/x/in".into()], write: Vec::new() }),
        ..Confinement::default()
    };
    assert_eq!(confined(parts.clone(), json!(null), Some("/srv/x")), Ok(Some(expected)));
    let relative = confined(parts, json!(null), Some("srv")).unwrap_err().to_string();
    assert!(relative.contains("confinement.filesystem.read[0]"), "{relative}");
    let strict = |read: Option<&str>| Ok(Some(Confinement::strict(read.map(Into::into))));
    assert_eq!(confined(json!("strict"), json!("/srv"), None), strict(Some("/srv")));
    assert_eq!(confined(json!("strict"), json!(null), None), strict(None));
    assert_eq!(confined(json!("none"), json!(null), None), Ok(Some(Confinement::default())));
    assert_eq!(confined(json!(null), json!(null), None), Ok(None));
}
