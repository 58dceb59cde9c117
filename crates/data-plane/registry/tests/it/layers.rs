//! Layers of configuration: how they are put together, followed and edited.

mod composing;
mod editing;
mod files;
mod following;
mod seeding;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use narthex_registry::{
    config::Variables,
    layers::Declared,
    watch::{Approve, LayerFiles, LayerOptions, LayersEvent, ProjectFile, Refused, Subscription},
};
use tokio_util::task::TaskTracker;

use super::world::in_time;

fn variables() -> Variables {
    Arc::new(|name| (name == "KEY").then(|| "k-123".to_owned()))
}

/// A stdio server as JSON, distinguished from other servers by its argument.
fn server(argument: &str) -> String {
    format!(r#"{{ "transport": "stdio", "command": "true", "args": ["{argument}"] }}"#)
}

/// An `mcp.json` with one server `name`.
fn project(name: &str, argument: &str) -> String {
    format!(r#"{{ "servers": {{ "{name}": {} }} }}"#, server(argument))
}

fn settings(name: &str, argument: &str) -> String {
    format!(r#"{{ "mcp": {{ "servers": {{ "{name}": {} }} }} }}"#, server(argument))
}

/// Puts a file in the place of another in one step, as careful programs save.
fn replace(path: &Path, text: &str) {
    let new = path.with_extension("new");
    fs_err::write(&new, text).unwrap();
    fs_err::rename(new, path).unwrap();
}

/// A set in short: `name=argument`, and `name!` for an overridden entry.
fn short(declared: &[Declared]) -> Vec<String> {
    use narthex_model::Target;
    use narthex_registry::config::Entry;
    let one = |declared: &Declared| {
        let name = declared.name();
        if declared.is_overridden {
            return format!("{name}!");
        }
        match &declared.entry {
            Entry::Server(server) => match &server.target {
                Target::Stdio(stdio) => format!("{name}={}", stdio.args.join(" ")),
                Target::Http(http) => format!("{name}={}", http.url),
            },
            Entry::Fault(_) => format!("{name}?"),
        }
    };
    declared.iter().map(one).collect()
}

/// A folder with both files, neither of which exists yet, and their events.
struct World {
    _folder: tempfile::TempDir,
    root: PathBuf,
    tasks: TaskTracker,
    options: LayerOptions,
    /// Texts that are refused, each with its reason.
    refused: Arc<Mutex<Vec<(String, String)>>>,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = fs_err::canonicalize(folder.path()).unwrap();
        let refused: Arc<Mutex<Vec<(String, String)>>> = Arc::default();
        let approver = refused.clone();
        let approve: Approve = Arc::new(move |_, text| {
            let refused = approver.lock().unwrap();
            let found = refused.iter().find(|(refused, _)| refused.as_bytes() == text);
            found.map_or(Ok(()), |(_, reason)| Err(Refused { reason: reason.clone() }))
        });
        let mut options = LayerOptions::new(&root, variables());
        options.settings = Some(root.join("settings.json"));
        options.project =
            Some(ProjectFile { path: root.join("mcp.json"), approve, approvals: None });
        options.debounce = Duration::from_millis(5);
        Self { _folder: folder, root, tasks: TaskTracker::new(), options, refused }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    fn project(&self) -> PathBuf {
        self.path("mcp.json")
    }

    fn settings(&self) -> PathBuf {
        self.path("settings.json")
    }

    fn follow_project_at(&mut self, path: PathBuf) {
        self.options.project.as_mut().unwrap().path = path;
    }

    fn files(&self) -> LayerFiles {
        LayerFiles::new(self.options.clone(), self.tasks.clone())
    }

    /// Loads the files, and starts to follow them.
    async fn follow(&self) -> (LayerFiles, Subscription) {
        let files = self.files();
        files.load().await;
        let events = files.subscribe();
        files.start().await;
        (files, events)
    }
}

async fn next(events: &mut Subscription) -> LayersEvent {
    in_time(events.next()).await.unwrap()
}

/// The set of an event, which must report a new set.
#[track_caller]
fn changed(event: LayersEvent) -> Vec<String> {
    match event {
        LayersEvent::Changed { declared, .. } => short(&declared),
        other => panic!("{other:?}"),
    }
}

/// The text of an event, which must report a failure.
#[track_caller]
fn failed(event: LayersEvent) -> String {
    match event {
        LayersEvent::Failed { error, .. } => error.to_string(),
        other => panic!("{other:?}"),
    }
}
