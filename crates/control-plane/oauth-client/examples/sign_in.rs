//! Embeds a registry that signs in to its servers: no daemon, and the tokens in one file.
//!
//! Takes an `mcp.json` and the path of the file for tokens, connects the servers, and prints the
//! address for each that a person must sign in to. The browser comes back to a listener of this
//! program. With `keychain`, the file is sealed under a key in the keychain of the system:
//!
//! ```sh
//! cargo run -p narthex-oauth-client --example sign_in -- mcp.json sign-ins.json
//! cargo run -p narthex-oauth-client --example sign_in -- mcp.json sign-ins keychain
//! ```

use std::{
    error::Error,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use bytes::Bytes;
use narthex_model::{Provenance, Secret};
use narthex_oauth_client::{
    FileStore, RedirectBases, SharedClients, SignInHooks, SignInOptions, SignIns, SystemClock,
    store::{ClientKey, GrantFacts, GrantKey},
};
use narthex_registry::{
    Layer, Registry, RegistryOptions, ServerResult, SignInRedirect,
    config::{self, Entry},
    layers::compose,
};
use narthex_supervisor::{BaseEnvironment, shim};
use narthex_upstream::ClientIdentity;
use narthex_wire::Revision;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    runtime::Handle,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use url::Url;

/// The address of the listener. It is the same at each start, as clients are registered with it.
const LISTEN: &str = "127.0.0.1:4711";
/// The longest request that the listener reads, in bytes.
const REQUEST_MAX: usize = 16 * 1024;

/// Prints what the sign-ins tell their owner. The store keeps tokens and clients by itself.
#[derive(Debug)]
struct Printed;

impl SignInHooks for Printed {
    fn open_authorize_url(&self, server: &str, url: &Url) {
        show(&format!("{server}: sign in at {url}"));
    }

    fn on_tokens_failed(&self, key: &GrantKey, facts: &GrantFacts) {
        let why = facts.failure.as_deref().unwrap_or("no reason is known");
        show(&format!("{}: the tokens cannot be renewed: {why}", key.server));
    }

    fn on_tokens_changed(&self, key: &GrantKey, facts: Option<&GrantFacts>) {
        let what = if facts.is_some() { "new tokens" } else { "no tokens any more" };
        show(&format!("{}: {what}", key.server));
    }

    fn on_client_registered(&self, key: &ClientKey) {
        show(&format!("registered at {}", key.issuer));
    }
}

/// Connects the servers of a file, and waits until a person has signed in to each that asks. The
/// browser comes back to the listener. Returns the first result of each server.
pub(crate) async fn run(
    file: &Path,
    tokens: FileStore,
    listener: TcpListener,
    hooks: Arc<dyn SignInHooks>,
) -> Result<Vec<ServerResult>, Box<dyn Error>> {
    let base = Url::parse(&format!("http://{}", listener.local_addr()?))?;
    let sign_ins = SignIns::new(SignInOptions {
        store: Arc::new(tokens),
        clock: Arc::new(SystemClock),
        proxies: Arc::default(),
        extra_roots: Vec::new(),
        redirect_base: RedirectBases { loopback: base, public: None },
        client_metadata_url: None,
        shared_clients: SharedClients::default(),
        client_name: "an embedding program".to_owned(),
        workspace: "default".to_owned(),
        tasks: TaskTracker::new(),
        shutdown: CancellationToken::new(),
        owner: std::process::id().to_string(),
        hooks,
        runtime: Handle::current(),
    });
    let registry = registry(&sign_ins)?;
    let results = registry.apply_config(compose(&[layer(file)?])).await?;
    let mut waiting = 0;
    for result in &results {
        match result {
            ServerResult::Ready { id, tool_count } => show(&format!("{id}: {tool_count} tools")),
            ServerResult::Authenticating { .. } => waiting += 1,
            ServerResult::Error { id, error } => show(&format!("{id}: {error}")),
        }
    }
    while waiting > 0 {
        let (stream, _) = listener.accept().await?;
        if answer(&registry, stream).await? {
            waiting -= 1;
        }
    }
    registry.close().await;
    sign_ins.close().await;
    Ok(results)
}

/// A registry whose servers use the sign-ins.
fn registry(sign_ins: &SignIns) -> Result<Registry, Box<dyn Error>> {
    let identity = ClientIdentity {
        info: Bytes::from_static(br#"{"name":"embedder","version":"1.0"}"#),
        capabilities: Bytes::from_static(b"{}"),
        revision: Revision::LEGACY_LATEST,
    };
    let mut options = RegistryOptions::new(identity, BaseEnvironment::from_process());
    options.credentials = Some(Arc::new(sign_ins.clone()));
    Ok(Registry::new(options)?)
}

fn layer(file: &Path) -> Result<Layer, Box<dyn Error>> {
    let root = std::env::current_dir()?;
    let entries: Vec<Entry> = config::load_file(file, &root, &|_name| None)?.entries;
    Ok(Layer { provenance: Provenance::Workspace, file: Some(file.into()), entries })
}

/// Answers one request of the browser; true if a sign-in was finished.
async fn answer(registry: &Registry, mut stream: TcpStream) -> Result<bool, Box<dyn Error>> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < REQUEST_MAX {
        if stream.read_buf(&mut head).await? == 0 {
            break;
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let target = head.split(' ').nth(1).unwrap_or_default();
    let (status, text, is_finished) = match target.split_once('?') {
        Some((path, query)) if path.starts_with("/oauth/callback") => {
            // The names of this program's servers need no decoding.
            let server = path.strip_prefix("/oauth/callback/").map(str::to_owned);
            let redirect = SignInRedirect { query: Secret::new(query), server };
            match registry.finish_auth(redirect).await {
                Ok(ServerResult::Ready { id, .. }) => {
                    ("200 OK", format!("You are signed in to {id}."), true)
                }
                Ok(ServerResult::Error { id, error }) => {
                    ("200 OK", format!("You are signed in to {id}, which failed: {error}"), true)
                }
                Ok(ServerResult::Authenticating { id, auth_url }) => {
                    ("200 OK", format!("{id} asks for more: sign in at {auth_url}"), false)
                }
                Err(error) => ("400 Bad Request", error.to_string(), false),
            }
        }
        _ => ("404 Not Found", "There is no such page.".to_owned(), false),
    };
    show(&text);
    let length = text.len();
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n{text}"
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await?;
    Ok(is_finished)
}

#[expect(clippy::print_stdout, reason = "showing it is what this program is for")]
fn show(line: &str) {
    println!("{line}");
}

fn main() -> ExitCode {
    // The shim check comes first: the same program is the supervisor of each server, so that no
    // process of a server outlives this process.
    if let Some(code) = shim::run_if_asked() {
        return code;
    }
    match start() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            show(&format!("failed: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn start() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let file = arguments.next().unwrap_or_else(|| "mcp.json".into());
    let tokens = arguments.next().unwrap_or_else(|| "sign-ins.json".into());
    let tokens = match arguments.next() {
        Some(word) if word == Path::new("keychain") => FileStore::in_keychain(tokens)?,
        Some(other) => return Err(format!("unknown word {}", other.display()).into()),
        None => FileStore::new(tokens),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(LISTEN).await?;
        run(&file, tokens, listener, Arc::new(Printed)).await.map(drop)
    })
}
