//! Connections of humans to servers of the catalog: lists, begins and ends them (X-E49).

use http::StatusCode;
use narthex_control::{Connecting, ServerSignInError, UserConnection};
use narthex_model::{PrincipalId, Role, WorkspaceId};

use super::{Answered, Asked, ok, once::ToldOnce, sign_ins::at_page};
use crate::{
    auth::Principal,
    problem::Problem,
    respond,
    routes::{AUTHOR, ConnectionTarget},
    rows,
    shapes::McpToken,
};

/// The name of the caller in paths.
const ME: &str = "me";

impl Asked<'_> {
    pub(super) async fn of_connections(&self, of: ConnectionTarget) -> Answered {
        match of {
            ConnectionTarget::Mine => self.my_connections().await,
            ConnectionTarget::All => self.user_connections().await,
            ConnectionTarget::One => self.disconnect().await,
            ConnectionTarget::Connect => self.connect().await,
        }
    }

    async fn my_connections(&self) -> Answered {
        self.query(&["after", "limit"])?;
        let (control, me) = (self.control()?, self.me_as_human()?);
        let mut all = Vec::new();
        for workspace in control.workspaces()? {
            if self.principal.may_see(&workspace.id) {
                let sees_all = self.principal.has_any(&workspace.id, AUTHOR);
                all.extend(control.connections(&workspace.id, &me, sees_all).await?);
            }
        }
        let key = |one: UserConnection| (format!("{}/{}", one.workspace, one.server), one);
        let all: Vec<_> = all.into_iter().map(key).collect();
        self.page(all, |(key, _)| key, |(_, one)| self.shown(one))
    }

    async fn user_connections(&self) -> Answered {
        self.query(&["after", "limit"])?;
        let (workspace, control) = (self.workspace()?, self.control()?);
        let user = self.user_of_path(&workspace)?;
        let sees_all = self.principal.has_any(&workspace, AUTHOR);
        let all = control.connections(&workspace, &user, sees_all).await?;
        self.page(all, |one| one.server.as_str(), |one| self.shown(one))
    }

    /// Starts the sign-in of the caller, which only the caller's own browser can finish.
    async fn connect(&self) -> Answered {
        self.query(&[])?;
        let (workspace, control) = (self.workspace()?, self.control()?);
        let user = self.me_as_human()?;
        if self.user_of_path(&workspace)? != user {
            return Err(no_human());
        }
        let session = match &self.principal {
            Principal::Human(signed_in) => Some(signed_in.session.clone()),
            Principal::Run(_) | Principal::Known(_) | Principal::LocalAdmin => None,
        };
        let sees_all = self.principal.has_any(&workspace, AUTHOR);
        let server = self.segment(2);
        let wanted = Connecting { workspace, server, user, session, sees_all };
        let mut response = ok(&at_page(&control.connect(wanted, &self.by()).await?));
        // The address is for the browser of the human alone.
        response.extensions_mut().insert(ToldOnce);
        Ok(response)
    }

    async fn disconnect(&self) -> Answered {
        self.query(&[])?;
        let (workspace, control) = (self.workspace()?, self.control()?);
        let user = self.user_of_path(&workspace)?;
        let sees_all = self.principal.has_any(&workspace, AUTHOR);
        let server = self.segment(2);
        control.disconnect(&workspace, &server, &user, sees_all, &self.by()).await?;
        Ok(respond::empty(StatusCode::NO_CONTENT))
    }

    /// The human of the path: the caller, or another one for an admin of the workspace.
    fn user_of_path(&self, workspace: &WorkspaceId) -> Result<PrincipalId, Problem> {
        let who = self.segment(1);
        if who == ME {
            return self.me_as_human();
        }
        if self.principal.human().is_some_and(|me| me.as_str() == who) {
            return self.me_as_human();
        }
        match self.principal.has_any(workspace, &[Role::Admin]) {
            true => Ok(self.control()?.driver(workspace, &who)?),
            false => Err(no_human()),
        }
    }

    fn me_as_human(&self) -> Result<PrincipalId, Problem> {
        self.principal.human().ok_or_else(no_human)
    }

    fn shown(&self, one: &UserConnection) -> McpToken {
        let UserConnection { workspace, server, name, is_connected, facts: of } = one;
        let control = self.door.options.control.as_ref();
        let page = control.and_then(|control| control.connection_page(workspace, server));
        McpToken {
            workspace: workspace.to_string(),
            server: server.clone(),
            display_name: name.clone(),
            connected: *is_connected,
            has_refresh_token: of.as_ref().is_some_and(|facts| facts.can_renew),
            sign_in: of.as_ref().and_then(rows::sign_in),
            page,
        }
    }
}

fn no_human() -> Problem {
    let error = ServerSignInError::NoHuman;
    Problem::new(error.kind(), error.to_string())
}
