//! Sign-ins to servers: begins, shows and ends them.

use http::header;
use narthex_control::{Control, DeviceBegun, DeviceState, SignInBegun, SignInVerbs};

use super::{Answered, Asked, ok, once::ToldOnce, unknown};
use crate::{
    auth::Principal,
    listener::single,
    routes::ServerSignInTarget,
    rows::at,
    server_sign_in,
    shapes::{DeviceSignIn, DeviceSignInBegun, ServerSignInBegun},
};

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
                let session = self.binding(control);
                ok(&at_page(&verbs.authorize(&name, session, &by).await?))
            }
        };
        // The address and the code are for the person who began the sign-in.
        response.extensions_mut().insert(ToldOnce);
        Ok(response)
    }

    /// The login session to which a sign-in of this caller is bound.
    fn binding(&self, control: &Control) -> Option<String> {
        let Principal::Human(signed_in) = &self.principal else { return None };
        let host = single(&self.parts.headers, &header::HOST).flatten();
        server_sign_in::binding(control, signed_in, host)
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
        let session = self.binding(control);
        let result = SignInVerbs::of(control).reauthorize(&name, session, &self.by()).await?;
        Ok(self.done(Some(result.ok_or_else(|| unknown(&name))?)))
    }
}

fn at_page(begun: &SignInBegun) -> ServerSignInBegun {
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
