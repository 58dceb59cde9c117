//! The end of a sign-in to a server by the answer of a browser.

use narthex_model::{PrincipalId, ServerId, SharedGrant, WorkspaceId};
use narthex_oauth_client::{Finished, store::GrantKey};

use crate::{ControlError, catalog::connection_path};

/// The end of a sign-in.
#[derive(Debug)]
pub struct SignInEnd {
    /// The finished sign-in, or the reason why it was not finished.
    pub outcome: Result<Finished, ControlError>,
    /// The key of the grant; `None` for an answer that belongs to no open attempt of this browser.
    pub(super) key: Option<GrantKey>,
}

impl SignInEnd {
    /// An end of which the attempt is unknown.
    pub(super) fn unproved(error: ControlError) -> Self {
        Self { outcome: Err(error), key: None }
    }

    /// True if the answer belongs to an open attempt of this browser.
    #[must_use]
    pub fn is_proved(&self) -> bool {
        self.key.is_some()
    }

    /// The path of the page of the connection that ended here, if this human began it for
    /// themselves. `None` for an answer that is not proved.
    #[must_use]
    pub fn page_of(&self, human: &PrincipalId) -> Option<String> {
        let key = self.key.as_ref()?;
        let is_theirs = key.user.as_deref() == Some(human.as_str());
        let id = SharedGrant::catalog_id(&key.server).filter(|_| is_theirs)?;
        let (workspace, id) = (WorkspaceId::new(&key.workspace).ok()?, ServerId::new(id).ok()?);
        Some(connection_path(&workspace, id.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ServerSignInError;

    const ADA: &str = "prn_00000000000000aa";

    fn ended(key: Option<GrantKey>) -> SignInEnd {
        SignInEnd { outcome: Err(ServerSignInError::NoSignIns.into()), key }
    }

    fn key(server: &str, user: Option<&str>) -> GrantKey {
        let (workspace, server) = ("team".to_owned(), server.to_owned());
        GrantKey { workspace, server, user: user.map(str::to_owned) }
    }

    /// X-E43: only the human who began a connection is led back to its page.
    #[test]
    fn x_e43_the_page_of_a_connection_is_named_to_its_human_alone() {
        let (ada, bob) =
            (PrincipalId::new(ADA).unwrap(), PrincipalId::new("prn_00000000000000bb").unwrap());
        let own = ended(Some(key("catalog/mail", Some(ADA))));
        assert_eq!(own.page_of(&ada).as_deref(), Some("/workspaces/team/connections/mail"));
        assert_eq!(own.page_of(&bob), None);
        assert_eq!(ended(Some(key("mail", None))).page_of(&ada), None);
        assert_eq!(ended(Some(key("catalog/../x", Some(ADA)))).page_of(&ada), None);
        let unproved = SignInEnd::unproved(ServerSignInError::NoSignIns.into());
        assert_eq!((unproved.page_of(&ada), unproved.is_proved()), (None, false));
    }
}
