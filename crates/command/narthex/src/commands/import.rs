//! `narthex mcp import`: copies the servers of this user's MCP clients into the user's settings.
//!
//! Files of clients are read and never written. A server of the settings is never overwritten.

mod adding;
mod advice;
pub(super) mod by_folder;
pub(super) mod check;
pub(super) mod shown;

use std::{
    collections::BTreeMap,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use narthex_client::{
    DaemonOptions,
    cli::ImportServersArgs,
    commands::typed::is_agreed,
    daemon_client::{DaemonClient, workspace_path},
    environment::{home, variable},
};
use narthex_client_files::{
    clients::{Client, Machine, System, ids},
    edit::{Document, Format, Parent},
    file,
    inventory::{FoundFile, look, look_by_folder},
    plan::{Outcome, Plan, Planned},
};
use narthex_model::{
    ErrorKind,
    command::{narthex, quoted},
    did_you_mean,
};
use narthex_registry::layers::SettingsFile;
use serde_json::Value;

use self::{
    adding::{Taken, Way, free_name},
    advice::Advice,
    by_folder::Stays,
};
use crate::{
    Failure,
    cli::Context,
    config,
    output::{self, harmless},
};

/// The bits of a mode by which the group or others may do anything.
const OTHERS: u32 = 0o077;

/// The files and servers that were found, and the fate of each.
struct Import {
    /// The settings file.
    file: PathBuf,
    /// The current folder.
    root: PathBuf,
    files: Vec<FoundFile>,
    /// Servers that a client uses in one folder alone, by a file of the user.
    by_folder: Vec<Stays>,
    plan: Plan,
    /// Reasons for which narthex refuses a server, by its place in the plan.
    refused: BTreeMap<usize, String>,
    /// Ways to add a server beside the one that has its name, by its place in the plan.
    beside: BTreeMap<usize, String>,
}

pub(crate) async fn run(args: ImportServersArgs, context: Context) -> Result<ExitCode, Failure> {
    let file = context.settings.servers.clone().ok_or_else(no_home)?;
    let import = Import::find(&args.from, file, &context.settings.daemon).await?;
    let is_text = context.format.is_text();
    if is_text {
        import.show()?;
    }
    let count = import.to_add().count();
    if args.dry_run || count == 0 {
        return import.unchanged(args.dry_run, &context);
    }
    import.check_mode()?;
    let file = harmless(&import.file.display().to_string());
    let question = match count {
        1 => format!("Copy this server into {file}?"),
        count => format!("Copy these {count} servers into {file}?"),
    };
    let is_wanted = is_agreed(args.yes, context.format, &question).await?;
    if !is_wanted {
        let text = "no server was imported, and nothing has changed; answer `y` on a terminal, or \
                    add --yes";
        let details = Some(import.to_json(false));
        return Err(Failure::new(ErrorKind::Denied, text).with_details(details));
    }
    import.store().await?;
    if context.format.is_json() {
        output::done(&import.to_json(true))?;
    } else if context.format.is_quiet() {
        import.to_add().try_for_each(|one| output::line(one.alias.as_str()))?;
    } else {
        import.tell_stored(&context.settings.daemon).await?;
    }
    Ok(ExitCode::SUCCESS)
}

impl Import {
    async fn find(from: &[String], file: PathBuf, daemon: &DaemonOptions) -> Result<Self, Failure> {
        known("--from", from)?;
        let root = config::workspace_root()?;
        let home = home(&variable).ok_or_else(no_home)?;
        let system = System::current();
        let machine = Machine { system, home: &home, folder: &root, variable: &variable };
        let is_wanted = |id: &str| from.is_empty() || from.iter().any(|one| one == id);
        let files = look(&machine, &|client| is_wanted(&client.id));
        let by_folder = look_by_folder(&machine, &|client| is_wanted(&client.id));
        let entries = existing(&file)?;
        let plan = Plan::of_copies(&files, &entries);
        let refused = check::refused(&plan, &file, &root);
        let prints_commands = !by_folder.is_empty() || plan.servers.iter().any(is_second);
        let mut taken = taken(&entries, &plan, prints_commands.then_some(daemon)).await;
        let beside = beside(&plan, &mut taken, &file, &root);
        let by_folder = by_folder::stays(&by_folder, taken, check::ways(&file, &root));
        Ok(Self { file, root, files, by_folder, plan, refused, beside })
    }

    /// The servers that the command adds.
    fn to_add(&self) -> impl Iterator<Item = &Planned> {
        let servers = self.plan.servers.iter().enumerate();
        let wanted = servers.filter(|(index, one)| {
            one.outcome == Outcome::Add && !self.refused.contains_key(index)
        });
        wanted.map(|(_, one)| one)
    }

    /// The result of a command that stores nothing.
    fn unchanged(&self, is_dry: bool, context: &Context) -> Result<ExitCode, Failure> {
        if context.format.is_json() {
            output::done(&self.to_json(false))?;
        } else if context.format.is_quiet() {
            self.to_add().try_for_each(|one| output::line(one.alias.as_str()))?;
        } else if is_dry {
            output::line("\nNothing has changed: this was a dry run.")?;
        } else {
            output::line("\nThere is nothing to import, and nothing has changed.")?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Refuses to put secrets into a file that other users may read.
    fn check_mode(&self) -> Result<(), Failure> {
        let has_secrets = self.to_add().any(|one| !one.server.secrets().is_empty());
        if has_secrets { check_private(&self.file) } else { Ok(()) }
    }

    async fn store(&self) -> Result<(), Failure> {
        let variables = check::assumed(&self.plan);
        let settings = SettingsFile::new(&self.file, &self.root, variables);
        let mut advice = Advice::default();
        for one in self.to_add() {
            let added = settings.add(one.alias.as_str(), one.server.entry().expose()).await;
            let edited = added.map_err(|error| Failure::caused(error.kind(), &error))?;
            // Secrets were shown by their places already.
            advice.add(&one.alias, edited, &one.server.secrets());
        }
        for sentence in advice.sentences(&self.file) {
            output::notice(&format!("warning: {}", harmless(&sentence)));
        }
        Ok(())
    }
}

/// The names of servers and secrets that are there, or may come. The secrets of the daemon `asked`
/// count, if it runs.
pub(super) async fn taken(
    entries: &BTreeMap<String, Value>,
    plan: &Plan,
    asked: Option<&DaemonOptions>,
) -> Taken {
    let planned = plan.servers.iter().map(|one| one.alias.as_str().to_owned());
    let servers = entries.keys().cloned().chain(planned).collect();
    let texts: Vec<_> = entries.values().map(ToString::to_string).collect();
    let named = texts.iter().flat_map(|text| text.split("${secret:").skip(1));
    let named = named.filter_map(|rest| Some(rest.split_once('}')?.0.to_owned()));
    let mut taken = Taken { servers, secrets: named.collect() };
    if let Some(daemon) = asked {
        // Without an answer, the names of the settings are all that is known.
        taken.secrets.extend(in_vault(daemon).await.unwrap_or_default());
    }
    taken
}

/// The names of the secrets of local servers; none if no daemon runs.
async fn in_vault(daemon: &DaemonOptions) -> Result<Vec<String>, Failure> {
    let Some(client) = DaemonClient::of_data_if_up(daemon)? else { return Ok(Vec::new()) };
    let all = client.api_all(&workspace_path("default", "/secrets")).await?;
    Ok(all.iter().filter_map(|secret| Some(secret["name"].as_str()?.to_owned())).collect())
}

/// True for a server whose name another one has.
fn is_second(one: &Planned) -> bool {
    matches!(one.outcome, Outcome::Taken | Outcome::Differs { .. })
}

/// The ways to add servers whose names other ones have, by their places in the plan.
fn beside(plan: &Plan, taken: &mut Taken, file: &Path, root: &Path) -> BTreeMap<usize, String> {
    let way = check::ways(file, root);
    let mut beside = BTreeMap::new();
    for (at, one) in plan.servers.iter().enumerate() {
        let Some(origin) = one.origins.first().filter(|_| is_second(one)) else { continue };
        let client = origin.client;
        let alias = free_name(one.alias.as_str(), &client.id, &mut taken.servers);
        let told = match way(&one.server, &alias, &mut taken.secrets) {
            Way::Add(adding) => adding.told("adds this one as well"),
            Way::Refused(reason) => format!("narthex cannot use this one: {reason}"),
            Way::ByHand => by_set_up(one, client),
        };
        beside.insert(at, told);
    }
    beside
}

/// The way to move a server with a secret that no command should have.
fn by_set_up(one: &Planned, client: &Client) -> String {
    let set_up = narthex("setup --only {}", &[&client.id]);
    let disabled = "it is disabled there; enable it, then run the command again";
    let is_disabled = one.server.is_disabled.then(|| disabled.to_owned());
    match check::needs_client(one).or(is_disabled) {
        Some(reason) => format!(
            "this one has a secret that no command should have, and `{set_up}` leaves it in its \
             file: {reason}"
        ),
        None => format!(
            "this one has a secret that no command should have; `{set_up}` moves all servers of {} \
             that work to narthex, also this one",
            client.name
        ),
    }
}

/// Refuses a file for secrets that other users may read.
pub(super) fn check_private(file: &Path) -> Result<(), Failure> {
    let Ok(metadata) = fs_err::metadata(file) else { return Ok(()) };
    let mode = metadata.permissions().mode() & 0o7777;
    if mode & OTHERS == 0 {
        return Ok(());
    }
    let file = file.display().to_string();
    let text = format!(
        "{file} has the mode {mode:04o}, so other users may read the secrets that would be in it; \
         make it private with `chmod 600 {}`, then try again",
        quoted(&file)
    );
    Err(Failure::new(ErrorKind::Denied, text))
}

/// Refuses names that no client has, given by a flag.
pub(super) fn known(flag: &str, names: &[String]) -> Result<(), Failure> {
    let ids = ids();
    let Some(unknown) = names.iter().find(|one| !ids.contains(&one.as_str())) else {
        return Ok(());
    };
    let meant = did_you_mean(unknown, ids.iter().copied());
    let meant = meant.map(|question| format!("{question} ")).unwrap_or_default();
    let known = ids.join(", ");
    Err(Failure::usage(format!("{flag}: no client is called `{unknown}`; {meant}known: {known}")))
}

/// The entries of the settings file by name; none if it does not exist.
pub(super) fn existing(file: &Path) -> Result<BTreeMap<String, Value>, Failure> {
    let invalid =
        |text: String| Failure::new(ErrorKind::Invalid, format!("{}: {text}", file.display()));
    let bytes =
        file::read(file).map_err(|error| Failure::caused(ErrorKind::Unavailable, &error))?;
    let bytes = bytes.unwrap_or_default();
    let document =
        Document::parse(Format::Jsonc, &bytes).map_err(|error| invalid(error.to_string()))?;
    let entries = document.entries(&Parent::map(["mcp", "servers"]));
    Ok(entries.map_err(|error| invalid(error.to_string()))?.into_iter().collect())
}

pub(super) fn no_home() -> Failure {
    let text = "there is no home directory with files of clients; set HOME, then try again";
    Failure::new(ErrorKind::NotFound, text)
}
