//! `apply`, `export` and `import`: objects of the catalog between files and the daemon, several at
//! once as a whole.

use std::{path::Path, process::ExitCode, rc::Rc};

use crate::cli::{ApplyArgs, ExportArgs, ImportArgs, WorkspaceArgs};
use crate::documents::{Document, HEADERS, PastedFault, PastedServer, differences};
use http::Method;
use narthex_model::{CatalogKind, ErrorKind, command::narthex};
use serde_json::{Map, Value, json};

use super::{
    catalog::{show, text, warn},
    waiting::waiting,
};
use crate::{
    Context, Failure,
    daemon_client::{ApiRequest, DaemonClient, workspace_path},
    output::{self, harmless},
};

/// The place of a fault of the whole request, in the words of the API.
const WHOLE: &str = "body";

/// The objects to store, and the document that each of them came from.
#[derive(Default)]
struct Bundle {
    servers: Vec<Given>,
    capabilities: Vec<Given>,
    agents: Vec<Given>,
    /// The faults that are known before the request, each with its file, its place and its line.
    faults: Vec<Value>,
}

/// An object, and the document that it is, or is a part of.
struct Given {
    value: Value,
    from: Rc<Document>,
    /// The places of its parts in the document, for a server in the form of desktop clients.
    part: Option<PastedServer>,
}

/// A place in a file.
#[derive(Default)]
struct Written {
    source: Option<String>,
    field: String,
    line: Option<u64>,
    /// True for a key next to which a desktop client's file may have `headers`.
    has_headers: bool,
}

pub(crate) async fn apply(
    kind: CatalogKind,
    args: &ApplyArgs,
    context: &Context,
) -> Result<ExitCode, Failure> {
    if args.prune && kind != CatalogKind::Agent {
        let text = "--prune applies to servers inside agents only; leave it out";
        return Err(Failure::usage(text));
    }
    if args.format.is_some() && kind != CatalogKind::Server {
        return Err(Failure::usage("--format applies to files of servers only; leave it out"));
    }
    let documents = match kind {
        CatalogKind::Server => crate::documents::read_servers(&args.file, args.format.as_deref())?,
        CatalogKind::Capability | CatalogKind::Agent => crate::documents::read(&args.file)?,
    };
    let mut bundle = Bundle::default();
    for document in documents {
        bundle.add(kind, document);
    }
    let asked = Asked {
        place: &args.place,
        is_dry: args.dry_run,
        is_pruned: args.prune,
        is_offline: args.is_offline,
        context,
    };
    if !bundle.faults.is_empty() {
        return Err(bundle.refused(&asked).await);
    }
    let stored = asked.send(&bundle.document()).await;
    let mut stored = stored.map_err(|failure| bundle.with_sources(failure))?;
    for warning in stored["warnings"].as_array_mut().into_iter().flatten() {
        let written = bundle.written(text(warning, "field"));
        written.note(warning);
    }
    asked.tell(&stored)
}

/// Prints the merged view of the agent that a file holds.
pub(crate) async fn preview(
    file: &Path,
    place: &WorkspaceArgs,
    context: &Context,
) -> Result<ExitCode, Failure> {
    let mut bundle = Bundle::default();
    for document in crate::documents::read(file)? {
        bundle.add(CatalogKind::Agent, document);
    }
    let [Given { value: agent, .. }] = bundle.agents.as_slice() else {
        let text = "a preview shows one agent; name a file with one agent";
        return Err(Failure::new(ErrorKind::Invalid, text));
    };
    if agent["mcp"].get("servers").is_some() {
        output::notice(
            "warning: servers inside of the agent are not in the catalog before `apply`",
        );
    }
    let client = DaemonClient::operator(&context.daemon)?;
    let request = ApiRequest::new(Method::POST, workspace_path(&place.workspace, "/preview"));
    let asked = client.api(request.entry(&agent.to_string()));
    let merged = waiting("asking the daemon", context, asked).await;
    show(&merged.map_err(|failure| bundle.with_sources(failure))?, context)
}

pub async fn import(args: &ImportArgs, context: &Context) -> Result<ExitCode, Failure> {
    let read = crate::documents::read(&args.file)?;
    let [document] = read.as_slice() else {
        let export = narthex("export", &[]);
        let text = format!("the input has several documents; `{export}` prints one");
        return Err(Failure::new(ErrorKind::Invalid, text));
    };
    let asked = Asked {
        place: &args.place,
        is_dry: args.dry_run,
        is_pruned: false,
        is_offline: args.is_offline,
        context,
    };
    let sent = asked.send(&document.value).await;
    let mut stored = sent.map_err(|failure| in_document(document, failure))?;
    for warning in stored["warnings"].as_array_mut().into_iter().flatten() {
        Written::at(document, text(warning, "field")).note(warning);
    }
    asked.tell(&stored)
}

/// A refusal of one document, with the places in its file instead of the places in the request.
fn in_document(document: &Document, mut failure: Failure) -> Failure {
    let errors = failure.details.as_mut().and_then(|details| details["errors"].as_array_mut());
    let Some(errors) = errors else { return failure };
    for error in errors.iter_mut() {
        Written::at(document, text(error, "field")).note(error);
    }
    failure.message = refusal(errors);
    failure
}

/// The message of a refusal: a line for each fault.
fn refusal(errors: &[Value]) -> String {
    let lines: Vec<_> = errors.iter().map(line).collect();
    format!("nothing was stored:\n{}", lines.join("\n"))
}

pub async fn export(args: &ExportArgs, context: &Context) -> Result<ExitCode, Failure> {
    let client = DaemonClient::operator(&context.daemon)?;
    let path = workspace_path(&args.place.workspace, "/export");
    let document = waiting("asking the daemon", context, client.api_get(path)).await?;
    for secret in document["secrets"].as_array().into_iter().flatten() {
        if secret["is_set"] == false {
            let name = harmless(text(secret, "name"));
            output::notice(&format!(
                "warning: a literal value was left out; store it as the secret {name}"
            ));
        }
    }
    if context.format.is_json() {
        output::done(&document)?;
    } else {
        output::line(crate::documents::yaml(&document)?.trim_end())?;
    }
    Ok(ExitCode::SUCCESS)
}

impl Bundle {
    fn add(&mut self, kind: CatalogKind, document: Document) {
        let from = Rc::new(document);
        let (source, value) = (&from.source, &from.value);
        let whole = || Given { value: value.clone(), from: from.clone(), part: None };
        match kind {
            CatalogKind::Server => {
                let Some(pasted) = crate::documents::take_out(&from) else {
                    self.servers.push(whole());
                    return;
                };
                let fault = |PastedFault { place, message, remedy }: PastedFault| {
                    json!({ "field": place, "code": "value_invalid", "source": source,
                            "line": from.line(&place), "message": message, "remedy": remedy })
                };
                self.faults.extend(pasted.faults.into_iter().map(fault));
                for notice in pasted.notices {
                    output::notice(&harmless(&format!("{source}: {notice}")));
                }
                let part = |part: PastedServer| Given {
                    value: part.value.clone(),
                    from: from.clone(),
                    part: Some(part),
                };
                self.servers.extend(pasted.servers.into_iter().map(part));
            }
            CatalogKind::Capability => self.capabilities.push(whole()),
            // The daemon takes it apart, if it has servers inside.
            CatalogKind::Agent => self.agents.push(whole()),
        }
    }

    /// Why a bundle with faults is not stored: these, and all that the daemon finds in the rest,
    /// which it only checks. Without a daemon, these alone.
    async fn refused(&self, asked: &Asked<'_>) -> Failure {
        let check = Asked { is_dry: true, ..*asked };
        let found = match check.send(&self.document()).await {
            Err(failure)
                if failure.details.as_ref().is_some_and(|all| all["errors"].is_array()) =>
            {
                failure
            }
            Ok(_) | Err(_) => {
                Failure::new(ErrorKind::Invalid, "").with_details(Some(json!({ "errors": [] })))
            }
        };
        self.with_sources(found)
    }

    /// True if a fault was found here, at this place or around it, so that it is reported already.
    fn is_told(&self, written: &Written) -> bool {
        let is_around = |fault: &Value| {
            let rest = written.field.strip_prefix(text(fault, "field"));
            fault["source"] == json!(written.source)
                && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        self.faults.iter().any(is_around)
    }

    fn groups(&self) -> [(&'static str, &[Given]); 3] {
        [("servers", &self.servers), ("capabilities", &self.capabilities), ("agents", &self.agents)]
    }

    fn document(&self) -> Value {
        let group = |(name, objects): (&str, &[Given])| {
            (name.to_owned(), objects.iter().map(|given| given.value.clone()).collect())
        };
        Value::Object(self.groups().into_iter().map(group).collect::<Map<_, Value>>())
    }

    /// A refusal that names files instead of places in the request.
    fn with_sources(&self, mut failure: Failure) -> Failure {
        let errors = failure.details.as_mut().and_then(|details| details["errors"].as_array_mut());
        let Some(errors) = errors else { return failure };
        let found = std::mem::replace(errors, self.faults.clone());
        for mut error in found {
            let written = self.written(text(&error, "field"));
            if self.is_told(&written) {
                continue;
            }
            if written.has_headers {
                error["remedy"] = with_headers(text(&error, "remedy")).into();
            }
            written.note(&mut error);
            errors.push(error);
        }
        failure.message = refusal(errors);
        failure
    }

    /// The file of a place such as `agents[0].mcpServers`, and the place and the line there.
    fn written(&self, field: &str) -> Written {
        // A member of an object may have this name, too: it has a line.
        let is_whole = field == WHOLE;
        let found = self.groups().into_iter().find_map(|(name, objects)| {
            let (index, rest) = field.strip_prefix(name)?.strip_prefix('[')?.split_once(']')?;
            let given = objects.get(index.parse::<usize>().ok()?)?;
            Some((given, rest.strip_prefix('.').unwrap_or(rest)))
        });
        // A request for one agent alone is sent without a group.
        let alone = || match (self.agents.as_slice(), field.split(['.', '[']).next()) {
            (_, Some("servers" | "capabilities" | "agents" | "secrets")) => None,
            ([only], _) if self.servers.is_empty() => Some((only, field)),
            _ => None,
        };
        let Some((given, field)) = found.or_else(alone) else {
            return Written { field: field.to_owned(), ..Written::default() };
        };
        let place = match &given.part {
            Some(part) => part.place(field),
            None => field.to_owned(),
        };
        let line = if is_whole { None } else { given.from.line(&place) };
        let source = Some(given.from.source.clone());
        let has_headers = given.part.is_some() && !field.contains(['.', '[']);
        Written { source, field: place, line, has_headers }
    }
}

impl Written {
    /// A place in the one document that was sent as it is.
    fn at(document: &Document, field: &str) -> Self {
        let line = if field == WHOLE { None } else { document.line(field) };
        let source = Some(document.source.clone());
        Self { source, field: field.to_owned(), line, has_headers: false }
    }

    /// Adds it to a fault or a warning, for programs.
    fn note(&self, told: &mut Value) {
        told["field"] = json!(self.field);
        told["source"] = json!(self.source);
        told["line"] = json!(self.line);
    }
}

/// A fault for people, with its place in front.
fn line(error: &Value) -> String {
    format!("{}{}; {}", place_of(error), text(error, "message"), text(error, "remedy"))
}

/// The file and the place of a fault or a warning, in front of its text. A fault of the whole
/// request is at no place that a person can look up.
pub(super) fn place_of(told: &Value) -> String {
    let source = told["source"].as_str().map(|source| format!("{source}: ")).unwrap_or_default();
    let place = match (text(told, "field"), told["line"].as_u64()) {
        ("", _) | (WHOLE, None) => String::new(),
        (field, None) => format!("`{field}`: "),
        (field, Some(line)) => format!("`{field}` (line {line}): "),
    };
    format!("{source}{place}")
}

/// A request to store something, and who wants to hear of it.
struct Asked<'a> {
    place: &'a WorkspaceArgs,
    is_dry: bool,
    is_pruned: bool,
    is_offline: bool,
    context: &'a Context,
}

impl Asked<'_> {
    async fn send(&self, document: &Value) -> Result<Value, Failure> {
        let client = DaemonClient::operator(&self.context.daemon)?;
        let offline = if self.is_offline { "&offline=true" } else { "" };
        let query = format!("?dry_run={}&prune={}{offline}", self.is_dry, self.is_pruned);
        let path = workspace_path(&self.place.workspace, &format!("/import{query}"));
        let request = ApiRequest::new(Method::POST, path).entry(&document.to_string());
        waiting("storing", self.context, client.api(request)).await
    }

    fn tell(&self, done: &Value) -> Result<ExitCode, Failure> {
        if self.context.format.is_json() {
            output::done(done)?;
            return Ok(ExitCode::SUCCESS);
        }
        warn(done);
        if self.context.format.is_quiet() {
            return Ok(ExitCode::SUCCESS);
        }
        for change in done["changes"].as_array().into_iter().flatten() {
            let (kind, id) = (text(change, "kind"), text(change, "id"));
            let what = match (text(change, "change"), self.is_dry) {
                ("unchanged", _) => "unchanged",
                ("deleted", _) => "deleted",
                ("created", false) => "created",
                ("created", true) => "would create",
                (_, false) => "updated",
                (_, true) => "would update",
            };
            output::line(&harmless(&format!("{what} the {kind} {id}")))?;
            if self.is_dry && text(change, "change") == "updated" {
                let mut lines = differences(&change["before"], &change["after"]);
                if lines.is_empty() {
                    lines.push("a hidden value".to_owned());
                }
                for line in lines {
                    output::line(&harmless(&format!("  {line}")))?;
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The remedy of an unknown key of a server in a file of a desktop client, whose list of keys has
/// `headers`, too.
fn with_headers(remedy: &str) -> String {
    match remedy.starts_with("remove it; the keys here are ") {
        true => format!("{remedy}, `{HEADERS}`"),
        false => remedy.to_owned(),
    }
}

#[cfg(test)]
mod tests;
