//! The programs of a settings file that is not in use yet, for a person who decides about the file.

use narthex_model::command::quoted;
use toml::{Table, Value};

use super::{
    keys::{LOAD, STORE},
    layers::Layers,
};

/// Settings that name a file of servers, whose programs start without a further approval.
const FILES: [&str; 2] = ["config", "default_servers"];

/// One line for each program and each file of servers that the text names, and one with the names
/// of all other settings.
pub(crate) fn programs(text: &str) -> Vec<String> {
    let Ok(table) = text.parse::<Table>() else {
        return vec!["no valid TOML, so it would be refused".to_owned()];
    };
    let mut layers = Layers::default();
    layers.add_file("", &table);
    let mut lines = Vec::new();
    for path in [LOAD, STORE] {
        if let Some(given) = layers.get(path) {
            lines.push(format!("{path:<24} runs {}", words(Some(&given.value))));
        }
    }
    let executors = layers.executors.iter().flat_map(|(_, all)| all);
    for (name, executor) in executors {
        let command = words(executor.get("command"));
        let args = words(executor.get("args"));
        let mut line = format!("{:<24} runs {command} {args}", format!("executors.{name}"));
        line.truncate(line.trim_end().len());
        if let Some(folder) = executor.get("cwd") {
            line.push_str(&format!(" in {}", words(Some(folder))));
        }
        let env = executor.get("env").and_then(Value::as_table).into_iter().flatten();
        let env: Vec<_> = env.map(|(name, _)| name.as_str()).collect();
        if !env.is_empty() {
            line.push_str(&format!(" with environment {}", env.join(", ")));
        }
        lines.push(line);
    }
    for path in FILES {
        if let Some(given) = layers.get(path) {
            lines.push(format!("{path:<24} starts the servers of {}", words(Some(&given.value))));
        }
    }
    let is_named = |path: &&str| [LOAD, STORE].contains(path) || FILES.contains(path);
    let sources = layers.sources();
    let others: Vec<_> = sources.keys().copied().filter(|path| !is_named(path)).collect();
    if !others.is_empty() {
        lines.push(format!("other settings: {}", others.join(", ")));
    }
    lines
}

/// The texts of a value as words of a shell.
fn words(value: Option<&Value>) -> String {
    let all = match value {
        Some(Value::Array(all)) => all.iter().collect(),
        Some(one) => vec![one],
        None => Vec::new(),
    };
    let all = all.into_iter().map(|one| match one.as_str() {
        Some(text) => quoted(text).into_owned(),
        None => format!("{one:?}"),
    });
    all.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_is_named() {
        let text = "listen = '0.0.0.0:1'\nconfig = '/x/mcp.json'\n\
            [vault.key_command]\nload = ['sh', '-c', 'id > x']\nstore = ['true']\n\
            [executors.one]\ncommand = 'agent'\nargs = ['-p']\ncwd = '/w'\nenv = { A = 'hid' }\n";
        assert_eq!(
            programs(text),
            [
                "vault.key_command.load   runs sh -c 'id > x'",
                "vault.key_command.store  runs true",
                "executors.one            runs agent -p in /w with environment A",
                "config                   starts the servers of /x/mcp.json",
                "other settings: listen",
            ]
        );
        assert_eq!(programs("x = "), ["no valid TOML, so it would be refused"]);
        assert_eq!(programs(""), [""; 0]);
    }
}
