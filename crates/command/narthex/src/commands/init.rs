//! `narthex init`: writes a first configuration into this folder. No file is ever overwritten.

use narthex_model::command::narthex;
use std::{
    io::{self, Write},
    path::Path,
    process::ExitCode,
};

use fs_err as fs;
use serde_json::json;

use super::{
    check::is_installed,
    source::{files_of_clients, trusting},
};
use crate::{Failure, cli::Context, output};
use narthex_client::{cli::InitArgs, settings_files::SETTINGS_FILE};

/// A file to begin with.
struct Template {
    path: &'static str,
    text: &'static str,
}

const MCP_JSON: &str = "mcp.json";

const MINIMAL: [Template; 2] = [
    Template { path: MCP_JSON, text: include_str!("init/mcp.json") },
    Template { path: SETTINGS_FILE, text: include_str!("init/narthex.toml") },
];

const EXAMPLES: [Template; 4] = [
    Template { path: MCP_JSON, text: include_str!("init/examples.mcp.json") },
    Template { path: SETTINGS_FILE, text: include_str!("init/narthex.toml") },
    Template {
        path: "agents/playwright-demo/agent.yaml",
        text: include_str!("init/playwright-demo.yaml"),
    },
    Template {
        path: "agents/github-assistant/agent.yaml",
        text: include_str!("init/github-assistant.yaml"),
    },
];

/// The programs that the examples are started with.
const NEEDED: [&str; 2] = ["node", "npx"];

/// The files that were written and skipped, and the programs that are missing.
#[derive(Debug, Default)]
struct Done {
    written: Vec<&'static str>,
    skipped: Vec<&'static str>,
    missing: Vec<&'static str>,
}

pub(crate) fn run(args: &InitArgs, context: &Context) -> Result<ExitCode, Failure> {
    let mut done = Done::default();
    let templates: &[Template] = if args.with_mcp_examples { &EXAMPLES } else { &MINIMAL };
    if args.with_mcp_examples {
        done.missing = NEEDED.into_iter().filter(|name| !is_installed(name)).collect();
    }
    for template in templates {
        match create(template)? {
            true => done.written.push(template.path),
            false => done.skipped.push(template.path),
        }
    }
    show(&done, args, context)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes a file, unless anything is there already, be it a link that leads nowhere.
fn create(template: &Template) -> Result<bool, Failure> {
    let path = Path::new(template.path);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    match fs::OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(mut file) => match file.write_all(template.text.as_bytes()) {
            Ok(()) => Ok(true),
            Err(error) => {
                // The next try would take a part for the user's own file.
                fs::remove_file(path)?;
                Err(error.into())
            }
        },
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn show(done: &Done, args: &InitArgs, context: &Context) -> Result<(), Failure> {
    let Done { written, skipped, missing } = done;
    let next = guidance(done, args);
    if context.format.is_json() {
        return output::done(&json!({
            "written": written,
            "skipped": skipped,
            "missing": missing,
            "next": next,
        }));
    }
    if context.format.is_quiet() {
        output::line(&format!("wrote {}, skipped {}", written.len(), skipped.len()))?;
        if !missing.is_empty() {
            output::line(&format!("not installed: {}", missing.join(", ")))?;
        }
        return Ok(());
    }
    for name in missing {
        output::sentence(&format!(
            "[init] {name} is not in PATH: install Node.js (https://nodejs.org)"
        ))?;
    }
    for path in written {
        output::sentence(&format!("[init] wrote {path}"))?;
    }
    for path in skipped {
        output::sentence(&format!("[init] skipped {path}: it exists already"))?;
    }
    output::sentence("")?;
    next.iter().try_for_each(|line| output::sentence(line))
}

/// The next steps of the user.
fn guidance(done: &Done, args: &InitArgs) -> Vec<String> {
    let mut next = Vec::new();
    if args.with_mcp_examples {
        next.push(
            "Set GITHUB_PERSONAL_ACCESS_TOKEN where the daemon starts, for the server github of \
             mcp.json."
                .to_owned(),
        );
        if done.skipped.contains(&MCP_JSON) {
            next.push("Your mcp.json stayed as it is, without the servers of the examples.".into());
        }
    } else {
        let add = narthex("mcp add NAME -- COMMAND", &[]);
        next.push(format!(
            "Put your servers into mcp.json, or add one for all projects with `{add}`."
        ));
    }
    next.extend(files_of_clients());
    next.push(format!("Check the servers of this folder with `{}`.", narthex("check mcp", &[])));
    let (trust, up) = (trusting(Path::new(MCP_JSON)), narthex("up", &[]));
    next.push(format!("Approve the file with `{trust}`, and start the daemon with `{up}`."));
    // A process with a settings file has that in each printed command.
    if done.written.contains(&SETTINGS_FILE) && !up.to_string().contains(" --settings ") {
        let path =
            std::path::absolute(SETTINGS_FILE).unwrap_or_else(|_unknown| SETTINGS_FILE.into());
        let up = narthex("up --settings {}", &[&path.display()]);
        next.push(format!("To use {SETTINGS_FILE}, start the daemon with `{up}`."));
    }
    if args.with_mcp_examples {
        let set = narthex("secrets set {}", &[&"GITHUB_PERSONAL_ACCESS_TOKEN"]);
        next.push(format!("Set the secret of github-assistant with `{set}`."));
        for agent in EXAMPLES.iter().filter(|one| one.path.ends_with("agent.yaml")) {
            let apply = narthex("agents apply --file {}", &[&agent.path]);
            next.push(format!("Then store an agent, with its servers, with `{apply}`."));
        }
    }
    next
}

#[cfg(test)]
mod tests {
    use narthex_registry::config::{Entry, Env, LoadContext, parse};

    use super::*;

    /// R-M34: the program takes the files that are written.
    #[test]
    fn r_m34_templates_load_without_a_warning() {
        let env = |_: &str| Some("filled-in".to_owned());
        for (templates, count) in [(&MINIMAL[..], 0), (&EXAMPLES[..], 2)] {
            let template = templates.iter().find(|one| one.path == MCP_JSON).unwrap();
            let file = Path::new(template.path);
            let context =
                LoadContext { file, workspace_root: Path::new("/"), env: Env::Values(&env) };
            let loaded = parse(template.text.as_bytes(), &context).unwrap();
            assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
            assert_eq!(loaded.entries.len(), count);
            assert!(loaded.entries.iter().all(|entry| matches!(entry, Entry::Server(_))));
        }
    }

    /// R-M34, R-M4: the example agents name the servers that mcp.json has, with the same programs.
    #[test]
    fn r_m34_agents_and_mcp_json_agree() {
        let text = |path: &str| EXAMPLES.iter().find(|one| one.path == path).unwrap().text;
        let document: serde_json::Value = serde_json::from_str(text(MCP_JSON)).unwrap();
        let table = [("playwright", EXAMPLES[2].path), ("github", EXAMPLES[3].path)];
        for (name, path) in table {
            let (entry, agent) = (&document["servers"][name], text(path));
            assert!(agent.contains(&format!("\n    {name}:\n")), "{agent}");
            assert!(agent.contains(&format!("command: {}", entry["command"].as_str().unwrap())));
            for arg in entry["args"].as_array().unwrap() {
                assert!(agent.contains(arg.as_str().unwrap()), "{arg}");
            }
        }
    }
}
