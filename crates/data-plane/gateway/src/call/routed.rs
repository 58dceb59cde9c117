//! A routed request: the outcome of the `route` step.

use std::sync::Arc;

use narthex_policy::Request;
use narthex_upstream::Inventory;
use narthex_wire::Answerable;

use crate::{
    RunView,
    links::bridge::Turn,
    refusal::{Refusal, not_found, with_cause},
    runs::run::RunRow,
    standing::Standing,
    view::{Handling, OwnTool, exposed},
};

/// A routed request.
pub(crate) struct Routed {
    pub(crate) row: RunRow,
    pub(crate) request: Request,
    /// The gateway's own tool, if its call became this request.
    pub(crate) own_tool: Option<OwnTool>,
    /// The server's whole inventory, if it is pinned, or frozen in the run.
    pub(crate) frozen: Option<Arc<Inventory>>,
    /// The permission for the resources of a stream of changes.
    pub(crate) listening: Standing,
    /// The questions that the client can be asked, and the call's turn on a link on which the
    /// server may ask.
    pub(crate) turn: Option<(Answerable, Turn)>,
    /// True if the item is a tool with an output schema. Set once the link is known.
    pub(crate) is_shaped: bool,
}

impl Routed {
    pub(super) fn new(
        row: RunRow,
        request: Request,
        own_tool: Option<OwnTool>,
        listening: Standing,
    ) -> Self {
        Self { row, request, own_tool, frozen: None, listening, turn: None, is_shaped: false }
    }

    /// Refuses an item that the server's rules or the run's profile hide, as if the item did not
    /// exist.
    pub(super) fn visible(self, run: &RunView, handling: Handling) -> Result<Self, Refusal> {
        let (alias, item) = (&self.request.alias, &self.request.item);
        match self.own_tool {
            _ if item.is_exposed(exposed(&self.row)) && run.shows(alias, item) => Ok(self),
            Some(tool) => Err(tool.absent(item.name()).into()),
            None => Err(with_cause(not_found(handling, item.name()), &self.row)),
        }
    }
}
