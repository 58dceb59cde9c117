//! Registered clients to which humans have consented at the door.

use std::{sync::Arc, time::SystemTime};

use narthex_audit::kind;
use narthex_login::{BearerHash, McpClientToken};
use narthex_model::{ClientOrigin, McpClientId, PrincipalId, PrincipalName, WorkspaceId};
use narthex_oauth::server::Consent;
use narthex_store::{DoorConnectionRow, McpClientRow, Store};

use super::DoorDesk;
use crate::{
    AccessError, By, Control, ControlError, KnownClient, Sees,
    access::{LIVE_MAX, of_client},
};

/// The longest beginning of a program's name in the name of its client.
const NAME_MAX: usize = 40;

/// A client to be registered, to which a human consents.
#[derive(Debug)]
pub struct NewConnection {
    /// The id of the client.
    pub id: McpClientId,
    /// The token of the client, which is never shown: the door gives others.
    pub token: McpClientToken,
    /// The servers that the client sees.
    pub sees: Sees,
    /// The workspace of the client.
    pub workspace: WorkspaceId,
    /// The request for the client's runs, sealed for the id; empty without an agent.
    pub sealed: String,
    /// The program's own name for itself.
    pub name: String,
}

impl DoorDesk<'_> {
    /// Registers a client for a human who has consented, and stores the consent.
    ///
    /// # Errors
    /// When there are too many clients, there is no such workspace or no store, or the store fails.
    pub(super) async fn connect(
        &self,
        new: NewConnection,
        consent: &Consent,
        by: &By,
    ) -> Result<Arc<KnownClient>, ControlError> {
        self.control.known_workspace(&new.workspace)?;
        let (by, id, consent) = (by.clone(), new.id.clone(), consent.clone());
        let connecting = async move |this: Control, store: Store| {
            let now = SystemTime::now();
            let here = this.clients(&new.workspace)?;
            if here.iter().filter(|one| one.is_live(now)).count() >= LIVE_MAX {
                return Err(AccessError::TooManyClients(LIVE_MAX).into());
            }
            let NewConnection { id, token, sees, workspace, sealed, name } = new;
            let name = client_name(&workspace, &name, &id)?;
            let event = of_client(kind::CLIENT_REGISTERED, &workspace, &id, by.clone());
            let event = event.with("name", name.as_str());
            let event = event.with("program", consent.client_id.as_str());
            let event = event.with("acts_for", consent.user.as_str());
            let (event, agent, profile) = match sees {
                Sees::Agent(agent) => (event.with("agent", agent.as_str()), Some(agent), None),
                Sees::Profile(profile) => {
                    (event.with("profile", profile.as_str()), None, Some(profile))
                }
                Sees::Live => (event, None, None),
            };
            let noted = this.note(event).await?;
            let principal = this.client_principal(&store, &workspace, name, &by).await?;
            let row = McpClientRow {
                id: id.clone(),
                workspace,
                principal,
                hash: BearerHash::of(token.expose()).to_text(),
                agent,
                profile,
                origins: [ClientOrigin::AgentProduced].into(),
                session: None,
                run: None,
                created_at: now,
                created_by: by.id.into_owned(),
                expires_at: None,
                revoked_at: None,
            };
            let connection = DoorConnectionRow {
                id,
                acts_for: consent.user.clone(),
                client: consent.client_id.as_str().to_owned(),
                consent: text_of(&consent),
            };
            let created = store.mcp_clients().create_connected(&row, &sealed, &connection).await;
            created.map_err(ControlError::Store)?;
            noted.done().await;
            Ok(())
        };
        self.control.change_access(connecting).await?;
        let known = self.control.access().clients.get(&id).cloned();
        known.ok_or_else(|| AccessError::UnknownClient(id.to_string()).into())
    }

    /// The clients that a human let in at the door and that may connect, in the order of their ids.
    #[must_use]
    pub fn clients_of(&self, human: &PrincipalId) -> Vec<Arc<KnownClient>> {
        let now = SystemTime::now();
        let table = self.control.access();
        let is_theirs =
            |client: &&Arc<KnownClient>| client.acts_for() == Some(human) && client.is_live(now);
        table.clients.values().filter(is_theirs).cloned().collect()
    }

    /// Stores the newer consent of a client's human.
    pub(super) async fn renew_consent(
        &self,
        id: &McpClientId,
        consent: &Consent,
    ) -> Result<(), ControlError> {
        let (id, text) = (id.clone(), text_of(consent));
        let renewing = async move |_this: Control, store: Store| {
            store.door().set_consent(&id, &text).await.map_err(ControlError::Store)
        };
        self.control.change_access(renewing).await
    }
}

/// # Panics
/// When the consent is no JSON: all its members are texts and numbers.
fn text_of(consent: &Consent) -> String {
    serde_json::to_string(consent).expect("a consent is JSON")
}

/// A name that no other client has: of the program's own name, which is hostile, only its letters
/// and digits, and then the beginning of the id.
fn client_name(
    workspace: &WorkspaceId,
    name: &str,
    id: &McpClientId,
) -> Result<PrincipalName, AccessError> {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let words = words.collect::<Vec<_>>().join("-").to_ascii_lowercase();
    let words: String = words.chars().take(NAME_MAX).collect();
    let start = if words.is_empty() { "client" } else { words.trim_end_matches('-') };
    let digits = id.as_str().trim_start_matches("cli_");
    let digits: String = digits.chars().take(8).collect();
    PrincipalName::of_service(workspace, &format!("{start}-{digits}"))
        .map_err(|_unfit| AccessError::UnknownClient(id.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S11, A14: names of programs are hostile texts.
    #[test]
    fn door_a14_of_a_programs_name_only_letters_and_digits_are_used() {
        let id = McpClientId::new("cli_0123456789abcdef").unwrap();
        let name = |text: &str| {
            client_name(&WorkspaceId::default(), text, &id).unwrap().as_str().to_owned()
        };
        assert_eq!(name("Claude Code"), "default/claude-code-01234567");
        assert_eq!(name("../<script> \u{202e}x"), "default/script-x-01234567");
        assert_eq!(name("\u{e4}\u{1f600}"), "default/client-01234567");
        assert!(name(&"a b".repeat(100)).len() < 70);
    }
}
