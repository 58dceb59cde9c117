//! The deliveries of one webhook with their outcomes, and another attempt.

use narthex_console::{
    Told,
    pages::settings::{Card, Cell, Form, Piece, Table},
    parts::{Empty, Moment, Words},
};
use narthex_model::{ErrorKind, command::narthex};
use narthex_outbound::{DeliveryRow, WebhookRow, is_retrying};

use super::place::{TAB, path, webhook};
use crate::{
    body::RequestBody,
    console::{
        answer::{self, Answered},
        settings::{
            outbound::{outbound, secret},
            tab::{self, Made, ROWS},
        },
        viewer::Viewer,
    },
    problem::Problem,
    shapes::CsrfForm,
};

/// Shows the webhook, and the outcomes of its newest events.
pub(in super::super) async fn show(viewer: &Viewer<'_>) -> Answered {
    let query = viewer.query(&["after", "done", "name"])?;
    let row = webhook(viewer).await?;
    let before = match query.text("after") {
        "" => u64::MAX,
        text => text.parse().map_err(|_no_number| {
            Problem::new(ErrorKind::Invalid, "this is no place in the list of deliveries")
        })?,
    };
    let limit = u32::try_from(ROWS).unwrap_or(u32::MAX);
    let (workspace, name) = (&viewer.workspace, row.name.as_str());
    let found = outbound(viewer)?.deliveries(workspace, name, before, limit).await?;
    let head = tab::head(
        viewer,
        &format!("Webhook {name}"),
        "What it gets, and what became of each event.",
        narthex("webhooks deliveries {}", &[&name]),
        &tab::request(viewer, "GET", &format!("/webhooks/{name}/deliveries")),
    );
    let mut cards = vec![settings(viewer, &row)];
    cards.push(outcomes(viewer, &row, &found, before == u64::MAX));
    let sentences = [("again", "The next attempt to {} is made now.")];
    let told: Option<Told> = tab::told(&query, &sentences);
    Made { told, ..Made::new(head, TAB, cards) }.answer(viewer).await
}

/// The settings, and what does not arrive with the button that tries it again.
fn settings(viewer: &Viewer<'_>, row: &WebhookRow) -> Card {
    let mut facts = vec![
        ("secret with the address", secret(viewer, Some(&row.url))),
        ("secret that signs", secret(viewer, Some(&row.signing_key))),
        ("events", Cell::new(&row.kinds.join(", "))),
        ("set", Cell::at(&format!("by {},", row.updated_by), Moment::new(row.updated_at))),
    ];
    let mut pieces = Vec::new();
    if is_retrying(row) {
        let text = format!(
            "The next event was tried {} times, and does not arrive. Later events wait for it. The \
             daemon's log has the reason of each attempt; after 12 attempts it is given up, and \
             stands in the list below. Look at the address, and at the secrets.",
            row.attempts
        );
        pieces.push(Piece::Warning(Words::new(&text)));
        facts.push(("next attempt", Cell::at("", Moment::new(row.due_at))));
    }
    pieces.push(Piece::Pairs(facts));
    if is_retrying(row) {
        let form = Form::new(path(viewer, row, "again"), &viewer.csrf, "Try again now");
        pieces.push(Piece::Form(form.off(tab::off(viewer))));
    }
    if tab::off(viewer).is_none() {
        for (verb, label) in [("edit", "Edit"), ("remove", "Remove")] {
            let label = Words::new(label);
            pieces.push(Piece::Link { href: path(viewer, row, verb), label });
        }
    }
    Card::new("webhook", "The webhook", "", pieces)
}

fn outcomes(viewer: &Viewer<'_>, row: &WebhookRow, found: &[DeliveryRow], is_first: bool) -> Card {
    let shown: Vec<_> = found.iter().take(ROWS).collect();
    let next = shown.last().filter(|_| found.len() > ROWS).map(|last| {
        let rest = format!("{TAB}/{}/deliveries", tab::encoded(row.name.as_str()));
        tab::address(viewer, &rest, &[("after", &last.number.to_string())])
    });
    let pieces = match shown.is_empty() {
        true => vec![Piece::Empty(Empty {
            title: if is_first { "Nothing was delivered yet" } else { "No older deliveries" },
            sentence: "An event is here once it has arrived, or was given up.".to_owned(),
            example: Some(
                narthex("webhooks deliveries {}", &[&row.name.as_str()])
                    .in_workspace(viewer.workspace.as_str())
                    .to_string(),
            ),
            page: Some("docs/guides/channels-and-webhooks.md"),
        })],
        false => vec![
            Piece::Table(Table {
                caption: "The newest first, the last 1,000",
                head: vec![
                    ("Event", true),
                    ("Type", false),
                    ("Outcome", false),
                    ("Attempts", true),
                    ("Time", false),
                ],
                rows: shown.iter().map(|one| delivery(one)).collect(),
            }),
            Piece::More { words: Words::new(&format!("{} on this page", shown.len())), next },
        ],
    };
    Card::new("deliveries", "Deliveries", "", pieces)
}

fn delivery(one: &DeliveryRow) -> Vec<Cell> {
    let outcome = match one.outcome.as_str() {
        "delivered" => Cell::new("delivered"),
        _ => Cell::new(&format!("given up: {}", one.detail)).bad(),
    };
    vec![
        Cell::number(&one.number.to_string()),
        Cell::new(&one.kind),
        outcome,
        Cell::number(&one.attempts.to_string()),
        Cell::at("", Moment::new(one.happened_at)),
    ]
}

/// Sets the webhook as it is, which makes its next attempt due.
pub(in super::super) async fn again(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let CsrfForm { csrf: _ } = viewer.form(body).await?;
    let row = webhook(viewer).await?;
    let name = row.name.as_str();
    let text = serde_json::json!({
        "url": format!("${{{}}}", row.url),
        "signing_key": format!("${{{}}}", row.signing_key),
        "events": row.kinds,
    });
    let (text, by) = (text.to_string(), viewer.by());
    outbound(viewer)?.webhook_set(&viewer.workspace, name, text.as_bytes(), &by).await?;
    let rest = format!("{TAB}/{}/deliveries", tab::encoded(name));
    let pairs = [("done", "again"), ("name", name)];
    answer::redirect(&tab::address(viewer, &rest, &pairs))
}
