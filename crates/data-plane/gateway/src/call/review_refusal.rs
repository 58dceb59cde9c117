//! Refusals for definitions that are under review in their run (S22 to S24).

use narthex_model::CallErrorKind;
use narthex_policy::Item;
use narthex_registry::HeldNames;
use narthex_upstream::Listed;
use narthex_wire::Message;

use crate::{
    Caller, RunView,
    call::route::own_item,
    names::own_alias,
    refusal::Refusal,
    runs::run::{RunRow, RunRows},
    view::{Handling, exposed},
};

/// The definitions of live servers under review that a run sees.
fn pinned(rows: &RunRows) -> HeldNames {
    let mut all = HeldNames::default();
    for row in rows.servers() {
        if let Some(said) = &row.pinned {
            all.extend(&said.held().names);
        }
    }
    all
}

/// The items that servers of the catalog have changed since the run began.
fn changed(run: &RunView) -> HeldNames {
    let mut all = HeldNames::default();
    for (alias, _, names) in run.changed() {
        names.iter().for_each(|(list, name)| all.add(&alias, *list, name));
    }
    all
}

/// The refusal instead of "not found" for an item that is under review. An item that the rules
/// of its server hide is not found, and the caller gets no other answer for it.
pub(crate) fn held_back(
    rows: &RunRows,
    name_limit: usize,
    caller: &Caller,
    handling: Handling,
    asked: &Message,
    on_links: impl Fn() -> HeldNames,
) -> Option<Refusal> {
    let item = own_item(handling, asked).ok()?;
    let list = match &item {
        Item::Tool(_) => Listed::Tool,
        Item::Prompt(_) => Listed::Prompt,
        Item::Resource(_) => Listed::Template,
        Item::Task(_) | Item::Server => return None,
    };
    let given = caller.run.original(item.name()).filter(|_| list == Listed::Tool);
    let (own, name) = match &given {
        Some((server, tool)) => (Some(server), &**tool),
        None => (own_alias(caller), item.name()),
    };
    let limit = name_limit;
    let of_run = caller.run.held_back().find(own, list, name, limit);
    let of_live = || pinned(rows).find(own, list, name, limit);
    let by_links = || on_links().find(own, list, name, limit);
    let of_changed = || changed(&caller.run).find(own, list, name, limit);
    let (unaccepted, from_then) =
        ("in a way that no human has accepted", ", for runs created after that");
    // Changed items come first: soon they wait for a human as well.
    let ((alias, name), how, from_then) = if let Some(found) = of_changed() {
        (found, "differently than at the creation of the run", from_then)
    } else if let Some(found) = of_run {
        (found, unaccepted, from_then)
    } else {
        (of_live().or_else(by_links)?, unaccepted, "")
    };
    let exactly = match item {
        Item::Tool(_) => Item::Tool(name.into()),
        Item::Prompt(_) => Item::Prompt(name.into()),
        other => other,
    };
    let is_renamed = list == Listed::Tool && caller.run.is_renamed(&alias, exactly.name());
    let has_name = given.is_some() || !is_renamed;
    let is_shown = |row: &RunRow| {
        has_name && exactly.is_exposed(exposed(row)) && caller.run.shows(&alias, &exactly)
    };
    let row = rows.get(alias.as_str()).filter(is_shown)?;
    let text = format!(
        "server `{}` defines this {how}, so it is under review until an admin of the workspace \
         accepts it{from_then}",
        row.name
    );
    Some(Refusal::call(CallErrorKind::DefinitionChanged, text))
}
