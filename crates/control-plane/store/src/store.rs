//! The store: opened once, with access to all objects.

use std::{collections::BTreeMap, path::Path, time::SystemTime};

use futures_core::future::BoxFuture;
use narthex_model::{CatalogKind, Secret, WorkspaceId};

use crate::schema::{connect, migrations, open};
use crate::{
    Audit, CatalogRows, CatalogStep, Channels, ConnectError, CostRows, CutRows, Definitions,
    DefinitionsOf, DoorRows, DoorTokens, EnvBindings, EventRows, GrantRequests, GrantRows, Inboxes,
    KeptAnswers, Logins, McpClients, OAuthAttempts, OAuthClients, OAuthGrants, OpenError,
    Principals, Proofs, RestingRows, RunRows, Secrets, SeededDefaults, ServerFlags, ServiceTokens,
    SessionRows, Shares, StatementError, SuspendedRows, TrafficRows, TrustedFiles, Webhooks,
    WorkspaceRulesRows, Workspaces,
    database::Database,
    objects::definitions::{
        numbers,
        statements::{CATALOG_NAMED, LIVE_DECIDED},
    },
};

/// An open store. Clones share it, and several processes may use the same database.
#[derive(Debug, Clone)]
pub struct Store {
    database: Database,
    place: String,
}

impl Store {
    /// Opens the file, or creates it for its owner alone, and migrates it to this program's
    /// version. The folder must exist.
    ///
    /// # Errors
    /// When the file is damaged, newer, not narthex's or not private, or cannot be read or written.
    pub async fn open(path: &Path) -> Result<Self, OpenError> {
        Ok(Self { database: open::open(path).await?, place: path.display().to_string() })
    }

    /// Connects to a database of a PostgreSQL server, by a URL such as
    /// `postgres://user:password@host/database`, and migrates it to this program's version. The
    /// database must exist, and be empty or narthex's own.
    ///
    /// # Errors
    /// When the URL is not valid, the server cannot be reached or refuses, or the database is newer
    /// or not narthex's. No error shows the URL, which may hold a password.
    pub async fn connect(url: &Secret) -> Result<Self, ConnectError> {
        let (database, place) = connect::connect(url.expose()).await?;
        Ok(Self { database, place })
    }

    /// The place of the store, for people: the path of the file, or host, port and database.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The engine of the store, as a word: `SQLite` or `PostgreSQL`.
    #[must_use]
    pub fn engine(&self) -> &'static str {
        match &self.database {
            Database::Sqlite(_) => "SQLite",
            Database::Postgres(_) => "PostgreSQL",
        }
    }

    /// The version of the schema to which this program has migrated the store.
    #[must_use]
    pub fn schema_version(&self) -> i64 {
        migrations::LATEST
    }

    pub(crate) fn database(&self) -> &Database {
        &self.database
    }

    /// Opens the file to read which files of folders are trusted. Creates and changes nothing, also
    /// if another version has written the store. `None` if there is no store, or one from before
    /// files were trusted. An older store may lack other tables.
    ///
    /// # Errors
    /// When the file is damaged, newer, not narthex's or not private, or cannot be read.
    pub fn look(path: &Path) -> BoxFuture<'_, Result<Option<Self>, OpenError>> {
        Box::pin(async move {
            let place = path.display().to_string();
            Ok(open::look(path).await?.map(|database| Self { database, place }))
        })
    }

    /// Opens a database of a PostgreSQL server as [`Store::look`] opens a file. `None` if the
    /// database is empty.
    ///
    /// # Errors
    /// The errors of [`Store::connect`].
    pub fn connect_to_look(url: &Secret) -> BoxFuture<'_, Result<Option<Self>, ConnectError>> {
        Box::pin(async move {
            let looked = connect::look(url.expose()).await?;
            Ok(looked.map(|(database, place)| Self { database, place }))
        })
    }

    /// The workspaces.
    #[must_use]
    pub fn workspaces(&self) -> Workspaces<'_> {
        Workspaces::new(&self.database)
    }

    /// Flags of servers apart from their definitions.
    #[must_use]
    pub fn server_flags(&self) -> ServerFlags<'_> {
        ServerFlags::new(&self.database)
    }

    /// Built-in servers that were seeded before.
    #[must_use]
    pub fn seeded_defaults(&self) -> SeededDefaults<'_> {
        SeededDefaults::new(&self.database)
    }

    /// Files in folders that their user has approved.
    #[must_use]
    pub fn trusted_files(&self) -> TrustedFiles<'_> {
        TrustedFiles::new(&self.database)
    }

    /// Secrets and their sealed values.
    #[must_use]
    pub fn secrets(&self) -> Secrets<'_> {
        Secrets::new(&self.database)
    }

    /// Sessions of agents, over all their runs.
    #[must_use]
    pub fn sessions(&self) -> SessionRows<'_> {
        SessionRows::new(&self.database)
    }

    /// Runs.
    #[must_use]
    pub fn runs(&self) -> RunRows<'_> {
        RunRows::new(&self.database)
    }

    /// Sessions that are due to resume.
    #[must_use]
    pub fn resting(&self) -> RestingRows<'_> {
        RestingRows::new(&self.database)
    }

    /// Suspended sessions.
    #[must_use]
    pub fn suspended(&self) -> SuspendedRows<'_> {
        SuspendedRows::new(&self.database)
    }

    /// The rules of workspaces.
    #[must_use]
    pub fn rules(&self) -> WorkspaceRulesRows<'_> {
        WorkspaceRulesRows::new(&self.database)
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

    /// Proofs of humans: passkeys and identities at providers.
    #[must_use]
    pub fn proofs(&self) -> Proofs<'_> {
        Proofs::new(&self.database)
    }

    /// The tokens of services.
    #[must_use]
    pub fn service_tokens(&self) -> ServiceTokens<'_> {
        ServiceTokens::new(&self.database)
    }

    /// Definitions of a server that runs have seen.
    #[must_use]
    pub fn definitions<'a>(&'a self, of: DefinitionsOf<'a>) -> Definitions<'a> {
        Definitions::new(&self.database, of)
    }

    /// A number for each server of a live configuration, by alias. It changes whenever a human
    /// decides on the server's definitions; 0 before the first decision.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn live_decided(&self, place: &str) -> Result<BTreeMap<String, i64>, StatementError> {
        numbers((&self.database, LIVE_DECIDED), place).await
    }

    /// A number that changes whenever the tools of a workspace's catalog change. Rejected tools do
    /// not count.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn catalog_named(&self, workspace: &WorkspaceId) -> Result<i64, StatementError> {
        let number = numbers((&self.database, CATALOG_NAMED), workspace.as_str()).await?;
        Ok(number.into_values().sum())
    }

    /// The registered MCP clients.
    #[must_use]
    pub fn mcp_clients(&self) -> McpClients<'_> {
        McpClients::new(&self.database)
    }

    /// Programs that ask the door for tokens, their requests, and the consents of humans.
    #[must_use]
    pub fn door(&self) -> DoorRows<'_> {
        DoorRows::new(&self.database)
    }

    /// Codes and tokens of the door.
    #[must_use]
    pub fn door_tokens(&self) -> DoorTokens<'_> {
        DoorTokens::new(&self.database)
    }

    /// Grants of narthex at the authorization servers of others.
    #[must_use]
    pub fn oauth_grants(&self) -> OAuthGrants<'_> {
        OAuthGrants::new(&self.database)
    }

    /// Clients as which narthex is registered at the authorization servers of others.
    #[must_use]
    pub fn oauth_clients(&self) -> OAuthClients<'_> {
        OAuthClients::new(&self.database)
    }

    /// Open sign-ins of narthex at the authorization servers of others.
    #[must_use]
    pub fn oauth_attempts(&self) -> OAuthAttempts<'_> {
        OAuthAttempts::new(&self.database)
    }

    /// The time by the one clock that all daemons on this store share: the server's, or this
    /// machine's for a file.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn now(&self) -> Result<SystemTime, StatementError> {
        self.database.now().await
    }

    /// Channels that agents post to.
    #[must_use]
    pub fn channels(&self) -> Channels<'_> {
        Channels::new(&self.database)
    }

    /// Webhooks, and the outcomes of their deliveries.
    #[must_use]
    pub fn webhooks(&self) -> Webhooks<'_> {
        Webhooks::new(&self.database)
    }

    /// Shares of runs, and the comments on them.
    #[must_use]
    pub fn shares(&self) -> Shares<'_> {
        Shares::new(&self.database)
    }

    /// Bindings of secrets to variables in the environment of agents themselves.
    #[must_use]
    pub fn env_bindings(&self) -> EnvBindings<'_> {
        EnvBindings::new(&self.database)
    }

    /// Events of sessions.
    #[must_use]
    pub fn events(&self) -> EventRows<'_> {
        EventRows::new(&self.database)
    }

    /// Unacknowledged messages.
    #[must_use]
    pub fn inboxes(&self) -> Inboxes<'_> {
        Inboxes::new(&self.database)
    }

    /// Requests of runs for grants.
    #[must_use]
    pub fn grant_requests(&self) -> GrantRequests<'_> {
        GrantRequests::new(&self.database)
    }

    /// Grants of humans.
    #[must_use]
    pub fn grants(&self) -> GrantRows<'_> {
        GrantRows::new(&self.database)
    }

    /// Servers and secrets that active runs have lost.
    #[must_use]
    pub fn cuts(&self) -> CutRows<'_> {
        CutRows::new(&self.database)
    }

    /// Token usage and costs of sessions.
    #[must_use]
    pub fn costs(&self) -> CostRows<'_> {
        CostRows::new(&self.database)
    }

    /// Stored answers to writes with an idempotency key.
    #[must_use]
    pub fn kept_answers(&self) -> KeptAnswers<'_> {
        KeptAnswers::new(&self.database)
    }

    /// Limits of workspaces, and daily counts of calls.
    #[must_use]
    pub fn traffic(&self) -> TrafficRows<'_> {
        TrafficRows::new(&self.database)
    }

    /// The objects of one kind of the catalog.
    #[must_use]
    pub fn catalog(&self, kind: CatalogKind) -> CatalogRows<'_> {
        CatalogRows::new(&self.database, kind)
    }

    /// Makes several changes of the catalog, all of them or none. Returns `false` and changes
    /// nothing if an object has changed since it was read.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn catalog_change(
        &self,
        workspace: &WorkspaceId,
        steps: &[CatalogStep<'_>],
        by: &str,
    ) -> Result<bool, StatementError> {
        crate::objects::catalog::change(&self.database, workspace, steps, by).await
    }

    /// Audit events with their actors.
    #[must_use]
    pub fn audit(&self) -> Audit<'_> {
        Audit::new(&self.database)
    }

    /// Waits for running statements and closes the database, for all clones. Without this no data
    /// is lost, but the next opening of a file takes longer.
    pub fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.database.close())
    }
}
