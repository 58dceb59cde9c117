//! Authorization requests, which wait for a human, and the answers of humans.
//!
//! A request is a row of the store from its check until its answer, so that any daemon can finish
//! it. One browser can answer it, once.

use std::{sync::Arc, time::SystemTime};

use narthex_login::Token;
use narthex_model::{AgentName, McpClientId, PrincipalId, WorkspaceId};
use narthex_oauth::{
    TokenHash,
    server::{
        Approval, Approved, AuthorizeRefusal, AuthorizeRequest, AuthorizeRules, Checked, Consent,
        DocumentUse, PENDING_LIFE, PageError, PendingConsent, Redirect, RedirectKind, Resource,
        ResourceRule, USED_CODE_LIFE,
    },
};
use narthex_store::{DoorCodeRow, DoorRequestRow};

use super::{
    DoorDesk,
    clients::ClientFault,
    connections::NewConnection,
    documents::{read, text_of},
    fault::{DoorFault, DoorStop},
};
use crate::{By, ControlError, KnownClient, Sees};

/// Most requests of browsers without a sign-in that wait at a time.
const WAITING_MAX: usize = 10_000;

/// The human on the page of consent.
#[derive(Debug, Clone)]
pub struct DoorHuman {
    /// The id.
    pub id: PrincipalId,
    /// The human as the actor of changes.
    pub by: By,
}

/// A browser that answers a request, with a secret that it alone has.
#[derive(Clone, Copy)]
pub enum DoorBrowser<'b> {
    /// A human has signed in.
    Human(&'b str),
    /// A browser of this machine, in which no human has signed in.
    Local(&'b str),
}

impl DoorBrowser<'_> {
    fn secret(&self) -> &str {
        match self {
            Self::Human(secret) | Self::Local(secret) => secret,
        }
    }

    /// True if this browser may answer a request: for a program that answers at a web page, a click
    /// on this machine is not enough.
    fn may_answer(self, pending: &PendingConsent) -> bool {
        match self {
            Self::Human(_) => true,
            Self::Local(_) => pending.redirect_uri.kind() != RedirectKind::Web,
        }
    }
}

/// The servers that a human chose for a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoorChoice {
    /// The workspace of the client.
    pub workspace: WorkspaceId,
    /// The servers.
    pub sees: Sees,
}

impl DoorDesk<'_> {
    /// Checks an authorization request by its query.
    ///
    /// # Errors
    /// When the store fails. Faults of the request are [`DoorStop`]s.
    pub async fn authorize(&self, query: &str) -> Result<Result<Checked, DoorStop>, ControlError> {
        let server = self.server;
        let request = match AuthorizeRequest::read(query) {
            Ok(request) => request,
            Err(error) => return Ok(Err(error.into())),
        };
        let client = match self.client(request.client_id(), DocumentUse::NewConsent).await {
            Ok(Some(client)) => client,
            Ok(None) => return Ok(Err(PageError::UnknownClient.into())),
            Err(ClientFault::Document(error)) => return Ok(Err(error.into())),
            Err(ClientFault::Control(error)) => return Err(error),
        };
        let rules = AuthorizeRules {
            door: server.door(),
            redirects: &server.options.redirects,
            scopes: server.scopes(),
            resource: ResourceRule::Defaulted,
        };
        Ok(request.check(&client, &rules, SystemTime::now()).map_err(|refusal| match refusal {
            AuthorizeRefusal::Page(error) => error.into(),
            AuthorizeRefusal::Redirect(redirect) => DoorStop::Redirect(redirect),
        }))
    }

    /// A new secret for the cookie of a browser of this machine.
    ///
    /// # Errors
    /// When the operating system gives no random bytes.
    pub fn visitor(&self) -> Result<Token, ControlError> {
        Ok(Token::generate().map_err(DoorFault::Randomness)?)
    }

    /// Has a request wait for a human. `browser` is a secret of the only browser that may answer;
    /// without one, the first browser that shows the page. Returns the token of the page.
    ///
    /// # Errors
    /// When too many requests wait, or the store fails.
    pub async fn wait(
        &self,
        pending: &PendingConsent,
        browser: Option<&str>,
    ) -> Result<Token, ControlError> {
        let store = self.store.door();
        if !has_room(store.requests().await.map_err(ControlError::Store)?, browser) {
            return Err(DoorFault::Full.into());
        }
        let token = Token::generate().map_err(DoorFault::Randomness)?;
        let row = DoorRequestRow {
            browser: browser.map(browser_hash).unwrap_or_default(),
            document: text_of(pending),
        };
        let (hash, expires_at) = (token.hash(), SystemTime::now() + PENDING_LIFE);
        let begun = store.begin_request(hash.as_str(), &row, expires_at).await;
        begun.map_err(ControlError::Store)?;
        Ok(token)
    }

    /// The request of a page, which this browser may answer from now on.
    ///
    /// # Errors
    /// When the request is answered, too old, or another browser's; when a human has to sign in
    /// first, or the store fails.
    pub async fn waiting(
        &self,
        token: &str,
        browser: DoorBrowser<'_>,
    ) -> Result<PendingConsent, ControlError> {
        let (hash, secret) = (TokenHash::of(token), browser_hash(browser.secret()));
        let store = self.store.door();
        let find = async || {
            let found = store.request(hash.as_str()).await.map_err(ControlError::Store)?;
            found.ok_or_else(|| ControlError::from(DoorFault::Gone))
        };
        let mut row = find().await?;
        let pending: PendingConsent = read(&row.document)?;
        if !browser.may_answer(&pending) {
            return Err(DoorFault::Gone.into());
        }
        if row.browser.is_empty() {
            let bound = store.bind_request(hash.as_str(), &secret).await;
            bound.map_err(ControlError::Store)?;
            row = find().await?;
        }
        if row.browser != secret {
            return Err(DoorFault::Gone.into());
        }
        Ok(pending)
    }

    /// Takes the request of a page, so that it is answered once.
    ///
    /// # Errors
    /// The errors of [`Self::waiting`].
    pub async fn take(
        &self,
        token: &str,
        browser: DoorBrowser<'_>,
    ) -> Result<PendingConsent, ControlError> {
        let pending = self.waiting(token, browser).await?;
        let store = self.store.door();
        let hash = TokenHash::of(token);
        let taken = store.take_request(hash.as_str(), &browser_hash(browser.secret())).await;
        match taken.map_err(ControlError::Store)? {
            true => Ok(pending),
            false => Err(DoorFault::Gone.into()),
        }
    }

    /// Denies a request that was taken.
    #[must_use]
    pub fn deny(&self, pending: PendingConsent) -> Redirect {
        pending.deny(self.server.door())
    }

    /// The client whose consent answers a request of this human without a page. The human must
    /// still be one who may let it act.
    #[must_use]
    pub fn remembered(
        &self,
        human: &DoorHuman,
        pending: &PendingConsent,
    ) -> Option<Arc<KnownClient>> {
        let known = self.connected(|_, consent| consent.replaces_page(&human.id, pending))?;
        self.may_choose(human, &DoorChoice::of(&known)).is_ok().then_some(known)
    }

    /// The client that the human has let act in the same way before.
    #[must_use]
    pub fn connection(
        &self,
        human: &PrincipalId,
        pending: &PendingConsent,
        choice: &DoorChoice,
    ) -> Option<Arc<KnownClient>> {
        let place = pending.redirect_uri.place();
        self.connected(|client, consent| {
            consent.user == *human
                && consent.client_id == pending.client_id
                && consent.place == place
                && consent.resource == pending.resource
                && choice.is_of(client)
        })
    }

    fn connected(
        &self,
        is_it: impl Fn(&KnownClient, &Consent) -> bool,
    ) -> Option<Arc<KnownClient>> {
        let (table, now) = (self.control.access(), SystemTime::now());
        let mut live = table.clients.values().filter(|client| client.is_live(now));
        let found = live.find(|client| {
            client.connection.as_ref().is_some_and(|one| is_it(client, &one.consent))
        });
        found.cloned()
    }

    /// Checks that a human may let a client act in this way.
    ///
    /// # Errors
    /// When the human may not, or there is no such human.
    pub fn may_choose(&self, human: &DoorHuman, choice: &DoorChoice) -> Result<(), ControlError> {
        let workspace = choice.workspace.clone();
        let denied = || ControlError::from(DoorFault::NotAllowed { workspace });
        if human.id == PrincipalId::local_admin() {
            return match self.server.has_local_click() {
                true => Ok(()),
                false => Err(denied()),
            };
        }
        let account = self.control.principal(human.id.as_str())?;
        let is_agent = matches!(choice.sees, Sees::Agent(_));
        match account.may_connect(is_agent.then_some(&choice.workspace)) {
            true => Ok(()),
            false => Err(denied()),
        }
    }

    /// Approves a request for a client that the human has let act before.
    ///
    /// # Errors
    /// When the request is too old, or the store fails.
    pub async fn approve_again(
        &self,
        pending: PendingConsent,
        human: &DoorHuman,
        client: &KnownClient,
    ) -> Result<Redirect, ControlError> {
        let row = &client.row;
        let approved = self.approved(pending, human, &row.workspace, row.agent.clone())?;
        let known = client.connection.as_ref().map(|connection| &connection.consent);
        if known.is_none_or(|known| known.scopes != approved.consent.scopes) {
            self.renew_consent(&row.id, &approved.consent).await?;
        }
        self.give_code(approved, &row.id).await
    }

    /// Approves a request for a new client.
    ///
    /// # Errors
    /// When the human may not let a client act there, the request is too old, there are too many
    /// clients, or the store fails.
    pub async fn approve(
        &self,
        pending: PendingConsent,
        human: &DoorHuman,
        new: NewConnection,
    ) -> Result<Redirect, ControlError> {
        let choice = DoorChoice { workspace: new.workspace.clone(), sees: new.sees.clone() };
        self.may_choose(human, &choice)?;
        if !choice.fits(&pending.resource) {
            return Err(DoorFault::Unfit.into());
        }
        let agent = choice.sees.agent().cloned();
        let approved = self.approved(pending, human, &choice.workspace, agent)?;
        let known = self.connect(new, &approved.consent, &human.by).await?;
        self.give_code(approved, &known.row.id).await
    }

    fn approved(
        &self,
        pending: PendingConsent,
        human: &DoorHuman,
        workspace: &WorkspaceId,
        agent: Option<AgentName>,
    ) -> Result<Approved, ControlError> {
        let (user, workspace) = (human.id.clone(), workspace.as_str().to_owned());
        let approval = Approval { user, workspace, agent };
        let approved = pending.approve(approval, self.server.door(), SystemTime::now());
        Ok(approved.map_err(DoorFault::Refused)?)
    }

    /// Stores the code of an approval, and returns the way back to the client.
    async fn give_code(
        &self,
        approved: Approved,
        connection: &McpClientId,
    ) -> Result<Redirect, ControlError> {
        let Approved { code, redirect, .. } = approved;
        let row = DoorCodeRow { connection: connection.clone(), document: text_of(&code) };
        let forget_at = SystemTime::now() + USED_CODE_LIFE;
        let stored = self.store.door_tokens();
        let stored = stored.put_code(code.hash.as_str(), &row, forget_at).await;
        stored.map_err(ControlError::Store)?;
        Ok(redirect)
    }
}

impl DoorChoice {
    /// True if the endpoint of a resource leads to these servers. Its path may name a workspace,
    /// and a profile, whose names of tools differ from those of the servers.
    #[must_use]
    pub fn fits(&self, resource: &Resource) -> bool {
        let Some(path) = resource.path() else { return false };
        let is_there = path.workspace().is_none_or(|named| named == self.workspace.as_str());
        is_there
            && match (&self.sees, path.profile()) {
                (Sees::Profile(own), Some(named)) => own.as_str() == named,
                (Sees::Profile(_), None) => path.is_for_all(),
                (Sees::Live | Sees::Agent(_), named) => named.is_none(),
            }
    }

    /// True if this is the choice of a registered client.
    pub(super) fn is_of(&self, client: &KnownClient) -> bool {
        Self::of(client) == *self
    }

    /// The choice of a registered client.
    #[must_use]
    pub fn of(client: &KnownClient) -> Self {
        let row = &client.row;
        let sees = match (&row.agent, &row.profile) {
            (Some(agent), _) => Sees::Agent(agent.clone()),
            (None, Some(profile)) => Sees::Profile(profile.clone()),
            (None, None) => Sees::Live,
        };
        Self { workspace: row.workspace.clone(), sees }
    }
}

/// True if one more request of this browser can wait. Strangers leave the half of the room to
/// browsers that are known.
fn has_room(waiting: usize, browser: Option<&str>) -> bool {
    let most = if browser.is_some() { 2 * WAITING_MAX } else { WAITING_MAX };
    waiting < most
}

/// The stored form of a browser's secret.
fn browser_hash(secret: &str) -> String {
    TokenHash::for_purpose("consent of a client", secret).as_str().to_owned()
}

#[cfg(test)]
mod tests {
    use narthex_model::ProfileName;
    use narthex_oauth::server::{Door, DoorPath};

    use super::*;

    #[test]
    fn door_r2_a_choice_fits_the_endpoints_that_lead_to_it() {
        let door = Door::new("https://narthex.example").unwrap();
        let fits = |sees: &Sees, path: &str| {
            let choice = DoorChoice { workspace: WorkspaceId::default(), sees: sees.clone() };
            choice.fits(&door.resource(&DoorPath::parse(path).unwrap()))
        };
        let agent = Sees::Agent(AgentName::new("reader").unwrap());
        let profile = Sees::Profile(ProfileName::new("work").unwrap());
        for path in ["/mcp", "/mcp/git", "/mcp/w/default", "/mcp/w/default/git"] {
            assert!(fits(&Sees::Live, path) && fits(&agent, path), "{path}");
        }
        for path in ["/mcp", "/mcp/p/work", "/mcp/w/default", "/mcp/w/default/p/work"] {
            assert!(fits(&profile, path), "{path}");
        }
        for path in ["/mcp/p/work", "/mcp/w/other", "/mcp/w/other/git", "/mcp/w/default/p/work"] {
            assert!(!fits(&Sees::Live, path) && !fits(&agent, path), "{path}");
        }
        for path in ["/mcp/git", "/mcp/p/home", "/mcp/w/other", "/mcp/w/other/p/work"] {
            assert!(!fits(&profile, path), "{path}");
        }
    }

    #[test]
    fn s31_requests_of_strangers_take_no_room_from_humans() {
        assert!(has_room(WAITING_MAX - 1, None));
        assert!(!has_room(WAITING_MAX, None));
        assert!(has_room(WAITING_MAX, Some("session")));
        assert!(!has_room(2 * WAITING_MAX, Some("session")));
    }
}
