//! The use of today beside its limits, and the place at which each limit is set.

use narthex_console::{
    pages::settings::{Card, Cell, Piece, Table},
    parts::Empty,
};
use narthex_control::{Usage, UsageRow};
use narthex_model::{TrafficLimits, command::narthex};
use narthex_registry::{ServerRow, Snapshot};

use super::tab;
use crate::{
    Access,
    console::{rows, viewer::Viewer},
    problem::Problem,
    routes::{AUTHOR, READER},
};

/// The kind of the row of the workspace itself.
const WORKSPACE: &str = "workspace";
const LOCAL: &str = "local_server";
/// Number of entries whose line is looked up in their file.
const LINES: usize = 10;

/// The cards with the use of today. `after` is the last row of the page before.
pub(super) async fn cards(
    viewer: &Viewer<'_>,
    usage: &Usage,
    after: &str,
) -> Result<Vec<Card>, Problem> {
    let whole = usage.rows.iter().find(|row| row.kind.as_str() == WORKSPACE);
    let mut cards = vec![of_workspace(whole)];
    let mut parts: Vec<_> = usage
        .rows
        .iter()
        .filter(|row| row.kind.as_str() != WORKSPACE)
        .map(|row| (format!("{},{}", row.kind.as_str(), row.name), row))
        .collect();
    parts.sort_unstable_by(|one, other| one.0.cmp(&other.0));
    let counted = format!("{} agents and servers", parts.len());
    let rest = parts.into_iter().filter(|(key, _)| key.as_str() > after);
    let (shown, more) =
        tab::first(viewer, "settings/limits", rest, &counted, |(key, _)| key.clone());
    let pieces = match shown.is_empty() {
        true => vec![Piece::Empty(empty(viewer))],
        false => vec![
            Piece::Table(Table {
                caption: "Agents and servers that are limited or were used today",
                head: vec![
                    ("What", false),
                    ("Calls today", true),
                    ("Open now", true),
                    ("Rate", false),
                    ("Where its limits are set", false),
                ],
                rows: table(viewer, &shown).await?,
            }),
            more,
        ],
    };
    let sentence = "Each has limits of its own, which count beside those of the workspace.";
    cards.push(Card::new("usage", "Agents and servers", sentence, pieces));
    Ok(cards)
}

fn of_workspace(row: Option<&UsageRow>) -> Card {
    let pieces = match row {
        Some(row) => vec![Piece::Pairs(vec![
            ("calls today", calls(row)),
            ("open calls now", open(row)),
            ("rate", Cell::new(&rate(&row.limits))),
        ])],
        None => Vec::new(),
    };
    let sentence = "Calls of the day count until midnight in UTC; open calls are those at this \
                    daemon.";
    Card::new("today", "The workspace today", sentence, pieces)
}

async fn table(
    viewer: &Viewer<'_>,
    shown: &[(String, &UsageRow)],
) -> Result<Vec<Vec<Cell>>, Problem> {
    let snapshot = viewer.door.gateway.registry().snapshot();
    let mut table = Vec::new();
    let mut lines = 0;
    for (_, row) in shown {
        let is_local = row.kind.as_str() == LOCAL && viewer.sees_servers();
        let place = match is_local && !row.limits.is_none() && lines < LINES {
            true => {
                lines += 1;
                Some(local_place(viewer, &snapshot, &row.name).await?)
            }
            false => None,
        };
        table.push(vec![
            Cell::new(&row.name).to(href(viewer, &snapshot, row)),
            calls(row),
            open(row),
            Cell::new(&rate(&row.limits)),
            Cell::new(&place.unwrap_or_else(|| place_of(row).to_owned())),
        ]);
    }
    Ok(table)
}

/// The place of limits that no file has, or whose file the human may not see.
fn place_of(row: &UsageRow) -> &'static str {
    match row.kind.as_str() {
        "agent" => "limits in the definition of the agent",
        "server" => "limits in its entry in the catalog",
        _ => "limits in its entry in a file of the daemon",
    }
}

/// The file and the line with the limits of a server of the configuration.
async fn local_place(
    viewer: &Viewer<'_>,
    snapshot: &Snapshot,
    name: &str,
) -> Result<String, Problem> {
    let row = snapshot.servers.iter().find(|row| is_local(row, name));
    let Some(row) = row else { return Ok("its entry is gone".to_owned()) };
    let Some(file) = row.file.as_ref().map(|file| file.display().to_string()) else {
        return Ok("limits in a call of a program".to_owned());
    };
    let found = viewer.control().entry_lines(&row.name).await?;
    Ok(match found {
        Some(found) => {
            let key = found.keys.iter().find(|(key, _)| key == "limits");
            let line = key.map_or(found.line, |(_, line)| *line);
            format!("key limits, line {line} of {file}")
        }
        None => format!("key limits of its entry in {file}"),
    })
}

fn is_local(row: &ServerRow, name: &str) -> bool {
    !row.is_overridden && row.alias.as_ref().is_some_and(|alias| alias.as_str() == name)
}

/// The page of an object, if the human may open it.
fn href(viewer: &Viewer<'_>, snapshot: &Snapshot, row: &UsageRow) -> Option<String> {
    let name = tab::encoded(&row.name);
    match row.kind.as_str() {
        "agent" => {
            viewer.may(Access::Member(READER)).then(|| viewer.path(&format!("agents/{name}")))
        }
        "server" => {
            viewer.may(Access::Member(AUTHOR)).then(|| viewer.path(&format!("catalog/{name}")))
        }
        LOCAL if viewer.sees_servers() => {
            let found = snapshot.servers.iter().find(|local| is_local(local, &row.name))?;
            Some(rows::path(viewer, &found.name, "configuration"))
        }
        _ => None,
    }
}

fn calls(row: &UsageRow) -> Cell {
    match row.limits.calls_per_day {
        Some(most) => {
            let cell = Cell::number(&format!("{} of {most}", row.calls));
            if row.calls >= most.get() { cell.bad() } else { cell }
        }
        None => Cell::number(&format!("{}, no limit", row.calls)),
    }
}

fn open(row: &UsageRow) -> Cell {
    match row.limits.concurrent_calls {
        Some(most) => {
            let cell = Cell::number(&format!("{} of {most}", row.open));
            if row.open >= most.get() { cell.bad() } else { cell }
        }
        None => Cell::number(&format!("{}, no limit", row.open)),
    }
}

fn rate(limits: &TrafficLimits) -> String {
    match limits.rate() {
        Some(rate) => format!("{} a {}, {} at once", rate.calls, rate.period, rate.burst),
        None => "no limit".to_owned(),
    }
}

fn empty(viewer: &Viewer<'_>) -> Empty {
    let command = narthex("usage", &[]).in_workspace(viewer.workspace.as_str());
    Empty {
        title: "Nothing was used today",
        sentence: "An agent or a server is here once it has limits or a call of today.".to_owned(),
        example: Some(command.to_string()),
        page: Some("docs/reference/limits.md"),
    }
}
