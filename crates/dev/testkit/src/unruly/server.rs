//! The life of the server: its start, its handshake, its lists; calls are in `call`.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Stdout};
use tokio::sync::Mutex;
use tokio::time::sleep;

use super::settings::Settings;
use super::{call, offspring, words};

/// Interval of the checks of a folder of notes.
const LOOK: Duration = Duration::from_millis(5);
/// The prefix of the names of tools that only make the list longer.
const FURTHER: &str = "further_";

/// The state of the server.
pub(super) struct Server {
    pub(super) settings: Settings,
    pub(super) out: Out,
    pub(super) seen: Seen,
    /// True if the list has the tool `extra`.
    pub(super) has_extra: bool,
    /// Calls of `late`, which are answered when they are cancelled.
    pub(super) late: Vec<Value>,
}

/// The counts of requests so far; the tool `seen` reports them.
#[derive(Debug, Default, serde::Serialize)]
pub(super) struct Seen {
    pub(super) initializes: u64,
    pub(super) lists: u64,
    pub(super) calls: u64,
    pub(super) cancelled: Vec<Value>,
}

/// Standard output, one line at a time. Clones write to the same.
#[derive(Clone)]
pub(super) struct Out(Arc<Mutex<Stdout>>);

impl Out {
    pub(super) async fn line(&self, text: &str) -> io::Result<()> {
        let mut out = self.0.lock().await;
        out.write_all(text.as_bytes()).await?;
        out.write_all(b"\n").await?;
        out.flush().await
    }

    pub(super) async fn message(&self, message: &Value) -> io::Result<()> {
        self.line(&message.to_string()).await
    }
}

/// Serves; the exit code.
pub(super) async fn serve(settings: Settings) -> io::Result<i32> {
    if settings.ignores_term {
        offspring::ignore_term()?;
    }
    if settings.is_offspring {
        offspring::live(settings.offspring).await?;
        return Ok(0);
    }
    if let Some(code) = begin(&settings).await? {
        return Ok(code);
    }
    let ignores_end = settings.ignores_term;
    let mut server = Server {
        settings,
        out: Out(Arc::new(Mutex::new(tokio::io::stdout()))),
        seen: Seen::default(),
        has_extra: false,
        late: Vec::new(),
    };
    server.read().await?;
    if ignores_end {
        std::future::pending::<()>().await;
    }
    Ok(0)
}

/// The steps before any message is read.
async fn begin(settings: &Settings) -> io::Result<Option<i32>> {
    if let Some(notes) = &settings.notes {
        let before = count(notes)?;
        fs_err::write(notes.join(std::process::id().to_string()), "")?;
        if before < settings.failures {
            words::last("not yet");
            return Ok(Some(3));
        }
        while count(notes)? < settings.together {
            sleep(LOOK).await;
        }
    }
    if let Some(kind) = settings.offspring {
        offspring::start(kind, settings.ignores_term)?;
    }
    if settings.is_flooding {
        std::thread::spawn(words::flood);
    }
    sleep(settings.start).await;
    Ok(None)
}

fn count(folder: &Path) -> io::Result<usize> {
    Ok(fs_err::read_dir(folder)?.count())
}

impl Server {
    async fn read(&mut self) -> io::Result<()> {
        if self.settings.deaf_after.as_deref() == Some("") {
            std::future::pending::<()>().await;
        }
        let mut input = BufReader::new(tokio::io::stdin()).lines();
        while let Some(line) = input.next_line().await? {
            if self.settings.is_silent {
                continue;
            }
            let message: Value = serde_json::from_str(&line)?;
            if self.settings.is_noisy {
                self.out.line("listening on nothing {\"id\": 1, \"and\": [").await?;
            }
            self.take(&message).await?;
            if message["method"].as_str() == self.settings.deaf_after.as_deref() {
                std::future::pending::<()>().await;
            }
        }
        Ok(())
    }

    async fn take(&mut self, message: &Value) -> io::Result<()> {
        let id = &message["id"];
        match message["method"].as_str().unwrap_or_default() {
            "initialize" => {
                self.seen.initializes += 1;
                self.result(id, self.hello()).await
            }
            "tools/list" => {
                self.seen.lists += 1;
                let list = self.list(&message["params"]["cursor"]);
                self.result(id, list).await
            }
            "tools/call" => {
                self.seen.calls += 1;
                call::call(self, id, &message["params"]).await
            }
            "notifications/cancelled" => {
                let cancelled = message["params"]["requestId"].clone();
                call::cancelled(self, &cancelled).await?;
                self.seen.cancelled.push(cancelled);
                Ok(())
            }
            "ping" => self.result(id, json!({})).await,
            _ if id.is_null() => Ok(()),
            _ => {
                let error = json!({"code": -32601, "message": "there is no such method"});
                self.out.message(&json!({"jsonrpc": "2.0", "id": id, "error": error})).await
            }
        }
    }

    pub(super) async fn result(&self, id: &Value, result: Value) -> io::Result<()> {
        self.out.message(&answer(id, &result)).await
    }

    fn hello(&self) -> Value {
        json!({
            "protocolVersion": self.settings.revision,
            "capabilities": {"tools": {"listChanged": true}},
            "serverInfo": {"name": "narthex-unruly", "version": env!("CARGO_PKG_VERSION")},
        })
    }

    fn list(&self, cursor: &Value) -> Value {
        let further = (0..self.settings.tools).map(|number| format!("{FURTHER}{number}"));
        let extra = self.has_extra.then(|| "extra".to_owned());
        let names = call::NAMES.iter().map(|name| (*name).to_owned()).chain(extra).chain(further);
        let from = cursor.as_str().and_then(|text| text.parse().ok()).unwrap_or(0);
        let mut names = names.skip(from);
        let page = names.by_ref().take(self.settings.page);
        let tools: Vec<_> =
            page.map(|name| json!({"name": name, "inputSchema": {"type": "object"}})).collect();
        match names.next() {
            Some(_) => json!({"nextCursor": (from + tools.len()).to_string(), "tools": tools}),
            None => json!({ "tools": tools }),
        }
    }
}

pub(super) fn answer(id: &Value, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}
