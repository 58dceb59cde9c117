//! Who calls, from the credentials of a request, and what they may.

use std::{fmt, sync::Arc};

use http::{HeaderMap, header};
use narthex_control::{Account, Control};
use narthex_gateway::{Gateway, RunView};
use narthex_model::{ErrorKind, Role, WorkspaceId};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::{Access, guard::single, problem::Problem};

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

/// Who has asked.
#[derive(Debug, Clone)]
pub(crate) enum Principal {
    /// A client, which acts for a run.
    Run(Arc<RunView>),
    /// A human or a service with a name.
    Known(Arc<Account>),
    /// Whoever can read the file of the admin token. It proves no human (D15).
    LocalAdmin,
}

/// What a request brings along to say who asks.
#[derive(Debug, Clone, Copy)]
enum Credential<'r> {
    /// A token in the header `Authorization`.
    Bearer(&'r str),
}

/// What proves who somebody is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Proofs<'d> {
    pub(crate) gateway: &'d Gateway,
    pub(crate) control: Option<&'d Control>,
    pub(crate) admin: Option<&'d TokenHash>,
}

/// Finds out who calls; `None` without credentials, or with some that prove nothing. The one place
/// where that is decided; it asks nothing but memory.
pub(crate) fn authenticate(
    proofs: Proofs<'_>,
    headers: &HeaderMap,
) -> Result<Option<Principal>, Problem> {
    let Some(credential) = Credential::of(headers) else { return Ok(None) };
    match credential {
        Credential::Bearer(token) => of_token(proofs, token),
    }
}

fn of_token(proofs: Proofs<'_>, token: &str) -> Result<Option<Principal>, Problem> {
    let Proofs { gateway, control, admin } = proofs;
    if let Some(run) = gateway.runs().identify(token) {
        return Ok(Some(Principal::Run(run)));
    }
    if admin.is_some_and(|admin| admin.opens_for(token)) {
        return Ok(Some(Principal::LocalAdmin));
    }
    let Some(control) = control else { return Ok(None) };
    let account = control.authenticate(token);
    let account = account.map_err(|error| Problem::new(error.kind(), error.to_string()))?;
    Ok(account.map(Principal::Known))
}

impl<'r> Credential<'r> {
    fn of(headers: &'r HeaderMap) -> Option<Self> {
        let (scheme, token) = single(headers, &header::AUTHORIZATION)??.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| Self::Bearer(token.trim_matches(' ')))
    }
}

impl Principal {
    /// What stands in rows that they change.
    pub(crate) fn name(&self) -> &str {
        match self {
            // They change nothing that remembers who did.
            Self::Run(_) => "run",
            Self::Known(account) => account.name.as_str(),
            Self::LocalAdmin => "admin",
        }
    }

    /// Whether they may do everything in all workspaces.
    pub(crate) fn is_operator(&self) -> bool {
        match self {
            Self::Run(_) => false,
            Self::Known(account) => account.is_operator,
            Self::LocalAdmin => true,
        }
    }

    /// Whether they are an operator, or have one of these roles in a workspace.
    pub(crate) fn has_any(&self, workspace: &WorkspaceId, roles: &[Role]) -> bool {
        let has = |account: &Account| {
            let own = account.roles.get(workspace);
            own.is_some_and(|own| roles.iter().any(|role| own.contains(role)))
        };
        self.is_operator() || matches!(self, Self::Known(account) if has(account))
    }

    /// Whether they may know that a workspace is there.
    pub(crate) fn may_see(&self, workspace: &WorkspaceId) -> bool {
        self.has_any(workspace, &Role::ALL)
    }
}

/// Whether somebody may come in at a route of the API: the one place where that is decided. A
/// workspace in the path that they may not know of is as absent as one that never was (D5).
pub(crate) fn authorize(
    access: Access,
    principal: &Principal,
    workspace: impl FnOnce() -> Result<WorkspaceId, Problem>,
) -> Result<(), Problem> {
    let denied = |text: String| Err(Problem::new(ErrorKind::Denied, text));
    match (access, principal) {
        (Access::Open | Access::Shared, Principal::Run(_)) => Ok(()),
        (_, Principal::Run(_)) => {
            denied("this needs the operator's token; a client's shows servers only".to_owned())
        }
        (Access::Member(roles), principal) => {
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
            denied(format!("this needs the role {needed} in the workspace `{workspace}`"))
        }
        (Access::Shared | Access::Operator, principal) if !principal.is_operator() => {
            denied("this needs an operator".to_owned())
        }
        (Access::Open | Access::Shared | Access::Operator | Access::Known, _) => Ok(()),
        (Access::Client, _) => denied("no MCP endpoint opens for this".to_owned()),
    }
}
