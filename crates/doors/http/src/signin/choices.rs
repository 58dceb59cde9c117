//! The servers that a human can give to a program: those of the agents whose runs the human may
//! create, and for operators those of the live configuration.

use std::sync::Arc;

use narthex_control::{Control, DoorChoice, DoorDesk, DoorHuman, KnownClient, Sees, SignedIn};
use narthex_model::{AgentName, CatalogKind, PrincipalId, ProfileName, Timestamp, WorkspaceId};
use narthex_oauth::server::PendingConsent;

use super::{Visitor, nothing, page::Program};
use crate::problem::Problem;

/// Most agents of one workspace that a page offers.
const AGENTS_MAX: u32 = 200;

/// One choice of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Choice(DoorChoice);

/// The choice that is preselected: one without an alternative, or the one that the program has from
/// `before`. Else the human has to choose.
pub(super) fn preselected<'c>(
    choices: &'c [Choice],
    before: Option<&DoorChoice>,
) -> Option<&'c Choice> {
    match choices {
        [only] => Some(only),
        all => all.iter().find(|choice| Some(&choice.0) == before),
    }
}

impl Choice {
    /// Reads the value of a form; `None` if it is no choice.
    pub(super) fn read(text: &str, home: &WorkspaceId) -> Option<DoorChoice> {
        let words: Vec<_> = text.split(' ').collect();
        let of_home = |sees| DoorChoice { workspace: home.clone(), sees };
        match words.as_slice() {
            ["live"] => Some(of_home(Sees::Live)),
            ["profile", name] => ProfileName::new(name).ok().map(Sees::Profile).map(of_home),
            ["agent", workspace, name] => Some(DoorChoice {
                workspace: WorkspaceId::new(workspace).ok()?,
                sees: Sees::Agent(AgentName::new(name).ok()?),
            }),
            _ => None,
        }
    }

    /// The value of the form.
    pub(super) fn value(&self) -> String {
        let DoorChoice { workspace, sees } = &self.0;
        match sees {
            Sees::Live => "live".to_owned(),
            Sees::Profile(name) => format!("profile {name}"),
            Sees::Agent(name) => format!("agent {workspace} {name}"),
        }
    }

    /// The words for the human.
    pub(super) fn label(&self) -> String {
        let DoorChoice { workspace, sees } = &self.0;
        match sees {
            Sees::Live => "all servers of this daemon".to_owned(),
            Sees::Profile(name) => format!("the profile {name}"),
            Sees::Agent(name) => format!("the servers of the agent {name} ({workspace})"),
        }
    }
}

impl Visitor<'_> {
    /// The choices of a human for a request, the widest at the end.
    pub(super) async fn choices(
        &self,
        pending: &PendingConsent,
        human: &DoorHuman,
    ) -> Result<Vec<Choice>, Problem> {
        let Some(path) = pending.resource.path() else { return Ok(Vec::new()) };
        let mut all = Vec::new();
        if path.profile().is_none() {
            let mut places = workspaces(self.control, human)?;
            places.retain(|one| path.workspace().is_none_or(|named| named == one.as_str()));
            for workspace in places {
                let kind = CatalogKind::Agent;
                let page = self.control.catalog_list(&workspace, kind, "", AGENTS_MAX).await?;
                let agents = page.items.iter().filter_map(|one| AgentName::new(&one.id).ok());
                all.extend(agents.map(|agent| DoorChoice {
                    workspace: workspace.clone(),
                    sees: Sees::Agent(agent),
                }));
            }
        }
        all.extend(self.live_choices());
        let desk = DoorDesk::of(self.control).ok_or_else(nothing)?;
        all.retain(|choice| {
            choice.fits(&pending.resource) && desk.may_choose(human, choice).is_ok()
        });
        Ok(all.into_iter().map(Choice).collect())
    }

    /// True if the page of a request offers this choice to the human.
    pub(super) async fn is_offered(
        &self,
        pending: &PendingConsent,
        human: &DoorHuman,
        choice: &DoorChoice,
    ) -> Result<bool, Problem> {
        let choices = self.choices(pending, human).await?;
        Ok(choices.iter().any(|offered| offered.0 == *choice))
    }

    /// The choices of the live configuration.
    fn live_choices(&self) -> Vec<DoorChoice> {
        let home = self.control.home();
        let of_home = |sees| DoorChoice { workspace: home.clone(), sees };
        let profiles = self.door.gateway.registry().profiles();
        let usable = profiles.iter().filter(|one| one.profile.is_some());
        let profiles = usable.filter_map(|one| ProfileName::new(&one.name).ok());
        profiles.map(Sees::Profile).chain([Sees::Live]).map(of_home).collect()
    }
}

/// The programs that a human let in, as pages about the human show them.
pub(crate) fn programs_of(control: &Control, signed_in: &SignedIn) -> Vec<Program> {
    let clients = clients_of(control, signed_in);
    let programs = clients.iter().map(|client| {
        let (row, name) = (&client.row, client.account.name.as_str());
        let consent = client.connection.as_ref().map(|connection| &connection.consent);
        let since = Timestamp::new(row.created_at).to_string();
        Program {
            id: row.id.as_str().to_owned(),
            // The name of the account begins with the workspace.
            name: name.split_once('/').map_or(name, |(_, name)| name).to_owned(),
            place: consent.map(|consent| consent.place.clone()).unwrap_or_default(),
            sees: sees(client),
            since: since.split('T').next().unwrap_or_default().to_owned(),
        }
    });
    programs.collect()
}

/// The servers that a registered client sees, in words.
pub(crate) fn sees(client: &KnownClient) -> String {
    Choice(DoorChoice::of(client)).label()
}

/// The clients that a human let in.
pub(super) fn clients_of(control: &Control, signed_in: &SignedIn) -> Vec<Arc<KnownClient>> {
    let desk = DoorDesk::of(control);
    desk.map(|desk| desk.clients_of(&signed_in.account.id)).unwrap_or_default()
}

/// The workspaces whose agents a human may give.
fn workspaces(control: &Control, human: &DoorHuman) -> Result<Vec<WorkspaceId>, Problem> {
    if human.id == PrincipalId::local_admin() {
        return Ok(vec![control.home().clone()]);
    }
    let account = control.principal(human.id.as_str())?;
    let all = control.workspaces()?.into_iter().map(|one| one.id);
    Ok(all.filter(|workspace| account.may_connect(Some(workspace))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn door_a6_each_choice_is_read_as_it_is_written() {
        let home = WorkspaceId::default();
        for text in ["live", "profile work", "agent team reader"] {
            let read = Choice::read(text, &home).unwrap();
            assert_eq!(Choice(read).value(), text);
        }
        for bad in ["", "all", "profile", "profile A b", "agent team", "agent team reader x"] {
            assert_eq!(Choice::read(bad, &home), None, "{bad}");
        }
    }

    #[test]
    fn door_a6_no_wider_choice_than_before_is_preselected() {
        let home = WorkspaceId::default();
        let read = |text: &str| Choice(Choice::read(text, &home).unwrap());
        let (live, agent) = (read("live"), read("agent default reader"));
        assert_eq!(preselected(&[], None), None);
        assert_eq!(preselected(std::slice::from_ref(&live), None), Some(&live));
        let both = [agent.clone(), live.clone()];
        assert_eq!(preselected(&both, None), None);
        assert_eq!(preselected(&both, Some(&agent.0)), Some(&agent));
        let gone = read("agent default gone");
        assert_eq!(preselected(&both, Some(&gone.0)), None);
    }
}
