//! A door with a control plane over files of the test.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use fs_err as fs;
use http::{Method, StatusCode};
use narthex_audit::{Audit, AuditSettings};
use narthex_builtin::{Platform, Tools};
use narthex_control::{
    Control, ControlOptions, GrantOptions, LoginOptions, SecretRows, StoreLedger, Variables,
};
use narthex_gateway::RunToken;
use narthex_model::{ExecutorName, KnownExecutors, WorkspaceId};
use narthex_outbound::Outbound;
use narthex_registry::{
    ServerRow,
    watch::{LayerOptions, ProjectFile},
};
use narthex_runs::{Runs, RunsOptions, ShareOptions};
use narthex_store::Store;
use narthex_testkit::fixture::{Options, Running};
use narthex_traffic::Meters;
use narthex_vault::{KeyFile, SealedBackend, Vault};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    shelf::Shelf,
    world::{ADMIN, Answer, Builder, World, registry, whole},
};

/// A time limit that no test here reaches.
pub(super) const SOON: Duration = Duration::from_secs(60);

/// Maximum bytes of a workspace's shares.
pub(super) const SHARES_QUOTA: u64 = 1024 * 1024;

/// The value of the only variable that is set and allowed.
pub(super) const VARIABLE: &str = "canary-variable";

pub(crate) struct Api {
    pub(super) dir: TempDir,
    pub(crate) world: World,
    pub(crate) control: Control,
    pub(super) runs: Runs,
    pub(super) outbound: Outbound,
    /// The token of the process's own run, which a test starts if it needs that run.
    pub(super) local: RunToken,
    fixture: Running,
}

/// A legacy server in a few lines of shell. It reports its start on stderr.
pub(super) fn shell() -> Value {
    let script = r#"echo "is awake" >&2
        while read -r line; do id=${line#*'"id":'}; id=${id%%[,\}]*}; case "$line" in
        *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25",
            "capabilities":{"tools":{}},"serverInfo":{"name":"shell","version":"3"}}}\n' "$id";;
        *'"id"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[]}}\n' "$id";;
        esac; done"#;
    // Each message must be one line, and `${` must be escaped, so that it is no placeholder.
    let script = script.replace(",\n            \"capa", ",\"capa").replace("${", "$${");
    json!({ "transport": "stdio", "command": "sh", "args": ["-c", script, "secret-argument"] })
}

/// An executor of the workspace `default` whose program no daemon has.
fn crew() -> KnownExecutors {
    let of = [(ExecutorName::new("crew").unwrap(), [WorkspaceId::default()].into())];
    KnownExecutors::new(of.into())
}

/// The source of the project's file.
enum Project<'p> {
    Servers(&'p Value),
    File(&'p Path),
}

impl Project<'_> {
    /// The project's file; writes the servers into it if they are given.
    fn file(self, dir: &TempDir, fixture: &Running) -> PathBuf {
        match self {
            Self::File(file) => file.to_owned(),
            Self::Servers(servers) => {
                let text = json!({ "servers": servers }).to_string().replace("URL", &fixture.url);
                let file = dir.path().join("mcp.json");
                fs::write(&file, text).unwrap();
                file
            }
        }
    }
}

async fn vault(store: &Store, keys: &Path) -> Vault {
    let rows = Arc::new(SecretRows::new(store.clone()));
    let backend = SealedBackend::start(rows, Arc::new(KeyFile::new(keys))).await.unwrap();
    Vault::new(Arc::new(backend))
}

impl Api {
    /// An API with these servers in the project's file; `URL` in them means the fixture's address.
    pub(crate) async fn over(servers: &Value) -> Self {
        Self::with_store(servers, None).await
    }

    pub(super) async fn with_store(servers: &Value, store: Option<Store>) -> Self {
        Self::with(servers, store, None).await
    }

    /// An API without servers, with a store that has secrets.
    pub(super) async fn with_secrets(store: Store, keys: &Path) -> Self {
        Self::with_all(&json!({}), store, keys).await
    }

    /// An API with servers and a store that has secrets.
    pub(super) async fn with_all(servers: &Value, store: Store, keys: &Path) -> Self {
        let vault = vault(&store, keys).await;
        Self::with(servers, Some(store), Some(vault)).await
    }

    /// An API without servers, whose secrets are in the test's own vault.
    pub(super) async fn with_vault(store: Store, vault: Vault) -> Self {
        Self::with(&json!({}), Some(store), Some(vault)).await
    }

    /// An API without servers, where requests wait for a decision for this long.
    pub(super) async fn with_lifetime(store: Store, keys: &Path, lifetime: Duration) -> Self {
        let granting = GrantOptions { request_lifetime: lifetime, ..GrantOptions::default() };
        let vault = vault(&store, keys).await;
        Self::of(Project::Servers(&json!({})), Some(store), Some(vault), None, granting).await
    }

    /// An API with the servers of this file, which other daemons may read too.
    pub(super) async fn with_file(file: &Path, store: Store, keys: &Path) -> Self {
        let vault = vault(&store, keys).await;
        let granting = GrantOptions::default();
        Self::of(Project::File(file), Some(store), Some(vault), None, granting).await
    }

    /// The address of the fixture.
    pub(crate) fn fixture_url(&self) -> String {
        self.fixture.url.clone()
    }

    /// Number of tool calls that the fixture has received.
    pub(super) fn calls(&self) -> u64 {
        self.fixture.fixture.counts().calls
    }

    /// An API without servers, where humans sign in. It has secrets if there is a file for their
    /// key. Grants need no proof.
    pub(crate) async fn with_login(store: Store, login: LoginOptions, keys: Option<&Path>) -> Self {
        Self::with_proofs(store, login, keys, Some(false)).await
    }

    /// An API like [`Self::with_login`]. If `require_proof` is true, only humans with proof can
    /// grant. If it is `None`, the daemon decides.
    pub(crate) async fn with_proofs(
        store: Store,
        login: LoginOptions,
        keys: Option<&Path>,
        require_proof: Option<bool>,
    ) -> Self {
        let granting = GrantOptions { require_proof, ..GrantOptions::default() };
        let vault = match keys {
            Some(keys) => Some(vault(&store, keys).await),
            None => None,
        };
        Self::of(Project::Servers(&json!({})), Some(store), vault, Some(login), granting).await
    }

    async fn with(servers: &Value, store: Option<Store>, vault: Option<Vault>) -> Self {
        let of = Project::Servers(servers);
        Self::of(of, store, vault, None, GrantOptions::default()).await
    }

    async fn of(
        project: Project<'_>,
        store: Option<Store>,
        vault: Option<Vault>,
        login: Option<LoginOptions>,
        granting: GrantOptions,
    ) -> Self {
        let fixture = Running::http(Options::default()).await.unwrap();
        let dir = tempfile::tempdir().unwrap();
        let file = project.file(&dir, &fixture);
        let mut files = LayerOptions::new(dir.path(), Arc::new(|_name| None));
        files.settings = Some(dir.path().join("settings.json"));
        files.project = Some(ProjectFile {
            path: file,
            approve: Arc::new(|_path, _text| Ok(())),
            approvals: None,
        });
        let look_up = Arc::new(|name: &str| (name == "DOCS_URL").then(|| VARIABLE.to_owned()));
        let variables = Variables::new(&["DOCS_*".to_owned()], look_up).unwrap();
        let audit = Audit::open(&dir.path().join("audit"), &AuditSettings::default()).unwrap();
        let options = ControlOptions {
            files,
            store,
            vault,
            variables,
            audit: audit.clone(),
            login,
            sign_ins: None,
            meters: Meters::default(),
            grants: Arc::default(),
            granting,
            rules: Arc::default(),
            executors: crew(),
            defaults: Vec::new(),
        };
        let registry = registry();
        let control = Control::start(registry.clone(), options).await.unwrap();
        let given = control.clone();
        let gateway = World::gateway(registry, audit);
        let local = RunToken::generate().unwrap();
        let options = RunsOptions {
            workspace_root: dir.path().to_owned(),
            env: Arc::new(|_name| None),
            start_timeout: SOON,
            local: local.run_id(),
            built_in_url: Some("http://narthex.test/mcp/narthex".to_owned()),
            folders: dir.path().join("folders"),
            sockets: None,
            shares: Some(ShareOptions::open(&dir.path().join("shares"), SHARES_QUOTA).unwrap()),
        };
        gateway.set_ledger(Arc::new(StoreLedger::new(control.clone())));
        let runs = Runs::new(gateway.clone(), control.clone(), options);
        let outbound = Outbound::new(control.clone(), vec!["127.0.0.1".to_owned()]);
        let platform = Platform {
            control: control.clone(),
            runs: runs.clone(),
            outbound: Some(outbound.clone()),
        };
        gateway.set_built_in_tools(Arc::new(Tools::new(platform).unwrap()));
        runs.start().await.unwrap();
        let begun = runs.clone();
        let posting = outbound.clone();
        let world = World::around(gateway, |options| {
            options.control = Some(given);
            options.runs = Some(runs);
            options.outbound = Some(posting);
            options.public_servers = Some(Arc::new(Shelf));
        });
        let api = Self { dir, world, control, outbound, local, runs: begun, fixture };
        let registry = api.control.registry();
        let settled = registry.wait_until(SOON, |snapshot| snapshot.is_settled()).await;
        assert!(settled.is_settled());
        api
    }

    pub(super) async fn one() -> Self {
        Self::over(&json!({ "one": { "transport": "http", "url": "URL" } })).await
    }

    pub(super) fn file(&self, name: &str) -> String {
        fs::read_to_string(self.dir.path().join(name)).unwrap_or_default()
    }

    pub(super) fn row(&self, name: &str) -> Arc<ServerRow> {
        self.control.registry().get(name).unwrap()
    }

    /// A request of the operator.
    pub(crate) fn ask(&self, method: &str, path: &str) -> Builder<'_> {
        let request = self.world.request(method.parse::<Method>().unwrap(), path);
        request.header("authorization", &format!("Bearer {ADMIN}"))
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        self.ask("GET", path).send().await.succeeded()
    }

    pub(crate) async fn post(&self, path: &str) -> Answer {
        self.ask("POST", path).send().await
    }

    /// A change by the operator, with a body.
    pub(crate) async fn send(&self, method: &str, path: &str, body: impl Into<Bytes>) -> Answer {
        let request = self.ask(method, path).header("content-type", "application/json");
        request.body(whole(body)).send().await
    }
}

impl Answer {
    #[track_caller]
    pub(crate) fn succeeded(&self) -> Value {
        assert!(self.status.is_success(), "{} {}", self.status, self.text());
        assert_eq!(self.headers["content-type"], "application/json");
        self.json()
    }

    /// Checks that the answer is a problem with this status and kind, and returns its text.
    #[track_caller]
    pub(crate) fn problem(&self, status: StatusCode, kind: &str) -> String {
        assert_eq!(self.status, status, "{}", self.text());
        assert_eq!(self.headers["content-type"], "application/problem+json");
        let problem = self.json();
        assert_eq!(problem["type"], "about:blank");
        assert_eq!(problem["status"], status.as_u16());
        assert_eq!(problem["title"], status.canonical_reason().unwrap());
        assert_eq!(problem["kind"], kind);
        problem["detail"].as_str().unwrap().to_owned()
    }
}
