//! A registry of MCP servers for tests: the API v0.1 over HTTP, its schemas, and invented servers.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    sync::{Arc, LazyLock, Mutex},
    thread::{self, JoinHandle},
};

use anyhow::Result;
use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};
use tokio::{
    net::TcpListener,
    runtime::Builder,
    sync::oneshot::{self, Sender},
};

use crate::{contract::Contract, fixture::lock};

/// The schemas of the API, by name below `components.schemas`.
pub static SCHEMAS: LazyLock<Value> = LazyLock::new(|| {
    let text = include_str!("public_registry/schema.json");
    serde_json::from_str(text).expect("the file beside this one is JSON")
});

static CONTRACT: LazyLock<Contract> = LazyLock::new(|| Contract::new(&SCHEMAS));

/// Checks a value against a schema of the API, such as `ServerList`.
///
/// # Errors
/// Every fault of the value, with its place.
pub fn fits(schema: &str, value: &Value) -> Result<()> {
    CONTRACT.fits(&format!("#/components/schemas/{schema}"), value.clone())
}

/// Invented servers, as a registry answers with them.
///
/// # Panics
/// When the file beside this one is no list of JSON.
#[must_use]
pub fn examples() -> Vec<Value> {
    serde_json::from_str(include_str!("public_registry/servers.json"))
        .expect("the file beside this one is a list")
}

/// One of the invented servers.
///
/// # Panics
/// When there is none of this name and version.
#[must_use]
pub fn example(name: &str, version: &str) -> Value {
    let is_it = |one: &Value| one["server"]["name"] == name && one["server"]["version"] == version;
    let found = examples().into_iter().find(is_it);
    found.unwrap_or_else(|| panic!("no example {name} {version}"))
}

/// A registry on a free port of this machine, until it is dropped.
#[derive(Debug)]
pub struct RegistryFixture {
    /// The address, without a path.
    pub url: String,
    catalog: Arc<Catalog>,
    /// The signal that ends the thread, and the thread.
    running: Option<(Sender<()>, JoinHandle<()>)>,
}

impl RegistryFixture {
    /// Starts a registry with these servers, in a thread of its own. A page has at most `page`
    /// servers.
    ///
    /// # Panics
    /// When no port is free.
    #[must_use]
    pub fn start(servers: Vec<Value>, page: usize) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
        listener.set_nonblocking(true).expect("a socket can be asked not to wait");
        let address = listener.local_addr().expect("a bound socket has an address");
        let servers = Mutex::new(servers);
        let (asked, files) = (Mutex::default(), Mutex::default());
        let catalog = Arc::new(Catalog { servers, page, asked, files });
        let served = Arc::clone(&catalog);
        let (end, ended) = oneshot::channel::<()>();
        let thread = thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let listener = TcpListener::from_std(listener).expect("a socket of this machine");
                tokio::select! {
                    () = serve(&listener, &served) => {}
                    _ = ended => {}
                }
            });
        });
        Self { url: format!("http://{address}"), catalog, running: Some((end, thread)) }
    }

    /// The paths of all requests so far, with their queries.
    #[must_use]
    pub fn asked(&self) -> Vec<String> {
        lock(&self.catalog.asked).clone()
    }

    /// Adds a server.
    pub fn publish(&self, server: Value) {
        lock(&self.catalog.servers).push(server);
    }

    /// Serves a file at a path, and at the same path below `/moved` a redirect to it. Gives its
    /// address.
    #[must_use]
    pub fn serve_file(&self, path: &str, bytes: Vec<u8>) -> String {
        lock(&self.catalog.files).insert(path.to_owned(), bytes.into());
        format!("{}{path}", self.url)
    }
}

impl Drop for RegistryFixture {
    /// Waits until the port is closed.
    fn drop(&mut self) {
        if let Some((end, thread)) = self.running.take() {
            drop(end);
            drop(thread.join());
        }
    }
}

#[derive(Debug)]
struct Catalog {
    servers: Mutex<Vec<Value>>,
    page: usize,
    asked: Mutex<Vec<String>>,
    /// The bytes of other paths.
    files: Mutex<BTreeMap<String, Bytes>>,
}

async fn serve(listener: &TcpListener, catalog: &Arc<Catalog>) {
    while let Ok((stream, _)) = listener.accept().await {
        let catalog = Arc::clone(catalog);
        crate::spawn(async move {
            let service = service_fn(move |request: Request<Incoming>| {
                let answer = catalog.answer(&request);
                async move { Ok::<_, Infallible>(answer) }
            });
            // A client that leaves is no fault of the registry.
            drop(http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
        });
    }
}

impl Catalog {
    fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        let uri = request.uri();
        lock(&self.asked).push(uri.to_string());
        if let Some(file) = self.file(uri.path()) {
            return file;
        }
        let segments: Vec<String> = uri.path().split('/').skip(1).map(decoded).collect();
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        let (schema, found) = match segments.as_slice() {
            ["v0.1", "servers"] => ("ServerList", Some(self.list(uri.query().unwrap_or_default()))),
            ["v0.1", "servers", name, "versions"] => {
                let all = self.of(name);
                let count = all.len();
                let list = json!({ "servers": all, "metadata": { "count": count } });
                ("ServerList", (count > 0).then_some(list))
            }
            ["v0.1", "servers", name, "versions", version] => {
                let is_it = |one: &Value| match *version {
                    "latest" => official(one)["isLatest"] == true,
                    version => one["server"]["version"] == version,
                };
                ("ServerResponse", self.of(name).into_iter().find(is_it))
            }
            _ => ("", None),
        };
        match found {
            None => reply(StatusCode::NOT_FOUND, &json!({ "error": "Server not found" })),
            Some(found) => match fits(schema, &found) {
                Ok(()) => reply(StatusCode::OK, &found),
                Err(fault) => {
                    let text = format!("the fixture breaks its schema: {fault}");
                    reply(StatusCode::INTERNAL_SERVER_ERROR, &json!({ "error": text }))
                }
            },
        }
    }

    fn file(&self, path: &str) -> Option<Response<Full<Bytes>>> {
        let files = lock(&self.files);
        let (status, body, target) = match path.strip_prefix("/moved") {
            Some(target) if files.contains_key(target) => (302, Bytes::new(), target),
            Some(_) | None => (200, files.get(path)?.clone(), ""),
        };
        let response = Response::builder().status(status).header(header::LOCATION, target);
        Some(response.body(Full::new(body)).expect("a status makes an answer"))
    }

    fn of(&self, name: &str) -> Vec<Value> {
        let servers = lock(&self.servers);
        servers.iter().filter(|one| one["server"]["name"] == name).cloned().collect()
    }

    fn list(&self, query: &str) -> Value {
        let value = |name: &str| {
            let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            let mut found = pairs.filter(|(key, _)| *key == name);
            found.next().map(|(_, value)| decoded(value)).unwrap_or_default()
        };
        let (search, is_latest) = (value("search").to_lowercase(), value("version") == "latest");
        let is_wanted = |one: &&Value| {
            let name = one["server"]["name"].as_str().unwrap_or_default().to_lowercase();
            let is_shown =
                official(one)["status"] != "deleted" || value("include_deleted") == "true";
            name.contains(&search) && is_shown && (!is_latest || official(one)["isLatest"] == true)
        };
        let limit = value("limit").parse().unwrap_or(usize::MAX).min(self.page);
        let start: usize =
            value("cursor").strip_prefix("at-").map_or(0, |n| n.parse().unwrap_or(0));
        let servers = lock(&self.servers);
        let all: Vec<_> = servers.iter().filter(is_wanted).collect();
        let page: Vec<_> = all.iter().skip(start).take(limit).collect();
        let mut metadata = json!({ "count": page.len() });
        if start + page.len() < all.len() {
            metadata["nextCursor"] = json!(format!("at-{}", start + page.len()));
        }
        json!({ "servers": page, "metadata": metadata })
    }
}

fn official(one: &Value) -> &Value {
    &one["_meta"]["io.modelcontextprotocol.registry/official"]
}

fn reply(status: StatusCode, body: &Value) -> Response<Full<Bytes>> {
    let body = Full::new(Bytes::from(body.to_string()));
    let response = Response::builder().status(status);
    let response = response.header(header::CONTENT_TYPE, "application/json");
    response.body(body).expect("a status and a type make an answer")
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E202: the invented servers are such as the official registry would accept.
    #[test]
    fn e202_the_invented_servers_follow_the_published_schema() {
        for one in examples() {
            fits("ServerResponse", &one).unwrap_or_else(|fault| panic!("{fault}: {one}"));
        }
    }

    /// E202: the schema refuses what the published one refuses.
    #[test]
    fn e202_values_that_the_published_schema_refuses_are_refused() {
        let good = example("io.github.ada/weather", "1.4.0");
        let wrong = |pointer: &str, value: Value| {
            let mut one = good.clone();
            *one.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = value;
            fits("ServerResponse", &one).is_err()
        };
        let package = "/server/packages/0";
        let table = [
            ("/server/name".to_owned(), json!("weather")),
            ("/server/name".to_owned(), json!("a/b/c")),
            ("/server/description".to_owned(), json!("x".repeat(101))),
            ("/server/description".to_owned(), json!("")),
            ("/server/repository".to_owned(), json!({ "url": "https://a.example" })),
            (format!("{package}/version"), json!("latest")),
            (format!("{package}/transport"), json!({ "type": "http" })),
            (format!("{package}/packageArguments/0"), json!({ "type": "positional" })),
            (format!("{package}/packageArguments/1/name"), json!(1)),
            (format!("{package}/environmentVariables/0"), json!({ "value": "x" })),
            ("/_meta/io.modelcontextprotocol.registry~1official/status".to_owned(), json!("new")),
            ("/_meta/io.modelcontextprotocol.registry~1official".to_owned(), json!({ "x": 1 })),
        ];
        for (pointer, value) in table {
            assert!(wrong(&pointer, value.clone()), "{pointer} {value}");
        }
        assert!(fits("ServerList", &json!({})).is_err());
        assert!(fits("ServerList", &json!({ "servers": [good] })).is_ok());
    }
}
