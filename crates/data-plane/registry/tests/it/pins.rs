//! Servers whose definitions are pinned, with a decider that follows the test.

use std::{
    collections::BTreeSet,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use narthex_model::{Alias, ServerDefinition, ServerState};
use narthex_registry::{
    Declared, DefinitionPins, Held, LookError, Looking, Registry, RegistryOptions, Said, Snapshot,
    config::{self, Entry, Env, LoadContext},
};
use narthex_supervisor::BaseEnvironment;
use narthex_testkit::fixture::{Options, Running};
use narthex_upstream::{Deadlines, Listed};
use serde_json::json;

use crate::world::{http, identity, in_time, program, shell_script, until};

/// A decider that puts the names of the test under review, or fails.
#[derive(Debug, Default)]
struct Deciding {
    fails: AtomicBool,
    held: Mutex<BTreeSet<String>>,
}

impl Deciding {
    fn failing(fails: bool) -> Arc<Self> {
        Arc::new(Self { fails: AtomicBool::new(fails), ..Self::default() })
    }

    fn fails(&self, fails: bool) {
        self.fails.store(fails, Ordering::SeqCst);
    }

    fn holds(&self, name: &str) {
        self.held.lock().unwrap().insert(name.to_owned());
    }
}

impl DefinitionPins for Deciding {
    fn look<'a>(&'a self, said: &'a Said) -> Looking<'a> {
        Box::pin(async move {
            if self.fails.load(Ordering::SeqCst) {
                return Err(LookError("the store is away".to_owned()));
            }
            let mut held = Held::default();
            for name in &*self.held.lock().unwrap() {
                held.names.add(&said.alias, Listed::Tool, name);
            }
            Ok(held)
        })
    }
}

fn pinned(url: &str) -> ServerDefinition {
    ServerDefinition { pins_definitions: true, ..http("docs", url) }
}

fn registry(definition: ServerDefinition, has_pins: bool) -> Registry {
    let registry = Registry::new(RegistryOptions {
        has_pins,
        ..RegistryOptions::new(identity(), BaseEnvironment::from_process())
    })
    .unwrap();
    registry.apply(vec![Declared::from(Entry::Server(definition))]).unwrap();
    registry
}

fn has(snapshot: &Snapshot, tool: &str) -> bool {
    snapshot.get("docs").unwrap().inventory.tool(tool).is_some()
}

fn state(snapshot: &Snapshot) -> ServerState {
    snapshot.get("docs").unwrap().state
}

/// S23: a server is hidden before its review, also when no review is possible. Definitions that it
/// adds meanwhile stay hidden until a review, and the rest stays.
#[tokio::test(flavor = "multi_thread")]
async fn s23_definitions_are_hidden_until_their_review() {
    let fixture = Running::http(Options::default()).await.unwrap();
    let deciding = Deciding::failing(true);
    let registry = registry(pinned(&fixture.url), true);
    let is_looked_at =
        |now: &Snapshot| now.get("docs").unwrap().activity == Some("reviewing its definitions");
    until(&registry, is_looked_at).await;
    registry.set_pins(deciding.clone());
    let failed = until(&registry, |now| {
        assert!(now.get("docs").unwrap().inventory.is_empty());
        now.is_settled()
    });
    let failed = failed.await;
    let error = failed.get("docs").unwrap().error.clone().unwrap().for_operators();
    assert!(error.message.contains("could not be compared: the store is away"), "{error}");
    assert_eq!(state(&failed), ServerState::Error);

    deciding.fails(false);
    registry.reconnect("docs").await.unwrap();
    let ready = registry.snapshot();
    assert!(has(&ready, "echo") && has(&ready, "greet"));
    deciding.fails(true);
    let other = json!({ "name": "echo", "description": "Something else",
                        "inputSchema": { "type": "object" } });
    fixture.fixture.redefine("tools/list", "echo", &[other]);
    let without = until(&registry, |now| !has(now, "echo")).await;
    assert!(has(&without, "greet"));
    let held = &without.get("docs").unwrap().pinned.as_ref().unwrap().held().names;
    assert!(held.has(&Alias::new("docs").unwrap(), Listed::Tool, "echo"));
    deciding.fails(false);
    until(&registry, |now| has(now, "echo")).await;
    registry.close().await;
}

/// S23, D10: when a decision was applied, no list on any link has the definitions under review.
#[tokio::test(flavor = "multi_thread")]
async fn s23_a_decision_holds_on_every_link() {
    let fixture = Running::http(Options::default()).await.unwrap();
    let deciding = Deciding::failing(false);
    let registry = registry(pinned(&fixture.url), true);
    registry.set_pins(deciding.clone());
    let ready = until(&registry, Snapshot::is_settled).await;
    let row = ready.get("docs").unwrap();
    let further = registry.pinned_list(row, &row.inventory).await.unwrap().unwrap();
    assert!(has(&ready, "echo") && further.seen().tool("echo").is_some());
    let decided = |now: &Snapshot| now.get("docs").unwrap().pinned.as_ref().unwrap().decided();
    let before = decided(&ready);
    deciding.holds("echo");
    registry.look_again(&Alias::new("docs").unwrap()).await.unwrap();
    let now = registry.snapshot();
    assert!(!has(&now, "echo") && further.seen().tool("echo").is_none());
    assert!(has(&now, "greet") && further.seen().tool("greet").is_some());
    assert!(decided(&now) > before);
    assert!(further.held().has(&Alias::new("docs").unwrap(), Listed::Tool, "echo"));
    // A review that changes nothing reports no change.
    registry.look_again(&Alias::new("docs").unwrap()).await.unwrap();
    assert_eq!(decided(&registry.snapshot()), decided(&now));
    // A failed review is reported to the caller that decides.
    deciding.fails(true);
    let failed = registry.look_again(&Alias::new("docs").unwrap()).await;
    assert_eq!(failed, Err(LookError("the store is away".to_owned())));
    registry.close().await;
}

/// S23: a decision does not wait for a server that does not list.
#[tokio::test(flavor = "multi_thread")]
async fn s23_a_server_that_does_not_answer_delays_no_decision() {
    let once = r#"*tools/list*) if [ -z "$n" ]; then n=1;
        printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[]}}\n' "$id"; fi;;"#;
    let script = shell_script().replacen("*tools/call*) exit 9;;", once, 1);
    let definition = program("docs", "sh", &["-c", &script]);
    let definition = ServerDefinition { pins_definitions: true, ..definition };
    let hours = Duration::from_secs(10 * 60 * 60);
    let registry = Registry::new(RegistryOptions {
        has_pins: true,
        deadlines: Deadlines { list: hours, ..Deadlines::default() },
        ..RegistryOptions::new(identity(), BaseEnvironment::from_process())
    });
    let registry = registry.unwrap();
    let deciding = Deciding::failing(false);
    registry.set_pins(deciding.clone());
    registry.apply(vec![Declared::from(Entry::Server(definition))]).unwrap();
    let ready = until(&registry, Snapshot::is_settled).await;
    let row = ready.get("docs").unwrap();
    assert_eq!(row.state, ServerState::Ready, "{:?}", row.error);
    let decided = |now: &Snapshot| now.get("docs").unwrap().pinned.as_ref().unwrap().decided();
    let before = decided(&ready);
    deciding.holds("echo");
    let alias = Alias::new("docs").unwrap();
    tokio::select! {
        biased;
        () = registry.list_anew(row) => panic!("it has answered"),
        looked = in_time(registry.look_again(&alias)) => looked.unwrap(),
    }
    assert!(decided(&registry.snapshot()) > before);
    registry.close().await;
}

/// An entry of a document with its servers in `member`, with these further keys.
fn entry(member: &str, keys: &str) -> (Entry, Vec<String>) {
    let entry = format!(r#"{{"transport":"http","url":"http://a.example/mcp",{keys}}}"#);
    let text = format!(r#"{{"{member}":{{"docs":{entry}}}}}"#);
    let place = Path::new("/a/mcp.json");
    let context =
        LoadContext { file: place, workspace_root: place, env: Env::Values(&|_name| None) };
    let mut read = config::parse(text.as_bytes(), &context).unwrap();
    let told = read.warnings.iter().map(|warning| format!("{}: {}", warning.path, warning.message));
    (read.entries.remove(0), told.collect())
}

/// S22: an entry configures flagged definitions in the words of the catalog, in documents of both
/// kinds. Of two settings that differ the safer one counts, and a wrong value is a fault.
#[test]
fn s22_an_entry_configures_the_handling_of_flagged_definitions() {
    let pinned = r#""pinDefinitions":true"#;
    for member in ["servers", "mcpServers"] {
        for (keys, shows) in [
            (r#""onFlagged":"warn""#, true),
            (r#""on_flagged":"warn""#, true),
            (r#""onFlagged":"quarantine""#, false),
            (r#""onFlagged":"warn","on_flagged":"quarantine""#, false),
            (r#""disabled":false"#, false),
        ] {
            let (read, told) = entry(member, &format!("{pinned},{keys}"));
            let Entry::Server(read) = read else { panic!("{member} {keys}") };
            assert_eq!((read.shows_flagged, read.pins_definitions), (shows, true), "{keys}");
            assert!(told.is_empty(), "{told:?}");
        }
        for wrong in [r#""onFlagged":"ignore""#, r#""on_flagged":true"#] {
            let (Entry::Fault(fault), _) = entry(member, &format!("{pinned},{wrong}")) else {
                panic!("{member} {wrong}")
            };
            let message = &fault.error.message;
            assert!(message.contains("lagged`: ") && message.contains("`warn`"), "{message}");
        }
        // Without a pin there is nothing to review.
        let (read, told) = entry(member, r#""onFlagged":"warn""#);
        let Entry::Server(read) = read else { panic!("{member}") };
        assert!(!read.shows_flagged);
        assert!(told.len() == 1 && told[0].contains("pinDefinitions"), "{told:?}");
    }
}

/// S23: where no store of definitions is set the entry is a fault with a remedy, and so is a value
/// that is no boolean, in documents of both kinds.
#[tokio::test]
async fn s23_pinning_without_a_store_of_definitions_is_a_fault() {
    let registry = registry(pinned("http://127.0.0.1:9/mcp"), false);
    let row = registry.get("docs").unwrap();
    assert_eq!(row.state, ServerState::Error);
    let error = row.error.clone().unwrap().for_operators();
    for word in ["`pinDefinitions`", "narthex up"] {
        assert!(error.message.contains(word), "{error}");
    }
    let read =
        |key: &str, value: &str, member: &str| entry(member, &format!(r#""{key}":{value}"#)).0;
    for member in ["servers", "mcpServers"] {
        for (key, value, pins) in [
            ("pinDefinitions", "true", true),
            ("pin_definitions", "true", true),
            ("pinDefinitions", "false", false),
        ] {
            let Entry::Server(read) = read(key, value, member) else { panic!("{member} {key}") };
            assert_eq!(read.pins_definitions, pins, "{member} {key}");
        }
        let Entry::Fault(fault) = read("pinDefinitions", "\"yes\"", member) else {
            panic!("{member}")
        };
        assert!(fault.error.message.contains("pinDefinitions"), "{:?}", fault.error);
    }
}
