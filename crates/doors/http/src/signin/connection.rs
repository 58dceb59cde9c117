//! The page on which a human connects their account to a server of the catalog, or ends the
//! connection (X-M14). The page does no more than the API.

use http::StatusCode;
use narthex_control::{Connecting, SignInBegun, UserConnection, connection_path};
use narthex_model::{ServerId, WorkspaceId};

use super::{
    Answered, Kept, Visitor,
    cookie::ONWARD,
    nothing,
    page::{escaped, html, put, safe},
    redirect,
};
use crate::{
    Access,
    auth::{Principal, authorize},
    body::RequestBody,
    problem::Problem,
    respond::Response,
    routes::{AUTHOR, EVERY},
    server_sign_in,
    shapes::{ConnectionForm, ConnectionVerb},
};

/// The place of connections in the cookie of the page to open after the sign-in.
pub(super) const KEPT: &str = "connections/";

impl Visitor<'_> {
    /// Shows the connection of the signed-in human. A browser that is not signed in returns to this
    /// page after the sign-in.
    pub(super) async fn connection(&self) -> Answered {
        let (workspace, server) = self.connection_place()?;
        let Some((token, signed_in)) = self.session()? else {
            let mut response =
                self.ways_in("You connect your account to a server after you sign in.");
            let onward = format!("{workspace}/{KEPT}{server}");
            self.jar().set(&mut response, Kept::Onward, &onward, ONWARD);
            return Ok(response);
        };
        let (user, who) = (signed_in.account.id.clone(), signed_in.account.name.to_string());
        let principal = Principal::Human(signed_in);
        authorize(Access::Member(EVERY), &principal, || Ok(workspace.clone()))?;
        let sees_all = principal.has_any(&workspace, AUTHOR);
        let all = self.control.connections(&workspace, &user, sees_all).await?;
        let found = all.into_iter().find(|one| one.server == server.as_str());
        let csrf = self.control.form_token(token);
        Ok(page(&found.ok_or_else(nothing)?, &who, &csrf))
    }

    /// Begins or ends the connection.
    pub(super) async fn change_connection(&self, body: RequestBody) -> Answered {
        let (workspace, server) = self.connection_place()?;
        let ConnectionForm { csrf, verb } = self.form(body).await?;
        let (_, signed_in) = self.checked_session(Some(&csrf))?;
        let (user, session) = (signed_in.account.id.clone(), signed_in.session.clone());
        let principal = Principal::Human(signed_in);
        authorize(Access::Member(EVERY), &principal, || Ok(workspace.clone()))?;
        let by = principal.actor();
        match verb {
            ConnectionVerb::Connect => {
                let sees_all = principal.has_any(&workspace, AUTHOR);
                let (session, name) = (Some(session), server.to_string());
                let wanted = Connecting { workspace, server: name, user, session, sees_all };
                Ok(onward(server.as_str(), &self.control.connect(wanted, &by).await?))
            }
            ConnectionVerb::Disconnect => {
                let sees_all = principal.has_any(&workspace, AUTHOR);
                let name = server.as_str();
                self.control.disconnect(&workspace, name, &user, sees_all, &by).await?;
                redirect(&connection_path(&workspace, server.as_str()))
            }
        }
    }

    /// The answer that leads an answer of an authorization server to the origin at which humans
    /// sign in, if it ends a connection and came to another host of the daemon: only there the
    /// browser sends the cookie of its login session.
    pub(super) fn connection_elsewhere(
        &self,
        server: Option<&str>,
    ) -> Result<Option<Response>, Problem> {
        let is_connection = server_sign_in::connection(server).is_some();
        match is_connection && self.control.sign_in_origin().is_some() {
            true => self.at_the_public_origin(),
            false => Ok(None),
        }
    }

    pub(super) fn connection_place(&self) -> Result<(WorkspaceId, ServerId), Problem> {
        let workspace = WorkspaceId::new(&self.segment()).map_err(|_unfit| nothing())?;
        let server = ServerId::new(&self.nth_segment(1)).map_err(|_unfit| nothing())?;
        Ok((workspace, server))
    }
}

fn page(connection: &UserConnection, who: &str, csrf: &str) -> Response {
    let UserConnection { workspace, server, name, is_connected, facts } = connection;
    let name = safe(name.as_deref().unwrap_or(server));
    let state = if *is_connected { "is connected" } else { "is not connected" };
    let mut main = format!("<h1>{name}</h1>\n<p>Your account {state}.</p>\n<dl>\n");
    put(
        &mut main,
        format_args!(
            "<dt>server</dt><dd>{}</dd>\n<dt>workspace</dt><dd>{}</dd>\n",
            safe(server),
            safe(workspace.as_str())
        ),
    );
    if let Some(facts) = facts {
        for (word, value) in [("signed in at", &facts.issuer), ("scopes", &facts.scopes)] {
            put(&mut main, format_args!("<dt>{word}</dt><dd>{}</dd>\n", safe(value)));
        }
    }
    let csrf = escaped(csrf);
    put(
        &mut main,
        format_args!(
            "</dl>\n<p>Runs that you drive use this server as you. Runs of others do not.</p>\n\
             <form method=\"post\">\
             <input type=\"hidden\" name=\"csrf\" value=\"{csrf}\">\n\
             <button name=\"verb\" value=\"connect\">{}</button>\n",
            if *is_connected { "Connect again" } else { "Connect" }
        ),
    );
    if facts.is_some() {
        main.push_str("<button name=\"verb\" value=\"disconnect\">Disconnect</button>\n");
    }
    put(
        &mut main,
        format_args!("</form>\n<p class=\"hint\">You are signed in as {}.</p>\n", safe(who)),
    );
    html(StatusCode::OK, "Connection", "", &main)
}

/// The page that leads to the authorization server. It is no redirect, since a page's form may lead
/// to narthex alone.
fn onward(server: &str, begun: &SignInBegun) -> Response {
    let url = &begun.url;
    let host = url.host_str().unwrap_or_default();
    let main = format!(
        "<h1>Connect to {}</h1>\n<p>Sign in at <strong>{}</strong>, and allow narthex to use the \
         server as you.</p>\n<a class=\"button strong\" rel=\"noreferrer\" href=\"{}\">Continue at \
         {}</a>\n",
        safe(server),
        safe(host),
        escaped(url.as_str()),
        safe(host)
    );
    html(StatusCode::OK, "Connect", "", &main)
}

#[cfg(test)]
mod tests {
    use narthex_control::GrantFacts;

    use super::*;

    /// S11: names and facts are text, whatever is in them, and the page shows no other address.
    #[test]
    fn s11_the_page_of_a_connection_shows_hostile_text_as_text() {
        let hostile = "<img src=x onerror=alert(1)>\"'&\u{202e}".to_owned();
        let facts = GrantFacts {
            issuer: hostile.clone(),
            scopes: hostile.clone(),
            ..GrantFacts::default()
        };
        let connection = UserConnection {
            workspace: WorkspaceId::default(),
            server: "mail".to_owned(),
            name: Some(hostile.clone()),
            is_connected: true,
            facts: Some(facts),
        };
        let response = page(&connection, &hostile, "token");
        let bytes = response.body().whole().unwrap();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        assert!(!text.contains("<img") && !text.contains('\u{202e}'), "{text}");
        assert!(text.contains("value=\"disconnect\""), "{text}");
    }
}
