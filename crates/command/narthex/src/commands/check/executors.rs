//! The executors of the settings: missing programs, and agents that name a missing executor.

use std::path::Path;

use narthex_executor::{CommandExecutor, Executors};
use narthex_model::{ExecutorName, did_you_mean};

use super::{Check, host::find};
use crate::config::Settings;

/// The executors of the settings. Only a user with agents reads that there are none.
pub(super) fn all(settings: &Settings, has_agents: bool) -> Vec<Check> {
    // Programs of another machine are not to be found on this one.
    if settings.daemon.daemon_url.is_some() {
        return Vec::new();
    }
    let all = &settings.executors.all;
    if all.is_empty() {
        let text = "the settings have no executors, so runs of agents wait until a client claims \
                    them";
        return has_agents.then(|| Check::info("EXECUTORS", text)).into_iter().collect();
    }
    all.iter().map(|(name, of)| program(name, of)).collect()
}

fn program(name: &ExecutorName, of: &CommandExecutor) -> Check {
    let command = &of.command;
    let is_of_run = of.cwd.is_none() && command.contains('/') && !command.starts_with('/');
    let found = find(command, of.cwd.as_deref().unwrap_or(Path::new("")));
    let text = format!("the executor `{name}` starts {command}");
    match found {
        Some(path) => Check::info("EXECUTORS", text).detail(path.display().to_string()),
        None if is_of_run => Check::info("EXECUTORS", format!("{text} in the folder of each run")),
        None => {
            let place = if command.contains('/') { "there" } else { "in PATH" };
            let text = format!("{text}, which was not found {place}, so its runs fail");
            Check::warn("EXECUTORS", text, "install it, or write the path of the program")
        }
    }
}

/// An agent whose runs nothing carries out.
pub(super) fn of_agent(agent: &str, named: &str, known: &Executors) -> Option<Check> {
    let names = || known.all.keys().map(ExecutorName::as_str);
    let text =
        format!("the agent `{agent}` names the executor `{named}`, which is not in the settings");
    let hint = did_you_mean(named, names())
        .unwrap_or_else(|| format!("add `[executors.{named}]` to the settings of the daemon"));
    names().all(|name| name != named).then(|| Check::warn("EXECUTORS", text, hint))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::check::Level;

    /// An executor whose program is not to be found is reported, also where an agent names it.
    #[test]
    fn missing_executors_are_reported() {
        let text = "[here]\ncommand = 'sh'\n[gone]\ncommand = 'no-such-program'\n";
        let table = text.parse().unwrap();
        let mut faults = Vec::new();
        let known = Executors::read("narthex.toml", &table, &|_text: &str| None, &mut faults);
        let told = |wanted: &str| {
            let (name, of) = known.all.iter().find(|(name, _)| name.as_str() == wanted).unwrap();
            program(name, of)
        };
        assert_eq!((told("here").level, told("gone").level), (Level::Info, Level::Warn));
        assert!(told("gone").message.contains("no-such-program, which was not found in PATH"));
        assert_eq!(of_agent("a", "here", &known), None);
        let hint = of_agent("a", "heer", &known).unwrap().hint.unwrap();
        assert_eq!(hint, "did you mean `here`?");
    }
}
