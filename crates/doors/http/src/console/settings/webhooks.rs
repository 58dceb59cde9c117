//! The webhooks that get events of sessions: their settings, and the outcomes of deliveries.

mod deliveries;
mod form;
mod place;

use narthex_console::{
    pages::settings::{Card, Cell, Form, Piece},
    parts::{
        Action, Empty, Moment, Words,
        item::{Badge, Dated, Item},
    },
};
use narthex_model::command::narthex;
use narthex_outbound::{WebhookRow, is_retrying};

use self::place::{TAB, path, webhook};
pub(super) use self::{
    deliveries::{again, show as deliveries},
    form::{add, edit, new, set},
};
use super::{
    outbound::{outbound, secret},
    tab::{self, Asking, Made},
};
use crate::{
    body::RequestBody,
    console::{
        answer::{self, Answered},
        sent::Sent,
        viewer::Viewer,
    },
};

const DONE: [(&str, &str); 2] =
    [("saved", "The webhook {} is saved."), ("removed", "The webhook {} is removed.")];

pub(super) async fn show(viewer: &Viewer<'_>) -> Answered {
    let query = viewer.query(&["after", "done", "name"])?;
    let all = outbound(viewer)?.webhooks(&viewer.workspace).await?;
    let rest = all.iter().filter(|row| row.name.as_str() > query.text("after"));
    let counted = format!("{} webhooks", all.len());
    let (shown, more) = tab::first(viewer, TAB, rest, &counted, |row| row.name.to_string());
    let pieces = match shown.is_empty() {
        true => vec![Piece::Empty(empty(viewer))],
        false => vec![Piece::Rows(shown.iter().map(|row| item(viewer, row)).collect()), more],
    };
    let head = tab::head(
        viewer,
        "Webhooks",
        "Addresses that get requests, decisions and ends of sessions.",
        narthex("webhooks list", &[]),
        &tab::request(viewer, "GET", "/webhooks"),
    );
    let cards = vec![Card::new("webhooks", "Webhooks", "", pieces)];
    let primary = Some(tab::adding(viewer, "settings/webhooks/new", "Add a webhook"));
    let made = Made { primary, ..Made::new(head, TAB, cards) };
    Made { told: tab::told(&query, &DONE), ..made }.answer(viewer).await
}

fn item(viewer: &Viewer<'_>, row: &WebhookRow) -> Item {
    let mut item = Item::new(&viewer.csrf, row.name.as_str());
    item.href = Some(path(viewer, row, "deliveries"));
    if is_retrying(row) {
        item.badge = Some(Badge { class: "error", icon: "warning", word: "does not arrive" });
        let attempts = row.attempts;
        item.note = Some(Words::new(&format!("The next event was tried {attempts} times.")));
        item.times.push(Dated { label: "next attempt", at: Moment::new(row.due_at) });
    }
    item.facts.push(Words::new(&format!("gets {}", row.kinds.join(", "))));
    item.facts.push(Words::new(&format!("address in {}", row.url)));
    item.facts.push(Words::new(&format!("signed with {}", row.signing_key)));
    item.times.push(Dated { label: "set", at: Moment::new(row.updated_at) });
    let off = tab::off(viewer);
    let hint = "tries at once, without the pause that grows with each attempt";
    let again = Action::new(path(viewer, row, "again"), "Try again now", hint).page().primary();
    let remove = Action::new(path(viewer, row, "remove"), "Remove", "asks first").page();
    let actions = is_retrying(row).then_some(again).into_iter().chain([remove]);
    item.actions = actions
        .map(|action| match off {
            None => action,
            Some(why) => action.off(why),
        })
        .collect();
    item
}

fn empty(viewer: &Viewer<'_>) -> Empty {
    let example = narthex("webhooks set ops --url '${OPS_URL}' --signing-key '${OPS_KEY}'", &[]);
    Empty {
        title: "No webhooks yet",
        sentence: "A webhook posts events of sessions to a program, such as a request that waits \
                   for a human."
            .to_owned(),
        example: Some(example.in_workspace(viewer.workspace.as_str()).to_string()),
        page: Some("docs/guides/channels-and-webhooks.md"),
    }
}

/// Asks before a webhook is removed.
pub(super) async fn ask(viewer: &Viewer<'_>) -> Answered {
    viewer.query(&[])?;
    let row = webhook(viewer).await?;
    let head = tab::head(
        viewer,
        &format!("Remove the webhook {}?", row.name),
        "What ends, before it is removed.",
        narthex("webhooks remove {}", &[&row.name]),
        &tab::request(viewer, "DELETE", &format!("/webhooks/{}", row.name)),
    );
    let facts = vec![
        ("secret with the address", secret(viewer, Some(&row.url))),
        ("secret that signs", secret(viewer, Some(&row.signing_key))),
        ("events", Cell::new(&row.kinds.join(", "))),
    ];
    let effects = vec![
        "Its program gets no event any more, also none that waits for a delivery.".to_owned(),
        "The list of its deliveries is removed with it.".to_owned(),
        "A later webhook of this name begins with later events. The secrets stay.".to_owned(),
    ];
    let form = Form::new(path(viewer, &row, "remove"), &viewer.csrf, "Remove the webhook");
    Asking { head, effects, facts, form, back: viewer.path(TAB) }.answer(viewer).await
}

/// Removes a webhook, as `DELETE` of the API does.
pub(super) async fn remove(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let sent: Sent = viewer.form(body).await?;
    let sent = sent.only(|name| name == tab::SURE)?;
    let row = webhook(viewer).await?;
    if !tab::is_sure(&sent) {
        return answer::redirect(&path(viewer, &row, "remove"));
    }
    let outbound = outbound(viewer)?;
    outbound.webhook_delete(&viewer.workspace, row.name.as_str(), &viewer.by()).await?;
    tab::done(viewer, TAB, "removed", row.name.as_str())
}
