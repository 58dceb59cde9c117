//! `narthex service uninstall`: stops the service and removes its files.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use fs_err as fs;
use serde_json::json;

use super::place::{Place, run_all, would_run};
use crate::{
    Context, Failure,
    cli::{ServiceOfArgs, ServiceUninstallArgs},
    commands::waiting::waiting,
    output,
    service::{SYSTEM_USER, SYSUSERS, State, Words, is_ours},
};

pub(super) async fn run(
    args: &ServiceUninstallArgs,
    context: &Context,
) -> Result<ExitCode, Failure> {
    let place = Place::of(&args.of, context)?;
    let file = place.file.display();
    if place.own_text()?.is_none() {
        let data = json!({
            "was_installed": false, "is_dry_run": args.dry_run, "file": place.file,
        });
        return output::told(
            &data,
            &format!("There is no service: {file} is absent."),
            context.format,
        );
    }
    let state = match place.manager.state().await {
        Ok(state) => state,
        Err(_) if args.dry_run => State::default(),
        Err(failure) => return Err(failure),
    };
    let (before, after) = place.manager.uninstall(&state);
    let stays = match place.is_system() {
        true => {
            format!("The data in {} and the user {SYSTEM_USER} stay.", place.data.path().display())
        }
        false => format!("The data in {} and your settings stay.", place.data.path().display()),
    };
    let commands = [before.clone(), after.clone()].concat();
    let data = |is_dry_run: bool| {
        json!({
            "was_installed": true,
            "is_dry_run": is_dry_run,
            "manager": place.manager.name(),
            "file": place.file,
            "commands": commands,
        })
    };
    if args.dry_run {
        let mut lines: Vec<_> = would_run(&before).collect();
        lines.push(format!("Would remove {file}"));
        lines.extend(would_run(&after));
        lines.push(stays);
        return output::told_lines(&data(true), &lines, context.format);
    }
    place.check_rights()?;
    remove(&place, &before, &after, context).await?;
    let lines = [format!("Stopped the service, and removed {file}"), stays];
    output::told_lines(&data(false), &lines, context.format)
}

/// Stops the service, and removes its files.
async fn remove(
    place: &Place,
    before: &[Words],
    after: &[Words],
    context: &Context,
) -> Result<(), Failure> {
    waiting("stopping the service", context, run_all(before)).await?;
    fs::remove_file(&place.file)?;
    if place.is_system() {
        remove_own(Path::new(SYSUSERS))?;
    }
    run_all(after).await
}

/// Stops and removes the service of this data directory and user.
pub(super) async fn remove_own_service(context: &Context) -> Result<Option<PathBuf>, Failure> {
    let place = Place::of(&ServiceOfArgs::default(), context)?;
    if !place.is_installed() {
        return Ok(None);
    }
    let state = place.manager.state().await?;
    let (before, after) = place.manager.uninstall(&state);
    remove(&place, &before, &after, context).await?;
    Ok(Some(place.file))
}

/// Removes a file if narthex has written it.
fn remove_own(path: &Path) -> Result<(), Failure> {
    match fs::read_to_string(path) {
        Ok(text) if is_ours(&text) => Ok(fs::remove_file(path)?),
        Ok(_) | Err(_) => Ok(()),
    }
}
