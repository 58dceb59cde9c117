//! The port of the service: chosen once, stored, changed by hand alone.

use std::{
    net::{Ipv4Addr, SocketAddr},
    num::NonZeroU16,
    path::PathBuf,
    process::ExitCode,
};

use narthex_model::{ErrorKind, command::narthex};
use serde_json::json;

use super::place::{About, Place, run_all};
use crate::{
    Context, Failure,
    cli::{ServiceOfArgs, ServicePortArgs},
    commands::waiting::waiting,
    data_dir::DataDir,
    door::{DoorSettings, ListenSetting},
    listeners::{self, USUAL_PORT, first_free, is_free},
    output,
    service::{State, port_in, with_port},
};

/// The result of a change of the port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortChange {
    /// The port from now on.
    pub port: NonZeroU16,
    /// The daemon's URL before the change, without a path: the one that clients have.
    pub old_url: String,
    /// The URL from now on; the old one if nothing has changed.
    pub new_url: String,
    /// True if the service runs and was started again.
    pub is_restarted: bool,
    /// The URL of a running daemon that has another port than the stored one.
    pub listening: Option<String>,
}

impl PortChange {
    /// False if the service had the port already.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        self.old_url != self.new_url
    }
}

pub(super) async fn run(
    args: &ServicePortArgs,
    context: &Context,
    door: DoorSettings,
    readdress: &Readdress,
) -> Result<ExitCode, Failure> {
    let Some(port) = args.port else {
        let place = Place::of(&args.of, context)?;
        let stored = stored(&place, place.text()?.as_deref())?;
        return show(stored, door.listen.filter(|_| !place.is_system()).as_ref(), context);
    };
    let change = change_port(port, &args.of, context, &door).await?;
    // The users of a machine's service have files of their own, which are not the administrator's.
    let clients = match change.is_changed() && !args.of.system {
        true => readdress(&change),
        false => Vec::new(),
    };
    told_change(&change, &clients, context)
}

/// Stores another port for the service, and starts a running one again. Changes no client's file:
/// the result has the URLs for that.
///
/// # Errors
/// When the port is not free, a setting names the address, a daemon runs that is not the service,
/// or the service cannot be started again.
async fn change_port(
    port: NonZeroU16,
    of: &ServiceOfArgs,
    context: &Context,
    door: &DoorSettings,
) -> Result<PortChange, Failure> {
    let place = Place::of(of, context)?;
    let text = place.text()?;
    let stored = stored(&place, text.as_deref())?;
    if let Some(given) = door.listen.as_ref().filter(|_| !place.is_system()) {
        check_setting(Some(port), given)?;
    }
    // The settings of this user are not those of the machine's service.
    let door = if place.is_system() { &DoorSettings::default() } else { door };
    let mut change = PortChange {
        port,
        old_url: door.url_at(stored.unwrap_or(USUAL_PORT).get()),
        new_url: door.url_at(port.get()),
        is_restarted: false,
        listening: None,
    };
    let running = if place.is_system() { None } else { place.data.running()? };
    if stored == Some(port) {
        change.listening = running.map(|state| state.url).filter(|url| *url != change.new_url);
        return Ok(change);
    }
    check_free(port)?;
    let text = place.own_text()?;
    let state = match &text {
        Some(_) => place.manager.state().await?,
        None => State::default(),
    };
    check_follows(&place, &state)?;
    if place.is_system() {
        place.check_rights()?;
        let Some(text) = &text else { return Err(not_installed(&place)) };
        Place::write(&place.file, &with_port(text, port))?;
        run_all(&[vec!["systemctl".to_owned(), "daemon-reload".to_owned()]]).await?;
    } else {
        DataDir::open(place.data.path())?.store_port(port)?;
    }
    if state.is_active {
        let restart = [place.manager.restart()];
        waiting("restarting the service", context, run_all(&restart)).await?;
        change.is_restarted = true;
    }
    Ok(change)
}

/// Fails if a daemon runs that is not the service, so that it keeps its port, and clients with the
/// new address would find none.
fn check_follows(place: &Place, state: &State) -> Result<(), Failure> {
    // The directory of the machine's service belongs to its user.
    let holder = if place.is_system() { None } else { place.data.holder()? };
    let Some(pid) = holder.filter(|pid| !state.is_active || state.pid.is_some_and(|of| of != *pid))
    else {
        return Ok(());
    };
    let text = format!(
        "process {pid} is the daemon of {}, is not the service, and keeps its port; stop it with \
         `{}`, then change the port, and start it again",
        place.data.path().display(),
        narthex("daemon stop", &[])
    );
    Err(Failure::new(ErrorKind::Conflict, text))
}

/// A file of a client that has an address of the daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Readdressed {
    /// The file.
    pub file: PathBuf,
    /// The reason why it has the old address still; `None` if it has the new one.
    pub error: Option<String>,
}

/// Puts a new address of the daemon into the files of clients.
pub type Readdress = dyn Fn(&PortChange) -> Vec<Readdressed> + Sync;

/// Prints a change of the port, the client files that have the new address, and the ones that could
/// not be written.
///
/// # Errors
/// When nothing can be printed.
fn told_change(
    change: &PortChange,
    clients: &[Readdressed],
    context: &Context,
) -> Result<ExitCode, Failure> {
    let PortChange { port, old_url, new_url, is_restarted, listening } = change;
    let is_changed = change.is_changed();
    let data = json!({
        "port": port,
        "url": new_url,
        "is_changed": is_changed,
        "is_restarted": is_restarted,
        "listening": listening,
        "clients": clients.iter().map(|one| json!({ "file": one.file, "error": one.error }))
            .collect::<Vec<_>>(),
    });
    if !is_changed {
        let mut lines = vec![format!("The port is {port} already.")];
        lines.extend(listening.as_ref().map(|url| {
            let restart = narthex("daemon restart", &[]);
            format!("The daemon listens at {url} still; `{restart}` has it listen at {new_url}.")
        }));
        return output::told_lines(&data, &lines, context.format);
    }
    let mut lines = vec![match is_restarted {
        true => format!("The daemon listens at {new_url} now."),
        false => format!("The next daemon will listen at {new_url}."),
    }];
    for Readdressed { file, error } in clients {
        let file = output::harmless(&file.display().to_string());
        lines.push(match error {
            None => format!("{file} has the new address."),
            Some(error) => format!("{file} has the old address still: {error}"),
        });
    }
    lines.push(format!(
        "Other clients that use HTTP need the new address, {new_url}/mcp instead of {old_url}/mcp. \
         Clients with `{}` need no change.",
        narthex("connect", &[])
    ));
    output::told_lines(&data, &lines, context.format)
}

fn show(
    stored: Option<NonZeroU16>,
    listen: Option<&ListenSetting>,
    context: &Context,
) -> Result<ExitCode, Failure> {
    let port = stored.unwrap_or(USUAL_PORT);
    let data = json!({
        "port": port,
        "is_stored": stored.is_some(),
        "setting": listen.map(|given| json!({
            "address": given.address, "source": given.source,
        })),
    });
    if context.format.is_quiet() {
        output::line(&port.to_string())?;
        return Ok(ExitCode::SUCCESS);
    }
    let sentence = match (listen, stored) {
        (Some(given), _) => {
            let ListenSetting { address, source } = given;
            format!("The address is {address}, from {source}; a stored port has no effect.")
        }
        (None, Some(port)) => format!("The port is {port}."),
        (None, None) => format!("No port is stored; the usual one is {port}."),
    };
    output::told(&data, &sentence, context.format)
}

/// The port of the service: in its unit for the machine's, else in the data directory.
pub(super) fn stored(place: &Place, text: Option<&str>) -> Result<Option<NonZeroU16>, Failure> {
    match place.is_system() {
        true => Ok(text.and_then(port_in)),
        false => place.data.port(),
    }
}

/// Chooses the port of a service: the wanted one, the stored one, or the first free one.
///
/// # Errors
/// When the port is taken, unless the running service listens there.
pub(super) fn choose(
    wanted: Option<NonZeroU16>,
    stored: Option<NonZeroU16>,
    is_active: bool,
) -> Result<NonZeroU16, Failure> {
    match wanted.or(stored) {
        Some(port) if is_active && stored == Some(port) => Ok(port),
        Some(port) => check_free(port).map(|()| port),
        None => first_free(is_free).ok_or_else(|| {
            let text = format!("no port from {USUAL_PORT} on is free; name another with --port");
            Failure::new(ErrorKind::Conflict, text)
        }),
    }
}

/// Tells of the port that a daemon in the background has chosen, since another program has the
/// usual one.
pub fn tell_chosen(port: NonZeroU16) {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, USUAL_PORT.get()));
    let holder = listeners::holder(address).map(|holder| format!(" by {holder}"));
    output::notice(&format!(
        "the port {USUAL_PORT} is taken{}, so the daemon has the port {port} from now on; `{}` \
         chooses another",
        holder.unwrap_or_default(),
        narthex("service port {}", &[&"PORT"])
    ));
}

/// Fails if a setting names the address and a port is wanted as well.
pub(super) fn check_setting(
    wanted: Option<NonZeroU16>,
    given: &ListenSetting,
) -> Result<(), Failure> {
    let Some(port) = wanted else { return Ok(()) };
    let text = format!(
        "{} sets the address {}, so the port {port} would have no effect; change it there, or \
         remove it and try again",
        given.source, given.address
    );
    Err(Failure::usage(text))
}

fn check_free(port: NonZeroU16) -> Result<(), Failure> {
    if is_free(port) {
        return Ok(());
    }
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port.get()));
    let why = match listeners::holder(address) {
        Some(holder) => format!("{holder} listens there"),
        None => "the system does not allow it, or another process listens there".to_owned(),
    };
    let text =
        format!("the port {port} is not free: {why}; stop that process, or {}", another_port());
    Err(Failure::new(ErrorKind::Conflict, text))
}

/// The remedy for a port that is taken.
pub fn another_port() -> String {
    match first_free(is_free) {
        Some(port) => {
            format!("choose another port with `{}`", narthex("service port {}", &[&port]))
        }
        None => "choose another address with --listen".to_owned(),
    }
}

fn not_installed(place: &Place) -> Failure {
    let text = format!("there is no service; install it with `{}`", place.command(About::Install));
    Failure::new(ErrorKind::NotFound, text)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn port(number: u16) -> NonZeroU16 {
        NonZeroU16::new(number).unwrap()
    }

    #[test]
    fn a_stored_port_is_kept_and_a_clash_is_an_error_that_names_the_holder() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let taken = port(listener.local_addr().unwrap().port());
        // The running service itself listens there.
        assert_eq!(choose(None, Some(taken), true).unwrap(), taken);
        for (wanted, stored, is_active) in
            [(None, Some(taken), false), (Some(taken), None, true), (Some(taken), None, false)]
        {
            let failure = choose(wanted, stored, is_active).unwrap_err();
            assert_eq!(failure.kind.as_str(), "conflict");
            if cfg!(target_os = "linux") {
                let holder = format!("process {} (", std::process::id());
                assert!(failure.message.contains(&holder), "{failure}");
            }
        }
        drop(listener);
        assert_eq!(choose(Some(taken), Some(port(1)), true).unwrap(), taken);
        assert_eq!(choose(None, Some(taken), false).unwrap(), taken);
    }

    #[test]
    fn a_port_beside_a_named_address_is_refused() {
        let given = ListenSetting {
            address: "127.0.0.1:9".to_owned(),
            source: "narthex.toml: `listen`".to_owned(),
        };
        check_setting(None, &given).unwrap();
        let failure = check_setting(Some(port(80)), &given).unwrap_err();
        assert!(failure.message.starts_with("narthex.toml: `listen` sets"), "{failure}");
    }
}
