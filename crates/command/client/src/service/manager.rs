//! The managers of services: systemd of the user or the machine, and launchd.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
};

use narthex_model::{ErrorKind, command::narthex};
use tokio::process::Command;

use super::plist::LABEL;
use crate::{Failure, environment, output::harmless};

const UNIT: &str = "narthex.service";
/// The word of systemd for a service that it does not start again.
pub const FAILED: &str = "failed";

/// The program that starts the daemon and watches over it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manager {
    /// The user's own systemd.
    SystemdUser,
    /// The systemd of the machine.
    SystemdSystem,
    /// The user's launchd.
    Launchd,
}

/// The state of the service at its manager.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    /// True if the process runs or starts.
    pub is_active: bool,
    /// True if the manager starts it with the session or the machine.
    pub is_enabled: bool,
    /// The process of the daemon.
    pub pid: Option<u32>,
    /// The manager's own word, such as `active` or `failed`.
    pub word: String,
}

/// A command line, without a shell.
pub type Words = Vec<String>;

impl Manager {
    /// The manager of this system.
    ///
    /// # Errors
    /// When the machine's manager is wanted and is not systemd.
    pub fn of(is_system: bool) -> Result<Self, Failure> {
        match (is_system, cfg!(target_os = "macos")) {
            (true, true) => Err(Failure::usage(
                "--system needs systemd, which this system does not have; leave it out to install \
                 an agent of launchd for your user",
            )),
            (true, false) => Ok(Self::SystemdSystem),
            (false, true) => Ok(Self::Launchd),
            (false, false) => Ok(Self::SystemdUser),
        }
    }

    /// The name in output for programs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::SystemdUser => "systemd-user",
            Self::SystemdSystem => "systemd",
            Self::Launchd => "launchd",
        }
    }

    /// The file of the service.
    ///
    /// # Errors
    /// When the user has no home directory.
    pub fn file(self) -> Result<PathBuf, Failure> {
        let env = &environment::variable;
        let found = match self {
            Self::SystemdSystem => Some(PathBuf::from("/etc/systemd/system")),
            Self::SystemdUser => environment::user_folder(env, "XDG_CONFIG_HOME", ".config")
                .map(|folder| folder.join("systemd/user")),
            Self::Launchd => environment::home(env).map(|home| home.join("Library/LaunchAgents")),
        };
        let name = match self {
            Self::SystemdUser | Self::SystemdSystem => UNIT.to_owned(),
            Self::Launchd => format!("{LABEL}.plist"),
        };
        found.map(|folder| folder.join(name)).ok_or_else(|| {
            let text = "there is no home directory for the file of the service; set HOME";
            Failure::new(ErrorKind::NotFound, text)
        })
    }

    /// The commands that make the manager read a new or changed file, and start the service. A
    /// running one is started again if `is_changed`.
    #[must_use]
    pub fn install(self, file: &Path, state: &State, is_changed: bool) -> Vec<Words> {
        let start = if is_changed && state.is_active { "restart" } else { "start" };
        match self {
            Self::SystemdUser | Self::SystemdSystem => vec![
                self.systemctl(&["daemon-reload"]),
                self.systemctl(&["enable", UNIT]),
                self.systemctl(&[start, UNIT]),
            ],
            Self::Launchd => {
                let load = words(&["launchctl", "bootstrap", &domain(), &file.to_string_lossy()]);
                match (state.is_enabled, is_changed) {
                    (true, true) => vec![words(&["launchctl", "bootout", &target()]), load],
                    (true, false) => vec![words(&["launchctl", "kickstart", &target()])],
                    (false, _) => vec![load],
                }
            }
        }
    }

    /// The commands that stop the service for good, before and after its file is removed.
    #[must_use]
    pub fn uninstall(self, state: &State) -> (Vec<Words>, Vec<Words>) {
        match self {
            Self::SystemdUser | Self::SystemdSystem => (
                vec![self.systemctl(&["disable", "--now", UNIT])],
                vec![self.systemctl(&["daemon-reload"])],
            ),
            Self::Launchd if state.is_enabled => {
                (vec![words(&["launchctl", "bootout", &target()])], Vec::new())
            }
            Self::Launchd => (Vec::new(), Vec::new()),
        }
    }

    /// The command that starts the installed service. It waits for no readiness.
    #[must_use]
    pub fn start(self) -> Words {
        match self {
            Self::SystemdUser | Self::SystemdSystem => {
                self.systemctl(&["start", "--no-block", UNIT])
            }
            Self::Launchd => words(&["launchctl", "kickstart", &target()]),
        }
    }

    /// The command that starts a running service again.
    #[must_use]
    pub fn restart(self) -> Words {
        match self {
            Self::SystemdUser | Self::SystemdSystem => self.systemctl(&["restart", UNIT]),
            Self::Launchd => words(&["launchctl", "kickstart", "-k", &target()]),
        }
    }

    /// The command that prints the log of the service; `log` is the log file of the data
    /// directory.
    #[must_use]
    pub fn logs(self, log: &Path, lines: u32, is_followed: bool) -> Words {
        let lines = lines.to_string();
        let mut command = match self {
            // Without storage of its own for each user, the journal has the lines all the same.
            Self::SystemdUser => words(&["journalctl", "--user-unit", UNIT]),
            Self::SystemdSystem => words(&["journalctl", "--unit", UNIT]),
            Self::Launchd => return tail(log, &lines, is_followed),
        };
        command.extend(words(&["--no-pager", "--quiet", "--output", "cat", "--lines", &lines]));
        command.extend(is_followed.then(|| "--follow".to_owned()));
        command
    }

    /// Asks the manager for the state of the service.
    ///
    /// # Errors
    /// When the manager cannot be reached.
    pub async fn state(self) -> Result<State, Failure> {
        self.reached().await.map_err(|why| {
            let text = format!(
                "there is no service manager: {why}; start the daemon with `{}`, or let `{}` in a \
                 client's settings start it",
                narthex("up --detach", &[]),
                narthex("connect", &[]),
            );
            Failure::new(ErrorKind::Unavailable, text)
        })
    }

    /// The same; an error says why the manager cannot be reached.
    pub(crate) async fn reached(self) -> Result<State, String> {
        let why = |why: String| {
            let manager = match self {
                Self::SystemdUser => "systemd of your user",
                Self::SystemdSystem => "systemd of this machine",
                Self::Launchd => "launchd of your user",
            };
            format!("{manager} cannot be reached ({})", harmless(&why))
        };
        match self {
            Self::SystemdUser | Self::SystemdSystem => {
                let properties = "--property=ActiveState,UnitFileState,MainPID";
                let shown = output(&self.systemctl(&["show", properties, UNIT])).await;
                Ok(State::of_systemd(&shown.map_err(why)?))
            }
            Self::Launchd => {
                output(&words(&["launchctl", "print", &domain()])).await.map_err(why)?;
                let shown = output(&words(&["launchctl", "print", &target()])).await;
                // An absent agent is an error of `launchctl`.
                Ok(shown.map(|text| State::of_launchd(&text)).unwrap_or_default())
            }
        }
    }

    /// The link by which systemd starts the service whose file is `file`, made by `enable`.
    pub(crate) fn start_link(self, file: &Path) -> Option<PathBuf> {
        let target = match self {
            Self::SystemdUser => "default.target.wants",
            Self::SystemdSystem => "multi-user.target.wants",
            Self::Launchd => return None,
        };
        Some(file.parent()?.join(target).join(file.file_name()?))
    }

    fn systemctl(self, more: &[&str]) -> Words {
        let mut command = words(&["systemctl"]);
        command.extend((self == Self::SystemdUser).then(|| "--user".to_owned()));
        command.extend(words(more));
        command
    }
}

impl State {
    /// Reads the properties that `systemctl show` prints.
    fn of_systemd(text: &str) -> Self {
        let property = |name: &str| {
            let mut lines = text.lines().filter_map(|line| line.split_once('='));
            lines.find(|(known, _)| *known == name).map_or("", |(_, value)| value)
        };
        let word = property("ActiveState");
        Self {
            is_active: matches!(word, "active" | "activating" | "reloading"),
            is_enabled: property("UnitFileState") == "enabled",
            pid: property("MainPID").parse().ok().filter(|pid| *pid != 0),
            word: word.to_owned(),
        }
    }

    /// Reads what `launchctl print` shows of a loaded agent.
    fn of_launchd(text: &str) -> Self {
        let value = |name: &str| {
            let mut lines = text.lines().filter_map(|line| line.trim().split_once(" = "));
            lines.find(|(known, _)| *known == name).map_or("", |(_, value)| value)
        };
        let word = value("state");
        Self {
            is_active: word == "running",
            is_enabled: true,
            pid: value("pid").parse().ok(),
            word: word.to_owned(),
        }
    }
}

/// The command that prints the end of a log file.
#[must_use]
pub fn tail(log: &Path, lines: &str, is_followed: bool) -> Words {
    let mut command = words(&["tail", "-n", lines]);
    command.extend(is_followed.then(|| "-f".to_owned()));
    command.push(log.to_string_lossy().into_owned());
    command
}

/// Runs a command of a manager to its end.
///
/// # Errors
/// When the command cannot be run or fails; the message has its words and its own error.
pub async fn run(command: &[String]) -> Result<String, Failure> {
    output(command).await.map_err(|why| {
        let line = shown(command);
        let text = format!(
            "`{line}` failed: {}; see the log with `{}`",
            harmless(&why),
            narthex("service logs", &[])
        );
        Failure::new(ErrorKind::Unavailable, text)
    })
}

/// A command as a person types it.
#[must_use]
pub fn shown(command: &[String]) -> String {
    let words: Vec<_> = command.iter().map(|word| narthex_model::command::quoted(word)).collect();
    words.join(" ")
}

/// The output of a command, or the reason why there is none.
async fn output(command: &[String]) -> Result<String, String> {
    let Some((program, arguments)) = command.split_first() else { return Ok(String::new()) };
    let mut process = Command::new(program);
    process.args(arguments).stdin(Stdio::null()).env("LC_ALL", "C").kill_on_drop(true);
    let done = process.output().await.map_err(|error| format!("{program}: {error}"))?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    let said: Vec<_> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    Err(match said.is_empty() {
        true => format!("{program}: {}", done.status),
        false => said.join("; "),
    })
}

/// The user's part of launchd.
fn domain() -> String {
    format!("gui/{}", rustix::process::getuid().as_raw())
}

fn target() -> String {
    format!("{}/{LABEL}", domain())
}

fn words(all: &[&str]) -> Words {
    all.iter().map(|word| (*word).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(commands: &[Words]) -> Vec<String> {
        commands.iter().map(|command| shown(command)).collect()
    }

    #[test]
    fn a_changed_unit_starts_a_running_daemon_again() {
        let running = State { is_active: true, is_enabled: true, ..State::default() };
        let last = |state: &State, is_changed| {
            lines(&Manager::SystemdUser.install("/x".as_ref(), state, is_changed)).pop().unwrap()
        };
        assert_eq!(last(&running, true), "systemctl --user restart narthex.service");
        assert_eq!(last(&running, false), "systemctl --user start narthex.service");
        assert_eq!(last(&State::default(), true), "systemctl --user start narthex.service");
        let machine = Manager::SystemdSystem.install("/x".as_ref(), &running, true);
        assert_eq!(lines(&machine)[0], "systemctl daemon-reload");
    }

    #[test]
    fn an_agent_is_loaded_once() {
        let loaded = State { is_enabled: true, ..State::default() };
        let uid = rustix::process::getuid().as_raw();
        let steps = |state: &State, is_changed| {
            lines(&Manager::Launchd.install("/a b.plist".as_ref(), state, is_changed))
        };
        let load = format!("launchctl bootstrap gui/{uid} '/a b.plist'");
        let target = format!("gui/{uid}/narthex.daemon");
        assert_eq!(steps(&State::default(), true), std::slice::from_ref(&load));
        assert_eq!(steps(&loaded, true), [format!("launchctl bootout {target}"), load]);
        assert_eq!(steps(&loaded, false), [format!("launchctl kickstart {target}")]);
        assert_eq!(Manager::Launchd.uninstall(&State::default()), (Vec::new(), Vec::new()));
    }

    #[test]
    fn the_state_is_read_from_the_managers_words() {
        let text = "ActiveState=active\nUnitFileState=enabled\nMainPID=42\n";
        let word = "active".to_owned();
        let running = State { is_active: true, is_enabled: true, pid: Some(42), word };
        assert_eq!(State::of_systemd(text), running);
        let text = "MainPID=0\nActiveState=failed\nUnitFileState=\n";
        let word = "failed".to_owned();
        assert_eq!(State::of_systemd(text), State { word, ..State::default() });
        let text = "gui/501/narthex.daemon = {\n\tstate = running\n\tpid = 42\n}\n";
        let word = "running".to_owned();
        let running = State { is_active: true, is_enabled: true, pid: Some(42), word };
        assert_eq!(State::of_launchd(text), running);
    }
}
