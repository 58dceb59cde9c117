//! Carries a set-up out: secrets, settings, the check of each server, and the files of clients.

use std::path::Path;

use narthex_client::commands::service::Offer;
use narthex_client_files::{
    clients::Client,
    file,
    inventory::{Content, FoundFile},
    journal::Journal,
    plan::{Outcome, Planned, is_gone_narthex},
    rewrite::{Edit, parse, rewrite},
    servers::{Found, FoundServer, places},
};
use narthex_model::{Alias, command::narthex, with_causes};

use super::{
    connection::{Connection, inserted},
    daemon::{Checked, Daemon},
    find::Survey,
    projects, secrets,
    service::Service,
    settings::{self, Unproven},
};
use crate::{Failure, cli::Context, commands::source, config::Settings, output::harmless};

/// The results of a set-up.
pub(super) struct Applied<'s> {
    pub(super) moved: Vec<Moved<'s>>,
    pub(super) failed: Vec<Failed<'s>>,
    pub(super) connected: Vec<Connected<'s>>,
    pub(super) problems: Vec<Problem<'s>>,
    /// The files among these that were not written at all.
    pub(super) unwritten: Vec<(&'static Client, &'s Path)>,
    /// New contents of approved files of the folder.
    rewritten: Vec<(&'static Client, &'s Path, Vec<u8>)>,
    /// Names of the secrets that the vault has now, each with its server.
    pub(super) secrets: Vec<(Alias, String)>,
    /// True if the daemon was started.
    pub(super) is_daemon_started: bool,
    /// The URL of the daemon, without a path.
    pub(super) url: String,
    pub(super) service: Service,
}

/// A server that works through narthex.
pub(super) struct Moved<'s> {
    pub(super) one: &'s Planned,
    /// Number of its tools.
    pub(super) tools: usize,
}

/// A server that does not work through narthex.
pub(super) struct Failed<'s> {
    pub(super) one: &'s Planned,
    pub(super) reason: String,
    pub(super) needs_sign_in: bool,
}

/// A file with narthex's own entry.
pub(super) struct Connected<'s> {
    pub(super) client: &'static Client,
    pub(super) path: &'s Path,
    /// The name of the entry: another than usual where that one is taken.
    pub(super) name: String,
}

/// A file that was not written, or not in whole.
pub(super) struct Problem<'s> {
    pub(super) client: &'static Client,
    pub(super) path: &'s Path,
    pub(super) reason: String,
}

pub(super) async fn run<'s>(
    survey: &'s Survey,
    offer: Offer,
    journal: &mut Journal,
    context: &Context,
) -> Result<Applied<'s>, Failure> {
    let service = Service::install(offer, journal, context).await?;
    let daemon = Daemon::ensure(context).await?;
    daemon.check_follows(&survey.settings).await?;
    let moving: Vec<_> = survey.moving().collect();
    let with_secrets = settings::with_secrets(survey);
    let needed = secrets::needed(settings::entries(&survey.settings)?);
    let names = secrets::store(&with_secrets, &needed, journal, &daemon).await?;
    let stored = with_secrets.into_iter().map(|(one, _)| one).zip(names);
    let stored: Vec<_> = stored.collect();
    settings::add(&stored, survey, journal).await?;
    daemon.reload().await?;
    let aliases: Vec<_> = moving.iter().map(|one| &one.alias).collect();
    let mut checked = daemon.check(&aliases, context).await?;
    let mut applied = Applied {
        moved: Vec::new(),
        failed: Vec::new(),
        connected: Vec::new(),
        problems: Vec::new(),
        unwritten: Vec::new(),
        rewritten: Vec::new(),
        secrets: Vec::new(),
        is_daemon_started: daemon.is_started || service.is_new(),
        url: daemon.client.state.url.clone(),
        service,
    };
    for one in moving {
        match checked.remove(&one.alias) {
            Some(Checked::Ready { tools }) => applied.moved.push(Moved { one, tools }),
            Some(Checked::Failed { reason, needs_sign_in, unset }) => {
                let reason = match &unset[..] {
                    [] => reason,
                    names => needs_variables(names, &applied.service, survey),
                };
                applied.failed.push(Failed { one, reason, needs_sign_in });
            }
            Some(Checked::Refused { reason }) => {
                applied.failed.push(refused(&reason, one, survey));
            }
            Some(Checked::Absent { is_overridden }) => {
                let reason = absent(is_overridden, survey);
                applied.failed.push(Failed { one, reason, needs_sign_in: false });
            }
            None => {}
        }
    }
    take_failed_back(&mut applied, &stored, survey, journal, &daemon).await?;
    if applied.moved.is_empty() && settings::entries(&survey.settings)?.is_empty() {
        // A client gains nothing by a narthex without servers.
        return Ok(applied);
    }
    let connection = Connection::of(&context.settings)?;
    for file in &survey.files {
        rewrite_file(file, survey, &connection, journal, &mut applied);
    }
    for file in &survey.new_files {
        create_file(file.client, &file.path, &connection, journal, &mut applied);
    }
    applied.approve(&context.settings).await;
    Ok(applied)
}

impl Applied<'_> {
    /// Approves the new contents of files of the folder, which came from approved ones.
    async fn approve(&mut self, settings: &Settings) {
        for (client, path, text) in std::mem::take(&mut self.rewritten) {
            let approved = projects::approve(&client.label(), path, &text, settings).await;
            self.problems.extend(approved.err().map(|failure| Problem {
                client,
                path,
                reason: format!(
                    "its new content is not trusted yet, {}; approve it with `{}`",
                    failure.message,
                    source::trusting_of(client, path)
                ),
            }));
        }
    }
}

/// The reason why the daemon does not have a server.
fn absent(is_overridden: bool, survey: &Survey) -> String {
    if is_overridden {
        let again = survey.command();
        return format!(
            "another file of the daemon has a server of this name; give it another name in the \
             client's file, then run `{again}` again"
        );
    }
    let logs = narthex("service logs", &[]);
    format!("the daemon does not accept its entry; `{logs}` shows the reason")
}

/// A server that refuses its key, with the remedy. Without a key it asks for a sign-in.
fn refused<'s>(reason: &str, one: &'s Planned, survey: &Survey) -> Failed<'s> {
    let (keys, again) = (one.server.secrets().join(", "), survey.command());
    if keys.is_empty() {
        return Failed { one, reason: reason.to_owned(), needs_sign_in: true };
    }
    let reason = format!(
        "{reason}; correct {keys} of its entry in the client's file, then run `{again}` again"
    );
    Failed { one, reason, needs_sign_in: false }
}

/// The reason of a server whose variables are not set where the daemon runs, with the remedy.
fn needs_variables(names: &[String], service: &Service, survey: &Survey) -> String {
    let (needed, again) = (names.join(", "), survey.command());
    // A service has no variables of a shell.
    let in_shell = match service.is_one() {
        true => String::new(),
        false => {
            let stop = narthex("daemon stop", &[]);
            format!(", or set it in this shell and run `{stop}`")
        }
    };
    format!(
        "a variable is not set where the daemon runs: {needed}; write the value itself in its \
         place{in_shell}, then run `{again}` again"
    )
}

/// Removes servers that do not work from the settings, with their secrets, and forgets them: those
/// of this set-up, and those that a stopped one has left there. They stay in the files of clients,
/// and would be there twice.
async fn take_failed_back(
    applied: &mut Applied<'_>,
    stored: &[(&Planned, secrets::Names)],
    survey: &Survey,
    journal: &mut Journal,
    daemon: &Daemon,
) -> Result<(), Failure> {
    let moved: Vec<_> = applied.moved.iter().map(|moved| moved.one.alias.as_str()).collect();
    settings::note_working(&moved, journal)?;
    let is_failed =
        |one: &Planned| applied.failed.iter().any(|failed| failed.one.alias == one.alias);
    // A server that was there before stays with its secrets.
    let is_kept = |one: &Planned| one.outcome == Outcome::Present || !is_failed(one);
    let kept = stored.iter().filter(|(one, _)| is_kept(one));
    let secrets = kept.flat_map(|(one, names)| {
        names.values().map(move |name| (one.alias.clone(), name.as_str().to_owned()))
    });
    let secrets: Vec<_> = secrets.collect();
    applied.secrets = secrets;
    let unproven = applied.failed.iter().filter_map(|one| Unproven::find(one.one, journal));
    let unproven: Vec<_> = unproven.collect();
    if unproven.is_empty() {
        return Ok(());
    }
    if settings::remove(&unproven, survey, journal).await? {
        daemon.reload().await?;
    }
    let needed = secrets::needed(settings::entries(&survey.settings)?);
    for name in unproven.iter().flat_map(|one| secrets::named(&one.entry)) {
        if !needed.contains_key(&name) {
            secrets::take_back(&name, journal, daemon).await?;
        }
    }
    settings::forget(&unproven, journal)
}

/// Takes the servers that work out of a file, and puts narthex's own entry into it.
fn rewrite_file<'s>(
    found: &'s FoundFile,
    survey: &Survey,
    connection: &Connection,
    journal: &mut Journal,
    applied: &mut Applied<'s>,
) {
    let (client, path) = (found.client, found.path.as_path());
    let servers = servers_of(found, applied);
    // The others who have the folder gain nothing by an entry of narthex alone.
    let has_reason = survey.gets_narthex_alone(found) || !servers.is_empty();
    let to_connect = has_reason && survey.needs_narthex(found);
    if servers.is_empty() && !to_connect {
        return;
    }
    match write(found, &servers, to_connect.then_some(connection), survey, journal) {
        Ok(Written { own_name, changed, approved }) => {
            applied.rewritten.extend(approved.map(|text| (client, path, text)));
            applied.connected.extend(own_name.map(|name| Connected { client, path, name }));
            let changed = changed.iter().map(|name| Problem {
                client,
                path,
                reason: format!("the entry `{name}` was changed meanwhile, and stays"),
            });
            applied.problems.extend(changed);
        }
        Err(reason) => {
            applied.unwritten.push((client, path));
            applied.problems.push(Problem { client, path, reason });
        }
    }
}

/// The result of a write.
struct Written {
    /// The name of narthex's own entry, if the write has put one into the file.
    own_name: Option<String>,
    /// Names of entries that others changed since the survey, which stay.
    changed: Vec<String>,
    /// The new content, if the earlier one was an approved one of the folder.
    approved: Option<Vec<u8>>,
}

/// The servers of a file that work through narthex, under the names of the file.
fn servers_of(found: &FoundFile, applied: &Applied<'_>) -> Vec<FoundServer> {
    let mut servers = Vec::new();
    for Moved { one, .. } in &applied.moved {
        let origins = one.origins.iter();
        let of_file = origins.filter(|origin| {
            origin.path == found.path && origin.client.label() == found.client.label()
        });
        servers.extend(
            of_file.map(|origin| FoundServer { name: origin.name.clone(), ..one.server.clone() }),
        );
    }
    servers
}

/// Writes a file from its present content.
fn write(
    found: &FoundFile,
    servers: &[FoundServer],
    connection: Option<&Connection>,
    survey: &Survey,
    journal: &mut Journal,
) -> Result<Written, String> {
    let client = found.client;
    let folder = survey.folder.to_string_lossy();
    let bytes = file::read(&found.path).map_err(|error| error.to_string())?;
    let bytes = bytes.ok_or("it is gone")?;
    let document = parse(client.format, &bytes).map_err(|error| error.to_string())?;
    let (mut edits, mut changed, mut own_name) = (Vec::new(), Vec::new(), None);
    let removals = |server: &FoundServer| {
        let places = places(client, &document, &folder, server);
        let places = places.map_err(|error| error.to_string())?.into_iter();
        let removed = places.map(|parent| Edit::Remove { parent, name: server.name.clone() });
        Ok::<Vec<_>, String>(removed.collect())
    };
    for server in servers {
        let found = removals(server)?;
        if found.is_empty() {
            changed.push(server.name.clone());
        }
        edits.extend(found);
    }
    if let Some(connection) = connection {
        for server in gone_entries(found) {
            edits.extend(removals(server)?);
        }
        let own = connection.edit(client, &folder, &document, &edits);
        let own = own.map_err(|error| error.to_string())?;
        own_name = own.as_ref().map(inserted);
        edits.extend(own);
    }
    let mut approved = None;
    if !edits.is_empty() {
        let new = rewrite(&document, &edits).map_err(|error| error.to_string())?;
        let written = journal.write(&client.label(), &found.path, Some(&bytes), &new);
        written.map_err(|error| with_causes(&error))?;
        approved = survey.projects.has_approved(found, &bytes).then_some(new.bytes);
    }
    Ok(Written { own_name, changed, approved })
}

/// Entries of narthex itself whose program no longer exists; a new entry replaces them.
fn gone_entries(found: &FoundFile) -> impl Iterator<Item = &FoundServer> {
    let all = match &found.content {
        Content::Servers(all) => all.as_slice(),
        Content::OfFolder(_) | Content::Broken { .. } | Content::Unreadable(_) => &[],
    };
    all.iter().filter_map(Found::server).filter(move |server| is_gone_narthex(found.client, server))
}

/// Makes the first file of a client.
fn create_file<'s>(
    client: &'static Client,
    path: &'s Path,
    connection: &Connection,
    journal: &mut Journal,
    applied: &mut Applied<'s>,
) {
    let mut create = || -> Result<Option<String>, String> {
        let document = parse(client.format, b"").map_err(|error| error.to_string())?;
        let edit = connection.edit(client, "", &document, &[]);
        let edit = edit.map_err(|error| error.to_string())?;
        let own_name = edit.as_ref().map(inserted);
        let edits: Vec<_> = edit.into_iter().collect();
        let new = rewrite(&document, &edits).map_err(|error| error.to_string())?;
        let written = journal.write(&client.label(), path, None, &new);
        written.map_err(|error| with_causes(&error))?;
        Ok(own_name)
    };
    match create() {
        Ok(name) => applied.connected.extend(name.map(|name| Connected { client, path, name })),
        Err(reason) => {
            applied.unwritten.push((client, path));
            applied.problems.push(Problem { client, path, reason: harmless(&reason) });
        }
    }
}
