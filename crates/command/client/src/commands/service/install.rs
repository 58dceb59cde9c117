//! `narthex service install`: writes the service, stores its port, and starts it.

use std::{num::NonZeroU16, path::Path, process::ExitCode, time::Duration};

use narthex_model::{ErrorKind, command::narthex};
use serde_json::json;

use super::{
    place::{About, Place, own_text, run_all, would_run},
    port,
};
use crate::{
    Context, Failure,
    cli::ServiceInstallArgs,
    commands::waiting::waiting,
    data_dir::DataDir,
    door::{self, DoorSettings, ListenSetting, local_url},
    environment::{self, Lost, variable},
    output::{self, harmless},
    service::{self, Manager, SYSUSERS, Spec, State, Words, absolute_entries, utf8},
    starting::listening,
};

/// The time in which an agent of launchd has to listen. Units of systemd report it themselves.
const LISTENING: Duration = Duration::from_secs(30);

/// A checked installation.
pub struct Plan {
    place: Place,
    text: String,
    /// The port that is stored; `None` if a setting names the address.
    port: Option<NonZeroU16>,
    url: String,
    /// True if the file has another text, or there is none.
    is_new_text: bool,
    is_new_port: bool,
    commands: Vec<Words>,
    notes: Vec<String>,
}

pub(super) async fn run(
    args: &ServiceInstallArgs,
    context: &Context,
    door: DoorSettings,
) -> Result<ExitCode, Failure> {
    let plan = plan(args, context, door).await?;
    if args.dry_run {
        return told_plan(&plan, context);
    }
    if context.format.is_text() {
        // A person may want to stop the command because of one of them.
        plan.notes.iter().try_for_each(|note| output::sentence(&harmless(note)))?;
    }
    plan.carry_out(context).await?;
    told(&plan, context)
}

/// The service of this user that another command may install.
pub enum Offer {
    /// A service of this data directory is installed.
    Present,
    /// The service can be installed.
    Possible(Box<Plan>),
    /// A daemon runs that is no service: the service can be installed once it has stopped.
    Beside,
    /// No service can be installed, for this reason.
    Impossible(String),
}

impl Offer {
    /// Looks at the service of this user and at its manager. Changes nothing.
    ///
    /// # Errors
    /// When the data directory cannot be read.
    pub async fn of(context: &Context, door: DoorSettings) -> Result<Self, Failure> {
        let args = ServiceInstallArgs::default();
        let place = Place::of(&args.of, context)?;
        if place.is_installed() {
            return Ok(Self::Present);
        }
        // First, since without a manager the end of a daemon would make no service possible.
        if place.manager.state().await.is_err() {
            let text = "there is no service manager that this user can reach";
            return Ok(Self::Impossible(text.to_owned()));
        }
        // A daemon that runs without a service is the user's choice.
        if place.data.is_locked()? {
            return Ok(Self::Beside);
        }
        Ok(match plan(&args, context, door).await {
            Ok(plan) => Self::Possible(Box::new(plan)),
            Err(failure) => Self::Impossible(failure.message),
        })
    }
}

impl Plan {
    /// The unit or property list.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.place.file
    }

    /// Sentences for the user.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Writes the files of the service, and starts it.
    ///
    /// # Errors
    /// When a file cannot be written, or the service cannot be started. The message names the
    /// command that removes what was written.
    pub async fn carry_out(&self, context: &Context) -> Result<(), Failure> {
        let Self { place, text, port, commands, .. } = self;
        if place.is_system() {
            Place::write(Path::new(SYSUSERS), &service::sysusers())?;
        } else {
            let data = DataDir::open(place.data.path())?;
            if let (Some(port), true) = (port, self.is_new_port) {
                data.store_port(*port)?;
            }
        }
        if self.is_new_text {
            Place::write(&place.file, text)?;
        }
        let started = async {
            run_all(commands).await?;
            match place.manager {
                Manager::Launchd => {
                    let listening = listening(&place.data, LISTENING, async || Ok(()));
                    listening.await.map(drop)
                }
                Manager::SystemdUser | Manager::SystemdSystem => Ok(()),
            }
        };
        waiting("starting the service", context, started).await.map_err(|failure| {
            let undo = place.command(About::Uninstall);
            let file = place.file.display();
            let text = format!("{}; {file} stays, and `{undo}` removes it", failure.message);
            Failure { message: text, ..failure }
        })
    }
}

/// Checks all that an installation needs, and changes nothing. A dry run ends after it, so that it
/// promises only what the command does.
async fn plan(
    args: &ServiceInstallArgs,
    context: &Context,
    door: DoorSettings,
) -> Result<Plan, Failure> {
    environment::check_lasting()?;
    let place = Place::of(&args.of, context)?;
    let before = place.own_text()?;
    let state = place.manager.state().await?;
    place.check_rights()?;
    match place.is_system() {
        true => drop(own_text(Path::new(SYSUSERS))?),
        false => DataDir::check(place.data.path())?,
    }
    check_holder(&place, &state)?;
    let (mut notes, door) = notes(&place, context, door);
    let stored = port::stored(&place, before.as_deref())?;
    let (chosen, url) = match &door.listen {
        Some(given) => {
            port::check_setting(args.port, given)?;
            (None, named_url(given, &door, args).await?)
        }
        None => {
            let chosen = port::choose(args.port, stored, state.is_active)?;
            (Some(chosen), door.url_at(chosen.get()))
        }
    };
    let spec = spec(args, &place, context, chosen)?;
    let text = service::text(&spec, place.manager)?;
    let is_new_text = before.as_deref() != Some(&text);
    let is_new_port = chosen.is_some() && chosen != stored;
    let mut commands = match place.is_system() {
        true => vec![vec!["systemd-sysusers".to_owned(), SYSUSERS.to_owned()]],
        false => Vec::new(),
    };
    commands.extend(place.manager.install(&place.file, &state, is_new_text || is_new_port));
    if place.manager == Manager::SystemdUser {
        notes.push(
            "The service ends with your last session. To let it run without one: loginctl \
             enable-linger"
                .to_owned(),
        );
    }
    Ok(Plan { place, text, port: chosen, url, is_new_text, is_new_port, commands, notes })
}

/// The URL of the daemon at an address that a setting names.
///
/// # Errors
/// As `narthex up` has them for the address: the service would start no daemon.
async fn named_url(
    given: &ListenSetting,
    door: &DoorSettings,
    args: &ServiceInstallArgs,
) -> Result<String, Failure> {
    let addresses = door::addresses(given, door.is_tls(), args.remote).await?;
    let first = addresses.first().ok_or_else(|| {
        Failure::usage(format!("{} names `{}`, which has no address", given.source, given.address))
    })?;
    Ok(local_url(*first, door.is_tls()))
}

/// Fails if a daemon holds the data directory that is not the service's.
fn check_holder(place: &Place, state: &State) -> Result<(), Failure> {
    // The directory of the machine's service belongs to its user.
    if place.is_system() {
        return Ok(());
    }
    match place.data.holder()? {
        Some(pid) if state.pid != Some(pid) => {
            let text = format!(
                "process {pid} is the daemon of {} already, and is not the service; stop it with \
                 `{}`, then try again",
                place.data.path().display(),
                narthex("daemon stop", &[])
            );
            Err(Failure::new(ErrorKind::Conflict, text))
        }
        Some(_) | None => Ok(()),
    }
}

/// Variables of this process that the daemon of a service does not have, and the settings of the
/// door that it has.
fn notes(place: &Place, context: &Context, door: DoorSettings) -> (Vec<String>, DoorSettings) {
    let lost = Lost::of_this_process();
    let is_its_file = !place.is_system() || context.daemon.settings.is_some();
    let has_it = |source: &String| is_its_file && !lost.has(source);
    let listen = door.listen.filter(|given| has_it(&given.source));
    let door = DoorSettings { listen, tls: door.tls.into_iter().filter(has_it).collect() };
    (lost.sentences("The service"), door)
}

fn spec(
    args: &ServiceInstallArgs,
    place: &Place,
    context: &Context,
    port: Option<NonZeroU16>,
) -> Result<Spec, Failure> {
    let config = args.config.as_deref().map(std::path::absolute).transpose()?;
    if let Some(file) = &config {
        narthex_private::check_named(file)?;
    }
    let data = place.data.path();
    let home = environment::home(&variable);
    // Servers get the folder of the named file as their workspace root.
    let folder = config.as_deref().and_then(Path::parent);
    let folder = folder.or(if place.is_system() { None } else { home.as_deref() });
    let mut names = vec![];
    if place.is_system() {
        names.push(("HOME", Some(utf8(data)?)));
    } else {
        names.push(("PATH", variable("PATH").map(|path| absolute_entries(&path))));
        // The rules of XDG also lead to the settings and the file of servers.
        names.push(("XDG_CONFIG_HOME", variable("XDG_CONFIG_HOME")));
    }
    let environment = names.into_iter().filter_map(|(name, value)| Some((name, value?)));
    Ok(Spec {
        program: utf8(Path::new(&environment::program()))?,
        data: utf8(data)?,
        settings: context.daemon.settings.as_deref().map(utf8).transpose()?,
        config: config.as_deref().map(utf8).transpose()?,
        port: port.filter(|_| place.is_system()),
        remote: args.remote,
        folder: utf8(folder.unwrap_or(data))?,
        environment: environment.collect(),
    })
}

fn told_plan(plan: &Plan, context: &Context) -> Result<ExitCode, Failure> {
    let Plan { place, text, url, commands, notes, .. } = plan;
    let file = place.file.display();
    let data = json!({
        "is_dry_run": true,
        "manager": place.manager.name(),
        "file": place.file,
        "is_changed": plan.is_new_text,
        "text": text,
        "port": plan.port,
        "url": url,
        "commands": commands,
        "notes": notes,
    });
    if context.format.is_text() {
        let first = match plan.is_new_text {
            true => format!("Would write {file}:"),
            false => format!("{file} would stay as it is:"),
        };
        output::sentence(&harmless(&first))?;
        // The lines are those of the file on any terminal.
        output::line("")?;
        text.lines().try_for_each(|line| output::line(&format!("  {}", harmless(line))))?;
        output::line("")?;
    }
    let mut lines: Vec<_> = would_run(commands).collect();
    lines.push(format!("The daemon would listen at {url}."));
    lines.extend(notes.iter().cloned());
    output::told_lines(&data, &lines, context.format)
}

fn told(plan: &Plan, context: &Context) -> Result<ExitCode, Failure> {
    let Plan { place, url, notes, .. } = plan;
    // A setting may have the system choose the port. The machine's service hides its state.
    let running = if place.is_system() { None } else { place.data.running()? };
    let url = running.as_ref().map_or(url, |daemon| &daemon.url);
    let data_folder = place.data.path().display();
    let data = json!({
        "is_dry_run": false,
        "manager": place.manager.name(),
        "file": place.file,
        "is_changed": plan.is_new_text,
        "port": plan.port,
        "url": url,
        "notes": notes,
    });
    let with = if place.is_system() { "the machine" } else { "your session" };
    let lines = vec![
        match plan.is_new_text {
            true => format!("Wrote {}", place.file.display()),
            false => format!("{} is unchanged.", place.file.display()),
        },
        format!("The daemon listens at {url}, and starts with {with}. Its data: {data_folder}"),
        format!("State: `{}`", place.command(About::Status)),
        format!("Log: `{}`", place.command(About::Logs)),
        format!("Undo: `{}`", place.command(About::Uninstall)),
    ];
    output::told_lines(&data, &lines, context.format)
}
