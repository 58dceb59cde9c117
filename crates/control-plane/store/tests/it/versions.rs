//! A store of each published version is migrated to the present version.
//!
//! A store of version N is made of the steps up to N, with the few rows of `versions/N.sql` after
//! each. `versions/checksums` has the checksums of the published steps: a later change of a step
//! fails here. A new step needs rows and a line there, made by `sha384sum`.

use std::os::unix::fs::PermissionsExt;
use std::{
    path::Path,
    time::{Duration, SystemTime},
};

use fs_err as fs;
use narthex_model::{CatalogKind, EnvName, RunId, SecretName, ServerId, SessionId};
use narthex_store::{
    DefinitionsOf, EventFilter, EventsOf, McpClientRow, OAuthChanges, OAuthClientKey, Store,
};

use crate::support::{Place, id, set};

/// The table of steps, to the letter as the library makes it.
const STEPS_TABLE: &str = "CREATE TABLE _sqlx_migrations (
    version BIGINT PRIMARY KEY,
    description TEXT NOT NULL,
    installed_on TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    success BOOLEAN NOT NULL,
    checksum BLOB NOT NULL,
    execution_time BIGINT NOT NULL
);";

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// The files of the steps by their versions.
fn steps() -> Vec<(u32, String)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    let name = |entry: fs::DirEntry| entry.file_name().to_str().unwrap().to_owned();
    let names = fs::read_dir(dir).unwrap().map(|entry| name(entry.unwrap()));
    let mut steps: Vec<_> = names.map(|name| (name[..4].parse().unwrap(), name)).collect();
    steps.sort();
    steps
}

/// Returns the script that makes a store of each version, which has the rows of those before.
fn stores() -> Vec<(u32, String)> {
    let mut script =
        format!("PRAGMA application_id = 1852994680;\nPRAGMA foreign_keys = OFF;\n{STEPS_TABLE}\n");
    let mut stores = Vec::new();
    let checksums = read("tests/it/versions/checksums");
    let mut checksums = checksums.lines();
    for (version, file) in steps() {
        let line = checksums.next().unwrap_or_default();
        let (known, checksum) = line.split_once(' ').unwrap_or_default();
        assert_eq!(known, version.to_string(), "each step has a line in versions/checksums");
        let (step, rows) =
            (format!("migrations/{file}"), format!("tests/it/versions/{version}.sql"));
        let done = format!(
            "INSERT INTO _sqlx_migrations VALUES \
             ({version}, 'x', '2026-11-22 05:00:00', 1, X'{checksum}', 1000);"
        );
        script = [script, read(&step), done, read(&rows)].join("\n");
        stores.push((version, script.clone()));
    }
    assert_eq!(checksums.next(), None, "versions/checksums is of these steps alone");
    stores
}

/// R-M33: a store of any version can be opened for reading, and stays unchanged.
#[tokio::test]
async fn r_m33_stores_of_all_versions_are_not_changed_by_opening_read_only() {
    for (version, script) in stores() {
        let place = Place::new();
        place.sql(&script).await;
        fs::set_permissions(place.file(), PermissionsExt::from_mode(0o600)).unwrap();
        let before = place.files();
        let looked = Store::look(&place.file()).await.unwrap();
        assert_eq!(looked.is_some(), version >= 3, "version {version}");
        if let Some(store) = looked {
            let trusted = store.trusted_files().find("/a/mcp.json").await.unwrap();
            assert_eq!(trusted.unwrap().sha256, "00ff");
            store.close().await;
        }
        assert!(place.files() == before, "version {version}: {:?}", place.files().keys());
    }
}

#[tokio::test]
async fn stores_of_all_versions_are_migrated_to_the_current_version() {
    let fresh = Place::new();
    fresh.open().await.close().await;
    // In SQLite's order of columns a table that was altered may differ, which is no matter.
    let shape = "SELECT name || ' ' || sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name";
    for (version, script) in stores() {
        let place = Place::new();
        place.sql(&script).await;
        fs::set_permissions(place.file(), PermissionsExt::from_mode(0o600)).unwrap();
        let store = place.open().await;
        let team = store.workspaces().find(&id("team")).await.unwrap().unwrap();
        assert_eq!((&*team.name, team.settings.audits_contents), ("Größe", version >= 15));
        let oauth = if version >= 19 { "on_attended" } else { "off" };
        assert_eq!(team.settings.oauth_on_orchestrators.as_str(), oauth);
        let model = team.models.resolve("m").map(str::to_owned);
        assert_eq!(model.as_deref(), Some(if version >= 30 { "m5" } else { "m" }));
        assert_eq!(store.workspaces().all().await.unwrap().len(), 2);
        let disabled = store.server_flags().disabled(&id("team")).await.unwrap();
        let seeded = store.seeded_defaults().names(&id("default")).await.unwrap();
        let trusted = store.trusted_files().find("/a/mcp.json").await.unwrap();
        assert_eq!(disabled, if version >= 2 { set(["git"]) } else { set([""; 0]) });
        assert_eq!(seeded, if version >= 2 { set(["fetch"]) } else { set([""; 0]) });
        let hash = trusted.map(|trusted| trusted.sha256);
        assert_eq!(hash.as_deref(), if version >= 3 { Some("00ff") } else { None });
        let token = SecretName::new("TOKEN").unwrap();
        let secret = store.secrets().find(&id("team"), &token, None).await.unwrap();
        let secret = secret.map(|secret| (secret.version.get(), secret.sealed));
        let kept = (version >= 4).then(|| (2, "c2VhbGVk".to_owned()));
        assert_eq!(secret, kept);
        for (kind, name, revision) in [
            (CatalogKind::Server, "docs", 2),
            (CatalogKind::Capability, "papers", 1),
            (CatalogKind::Agent, "reader", 3),
        ] {
            let found = store.catalog(kind).find(&id("team"), name).await.unwrap();
            let found = found.map(|row| (row.revision, row.document.contains(name)));
            assert_eq!(found, (version >= 5).then_some((revision, true)));
        }
        check_run(&store, version).await;
        assert_eq!(store.cuts().last().await.unwrap(), i64::from(version >= 44));
        let kept = store.audit().settings("team").await.unwrap().kept_days;
        let chains = store.audit().chains("team").await.unwrap();
        let ends: Vec<_> = chains.iter().map(|chain| chain.head_seq).collect();
        assert_eq!((kept, ends), if version >= 6 { (400, vec![1]) } else { (0, Vec::new()) });
        let principals = store.principals().all().await.unwrap();
        let mut names: Vec<_> = principals.iter().map(|one| one.name.as_str()).collect();
        names.sort_unstable();
        let known = ["ada", "team/ci", "team/desktop"];
        let count = usize::from(version >= 7) * 2 + usize::from(version >= 26);
        assert_eq!(names, known[..count]);
        check_clients(&store, version).await;
        check_tokens(&store, version).await;
        check_logins(&store, version).await;
        check_traffic(&store, version).await;
        let answer = store.kept_answers().find("0a1b").await.unwrap();
        let sealed = answer.map(|one| (one.is_done, one.sealed));
        assert_eq!(sealed, (version >= 14).then(|| (true, "c2VhbGVk".to_owned())));
        let grants = store.grants().live().await.unwrap();
        assert_eq!((grants.rows.len(), grants.last), if version >= 18 { (1, 1) } else { (0, 0) });
        check_definitions(&store, version).await;
        check_events(&store, version).await;
        check_shares(&store, version).await;
        check_rules(&store, version).await;
        check_outbound(&store, version).await;
        check_oauth(&store, version).await;
        store.server_flags().set_disabled(&id("default"), "new", true).await.unwrap();
        store.close().await;
        assert_eq!(place.sql(shape).await, fresh.sql(shape).await, "version {version}");
    }
}

/// The limits and counts of traffic that a store of a version had.
async fn check_traffic(store: &Store, version: u32) {
    let limits = store.traffic().limits(&id("team")).await.unwrap();
    let kept = (version >= 11).then(|| r#"{"calls_per_day":9}"#.to_owned());
    assert_eq!(limits, kept);
    let counts = store.traffic().of_workspace(&id("team"), 20_000).await.unwrap();
    let counts: Vec<_> = counts.iter().map(|one| (one.name.as_str(), one.calls)).collect();
    assert_eq!(counts, if version >= 11 { vec![("reader", 7)] } else { Vec::new() });
}

/// The rules that a store of a version had.
async fn check_rules(store: &Store, version: u32) {
    let rules = store.rules().find(&id("team")).await.unwrap();
    let rules = rules.map(|one| (one.head.revision, one.document));
    let kept = "forbid(principal, action, resource);".to_owned();
    assert_eq!(rules, (version >= 27).then_some((1, kept)));
}

/// Checks the token that a store of a version had. The maker of a token from before proofs were
/// stored may have proved nothing.
async fn check_tokens(store: &Store, version: u32) {
    let tokens = store.service_tokens().all().await.unwrap();
    let proved: Vec<_> = tokens.iter().map(|one| one.is_proved).collect();
    assert_eq!(proved, vec![false; usize::from(version >= 7)]);
}

async fn check_logins(store: &Store, version: u32) {
    let passkey = store.proofs().find_passkey("cred").await.unwrap();
    assert_eq!(passkey.map(|one| one.label), (version >= 10).then(|| "phone".to_owned()));
    let sessions = store.logins().sessions().await.unwrap();
    assert_eq!(sessions.len(), usize::from(version >= 10));
    for (hash, since, is_invitation) in [("h2", 10, false), ("h3", 46, true)] {
        let link = store.logins().find_link(hash).await.unwrap();
        let known = link.map(|link| link.is_invitation);
        assert_eq!(known, (version >= since).then_some(is_invitation));
    }
}

/// The client that a store of a version had.
async fn check_clients(store: &Store, version: u32) {
    let clients = store.mcp_clients().all().await.unwrap();
    let of = |one: &McpClientRow| {
        let (agent, profile) = (one.agent.as_ref(), one.profile.as_ref());
        (agent.map(ToString::to_string), profile.map(ToString::to_string), one.origins.len())
    };
    let clients: Vec<_> = clients.iter().map(of).collect();
    let expected = match version {
        ..26 => Vec::new(),
        26..48 => vec![(Some("reader".to_owned()), None, 2)],
        48.. => vec![(None, Some("work".to_owned()), 2)],
    };
    assert_eq!(clients, expected);
    let has_door = version >= 50;
    assert_eq!(store.door().connections().await.unwrap().len(), usize::from(has_door));
    assert_eq!(store.door().client("dcr-app").await.unwrap().is_some(), has_door);
    let tokens = store.door_tokens();
    let family = tokens.family("f1").await.unwrap().map(|family| family.generation);
    assert_eq!(family, has_door.then_some(2));
    assert_eq!(tokens.token("h8").await.unwrap().is_some(), has_door);
    let end = SystemTime::UNIX_EPOCH + Duration::from_secs(1_890_000_000);
    assert_eq!(tokens.use_proof("h9", end).await.unwrap(), !has_door);
}

/// The definitions that a store of a version had.
async fn check_definitions(store: &Store, version: u32) {
    let (team, docs) = (id("team"), ServerId::new("docs").unwrap());
    let definitions =
        store.definitions(DefinitionsOf::Catalog(&team, &docs)).texts().await.unwrap();
    let names: Vec<_> = definitions.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, if version >= 23 { vec!["read_file"] } else { vec![] });
}

/// Checks the events that a store of a version had, and their retention.
async fn check_events(store: &Store, version: u32) {
    check_resting(store, version).await;
    let session = SessionId::parse("ses_0a1b2c3d4e5f").unwrap();
    let kept = store.suspended().find(&id("team"), session).await.unwrap();
    let kept = kept.map(|kept| (kept.sealed, kept.by));
    let wanted = (version >= 37).then(|| ("c2VhbGVk".to_owned(), "admin".to_owned()));
    assert_eq!(kept, wanted);
    check_live_definitions(store, version).await;
    let team = store.workspaces().find(&id("team")).await.unwrap().unwrap();
    assert_eq!(team.settings.events_kept_days, if version >= 20 { 7 } else { 30 });
    assert_eq!(team.settings.runtime_requests, version < 31);
    let session = SessionId::parse("ses_0a1b2c3d4e5f").unwrap();
    let of = EventsOf { workspace: id("team"), session };
    let filter = EventFilter { after: 0, kinds: &[], limit: 10 };
    let page = store.events().page(&of, filter).await.unwrap();
    let found = page.map(|page| {
        let seqs: Vec<_> = page.events.iter().map(|event| event.seq).collect();
        (seqs, page.oldest, page.last)
    });
    let empty = (version >= 8).then(|| (Vec::new(), 1, 0));
    assert_eq!(found, if version >= 20 { Some((vec![2], 2, 2)) } else { empty });
    // A message to an active session was not acknowledged.
    let count = store.inboxes().count(&of, SystemTime::now()).await.unwrap();
    assert_eq!((count.unread, count.acknowledged), (u64::from(version >= 20), 0));
}

/// The share that a store of a version had, with its file and its comment.
async fn check_shares(store: &Store, version: u32) {
    let (team, shares) = (id("team"), store.shares());
    let mut found = Vec::new();
    for share in shares.page(&team, None, 9).await.unwrap() {
        let files = shares.files(&team, share.id).await.unwrap().len();
        for thread in shares.threads(&team, share.id).await.unwrap() {
            let comments = shares.comments(&team, thread.id).await.unwrap().len();
            found.push((share.title.clone(), files, comments));
        }
    }
    assert_eq!(found, if version >= 25 { vec![("Größe".to_owned(), 1, 1)] } else { vec![] });
}

/// The channels and webhooks that a store of a version had.
async fn check_outbound(store: &Store, version: u32) {
    let team = id("team");
    let mut found = Vec::new();
    for channel in store.channels().all(&team).await.unwrap() {
        found.push((channel.name.to_string(), channel.provider, 0));
    }
    for webhook in store.webhooks().all(&team).await.unwrap() {
        let told = store.webhooks().deliveries(&team, &webhook.name, u64::MAX, 9).await.unwrap();
        found.push((webhook.name.to_string(), webhook.kinds.join(" "), told.len()));
    }
    let kinds = "permission.granted session.ended";
    let row = |name: &str, what: &str, told| (name.to_owned(), what.to_owned(), told);
    let all = vec![row("chat", "slack", 0), row("ops", kinds, 1)];
    assert_eq!(found, if version >= 28 { all } else { Vec::new() });
}

/// Checks the sign-ins at authorization servers that a store of a version had.
async fn check_oauth(store: &Store, version: u32) {
    let is_there = version >= 49;
    let (team, n) = (id("team"), i64::from(is_there));
    let grants = store.oauth_grants().all(&team, None).await.unwrap();
    let found: Vec<_> = grants.iter().map(|(key, facts)| (&*key.server, &*facts.scopes)).collect();
    assert_eq!(found, if is_there { vec![("docs", "read write")] } else { vec![] });
    let changes = store.oauth_grants().changes().await.unwrap();
    assert_eq!(changes, OAuthChanges { last: n, dropped: 0 });
    let (issuer, redirect_base) = ("https://as.example".into(), "http://127.0.0.1:1".into());
    let key = OAuthClientKey { workspace: team, issuer, redirect_base };
    let client = store.oauth_clients().find(&key).await.unwrap();
    assert_eq!(client.as_deref(), is_there.then_some("c2VhbGVk"));
    let taken = store.oauth_attempts().take("h4", SystemTime::UNIX_EPOCH).await.unwrap();
    assert_eq!(taken.map(|one| one.key.user), is_there.then_some(None));
}

/// Checks the definitions of live servers that a store of a version had.
async fn check_live_definitions(store: &Store, version: u32) {
    let decided = store.live_decided("/a/mcp.json").await.unwrap();
    // One definition was accepted.
    let expected = [("docs".to_owned(), 1_790_000_000_000 * 2 + 1)];
    assert_eq!(decided, if version >= 35 { expected.into() } else { [].into() });
}

async fn check_resting(store: &Store, version: u32) {
    let resting = store.resting().due(SystemTime::now(), 9).await.unwrap();
    let found: Vec<_> = resting.iter().map(|one| (one.rest.sealed.as_str(), one.tries)).collect();
    assert_eq!(found, if version >= 34 { vec![("c2VhbGVk", 2)] } else { vec![] });
}

/// Checks the run that a store of a version had, and the variables of its agent.
async fn check_run(store: &Store, version: u32) {
    let run = store.runs().find(RunId::parse("run_0a1b2c3d4e5f").unwrap()).await.unwrap();
    let told: Vec<_> = run.iter().flat_map(|run| &run.agent_env).map(EnvName::as_str).collect();
    assert_eq!(told, if version >= 13 { vec!["GITHUB_TOKEN"] } else { vec![] });
    let executor = run.as_ref().and_then(|run| run.waiting.clone()?.executor);
    assert_eq!(executor.is_some(), version >= 29);
    let bindings = store.env_bindings().all(&id("team")).await.unwrap();
    assert_eq!(bindings.len(), usize::from(version >= 13));
    let turn = run.as_ref().and_then(|run| run.acts_for().cloned());
    assert_eq!(turn.is_some(), version >= 33);
    let run = run.map(|run| (run.pid.get(), run.agent, run.sealed));
    let kept = (version >= 8).then(|| (1, "reader".to_owned(), "c2VhbGVk".to_owned()));
    assert_eq!(run, kept);
    let session = SessionId::parse("ses_0a1b2c3d4e5f").unwrap();
    let costs = store.costs().of_session(&id("team"), session).await.unwrap();
    assert_eq!(costs.iter().map(|sum| sum.cost).sum::<u64>(), if version >= 24 { 300 } else { 0 });
}
