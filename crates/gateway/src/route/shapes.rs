//! Whether a client may know what the results of a tool look like whose call does not get to it.

use narthex_model::QualifiedNames;
use narthex_registry::ServerRow;
use narthex_view::exposed;
use narthex_wire::Message;

use super::{expected::expected, text};
use crate::{Caller, Endpoint, gateway::Shared};
use narthex_view::Handling;

impl Shared {
    /// Whether a call that finds no way is that of a tool of which its client may know what its
    /// results look like. What is hidden is as what is not there (D5).
    pub(crate) fn is_shaped(&self, caller: &Caller, handling: Handling, asked: &Message) -> bool {
        let Some(name) = text(asked, "name").ok().filter(|_| handling == Handling::Tool) else {
            return false;
        };
        let snapshot = self.snapshot(&caller.run);
        let is_shaped =
            |row: &ServerRow, own: &str| row.is_shaped(own) && exposed(row).tools.lets(own);
        match &caller.endpoint {
            Endpoint::Transparent(alias) => {
                let row = snapshot.get(alias.as_str());
                let row = row.filter(|_| caller.run.policy.is_attached(alias));
                row.is_some_and(|row| is_shaped(row, &name))
            }
            Endpoint::Aggregated => {
                let found = expected(caller, handling, asked, &snapshot);
                found.is_some_and(|(row, alias)| {
                    let known = row.known_tools().map(|own| (alias, own));
                    let names = QualifiedNames::build(known, self.options.name_limit);
                    names.route(&name).is_some_and(|(_, own)| is_shaped(row, own))
                })
            }
        }
    }
}
