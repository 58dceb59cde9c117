//! The sign-in of humans as operators manage it, and the identity of the caller.

use http::StatusCode;
use narthex_control::{CreatedLink, PasskeyRow};
use narthex_model::PrincipalKind;

use super::{Answered, Asked, document, ok};
use crate::{
    auth::Principal,
    respond,
    shapes::{Me, Passkey, SignInLink},
};

impl Asked<'_> {
    /// Shows the caller, and whether a human is proved to be there (D15).
    pub(super) fn me(&self) -> Answered {
        self.query(&[])?;
        let (kind, method) = match &self.principal {
            Principal::Run(_) => ("run", "token"),
            Principal::LocalAdmin => ("local_admin", "token"),
            Principal::Known(_) => (PrincipalKind::Service.as_str(), "token"),
            Principal::Human(signed_in) => {
                (PrincipalKind::Human.as_str(), signed_in.method.as_str())
            }
        };
        let is_proved = self.principal.is_authenticated_human();
        Ok(ok(&Me {
            id: self.principal.account().map(|account| (&account.id).into()),
            name: self.principal.actor().id.to_string(),
            kind,
            method,
            assurance: if is_proved { "authenticated" } else { "advisory" },
            is_operator: self.principal.is_operator(),
        }))
    }

    pub(super) async fn create_link(&self) -> Answered {
        self.query(&[])?;
        let is_proved = self.principal.is_authenticated_human();
        let (who, by) = (self.segment(0), self.by());
        let made = self.control()?.sign_in_link_create(&who, &by, is_proved).await?;
        let CreatedLink { url, account, expires_at, adds_passkey } = made;
        let shown = SignInLink {
            adds_passkey,
            url: url.expose().to_owned(),
            principal: (&account.id).into(),
            name: (&account.name).into(),
            expires_at: expires_at.into(),
        };
        Ok(document(StatusCode::CREATED, &shown))
    }

    pub(super) async fn passkeys(&self) -> Answered {
        let control = self.control()?;
        let account = control.principal(&self.segment(0))?;
        let mut all = control.passkeys(&account.id).await?;
        all.sort_by(|one, other| one.id.cmp(&other.id));
        self.page(all, |one| &one.id, passkey)
    }

    pub(super) async fn remove_passkey(&self) -> Answered {
        self.query(&[])?;
        let control = self.control()?;
        let account = control.principal(&self.segment(0))?;
        let is_proved = self.principal.is_authenticated_human();
        control.passkey_remove(&account.id, &self.segment(1), &self.by(), is_proved).await?;
        Ok(respond::empty(StatusCode::NO_CONTENT))
    }
}

fn passkey(row: &PasskeyRow) -> Passkey {
    let PasskeyRow { id, label, enrolled_by, created_at, used_at, .. } = row;
    Passkey {
        id: id.clone(),
        label: label.clone(),
        enrolled_by: enrolled_by.clone(),
        created_at: (*created_at).into(),
        used_at: used_at.map(Into::into),
    }
}
