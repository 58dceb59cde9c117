//! The configuration files of folders that their user has approved (D27), by path and content.

use std::{
    io::Read,
    path::{Path, PathBuf},
};

use fs_err as fs;
use narthex_client::Failure;
use narthex_model::ErrorKind;
use narthex_store::{StatementError, TrustedFiles};
use sha2::{Digest, Sha256};

/// More than any configuration that is accepted.
const TEXT_MAX: u64 = 4 * 1024 * 1024 + 1;

/// A file's text, read once: the approved text is the one that is started.
#[derive(Debug)]
pub(crate) struct Folder {
    /// The file's folder without links, and its name there. A file in two folders counts as two
    /// files, since the folder decides which programs it starts.
    place: PathBuf,
    /// The text of the file.
    pub(crate) text: Vec<u8>,
    /// The client in whose notation the file is read; `None`: narthex's own.
    dialect: Option<String>,
}

/// Approval status of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The user has approved this content at this path.
    Approved,
    /// The user has approved another content.
    Changed,
    /// The user has approved no content.
    Unknown,
}

impl Folder {
    /// Reads it.
    ///
    /// # Errors
    /// When it cannot be read, or is no regular file.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let place = place(path)?;
        if !fs::metadata(&place)?.is_file() {
            let text = format!("{} is not a regular file", path.display());
            return Err(Failure::new(ErrorKind::Invalid, text));
        }
        let mut text = Vec::new();
        fs::File::open(&place)?.take(TEXT_MAX).read_to_end(&mut text)?;
        Ok(Self { place, text, dialect: None })
    }

    /// A text that was read already, of an existing file.
    ///
    /// # Errors
    /// When the file no longer exists.
    pub(crate) fn of(path: &Path, text: &[u8]) -> Result<Self, Failure> {
        Ok(Self { place: place(path)?, text: text.to_vec(), dialect: None })
    }

    /// The file in the notation of a client. One text can name other programs in each notation, so
    /// an approval is for one notation.
    #[must_use]
    pub(crate) fn in_dialect(self, client: &str) -> Self {
        Self { dialect: Some(client.to_owned()), ..self }
    }

    /// The folder that the file is in, without links. A daemon that follows the file works in this
    /// folder, and `${workspaceRoot}` in the file has its path as value.
    #[must_use]
    pub(crate) fn root(&self) -> &Path {
        self.place.parent().unwrap_or(Path::new("/"))
    }

    /// True if it is the file at this absolute path.
    #[must_use]
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        place(path).is_ok_and(|place| place == self.place)
    }

    /// The SHA-256 of the text, as hexadecimal digits.
    #[must_use]
    pub(crate) fn hash(&self) -> String {
        hex::encode(Sha256::digest(&self.text))
    }

    /// The approval status of this content.
    ///
    /// # Errors
    /// When the place is not UTF-8, or the store fails.
    pub(crate) async fn standing(&self, trusted: TrustedFiles<'_>) -> Result<Standing, Failure> {
        let found = trusted.find(&self.place()?).await;
        Ok(match found.map_err(failed)? {
            Some(approved) if approved.sha256 == self.hash() => Standing::Approved,
            Some(_) => Standing::Changed,
            None => Standing::Unknown,
        })
    }

    /// Stores the approval of this content.
    ///
    /// # Errors
    /// The errors of [`Folder::standing`].
    pub(crate) async fn approve(&self, trusted: TrustedFiles<'_>) -> Result<(), Failure> {
        trusted.approve(&self.place()?, &self.hash()).await.map_err(failed)
    }

    /// Programs named by a relative path differ from folder to folder, so a content is approved for
    /// one place. Two places must not have one text, so a place that is no text is refused. A path
    /// begins with `/`, so it never equals the id of a client with a path after it.
    fn place(&self) -> Result<String, Failure> {
        let path = self.place.to_str().ok_or_else(|| {
            let text = format!(
                "the name of {} is not UTF-8, and only such files can be trusted; rename it, or \
                 name it with --config",
                self.place.display()
            );
            Failure::new(ErrorKind::Invalid, text)
        })?;
        Ok(match &self.dialect {
            Some(client) => format!("{client}:{path}"),
            None => path.to_owned(),
        })
    }
}

fn failed(error: StatementError) -> Failure {
    Failure::caused(error.kind(), &error)
}

/// A file's folder without links, and its name there.
fn place(path: &Path) -> Result<PathBuf, Failure> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(fs::canonicalize(path)?);
    };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let place = fs::canonicalize(folder)?.join(name);
    // A link that leads nowhere is no file, either.
    fs::metadata(&place)?;
    Ok(place)
}

#[cfg(test)]
mod tests {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

    use narthex_store::Store;

    use super::*;

    /// D27: approval holds for one content at one place.
    #[tokio::test]
    async fn d27_approval_ends_when_the_content_changes() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("store.db")).await.unwrap();
        let trusted = store.trusted_files();
        let file = dir.path().join("mcp.json");
        fs::write(&file, "{}").unwrap();
        let standing = async || Folder::read(&file).unwrap().standing(trusted).await.unwrap();
        assert_eq!(standing().await, Standing::Unknown);
        Folder::read(&file).unwrap().approve(trusted).await.unwrap();
        assert_eq!(standing().await, Standing::Approved);
        fs::write(&file, "{ }").unwrap();
        assert_eq!(standing().await, Standing::Changed);
        let other = dir.path().join("other.json");
        fs::write(&other, "{}").unwrap();
        let other = Folder::read(&other).unwrap();
        assert_eq!(other.standing(trusted).await.unwrap(), Standing::Unknown);
    }

    /// D27: an approval is for one folder, also where another one links to the file: relative
    /// commands and `${workspaceRoot}` are others there.
    #[tokio::test]
    async fn d27_a_link_in_another_folder_is_not_approved_with_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("store.db")).await.unwrap();
        let trusted = store.trusted_files();
        let [one, two] = ["one", "two"].map(|name| dir.path().join(name));
        [&one, &two].iter().for_each(|folder| fs::create_dir(folder).unwrap());
        let [file, link] = [&one, &two].map(|folder| folder.join("mcp.json"));
        fs::write(&file, "{}").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        Folder::read(&file).unwrap().approve(trusted).await.unwrap();
        let link = Folder::read(&link).unwrap();
        assert_eq!(link.standing(trusted).await.unwrap(), Standing::Unknown);
        assert_eq!(link.root(), fs::canonicalize(two).unwrap());
        // A link to the folder is the same folder.
        let alias = dir.path().join("alias");
        std::os::unix::fs::symlink(&one, &alias).unwrap();
        let same = Folder::read(&alias.join("mcp.json")).unwrap();
        assert_eq!(same.standing(trusted).await.unwrap(), Standing::Approved);
        assert_eq!(same.root(), fs::canonicalize(one).unwrap());
    }

    /// D27: what a client would start is approved for that client, and for nothing else that reads
    /// the same file.
    #[tokio::test]
    async fn d27_an_approval_is_for_one_notation() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("store.db")).await.unwrap();
        let trusted = store.trusted_files();
        let file = dir.path().join("mcp.json");
        fs::write(&file, "{}").unwrap();
        let read = || Folder::read(&file).unwrap();
        read().in_dialect("vscode").approve(trusted).await.unwrap();
        let standing = async |folder: Folder| folder.standing(trusted).await.unwrap();
        assert_eq!(standing(read().in_dialect("vscode")).await, Standing::Approved);
        assert_eq!(standing(read().in_dialect("cursor")).await, Standing::Unknown);
        assert_eq!(standing(read()).await, Standing::Unknown);
        read().approve(trusted).await.unwrap();
        assert_eq!(standing(read().in_dialect("vscode")).await, Standing::Approved);
    }

    /// D27: two places that would have the same text are not taken for one.
    #[tokio::test]
    async fn d27_a_path_that_is_not_utf8_is_not_trusted() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("store.db")).await.unwrap();
        let file = dir.path().join(OsStr::from_bytes(b"\xff.json"));
        fs::write(&file, "{}").unwrap();
        let folder = Folder::read(&file).unwrap();
        let refused = folder.approve(store.trusted_files()).await.unwrap_err();
        assert!(refused.message.contains("--config"), "{refused}");
        assert!(folder.standing(store.trusted_files()).await.is_err());
    }
}
