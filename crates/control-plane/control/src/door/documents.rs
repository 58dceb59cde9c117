//! Records of the door as JSON, as rows of the store have them.

use serde::{Serialize, de::DeserializeOwned};

use super::fault::DoorFault;

/// Reads a stored record.
pub(super) fn read<T: DeserializeOwned>(document: &str) -> Result<T, DoorFault> {
    serde_json::from_str(document).map_err(|_damaged| DoorFault::Damaged)
}

/// Writes a record.
///
/// # Panics
/// When the record is no JSON: all its members are texts, numbers and keys.
pub(super) fn text_of(record: &impl Serialize) -> String {
    serde_json::to_string(record).expect("a record of the door is JSON")
}
