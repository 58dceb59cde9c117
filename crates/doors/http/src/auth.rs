//! Identifies the caller of a request by its credentials, and answers questions about the caller's
//! rights.

use std::{fmt, sync::Arc};

use http::{HeaderMap, header, request::Parts};
use narthex_control::{
    AccessError, Account, Actor, ActorKind, Control, DoorAccess, DoorDesk, DoorForeign,
    KnownClient, KnownToken, SignedIn,
};
use narthex_gateway::{Gateway, Holder, RunToken, RunView};
use narthex_model::{ErrorKind, PrincipalId, Reader, Role, WorkspaceId};
use narthex_oauth::server::{DoorPath, Refusal};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::listener::single;
use crate::{
    Access,
    problem::Problem,
    routes::AUTHOR,
    signin::{check_cookie_request, session_cookie},
};

/// The SHA-256 hash of a token. The token itself is not stored.
#[derive(Clone, Copy)]
pub struct TokenHash([u8; 32]);

impl TokenHash {
    /// Hashes this token.
    #[must_use]
    pub fn of(token: &str) -> Self {
        Self(Sha256::digest(token).into())
    }

    fn opens_for(&self, token: &str) -> bool {
        self.0.ct_eq(&Self::of(token).0).into()
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash")
    }
}

/// The principal that sent the request.
#[derive(Debug, Clone)]
pub(crate) enum Principal {
    /// The holder of a run's token, which acts for that run.
    Run(Arc<RunView>),
    /// A service, identified by its own token.
    Known(Arc<KnownToken>),
    /// A human who has signed in, and the method of the sign-in.
    Human(SignedIn),
    /// A caller that sent the admin token, which is in a local file. The token proves no human
    /// (D15).
    LocalAdmin,
}

/// The caller of a request.
#[derive(Debug)]
pub(crate) enum Caller {
    /// A principal. The kind of the principal limits the routes that it may use.
    Principal(Principal),
    /// A registered MCP client, which can reach only the endpoints of its run.
    Client(Arc<KnownClient>),
    /// A client with an access token of the door, which opens one endpoint.
    Delegated(DoorAccess),
    /// A client with an access token of an issuer of the company, or the refusal of the token, at
    /// this endpoint.
    Foreign(DoorPath, Result<Arc<DoorForeign>, Refusal>),
}

/// The credential that a request carries.
#[derive(Debug, Clone, Copy)]
enum Credential<'r> {
    /// A token in the header `Authorization`.
    Bearer(&'r str),
    /// The session token in a browser's cookie.
    Cookie(&'r str),
}

/// The parts of the daemon that know valid credentials.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Proofs<'d> {
    pub(crate) gateway: &'d Gateway,
    pub(crate) control: Option<&'d Control>,
    pub(crate) admin: Option<&'d TokenHash>,
}

/// Identifies the caller. Returns `None` if the request has no credentials, or credentials that
/// prove no identity. No other function identifies callers. It reads only memory, except for the
/// token of a run, of the door or of an issuer that this process has not loaded yet.
///
/// `endpoint` is the MCP endpoint of the request's path: tokens of issuers open no other route.
pub(crate) async fn authenticate(
    proofs: Proofs<'_>,
    endpoint: impl FnOnce() -> Option<DoorPath>,
    parts: &Parts,
) -> Result<Option<Caller>, Problem> {
    let Some(credential) = Credential::of(proofs, &parts.headers) else { return Ok(None) };
    match credential {
        Credential::Bearer(token) => of_token(proofs, token, endpoint).await,
        Credential::Cookie(token) => Ok(of_cookie(proofs, token, parts)?.map(Caller::Principal)),
    }
}

/// True if the request carries the token of a run that has ended.
pub(crate) fn is_of_ended_run(proofs: Proofs<'_>, parts: &Parts) -> bool {
    let credential = Credential::of(proofs, &parts.headers);
    matches!(credential, Some(Credential::Bearer(token)) if proofs.gateway.runs().has_ended(token))
}

fn of_cookie(proofs: Proofs<'_>, token: &str, parts: &Parts) -> Result<Option<Principal>, Problem> {
    let Some(control) = proofs.control else { return Ok(None) };
    let signed_in = control.signed_in(token);
    let signed_in = signed_in.map_err(|error| Problem::new(error.kind(), error.to_string()))?;
    let Some(signed_in) = signed_in else { return Ok(None) };
    check_cookie_request(control, token, parts)?;
    Ok(Some(Principal::Human(signed_in)))
}

async fn of_token(
    proofs: Proofs<'_>,
    token: &str,
    endpoint: impl FnOnce() -> Option<DoorPath>,
) -> Result<Option<Caller>, Problem> {
    let known = |principal| Ok(Some(Caller::Principal(principal)));
    let Proofs { gateway, control, admin } = proofs;
    if let Some(run) = gateway.runs().identify(token) {
        return known(Principal::Run(run));
    }
    if admin.is_some_and(|admin| admin.opens_for(token)) {
        return known(Principal::LocalAdmin);
    }
    if RunToken::parse(token).is_some() {
        // Boxed: this rare path must not enlarge the future of every call.
        let found = Box::pin(gateway.find_run(token)).await;
        return Ok(found.map(|run| Caller::Principal(Principal::Run(run))));
    }
    let Some(control) = control else { return Ok(None) };
    let problem = |error: AccessError| Problem::new(error.kind(), error.to_string());
    if let Some(token) = control.authenticate(token).map_err(problem)? {
        return known(Principal::Known(token));
    }
    if let Some(client) = control.authenticate_client(token).map_err(problem)? {
        return Ok(Some(Caller::Client(client)));
    }
    let Some(desk) = DoorDesk::of(control) else { return Ok(None) };
    // Boxed: reading the store must not enlarge the future of every call.
    if let Some(access) = Box::pin(desk.access(token)).await? {
        return Ok(Some(Caller::Delegated(access)));
    }
    // Tokens of others open MCP endpoints alone.
    let Some(path) = endpoint() else { return Ok(None) };
    let resource = desk.server().door().resource(&path);
    let foreign = Box::pin(desk.foreign(token, resource)).await?;
    Ok(foreign.map(|found| Caller::Foreign(path, found)))
}

impl<'r> Credential<'r> {
    /// A caller that sends an `Authorization` header is judged by that header alone: a valid cookie
    /// does not make up for an invalid token.
    fn of(proofs: Proofs<'_>, headers: &'r HeaderMap) -> Option<Self> {
        let Some(authorization) = single(headers, &header::AUTHORIZATION)? else {
            let is_https = proofs.control?.sign_in_origin()?.is_https();
            return session_cookie(headers, is_https).map(Self::Cookie);
        };
        let (scheme, token) = authorization.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| Self::Bearer(token.trim_matches(' ')))
    }
}

impl Principal {
    /// The principal as an actor, for the audit and for rows that it changes.
    pub(crate) fn actor(&self) -> Actor<'static> {
        match self {
            Self::Run(run) => Actor::new(ActorKind::Run, run.id.to_text()),
            Self::Known(token) => token.account.actor(),
            Self::Human(signed_in) => signed_in.account.actor(),
            Self::LocalAdmin => Actor::new(ActorKind::LocalAdmin, PrincipalId::LOCAL_ADMIN_NAME),
        }
    }

    /// The holder under which the principal's requests take places in shared limits.
    pub(crate) fn holder(&self) -> Holder {
        match self {
            Self::Run(run) => Holder::Run(run.id),
            Self::Known(token) => Holder::Principal(token.account.id.clone()),
            Self::Human(signed_in) => Holder::Principal(signed_in.account.id.clone()),
            Self::LocalAdmin => Holder::Principal(PrincipalId::local_admin()),
        }
    }

    /// True if a model may read the answers: an agent reads what its run's token gets.
    pub(crate) fn is_model(&self) -> bool {
        matches!(self, Self::Run(_))
    }

    /// The reader for whom failures of servers are worded.
    pub(crate) fn reader(&self) -> Reader {
        if self.is_model() { Reader::Run } else { Reader::Operator }
    }

    /// True if the principal may use every route in every workspace.
    pub(crate) fn is_operator(&self) -> bool {
        match self {
            Self::Run(_) => false,
            Self::Known(token) => token.account.is_operator,
            Self::Human(signed_in) => signed_in.account.is_operator,
            Self::LocalAdmin => true,
        }
    }

    /// True for an operator, and for a principal with one of these roles in a workspace.
    pub(crate) fn has_any(&self, workspace: &WorkspaceId, roles: &[Role]) -> bool {
        let has = |account: &Account| {
            let own = account.roles.get(workspace);
            own.is_some_and(|own| roles.iter().any(|role| own.contains(role)))
        };
        self.is_operator() || self.account().is_some_and(has)
    }

    /// The account of a principal that has one.
    pub(crate) fn account(&self) -> Option<&Account> {
        match self {
            Self::Run(_) | Self::LocalAdmin => None,
            Self::Known(token) => Some(&token.account),
            Self::Human(signed_in) => Some(&signed_in.account),
        }
    }

    /// The human whose grants count in the runs that this principal creates. That is the signed-in
    /// human, or the local admin for the holder of the admin token.
    pub(crate) fn human(&self) -> Option<PrincipalId> {
        match self {
            Self::Run(_) | Self::Known(_) => None,
            Self::Human(signed_in) => Some(signed_in.account.id.clone()),
            Self::LocalAdmin => Some(PrincipalId::local_admin()),
        }
    }

    /// The reason why this principal cannot decide grants (D15); `None` if the principal may be a
    /// human.
    pub(crate) fn no_human(&self) -> Option<&'static str> {
        match self {
            Self::Run(_) => Some("this is the token of a run, which can only request a grant"),
            Self::Known(_) => Some("this is the token of a service"),
            Self::Human(_) | Self::LocalAdmin => None,
        }
    }

    /// True if a passkey or a provider has proved that the principal is a human (D15). A token file
    /// proves no human, and neither does a token or link that was made with one.
    pub(crate) fn is_authenticated_human(&self) -> bool {
        matches!(self, Self::Human(signed_in) if signed_in.method.is_authenticated())
    }

    /// True if this principal may act for humans where the daemon requires proof of a human. That
    /// holds for a human who signed in with proof, and for a service whose token such a human made.
    /// Without the second check, the holder of the admin token could make a service token that acts
    /// for all humans.
    pub(crate) fn is_proved(&self) -> bool {
        match self {
            Self::Known(token) => token.row.is_proved,
            Self::Run(_) | Self::Human(_) | Self::LocalAdmin => self.is_authenticated_human(),
        }
    }

    /// True if humans must prove that they are human, and this principal has not (D15).
    pub(crate) fn is_unproved(&self, control: Option<&Control>) -> bool {
        control.is_some_and(Control::needs_proof) && !self.is_proved()
    }

    /// True if the principal may read the servers, capabilities and agents of a workspace.
    pub(crate) fn may_read_catalog(&self, workspace: &WorkspaceId) -> bool {
        self.has_any(workspace, AUTHOR)
    }

    /// True if the principal may know that a workspace exists.
    pub(crate) fn may_see(&self, workspace: &WorkspaceId) -> bool {
        self.has_any(workspace, &Role::ALL)
    }
}

/// The refusal of a token at MCP endpoints.
pub(crate) const NO_CLIENT: &str = "this token does not open MCP endpoints or files; send the \
                                    token of a run or of a registered client";

/// Admits a principal to a route of the API, or refuses it. No other function decides this. If the
/// path names a workspace that the principal may not know, the answer is the same as for a
/// workspace that does not exist (D5).
pub(crate) fn authorize(
    access: Access,
    principal: &Principal,
    workspace: impl FnOnce() -> Result<WorkspaceId, Problem>,
) -> Result<(), Problem> {
    let denied = |text: String| Err(Problem::new(ErrorKind::Denied, text));
    match (access, principal) {
        (Access::Open | Access::Shared, Principal::Run(_)) => Ok(()),
        (Access::Whole, Principal::Run(run)) if run.is_plain() => Ok(()),
        (Access::Starter(_) | Access::OwnRun, Principal::Run(run)) => {
            let workspace = workspace()?;
            match workspace == run.workspace {
                true => Ok(()),
                false => Err(Problem::no_workspace(workspace)),
            }
        }
        (_, Principal::Run(_)) => {
            // A model reads this text: it names no other token, and does not suggest leaving this
            // token out (D28).
            denied("the token of a run does not permit this request".to_owned())
        }
        (Access::Member(roles) | Access::Starter(roles), principal) => {
            if principal.is_operator() {
                return Ok(());
            }
            let workspace = workspace()?;
            if !principal.may_see(&workspace) {
                return Err(Problem::no_workspace(workspace));
            }
            if principal.has_any(&workspace, roles) {
                return Ok(());
            }
            let needed: Vec<_> = roles.iter().map(|role| role.as_str()).collect();
            let needed = needed.join(" or ");
            let needs = format!("this needs the role {needed} in the workspace `{workspace}`");
            denied(format!("{needs}; ask one of its admins for it"))
        }
        (Access::Shared | Access::Whole | Access::Operator, principal)
            if !principal.is_operator() =>
        {
            denied("only an operator may do this; ask an operator".to_owned())
        }
        (Access::Open | Access::Own(_) | Access::Known, _) => Ok(()),
        (Access::Shared | Access::Whole | Access::Operator, _) => Ok(()),
        (Access::OwnRun, _) => {
            denied("this needs the token of the run itself; send that token".to_owned())
        }
        (Access::Client, _) => denied(NO_CLIENT.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S6: a token of the wrong kind is refused with the kind that the route takes.
    #[test]
    fn s6_a_refused_token_is_told_which_token_opens_the_route() {
        let nowhere = || Err(Problem::new(ErrorKind::NotFound, "nothing is here"));
        let refused = |access| authorize(access, &Principal::LocalAdmin, nowhere).unwrap_err();
        for (access, remedy) in [
            (Access::Client, "send the token of a run or of a registered client"),
            (Access::OwnRun, "send that token"),
        ] {
            let problem = refused(access);
            assert_eq!(problem.kind(), ErrorKind::Denied);
            assert!(problem.detail().ends_with(&format!("; {remedy}")), "{}", problem.detail());
        }
    }
}
