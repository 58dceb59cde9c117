//! Decides which built-in servers to add to a user's settings: each at most once, ever.

use std::collections::BTreeSet;

use narthex_model::Alias;

/// A server that is built into the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefaultServer {
    /// The server's name.
    pub name: Alias,
    /// The server's entry as JSON text, in the form of an entry under `mcp.servers`.
    pub entry: String,
}

/// The pending changes for the built-in servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seeding<'a> {
    /// The servers to add to the settings, in this order.
    pub add: Vec<&'a DefaultServer>,
    /// The names to store as seeded so far, after all of `add` is stored. After a crash in between,
    /// the settings have the names, so that no server is added twice or lost.
    pub seeded: BTreeSet<Alias>,
}

/// Decides which servers to add (E146): each default whose name was never seeded.
///
/// If the settings have an entry of that name already, a person made it, and it stays. A name that
/// was seeded once never comes again, even if its entry was removed. A default of a later version
/// is added. `present` are the names in the settings as written, with those of faulty entries.
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
