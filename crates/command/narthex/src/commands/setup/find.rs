//! The files and servers that a set-up finds, and the fate of each.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use narthex_client::environment::{home, variable};
use narthex_client_files::{
    clients::{Client, Machine, Refresh, Scope, System, clients},
    inventory::{Content, FoundFile, look, look_by_folder},
    journal::{Journal, Step},
    plan::{
        Existing, Outcome, OwnDaemon, Plan, Planned, field_of_secrets, is_gone_narthex, is_written,
        secrets_as_texts,
    },
    servers::{Found, NameableSecret},
};
use narthex_model::{Alias, ErrorKind, command::CommandLine};
use serde_json::Value;

use super::{again::again, projects::Projects, reached};
use crate::{
    Failure,
    commands::import::{
        self,
        by_folder::{self, Stays},
        check,
    },
    config::{self, Settings},
    output::{self, harmless},
};

/// The files and servers, and the fate of each.
pub(super) struct Survey {
    /// The settings file to which servers move.
    pub(super) settings: PathBuf,
    /// The current folder.
    pub(super) folder: PathBuf,
    /// Files of clients that may be written, and files of the folder without an approval, which
    /// may not.
    pub(super) files: Vec<FoundFile>,
    /// The approvals of files of the folder.
    pub(super) projects: Projects,
    /// Files of clients whose row is not verified, and that were not named.
    pub(super) left_alone: Vec<FoundFile>,
    /// Servers that a client uses in one folder alone, by a file of the user.
    pub(super) by_folder: Vec<Stays>,
    /// Files to create for clients that have none.
    pub(super) new_files: Vec<NewFile>,
    pub(super) plan: Plan,
    /// Reasons for which servers stay where they are, by their place in the plan.
    pub(super) staying: BTreeMap<usize, String>,
    /// The servers of the settings by name.
    entries: BTreeMap<String, Value>,
    /// True if the settings have a server already.
    pub(super) has_servers: bool,
    /// Ids of the clients that the user has named.
    only: Vec<String>,
    /// The daemon that the clients are to reach.
    daemon: OwnDaemon,
}

/// A file that a client does not have yet.
pub(super) struct NewFile {
    pub(super) client: &'static Client,
    pub(super) path: PathBuf,
}

impl Survey {
    pub(super) async fn find(
        only: &[String],
        settings: &Settings,
        journal: &Journal,
    ) -> Result<Self, Failure> {
        import::known("--only", only)?;
        let file = settings.servers.clone().ok_or_else(import::no_home)?;
        let folder = config::workspace_root()?;
        let home = home(&variable).ok_or_else(import::no_home)?;
        let system = System::current();
        let machine = Machine { system, home: &home, folder: &folder, variable: &variable };
        let is_named = |client: &Client| only.contains(&client.id);
        let is_wanted = |client: &Client| only.is_empty() || is_named(client);
        let may_write = |client: &Client| client.is_verified || is_named(client);
        let mut found = look(&machine, &is_wanted);
        let by_folder = look_by_folder(&machine, &is_wanted);
        let projects = Projects::include(&mut found, &folder, settings).await?;
        let is_included = |file: &FoundFile| {
            file.client.scope == Scope::User || matches!(file.content, Content::Servers(_))
        };
        let (files, left_alone): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|file| !is_included(file) || may_write(file.client));
        let absent = clients().iter().filter(|client| {
            let mut all = files.iter().chain(&left_alone);
            let is_found =
                all.any(|file| file.client.id == client.id && file.client.scope == Scope::User);
            client.scope == Scope::User
                && is_wanted(client)
                && may_write(client)
                && machine.has(client)
                && !is_found
        });
        let new_files = absent.filter_map(|client| new_file(&machine, client)).collect();
        let entries = import::existing(&file)?;
        let moved = moved(journal, &entries);
        let plan = Plan::of_moves(&files, Existing { entries: &entries, moved: &moved });
        let staying = staying(&plan, &file, &folder);
        let has_servers = !entries.is_empty();
        let asked = (!by_folder.is_empty()).then_some(&settings.daemon);
        let taken = import::taken(&entries, &plan, asked).await;
        let by_folder = by_folder::stays(&by_folder, taken, check::ways(&file, &folder));
        Ok(Self {
            settings: file,
            folder,
            files,
            projects,
            left_alone,
            by_folder,
            new_files,
            plan,
            staying,
            entries,
            has_servers,
            only: only.to_vec(),
            daemon: reached::daemon(settings),
        })
    }

    /// Makes the survey again, while no other set-up works.
    ///
    /// # Errors
    /// When it differs from this one, which the user has agreed to.
    pub(super) async fn again(
        &self,
        only: &[String],
        settings: &Settings,
        journal: &Journal,
    ) -> Result<Self, Failure> {
        let now = Self::find(only, settings, journal).await?;
        let Some(path) = self.changed(&now) else { return Ok(now) };
        let text = format!(
            "nothing was set up: {} has changed meanwhile; run `{}` again",
            path.display(),
            again(&self.only)
        );
        Err(Failure::new(ErrorKind::Conflict, text))
    }

    /// A file by which a later survey differs from this one.
    fn changed<'s>(&'s self, now: &'s Self) -> Option<&'s Path> {
        let is_same = |one: &FoundFile, other: &FoundFile| {
            one.client.label() == other.client.label()
                && one.path == other.path
                && one.content == other.content
        };
        let is_in = |one: &FoundFile, files: &[FoundFile]| files.iter().any(|it| is_same(one, it));
        let before = self.files.iter().find(|one| !is_in(one, &now.files));
        let changed = before.or_else(|| now.files.iter().find(|one| !is_in(one, &self.files)));
        if let Some(file) = changed {
            return Some(&file.path);
        }
        let is_new = |new: &&NewFile| !self.new_files.iter().any(|it| it.path == new.path);
        if let Some(new) = now.new_files.iter().find(is_new) {
            return Some(&new.path);
        }
        // The settings decide the names and the fates.
        let fates = |survey: &'s Self| {
            survey.plan.servers.iter().map(|one| (&one.alias, &one.outcome)).collect::<Vec<_>>()
        };
        let is_changed = fates(self) != fates(now) || self.staying != now.staying;
        is_changed.then_some(self.settings.as_path())
    }

    /// The servers that are to leave the files of clients, if they work.
    pub(super) fn moving(&self) -> impl Iterator<Item = &Planned> {
        let servers = self.plan.servers.iter().enumerate();
        let moving = servers.filter(|(at, _)| !self.staying.contains_key(at));
        moving.map(|(_, one)| one)
    }

    /// The line about clients to quit first, if there are some among those whose files change.
    pub(super) fn to_quit(&self) -> Option<String> {
        let changing = self
            .files
            .iter()
            .filter(|file| self.needs_narthex(file) || self.moving().any(|one| is_from(one, file)));
        let restarted = changing.filter(|file| file.client.refresh == Refresh::Restart);
        let mut names: Vec<_> = restarted.map(|file| file.client.name.as_str()).collect();
        names.dedup();
        (!names.is_empty()).then(|| {
            format!(
                "A client that runs may write its file from memory, and the change is lost. Quit \
                 first: {}",
                names.join(", ")
            )
        })
    }

    /// The files that do not have narthex yet.
    pub(super) fn to_connect(&self) -> impl Iterator<Item = &FoundFile> {
        self.files.iter().filter(|file| self.needs_narthex(file))
    }

    /// True for a file of this survey that does not have narthex yet.
    pub(super) fn needs_narthex(&self, file: &FoundFile) -> bool {
        match &file.content {
            Content::Servers(found) => {
                !self.is_connected(file.client, found)
                    && !self.is_connected_by_user(file)
                    && (self.gets_narthex_alone(file)
                        || self.moving().any(|one| is_from(one, file)))
            }
            Content::OfFolder(_) | Content::Broken { .. } | Content::Unreadable(_) => false,
        }
    }

    /// True for a client's servers with an entry that reaches the daemon.
    pub(super) fn is_connected(&self, client: &Client, found: &[Found]) -> bool {
        let mut servers = found.iter().filter_map(Found::server);
        servers.any(|server| {
            self.daemon.is_reached_by(client, server) && !is_gone_narthex(client, server)
        })
    }

    /// True for a file that gets narthex also if no server leaves it: one of the user, and one of
    /// the folder whose client was named.
    pub(super) fn gets_narthex_alone(&self, file: &FoundFile) -> bool {
        !file.client.is_of_project() || self.only.contains(&file.client.id)
    }

    /// True for a file of the folder whose client has narthex in a file of the user, or gets it
    /// there. The folder may belong to others, who do not have narthex at the same path.
    fn is_connected_by_user(&self, file: &FoundFile) -> bool {
        let is_of_user = |other: &FoundFile| {
            other.client.scope == Scope::User
                && other.client.id == file.client.id
                && matches!(other.content, Content::Servers(_))
        };
        file.client.is_of_project()
            && (self.files.iter().any(is_of_user)
                || self.new_files.iter().any(|new| new.client.id == file.client.id))
    }

    /// True if no server moves, no client gains by a connection, and the settings have no secret as
    /// a text that could go to the vault.
    pub(super) fn is_done(&self) -> bool {
        let has_client = !self.new_files.is_empty() || self.to_connect().next().is_some();
        self.moving().next().is_none()
            && !(self.has_servers && has_client)
            && self.with_texts().is_empty()
    }

    /// The servers of clients that the settings have with secrets as texts, such as after an
    /// import. These secrets go to the vault, also those of servers that stay in their clients.
    pub(super) fn with_texts(&self) -> Vec<(&Planned, Vec<NameableSecret>)> {
        let mut seen = BTreeSet::new();
        let all = self.plan.servers.iter().chain(&self.plan.disabled);
        let present = all.filter(|one| one.outcome == Outcome::Present && seen.insert(&one.alias));
        let with_texts = present.filter_map(|one| {
            let secrets = secrets_as_texts(&one.server, self.entries.get(one.alias.as_str())?);
            (!secrets.is_empty()).then_some((one, secrets))
        });
        with_texts.collect()
    }

    /// The secrets of these servers: the name of each, and the place in its entry.
    pub(super) fn texts(&self) -> Vec<(&Alias, String)> {
        let servers = self.with_texts().into_iter();
        let texts = servers.flat_map(|(one, secrets)| {
            let field = field_of_secrets(&one.server);
            secrets.into_iter().map(move |secret| (&one.alias, format!("{field}.{}", secret.key)))
        });
        texts.collect()
    }

    /// The command that makes this set-up again.
    pub(super) fn command(&self) -> CommandLine {
        again(&self.only)
    }

    /// Files that cannot be read, each with the reason.
    pub(super) fn unread(&self) -> impl Iterator<Item = (&FoundFile, &str)> {
        self.files.iter().chain(&self.left_alone).filter_map(|file| match &file.content {
            Content::Broken { message, .. } | Content::Unreadable(message) => {
                Some((file, message.as_str()))
            }
            Content::Servers(_) | Content::OfFolder(_) => None,
        })
    }

    /// The question before anything changes.
    pub(super) fn question(&self) -> String {
        let texts = self.texts();
        let count = output::counted(texts.len() as u64, "secret");
        let places: Vec<_> =
            texts.iter().map(|(alias, place)| format!("{place} of {}", alias.as_str())).collect();
        let places = harmless(&places.join(", "));
        match (self.question_of_servers(), &texts[..]) {
            (Some(servers), []) => format!("{servers}?"),
            (Some(servers), _) => {
                format!(
                    "{servers}, and move {count} of narthex's settings to the vault ({places})?"
                )
            }
            (None, _) => format!("Move {count} of narthex's settings to the vault ({places})?"),
        }
    }

    /// The question about servers and clients, without its end; `None` if there are neither.
    fn question_of_servers(&self) -> Option<String> {
        let count = self.moving().count() as u64;
        let servers = match count {
            1 => "Try 1 server, move it to narthex if it works".to_owned(),
            count => format!("Try {count} servers, move those that work to narthex"),
        };
        let clients = (self.to_connect().count() + self.new_files.len()) as u64;
        let clients_text = output::counted(clients, "client");
        match (count, clients) {
            (0, 0) => None,
            (0, _) => Some(format!("Connect {clients_text} to narthex")),
            (1, 0) => Some("Try 1 server, and move it to narthex if it works".to_owned()),
            (_, 0) => Some(format!("Try {count} servers, and move those that work to narthex")),
            (_, _) => Some(format!("{servers}, and connect {clients_text} to it")),
        }
    }

    /// Refuses a settings file that others may read, if secrets would come into it that the vault
    /// does not take.
    pub(super) fn check_private(&self) -> Result<(), Failure> {
        let has_more =
            |one: &Planned| one.server.secrets().len() > one.server.nameable_secrets().len();
        match self.moving().any(has_more) {
            true => import::check_private(&self.settings),
            false => Ok(()),
        }
    }
}

/// The file to create for a client, in a folder that exists.
fn new_file(machine: &Machine<'_>, client: &'static Client) -> Option<NewFile> {
    let path = machine.to_create(client)?;
    path.parent().is_some_and(Path::is_dir).then_some(NewFile { client, path })
}

/// The names of servers that an earlier set-up moved, by their seals. An entry that another has
/// written since under such a name is another server.
fn moved(journal: &Journal, entries: &BTreeMap<String, Value>) -> BTreeMap<String, Alias> {
    let steps = journal.steps().iter();
    let servers = steps.filter_map(|step| match step {
        Step::Server { alias, seal, entry, .. } => {
            let now = entries.get(alias)?;
            let is_own = entry.as_ref().is_none_or(|written| is_written(written, now));
            is_own.then_some((seal.clone(), Alias::new(alias).ok()?))
        }
        Step::File(_) | Step::Secret { .. } | Step::Service { .. } => None,
    });
    servers.collect()
}

/// True if an entry of the file describes the server.
fn is_from(one: &Planned, file: &FoundFile) -> bool {
    let mut origins = one.origins.iter();
    origins.any(|one| one.path == file.path && one.client.label() == file.client.label())
}

/// The reasons for which servers stay where they are, by their place in the plan.
pub(in crate::commands) fn staying(
    plan: &Plan,
    file: &Path,
    folder: &Path,
) -> BTreeMap<usize, String> {
    let mut staying = check::refused(plan, file, folder);
    for (at, one) in plan.servers.iter().enumerate() {
        if let Some(reason) = check::needs_client(one).or_else(|| check::needs_env_file(one)) {
            staying.entry(at).or_insert(reason);
        }
    }
    staying
}
