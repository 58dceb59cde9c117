//! The end of a set-up: servers that work, servers that need a person, and the way back.

use narthex_client_files::plan::{Origin, Planned};
use narthex_model::{Alias, ErrorKind, command::narthex};
use serde_json::{Value, json};

use super::{
    apply::{Applied, Moved},
    connection::NAME,
    find::Survey,
};
use crate::{
    Failure,
    cli::Context,
    commands::import::shown::{origin, skipped_json},
    output::{self, harmless},
};

/// Prints the result in the requested format.
///
/// # Errors
/// When a file was not written, after the result.
pub(super) fn tell(
    survey: &Survey,
    applied: &Applied<'_>,
    context: &Context,
) -> Result<(), Failure> {
    if context.format.is_json() {
        let document = to_json(survey, applied);
        return match incomplete(survey, applied) {
            Some(failure) => Err(failure.with_details(Some(document))),
            None => output::done(&document),
        };
    }
    if context.format.is_quiet() {
        moved_servers(applied).try_for_each(|moved| output::line(moved.one.alias.as_str()))?;
        return incomplete(survey, applied).map_or(Ok(()), Err);
    }
    moved(applied)?;
    stayed(survey, applied)?;
    connected(survey, applied)?;
    left_alone(survey)?;
    problems(survey, applied)?;
    daemon(applied)?;
    if !applied.moved.is_empty() {
        output::sentence(&format!("\nTo see the tools, run `{}`.", narthex("tools", &[])))?;
    }
    let undo = narthex("setup --undo", &[]);
    output::sentence(&format!("\nTo bring everything back as it was, run `{undo}`."))?;
    incomplete(survey, applied).map_or(Ok(()), Err)
}

/// The failure of a set-up that could not write a file.
fn incomplete(survey: &Survey, applied: &Applied<'_>) -> Option<Failure> {
    if applied.unwritten.is_empty() {
        return None;
    }
    let files = applied.unwritten.iter().map(|(_, path)| path.display().to_string());
    let text = format!(
        "the set-up is not complete, since it could not write {}; mend what keeps it from that, \
         then run `{}` again",
        files.collect::<Vec<_>>().join(", "),
        survey.command()
    );
    Some(Failure::new(ErrorKind::Conflict, harmless(&text)))
}

/// True if the file of an entry was written, so that the entry is not there any more.
fn has_left(applied: &Applied<'_>, origin: &Origin) -> bool {
    let mut unwritten = applied.unwritten.iter();
    !unwritten.any(|(client, path)| *path == origin.path && client.label() == origin.client.label())
}

/// The servers that have left at least one file.
fn moved_servers<'a>(applied: &'a Applied<'a>) -> impl Iterator<Item = &'a Moved<'a>> {
    let moved = applied.moved.iter();
    moved.filter(move |moved| moved.one.origins.iter().any(|origin| has_left(applied, origin)))
}

/// The servers that work through narthex and are in files as well, which could not be written.
fn unmoved<'a>(applied: &'a Applied<'a>) -> impl Iterator<Item = (&'a Planned, Vec<&'a Origin>)> {
    applied.moved.iter().filter_map(move |moved| {
        let origins = moved.one.origins.iter();
        let there: Vec<_> = origins.filter(|origin| !has_left(applied, origin)).collect();
        (!there.is_empty()).then_some((moved.one, there))
    })
}

/// The reason for which such a server is there.
fn reason_of_unmoved(survey: &Survey) -> String {
    let setup = survey.command();
    format!(
        "it works through narthex, but this file could not be written; mend what keeps it from \
         that, then run `{setup}` again"
    )
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
        output::sentence(&format!("\n{line}"))?;
    }
    Ok(())
}

fn moved(applied: &Applied<'_>) -> Result<(), Failure> {
    let moved: Vec<_> = moved_servers(applied).collect();
    if moved.is_empty() {
        output::sentence("\nNo server has moved to narthex.")?;
    } else {
        output::sentence("\nThese servers moved to narthex, and work there:")?;
    }
    for one in &moved {
        let tools = output::counted(one.tools as u64, "tool");
        output::sentence(&format!("  {:<20} {tools}", one.one.alias.as_str()))?;
        let origins = one.one.origins.iter().filter(|origin| has_left(applied, origin));
        for origin in origins.filter(|origin| origin.name != one.one.alias.as_str()) {
            let (name, client) = (&origin.name, &origin.client.name);
            let line = format!("    was `{name}` in {client} ({})", origin.path.display());
            output::sentence(&harmless(&line))?;
        }
    }
    secrets(&moved, applied)
}

/// The secrets in the vault: those of servers that moved, and those of others in the settings.
fn secrets(moved: &[&Moved<'_>], applied: &Applied<'_>) -> Result<(), Failure> {
    let has_moved = |alias: &Alias| moved.iter().any(|one| one.one.alias == *alias);
    let all = applied.secrets.iter();
    let (of_moved, others): (Vec<_>, Vec<_>) = all.partition(|(alias, _)| has_moved(alias));
    let list = narthex("secrets list", &[]);
    if !of_moved.is_empty() {
        let secrets = output::counted(of_moved.len() as u64, "secret");
        output::sentence(&format!("The vault has {secrets} of theirs now; `{list}` names them."))?;
    }
    if others.is_empty() {
        return Ok(());
    }
    let mut servers: Vec<_> = others.iter().map(|(alias, _)| alias.as_str()).collect();
    servers.dedup();
    let (secrets, servers) = (output::counted(others.len() as u64, "secret"), servers.join(", "));
    output::sentence(&format!(
        "The vault has {secrets} of {servers} now, in narthex's settings; `{list}` names them."
    ))
}

/// The servers that stay in the files of clients, with the reason of each.
fn stayed(survey: &Survey, applied: &Applied<'_>) -> Result<(), Failure> {
    let stayed = stayed_servers(survey, applied);
    if stayed.is_empty() {
        return Ok(());
    }
    output::sentence("\nThese servers stay where they were:")?;
    for one in stayed {
        let sign_in = if one.needs_sign_in { "asks for a sign-in of yours: " } else { "" };
        let line = format!("  {} in {}: {sign_in}{}", one.name, one.places.join(", "), one.reason);
        output::sentence(&harmless(&line))?;
    }
    Ok(())
}

fn connected(survey: &Survey, applied: &Applied<'_>) -> Result<(), Failure> {
    if applied.connected.is_empty() {
        let has_client = !survey.new_files.is_empty() || survey.to_connect().next().is_some();
        let has_servers = survey.has_servers || !applied.moved.is_empty();
        return match has_client && !has_servers {
            true => output::sentence("\nNo client was connected, since narthex has no server yet."),
            false => Ok(()),
        };
    }
    output::sentence("\nThese clients are connected to narthex:")?;
    for one in &applied.connected {
        let hint = one.client.refresh_hint.as_deref();
        let hint = hint.map(|hint| format!(": {hint}")).unwrap_or_default();
        output::sentence(&harmless(&format!("  {}{hint}", one.client.name)))?;
        if one.name != NAME {
            let line = format!(
                "    as `{}` in {}, since another entry there is called `{NAME}`",
                one.name,
                one.path.display()
            );
            output::sentence(&harmless(&line))?;
        }
    }
    Ok(())
}

/// The clients that are written only if they are named.
fn left_alone(survey: &Survey) -> Result<(), Failure> {
    if survey.left_alone.is_empty() {
        return Ok(());
    }
    output::sentence(
        "\nThese clients are as they were, since the form of their files is unconfirmed:",
    )?;
    for file in &survey.left_alone {
        let set_up = narthex("setup --only {}", &[&file.client.id]);
        let (name, path) = (&file.client.name, file.path.display());
        let is_faulty = survey.unread().any(|(faulty, _)| faulty.path == file.path);
        let after = if is_faulty { "once its fault is corrected, " } else { "" };
        output::sentence(&harmless(&format!("  {name} ({path}): {after}`{set_up}` sets it up")))?;
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
    output::sentence(&format!("\n{}", harmless(&first)))?;
    lines.try_for_each(|line| output::sentence(&harmless(&line)))
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
    // The file has the server under its own name, where a person has to look for it.
    let of_planned = |one: &Planned, origin: &Origin| match origin.name == one.alias.as_str() {
        true => place(origin),
        false => {
            let (name, client) = (&origin.name, &origin.client.name);
            format!("{client} (`{name}` in {})", origin.path.display())
        }
    };
    let places = |one: &Planned| {
        one.origins.iter().map(|origin| of_planned(one, origin)).collect::<Vec<_>>()
    };
    let failed = applied.failed.iter().map(|failed| Stayed {
        name: failed.one.alias.as_str(),
        places: places(failed.one),
        reason: failed.reason.clone(),
        needs_sign_in: failed.needs_sign_in,
    });
    let unmoved = unmoved(applied).map(|(one, origins)| Stayed {
        name: one.alias.as_str(),
        places: origins.into_iter().map(|origin| of_planned(one, origin)).collect(),
        reason: reason_of_unmoved(survey),
        needs_sign_in: false,
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
    let by_folder = survey.by_folder.iter().map(|one| Stayed {
        name: &one.name,
        places: vec![one.place()],
        reason: one.reason(),
        needs_sign_in: false,
    });
    failed.chain(unmoved).chain(staying).chain(skipped).chain(by_folder).collect()
}

/// The servers that moved, with the files that they have left.
fn moved_json(applied: &Applied<'_>) -> Vec<Value> {
    let moved = moved_servers(applied).map(|moved| {
        let from = moved.one.origins.iter().filter(|one| has_left(applied, one));
        let from: Vec<_> = from.map(origin).collect();
        json!({ "name": moved.one.alias, "tools": moved.tools, "from": from })
    });
    moved.collect()
}

/// The servers that are still in files that could not be written.
fn unmoved_json(survey: &Survey, applied: &Applied<'_>) -> Vec<Value> {
    let unmoved = unmoved(applied).map(|(one, origins)| {
        let from: Vec<_> = origins.into_iter().map(origin).collect();
        let reason = reason_of_unmoved(survey);
        json!({ "name": one.alias, "reason": reason, "needs_sign_in": false, "from": from })
    });
    unmoved.collect()
}

fn to_json(survey: &Survey, applied: &Applied<'_>) -> Value {
    let from = |one: &Planned| one.origins.iter().map(origin).collect::<Vec<_>>();
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
    let connected = applied.connected.iter().map(|one| {
        let file = one.path.to_string_lossy();
        json!({ "client": one.client.label(), "file": file, "name": one.name })
    });
    let problems = applied.problems.iter().map(|problem| {
        json!({
            "client": problem.client.label(),
            "file": problem.path.to_string_lossy(),
            "reason": problem.reason,
        })
    });
    let secrets: Vec<_> = applied.secrets.iter().map(|(_, name)| name).collect();
    json!({
        "moved": moved_json(applied),
        "stayed": failed.chain(unmoved_json(survey, applied)).chain(staying).collect::<Vec<_>>(),
        "left_alone": survey.left_alone_json(),
        "skipped": skipped_json(&survey.plan),
        "by_folder": survey.by_folder_json(),
        "connected": connected.collect::<Vec<_>>(),
        "problems": problems.chain(survey.problems_json()).collect::<Vec<_>>(),
        "untrusted": survey.projects.to_json(),
        "secrets": secrets,
        "settings": survey.settings.to_string_lossy(),
        "is_daemon_started": applied.is_daemon_started,
        "service": applied.service.to_json(),
        "undo": narthex("setup --undo", &[]).to_string(),
    })
}
