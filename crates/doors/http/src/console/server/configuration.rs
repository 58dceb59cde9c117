//! The configuration of a server as it counts now, each value with its origin. Values of secrets,
//! arguments and the path of an address are not shown (E147).

use http::StatusCode;
use narthex_console::{
    html,
    pages::server::configuration::{ServerConfigurationPage, Setting},
    parts::{Same, Words},
};
use narthex_model::{Provenance, ServerDefinition, command::narthex};
use narthex_registry::{ServerRow, layers::EntryLines};

use super::{
    settings::{self, Value},
    spot::{self, Tabbed},
};
use crate::console::{
    answer::{self, Answered},
    frame::{Head, frame},
    rows,
    viewer::Viewer,
};

pub(super) async fn show(viewer: &Viewer<'_>) -> Answered {
    viewer.query(&[])?;
    let name = viewer.segment(0);
    let (_, row) = spot::find(viewer, &name)?;
    let lines = viewer.control().entry_lines(&name).await?;
    let head = Head {
        title: Words::new(&format!("Configuration of {name}")),
        sentence: "The entry of the server as it counts now, and the place at which it is changed.",
        same: Some(Same::new(
            &narthex("mcp list", &[]).to_string(),
            &format!("GET /api/servers/{name}"),
        )),
    };
    let page = ServerConfigurationPage {
        frame: frame(viewer, head).await?,
        tabs: spot::tabs(viewer, &row, Tabbed::Configuration),
        place: Words::new(&place(&row, lines.as_ref())),
        command: command(&row),
        settings: row
            .definition
            .as_deref()
            .map(|definition| drawn(&row, definition, lines.as_ref()))
            .unwrap_or_default(),
        others: others(viewer, &name),
        fault: fault(&row),
    };
    Ok(answer::page(StatusCode::OK, html(&page)))
}

/// The place at which the entry is changed.
fn place(row: &ServerRow, lines: Option<&EntryLines>) -> String {
    let Some(file) = row.file.as_ref().map(|file| file.display()) else {
        return "A program has added this server by a call, and changes it there.".to_owned();
    };
    let line = match lines {
        Some(lines) => format!("Edit line {} of {file}.", lines.line),
        None => format!("The entry is not in {file} any more, or the file cannot be read."),
    };
    let further = match row.provenance {
        Provenance::Settings => "The file is followed: a change counts at once.",
        Provenance::Workspace => "The file belongs to a project. Nothing is changed from here.",
        Provenance::Programmatic => "A program has added the entry by a call.",
    };
    format!("{line} {further}")
}

/// The command after which a changed file counts.
fn command(row: &ServerRow) -> Option<String> {
    let file = row.file.as_ref()?.display().to_string();
    let approved = row.definition.as_ref().and_then(|definition| definition.approved_in.as_ref());
    Some(match approved {
        Some(_) => narthex("trust {}", &[&file]).to_string(),
        None => narthex("mcp reload", &[]).to_string(),
    })
}

/// The entries of the same name that do not count.
fn others(viewer: &Viewer<'_>, name: &str) -> Vec<Words> {
    let snapshot = viewer.door.gateway.registry().snapshot();
    let all = rows::seen(viewer, &snapshot);
    let others = all.iter().filter(|(_, row)| row.is_overridden && row.name == name);
    let others = others.map(|(_, row)| {
        let place = row.file.as_ref().map(|file| file.display().to_string());
        let place = place.unwrap_or_else(|| "a program".to_owned());
        Words::new(&format!("The entry of the same name in {place} does not count."))
    });
    others.collect()
}

/// The reason why the entry cannot be used.
fn fault(row: &ServerRow) -> Option<Words> {
    let failure = row.error.as_ref().filter(|_| row.definition.is_none())?;
    Some(Words::within(failure.operator_cause(), 2_000))
}

/// All settings: those that count, and the other keys of the entry.
fn drawn(
    row: &ServerRow,
    definition: &ServerDefinition,
    lines: Option<&EntryLines>,
) -> Vec<Setting> {
    let values = settings::of(definition);
    let keys = lines.map(|lines| &*lines.keys).unwrap_or_default();
    let is_shown = |key: &str| values.iter().any(|value| value.keys.contains(&key));
    let rest: Vec<_> = keys
        .iter()
        .filter(|(key, _)| !is_shown(key))
        .map(|(key, line)| Setting {
            key: Words::new(key),
            value: Words::new("as it is written in the file"),
            origin: Words::new(&format!("line {line}")),
        })
        .collect();
    let shown = values.iter().map(|value| Setting {
        key: Words::new(&value.name),
        value: Words::new(&value.words),
        origin: Words::new(&origin(row, value, lines)),
    });
    shown.chain(rest).collect()
}

/// The origin of a value: a line of the file, with the secret or the variables that it names, or
/// the default.
fn origin(row: &ServerRow, value: &Value, lines: Option<&EntryLines>) -> String {
    let line = lines.and_then(|lines| {
        let find = |key: &&str| lines.keys.iter().find(|(known, _)| known == key);
        value.keys.iter().find_map(find)
    });
    let place = match (line, lines) {
        (Some((_, line)), _) => format!("line {line}"),
        (None, Some(_)) => "default".to_owned(),
        (None, None) if row.file.is_some() => "the file, as it was when it was applied".to_owned(),
        (None, None) => "the program that added it".to_owned(),
    };
    match &value.from {
        Some(from) => format!("{place}, from {from}"),
        None => place,
    }
}
