//! The server that every run has without attaching it (X-M1). What is asked of it is answered here:
//! it costs no process, no link and no task. What its tools do is said by [`BuiltInTools`].

use std::{collections::BTreeMap, fmt, pin::Pin, sync::Arc};

use bytes::Bytes;
use narthex_audit::Outcome;
use narthex_model::{Alias, CallError, Gates, ToolScope, ToolScopes, TrafficLimits};
use narthex_policy::{Item, Request, RunPolicy};
use narthex_registry::{ServerRow, Snapshot};
use narthex_upstream::{Inventory, InventoryEntry, Listed, ServerCapabilities};
use narthex_view::{Part, View, parts};
use narthex_wire::{Era, Message, Raw, json::encode_string, rpc};
use serde_json::Value;

use crate::{
    Answering, Caller, Endpoint, RunView, ToPage,
    gateway::Shared,
    grants::Target,
    open::{open_call, unless_given_up},
    pages::leads_to_pages,
    pipeline::{result, unrecorded},
    record::CallRecord,
    refusal::Refusal,
    route::{not_found, own_item, text},
};
use narthex_view::Handling;

/// What it says that it has.
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
/// What stands before its tools' names at aggregated endpoints.
const PREFIX: &str = "mcp__narthex__";

/// The tools of the built-in server (X-M2). They are the same for all runs.
pub trait BuiltInTools: fmt::Debug + Send + Sync {
    /// What is said of each.
    fn definitions(&self) -> Vec<BuiltInTool<'_>>;

    /// With what arguments the tool that is for asking is called for a grant; `None` where the
    /// run may ask for nothing.
    fn ask(&self, run: &RunView, lacking: &Lacking<'_>) -> Option<Value>;

    /// What a model should know before it calls any of them.
    fn instructions(&self) -> &str;

    /// The arguments of one as rules are to see them, where what is sent can be written otherwise
    /// and mean the same: else a rule for one spelling would not count for another.
    fn shown(&self, name: &str, arguments: Option<Raw<'_>>) -> Option<Vec<u8>>;

    /// What is wrong with the arguments of one, by what it says that it takes. Asked before policy:
    /// a call that cannot be made uses no grant up.
    ///
    /// # Errors
    /// What is wrong, for whoever calls.
    fn check(&self, name: &str, arguments: Option<Raw<'_>>) -> Result<(), CallError>;

    /// Calls one of them. What was begun goes on to its end if nobody waits for it.
    fn call<'a>(&'a self, call: BuiltInCall<'a>) -> BuiltInAnswer<'a>;
}

/// A built-in tool as it is listed.
#[derive(Debug, Clone)]
pub struct BuiltInTool<'a> {
    /// Its name.
    pub name: &'a str,
    /// A JSON object, as `tools/list` has it.
    pub definition: Bytes,
    /// What whoever calls it must have been granted.
    pub scopes: ToolScopes,
    /// Whether it is what runs ask for grants by. One of all is.
    pub is_for_asking: bool,
}

/// What a call lacks.
#[derive(Debug, Clone, Copy)]
pub struct Lacking<'a> {
    /// The scope that nobody has granted.
    pub scope: &'a ToolScope,
    /// The server, as grants know it.
    pub server: &'a str,
    /// The server's own name of the tool, prompt or resource; empty for the server as such.
    pub name: &'a str,
}

/// A call of a built-in tool.
#[derive(Debug, Clone, Copy)]
pub struct BuiltInCall<'a> {
    /// Who calls.
    pub caller: &'a Caller,
    /// The tool's own name.
    pub name: &'a str,
    /// JSON of any kind, or absent.
    pub arguments: Option<Raw<'a>>,
    /// Whether the client can lead its user to a page, and was not asked to in this call before.
    pub leads_to_pages: bool,
    /// What [`ToPage::id`] was when it was asked, as the client repeats it: it proves nothing.
    pub asked: Option<Raw<'a>>,
}

/// The answer of a built-in tool.
pub type BuiltInAnswer<'a> =
    Pin<Box<dyn Future<Output = Result<BuiltInResult, CallError>> + Send + 'a>>;

/// What a built-in tool gives.
#[derive(Debug)]
pub struct BuiltInResult {
    /// For a model.
    pub text: String,
    /// For programs: an object.
    pub structured: Value,
    /// Where the client shall lead its user besides; only for one that can.
    pub to_page: Option<ToPage>,
}

/// The tools, and what is made of their definitions once.
#[derive(Debug)]
pub(crate) struct BuiltIn {
    pub(crate) tools: Arc<dyn BuiltInTools>,
    all: Offered,
    /// What whoever has nothing else of it may ask by.
    asking: Offered,
    gates: Gates,
    /// Its own endpoint's.
    view: View,
}

/// What of it stands at an aggregated endpoint.
#[derive(Debug)]
pub(crate) struct Offered {
    pub(crate) inventory: Arc<Inventory>,
    facts: Bytes,
}

impl Offered {
    fn new(tools: &[BuiltInTool<'_>], instructions: &str) -> Self {
        let entry = |tool: &BuiltInTool<'_>| {
            (Listed::Tool, InventoryEntry::new(tool.name, tool.definition.clone()))
        };
        let inventory = Arc::new(Inventory::new(tools.iter().map(entry)));
        let instructions = encode_string(instructions);
        let facts = [br#"{"instructions":"#, &instructions[..], b"}"].concat().into();
        Self { inventory, facts }
    }

    fn has(&self, name: &str) -> bool {
        self.inventory.tool(name).is_some()
    }
}

impl BuiltIn {
    pub(crate) fn new(shared: &Shared, tools: Arc<dyn BuiltInTools>) -> Self {
        let mut all = tools.definitions();
        let bare: Vec<_> = all.iter().map(|tool| tool.definition.clone()).collect();
        let view = shared.build_view(0, &[]).listing(&bare, &shared.options.server_info);
        let scopes = all.iter().map(|tool| (tool.name.to_owned(), tool.scopes.clone()));
        let gates = Gates::new(scopes.collect(), &BTreeMap::new(), BTreeMap::new());
        let offered = Offered::new(&all, tools.instructions());
        all.retain(|tool| tool.is_for_asking);
        let asking = Offered::new(&all, "");
        Self { tools, all: offered, asking, gates, view }
    }

    /// What policy looks at besides the run and the call.
    pub(crate) fn target(&self) -> Target<'_> {
        Target::built_in(self.inventory(), &self.gates)
    }

    pub(crate) fn inventory(&self) -> &Arc<Inventory> {
        &self.all.inventory
    }

    /// What its endpoint tells a model; a JSON string.
    pub(crate) fn instructions(&self) -> Option<&[u8]> {
        Raw::new(&self.all.facts).get("instructions").map(Raw::as_bytes)
    }
}

impl Shared {
    /// The parts of a view: the servers that policy attaches, and the built-in one.
    pub(crate) fn parts(&self, snapshot: &Snapshot, policy: &RunPolicy) -> Vec<Part> {
        let mut parts = parts(snapshot, policy);
        if let Some(Offered { inventory, facts }) = self.offered(snapshot, policy) {
            parts.push(Part::built_in(inventory.clone(), BUILT_IN, facts.clone()));
        }
        parts
    }

    /// What a run of this policy has of the built-in tools at its aggregated endpoint too. Whoever
    /// sees all that is configured wants that and no more: where anything of it requires a grant,
    /// what they may ask for that by.
    pub(crate) fn offered(&self, snapshot: &Snapshot, policy: &RunPolicy) -> Option<&Offered> {
        let built_in = self.built_in.get()?;
        let is_gated = |row: &Arc<ServerRow>| {
            row.definition.as_ref().is_some_and(|definition| !definition.gates.is_empty())
        };
        match policy {
            RunPolicy::Attached(_) => Some(&built_in.all),
            RunPolicy::AllAttached => {
                snapshot.servers.iter().any(is_gated).then_some(&built_in.asking)
            }
        }
    }

    /// Whether a call at the aggregated endpoint is one of a built-in tool.
    pub(crate) fn is_built_in_call(
        &self,
        caller: &Caller,
        handling: Handling,
        request: &Message,
    ) -> bool {
        let named = request.get("name").filter(|_| handling == Handling::Tool);
        let Some(name) = named.and_then(Raw::as_str) else { return false };
        let Some(own) = name.strip_prefix(PREFIX) else { return false };
        let policy = &caller.run.policy;
        let offered = self.offered(&self.snapshot(&caller.run), policy);
        offered.is_some_and(|offered| matches!(policy, RunPolicy::Attached(_)) || offered.has(own))
    }

    /// What the tool for asking is called at the caller's endpoint; `None` if it is not there. At
    /// the endpoints of servers it is that of the built-in one.
    pub(crate) fn asking_tool(&self, caller: &Caller) -> Option<String> {
        let built_in = self.built_in.get()?;
        let name = &built_in.asking.inventory.tools.first()?.key;
        match caller.endpoint {
            Endpoint::Transparent(_) => Some(name.to_string()),
            Endpoint::Aggregated => {
                self.offered(&self.snapshot(&caller.run), &caller.run.policy)?;
                Some(format!("{PREFIX}{name}"))
            }
        }
    }

    /// Answers what is asked of it.
    pub(crate) async fn built_in(
        self: &Arc<Self>,
        caller: &Caller,
        handling: Handling,
        request: Message,
    ) -> Result<Answering, Refusal> {
        match handling {
            Handling::Ping => Ok(result(&request, &Bytes::from_static(b"{}"))),
            Handling::Discover => {
                let instructions = self.built_in.get().and_then(BuiltIn::instructions);
                let body = self.own_discover(&BUILT_IN, &self.options.server_info, instructions);
                Ok(result(&request, &body))
            }
            Handling::List(kind) => match self.built_in.get() {
                Some(built_in) => Self::page(&built_in.view, caller, kind, &request),
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

    /// Calls a tool: counted, recorded and decided on as any other (D13).
    async fn built_in_tool(
        self: &Arc<Self>,
        caller: &Caller,
        request: Message,
    ) -> Result<Answering, Refusal> {
        let name = text(&request, "name")?;
        let name = match caller.endpoint {
            Endpoint::Aggregated => name.strip_prefix(PREFIX).unwrap_or(&name),
            Endpoint::Transparent(_) => &name,
        };
        let alias = Alias::built_in();
        let item = Item::Tool(name.into());
        // A client gives one up that waits, as any other call.
        let refused = |refusal| self.refused(caller, Handling::Tool, &request, refusal);
        let open_call = open_call(caller, &request).map_err(refused)?;
        let open = Some(self.calls.token());
        let told = self.clean_item(caller, &item);
        let record = self.begin_record(caller, Some(alias.clone()), &request, told, open);
        let mut record = record.map_err(unrecorded)?;
        let mut asked = Request::new(alias, request, item);
        let (name, arguments) = (asked.item.name(), asked.message.get("arguments"));
        let built_in = self.built_in.get();
        let shown = built_in.and_then(|built_in| built_in.tools.shown(name, arguments));
        asked.shown = shown.map(Into::into);
        let calling = self.built_in_answer(caller, asked, &mut record);
        match unless_given_up(open_call.as_ref(), calling).await {
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
        request: Request,
        record: &mut CallRecord,
    ) -> Result<Answering, Refusal> {
        let name = request.item.name().to_owned();
        let unknown = || not_found(Handling::Tool, &name);
        let built_in = self.built_in.get().filter(|built_in| built_in.all.has(&name));
        let built_in = built_in.ok_or_else(unknown)?;
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
            // What rules have seen is what is done.
            arguments: permitted.shown.as_deref().map(Raw::new).or(request.get("arguments")),
            leads_to_pages: leads_to_pages(caller, request),
            asked: request.get("requestState"),
        };
        let answered = built_in.tools.call(call).await.map_err(Refusal::Own)?;
        let BuiltInResult { text, structured, to_page } = answered;
        let (is_modern, id) = (caller.era() == Era::Modern, request.id());
        let (body, first) = match (to_page, &caller.session) {
            (Some(page), None) => (page.result(), None),
            (Some(page), Some(session)) => {
                let first = self.lead_to(session, page);
                (rpc::tool_result(&text, &structured, is_modern), first)
            }
            (None, _) => (rpc::tool_result(&text, &structured, is_modern), None),
        };
        let payload = rpc::result_response(id.unwrap_or(Raw::new(b"null")), &Bytes::from(body));
        record.answered(Outcome::Ok, &payload);
        Ok(Answering::ready(payload, 200).after(first))
    }
}
