//! Faults of a database before it is ready, without its place.

use sqlx::migrate::MigrateError;

use crate::database::statement::StatementError;

#[derive(Debug)]
pub(crate) enum Fault {
    Foreign,
    NotShared,
    Damaged,
    /// Name of an encoding that cannot store all texts.
    Encoding(String),
    Version(i64),
    Statement(StatementError),
}

impl Fault {
    pub(crate) fn new(step: &'static str, error: sqlx::Error) -> Self {
        match StatementError::new(step, error) {
            StatementError::Damaged { .. } => Self::Damaged,
            other => Self::Statement(other),
        }
    }

    pub(crate) fn of_migration(error: MigrateError) -> Self {
        const STEP: &str = "open.migrate";
        match error {
            MigrateError::VersionMissing(version) | MigrateError::VersionMismatch(version) => {
                Self::Version(version)
            }
            MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => {
                Self::new(STEP, error)
            }
            other => Self::new(STEP, sqlx::Error::Migrate(Box::new(other))),
        }
    }
}
