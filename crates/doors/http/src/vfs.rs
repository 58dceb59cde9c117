//! The files of a run over HTTP. Each request is one operation, and no state is stored between
//! requests.
//!
//! The path in the namespace follows `/vfs`, percent-encoded once like any path of a URL.

use std::sync::Arc;

use http::{HeaderValue, Method, StatusCode, header, request::Parts};
use narthex_gateway::{Gateway, Holder, RunView};
use narthex_model::{ErrorKind, Pid, json::shortened, with_causes};
use narthex_runs::Runs;
use narthex_vfs::{
    Code, Entry, Failure, Held, MountName, Node, Operation, PATH_MAX, Place, Process, ROOT, Report,
    Stat, VfsError,
};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use crate::devices::{Numbered, Numbering, Numbers, RunMounts, Seen};
use crate::{
    HttpOptions,
    body::{self, RequestBody, Room},
    door::Door,
    post::is_json,
    problem::Problem,
    respond::{self, Response},
    servers::{Query, changes::of_body},
    shapes::FileFailure,
};

/// The values of `op` for a GET; the first is the default.
const OPERATIONS: [&str; 5] = ["auto", "list", "read", "stat", "mounts"];
/// The values of `op` for a POST; the first is the default.
const WRITES: [&str; 2] = ["write", "failed"];
/// The maximum number of bytes in a folder's report of a failed operation.
const REPORT_MAX: usize = 4096;

/// Creates the mounts of this door.
pub(crate) fn mounts(gateway: &Gateway, options: &HttpOptions) -> RunMounts {
    let numbers = Box::new(StoredNumbers(options.runs.clone()));
    RunMounts::new(gateway.clone(), numbers, options.closing.clone())
}

/// Finds the pids of stored runs.
#[derive(Debug)]
struct StoredNumbers(Option<Runs>);

impl Numbers for StoredNumbers {
    fn of<'a>(&'a self, run: &'a Arc<RunView>) -> Numbering<'a> {
        Box::pin(async move {
            let Some(runs) = &self.0 else { return Ok(None) };
            let found = runs.numbers(run).await.map_err(|error| {
                tracing::warn!(run.id = %run.id, "{}", with_causes(&error));
                let text = "the pid of the run is not known yet; try again";
                Failure::new(Code::ServiceUnavailable, "transport_error", text)
            })?;
            Ok(found.map(|(row, earlier)| Numbered { pid: row.pid, earlier, parent: row.parent }))
        })
    }
}

/// One request, without its body.
pub(crate) struct VfsRequest<'a> {
    pub(crate) door: &'a Door,
    pub(crate) run: Arc<RunView>,
    /// The path after `/vfs/`, still encoded.
    pub(crate) path: &'a str,
    pub(crate) parts: &'a Parts,
}

impl VfsRequest<'_> {
    /// Performs the operation.
    pub(crate) async fn answer(&self, body: RequestBody) -> Response {
        let answering = async {
            match self.parts.method {
                Method::POST => self.post(body).await,
                _ => self.look().await,
            }
        };
        let answered = self.door.gateway.tap().holding(self.run.id, answering).await;
        answered.unwrap_or_else(|problem| problem.answer())
    }

    /// Handles a GET: lists a folder, reads a file, or describes an entry.
    async fn look(&self) -> Result<Response, Problem> {
        let query = Query::of(&self.parts.uri, &["op"])?;
        let operation = query.word("op", &OPERATIONS)?;
        let path = self.path()?;
        let (seen, begins) = (self.seen(&path), begins_with(&path));
        let seen =
            seen.await.map_err(|failure| problem(&VfsError::new(begins, &*path, failure)))?;
        let process = &seen.process;
        let stat = || process.stat(&path).map_err(|error| problem(&error));
        match operation {
            "stat" => Ok(document(&shown_stat(process, &path, &stat()?))),
            "list" => list(process, &path).await,
            "read" => read(process, &path).await,
            "mounts" => mounts_of(&seen, &path),
            _ if stat()?.is_directory => list(process, &path).await,
            _ => read(process, &path).await,
        }
    }

    /// Handles a POST: writes a file, or reports an operation that a folder refused without asking
    /// the daemon.
    async fn post(&self, body: RequestBody) -> Result<Response, Problem> {
        let query = Query::of(&self.parts.uri, &["op"])?;
        match query.word("op", &WRITES)? {
            "failed" => self.told(body).await,
            _ => self.write(body).await,
        }
    }

    /// Reports to the run's watchers an operation on a file that failed at a folder. It has no
    /// other effect, so it accepts any failure that the holder of the run's token reports.
    async fn told(&self, body: RequestBody) -> Result<Response, Problem> {
        let path = self.path()?;
        let failed = |failure| problem(&VfsError::new(Operation::Stat, &*path, failure));
        Place::parse(&path).map_err(failed)?;
        let (within, holder) = (self.door.options.body_timeout, Holder::Run(self.run.id));
        let room = Room::Api(&self.door.api_bodies, holder);
        let bytes = body::read_in(body, REPORT_MAX, within, Some(room)).await;
        let bytes = bytes.map_err(|fault| of_body(fault, "what has failed", REPORT_MAX))?;
        let report: Option<Report<'_>> = match bytes.starts_with(b"{") {
            true => serde_json::from_slice(&bytes).ok(),
            false => None,
        };
        // Watchers know the run itself and ignore its pid, so any pid will do.
        let done = report.as_ref().and_then(|report| report.done(Pid::OWN, &path));
        let done = done.ok_or_else(|| {
            let text = "the body is `operation`, `code`, `duration_us` and `size` of what failed";
            Problem::new(ErrorKind::Invalid, text)
        })?;
        self.door.mounts.tell(&self.run, done);
        Ok(respond::empty(StatusCode::ACCEPTED))
    }

    /// Writes to a file, and answers with the content that a read then returns.
    async fn write(&self, body: RequestBody) -> Result<Response, Problem> {
        let path = self.path()?;
        if !is_json(&self.parts.headers) {
            let text = "the content type must be application/json, and the body the arguments";
            let problem = Problem::new(ErrorKind::Invalid, text);
            return Err(problem.with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE));
        }
        let (most, within) = (self.door.mounts.write_bytes(), self.door.options.body_timeout);
        let room = Room::Run(&self.door.gateway, &self.run);
        let bytes = body::read_in(body, most, within, Some(room)).await;
        let bytes = bytes.map_err(|fault| of_body(fault, "the arguments", most))?;
        let seen = self.seen(&path).await;
        let seen =
            seen.map_err(|failure| problem(&VfsError::new(Operation::Write, &*path, failure)))?;
        let held = seen.process.hold(&path).map_err(|error| problem(&error))?;
        held.write(bytes).await.map_err(|error| problem(&error))?;
        all_of(&held, &path).await
    }

    async fn seen(&self, path: &str) -> Result<Arc<Seen>, Failure> {
        self.door.mounts.process(&self.run, path).await
    }

    /// The path in the namespace.
    fn path(&self) -> Result<String, Problem> {
        let invalid = |text: String| Problem::new(ErrorKind::Invalid, text);
        // Percent-encoding may use three bytes for each byte of the path.
        if self.path.len() > 3 * PATH_MAX {
            return Err(invalid(format!("a path has at most {PATH_MAX} bytes; shorten it")));
        }
        let path = percent_decode_str(self.path).decode_utf8().map_err(|error| {
            invalid(format!("the path is not UTF-8: {error}; percent-encode it once"))
        })?;
        Ok(format!("/{path}"))
    }
}

fn begins_with(path: &str) -> Operation {
    match path.trim_end_matches('/') == ROOT {
        true => Operation::List,
        false => Operation::Open,
    }
}

async fn read(process: &Process, path: &str) -> Result<Response, Problem> {
    let held = process.hold(path).map_err(|error| problem(&error))?;
    all_of(&held, path).await
}

/// The whole content of an open file.
async fn all_of(held: &Held<'_>, path: &str) -> Result<Response, Problem> {
    let bytes = held.read().await.map_err(|error| problem(&error))?;
    let mut response = respond::json(StatusCode::OK, bytes.into());
    let media = HeaderValue::from_static(media_type(path));
    response.headers_mut().insert(header::CONTENT_TYPE, media);
    Ok(response)
}

async fn list(process: &Process, path: &str) -> Result<Response, Problem> {
    let entries = process.list(path).await.map_err(|error| problem(&error))?;
    Ok(listed(process, path, &entries))
}

/// The mounts at the root, for a folder that shows them. The folder makes this request, not the
/// run, so no watcher is notified.
fn mounts_of(seen: &Seen, path: &str) -> Result<Response, Problem> {
    if !matches!(Place::parse(path), Ok(Place::Mounts)) {
        let text = format!("`op=mounts` is possible only for `{ROOT}`; write `op=list`");
        return Err(Problem::new(ErrorKind::Invalid, text));
    }
    let process = &seen.process;
    let entry = |name: MountName| {
        let server = seen.server(&name);
        json!({ "name": name.to_string(), "is_directory": true, "server": server })
    };
    let entries = process.mounts().into_iter().map(entry).collect();
    let mut shown = shown_list(process, path, entries);
    shown["closed"] = process.closed().iter().map(ToString::to_string).collect();
    Ok(document(&shown))
}

fn listed(process: &Process, path: &str, entries: &[Entry]) -> Response {
    let shown = |entry: &Entry| json!({ "name": entry.name, "is_directory": entry.is_directory });
    document(&shown_list(process, path, entries.iter().map(shown).collect()))
}

fn shown_list(process: &Process, path: &str, entries: Value) -> Value {
    let mut listed = json!({ "path": path, "pid": process.pid().get(), "entries": entries });
    if matches!(Place::parse(path), Ok(Place::Mounts)) {
        let synonyms = process.synonyms();
        let shown =
            synonyms.iter().map(|(old, now)| json!({ "path": old.path(), "means": now.path() }));
        listed["synonyms"] = shown.collect();
    }
    listed
}

fn shown_stat(process: &Process, path: &str, stat: &Stat) -> Value {
    json!({
        "path": path,
        "pid": process.pid().get(),
        "name": stat.name,
        "device": stat.device,
        "is_directory": stat.is_directory,
        "is_writable": stat.is_writable,
    })
}

fn document(value: &Value) -> Response {
    respond::json(StatusCode::OK, value.to_string().into_bytes().into())
}

/// The media type of a path's content.
fn media_type(path: &str) -> &'static str {
    match Place::parse(path) {
        Ok(Place::In(_, Node::Description(_))) => "text/markdown; charset=utf-8",
        Ok(Place::In(_, Node::Logs)) => "text/plain; charset=utf-8",
        _ => "application/json",
    }
}

/// Maps the codes of the namespace to HTTP statuses (D24).
fn status_of(code: Code) -> (ErrorKind, StatusCode) {
    match code {
        Code::Timeout => (ErrorKind::Timeout, StatusCode::GATEWAY_TIMEOUT),
        Code::NotFound => (ErrorKind::NotFound, StatusCode::NOT_FOUND),
        Code::Permission => (ErrorKind::Denied, StatusCode::FORBIDDEN),
        Code::Internal => (ErrorKind::Bug, StatusCode::INTERNAL_SERVER_ERROR),
        Code::Driver => (ErrorKind::Unavailable, StatusCode::BAD_GATEWAY),
        Code::Invalid | Code::IsDirectory | Code::BrokenPipe => {
            (ErrorKind::Invalid, StatusCode::BAD_REQUEST)
        }
        Code::AlreadyMounted => (ErrorKind::Conflict, StatusCode::CONFLICT),
        Code::ResourceExhausted => (ErrorKind::Exhausted, StatusCode::TOO_MANY_REQUESTS),
        Code::ServiceUnavailable | Code::ForceKilled | Code::DeviceDisconnected => {
            (ErrorKind::Unavailable, StatusCode::SERVICE_UNAVAILABLE)
        }
    }
}

/// The problem for a failed operation: its text is `[CODE] operation: path (cause)`, and programs
/// find the failure in its members.
fn problem(error: &VfsError) -> Problem {
    let (kind, status) = status_of(error.code());
    // The path of the request may be as long as a URL.
    let path = shortened(&error.path);
    let told = VfsError::new(error.operation, path, (*error.failure).clone());
    let Failure { code, kind: word, message, details, is_told: _ } = &*error.failure;
    let failure = FileFailure {
        code: code.as_str().to_owned(),
        family: code.family().as_str().to_owned(),
        kind: word.clone(),
        message: message.clone(),
        details: details.as_deref().and_then(|text| serde_json::from_str(text).ok()),
    };
    let problem = Problem::new(kind, told.to_string()).with_status(status);
    problem.with_code(error.code().as_str()).with(|members| {
        members.operation = Some(error.operation.as_str().to_owned());
        members.failure = Some(failure);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = include_str!("../../../../docs/reference/files.md");

    /// The rows of the table of codes: the code and the status.
    fn rows() -> Vec<(&'static str, u16)> {
        let (_, table) = PAGE.split_once("| code | errno | HTTP | means |\n").expect("it is there");
        let rows = table.lines().skip(1).take_while(|line| line.starts_with('|'));
        let row = |line: &'static str| {
            let cells: Vec<_> = line.split('|').map(str::trim).collect();
            let [_, code, _, status, _, _] = cells[..] else { panic!("{line}") };
            (code.trim_matches('`'), status.parse().expect("a status"))
        };
        rows.map(row).collect()
    }

    /// D24: the table of the documentation page has each code once, with the status that this door
    /// answers.
    #[test]
    fn d24_the_table_of_the_page_has_each_code_with_its_status() {
        let mut told = rows();
        let mut answered: Vec<_> =
            Code::ALL.iter().map(|code| (code.as_str(), status_of(*code).1.as_u16())).collect();
        told.sort_unstable();
        answered.sort_unstable();
        assert_eq!(told, answered);
    }
}
