//! The daemon's port as stored in the data directory: `service.json`.
//!
//! Clients and sign-in providers have the port in their settings, so it must not change by itself.
//! The service stores it at its installation, and a daemon in the background at its first start.

use std::num::NonZeroU16;

use serde::{Deserialize, Serialize};

use super::{DataDir, read_json, to_json};
use crate::Failure;

/// The file's content.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ServiceSettings {
    port: NonZeroU16,
}

impl DataDir {
    /// The stored port; `None` if none was chosen yet.
    ///
    /// # Errors
    /// When another user may write the file, or its content is damaged.
    pub fn port(&self) -> Result<Option<NonZeroU16>, Failure> {
        let settings: Option<ServiceSettings> = read_json(&self.service_file())?;
        Ok(settings.map(|settings| settings.port))
    }

    /// Stores the port of later daemons.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn store_port(&self, port: NonZeroU16) -> Result<(), Failure> {
        let settings = ServiceSettings { port };
        Ok(narthex_private::replace(&self.service_file(), &to_json(&settings))?)
    }

    /// The file of the port.
    pub fn service_file(&self) -> std::path::PathBuf {
        self.path.join("service.json")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_port_is_read_back_and_a_damaged_file_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let data = DataDir::open(dir.path()).unwrap();
        assert_eq!(data.port().unwrap(), None);
        let port = NonZeroU16::new(7720).unwrap();
        data.store_port(port).unwrap();
        assert_eq!(data.port().unwrap(), Some(port));
        fs_err::write(data.service_file(), "{\"port\": 0}").unwrap();
        let failure = data.port().unwrap_err();
        assert!(failure.message.contains("service.json is damaged"), "{failure}");
    }
}
