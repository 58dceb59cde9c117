//! Humans and services of the installation, for operators.

use std::sync::Arc;

use narthex_audit::{AuditEvent, kind};
use narthex_catalog::fields::Fields;
use narthex_model::{PrincipalId, PrincipalKind, PrincipalName};
use narthex_store::NewPrincipal;

use super::{AccessError, Account, change::of_statement};
use crate::{By, Control, ControlError};

impl Control {
    /// All principals, in the order of their ids.
    ///
    /// # Errors
    /// When there is no store.
    pub fn principals(&self) -> Result<Vec<Arc<Account>>, ControlError> {
        self.needed_store()?;
        Ok(self.access().accounts.values().cloned().collect())
    }

    /// The name of a principal for people: `admin` for the holder of this machine's admin token,
    /// and the id of a principal without an account.
    #[must_use]
    pub fn principal_name(&self, id: &PrincipalId) -> String {
        if *id == PrincipalId::local_admin() {
            return PrincipalId::LOCAL_ADMIN_NAME.to_owned();
        }
        let account = self.access().accounts.get(id).cloned();
        account.map_or_else(|| id.to_string(), |account| account.name.to_string())
    }

    /// One principal, by id or by name.
    ///
    /// # Errors
    /// When the principal is unknown, or there is no store.
    pub fn principal(&self, who: &str) -> Result<Arc<Account>, ControlError> {
        self.needed_store()?;
        self.principal_named(who, |_| true)
    }

    /// Creates a human from `{"name": …, "is_operator": …}`.
    ///
    /// # Errors
    /// When a field is wrong, or the name is taken; when there is no store, or the store fails.
    pub async fn principal_create(
        &self,
        text: &[u8],
        by: &By,
    ) -> Result<Arc<Account>, ControlError> {
        let mut fields = Fields::read(text, &["name", "is_operator"])?;
        let name = fields.named("name", PrincipalName::new);
        let is_operator = fields.flag("is_operator").unwrap_or(false);
        if let Some((message, remedy)) = name.as_ref().and_then(PrincipalName::unfit_for_humans) {
            fields.fault("name", message, remedy);
        }
        fields.done()?;
        let name = name.expect("what is missing is a fault");
        let (id, by) = (new_id()?, by.clone());
        self.change_access(async move |this, store| {
            this.is_free(&name)?;
            let event = of_principal(kind::PRINCIPAL_CREATED, &id, by.clone());
            let event = event.with("name", name.as_str()).with("is_operator", is_operator);
            let noted = this.note(event).await?;
            let (id_, by) = (&id, &by.id);
            let (kind, workspace) = (PrincipalKind::Human, None);
            let new = NewPrincipal { id: id_, name: &name, kind, workspace, is_operator, by };
            let created = store.principals().create(new, None).await;
            created.map_err(of_statement(AccessError::NameTaken(name.clone())))?;
            noted.done().await;
            Ok(id)
        })
        .await
        .and_then(|id| self.principal(id.as_str()))
    }

    /// Changes a principal by `{"is_disabled": …, "is_operator": …}`. A disabled principal loses
    /// all permissions at once, and its sign-ins to servers.
    ///
    /// # Errors
    /// When a field is wrong, the principal is unknown, there is no store, or the store fails.
    pub async fn principal_change(
        &self,
        who: &str,
        text: &[u8],
        by: &By,
    ) -> Result<Arc<Account>, ControlError> {
        let mut fields = Fields::read(text, &["is_disabled", "is_operator"])?;
        let (disabled, operator) = (fields.flag("is_disabled"), fields.flag("is_operator"));
        fields.done()?;
        self.needed_store()?;
        let (who, by) = (who.to_owned(), by.clone());
        self.change_access(async move |this, store| {
            let found = this.principal(&who)?;
            if operator == Some(true) && found.kind != PrincipalKind::Human {
                return Err(AccessError::NoHumanOperator(found.name.clone()).into());
            }
            let asked = [("is_disabled", disabled), ("is_operator", operator)];
            let asked: Vec<_> =
                asked.iter().filter_map(|(name, to)| Some((*name, (*to)?))).collect();
            if asked.is_empty() {
                return Ok(found.id.clone());
            }
            let event = of_principal(kind::PRINCIPAL_UPDATED, &found.id, by);
            let event = event.changing(asked.iter().map(|(name, _)| *name));
            let event = asked.iter().fold(event, |event, (name, to)| event.with(*name, *to));
            let noted = this.note(event).await?;
            let principals = store.principals();
            if let Some(is_disabled) = disabled {
                let done = principals.set_disabled(&found.id, is_disabled).await;
                done.map_err(ControlError::Store)?;
            }
            if let Some(is_operator) = operator {
                let done = principals.set_operator(&found.id, is_operator).await;
                done.map_err(ControlError::Store)?;
            }
            noted.done().await;
            Ok(found.id.clone())
        })
        .await
        .and_then(|id| self.principal(id.as_str()))
    }

    /// Checks that no principal has this name, as far as this daemon knows.
    pub(crate) fn is_free(&self, name: &PrincipalName) -> Result<(), AccessError> {
        match self.access().accounts.values().any(|one| one.name == *name) {
            true => Err(AccessError::NameTaken(name.clone())),
            false => Ok(()),
        }
    }
}

/// The event of an action on a principal of the installation.
pub(crate) fn of_principal(kind: &'static str, id: &PrincipalId, by: By) -> AuditEvent<'static> {
    AuditEvent::new(kind, by).on("principal", id.to_string())
}

/// A new id that no principal has.
pub(crate) fn new_id() -> Result<PrincipalId, AccessError> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(AccessError::Randomness)?;
    Ok(PrincipalId::new(&format!("prn_{}", hex::encode(bytes))).expect("it is made by the rule"))
}
