//! The state in which a signal leaves a set-up, from its recorded steps.

use std::path::Path;

use narthex_client::{Failure, output::counted};
use narthex_client_files::journal::Step;
use narthex_model::command::narthex;
use serde_json::json;

use super::again::again;

/// Facts of a set-up that a signal has stopped.
pub(super) struct Stopped<'s> {
    /// The steps that it recorded.
    pub(super) steps: &'s [Step],
    /// The label of the settings file in the record.
    pub(super) settings: &'static str,
    /// True if it started a daemon in the background.
    pub(super) is_daemon_started: bool,
    /// Ids of the clients that the user has named.
    pub(super) only: &'s [String],
}

impl Stopped<'_> {
    /// The failure, which says what has changed and how to take it back.
    pub(super) fn failure(&self) -> Failure {
        let (mut files, mut settings) = (Vec::<&Path>::new(), None::<&Path>);
        let (mut secrets, mut service) = (Vec::<&str>::new(), None::<&Path>);
        for step in self.steps {
            match step {
                Step::File(file) if file.label == self.settings => settings = Some(&file.path),
                Step::File(file) if files.contains(&file.path.as_path()) => {}
                Step::File(file) => files.push(&file.path),
                Step::Secret { name, .. } => secrets.push(name),
                Step::Service { file } => service = Some(file),
                Step::Server { .. } => {}
            }
        }
        let mut facts = Vec::new();
        facts.extend(service.map(|file| format!("the service {} is installed", file.display())));
        if !secrets.is_empty() {
            let verb = if secrets.len() == 1 { "is" } else { "are" };
            facts.push(format!("{} {verb} in the vault", counted(secrets.len() as u64, "secret")));
        }
        facts.extend(settings.map(|file| format!("{} has changed", file.display())));
        let of_clients = match &files[..] {
            [] if facts.is_empty() => "nothing has changed".to_owned(),
            [] => "no file of a client has changed".to_owned(),
            files => {
                let files: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
                format!("these files of clients have changed: {}", files.join(", "))
            }
        };
        let mut text = std::iter::once(of_clients).chain(facts).collect::<Vec<_>>().join("; ");
        if !self.steps.is_empty() {
            text.push_str(&format!(
                "; `{}` continues, and `{}` takes back all that was done until now",
                again(self.only),
                narthex("setup --undo", &[])
            ));
        }
        if self.is_daemon_started && service.is_none() {
            let stop = narthex("daemon stop", &[]);
            text.push_str(&format!("; the daemon was started, and `{stop}` stops it"));
        }
        let details = json!({
            "changed_files": files,
            "settings": settings,
            "secrets": secrets,
            "service": service,
        });
        Failure::interrupted(text).with_details(Some(details))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stopped_set_up_names_its_changes_and_the_way_back() {
        let told = |steps: &[Step], is_daemon_started| {
            Stopped { steps, settings: "settings", is_daemon_started, only: &[] }.failure()
        };
        let nothing = told(&[], false);
        assert_eq!(nothing.to_string(), "interrupted: nothing has changed");
        let started = told(&[], true).message;
        assert!(started.ends_with("; the daemon was started, and `narthex daemon stop` stops it"));
        let secret = |name: &str| Step::Secret { name: name.to_owned(), version: None };
        let some = told(&[secret("A"), secret("B")], false);
        assert_eq!(
            some.message,
            "no file of a client has changed; 2 secrets are in the vault; `narthex setup` \
             continues, and `narthex setup --undo` takes back all that was done until now"
        );
        assert_eq!(some.details.unwrap()["secrets"], json!(["A", "B"]));
        let service = told(&[Step::Service { file: "/a/b.service".into() }], true).message;
        assert!(service.contains("; the service /a/b.service is installed; "), "{service}");
        assert!(!service.contains("daemon stop"), "{service}");
    }
}
