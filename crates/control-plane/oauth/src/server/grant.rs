//! The rights that a human gives to a client, and the access tokens for them.

use std::time::{Duration, SystemTime};

use narthex_model::{AgentName, PrincipalId};
use serde::{Deserialize, Serialize};

use super::{
    answer::OAuthError,
    bearer::Refusal,
    client::ClientId,
    door::Resource,
    time::StoredTime,
    token::{FamilyId, Token, TokenKind},
};
use crate::{TokenHash, scopes::Scopes};

/// Time for which an access token is valid.
pub const ACCESS_LIFE: Duration = Duration::from_hours(1);

/// The rights of a client: whose, at which resource, and where it works.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The client.
    pub client_id: ClientId,
    /// The human who consented, or the account of the client, for whom it acts.
    pub user: PrincipalId,
    /// The id of the workspace in which the client works.
    pub workspace: String,
    /// The agent as which it works, if one was chosen.
    pub agent: Option<AgentName>,
    /// The resource at which its tokens are valid.
    pub resource: Resource,
    /// The scopes.
    pub scopes: Scopes,
}

/// A stored access token: its hash, and the rights of its holder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessRecord {
    /// The hash by which the caller finds the record.
    pub hash: TokenHash,
    /// The rights, of which the scopes may be fewer than those that the human gave.
    pub grant: Grant,
    /// The family whose end ends this token; `None` for a token without a page.
    pub family: Option<FamilyId>,
    /// Time of issue.
    pub issued_at: StoredTime,
    /// Time from which the token is no longer valid.
    pub expires_at: StoredTime,
}

/// A new access token: its text for the client, and its record for the store.
#[derive(Debug)]
pub struct NewAccess {
    /// The token, shown once.
    pub token: Token,
    /// The record.
    pub record: AccessRecord,
}

impl NewAccess {
    /// Generates an access token that is valid for an hour.
    ///
    /// # Errors
    /// When the operating system gives no random bytes.
    pub(super) fn generate(
        grant: Grant,
        family: Option<FamilyId>,
        now: SystemTime,
    ) -> Result<Self, OAuthError> {
        let random = |_error| OAuthError::NO_RANDOMNESS;
        let token = Token::generate(TokenKind::Access).map_err(random)?;
        let issued_at = StoredTime::of(now);
        let expires_at = issued_at.plus(ACCESS_LIFE);
        let record = AccessRecord { hash: token.hash(), grant, family, issued_at, expires_at };
        Ok(Self { token, record })
    }
}

impl AccessRecord {
    /// Checks that the token opens a resource at this time, and has these scopes.
    ///
    /// # Errors
    /// When it has expired, is for another resource, or lacks a scope.
    pub fn check(
        &self,
        resource: &Resource,
        scopes: &Scopes,
        now: SystemTime,
    ) -> Result<&Grant, Refusal> {
        if !self.is_valid(now) {
            return Err(Refusal::BadToken("the access token has expired"));
        }
        if self.grant.resource != *resource {
            return Err(Refusal::BadToken("the access token is for another resource"));
        }
        match self.grant.scopes.contains_all(scopes) {
            true => Ok(&self.grant),
            false => Err(Refusal::MoreScopes),
        }
    }

    /// True if the token has not expired.
    #[must_use]
    pub fn is_valid(&self, now: SystemTime) -> bool {
        StoredTime::of(now) < self.expires_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::{
        door::{Door, DoorPath},
        sample::{grant, now},
    };

    #[test]
    fn door_a9_an_access_token_opens_its_resource_for_an_hour() {
        let new = NewAccess::generate(grant(), None, now()).unwrap();
        let NewAccess { token, record } = new;
        assert!(token.expose().starts_with("nxa_"));
        assert!(record.hash.opens_for(token.expose()));
        let (resource, none) = (&grant().resource, Scopes::default());
        let late = now() + ACCESS_LIFE;
        assert_eq!(record.check(resource, &none, now()), Ok(&grant()));
        assert!(record.check(resource, &none, late - Duration::from_secs(1)).is_ok());
        assert!(matches!(record.check(resource, &none, late), Err(Refusal::BadToken(_))));
    }

    #[test]
    fn door_r5_r6_other_resources_and_scopes_are_refused() {
        let record = NewAccess::generate(grant(), None, now()).unwrap().record;
        let door = Door::new("https://narthex.example").unwrap();
        let other = door.resource(&DoorPath::parse("/mcp/git").unwrap());
        let none = Scopes::default();
        assert!(matches!(record.check(&other, &none, now()), Err(Refusal::BadToken(_))));
        let more = Scopes::read("mcp admin").unwrap();
        assert_eq!(record.check(&grant().resource, &more, now()), Err(Refusal::MoreScopes));
        let same = Scopes::read("mcp").unwrap();
        assert!(record.check(&grant().resource, &same, now()).is_ok());
    }

    #[test]
    fn stored_access_gives_no_access() {
        let NewAccess { token, record } = NewAccess::generate(grant(), None, now()).unwrap();
        let stored = serde_json::to_string(&record).unwrap();
        assert!(!stored.contains(&token.expose()[4..]));
        assert_eq!(serde_json::from_str::<AccessRecord>(&stored).unwrap(), record);
    }
}
