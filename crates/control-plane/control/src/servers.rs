//! Verbs for one server. A change that must outlive a restart is stored before it is made.

use narthex_audit::{AuditEvent, kind};
use narthex_model::Provenance;
use narthex_registry::{
    LogFollower, ServerResult, VerbError,
    config::ConfigWarning,
    layers::{EntryLines, SettingsChange, SettingsFile, entry_lines, place},
};

use crate::{By, Control, ControlError, sign_ins};

/// The change of an entry of the settings that is disabled there.
const ENABLED: &str = r#"{"disabled": null}"#;

/// A stored change of the settings. The server connects in the background (E143).
#[derive(Debug, Clone, PartialEq)]
pub struct Saved {
    /// The server.
    pub name: String,
    /// True if the settings had a server of this name before (E142).
    pub was_there: bool,
    /// Warnings about the entry for people, such as a secret in plain text.
    pub warnings: Vec<ConfigWarning>,
}

impl Control {
    /// Stores a server in the user's settings, and replaces a server of the same name.
    ///
    /// # Errors
    /// When there are no settings, or the entry cannot be used: then nothing is stored.
    pub async fn put_server(
        &self,
        name: &str,
        entry: &str,
        by: &By,
    ) -> Result<Saved, ControlError> {
        let (name, by) = (name.to_owned(), by.clone());
        let change = SettingsChange::Replace(entry.to_owned());
        let put = async move |this: Self| {
            let _together = this.shared.changing.lock().await;
            let was_there = this.settings()?.names().await?.contains(&name);
            let warnings = this.edit(&name, change, by).await?;
            this.reload().await?;
            Ok(Saved { name, was_there, warnings })
        };
        self.to_the_end(put).await
    }

    /// As [`Control::put_server`], but only if the settings have no server of this name (E142).
    ///
    /// # Errors
    /// As for [`Control::put_server`], and when the settings have a server of this name.
    pub async fn add_server(
        &self,
        name: &str,
        entry: &str,
        by: &By,
    ) -> Result<Saved, ControlError> {
        let (name, by) = (name.to_owned(), by.clone());
        let change = SettingsChange::Add(entry.to_owned());
        let add = async move |this: Self| {
            let _together = this.shared.changing.lock().await;
            let warnings = this.edit(&name, change, by).await?;
            this.reload().await?;
            Ok(Saved { name, was_there: false, warnings })
        };
        self.to_the_end(add).await
    }

    /// Changes some fields of a server in the user's settings; null removes a field.
    ///
    /// # Errors
    /// As for [`Control::put_server`], and when the server is not in the settings.
    pub async fn patch_server(
        &self,
        name: &str,
        changes: &str,
        by: &By,
    ) -> Result<Saved, ControlError> {
        let (name, by) = (name.to_owned(), by.clone());
        let change = SettingsChange::Update(changes.to_owned());
        let patch = async move |this: Self| {
            let _together = this.shared.changing.lock().await;
            this.counts_in_settings(this.settings()?, &name).await?;
            let warnings = this.edit(&name, change, by).await?;
            this.reload().await?;
            Ok(Saved { name, was_there: true, warnings })
        };
        self.to_the_end(patch).await
    }

    /// Removes a server from the user's settings; its open calls finish (E40).
    ///
    /// # Errors
    /// When there is no such server, or it is configured elsewhere.
    pub async fn remove_server(&self, name: &str, by: &By) -> Result<(), ControlError> {
        let (name, by) = (name.to_owned(), by.clone());
        let remove = async move |this: Self| {
            let _together = this.shared.changing.lock().await;
            let is_gone = this.counts_in_settings(this.settings()?, &name).await?;
            this.edit(&name, SettingsChange::Remove, by).await?;
            // A server of the same name from another source stays in use and unchanged.
            if is_gone {
                this.forget(&name).await?;
            }
            this.reload().await?;
            Ok(())
        };
        self.to_the_end(remove).await
    }

    /// Disables a server, for this start and all later ones (E57).
    ///
    /// # Errors
    /// When there is no such server, or the store fails: then nothing has changed.
    pub async fn disable(&self, name: &str, by: &By) -> Result<(), ControlError> {
        let (name, by) = (name.to_owned(), by.clone());
        let disable = async move |this: Self| {
            let _together = this.shared.changing.lock().await;
            if this.shared.registry.get(&name).is_none() {
                return Err(VerbError::Unknown(name).into());
            }
            let noted = this.note(this.server_event(kind::SERVER_DISABLED, &name, by)).await?;
            this.remember(&name, true).await?;
            this.shared.registry.disable(&name)?;
            noted.done().await;
            Ok(())
        };
        self.to_the_end(disable).await
    }

    /// Enables a server and waits for the result. An entry of the settings that is disabled there
    /// is changed (E139).
    ///
    /// # Errors
    /// When there is no such server, another file disables it, or the settings or the store fail.
    pub async fn enable(&self, name: &str, by: &By) -> Result<ServerResult, ControlError> {
        let (name, by) = (name.to_owned(), by.clone());
        let enable = async move |this: Self| {
            let _together = this.shared.changing.lock().await;
            let row = this.shared.registry.get(&name);
            let row = row.ok_or_else(|| VerbError::Unknown(name.clone()))?;
            let is_off = row.definition.as_ref().is_some_and(|definition| definition.is_disabled);
            let is_ours = row.provenance == Provenance::Settings && row.file.is_some();
            if is_off && !(is_ours && this.shared.settings.is_some()) {
                let place = place(row.file.as_deref());
                return Err(VerbError::DisabledByConfig { name, place }.into());
            }
            let event = this.server_event(kind::SERVER_ENABLED, &name, by.clone());
            let noted = this.note(event).await?;
            if is_off {
                this.edit(&name, SettingsChange::Update(ENABLED.to_owned()), by).await?;
            }
            this.remember(&name, false).await?;
            if is_off {
                this.reload().await?;
            }
            let enabling = this.shared.registry.enable(&name)?;
            noted.done().await;
            Ok(enabling)
        };
        let enabling = self.to_the_end(enable).await?;
        // Waits without the lock, so that a slow server does not delay other changes.
        Ok(enabling.result().await)
    }

    /// Connects a server anew (E47), and waits for the result.
    ///
    /// # Errors
    /// When there is no such server or nothing to connect.
    pub async fn reconnect(&self, name: &str) -> Result<ServerResult, ControlError> {
        Ok(self.shared.registry.reconnect(name).await?)
    }

    /// The last lines that a server wrote to stderr, over all its starts, the oldest first.
    ///
    /// # Errors
    /// When there is no such server.
    pub fn logs(&self, name: &str) -> Result<Vec<String>, ControlError> {
        let row = self.shared.registry.get(name);
        let row = row.ok_or_else(|| VerbError::Unknown(name.to_owned()))?;
        Ok(row.log.tail())
    }

    /// The lines of a server's entry in its file, as the file is now. `None` for an entry of no
    /// file, and if the file cannot be read or has no such entry any more.
    ///
    /// # Errors
    /// When there is no such server.
    pub async fn entry_lines(&self, name: &str) -> Result<Option<EntryLines>, ControlError> {
        let row = self.shared.registry.get(name);
        let row = row.ok_or_else(|| VerbError::Unknown(name.to_owned()))?;
        let Some(file) = row.file.clone() else { return Ok(None) };
        let (provenance, name) = (row.provenance, name.to_owned());
        let reading = move || entry_lines(&file, provenance, &name);
        tokio::task::spawn_blocking(reading).await.map_err(ControlError::Bug)
    }

    /// The lines of [`Control::logs`], and then each further line, until the server is removed.
    ///
    /// # Errors
    /// When there is no such server.
    pub fn follow_logs(&self, name: &str) -> Result<LogFollower, ControlError> {
        let follower = self.shared.registry.follow_log(name);
        Ok(follower.ok_or_else(|| VerbError::Unknown(name.to_owned()))?)
    }

    /// Runs a change to its end, even if the caller disconnects: the files, the store and the
    /// registry must agree afterwards.
    pub async fn to_the_end<T, F>(&self, verb: impl FnOnce(Self) -> F) -> Result<T, ControlError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, ControlError>> + Send + 'static,
    {
        let done = self.shared.tasks.spawn(verb(self.clone())).await;
        done.unwrap_or_else(|error| Err(ControlError::Bug(error)))
    }

    /// Checks that a change of the settings is possible, makes it, and records it in the audit.
    async fn edit(
        &self,
        name: &str,
        change: SettingsChange,
        by: By,
    ) -> Result<Vec<ConfigWarning>, ControlError> {
        let kind = match change {
            SettingsChange::Remove => kind::SETTINGS_SERVER_REMOVED,
            SettingsChange::Add(_) | SettingsChange::Replace(_) | SettingsChange::Update(_) => {
                kind::SETTINGS_SERVER_SET
            }
        };
        let prepared = self.settings()?.prepare(name, change).await?;
        // The event has names of fields, but no values (X-M61).
        let event = self.server_event(kind, name, by).changing(prepared.fields().to_vec());
        let noted = self.note(event).await?;
        let edited = prepared.store().await?;
        noted.done().await;
        Ok(edited.warnings)
    }

    pub(crate) fn server_event(
        &self,
        kind: &'static str,
        name: &str,
        by: By,
    ) -> AuditEvent<'static> {
        let event = AuditEvent::new(kind, by).in_workspace(&self.shared.workspace);
        event.on("server", name.to_owned())
    }

    async fn remember(&self, name: &str, is_disabled: bool) -> Result<(), ControlError> {
        let Some(store) = &self.shared.store else { return Ok(()) };
        let flags = store.server_flags();
        let storing = flags.set_disabled(&self.shared.workspace, name, is_disabled);
        storing.await.map_err(ControlError::Store)
    }

    /// Removes a server from the registry, with its stored flag and its sign-ins.
    async fn forget(&self, name: &str) -> Result<(), ControlError> {
        if let Some(store) = &self.shared.store {
            let flags = store.server_flags();
            // The server is removed in any case; a leftover flag without a server has no effect.
            if let Err(error) = flags.forget(&self.shared.workspace, name).await {
                tracing::warn!(
                    server.name = name, %error,
                    "the stored flag of a removed server could not be deleted"
                );
            }
        }
        self.shared.registry.remove_server(name)?;
        sign_ins::forget(self, name).await;
        self.drop_sign_ins(name).await;
        Ok(())
    }

    /// Removes the rows of all sign-ins to a server. A server of its name may be another one later,
    /// and gets no tokens of this one.
    async fn drop_sign_ins(&self, name: &str) {
        let Some(store) = &self.shared.store else { return };
        let grants = store.oauth_grants();
        if let Err(error) = grants.drop_server(&self.shared.workspace, name).await {
            tracing::warn!(
                server.name = name, %error,
                "the sign-ins to a removed server could not be deleted"
            );
        }
    }

    fn settings(&self) -> Result<&SettingsFile, ControlError> {
        self.shared.settings.as_ref().ok_or(ControlError::NoSettings)
    }

    /// Refuses changes of servers that are not in the settings (E139). Returns true if the
    /// settings' entry is in use; an entry of the project may override it (E140).
    async fn counts_in_settings(
        &self,
        settings: &SettingsFile,
        name: &str,
    ) -> Result<bool, ControlError> {
        let Some(row) = self.shared.registry.get(name) else { return Ok(true) };
        if row.provenance == Provenance::Settings {
            return Ok(true);
        }
        if settings.names().await?.contains(name) {
            return Ok(false);
        }
        let place = place(row.file.as_deref());
        Err(ControlError::NotOurs { name: name.to_owned(), place })
    }
}
