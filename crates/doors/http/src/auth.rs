//! The caller of a request, found by its credentials, and the caller's rights.

use std::{fmt, sync::Arc};

use http::{HeaderMap, header, request::Parts};
use narthex_control::{
    AccessError, Account, Actor, ActorKind, Control, KnownClient, KnownToken, SignedIn,
};
use narthex_gateway::{Gateway, Holder, RunToken, RunView};
use narthex_model::{ErrorKind, PrincipalId, Reader, Role, WorkspaceId};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::listener::single;
use crate::{
    Access,
    problem::Problem,
    routes::AUTHOR,
    signin::{check_cookie_request, session_cookie},
};

/// The hash of a token, which is all that is kept of it.
#[derive(Clone, Copy)]
pub struct TokenHash([u8; 32]);

impl TokenHash {
    /// The hash of this token.
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

/// The principal that has asked.
#[derive(Debug, Clone)]
pub(crate) enum Principal {
    /// A client, which acts for a run.
    Run(Arc<RunView>),
    /// A service, by a token of its own.
    Known(Arc<KnownToken>),
    /// A human who has signed in, and how.
    Human(SignedIn),
    /// A caller that can read the file of the admin token. The token proves no human (D15).
    LocalAdmin,
}

/// The caller at the door.
#[derive(Debug)]
pub(crate) enum Caller {
    /// A principal, who may ask for what its kind may ask for.
    Principal(Principal),
    /// A registered MCP client, which gets nowhere but to the endpoints of its run.
    Client(Arc<KnownClient>),
}

/// The credential that a request carries.
#[derive(Debug, Clone, Copy)]
enum Credential<'r> {
    /// A token in the header `Authorization`.
    Bearer(&'r str),
    /// The session of a browser.
    Cookie(&'r str),
}

/// The parts that a caller's credential is checked against.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Proofs<'d> {
    pub(crate) gateway: &'d Gateway,
    pub(crate) control: Option<&'d Control>,
    pub(crate) admin: Option<&'d TokenHash>,
}

/// Finds out who calls; `None` without credentials, or with some that prove nothing. The one place
/// where that is decided; it asks nothing but memory, but for a run of which it has not heard yet.
pub(crate) async fn authenticate(
    proofs: Proofs<'_>,
    parts: &Parts,
) -> Result<Option<Caller>, Problem> {
    let Some(credential) = Credential::of(proofs, &parts.headers) else { return Ok(None) };
    match credential {
        Credential::Bearer(token) => of_token(proofs, token).await,
        Credential::Cookie(token) => Ok(of_cookie(proofs, token, parts)?.map(Caller::Principal)),
    }
}

/// True if the request shows the token of a run that has ended.
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

async fn of_token(proofs: Proofs<'_>, token: &str) -> Result<Option<Caller>, Problem> {
    let known = |principal| Ok(Some(Caller::Principal(principal)));
    let Proofs { gateway, control, admin } = proofs;
    if let Some(run) = gateway.runs().identify(token) {
        return known(Principal::Run(run));
    }
    if admin.is_some_and(|admin| admin.opens_for(token)) {
        return known(Principal::LocalAdmin);
    }
    if RunToken::parse(token).is_some() {
        // Boxed, as it is rare, so that calls stay small.
        let found = Box::pin(gateway.find_run(token)).await;
        return Ok(found.map(|run| Caller::Principal(Principal::Run(run))));
    }
    let Some(control) = control else { return Ok(None) };
    let problem = |error: AccessError| Problem::new(error.kind(), error.to_string());
    if let Some(token) = control.authenticate(token).map_err(problem)? {
        return known(Principal::Known(token));
    }
    Ok(control.authenticate_client(token).map_err(problem)?.map(Caller::Client))
}

impl<'r> Credential<'r> {
    /// A caller that sends a token means the token: its failure is not made good by a cookie.
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
    /// The principal as an actor, in the audit and in rows that they change.
    pub(crate) fn actor(&self) -> Actor<'static> {
        match self {
            Self::Run(run) => Actor::new(ActorKind::Run, run.id.to_text()),
            Self::Known(token) => token.account.actor(),
            Self::Human(signed_in) => signed_in.account.actor(),
            Self::LocalAdmin => Actor::new(ActorKind::LocalAdmin, PrincipalId::LOCAL_ADMIN_NAME),
        }
    }

    /// The holder of the places that the caller takes.
    pub(crate) fn holder(&self) -> Holder {
        match self {
            Self::Run(run) => Holder::Run(run.id),
            Self::Known(token) => Holder::Principal(token.account.id.clone()),
            Self::Human(signed_in) => Holder::Principal(signed_in.account.id.clone()),
            Self::LocalAdmin => Holder::Principal(PrincipalId::local_admin()),
        }
    }

    /// True if a model may read the answers: the token of a run is its agent's.
    pub(crate) fn is_model(&self) -> bool {
        matches!(self, Self::Run(_))
    }

    /// The reader of failures of servers.
    pub(crate) fn reader(&self) -> Reader {
        if self.is_model() { Reader::Run } else { Reader::Operator }
    }

    /// True if the principal may do everything in all workspaces.
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

    /// The human whose grants count in the runs that this principal creates: a human's own. The
    /// holder of the operator's token counts as the human at this machine.
    pub(crate) fn human(&self) -> Option<PrincipalId> {
        match self {
            Self::Run(_) | Self::Known(_) => None,
            Self::Human(signed_in) => Some(signed_in.account.id.clone()),
            Self::LocalAdmin => Some(PrincipalId::local_admin()),
        }
    }

    /// The reason why this principal cannot decide for people (D15); `None` for a human.
    pub(crate) fn no_human(&self) -> Option<&'static str> {
        match self {
            Self::Run(_) => Some("this is the token of a run, which can only request a grant"),
            Self::Known(_) => Some("this is the token of a service"),
            Self::Human(_) | Self::LocalAdmin => None,
        }
    }

    /// True if a human is proved to be here (D15): by a passkey or a provider. A file, and a token
    /// or link made with one, proves none.
    pub(crate) fn is_authenticated_human(&self) -> bool {
        matches!(self, Self::Human(signed_in) if signed_in.method.is_authenticated())
    }

    /// True if this principal is believed about humans where humans have to prove themselves. A
    /// human who did is believed, and so is a service by a token that such a human made. Otherwise
    /// the holder of the admin token would make another token that speaks for all humans.
    pub(crate) fn is_proved(&self) -> bool {
        match self {
            Self::Known(token) => token.row.is_proved,
            Self::Run(_) | Self::Human(_) | Self::LocalAdmin => self.is_authenticated_human(),
        }
    }

    /// True if the principal may read which servers, capabilities and agents a workspace has.
    pub(crate) fn may_read_catalog(&self, workspace: &WorkspaceId) -> bool {
        self.has_any(workspace, AUTHOR)
    }

    /// True if the principal may know that a workspace is there.
    pub(crate) fn may_see(&self, workspace: &WorkspaceId) -> bool {
        self.has_any(workspace, &Role::ALL)
    }
}

/// Admits a principal at a route of the API, or refuses: the one place where that is decided. A
/// workspace in the path that the principal may not know of is as absent as one that never was
/// (D5).
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
            // A model reads it: it names no other token, and no way to leave this one out (D28).
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
        (Access::Client, _) => denied("this token does not open MCP endpoints".to_owned()),
    }
}
