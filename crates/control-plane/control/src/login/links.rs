//! One-time sign-in links, which operators create for humans.
//!
//! A link from a proved operator is an invitation: its human can add one passkey with it, also
//! where other links add none.

use std::{sync::Arc, time::SystemTime};

use narthex_audit::kind;
use narthex_login::{LoginMethod, SignInLink, TokenHash};
use narthex_model::Secret;
use narthex_store::NewSignInLink;

use super::{LoginError, NewSession};
use crate::{Account, By, Control, ControlError, access::of_principal};

/// A link that was created now.
#[derive(Debug)]
pub struct CreatedLink {
    /// The whole address, to be shown once.
    pub url: Secret,
    /// The human whom the link signs in.
    pub account: Arc<Account>,
    /// Time until which the link is valid.
    pub expires_at: SystemTime,
    /// True if the human can add a passkey with the link, as far as is known now.
    pub adds_passkey: bool,
}

impl Control {
    /// Creates a link that signs a human in once. The link is an invitation if its creator
    /// `is_proved` to be human.
    ///
    /// # Errors
    /// When the human is unknown or disabled; when there is no store, or the store fails.
    pub async fn sign_in_link_create(
        &self,
        who: &str,
        by: &By,
        is_proved: bool,
    ) -> Result<CreatedLink, ControlError> {
        let origin = self.login()?.origin.clone();
        let (who, by) = (who.to_owned(), by.clone());
        let adds_passkey = self.links_add_passkeys(is_proved).await?;
        self.change_access(async move |this, store| {
            let account = this.principal(&who)?;
            if account.disabled_at.is_some() {
                return Err(LoginError::NoLink(account.name.clone()).into());
            }
            let account = this.may_sign_in(&account.id)?;
            let link = SignInLink::generate(SystemTime::now()).map_err(LoginError::Randomness)?;
            let SignInLink { token, expires_at } = link;
            let event = of_principal(kind::LINK_CREATED, &account.id, by.clone());
            let noted = this.note(event.with("is_invitation", is_proved)).await?;
            let (hash, principal, by) = (token.hash(), &account.id, &*by.id);
            let (hash, is_invitation) = (hash.as_str(), is_proved);
            let row = NewSignInLink { hash, principal, by, expires_at, is_invitation };
            store.logins().make_link(row).await.map_err(ControlError::Store)?;
            noted.done().await;
            let url = Secret::new(origin.at(&format!("/signin/link/{}", token.expose())));
            Ok(CreatedLink { url, account, expires_at, adds_passkey })
        })
        .await
    }

    /// The human whom a link would sign in. The link stays valid.
    ///
    /// # Errors
    /// When the link is not valid, or the store fails.
    pub async fn sign_in_link_look(&self, token: &str) -> Result<Arc<Account>, ControlError> {
        self.find_link(token).await.map(|(account, _)| account)
    }

    /// Signs in by a link, and uses the link up.
    ///
    /// # Errors
    /// When the link is not valid, or the store fails.
    pub async fn sign_in_link_use(&self, token: &str) -> Result<NewSession, ControlError> {
        let (account, method) = self.find_link(token).await?;
        let (new, row) = self.new_session(account.id.clone(), method)?;
        let (hash, expires_at) = (TokenHash::of(token), new.expires_at);
        self.change_access(async move |this, store| {
            let noted = this.note(this.signs_in(&row)?).await?;
            let used = store.logins().use_link(hash.as_str(), &row, expires_at).await;
            if !used.map_err(ControlError::Store)? {
                return Err(LoginError::DeadLink.into());
            }
            noted.done().await;
            Ok(())
        })
        .await?;
        Ok(new)
    }

    /// The human whom a link would sign in, and the method.
    async fn find_link(&self, token: &str) -> Result<(Arc<Account>, LoginMethod), ControlError> {
        self.login()?;
        let found = self.needed_store()?.logins().find_link(TokenHash::of(token).as_str()).await;
        let found = found.map_err(ControlError::Store)?.ok_or(LoginError::DeadLink)?;
        let account = self.may_sign_in(&found.principal)?;
        Ok((account, LoginMethod::of_link(found.is_invitation)))
    }
}
