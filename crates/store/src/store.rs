//! The store: what is opened once and asked for objects.

use std::path::Path;

use narthex_model::CatalogKind;

use crate::{
    CatalogRows, Logins, OpenError, Principals, Proofs, Secrets, SeededDefaults, ServerFlags,
    ServiceTokens, TrustedFiles, Workspaces, database::Database, open,
};

/// An open store. Clones are the same one; several processes may have the file open at a time.
#[derive(Debug, Clone)]
pub struct Store {
    database: Database,
}

impl Store {
    /// Opens the file, brings it up to this program's version, and makes it, for its owner alone,
    /// if there is none. Its folder must exist.
    ///
    /// # Errors
    /// When the file is damaged, newer, not ours or not private, or cannot be read or written.
    pub async fn open(path: &Path) -> Result<Self, OpenError> {
        Ok(Self { database: open::open(path).await? })
    }

    /// Opens the file to see which files of folders are trusted. Nothing is made or changed, also
    /// where another version has written the store. `None` if there is no store, or one from before
    /// files were trusted. What else an older one lacks cannot be asked for; nothing is written.
    ///
    /// # Errors
    /// When the file is damaged, newer, not ours or not private, or cannot be read.
    pub async fn look(path: &Path) -> Result<Option<Self>, OpenError> {
        Ok(open::look(path).await?.map(|database| Self { database }))
    }

    /// The tenants.
    #[must_use]
    pub fn workspaces(&self) -> Workspaces<'_> {
        Workspaces::new(&self.database)
    }

    /// What is remembered of servers beside their definitions.
    #[must_use]
    pub fn server_flags(&self) -> ServerFlags<'_> {
        ServerFlags::new(&self.database)
    }

    /// Which built-in servers were offered before.
    #[must_use]
    pub fn seeded_defaults(&self) -> SeededDefaults<'_> {
        SeededDefaults::new(&self.database)
    }

    /// Which files of folders their user has approved.
    #[must_use]
    pub fn trusted_files(&self) -> TrustedFiles<'_> {
        TrustedFiles::new(&self.database)
    }

    /// Secrets and their sealed values.
    #[must_use]
    pub fn secrets(&self) -> Secrets<'_> {
        Secrets::new(&self.database)
    }

    /// Humans and services, and their roles.
    #[must_use]
    pub fn principals(&self) -> Principals<'_> {
        Principals::new(&self.database)
    }

    /// Logins of humans.
    #[must_use]
    pub fn logins(&self) -> Logins<'_> {
        Logins::new(&self.database)
    }

    /// What humans prove themselves with.
    #[must_use]
    pub fn proofs(&self) -> Proofs<'_> {
        Proofs::new(&self.database)
    }

    /// The tokens of services.
    #[must_use]
    pub fn service_tokens(&self) -> ServiceTokens<'_> {
        ServiceTokens::new(&self.database)
    }

    /// The objects of one kind of the catalog.
    #[must_use]
    pub fn catalog(&self, kind: CatalogKind) -> CatalogRows<'_> {
        CatalogRows::new(&self.database, kind)
    }

    /// Waits for statements that run and lets go of the file, for all clones. Without this nothing
    /// is lost, but the next to open the file has to tidy up.
    pub async fn close(&self) {
        self.database.close().await;
    }
}
