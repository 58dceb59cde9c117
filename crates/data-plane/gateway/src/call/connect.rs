//! The link of a call to its server (the `connect` step).

use std::sync::Arc;

use narthex_policy::Item;
use narthex_upstream::{Hop, InUse};

use crate::{
    Caller,
    call::{identify::Call, routed::Routed},
    clock::CallClock,
    links::{Chosen, answerable},
    refusal::{Refusal, not_found, with_cause},
    shared::Shared,
    view::{Handling, exposed},
};

/// A routed request and its link.
pub(crate) struct Target {
    pub(crate) routed: Routed,
    pub(crate) link: InUse,
    pub(crate) hop: Hop,
}

impl Shared {
    /// Gets the link of a routed call, and checks that its server has the item.
    pub(crate) async fn connect(
        self: &Arc<Self>,
        call: &Call<'_>,
        mut routed: Routed,
    ) -> Result<Target, Refusal> {
        let &Call { caller, clock, handling, .. } = call;
        let chosen = self.choose_link_by(caller, &routed.row, clock).await?;
        let is_cross = caller.session.is_none() && !chosen.link.facts().revision.is_modern();
        let chosen = match is_cross {
            true => Box::pin(self.bridged_or(chosen, caller, &mut routed, clock)).await?,
            false => chosen,
        };
        routed.row.clone_from(&chosen.row);
        let is_frozen = routed.row.is_pinned() || caller.run.is_frozen(&routed.request.alias);
        routed.frozen = is_frozen.then(|| chosen.inventory.clone());
        let (hop, is_shaped) = hop(&chosen, handling, &routed)?;
        routed.is_shaped = is_shaped;
        if let Some(open) = &call.open_call {
            open.goes_to(&routed.request.alias);
        }
        Ok(Target { routed, link: chosen.link, hop })
    }

    /// The link of a modern call to a legacy server. If the request declares that its client can be
    /// asked, this is a link on which the server may ask.
    async fn bridged_or(
        self: &Arc<Self>,
        chosen: Chosen,
        caller: &Caller,
        routed: &mut Routed,
        clock: CallClock,
    ) -> Result<Chosen, Refusal> {
        let answerable = answerable(&routed.request.message);
        if answerable.is_none() {
            return Ok(chosen);
        }
        // This call does not use the shared link.
        let Chosen { row, link, .. } = chosen;
        drop(link);
        let (bridged, turn) = self.bridged(caller, &row, answerable, clock).await?;
        routed.turn = Some((answerable, turn));
        Ok(bridged)
    }
}

/// Checks that the server has the tool or prompt, and collects the facts for its hop.
///
/// Returns `true` as well if the item is a tool with an output schema.
fn hop(chosen: &Chosen, handling: Handling, routed: &Routed) -> Result<(Hop, bool), Refusal> {
    let name = match &routed.request.item {
        Item::Tool(name) => name,
        // If some prompts are hidden, absent ones get the same answer as hidden ones.
        Item::Prompt(name)
            if (routed.frozen.is_some() || !exposed(&routed.row).prompts.is_open())
                && !chosen.inventory.has_prompt(name) =>
        {
            return Err(not_found(handling, name));
        }
        Item::Resource(uri) if chosen.inventory.withholds(uri) => {
            return Err(match (routed.own_tool, handling) {
                (Some(tool), _) => tool.absent(uri).into(),
                (None, Handling::Complete) => not_found(Handling::Resource, uri),
                (None, handling) => not_found(handling, uri),
            });
        }
        Item::Prompt(_) | Item::Resource(_) | Item::Task(_) | Item::Server => {
            return Ok((Hop::default(), false));
        }
    };
    let Some(tool) = chosen.inventory.tool(name) else {
        return Err(with_cause(not_found(handling, name), &routed.row));
    };
    let hop = Hop { header_params: tool.header_params.clone(), ..Hop::default() };
    Ok((hop, tool.is_shaped()))
}
