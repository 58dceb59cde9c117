//! Sign-ins to servers: begins, shows and ends them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use narthex_control::{DeviceBegun, DeviceState, GrantFacts, SignInBegun, SignInVerbs};

use super::{Answered, Asked, ok, once::ToldOnce, unknown};
use crate::{
    oauth::binding,
    shapes::{DeviceSignIn, DeviceSignInBegun, ServerSignIn, ServerSignInBegun},
};

/// The target of a route about the sign-in to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServerSignInTarget {
    /// Starts a sign-in.
    Begin,
    /// Shows the state of a sign-in at another device.
    Device,
    /// Signs out, and starts a sign-in.
    Again,
    /// Signs out.
    End,
}

impl Asked<'_> {
    pub(super) async fn of_sign_in(&self, of: ServerSignInTarget) -> Answered {
        match of {
            ServerSignInTarget::Begin => self.authorize().await,
            ServerSignInTarget::Device => self.device_sign_in(),
            ServerSignInTarget::Again => self.reauthorize().await,
            ServerSignInTarget::End => self.sign_out_of().await,
        }
    }

    /// Begins a sign-in at a page, or with a code for another device.
    async fn authorize(&self) -> Answered {
        let is_device = self.query(&["device"])?.flag("device")?;
        let (name, by, control) = (self.name()?, self.by(), self.control()?);
        let verbs = SignInVerbs::of(control);
        let mut response = match is_device {
            true => ok(&at_device(verbs.authorize_device(&name, &by).await?)),
            false => {
                let session = binding(control, &self.principal, self.parts);
                ok(&at_page(&verbs.authorize(&name, session, &by).await?))
            }
        };
        // The address and the code are for the person who began the sign-in.
        response.extensions_mut().insert(ToldOnce);
        Ok(response)
    }

    /// Shows the state of a sign-in at another device.
    fn device_sign_in(&self) -> Answered {
        self.query(&[])?;
        let state =
            SignInVerbs::of(self.control()?).device_state(&self.name()?, &self.segment(1))?;
        let (state, failure) = match state {
            DeviceState::Pending => ("pending", None),
            DeviceState::Done => ("done", None),
            DeviceState::Denied => ("denied", None),
            DeviceState::Expired => ("expired", None),
            DeviceState::Failed(why) => ("failed", Some(why)),
        };
        Ok(ok(&DeviceSignIn { state, failure }))
    }

    /// Ends the sign-in to a server.
    async fn sign_out_of(&self) -> Answered {
        self.query(&[])?;
        SignInVerbs::of(self.control()?).sign_out(&self.name()?, &self.by()).await?;
        Ok(self.done(None))
    }

    async fn reauthorize(&self) -> Answered {
        self.query(&[])?;
        let (name, control) = (self.name()?, self.control()?);
        let session = binding(control, &self.principal, self.parts);
        let result = SignInVerbs::of(control).reauthorize(&name, session, &self.by()).await?;
        Ok(self.done(Some(result.ok_or_else(|| unknown(&name))?)))
    }
}

pub(super) fn at_page(begun: &SignInBegun) -> ServerSignInBegun {
    ServerSignInBegun {
        url: begun.url.to_string(),
        expires_at: at(begun.expires_at).into(),
        redirect_uri: begun.redirect_uri.to_string(),
    }
}

fn at_device(begun: DeviceBegun) -> DeviceSignInBegun {
    DeviceSignInBegun {
        user_code: begun.user_code,
        verification_uri: begun.verification_uri.to_string(),
        verification_uri_complete: begun.verification_uri_complete.map(|uri| uri.to_string()),
        expires_at: at(begun.expires_at).into(),
        id: begun.id,
    }
}

/// The stored facts of a sign-in. `None` before the first tokens.
pub(crate) fn facts(facts: &GrantFacts) -> Option<ServerSignIn> {
    let time = |seconds: Option<u64>| seconds.map(|seconds| at(seconds).into());
    (!facts.issuer.is_empty()).then(|| ServerSignIn {
        issuer: facts.issuer.clone(),
        scopes: facts.scopes.split_whitespace().map(str::to_owned).collect(),
        expires_at: time(facts.expires_at),
        can_renew: facts.can_renew,
        succeeded_at: time(facts.succeeded_at),
        failed_at: time(facts.failed_at),
        failure: facts.failure.clone(),
    })
}

/// The time of a number of seconds since 1970. A number beyond all times is the beginning.
fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH.checked_add(Duration::from_secs(seconds)).unwrap_or(UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E27: the row of a server shows the facts of its tokens, and a server without tokens none.
    #[test]
    fn e27_facts_of_a_sign_in_are_shown_once_there_are_tokens() {
        assert_eq!(facts(&GrantFacts::default()), None);
        let shown = facts(&GrantFacts {
            issuer: "https://as.example.com".to_owned(),
            scopes: "read  write".to_owned(),
            expires_at: Some(0),
            can_renew: true,
            ..GrantFacts::default()
        });
        let shown = serde_json::to_value(shown).unwrap();
        assert_eq!(shown["scopes"], serde_json::json!(["read", "write"]));
        assert_eq!(shown["expiresAt"], "1970-01-01T00:00:00.000Z");
        assert_eq!(at(u64::MAX), UNIX_EPOCH);
    }
}
