//! The service of a set-up: installed where there is a service manager and no daemon yet.

use std::path::PathBuf;

use narthex_client::{commands::service::Offer, environment::Lost};
use narthex_client_files::journal::{Journal, Step};
use narthex_model::command::narthex;
use serde_json::{Value, json};

use super::place::failed;
use crate::{Failure, cli::Context};

/// The service after a set-up.
pub(super) enum Service {
    /// A service was installed before.
    Present,
    /// The service was installed.
    Installed {
        file: PathBuf,
        /// Sentences for the user, which the plan has as well.
        notes: Vec<String>,
    },
    /// A daemon without a service ran before.
    Beside,
    /// There is no service, for this reason.
    None(String),
}

/// Looks at the service, and changes nothing.
pub(super) async fn offer(context: &Context) -> Result<Offer, Failure> {
    Offer::of(&context.client(), context.settings.door()).await
}

/// The lines of a plan about the daemon: the service that would be installed, or a daemon in the
/// background, and what it would lack. `is_running`: true if a daemon runs already.
pub(super) fn shown(offer: &Offer, is_running: bool) -> Vec<String> {
    match offer {
        Offer::Possible(plan) => {
            let line = format!("The daemon would become a service: {}", plan.file().display());
            std::iter::once(line).chain(plan.notes().iter().cloned()).collect()
        }
        Offer::Impossible(reason) if !is_running => {
            let line = format!("The daemon would run in the background, as no service: {reason}.");
            let lacks = Lost::of_this_process().sentences("A daemon that a client starts");
            std::iter::once(line).chain(lacks).collect()
        }
        Offer::Impossible(_) | Offer::Present | Offer::Beside => Vec::new(),
    }
}

impl Service {
    /// Installs the service and starts it, which is recorded first.
    pub(super) async fn install(
        offer: Offer,
        journal: &mut Journal,
        context: &Context,
    ) -> Result<Self, Failure> {
        let plan = match offer {
            Offer::Present => return Ok(Self::Present),
            Offer::Beside => return Ok(Self::Beside),
            Offer::Impossible(reason) => return Ok(Self::None(reason)),
            Offer::Possible(plan) => plan,
        };
        let file = plan.file().to_owned();
        journal.note(Step::Service { file: file.clone() }).map_err(|error| failed(&error))?;
        plan.carry_out(&context.client()).await?;
        Ok(Self::Installed { file, notes: plan.notes().to_vec() })
    }

    /// True if the daemon is a service.
    pub(super) fn is_one(&self) -> bool {
        matches!(self, Self::Present | Self::Installed { .. })
    }

    /// True if the daemon was started by the installation.
    pub(super) fn is_new(&self) -> bool {
        matches!(self, Self::Installed { .. })
    }

    /// Sentences about the daemon; `is_started`: true if one was started without a service.
    pub(super) fn sentences(&self, is_started: bool) -> Vec<String> {
        let status = narthex("service status", &[]);
        match self {
            Self::Present => Vec::new(),
            Self::Installed { .. } => {
                vec![format!("The daemon starts with your session: `{status}` shows it.")]
            }
            Self::None(reason) if is_started => vec![
                format!("The daemon is no service: {reason}."),
                format!(
                    "It runs in the background, and a client starts it again with `{}`. `{}` stops \
                     it.",
                    narthex("connect", &[]),
                    narthex("daemon stop", &[])
                ),
            ],
            Self::None(reason) => {
                vec![format!("The daemon ran before, and cannot become a service: {reason}.")]
            }
            Self::Beside => vec![format!(
                "The daemon ran before. To have it start with your session, run `{}`, then `{}`.",
                narthex("daemon stop", &[]),
                narthex("service install", &[])
            )],
        }
    }

    pub(super) fn to_json(&self) -> Value {
        match self {
            Self::Present => json!({ "state": "present" }),
            Self::Installed { file, notes } => {
                json!({ "state": "installed", "file": file, "notes": notes })
            }
            Self::Beside => json!({ "state": "none", "reason": "a daemon runs already" }),
            Self::None(reason) => json!({ "state": "none", "reason": reason }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_says_how_the_daemon_would_run() {
        let none = Offer::Impossible("there is no service manager".to_owned());
        assert_eq!(
            shown(&none, false)[0],
            "The daemon would run in the background, as no service: there is no service manager."
        );
        assert_eq!(shown(&none, true), [""; 0]);
        assert_eq!(shown(&Offer::Beside, true), [""; 0]);
    }
}
