//! Which built-in servers are put into the settings of a user: each at most once, ever.

use std::collections::BTreeSet;

use narthex_model::Alias;

/// A server that comes with the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefaultServer {
    /// Its name.
    pub name: Alias,
    /// Its entry as JSON text, in the form of an entry under `mcp.servers`.
    pub entry: String,
}

/// The pending changes for the built-in servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seeding<'a> {
    /// To be added to the settings, in this order.
    pub add: Vec<&'a DefaultServer>,
    /// To be stored as the names seeded so far, once all of `add` is stored: after a crash in
    /// between the names are found in the settings, and no server is added twice or lost.
    pub seeded: BTreeSet<Alias>,
}

/// Decides what to add (E146): each default whose name was never seeded.
///
/// If the settings have an entry of that name already, it is a person's own and stays as it is. A
/// name that was seeded once never comes again, even if its entry was removed; a default of a later
/// version arrives. `present` are the names in the settings as written, including those of faulty
/// entries.
#[must_use]
pub fn seed<'a>(
    seeded_before: &BTreeSet<Alias>,
    present: &BTreeSet<String>,
    defaults: &'a [DefaultServer],
) -> Seeding<'a> {
    let mut seeded = seeded_before.clone();
    let mut add = Vec::new();
    for default in defaults {
        let is_new = seeded.insert(default.name.clone());
        if is_new && !present.contains(default.name.as_str()) {
            add.push(default);
        }
    }
    Seeding { add, seeded }
}
