//! The operators' API: reads and changes servers, the catalog, runs and secrets.

mod access;
mod as_read;
mod attachments;
mod audit;
mod catalog;
pub(crate) mod changes;
mod claims;
mod clients;
mod connections;
mod definitions;
mod env_bindings;
mod events;
mod grants;
mod installation;
mod logins;
mod names;
mod once;
mod outbound;
mod policy;
mod profiles;
mod public_registry;
mod query;
mod runs;
mod secrets;
mod sessions;
mod shares;
mod sign_ins;
mod traffic;
mod transfer;
mod watched;
mod watching;

use std::{
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use http::{StatusCode, request::Parts};
use narthex_control::{By, Control, FileStatus};
use narthex_gateway::Place;
use narthex_model::{ErrorKind, Reader, WorkspaceId};
use narthex_registry::{ServerRow, Snapshot};
use percent_encoding::percent_decode_str;
use serde::Serialize;

#[cfg(test)]
pub(crate) use self::query::page_sizes;
pub(crate) use self::{
    access::delete_workspace, access::page_of, audit::audit_cursor, audit::audit_lines,
    audit::audit_place, audit::audit_query, catalog::sees_all_of, catalog::server_definition,
    events::EventTarget, events::heard, events::speaker, events::takes_messages,
    grants::GrantTarget, names::gates_unmatched, outbound::OutboundTarget, query::Query,
    runs::creator_of, shares::ShareTarget, watched::WatchTarget,
};
use crate::{
    Access,
    auth::{Principal, authorize},
    body::RequestBody,
    document::openapi,
    door::Door,
    problem::Problem,
    respond::{self, Response},
    routes::{AccessTarget, Segments, Target},
    rows,
    shapes::{self, Page, Reloaded, ServerRowPage, StatusPage},
    status,
};

/// A request of the API, without its body.
pub(crate) struct Asked<'a> {
    pub(crate) door: &'a Arc<Door>,
    pub(crate) target: Target,
    /// The segments of the path that match braces of the route, still encoded.
    pub(crate) segments: Segments<'a>,
    pub(crate) parts: &'a Parts,
    pub(crate) principal: Principal,
    /// The bytes that its body reserves until it is answered.
    pub(crate) held: Held,
}

/// Buffer reservations that last until a request of the API is answered.
#[derive(Debug, Default)]
pub(crate) struct Held(Mutex<Vec<Place>>);

impl Held {
    fn is_empty(&self) -> bool {
        self.places().is_empty()
    }

    fn add(&self, places: Vec<Place>) {
        self.places().extend(places);
    }

    /// Moves all reservations out, for another task that answers the request.
    fn moved(&self) -> Self {
        Self(Mutex::new(mem::take(&mut self.places())))
    }

    fn places(&self) -> MutexGuard<'_, Vec<Place>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The longest body that the API accepts, in bytes. An import may be that long: it is the limit for
/// parsing one text.
pub const API_BODY_MAX: usize = 4 * 1024 * 1024;

type Answered = Result<Response, Problem>;

impl<'a> Asked<'a> {
    /// A request for one of the API's routes.
    pub(crate) fn new(
        door: &'a Arc<Door>,
        target: Target,
        segments: Segments<'a>,
        parts: &'a Parts,
        principal: Principal,
    ) -> Self {
        Self { door, target, segments, parts, principal, held: Held::default() }
    }
}

impl Asked<'_> {
    /// Answers the request if the caller may use the route.
    pub(crate) async fn answer(&self, access: Access, body: RequestBody) -> Response {
        let answered = match authorize(access, &self.principal, || self.workspace()) {
            Ok(()) => self.asked(body).await,
            Err(problem) => {
                self.door.denied(&self.principal, self.parts.uri.path());
                Err(problem)
            }
        };
        // The first segment of these paths is the workspace.
        let is_of_workspace = self.parts.uri.path().starts_with("/api/workspaces/");
        answered.unwrap_or_else(|problem| {
            let problem = problem.read_by(&self.principal);
            match self.workspace() {
                Ok(workspace) if is_of_workspace => problem.in_workspace(&workspace).answer(),
                _ => problem.answer(),
            }
        })
    }

    async fn asked(&self, body: RequestBody) -> Answered {
        match self.idempotency_key()? {
            Some(key) => self.once(key, body).await,
            None => self.dispatch(body).await,
        }
    }

    async fn dispatch(&self, body: RequestBody) -> Answered {
        match self.target {
            Target::Metrics => Ok(status::metrics(&self.door.gateway)),
            Target::Status => self.status(&self.snapshot()),
            Target::Tools => self.tools(&self.snapshot()),
            Target::Servers => self.rows(&self.snapshot()),
            Target::Server => self.row(self.has_tools()?).map(|row| ok(&row)),
            Target::Events => self.events(),
            Target::ServerEntry => self.change_entry(body).await,
            Target::Disable => self.disable().await,
            Target::Enable => self.enable().await,
            Target::Reconnect => self.reconnect().await,
            Target::ServerSignIn(of) => self.of_sign_in(of).await,
            Target::Connection(of) => self.of_connections(of).await,
            Target::Test => self.test().await,
            Target::Logs => self.logs().await,
            Target::Reload => self.reload().await,
            Target::Files => self.files(),
            Target::Profiles => self.profiles(),
            Target::Profile => self.profile(),
            Target::Runs => self.workspace_runs(body).await,
            Target::Run => self.workspace_run(body).await,
            Target::Sessions => self.sessions().await,
            Target::Session => self.session(body).await,
            Target::Happening(of) => self.of_events(of, body).await,
            Target::Principals => self.principals(),
            Target::PrincipalCreate => self.create_principal(body).await,
            Target::Principal => self.principal(),
            Target::PrincipalChange => self.change_principal(body).await,
            Target::Me => self.me(),
            Target::OpenApi => self.openapi(),
            Target::LinkCreate => self.create_link().await,
            Target::Passkeys => self.passkeys().await,
            Target::PasskeyRemove => self.remove_passkey().await,
            Target::Access(of) => self.of_access(of, body).await,
            Target::Clients | Target::Client => self.of_clients(body).await,
            Target::Secrets => self.secrets().await,
            Target::Secret => self.change_secret(body).await,
            Target::RotateKey => self.rotate_key().await,
            Target::Installation(of) => self.of_installation(of).await,
            Target::Grants(of) => self.of_grants(of, body).await,
            Target::Outbound(of) => self.of_outbound(of, body).await,
            Target::Watched(of) => self.of_watching(of).await,
            Target::Shares(of) => self.of_shares(of, body).await,
            Target::Policy | Target::PolicyCheck => self.policy(body).await,
            Target::EnvBindings | Target::EnvBinding => self.of_env_bindings(body).await,
            Target::Objects(kind) => self.objects(kind, body).await,
            Target::Object(kind) => self.object(kind, body).await,
            Target::Definitions(verdict) => self.of_definitions(verdict, body).await,
            Target::PublicRegistry(of) => self.of_public_registry(of).await,
            Target::Attachments | Target::Attachment => self.of_attachments(body).await,
            Target::Connections => self.connections().await,
            Target::Export => self.export().await,
            Target::Import => self.import(body).await,
            Target::Limits | Target::Usage => self.traffic(body).await,
            Target::Validate => self.validate(body).await,
            Target::Preview => self.preview(body).await,
            Target::Audit => self.audit().await,
            Target::AuditSettings => self.audit_settings(body).await,
            // The door answers these routes itself.
            Target::SignIn(_)
            | Target::Program(_)
            | Target::Health
            | Target::Ready
            | Target::Aggregated
            | Target::Transparent
            | Target::InProfile
            | Target::ToolCall
            | Target::Vfs => Err(nothing_here()),
        }
    }

    async fn of_access(&self, of: AccessTarget, body: RequestBody) -> Answered {
        match of {
            AccessTarget::Workspaces => self.workspaces(),
            AccessTarget::WorkspaceCreate => self.create_workspace(body).await,
            AccessTarget::Workspace => self.show_workspace(),
            AccessTarget::WorkspaceChange => self.change_workspace(body).await,
            AccessTarget::WorkspaceDelete => self.delete_workspace().await,
            AccessTarget::Members => self.members(),
            AccessTarget::MemberSet => self.set_member(body).await,
            AccessTarget::MemberRemove => self.remove_member().await,
            AccessTarget::Tokens => self.tokens(),
            AccessTarget::TokenCreate => self.create_token(body).await,
            AccessTarget::TokenRevoke => self.revoke_token().await,
        }
    }

    /// The row of the named server. A server that the caller may not see is absent for it (D5).
    fn row(&self, has_tools: bool) -> Result<shapes::ServerRow, Problem> {
        let name = self.name()?;
        let row = self.seen(&name);
        let row = row.filter(|row| rows::may_see(row, &self.principal));
        let row = row.ok_or_else(|| unknown(&name))?;
        let (reader, pid) = (self.principal.reader(), rows::pid_of(&self.principal));
        let control = self.door.options.control.as_ref();
        Ok(rows::one(&row, reader, pid, has_tools).with_sign_in(&row, reader, control))
    }

    /// The servers that the caller may see. An operator's rows leave out servers that only single
    /// runs have.
    fn snapshot(&self) -> Arc<Snapshot> {
        let gateway = &self.door.gateway;
        match &self.principal {
            Principal::Run(run) => gateway.snapshot(run),
            Principal::Known(_) | Principal::Human(_) | Principal::LocalAdmin => {
                gateway.registry().snapshot()
            }
        }
    }

    fn seen(&self, name: &str) -> Option<Arc<ServerRow>> {
        let snapshot = self.snapshot();
        let is_it = |row: &&Arc<ServerRow>| !row.is_overridden && row.name == name;
        snapshot.servers.iter().find(is_it).cloned()
    }

    async fn reload(&self) -> Answered {
        self.query(&[])?;
        let reloaded = self.control()?.reload().await?;
        let files: Vec<_> = reloaded.files.iter().map(rows::file).collect();
        let count = reloaded.servers.len();
        Ok(ok(&Reloaded { server_count: count, servers: reloaded.servers, files }))
    }

    fn files(&self) -> Answered {
        // No provenance contains a comma.
        let key = |file: FileStatus| {
            (format!("{},{}", file.provenance.as_str(), file.file.display()), file)
        };
        let mut files: Vec<_> = self.control()?.files().into_iter().map(key).collect();
        files.sort_by(|one, other| one.0.cmp(&other.0));
        self.page(files, |(key, _)| key, |(_, file)| rows::file(file))
    }

    fn control(&self) -> Result<&Control, Problem> {
        self.door.options.control.as_ref().ok_or_else(|| {
            let text = "the servers of this process are fixed, so nothing can be changed here";
            Problem::new(ErrorKind::Conflict, text)
        })
    }

    /// The principal that makes a change.
    fn by(&self) -> By {
        self.principal.actor()
    }

    /// A segment of the path that matches braces of the route, decoded.
    fn segment(&self, index: usize) -> String {
        percent_decode_str(self.segments[index]).decode_utf8_lossy().into_owned()
    }

    /// The workspace of the path. Text that is not a workspace id is answered like an unknown
    /// workspace.
    fn workspace(&self) -> Result<WorkspaceId, Problem> {
        let text = percent_decode_str(self.segments[0]).decode_utf8_lossy();
        WorkspaceId::new(&text)
            .map_err(|error| Problem::new(ErrorKind::NotFound, error.to_string()))
    }

    /// The server's name, decoded (E148).
    fn name(&self) -> Result<String, Problem> {
        let decoded = percent_decode_str(self.segments[0]).decode_utf8();
        decoded.map(std::borrow::Cow::into_owned).map_err(|error| {
            Problem::new(ErrorKind::NotFound, format!("the server's name is not text: {error}"))
        })
    }

    fn has_tools(&self) -> Result<bool, Problem> {
        self.query(&["tools"])?.flag("tools")
    }

    fn rows(&self, snapshot: &Snapshot) -> Answered {
        let query = self.query(&["tools", "after", "limit"])?;
        let has_tools = query.flag("tools")?;
        let pid = rows::pid_of(&self.principal);
        let control = self.door.options.control.as_ref();
        let shown = |row: &ServerRow, reader| {
            rows::one(row, reader, pid, has_tools).with_sign_in(row, reader, control)
        };
        let (settled, page) = self.servers(&query, snapshot, shown)?;
        Ok(ok(&ServerRowPage { settled, page }))
    }

    fn status(&self, snapshot: &Snapshot) -> Answered {
        let query = self.query(&["after", "limit"])?;
        // A run calls the built-in tools as it calls those of servers, so its list has their rows
        // too.
        let own = match &self.principal {
            Principal::Run(run) => self.door.gateway.built_in_rows(run),
            Principal::Known(_) | Principal::Human(_) | Principal::LocalAdmin => Vec::new(),
        };
        let (settled, page) = match own.is_empty() {
            true => self.servers(&query, snapshot, status::server)?,
            false => {
                let all = Snapshot::joined(snapshot.seq, snapshot.servers.clone(), &own);
                self.servers(&query, &all, status::server)?
            }
        };
        Ok(ok(&StatusPage { settled, page }))
    }

    /// A page of the servers, and true if all servers have settled.
    fn servers<S>(
        &self,
        query: &Query,
        snapshot: &Snapshot,
        shown: impl Fn(&ServerRow, Reader) -> S,
    ) -> Result<(bool, Page<S>), Problem> {
        let rows = rows::in_order(snapshot, &self.principal);
        let reader = self.principal.reader();
        let page = page_of(query, rows, |(key, _)| key, |(_, row)| shown(row, reader))?;
        Ok((snapshot.is_settled(), page))
    }

    fn tools(&self, snapshot: &Snapshot) -> Answered {
        let (query, limit) = (self.query(&["after", "limit"])?, self.door.gateway.name_limit());
        Ok(ok(&status::tools(&query, snapshot, &self.principal, limit)?))
    }

    fn openapi(&self) -> Answered {
        self.query(&[])?;
        Ok(ok(openapi()))
    }
}

fn ok(shape: &impl Serialize) -> Response {
    document(StatusCode::OK, shape)
}

/// # Panics
/// When the shape is no JSON: no member of a shape has a fault, and all names are text.
fn document(status: StatusCode, shape: &impl Serialize) -> Response {
    let text = serde_json::to_vec(shape).expect("a shape of the API is JSON");
    respond::json(status, text.into())
}

fn nothing_here() -> Problem {
    Problem::new(ErrorKind::NotFound, "nothing is here")
}

fn unknown(name: &str) -> Problem {
    Problem::new(ErrorKind::NotFound, format!("there is no server `{name}`"))
}
