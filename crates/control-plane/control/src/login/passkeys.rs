//! Passkeys: a signed-in human registers them, signs in with them, and removes them.

use std::time::SystemTime;

use narthex_audit::kind;
use narthex_login::{LoginMethod, Passkey, Passkeys, Token, UserHandle};
use narthex_model::{ErrorKind, PrincipalId};
use narthex_store::PasskeyRow;
use serde_json::Value;

use super::{Login, LoginError, NewSession, SignedIn};
use crate::{By, Control, ControlError, access::of_principal};

/// The longest name of a passkey, in characters.
const LABEL_MAX: usize = 60;

/// A ceremony that was started.
#[derive(Debug)]
pub struct Ceremony {
    /// The token that comes back with the answer.
    pub token: Token,
    /// The options for the browser.
    pub options: Value,
}

/// The reason why a human may add a passkey, by the method of sign-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Adding {
    /// The human is proved, or no proof is needed: any number of passkeys.
    Any,
    /// No human can prove to be human yet: the first passkey of all.
    First,
    /// A proved human has created the link: one passkey.
    Invited,
}

impl Control {
    /// Starts the registration of a passkey for a signed-in human.
    ///
    /// # Errors
    /// When passkeys cannot be used here, this sign-in adds none, too many ceremonies are open, or
    /// the store fails.
    pub async fn passkey_registration_begin(
        &self,
        signed_in: &SignedIn,
    ) -> Result<Ceremony, ControlError> {
        let (login, passkeys) = self.with_passkeys()?;
        self.may_add_passkey(signed_in.method).await?;
        let account = &signed_in.account;
        let mut known = Vec::new();
        for row in self.passkeys(&account.id).await? {
            known.push(Passkey::from_stored(&row.document).map_err(LoginError::Passkey)?);
        }
        let user = UserHandle::of(account.id.as_str());
        let begun = passkeys.begin_registration(user, account.name.as_str(), &known);
        let (options, registration) = begun.map_err(LoginError::Passkey)?;
        let token = login.registrations.put((account.id.clone(), registration));
        Ok(Ceremony { token: token.map_err(LoginError::Pending)?, options })
    }

    /// Ends the registration with the browser's answer.
    ///
    /// # Errors
    /// When the ceremony has expired or belongs to another human, the answer does not fit, a human
    /// has the passkey already, this sign-in may no longer add one, or the store fails.
    pub async fn passkey_registration_finish(
        &self,
        signed_in: &SignedIn,
        ceremony: &str,
        label: &str,
        answer: &[u8],
    ) -> Result<PasskeyRow, ControlError> {
        let (login, passkeys) = self.with_passkeys()?;
        let account = &signed_in.account;
        let begun = login.registrations.take(ceremony);
        let (_, registration) =
            begun.filter(|(owner, _)| *owner == account.id).ok_or(LoginError::NoCeremony)?;
        let made = passkeys.finish_registration(&registration, answer);
        let made = made.map_err(LoginError::Passkey)?;
        let row = PasskeyRow {
            id: made.id(),
            principal: account.id.clone(),
            label: short(label),
            document: made.to_stored().map_err(LoginError::Passkey)?,
            enrolled_by: signed_in.method.as_str().to_owned(),
            created_at: SystemTime::now(),
            used_at: None,
        };
        let (by, signed_in) = (account.actor(), signed_in.clone());
        // Done under the lock of permissions: of several registrations at once, only one can be the
        // first.
        self.change_access(async move |this: Self, _store| {
            let adding = this.may_add_passkey(signed_in.method).await?;
            let proofs = this.needed_store()?.proofs();
            if proofs.find_passkey(&row.id).await.map_err(ControlError::Store)?.is_some() {
                return Err(LoginError::PasskeyTaken.into());
            }
            let event = of_principal(kind::PASSKEY_ADDED, &row.principal, by);
            let noted = this.note(event.with("passkey", row.id.as_str())).await?;
            let added = match adding {
                Adding::Any => proofs.add_passkey(&row).await.map(|()| true),
                // Another daemon may have added the first passkey in the meantime.
                Adding::First => proofs.add_first_passkey(&row).await,
                Adding::Invited => proofs.add_invited_passkey(&row, &signed_in.session).await,
            };
            let added = added.map_err(|error| match error.kind() {
                ErrorKind::Conflict => LoginError::PasskeyTaken.into(),
                _ => ControlError::Store(error),
            })?;
            if !added {
                return Err(this.adds_no_passkey().into());
            }
            this.passkeys_changed().await?;
            noted.done().await;
            Ok(row)
        })
        .await
    }

    /// True if any human can prove to be human: by a passkey, or at a provider (D15).
    ///
    /// # Errors
    /// When the store fails.
    pub async fn has_proofs(&self) -> Result<bool, ControlError> {
        if !self.sign_in_providers().is_empty() {
            return Ok(true);
        }
        let Some(store) = &self.shared.store else { return Ok(false) };
        store.proofs().has_passkeys().await.map_err(ControlError::Store)
    }

    /// True if any grant was ever created or requested: until then, nothing depends on proofs.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn are_grants_used(&self) -> Result<bool, ControlError> {
        let Some(store) = &self.shared.store else { return Ok(false) };
        store.grants().are_used().await.map_err(ControlError::Store)
    }

    /// Updates the rule for grants after a passkey was added or removed: they need proof while any
    /// passkey exists.
    async fn passkeys_changed(&self) -> Result<(), ControlError> {
        let Some(store) = &self.shared.store else { return Ok(()) };
        self.shared.grants.passkeys_changed(store).await.map_err(ControlError::Store)
    }

    /// True if the signed-in human can add a passkey.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn adds_passkeys(&self, signed_in: &SignedIn) -> Result<bool, ControlError> {
        Ok(self.passkey_adding(signed_in.method).await?.is_some())
    }

    /// True if a human can add a passkey with a link whose creator `is_proved` or not.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn links_add_passkeys(&self, is_proved: bool) -> Result<bool, ControlError> {
        Ok(self.passkey_adding(LoginMethod::of_link(is_proved)).await?.is_some())
    }

    /// The reason why a human with this method of sign-in may add a passkey; `None` if the human
    /// may not. Once a passkey or a provider exists, a link alone adds none: a program with the
    /// admin token can make links.
    async fn passkey_adding(&self, method: LoginMethod) -> Result<Option<Adding>, ControlError> {
        if self.shared.grants.proof().is_off() || method.is_authenticated() {
            return Ok(Some(Adding::Any));
        }
        if method == LoginMethod::Invitation {
            return Ok(Some(Adding::Invited));
        }
        Ok((!self.has_proofs().await?).then_some(Adding::First))
    }

    async fn may_add_passkey(&self, method: LoginMethod) -> Result<Adding, ControlError> {
        let adding = self.passkey_adding(method).await?;
        adding.ok_or_else(|| self.adds_no_passkey().into())
    }

    fn adds_no_passkey(&self) -> LoginError {
        LoginError::AddsNoPasskey { sign_in: self.sign_in_address() }
    }

    /// The address of the sign-in page, for the texts of errors.
    fn sign_in_address(&self) -> String {
        self.sign_in_origin().map(|origin| origin.at("/signin")).unwrap_or_default()
    }

    /// Starts a sign-in by passkey, before the human is known.
    ///
    /// # Errors
    /// When passkeys cannot be used here, or too many ceremonies are open.
    pub fn passkey_sign_in_begin(&self) -> Result<Ceremony, ControlError> {
        let (login, passkeys) = self.with_passkeys()?;
        let (options, begun) = passkeys.begin_sign_in().map_err(LoginError::Passkey)?;
        let token = login.sign_ins.put(begun).map_err(LoginError::Pending)?;
        Ok(Ceremony { token, options })
    }

    /// Ends the sign-in with the browser's answer.
    ///
    /// # Errors
    /// When the ceremony has expired, the passkey is unknown or proves nothing, its owner is
    /// disabled, or the store fails.
    pub async fn passkey_sign_in_finish(
        &self,
        ceremony: &str,
        answer: &[u8],
    ) -> Result<NewSession, ControlError> {
        let (login, passkeys) = self.with_passkeys()?;
        let begun = login.sign_ins.take(ceremony).ok_or(LoginError::NoCeremony)?;
        let id = Passkeys::answering(answer).map_err(LoginError::Passkey)?;
        let proofs = self.needed_store()?.proofs();
        let found = proofs.find_passkey(&id).await.map_err(ControlError::Store)?;
        let found = found.ok_or(LoginError::UnknownPasskey)?;
        let stored = Passkey::from_stored(&found.document).map_err(LoginError::Passkey)?;
        let owner = UserHandle::of(found.principal.as_str());
        let used = passkeys.finish_sign_in(begun, answer, &stored, owner);
        let used = used.map_err(LoginError::Passkey)?;
        let document = used.to_stored().map_err(LoginError::Passkey)?;
        let kept = proofs.passkey_used(&found, &document).await.map_err(ControlError::Store)?;
        if !kept {
            return Err(LoginError::PasskeyRaced.into());
        }
        self.begin_session(found.principal, LoginMethod::Passkey).await
    }

    /// The passkeys of a human, the oldest first.
    ///
    /// # Errors
    /// When there is no store, or the store fails.
    pub async fn passkeys(&self, principal: &PrincipalId) -> Result<Vec<PasskeyRow>, ControlError> {
        let all = self.needed_store()?.proofs().passkeys(principal).await;
        all.map_err(ControlError::Store)
    }

    /// Removes a passkey of a human, for an actor who `is_proved` to be human or not. Sessions that
    /// the passkey has started stay valid.
    ///
    /// # Errors
    /// When the human has no such passkey, the actor has to prove to be human, or the store fails.
    pub async fn passkey_remove(
        &self,
        principal: &PrincipalId,
        id: &str,
        by: &By,
        is_proved: bool,
    ) -> Result<(), ControlError> {
        if self.needs_proof() && !is_proved {
            let sign_in = self.sign_in_address();
            return Err(LoginError::NotProved { sign_in }.into());
        }
        let (principal, id, by) = (principal.clone(), id.to_owned(), by.clone());
        let remove = async move |this: Self| {
            let proofs = this.needed_store()?.proofs();
            let found = proofs.find_passkey(&id).await.map_err(ControlError::Store)?;
            if found.is_none_or(|row| row.principal != principal) {
                return Err(LoginError::NoSuchPasskey.into());
            }
            let event = of_principal(kind::PASSKEY_REMOVED, &principal, by);
            let noted = this.note(event.with("passkey", id.as_str())).await?;
            let removed = proofs.remove_passkey(&principal, &id).await;
            if !removed.map_err(ControlError::Store)? {
                return Err(LoginError::NoSuchPasskey.into());
            }
            this.passkeys_changed().await?;
            noted.done().await;
            Ok(())
        };
        self.to_the_end(remove).await
    }

    fn with_passkeys(&self) -> Result<(&Login, &Passkeys), ControlError> {
        let login = self.login()?;
        Ok((login, login.passkeys.as_ref().ok_or(LoginError::NoPasskeys)?))
    }
}

/// A name of a passkey in one line.
fn short(label: &str) -> String {
    let label: String = label.chars().filter(|one| !one.is_control()).take(LABEL_MAX).collect();
    let label = label.trim();
    if label.is_empty() { "passkey".to_owned() } else { label.to_owned() }
}
