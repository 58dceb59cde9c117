//! The project file of a client before its approval, as `narthex setup` takes it.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use narthex_client::dialect;
use narthex_client_files::{
    clients::{Client, ClientFile},
    edit::EditError,
    inventory::{Content, FoundFile},
    plan::{Existing, Plan, Planned, Skipped},
    rewrite::parse,
    servers::{Target, Text, read},
};
use narthex_model::{
    ErrorKind, ServerDefinition,
    command::{CommandLine, narthex},
};
use narthex_registry::config::{self, Entry, Env, LoadContext};
use serde_json::{Value, json};

use super::shown::{address, host_alone, started, variable, variables};
use crate::{
    Failure,
    commands::{
        packages::{self, FailedStarts},
        setup::find::staying,
    },
    config::workspace_root,
};

/// A file that a client has in a project.
pub(super) struct ProjectFile {
    client: &'static Client,
    path: PathBuf,
    /// The folder of the project.
    project: PathBuf,
}

impl ProjectFile {
    /// The file of a client, which must be one of a project: no other one needs an approval.
    pub(super) fn new(path: &Path, file: ClientFile) -> Result<Self, Failure> {
        let ClientFile { client, project } = file;
        if let Some(project) = project.filter(|_| client.is_of_project()) {
            return Ok(Self { client, path: path.to_owned(), project });
        }
        let own = dialect::project_file(&client.id);
        let own = own.map(|own| format!("; here that is {}", own.display())).unwrap_or_default();
        let text = format!(
            "{} is no file that {} has in a project, and for its clients narthex asks for the \
             approval of such files alone{own}",
            path.display(),
            client.name
        );
        Err(Failure::new(ErrorKind::Invalid, text))
    }

    /// The id of the client.
    pub(super) fn id(&self) -> &str {
        &self.client.id
    }

    /// The command that takes the approved file up.
    pub(super) fn setup(&self) -> CommandLine {
        match self.client.is_verified {
            true => narthex("setup", &[]),
            false => narthex("setup --only {}", &[&self.client.id]),
        }
    }

    pub(super) fn taking_effect(&self) -> String {
        let setup = self.setup();
        match workspace_root().is_ok_and(|root| root == self.project) {
            true => format!("`{setup}` includes it from now on"),
            false => {
                let folder = self.project.display();
                format!("`{setup}` includes it from now on, in the folder {folder}")
            }
        }
    }

    /// The servers of the file, with the paths that they would have in narthex.
    pub(super) fn servers(
        &self,
        text: &[u8],
        failed: &FailedStarts,
    ) -> Result<Vec<Value>, Failure> {
        let (client, path) = (self.client, self.path.clone());
        let invalid = |error: EditError| {
            Failure::new(ErrorKind::Invalid, format!("{}: {error}", self.path.display()))
        };
        let document = parse(client.format, text).map_err(invalid)?;
        let found = read(client, &document, &self.project.to_string_lossy()).map_err(invalid)?;
        let found = found.iter().map(|one| one.in_folder(&self.project));
        let content = Content::Servers(found.collect());
        let none = Existing { entries: &BTreeMap::new(), moved: &BTreeMap::new() };
        let plan = Plan::of_moves(&[FoundFile { client, path, content }], none);
        let staying = staying(&plan, &self.path, &self.project);
        let servers = plan.servers.iter().enumerate().map(|(at, one)| {
            let definition = self.definition(one);
            let unpinned = definition.map(|found| packages::unpinned(&found, failed));
            let mut server = shown(one);
            server["unpinned"] = json!(unpinned.unwrap_or_default());
            server["stays"] = json!(staying.get(&at));
            server
        });
        let skipped = plan.skipped.iter().map(|Skipped { origin, reason }| {
            json!({ "alias": origin.name, "starts": format!("nothing: {reason}") })
        });
        let own = plan.own.iter().map(
            |origin| json!({ "alias": origin.name, "starts": "nothing: it is narthex itself" }),
        );
        Ok(servers.chain(skipped).chain(own).collect())
    }

    /// The server as the daemon would read it, with its variables as they are written.
    fn definition(&self, one: &Planned) -> Option<ServerDefinition> {
        let (file, root) = (&self.path, &self.project);
        let context = LoadContext { file, workspace_root: root, env: Env::AsWritten };
        let entry: Value = serde_json::from_str(one.server.entry().expose()).ok()?;
        let document = json!({ "servers": { one.alias.as_str(): entry } }).to_string();
        let loaded = config::parse(document.as_bytes(), &context).ok()?;
        loaded.entries.into_iter().find_map(|entry| match entry {
            Entry::Server(definition) => Some(definition),
            Entry::Fault(_) => None,
        })
    }
}

fn shown(one: &Planned) -> Value {
    let server = &one.server;
    let mut value = match &server.target {
        Target::Stdio { command, args, env, cwd } => {
            let args: Vec<_> = args.iter().map(Text::expose).collect();
            let env = env
                .iter()
                .map(|(name, text)| (name.clone(), Value::from(variable(name, text.expose()))));
            json!({
                "starts": started(command.expose(), &args),
                "folder": cwd,
                "environment": Value::Object(env.collect()),
            })
        }
        Target::Remote { url, headers, .. } => {
            let names: Vec<_> = headers.keys().collect();
            let starts = match url {
                Text::Secret(secret) => host_alone(secret.expose()),
                Text::Plain(url) => address(url),
            };
            let hidden = url.is_secret().then_some(url).into_iter().chain(headers.values());
            let variables = variables(hidden.map(Text::expose));
            json!({ "starts": starts, "headers": names, "variables": variables })
        }
    };
    let left_out = server.left_out.iter();
    let left_out = left_out.map(|one| json!({ "field": one.field, "message": one.words }));
    value["alias"] = one.alias.as_str().into();
    value["left_out"] = left_out.collect();
    value
}

/// The fields of a shown server that narthex does not keep, and the reason for which a server stays
/// in the file.
pub(super) fn facts(server: &Value) -> Vec<String> {
    let left_out = server["left_out"].as_array().into_iter().flatten();
    let left_out = left_out.map(|one| {
        let text = |key: &str| one[key].as_str().unwrap_or_default();
        format!("without `{}`: {}", text("field"), text("message"))
    });
    let stays = server["stays"].as_str().map(|reason| format!("stays in the file: {reason}"));
    left_out.chain(stays).collect()
}
