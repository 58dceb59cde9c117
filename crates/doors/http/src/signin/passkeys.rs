//! The ceremonies of passkeys, which the page's script starts and finishes.

use http::StatusCode;
use narthex_control::PasskeyRow;
use narthex_model::ErrorKind;
use serde::Serialize;

use super::{Answered, CSRF_HEADER, Visitor, page::guarded, redirect};
use crate::listener::single;
use crate::{
    body::RequestBody,
    post::is_json,
    problem::Problem,
    respond,
    shapes::{Ceremony, CeremonyAnswer, CsrfForm, PasskeyAdded, SignedIn},
};

impl Visitor<'_> {
    pub(super) fn begin_sign_in(&self) -> Answered {
        Ok(begun(self.control.passkey_sign_in_begin()?))
    }

    pub(super) async fn finish_sign_in(&self, body: RequestBody) -> Answered {
        let CeremonyAnswer { ceremony, credential, label: _ } = self.ceremony(body).await?;
        let answer = credential.get().as_bytes();
        let new = self.control.passkey_sign_in_finish(&ceremony, answer).await?;
        let mut response = document(StatusCode::OK, &SignedIn { location: self.onward() });
        self.open_session(&mut response, &new).await?;
        Ok(response)
    }

    pub(super) async fn begin_passkey(&self) -> Answered {
        let (_, signed_in) = self.checked_session(self.csrf())?;
        Ok(begun(self.control.passkey_registration_begin(&signed_in).await?))
    }

    pub(super) async fn add_passkey(&self, body: RequestBody) -> Answered {
        let (_, signed_in) = self.checked_session(self.csrf())?;
        let CeremonyAnswer { ceremony, credential, label } = self.ceremony(body).await?;
        let answer = credential.get().as_bytes();
        let (control, label) = (self.control, label.unwrap_or_default());
        let added =
            control.passkey_registration_finish(&signed_in, &ceremony, &label, answer).await?;
        let PasskeyRow { id, label, .. } = added;
        let shown = PasskeyAdded { location: "/signin", id, label };
        Ok(document(StatusCode::CREATED, &shown))
    }

    pub(super) async fn remove_passkey(&self, body: RequestBody) -> Answered {
        let CsrfForm { csrf } = self.form(body).await?;
        let (_, signed_in) = self.checked_session(Some(&csrf))?;
        let account = &signed_in.account;
        let (by, is_proved) = (account.actor(), signed_in.method.is_authenticated());
        self.control.passkey_remove(&account.id, &self.segment(), &by, is_proved).await?;
        redirect("/signin")
    }

    fn csrf(&self) -> Option<&str> {
        single(&self.parts.headers, &CSRF_HEADER).flatten()
    }

    async fn ceremony(&self, body: RequestBody) -> Result<CeremonyAnswer, Problem> {
        if !is_json(&self.parts.headers) {
            let text = "the content type must be application/json";
            let problem = Problem::new(ErrorKind::Invalid, text);
            return Err(problem.with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE));
        }
        let bytes = self.read(body).await?;
        serde_json::from_slice(&bytes).map_err(|_error| {
            Problem::new(ErrorKind::Invalid, "this is not an answer of the sign-in page")
        })
    }
}

fn begun(ceremony: narthex_control::Ceremony) -> respond::Response {
    let narthex_control::Ceremony { token, options } = ceremony;
    document(StatusCode::OK, &Ceremony { ceremony: token.expose().to_owned(), options })
}

/// # Panics
/// When the shape is no JSON: no member of a shape has a fault, and all names are text.
fn document(status: StatusCode, shape: &impl Serialize) -> respond::Response {
    let text = serde_json::to_vec(shape).expect("a shape of the API is JSON");
    guarded(respond::json(status, text.into()))
}
