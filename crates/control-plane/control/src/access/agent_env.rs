//! Secrets for the environment of agents themselves: bound by an admin, by name, and given to the
//! creator of a run (X-M32, X-E59).
//!
//! A binding can only name a secret of its workspace. Values that are stored elsewhere have no such
//! name and cannot be bound (X-E62): tokens of runs, of services and of OAuth, and the keys of the
//! daemon.

use std::collections::{BTreeMap, BTreeSet};

use narthex_audit::{AuditEvent, kind};
use narthex_catalog::fields::Fields;
use narthex_model::{
    AgentEnv, AgentName, CatalogKind, EnvBindingId, EnvName, EnvScope, PreviewId, SecretName,
    SecretReference, WorkspaceId, command::narthex, json::shortened, variable,
};
use narthex_store::{EnvBindingRow, StatementError, Store};
use narthex_vault::VaultError;

use super::{AccessError, change::of_statement};
use crate::{By, CatalogError, Control, ControlError, FieldError, Page};

/// Largest number of bindings of a workspace.
const BINDINGS_MAX: usize = 1000;

/// Names of the variables that the agents of a workspace get.
#[derive(Debug, Clone, Default)]
pub struct EnvNames {
    bindings: Vec<EnvBindingRow>,
}

/// The binding that a request asks for.
struct Asked {
    id: EnvBindingId,
    secret: SecretName,
}

impl EnvNames {
    /// The variables of an agent, each with its secret. A binding for the agent itself overrides
    /// one for the workspace.
    pub fn secrets(&self, agent: &AgentName) -> BTreeMap<EnvName, SecretName> {
        self.of(&EnvScope::Agent(agent.clone()))
    }

    /// The variables of an agent.
    #[must_use]
    pub fn of_agent(&self, agent: &str) -> Vec<EnvName> {
        let agent = AgentName::new(agent).ok();
        agent.map(|agent| self.secrets(&agent).into_keys().collect()).unwrap_or_default()
    }

    fn of(&self, scope: &EnvScope) -> BTreeMap<EnvName, SecretName> {
        let bound_for = |scope: &EnvScope| {
            let scope = scope.clone();
            self.bindings.iter().filter(move |one| one.id.scope == scope)
        };
        let bound = bound_for(&EnvScope::Workspace).chain(bound_for(scope));
        bound.map(|one| (one.id.name.clone(), one.secret.clone())).collect()
    }
}

impl Control {
    /// The bindings of a workspace, page by page in the order of their ids. `scope` selects a kind
    /// of scope; `scope_id` selects one agent or preview environment by its id.
    ///
    /// # Errors
    /// When there is no such workspace or no store, or the store fails.
    pub async fn env_bindings(
        &self,
        workspace: &WorkspaceId,
        (scope, scope_id): (&str, &str),
        after: &str,
        limit: u32,
    ) -> Result<Page<EnvBindingRow>, ControlError> {
        let all = self.env_names(workspace).await?.bindings;
        let is_meant = |one: &EnvBindingRow| {
            (scope.is_empty() || one.id.scope.word() == scope)
                && (scope_id.is_empty() || one.id.scope.id() == scope_id)
        };
        let all = all.into_iter().filter(is_meant).map(|one| (one.id.to_string(), one));
        let Page { items, next } = Page::of(all, |(id, _)| id, after, limit);
        Ok(Page { items: items.into_iter().map(|(_, one)| one).collect(), next })
    }

    /// Names of the variables that agents of a workspace get at their next start.
    ///
    /// # Errors
    /// When there is no such workspace or no store, or the store fails.
    pub async fn env_names(&self, workspace: &WorkspaceId) -> Result<EnvNames, ControlError> {
        let store = self.catalog_store(workspace).await?;
        let bindings = store.env_bindings().all(workspace).await.map_err(ControlError::Store)?;
        Ok(EnvNames { bindings })
    }

    /// Ids of the bindings that reveal a secret to an agent.
    ///
    /// # Errors
    /// When there is no such workspace or no store, or the store fails.
    pub async fn env_bindings_of(
        &self,
        workspace: &WorkspaceId,
        secret: &SecretName,
    ) -> Result<Vec<EnvBindingId>, ControlError> {
        let all = self.env_names(workspace).await?.bindings;
        Ok(all.into_iter().filter(|one| one.secret == *secret).map(|one| one.id).collect())
    }

    /// Creates a binding from `{"scope": …, "scope_id": …, "name": …, "secret": …}`.
    ///
    /// # Errors
    /// When a field is wrong, the agent or the secret does not exist, the binding exists, or there
    /// are too many; when there is no such workspace or no store, or the store fails.
    pub async fn env_binding_create(
        &self,
        workspace: &WorkspaceId,
        text: &[u8],
        by: &By,
    ) -> Result<EnvBindingRow, ControlError> {
        let asked = asked(workspace, text)?;
        Ok(self.env_bind(workspace, asked, false, by).await?.0)
    }

    /// Creates the binding of an id, or gives it another secret: `{"secret": …}`. The flag is true
    /// if the binding existed before.
    ///
    /// # Errors
    /// As for [`Control::env_binding_create`], and when the id is not valid.
    pub async fn env_binding_set(
        &self,
        workspace: &WorkspaceId,
        id: &str,
        text: &[u8],
        by: &By,
    ) -> Result<(EnvBindingRow, bool), ControlError> {
        let mut fields = Fields::read(text, &["secret"])?;
        let secret = fields.named("secret", SecretName::new);
        let known = EnvBindingId::parse(id);
        // Reports a wrong name once: the secret usually has the same name.
        if known.is_none() && secret.is_some() {
            let remedy = "write `agent:AGENT:NAME`, `preview_environment:ID:NAME` or \
                          `workspace:NAME`";
            fields.fault("id", "the path names no binding", remedy);
        }
        if let Some(id) = &known {
            check_name(&mut fields, &id.name);
        }
        fields.done()?;
        let id = known.expect("what is none is a fault");
        let secret = secret.expect("what is missing is a fault");
        self.env_bind(workspace, Asked { id, secret }, true, by).await
    }

    /// Removes a binding: later runs do not get its value. Values that were given before cannot be
    /// taken back.
    ///
    /// # Errors
    /// When the id is unknown; when there is no such workspace or no store, or the store fails.
    pub async fn env_binding_remove(
        &self,
        workspace: &WorkspaceId,
        id: &str,
        by: &By,
    ) -> Result<(), ControlError> {
        let unknown = AccessError::UnknownBinding(shortened(id));
        let (workspace, by, id) = (workspace.clone(), by.clone(), EnvBindingId::parse(id));
        let remove = async move |this: Self| {
            let _together = this.shared.cataloguing.take(&workspace).await;
            let all = this.env_names(&workspace).await?.bindings;
            let found = all.into_iter().find(|one| Some(&one.id) == id.as_ref());
            let found = found.ok_or(unknown)?;
            let store = this.catalog_store(&workspace).await?;
            let noted = this.note(event(kind::ENV_UNBOUND, &workspace, &found.id, by)).await?;
            let removed = store.env_bindings().delete(&workspace, &found.id).await;
            if !removed.map_err(ControlError::Store)? {
                return Err(AccessError::UnknownBinding(found.id.to_string()).into());
            }
            noted.done().await;
            Ok(())
        };
        self.to_the_end(remove).await
    }

    /// The values of the names that a preview environment lists, from the bindings for it and for
    /// the workspace. A name without a binding, or without a set secret, is left out and logged
    /// (X-E64).
    ///
    /// # Errors
    /// When there is no such workspace, no store or no vault, or one of these fails.
    pub async fn preview_env(
        &self,
        workspace: &WorkspaceId,
        preview: &PreviewId,
        listed: &BTreeSet<EnvName>,
    ) -> Result<AgentEnv, ControlError> {
        let scope = EnvScope::PreviewEnvironment(preview.clone());
        let bound = self.env_names(workspace).await?.of(&scope);
        let mut values = BTreeMap::new();
        for name in listed {
            let Some(secret) = bound.get(name) else {
                tracing::warn!(%workspace, %preview, %name, "no secret is bound to this variable");
                continue;
            };
            let reference = SecretReference::newest(secret.clone());
            match self.vault()?.open(workspace, &reference).await {
                Ok(opened) => drop(values.insert(name.clone(), opened.value)),
                Err(VaultError::NotSet(_)) => {
                    tracing::warn!(%workspace, %preview, %name, %secret, "the secret is not set");
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(AgentEnv::new(values))
    }

    async fn env_bind(
        &self,
        workspace: &WorkspaceId,
        asked: Asked,
        may_replace: bool,
        by: &By,
    ) -> Result<(EnvBindingRow, bool), ControlError> {
        let (workspace, by) = (workspace.clone(), by.clone());
        let bind = async move |this: Self| {
            // Locks the catalog, so that no agent is removed in the meantime.
            let _together = this.shared.cataloguing.take(&workspace).await;
            let store = this.catalog_store(&workspace).await?.clone();
            let Asked { id, secret } = &asked;
            this.check_owners(&store, &workspace, &asked).await?;
            let all = store.env_bindings().all(&workspace).await.map_err(ControlError::Store)?;
            let was_there = all.iter().any(|one| one.id == *id);
            if was_there && !may_replace {
                return Err(AccessError::BindingTaken(id.clone()).into());
            }
            if !was_there && all.len() >= BINDINGS_MAX {
                return Err(AccessError::TooManyBindings(BINDINGS_MAX).into());
            }
            let event = event(kind::ENV_BOUND, &workspace, id, by.clone());
            let noted = this.note(event.with("secret", secret.as_str())).await?;
            let bindings = store.env_bindings();
            if was_there {
                let replaced = bindings.replace(&workspace, id, secret, &by.id).await;
                if !replaced.map_err(ControlError::Store)? {
                    return Err(AccessError::UnknownBinding(id.to_string()).into());
                }
            } else {
                let created = bindings.create(&workspace, id, secret, &by.id).await;
                created.map_err(of_statement(AccessError::BindingTaken(id.clone())))?;
            }
            noted.done().await;
            let all = bindings.all(&workspace).await.map_err(ControlError::Store)?;
            let stored = all.into_iter().find(|one| one.id == *id);
            let stored = stored.ok_or_else(|| AccessError::UnknownBinding(id.to_string()))?;
            Ok((stored, was_there))
        };
        self.to_the_end(bind).await
    }

    /// Checks that the agent and the secret of a binding exist.
    async fn check_owners(
        &self,
        store: &Store,
        workspace: &WorkspaceId,
        Asked { id, secret }: &Asked,
    ) -> Result<(), ControlError> {
        let failed = |error: StatementError| ControlError::Store(error);
        let mut faults = Vec::new();
        if let EnvScope::Agent(agent) = &id.scope {
            let agents = store.catalog(CatalogKind::Agent);
            if agents.find(workspace, agent.as_str()).await.map_err(failed)?.is_none() {
                let message = format!("there is no agent `{agent}`");
                faults.push(FieldError::invalid("scope_id", message, "name one of the workspace"));
            }
        }
        let head = store.secrets().head(workspace, secret).await.map_err(failed)?;
        if head.is_none_or(|head| !head.is_set) {
            let message = format!("the secret `{secret}` is not set");
            let remedy = format!("set it with `{}`", narthex("secrets set {}", &[secret]));
            faults.push(FieldError::invalid("secret", message, remedy));
        }
        match faults.is_empty() {
            true => Ok(()),
            false => Err(CatalogError::Refused(faults).into()),
        }
    }
}

fn asked(workspace: &WorkspaceId, text: &[u8]) -> Result<Asked, CatalogError> {
    let mut fields = Fields::read(text, &["scope", "scope_id", "name", "secret"])?;
    let words = format!("it is not one of {}", EnvScope::WORDS.join(", "));
    let known = |word: &str| EnvScope::WORDS.into_iter().find(|one| *one == word).ok_or(&words);
    let word = fields.named("scope", known);
    let id = fields.text("scope_id").unwrap_or_default();
    let name = fields.named("name", EnvName::new);
    if let Some(name) = &name {
        check_name(&mut fields, name);
    }
    let secret = fields.named("secret", SecretName::new);
    // A binding for the whole workspace may give only this workspace's own id.
    let id = if word == Some("workspace") && id == workspace.as_str() { "" } else { id.as_str() };
    let scope = word.and_then(|word| EnvScope::parse(word, id));
    if let (Some(word), None) = (word, &scope) {
        let (message, remedy) = match word {
            "workspace" => ("this is another workspace", "leave it out"),
            "agent" => ("this is not the name of an agent", "name the agent"),
            _ => ("this is not an id", "use 1 to 64 of a-z, 0-9, `_` and `-`"),
        };
        fields.fault("scope_id", message, remedy);
    }
    fields.done()?;
    let missing = "what is missing is a fault";
    let id = EnvBindingId { scope: scope.expect(missing), name: name.expect(missing) };
    Ok(Asked { id, secret: secret.expect(missing) })
}

/// Refuses two kinds of names: variables that steer how programs are found and loaded, and
/// variables by which narthex informs the agent. No secret may replace their values.
fn check_name(fields: &mut Fields, name: &EnvName) {
    if name.as_str().starts_with(variable::OWN_PREFIX) {
        let message =
            format!("names that begin with `{}` are reserved for narthex", variable::OWN_PREFIX);
        fields.fault("name", message, "choose another name");
    } else if variable::steers_programs(name.as_str()) {
        let message =
            format!("`{name}` changes which programs the agent runs, or which code they load");
        fields.fault("name", message, "bind the secret to a name of its own, such as API_TOKEN");
    }
}

fn event(
    kind: &'static str,
    workspace: &WorkspaceId,
    id: &EnvBindingId,
    by: By,
) -> AuditEvent<'static> {
    AuditEvent::new(kind, by).in_workspace(workspace).on("env_binding", id.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(text: &str) -> Vec<String> {
        let team = WorkspaceId::new("team").unwrap();
        match asked(&team, text.as_bytes()) {
            Ok(asked) => vec![asked.id.to_string()],
            Err(CatalogError::Refused(faults)) => {
                faults.iter().map(|fault| format!("{}: {}", fault.field, fault.message)).collect()
            }
            Err(other) => panic!("{other:?}"),
        }
    }

    /// X-E59, X-E63: a request names a scope, a variable and a secret; the id follows from these.
    #[test]
    fn x_e63_the_id_of_a_binding_follows_from_scope_and_variable() {
        let of = |scope: &str| faults(&format!(r#"{{{scope},"name":"A","secret":"S"}}"#));
        assert_eq!(of(r#""scope":"workspace""#), ["workspace:A"]);
        assert_eq!(of(r#""scope":"workspace","scope_id":"team""#), ["workspace:A"]);
        assert_eq!(of(r#""scope":"agent","scope_id":"reader""#), ["agent:reader:A"]);
        let other = of(r#""scope":"workspace","scope_id":"rival""#);
        assert_eq!(other, ["scope_id: this is another workspace"]);
        let no_name = of(r#""scope":"agent","scope_id":"A/B""#);
        assert_eq!(no_name, ["scope_id: this is not the name of an agent"]);
    }

    /// X-E59: a variable that steers programs, or is narthex's own, is refused with its reason.
    #[test]
    fn x_e59_variables_that_steer_programs_are_refused() {
        let of = |name: &str| {
            faults(&format!(r#"{{"scope":"workspace","name":"{name}","secret":"S"}}"#))
        };
        assert_eq!(
            of("NARTHEX_TOKEN"),
            ["name: names that begin with `NARTHEX_` are reserved for narthex"]
        );
        for name in ["PATH", "LD_PRELOAD", "NODE_OPTIONS"] {
            let reason = "changes which programs the agent runs, or which code they load";
            assert_eq!(of(name), [format!("name: `{name}` {reason}")]);
        }
    }
}
