//! The files that a running daemon reads.

use std::path::Path;

use narthex_client::{Failure, daemon_client::DaemonClient};

/// True if the daemon reads this settings file.
pub(super) async fn follows(client: &DaemonClient, settings: &Path) -> Result<bool, Failure> {
    let files = client.api_all("/api/files").await?;
    let real = |path: &Path| fs_err::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let settings = real(&std::path::absolute(settings)?);
    let mut files = files.iter().filter_map(|file| file["file"].as_str());
    Ok(files.any(|file| real(Path::new(file)) == settings))
}
