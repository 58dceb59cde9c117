//! What callers are told of definitions that are held back from their run (S22 to S24), and the
//! look at lists that come after it has begun.

use std::{pin::Pin, sync::Arc};

use narthex_model::{Alias, CallErrorKind};
use narthex_policy::Item;
use narthex_upstream::{ClientIdentity, Inventory, Listed};
use narthex_view::exposed;
use narthex_wire::Message;

use crate::{
    Caller, RunView, gateway::Shared, method::Handling, pipeline::own_alias, refusal::Refusal,
    route::own_item,
};

/// Looks at what a server lists.
pub type LookingAt<'a> = Pin<Box<dyn Future<Output = Option<Arc<Inventory>>> + Send + 'a>>;

impl Shared {
    /// What is said instead of that something is not there, if it is held back. What the rules of
    /// its server hide is not there, and nothing else is said of it.
    pub(crate) fn held_back(
        &self,
        caller: &Caller,
        handling: Handling,
        asked: &Message,
    ) -> Option<Refusal> {
        let item = own_item(handling, asked).ok()?;
        let list = match &item {
            Item::Tool(_) => Listed::Tool,
            Item::Prompt(_) => Listed::Prompt,
            Item::Resource(_) => Listed::Template,
            Item::Task(_) | Item::Server => return None,
        };
        let (held, limit) = (caller.run.held_back(), self.options.name_limit);
        let (alias, name) = held.find(own_alias(caller), list, item.name(), limit)?;
        let own = match item {
            Item::Tool(_) => Item::Tool(name.into()),
            Item::Prompt(_) => Item::Prompt(name.into()),
            other => other,
        };
        let snapshot = self.snapshot(&caller.run);
        let row = snapshot.get(alias.as_str()).filter(|row| own.is_exposed(exposed(row)))?;
        let text = format!(
            "server `{}` defines this in a way that no human has accepted, so it is held back; an \
             admin of the workspace can look at it and accept it, for runs that begin after that",
            row.name
        );
        Some(Refusal::call(CallErrorKind::DefinitionChanged, text))
    }

    /// What a run may have of the lists of a server which are its first on links of this kind; the
    /// lists themselves, if they are not.
    pub(crate) async fn looked_at(
        &self,
        run: &Arc<RunView>,
        alias: &Alias,
        client: &ClientIdentity,
        listed: &Arc<Inventory>,
    ) -> Result<Arc<Inventory>, Refusal> {
        let has_first = run.variants(alias).is_none_or(|variants| variants.has(alias, client));
        let is_known = has_first || run.held_back().server(alias).is_none();
        let Some(source) = self.run_source.get().filter(|_| !is_known) else {
            return Ok(listed.clone());
        };
        source.look_at(run, alias, listed).await.ok_or_else(|| {
            let text = format!("what server `{alias}` lists could not be looked at; try again");
            Refusal::call(CallErrorKind::TransportError, text)
        })
    }
}
