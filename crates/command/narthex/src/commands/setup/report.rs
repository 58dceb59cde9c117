//! The end of a set-up: servers that work, servers that need a person, and the way back.

use narthex_client_files::plan::{Origin, Planned};
use narthex_model::command::narthex;
use serde_json::{Value, json};

use super::{apply::Applied, find::Survey};
use crate::{
    Failure,
    cli::Context,
    commands::import::{
        by_folder,
        shown::{origin, skipped_json},
    },
    output::{self, harmless},
};

/// Prints the result in the requested format.
pub(super) fn tell(
    survey: &Survey,
    applied: &Applied<'_>,
    context: &Context,
) -> Result<(), Failure> {
    if context.format.is_json() {
        return output::done(&to_json(survey, applied));
    }
    if context.format.is_quiet() {
        let mut moved = applied.moved.iter();
        return moved.try_for_each(|moved| output::line(moved.one.alias.as_str()));
    }
    moved(applied)?;
    stayed(survey, applied)?;
    connected(survey, applied)?;
    left_alone(survey)?;
    daemon(applied)?;
    problems(survey, applied)?;
    if !applied.moved.is_empty() {
        output::line(&format!("\nTo see the tools, run `{}`.", narthex("tools", &[])))?;
    }
    let undo = narthex("setup --undo", &[]);
    output::line(&format!("\nTo bring everything back as it was, run `{undo}`."))
}

/// The files that were not written, or not in whole.
fn problems(survey: &Survey, applied: &Applied<'_>) -> Result<(), Failure> {
    let own = applied.problems.iter();
    let own = own.map(|one| (&one.client.name, one.path, one.reason.clone()));
    let unread = survey.unread().map(|(file, reason)| {
        (&file.client.name, file.path.as_path(), format!("stays as it is: {reason}"))
    });
    for (name, path, reason) in own.chain(unread) {
        let line = harmless(&format!("{name} ({}): {reason}", path.display()));
        output::line(&format!("\n{line}"))?;
    }
    Ok(())
}

fn moved(applied: &Applied<'_>) -> Result<(), Failure> {
    if applied.moved.is_empty() {
        return output::line("\nNo server has moved to narthex.");
    }
    output::line("\nThese servers moved to narthex, and work there:")?;
    for moved in &applied.moved {
        let tools = output::counted(moved.tools as u64, "tool");
        output::line(&format!("  {:<20} {tools}", moved.one.alias.as_str()))?;
    }
    if !applied.secrets.is_empty() {
        let list = narthex("secrets list", &[]);
        let secrets = output::counted(applied.secrets.len() as u64, "secret");
        output::line(&format!("The vault has {secrets} of theirs now; `{list}` names them."))?;
    }
    Ok(())
}

/// The servers that stay in the files of clients, with the reason of each.
fn stayed(survey: &Survey, applied: &Applied<'_>) -> Result<(), Failure> {
    let stayed = stayed_servers(survey, applied);
    if stayed.is_empty() {
        return Ok(());
    }
    output::line("\nThese servers stay where they were:")?;
    for one in stayed {
        let sign_in = if one.needs_sign_in { "asks for a sign-in of yours: " } else { "" };
        let line = format!("  {} in {}: {sign_in}{}", one.name, one.places.join(", "), one.reason);
        output::line(&harmless(&line))?;
    }
    Ok(())
}

fn connected(survey: &Survey, applied: &Applied<'_>) -> Result<(), Failure> {
    if applied.connected.is_empty() {
        let has_client = !survey.new_files.is_empty() || survey.to_connect().next().is_some();
        let has_servers = survey.has_servers || !applied.moved.is_empty();
        return match has_client && !has_servers {
            true => output::line("\nNo client was connected, since narthex has no server yet."),
            false => Ok(()),
        };
    }
    output::line("\nThese clients are connected to narthex:")?;
    for one in &applied.connected {
        let hint = one.client.refresh_hint.as_deref();
        let hint = hint.map(|hint| format!(": {hint}")).unwrap_or_default();
        output::line(&harmless(&format!("  {}{hint}", one.client.name)))?;
    }
    Ok(())
}

/// The clients that are written only if they are named.
fn left_alone(survey: &Survey) -> Result<(), Failure> {
    if survey.left_alone.is_empty() {
        return Ok(());
    }
    output::line(
        "\nThese clients are as they were, since the form of their files is unconfirmed:",
    )?;
    for file in &survey.left_alone {
        let set_up = narthex("setup --only {}", &[&file.client.id]);
        let (name, path) = (&file.client.name, file.path.display());
        output::line(&harmless(&format!("  {name} ({path}): `{set_up}` sets it up")))?;
    }
    Ok(())
}

fn daemon(applied: &Applied<'_>) -> Result<(), Failure> {
    let mut lines = applied.service.sentences(applied.is_daemon_started);
    if applied.is_daemon_started {
        lines.insert(0, format!("The daemon listens at {}.", applied.url));
    }
    let mut lines = lines.into_iter();
    let Some(first) = lines.next() else { return Ok(()) };
    output::line(&format!("\n{}", harmless(&first)))?;
    lines.try_for_each(|line| output::line(&harmless(&line)))
}

/// A server that stays in files of clients.
struct Stayed<'s> {
    name: &'s str,
    places: Vec<String>,
    reason: String,
    needs_sign_in: bool,
}

fn stayed_servers<'s>(survey: &'s Survey, applied: &'s Applied<'_>) -> Vec<Stayed<'s>> {
    let place = |origin: &Origin| format!("{} ({})", origin.client.name, origin.path.display());
    let places = |one: &Planned| one.origins.iter().map(place).collect::<Vec<_>>();
    let failed = applied.failed.iter().map(|failed| Stayed {
        name: failed.one.alias.as_str(),
        places: places(failed.one),
        reason: failed.reason.clone(),
        needs_sign_in: failed.needs_sign_in,
    });
    let staying = survey.staying.iter().filter_map(|(at, reason)| {
        let one = survey.plan.servers.get(*at)?;
        let name = one.alias.as_str();
        let reason = reason.clone();
        Some(Stayed { name, places: places(one), reason, needs_sign_in: false })
    });
    let skipped = survey.plan.skipped.iter().map(|one| Stayed {
        name: &one.origin.name,
        places: vec![place(&one.origin)],
        reason: one.reason.clone(),
        needs_sign_in: false,
    });
    let by_folder = by_folder::stays(&survey.by_folder).map(|one| Stayed {
        name: one.name,
        places: vec![one.place()],
        reason: one.reason(),
        needs_sign_in: false,
    });
    failed.chain(staying).chain(skipped).chain(by_folder).collect()
}

fn to_json(survey: &Survey, applied: &Applied<'_>) -> Value {
    let from = |one: &Planned| one.origins.iter().map(origin).collect::<Vec<_>>();
    let moved = applied.moved.iter().map(
        |moved| json!({ "name": moved.one.alias, "tools": moved.tools, "from": from(moved.one) }),
    );
    let failed = applied.failed.iter().map(|failed| {
        json!({
            "name": failed.one.alias,
            "reason": failed.reason,
            "needs_sign_in": failed.needs_sign_in,
            "from": from(failed.one),
        })
    });
    let staying = survey.staying.iter().filter_map(|(at, reason)| {
        let one = survey.plan.servers.get(*at)?;
        let name = &one.alias;
        Some(json!({
            "name": name, "reason": reason, "needs_sign_in": false, "from": from(one),
        }))
    });
    let connected = applied
        .connected
        .iter()
        .map(|one| json!({ "client": one.client.label(), "file": one.path.to_string_lossy() }));
    let problems = applied.problems.iter().map(|problem| {
        json!({
            "client": problem.client.label(),
            "file": problem.path.to_string_lossy(),
            "reason": problem.reason,
        })
    });
    json!({
        "moved": moved.collect::<Vec<_>>(),
        "stayed": failed.chain(staying).collect::<Vec<_>>(),
        "left_alone": survey.left_alone_json(),
        "skipped": skipped_json(&survey.plan),
        "by_folder": survey.by_folder_json(),
        "connected": connected.collect::<Vec<_>>(),
        "problems": problems.chain(survey.problems_json()).collect::<Vec<_>>(),
        "untrusted": survey.projects.to_json(),
        "secrets": applied.secrets,
        "settings": survey.settings.to_string_lossy(),
        "is_daemon_started": applied.is_daemon_started,
        "service": applied.service.to_json(),
        "undo": narthex("setup --undo", &[]).to_string(),
    })
}
