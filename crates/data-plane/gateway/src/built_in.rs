//! The built-in server, which every run has without an attachment (X-M1). The gateway answers
//! requests to it: it costs no process, no link and no task. A [`BuiltInServer`] defines and runs
//! its tools.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    pin::{Pin, pin},
    sync::{Arc, Mutex, PoisonError, Weak},
};

use bytes::Bytes;
use narthex_audit::Outcome;
use narthex_model::{Alias, BuiltInTools, CallError, Gates, ToolScope, ToolScopes, TrafficLimits};
use narthex_policy::{Item, Request, RunPolicy};
use narthex_registry::{ServerRow, Snapshot};
use narthex_upstream::{Inventory, InventoryEntry, Listed, ServerCapabilities};
use narthex_wire::{Era, Message, Raw, json::encode_string, rpc};
use serde_json::Value;

use crate::view::Handling;
use crate::view::{Part, View, parts};
use crate::{
    Answering, Caller, Endpoint, RunView, ToPage,
    call::{
        authorize::Target,
        own_answer::result,
        record::{CallRecord, unrecorded},
        refusal::Refusal,
        route::{not_found, own_item, text},
    },
    gateway::Shared,
    lists::pages::leads_to_pages,
};

/// The capabilities that the built-in server declares.
pub(crate) const BUILT_IN: ServerCapabilities = ServerCapabilities {
    tools: true,
    prompts: false,
    resources: false,
    subscribe: false,
    completions: false,
    logging: false,
    tasks: false,
    list_changed: true,
};
/// Number of sets of tools from which on sets that no run has any more are removed.
const PRUNED_FROM: usize = 64;

/// Prefix of its tools' names at aggregated endpoints.
const PREFIX: &str = "mcp__narthex__";

/// The tools of the built-in server (X-M2). A run has only the tools of its [`BuiltInTools`].
pub trait BuiltInServer: fmt::Debug + Send + Sync {
    /// The definitions of all its tools.
    fn definitions(&self) -> Vec<BuiltInTool<'_>>;

    /// The arguments with which a run asks for this grant by the asking tool; `None` if the run may
    /// not ask for grants.
    fn ask(&self, run: &RunView, lacking: &Lacking<'_>) -> Option<Value>;

    /// Instructions for a model before it calls any of these tools; empty if there are none.
    fn instructions(&self, has: &BuiltInTools) -> String;

    /// The tool of which `name` is another name, with the arguments in this tool's form. `None` if
    /// `name` is no other name of a tool.
    fn meant(&self, name: &str, arguments: Option<Raw<'_>>) -> Option<(&'static str, Vec<u8>)>;

    /// The arguments of a tool in the form for rules, if the same arguments have several spellings:
    /// otherwise a rule for one spelling would not apply to another. `None` if rules see the
    /// arguments as they are.
    fn shown(&self, name: &str, arguments: Option<Raw<'_>>) -> Option<Vec<u8>>;

    /// Checks the arguments of a tool against its input schema. Called before policy: a call that
    /// cannot be made uses no grant up.
    ///
    /// # Errors
    /// The fault in the arguments, for the caller.
    fn check(&self, name: &str, arguments: Option<Raw<'_>>) -> Result<(), CallError>;

    /// Calls a tool. A call that has started runs to its end, also if its caller stops waiting.
    fn call<'a>(&'a self, call: BuiltInCall<'a>) -> BuiltInAnswer<'a>;
}

/// The definition of a built-in tool.
#[derive(Debug, Clone)]
pub struct BuiltInTool<'a> {
    /// The tool's own name, without a prefix.
    pub name: &'a str,
    /// The tool's entry in `tools/list`: a JSON object.
    pub definition: Bytes,
    /// The scopes that a caller needs grants for.
    pub scopes: ToolScopes,
    /// True for the one tool with which runs ask for grants.
    pub is_for_asking: bool,
}

/// The permission that a call lacks.
#[derive(Debug, Clone, Copy)]
pub struct Lacking<'a> {
    /// The scope that has not been granted.
    pub scope: &'a ToolScope,
    /// The server's name in grants.
    pub server: &'a str,
    /// The server's own name of the tool, prompt or resource; empty for the server as such.
    pub name: &'a str,
}

/// A call of a built-in tool.
#[derive(Debug, Clone, Copy)]
pub struct BuiltInCall<'a> {
    /// The caller.
    pub caller: &'a Caller,
    /// The tool's own name.
    pub name: &'a str,
    /// The arguments: JSON of any kind, or absent.
    pub arguments: Option<Raw<'a>>,
    /// True if the client can lead its user to a page, and this call has not asked it to yet.
    pub leads_to_pages: bool,
    /// The [`ToPage::id`] of an earlier question, as the client repeats the id: it proves nothing.
    pub asked: Option<Raw<'a>>,
}

/// The answer of a built-in tool.
pub type BuiltInAnswer<'a> =
    Pin<Box<dyn Future<Output = Result<BuiltInResult, CallError>> + Send + 'a>>;

/// The result of a built-in tool.
#[derive(Debug)]
pub struct BuiltInResult {
    /// The text for a model.
    pub text: String,
    /// The result for programs: an object.
    pub structured: Value,
    /// True if the text has all that a model needs. Otherwise the object follows the text as JSON,
    /// for clients that show only text to their model.
    pub is_told: bool,
    /// The page to which the client leads its user as well; only if the client can do that.
    pub to_page: Option<ToPage>,
}

/// The tools, and the lists and gates made once from their definitions.
#[derive(Debug)]
pub(crate) struct BuiltIn {
    pub(crate) tools: Arc<dyn BuiltInServer>,
    all: Arc<Inventory>,
    /// The tool that asks for grants.
    asking: String,
    /// The tools for callers that see all that is configured, where any of it requires a grant.
    live: Arc<Offered>,
    /// The tools that the built-in server has under another alias.
    orchestration: Arc<Offered>,
    /// The tools of runs by their set, for as long as one run has them.
    kept: Mutex<HashMap<BuiltInTools, Weak<Offered>>>,
    gates: Gates,
}

/// The tools that a run has of the built-in server.
#[derive(Debug)]
pub(crate) struct Offered {
    pub(crate) inventory: Arc<Inventory>,
    facts: Bytes,
    /// Its own endpoint's.
    view: View,
}

impl Offered {
    fn new(shared: &Shared, tools: &dyn BuiltInServer, has: &BuiltInTools) -> Self {
        let mut all = tools.definitions();
        all.retain(|tool| has.has(tool.name));
        let entry = |tool: &BuiltInTool<'_>| {
            (Listed::Tool, InventoryEntry::new(tool.name, tool.definition.clone()))
        };
        let inventory = Arc::new(Inventory::new(all.iter().map(entry)));
        let bare: Vec<_> = all.iter().map(|tool| tool.definition.clone()).collect();
        let view = shared.build_view(0, &[]).listing(&bare, &shared.options.server_info);
        let instructions = tools.instructions(has);
        let facts = match instructions.is_empty() {
            true => Bytes::from_static(b"{}"),
            false => {
                let instructions = encode_string(&instructions);
                [br#"{"instructions":"#, &instructions[..], b"}"].concat().into()
            }
        };
        Self { inventory, facts, view }
    }

    fn has(&self, name: &str) -> bool {
        self.inventory.tool(name).is_some()
    }

    fn is_empty(&self) -> bool {
        self.inventory.tools.is_empty()
    }

    /// The instructions of its endpoint for a model; a JSON string.
    pub(crate) fn instructions(&self) -> Option<&[u8]> {
        Raw::new(&self.facts).get("instructions").map(Raw::as_bytes)
    }

    /// True if its endpoint has instructions for a model.
    pub(crate) fn tells_models(&self) -> bool {
        self.instructions().is_some()
    }
}

impl BuiltIn {
    pub(crate) fn new(shared: &Shared, tools: Arc<dyn BuiltInServer>) -> Self {
        let all = tools.definitions();
        let scopes = all.iter().map(|tool| (tool.name.to_owned(), tool.scopes.clone()));
        let gates = Gates::new(scopes.collect(), &BTreeMap::new(), BTreeMap::new());
        let asking = all.iter().find(|tool| tool.is_for_asking);
        let asking = asking.map(|tool| tool.name.to_owned()).unwrap_or_default();
        let offered = |has: &BuiltInTools| Arc::new(Offered::new(shared, &*tools, has));
        let (live, orchestration) =
            (offered(&BuiltInTools::live()), offered(&BuiltInTools::orchestration()));
        let all = offered(&BuiltInTools::All).inventory.clone();
        Self { tools, all, asking, live, orchestration, kept: Mutex::default(), gates }
    }

    /// The target for policy, besides the run and the call.
    pub(crate) fn target(&self) -> Target<'_> {
        Target::built_in(&self.all, &self.gates)
    }

    pub(crate) fn inventory(&self) -> &Arc<Inventory> {
        &self.all
    }

    /// The tools of runs whose set of tools this is; the same for all of them.
    fn offered(&self, shared: &Shared, has: &BuiltInTools) -> Arc<Offered> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(offered) = kept.get(has).and_then(Weak::upgrade) {
            return offered;
        }
        if kept.len() >= PRUNED_FROM {
            kept.retain(|_, offered| offered.strong_count() > 0);
        }
        let offered = Arc::new(Offered::new(shared, &*self.tools, has));
        kept.insert(has.clone(), Arc::downgrade(&offered));
        offered
    }
}

impl Shared {
    /// The parts of a view: the servers that policy attaches, and the built-in one.
    pub(crate) fn parts(
        &self,
        snapshot: &Snapshot,
        policy: &RunPolicy,
        run: Option<&RunView>,
    ) -> Vec<Part> {
        let mut parts = parts(snapshot, policy);
        for (alias, offered) in self.offers(snapshot, policy, run) {
            let (inventory, facts) = (offered.inventory.clone(), offered.facts.clone());
            parts.push(Part::built_in(alias, inventory, BUILT_IN, facts));
        }
        parts
    }

    /// The built-in server's tools for a run, one entry for the server's own name and for each name
    /// that the run's agent gives it. Without a run: the tools of a caller with this policy.
    pub(crate) fn offers(
        &self,
        snapshot: &Snapshot,
        policy: &RunPolicy,
        run: Option<&RunView>,
    ) -> Vec<(Alias, Arc<Offered>)> {
        let Some(built_in) = self.built_in.get() else { return Vec::new() };
        let own = self.own_offer(snapshot, policy, run).filter(|offered| !offered.is_empty());
        let own = own.map(|offered| (Alias::built_in(), offered));
        let named = run.into_iter().flat_map(RunView::built_in_names);
        let named = named.map(|alias| (alias.clone(), built_in.orchestration.clone()));
        own.into_iter().chain(named).collect()
    }

    /// The tools that a run is offered, by name of the server.
    pub(crate) fn built_in_of(&self, run: &RunView) -> Vec<Arc<Inventory>> {
        let offers = self.offers(&self.snapshot(run), &run.policy, Some(run));
        offers.into_iter().map(|(_, offered)| offered.inventory.clone()).collect()
    }

    /// The name by which a run is offered a tool that policy knows as `ruled`; `None` where that is
    /// the same, or the run is offered neither.
    pub(crate) fn offered_name(&self, run: &RunView, ruled: &str) -> Option<&'static str> {
        let mut further = BuiltInTools::further_names().filter(|(_, of)| *of == ruled).peekable();
        further.peek()?;
        let offered = self.built_in_of(run);
        let has = |name: &str| offered.iter().any(|all| all.tool(name).is_some());
        if has(ruled) {
            return None;
        }
        further.find(|(name, _)| has(name)).map(|(name, _)| name)
    }

    /// As [`Self::built_in_of`], as rows for a run that lists its servers.
    pub(crate) fn built_in_rows(&self, run: &RunView) -> Vec<Arc<ServerRow>> {
        let offers = self.offers(&self.snapshot(run), &run.policy, Some(run));
        let row = |(alias, offered): (Alias, Arc<Offered>)| {
            Arc::new(ServerRow::built_in(alias, offered.inventory.clone()))
        };
        offers.into_iter().map(row).collect()
    }

    /// The tools that a run has of the built-in server under its own name (D29). A caller that sees
    /// all that is configured gets only tools to ask for grants and to hear the answer. It gets
    /// these where any tool requires a grant.
    fn own_offer(
        &self,
        snapshot: &Snapshot,
        policy: &RunPolicy,
        run: Option<&RunView>,
    ) -> Option<Arc<Offered>> {
        let built_in = self.built_in.get()?;
        if let Some((run, has)) = run.and_then(|run| Some((run, run.built_in_tools()?))) {
            return Some(run.offered(|| built_in.offered(self, has)).clone());
        }
        let is_gated = |row: &Arc<ServerRow>| {
            let is_attached = row.alias.as_ref().is_some_and(|alias| policy.is_attached(alias));
            is_attached
                && row.definition.as_ref().is_some_and(|definition| !definition.gates.is_empty())
        };
        snapshot.servers.iter().any(is_gated).then(|| built_in.live.clone())
    }

    /// The built-in server's tools at an endpoint of the caller with one of the server's names.
    pub(crate) fn offered_at(&self, caller: &Caller, alias: &Alias) -> Option<Arc<Offered>> {
        let run = &caller.run;
        match alias.is_built_in() {
            true => self.own_offer(&self.snapshot(run), &run.policy, Some(run)),
            false => self.built_in.get().map(|built_in| built_in.orchestration.clone()),
        }
    }

    /// The tools of the built-in server that a name at the aggregated endpoint belongs to, with the
    /// tool's own name.
    fn addressed<'n>(&self, caller: &Caller, name: &'n str) -> Option<(Arc<Offered>, &'n str)> {
        let run = &caller.run;
        let (offered, own) = match name.strip_prefix(PREFIX) {
            Some(own) => (self.offered_at(caller, &Alias::built_in())?, own),
            None => {
                let rest = name.strip_prefix("mcp__")?;
                let (alias, own) = run.built_in_names().find_map(|alias| {
                    let own = rest.strip_prefix(alias.as_str())?.strip_prefix("__")?;
                    Some((alias, own))
                })?;
                (self.offered_at(caller, alias)?, own)
            }
        };
        let is_its = !offered.is_empty() && run.built_in_tools().is_some() || offered.has(own);
        is_its.then_some((offered, own))
    }

    /// True if a call at the aggregated endpoint is one of a built-in tool.
    pub(crate) fn is_built_in_call(
        &self,
        caller: &Caller,
        handling: Handling,
        request: &Message,
    ) -> bool {
        let named = request.get("name").filter(|_| handling == Handling::Tool);
        let name = named.and_then(Raw::as_str);
        name.is_some_and(|name| self.addressed(caller, &name).is_some())
    }

    /// Name of the tool for asking at the caller's endpoint; `None` if the run does not have it. At
    /// the endpoints of servers it is that of the built-in one.
    pub(crate) fn asking_tool(&self, caller: &Caller) -> Option<String> {
        let (built_in, run) = (self.built_in.get()?, &caller.run);
        let name = &built_in.asking;
        let own = self.own_offer(&self.snapshot(run), &run.policy, Some(run));
        own.filter(|offered| offered.has(name))?;
        Some(match caller.endpoint {
            Endpoint::Transparent(_) => name.clone(),
            Endpoint::Aggregated => format!("{PREFIX}{name}"),
        })
    }

    /// Answers a request to it.
    pub(crate) async fn built_in(
        self: &Arc<Self>,
        caller: &Caller,
        handling: Handling,
        request: Message,
    ) -> Result<Answering, Refusal> {
        match handling {
            Handling::Ping => Ok(result(&request, &Bytes::from_static(b"{}"))),
            Handling::Discover => {
                let offered = self.offered_here(caller);
                let instructions = offered.as_ref().and_then(|offered| offered.instructions());
                let body = self.own_discover(&BUILT_IN, &self.options.server_info, instructions);
                Ok(result(&request, &body))
            }
            Handling::List(kind) => match self.offered_here(caller) {
                Some(offered) => Self::page(&offered.view, caller, kind, &request),
                None => Self::page(&self.build_view(0, &[]), caller, kind, &request),
            },
            Handling::Listen => self.listen(caller, request).await,
            Handling::Tool => self.built_in_tool(caller, request).await,
            Handling::Prompt | Handling::Resource | Handling::Task => {
                let item = own_item(handling, &request)?;
                let refusal = not_found(handling, item.name());
                Err(self.refused(caller, handling, &request, refusal))
            }
            Handling::Subscribe { .. }
            | Handling::Complete
            | Handling::SetLevel
            | Handling::TaskList
            | Handling::Vendor => Err(Refusal::unknown_method(request.method())),
        }
    }

    /// The tools that the run has at the caller's endpoint, if that is one of the built-in server.
    fn offered_here(&self, caller: &Caller) -> Option<Arc<Offered>> {
        match &caller.endpoint {
            Endpoint::Transparent(alias) => self.offered_at(caller, alias),
            Endpoint::Aggregated => None,
        }
    }

    /// Calls a tool: counted, recorded and decided on as any other (D13).
    async fn built_in_tool(
        self: &Arc<Self>,
        caller: &Caller,
        request: Message,
    ) -> Result<Answering, Refusal> {
        let called = text(&request, "name")?;
        let of = match caller.endpoint {
            Endpoint::Aggregated => self.addressed(caller, &called),
            Endpoint::Transparent(_) => {
                self.offered_here(caller).map(|offered| (offered, &*called))
            }
        };
        let has = of.as_ref().is_some_and(|(offered, own)| offered.has(own));
        let own = of.as_ref().map_or(&*called, |(_, own)| own);
        let built_in = self.built_in.get().filter(|_| has);
        let meant = built_in.and_then(|one| one.tools.meant(own, request.get("arguments")));
        let (name, meant) = match meant {
            Some((name, arguments)) => (name, Some(arguments)),
            None => (own, None),
        };
        let alias = Alias::built_in();
        let item = Item::Tool(name.into());
        // A client gives one up that waits, as any other call.
        let call = self.open(caller, Handling::Tool, request.clone())?;
        let open = Some(self.calls.token());
        let told = self.clean_item(caller, &item);
        let record = self.begin_record(caller, Some(alias.clone()), &request, told, open);
        let mut record = record.map_err(unrecorded)?;
        let mut asked = Request::new(alias, request, item);
        let arguments = meant.as_deref().map(Raw::new).or_else(|| asked.message.get("arguments"));
        let shown = built_in.and_then(|one| one.tools.shown(asked.item.name(), arguments));
        asked.shown = shown.or(meant).map(Into::into);
        let answered = {
            let calling = pin!(self.built_in_answer(caller, built_in, asked, &mut record));
            call.unless_given_up(calling).await
        };
        match answered {
            Ok(answering) => Ok(answering),
            Err(refusal) => {
                record.refused(&refusal);
                Err(refusal)
            }
        }
    }

    async fn built_in_answer(
        self: &Arc<Self>,
        caller: &Caller,
        built_in: Option<&BuiltIn>,
        request: Request,
        record: &mut CallRecord,
    ) -> Result<Answering, Refusal> {
        let name = request.item.name().to_owned();
        let built_in = built_in.ok_or_else(|| not_found(Handling::Tool, &name))?;
        let no_limits = TrafficLimits::default;
        record.admitted(self.admit(caller, Some(&request.alias), no_limits, true)?);
        let arguments = request.shown.as_deref().map(Raw::new);
        let arguments = arguments.or_else(|| request.message.get("arguments"));
        built_in.tools.check(&name, arguments).map_err(Refusal::Own)?;
        let permitted = self.permit(caller, built_in.target(), request, &[]).await?;
        record.allowed(permitted.basis());
        record.set_sent(true);
        let request = &permitted.message;
        let call = BuiltInCall {
            caller,
            name: &name,
            // The call gets the arguments that rules have seen.
            arguments: permitted.shown.as_deref().map(Raw::new).or(request.get("arguments")),
            leads_to_pages: leads_to_pages(caller, request),
            asked: request.get("requestState"),
        };
        let answered = built_in.tools.call(call).await.map_err(Refusal::Own)?;
        let BuiltInResult { text, structured, is_told, to_page } = answered;
        let json = (!is_told).then(|| structured.to_string());
        let texts = [Some(text), json];
        let texts = || texts.iter().flatten().map(String::as_str);
        let (is_modern, id) = (caller.era() == Era::Modern, request.id());
        let (body, first) = match (to_page, &caller.session) {
            (Some(page), None) => (page.result(), None),
            (Some(page), Some(session)) => {
                let first = self.lead_to(session, page);
                (rpc::tool_result(texts(), &structured, is_modern), first)
            }
            (None, _) => (rpc::tool_result(texts(), &structured, is_modern), None),
        };
        let payload = rpc::result_response(id.unwrap_or(Raw::new(b"null")), &Bytes::from(body));
        record.answered(Outcome::Ok, &payload);
        Ok(Answering::ready(payload, 200).after(first))
    }
}
