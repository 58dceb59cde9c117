//! Permission by grants (D14): the checks of a gated request, and the error that it gets.

mod asking;
mod revocation;

use std::time::SystemTime;

use narthex_model::{CallError, CallErrorKind, EVERYTHING, ErrorKind, Gates, GrantId};
use narthex_policy::{
    Attempt, Denial, Forbidding, Item, Payment, Permitted, Request, ServerRules, Site, Unpaid,
    Verdict,
};
use narthex_registry::ServerRow;
use narthex_upstream::{Inventory, InventoryEntry};
use narthex_wire::{Era, Raw};
use serde_json::json;

use crate::{
    Caller, Endpoint, RunView,
    ledger::Consumed,
    lists::exposure::rules,
    refusal::{Refusal, not_found, unknown_server},
    shared::Shared,
    view::Handling,
};

/// The facts about the server of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target<'a> {
    rules: ServerRules<'a>,
    inventory: Option<&'a Inventory>,
}

impl<'a> Target<'a> {
    /// The rules and the inventory of a registered server. A server without a row has no rules of
    /// its own.
    pub(crate) fn of(row: Option<&'a ServerRow>) -> Self {
        Self { rules: rules(row), inventory: row.map(|row| &*row.inventory) }
    }

    /// The built-in server, which hides nothing.
    pub(crate) fn built_in(inventory: &'a Inventory, gates: &'a Gates) -> Self {
        let rules = ServerRules { exposed: &EVERYTHING, gates, id: None };
        Self { inventory: Some(inventory), rules }
    }
}

impl Shared {
    /// Asks policy for the decision on a request to a server. No other code asks policy.
    ///
    /// `paid` are the grants that earlier tries and rounds of the same call have used up.
    pub(crate) fn decide(
        &self,
        caller: &Caller,
        target: Target<'_>,
        request: Request,
        paid: &[GrantId],
    ) -> Result<Verdict, Refusal> {
        let run = &caller.run;
        let site = |request: &Request| {
            let name = match (&request.item, &request.origin) {
                (_, Some(origin)) => Some(&origin.tool),
                (Item::Tool(name), None) => Some(name),
                (Item::Prompt(_) | Item::Resource(_) | Item::Task(_) | Item::Server, None) => None,
            };
            let declared = target.inventory.zip(name).and_then(|(all, name)| all.tool(name));
            let annotations = declared.and_then(|tool| Raw::new(&tool.raw).get("annotations"));
            Site {
                workspace: run.workspace.as_str(),
                server_id: run.catalog_id(&request.alias),
                annotations: annotations.map(Raw::as_bytes),
                endpoint: match caller.endpoint {
                    Endpoint::Aggregated => "aggregated",
                    Endpoint::Transparent(_) => "transparent",
                },
                era: match caller.era() {
                    Era::Legacy => "legacy",
                    Era::Modern => "modern",
                },
            }
        };
        let attempt = Attempt { now: SystemTime::now, paid, site: &site };
        let rules = ServerRules { id: run.catalog_id(&request.alias), ..target.rules };
        let decided = run.policy.authorize(request, rules, &run.authority, attempt);
        decided.map_err(|denial| {
            let tool = denial.tool().zip(target.inventory);
            let tool = tool.and_then(|(name, all)| all.tool(name));
            let is_shaped = tool.is_some_and(InventoryEntry::is_shaped);
            self.refusal_of(caller, denial).shaped(is_shaped)
        })
    }

    /// As [`Self::decide`], and waits until the grants for a single call are used up.
    pub(crate) async fn permit(
        &self,
        caller: &Caller,
        target: Target<'_>,
        request: Request,
        paid: &[GrantId],
    ) -> Result<Permitted<Request>, Refusal> {
        match self.decide(caller, target, request, paid)? {
            Verdict::Permit(permitted) => Ok(permitted),
            Verdict::Unpaid(unpaid) => Box::pin(self.settle(caller, target, unpaid, paid)).await,
        }
    }

    /// Decides on a further part of a call; `payment` has the grants that the call has used up.
    ///
    /// # Errors
    /// When the part is not allowed, or its grants cannot be used up.
    pub(crate) async fn authorize(
        &self,
        caller: &Caller,
        row: &ServerRow,
        request: Request,
        payment: &mut Payment,
    ) -> Result<Permitted<Request>, Refusal> {
        let target = Target::of(Some(row));
        let decide = |paid: &[GrantId]| self.decide(caller, target, request, paid);
        let permitted = match caller.run.unused.lend(payment, decide)? {
            Verdict::Permit(permitted) => permitted,
            Verdict::Unpaid(unpaid) => {
                Box::pin(self.settle(caller, target, unpaid, &payment.grants)).await?
            }
        };
        payment.uses(permitted.basis());
        Ok(permitted)
    }

    /// Uses grants up. If another call has used them up meanwhile, policy looks for other grants.
    pub(crate) async fn settle(
        &self,
        caller: &Caller,
        target: Target<'_>,
        mut unpaid: Unpaid,
        paid: &[GrantId],
    ) -> Result<Permitted<Request>, Refusal> {
        loop {
            let again = match self.pay(&caller.run, unpaid).await? {
                Ok(permitted) => return Ok(permitted),
                Err(again) => again,
            };
            match self.decide(caller, target, again, paid)? {
                Verdict::Permit(permitted) => return Ok(permitted),
                Verdict::Unpaid(next) => unpaid = next,
            }
        }
    }

    /// Uses grants up. Returns the request if another call has used one of the grants up meanwhile.
    async fn pay(
        &self,
        run: &RunView,
        unpaid: Unpaid,
    ) -> Result<Result<Permitted<Request>, Request>, Refusal> {
        let Some(ledger) = self.ledger.get() else {
            drop(unpaid.put_back());
            return Err(unavailable("there is no ledger of used grants"));
        };
        let ids: Vec<_> = unpaid.ids().collect();
        match ledger.consume(run, ids).await {
            Ok(Consumed::All) => Ok(Ok(unpaid.paid())),
            Ok(Consumed::Gone(gone)) => Ok(Err(unpaid.gone(&gone))),
            Err(error) => {
                // The next call asks the store anew if these grants are used up.
                drop(unpaid.put_back());
                Err(unavailable(&error.to_string()))
            }
        }
    }
}

impl Shared {
    /// A denial looks like absence, except where a person may grant the scopes that it requires.
    fn refusal_of(&self, caller: &Caller, denial: Denial) -> Refusal {
        match denial {
            Denial::NotAttached(alias) => unknown_server(&alias),
            Denial::Hidden(item) => {
                let handling = match &item {
                    Item::Tool(_) => Handling::Tool,
                    Item::Prompt(_) => Handling::Prompt,
                    Item::Resource(_) => Handling::Resource,
                    Item::Task(_) => Handling::Task,
                    Item::Server => Handling::Vendor,
                };
                not_found(handling, item.name())
            }
            Denial::Forbidden { item, by } => forbidden(&item, &by),
            Denial::Ungranted { server, item, name, missing, has_digest } => {
                self.ungranted(caller, (&server, &item, &name), &missing, has_digest)
            }
        }
    }
}

fn unavailable(text: &str) -> Refusal {
    Refusal::Kind(ErrorKind::Unavailable, format!("a grant cannot be used: {text}"))
}

/// The answer to a call that a rule of the workspace forbids (D16): no grant can allow it, so the
/// answer names no scopes.
fn forbidden(item: &Item, by: &Forbidding) -> Refusal {
    let Forbidding { rule, reason } = by;
    let what = match item {
        Item::Server => "this".to_owned(),
        item => format!("`{}`", item.name()),
    };
    let mut message = format!("the rule `{rule}` of the workspace forbids {what}");
    if !reason.is_empty() {
        message = format!("{message}: {reason}");
    }
    let details = json!({ "rule": &**rule, "reason": &**reason, "name": item.name() });
    Refusal::Forbidden(
        CallError { kind: CallErrorKind::PermissionRequired, message, details: Some(details) },
        rule.clone(),
    )
}
