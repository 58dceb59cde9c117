//! Answers requests to the built-in server, which needs no process, no link and no task.

use std::{pin::pin, sync::Arc};

use bytes::Bytes;
use narthex_audit::Outcome;
use narthex_model::{Alias, BuiltInTools, TrafficLimits};
use narthex_policy::{Item, Request, RunPolicy};
use narthex_registry::{ServerRow, Snapshot};
use narthex_upstream::Inventory;
use narthex_wire::{Era, Message, Raw, rpc};

use crate::{
    Answering, Caller, Endpoint, RunView,
    built_in::{BUILT_IN, BuiltIn, BuiltInCall, BuiltInResult, Offered},
    call::{
        admit::admit, authorize::Target, own_answer::result, record::CallRecord,
        recording::unrecorded, route::own_item, task_list::page,
    },
    lists::pages::leads_to_pages,
    names::text,
    refusal::{Refusal, not_found},
    shared::Shared,
    view::{Handling, Part, parts},
};

/// Prefix of the built-in tools' names at aggregated endpoints.
const PREFIX: &str = "mcp__narthex__";

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

    /// The name by which a run is offered a tool that policy knows as `ruled`. `None` if both names
    /// are the same, or if the run is offered the tool by no name.
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

    /// The lists of [`Self::built_in_of`] as rows, for a run that lists its servers.
    pub(crate) fn built_in_rows(&self, run: &RunView) -> Vec<Arc<ServerRow>> {
        let offers = self.offers(&self.snapshot(run), &run.policy, Some(run));
        let row = |(alias, offered): (Alias, Arc<Offered>)| {
            Arc::new(ServerRow::built_in(alias, offered.inventory.clone()))
        };
        offers.into_iter().map(row).collect()
    }

    /// The tools that a run has of the built-in server under its own name (D29). A caller that sees
    /// the whole configuration gets only the tools that ask for grants and read the answer. It gets
    /// these tools only if any tool requires a grant.
    fn own_offer(
        &self,
        snapshot: &Snapshot,
        policy: &RunPolicy,
        run: Option<&RunView>,
    ) -> Option<Arc<Offered>> {
        let built_in = self.built_in.get()?;
        if let Some((run, has)) = run.and_then(|run| Some((run, run.built_in_tools()?))) {
            return Some(run.offered(|| built_in.offered(&self.options, has)).clone());
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

    /// True if a request at the aggregated endpoint calls a built-in tool.
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

    /// Name of the tool for asking at the caller's endpoint; `None` if the run does not have the
    /// tool. At the endpoint of a server, the name is the one at the built-in server's own
    /// endpoint.
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

    /// Answers a request to the built-in server.
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
                Some(offered) => page(&offered.view, caller, kind, &request),
                None => page(&self.options.view_of(0, &[]), caller, kind, &request),
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

    /// Calls a built-in tool. The call is counted, recorded and decided on like any other call
    /// (D13).
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
        // A client can give up a waiting call of a built-in tool like any other call.
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
        record.admitted(admit(
            &self.options.meters,
            &self.metrics,
            caller,
            Some(&request.alias),
            no_limits,
            true,
        )?);
        let arguments = request.shown.as_deref().map(Raw::new);
        let arguments = arguments.or_else(|| request.message.get("arguments"));
        built_in.tools.check(&name, arguments).map_err(Refusal::Own)?;
        let target = Target::built_in(&built_in.all, &built_in.gates);
        let permitted = self.permit(caller, target, request, &[]).await?;
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
                let first = page.lead(session, &self.tracker, &self.stopping);
                (rpc::tool_result(texts(), &structured, is_modern), first)
            }
            (None, _) => (rpc::tool_result(texts(), &structured, is_modern), None),
        };
        let payload = rpc::result_response(id.unwrap_or(Raw::new(b"null")), &Bytes::from(body));
        record.answered(Outcome::Ok, &payload);
        Ok(Answering::ready(payload, 200).after(first))
    }
}
