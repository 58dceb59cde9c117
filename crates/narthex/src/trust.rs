//! Which configuration files of folders their user has approved (D27): by place and content.

use std::{
    collections::BTreeMap,
    io::Read,
    path::{Path, PathBuf},
};

use fs_err as fs;
use narthex_model::ErrorKind;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{
    data_dir::{self, DataDir},
    failure::Failure,
};

/// More than any configuration that is accepted.
const TEXT_MAX: u64 = 4 * 1024 * 1024 + 1;

/// A file's text, read once: what was approved is what is started.
#[derive(Debug)]
pub(crate) struct Folder {
    /// Without links, so that one file has one place.
    place: PathBuf,
    pub(crate) text: Vec<u8>,
}

/// What was approved, in the data directory.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Approved {
    /// The hash of the content by the file's place. Programs named by a relative path differ from
    /// folder to folder, so a content alone is not enough.
    files: BTreeMap<PathBuf, String>,
}

/// How a file stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    Approved,
    /// Another content was approved.
    Changed,
    Unknown,
}

impl Folder {
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let place = fs::canonicalize(path)?;
        if !fs::metadata(&place)?.is_file() {
            let text = format!("{} is not a regular file", path.display());
            return Err(Failure::new(ErrorKind::Invalid, text));
        }
        let mut text = Vec::new();
        fs::File::open(&place)?.take(TEXT_MAX).read_to_end(&mut text)?;
        Ok(Self { place, text })
    }

    pub(crate) fn hash(&self) -> String {
        Sha256::digest(&self.text).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    pub(crate) fn standing(&self, data: &DataDir) -> Result<Standing, Failure> {
        let approved: Approved = data_dir::read_json(&data.trust_file())?.unwrap_or_default();
        Ok(match approved.files.get(&self.place) {
            Some(hash) if *hash == self.hash() => Standing::Approved,
            Some(_) => Standing::Changed,
            None => Standing::Unknown,
        })
    }

    pub(crate) fn approve(&self, data: &DataDir) -> Result<(), Failure> {
        let mut approved: Approved = data_dir::read_json(&data.trust_file())?.unwrap_or_default();
        approved.files.insert(self.place.clone(), self.hash());
        let mut text = serde_json::to_vec_pretty(&approved)
            .map_err(|error| Failure::new(ErrorKind::Bug, error.to_string()))?;
        text.push(b'\n');
        data_dir::write_private(&data.trust_file(), &text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// D27: approval holds for one content at one place.
    #[test]
    fn d27_approval_ends_with_the_content() {
        let dir = tempfile::tempdir().unwrap();
        let data = DataDir::open(&dir.path().join("data")).unwrap();
        let file = dir.path().join("mcp.json");
        fs::write(&file, "{}").unwrap();
        let standing = || Folder::read(&file).unwrap().standing(&data).unwrap();
        assert_eq!(standing(), Standing::Unknown);
        Folder::read(&file).unwrap().approve(&data).unwrap();
        assert_eq!(standing(), Standing::Approved);
        fs::write(&file, "{ }").unwrap();
        assert_eq!(standing(), Standing::Changed);
        let other = dir.path().join("other.json");
        fs::write(&other, "{}").unwrap();
        let other = Folder::read(&other).unwrap();
        assert_eq!(other.standing(&data).unwrap(), Standing::Unknown);
    }
}
