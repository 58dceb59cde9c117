//! Files and folders that only their user may write: checked, read and written as `ssh` does.
//!
//! Such a file says where to send a token, or whom to trust. So it is used only if another user of
//! the machine can neither have written it nor put another in its place: it belongs to the user of
//! this process or to root, neither its group nor others may write it, and the name is no link.

use std::{
    fs::Metadata,
    io::{self, Read, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use rustix::fs::OFlags;

/// The bits of a mode by which the group or others may write.
const WRITE: u32 = 0o022;
/// The bits of a mode by which the group or others may do anything.
const OTHERS: u32 = 0o077;

/// The reason for which a file or folder is not used.
#[derive(Debug, thiserror::Error)]
pub enum PrivateError {
    /// Its owner is another user than root and the user of this process.
    #[error(
        "`{}` belongs to the user with the id {owner}, who can write to it; move it away, or make \
         it yours with `chown {own} {}`",
        path.display(), pasted(path)
    )]
    OtherUser {
        /// The file or folder.
        path: PathBuf,
        /// Its owner.
        owner: u32,
        /// The user of this process.
        own: u32,
    },
    /// Its group or others may write it.
    #[error(
        "`{}` has the mode {mode:04o}, so other users can write to it; check that its content is \
         yours, then close it with `chmod go-w {}`",
        path.display(), pasted(path)
    )]
    Writable {
        /// The file or folder.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// Others may read a file with a secret.
    #[error(
        "`{}` has the mode {mode:04o}, so other users may have read the secret in it; make it \
         private with `chmod 600 {}`",
        path.display(), pasted(path)
    )]
    Readable {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// The name is a symbolic link, or no regular file.
    #[error(
        "`{}` is not a regular file; move it away with `mv {} {}`",
        path.display(), pasted(path), pasted(&aside(path))
    )]
    NoFile {
        /// The path.
        path: PathBuf,
    },
    /// The name of a folder is a link.
    #[error(
        "`{}` is a link, and other users may be able to change its target; remove the link with \
         `rm {}`, and move the folder itself there",
        path.display(), pasted(path)
    )]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// The name is no folder.
    #[error("`{}` is not a folder; name another one", path.display())]
    NoFolder {
        /// The path.
        path: PathBuf,
    },
    /// The system refuses.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl PrivateError {
    /// True if there is nothing of the name.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == io::ErrorKind::NotFound)
    }
}

/// A free name to move a file or folder to, beside it: a file that has the name would be lost.
#[must_use]
pub fn aside(path: &Path) -> PathBuf {
    let named = |end: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        PathBuf::from(name)
    };
    let mut free = named(".old");
    let mut number = 2_u32;
    while free.symlink_metadata().is_ok() {
        free = named(&format!(".old{number}"));
        number += 1;
    }
    free
}

/// The path in quotes, for a command that is pasted into a shell in any folder.
fn pasted(path: &Path) -> String {
    let whole = std::path::absolute(path).unwrap_or_else(|_unknown| path.to_owned());
    format!("'{}'", whole.display().to_string().replace('\'', r"'\''"))
}

/// Checks that a folder is one in which no other user can put or replace anything. The path may
/// lead there over links: the folder itself counts.
///
/// # Errors
/// When the folder does not exist, is no folder, or others may write it.
pub fn check_folder(path: &Path) -> Result<(), PrivateError> {
    let metadata = fs_err::metadata(path)?;
    if !metadata.is_dir() {
        return Err(PrivateError::NoFolder { path: path.to_owned() });
    }
    check(path, &metadata)
}

/// Checks a folder inside one that passed [`check_folder`]: it is no link that leads out.
///
/// It belongs to the user of this process or to root. Its mode does not count, since the outer
/// folder keeps others out.
///
/// # Errors
/// When the folder does not exist, is a link or no folder, or belongs to another user.
pub fn check_inner_folder(path: &Path) -> Result<(), PrivateError> {
    let metadata = fs_err::symlink_metadata(path)?;
    if metadata.is_symlink() {
        return Err(PrivateError::Link { path: path.to_owned() });
    }
    if !metadata.is_dir() {
        return Err(PrivateError::NoFolder { path: path.to_owned() });
    }
    check_owner(path, &metadata)
}

/// Checks a file inside a folder that passed [`check_folder`]: it is no link that leads out, and no
/// other user can have written it.
///
/// # Errors
/// When it is not there, a link, no regular file, or others may write it.
pub fn check_inner_file(path: &Path) -> Result<(), PrivateError> {
    let metadata = fs_err::symlink_metadata(path)?;
    if !metadata.is_file() {
        return Err(PrivateError::NoFile { path: path.to_owned() });
    }
    check(path, &metadata)
}

/// Opens a file to read that no other user can have written. A link is not followed, and a pipe not
/// waited for.
///
/// # Errors
/// When the file cannot be opened, is no regular file, or others may write it.
pub fn open(path: &Path) -> Result<fs_err::File, PrivateError> {
    let mut options = fs_err::OpenOptions::new();
    options.read(true);
    let file = open_with(path, &mut options)?;
    check(path, &file.metadata()?)?;
    Ok(file)
}

/// Opens a file to read and write, made for its owner alone where there is none. It is not cut.
///
/// # Errors
/// When the file cannot be opened, is no regular file, or others may write it.
pub fn open_or_create(path: &Path) -> Result<fs_err::File, PrivateError> {
    let mut options = fs_err::OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    options.options_mut().mode(0o600);
    let file = open_with(path, &mut options)?;
    check(path, &file.metadata()?)?;
    Ok(file)
}

/// Opens or creates a file to write at its end.
///
/// # Errors
/// The errors of [`open_or_create`].
pub fn open_to_append(path: &Path) -> Result<fs_err::File, PrivateError> {
    let mut options = fs_err::OpenOptions::new();
    options.read(true).append(true).create(true);
    options.options_mut().mode(0o600);
    let file = open_with(path, &mut options)?;
    check(path, &file.metadata()?)?;
    Ok(file)
}

/// Reads a file that no other user can have written, at most `most` bytes of it.
///
/// # Errors
/// The errors of [`open`], and when the file cannot be read.
pub fn read(path: &Path, most: u64) -> Result<Vec<u8>, PrivateError> {
    let mut bytes = Vec::new();
    open(path)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Checks a file that a person has named, which may be a link or a pipe: a regular file must be
/// one that no other user can have written.
///
/// # Errors
/// When others may write it. A file that cannot be inspected is left to its reader.
pub fn check_named(path: &Path) -> Result<(), PrivateError> {
    match fs_err::metadata(path) {
        Ok(metadata) if metadata.is_file() => check(path, &metadata),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// The same for a file with a secret. As with the keys of `ssh`, a file of this process's user must
/// not be readable for others.
///
/// # Errors
/// When others may write it, or read a file of this user.
pub fn check_secret(path: &Path) -> Result<(), PrivateError> {
    check_named(path)?;
    let is_open = |found: &Metadata| is_own(found) && found.mode() & OTHERS != 0;
    match fs_err::metadata(path) {
        Ok(metadata) if metadata.is_file() && is_open(&metadata) => {
            let mode = metadata.mode() & 0o7777;
            Err(PrivateError::Readable { path: path.to_owned(), mode })
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Puts a file, for its owner alone, in the place of the old one, at once. It is written under a
/// name that cannot be known before, where no file is.
///
/// # Errors
/// When the file cannot be written.
pub fn replace(path: &Path, text: &[u8]) -> Result<(), PrivateError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut new = tempfile::Builder::new()
        .prefix(".narthex-")
        .permissions(std::fs::Permissions::from_mode(0o600))
        .tempfile_in(folder.unwrap_or(Path::new(".")))?;
    new.write_all(text)?;
    new.persist(path).map_err(|error| error.error)?;
    Ok(())
}

fn open_with(path: &Path, options: &mut fs_err::OpenOptions) -> Result<fs_err::File, PrivateError> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    options.options_mut().custom_flags(flags.bits().cast_signed());
    let no_file = || PrivateError::NoFile { path: path.to_owned() };
    let file = options.open(path).map_err(|error| {
        // For a link the system reports no more than that there are too many.
        let is_link = fs_err::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
        if is_link { no_file() } else { error.into() }
    })?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(no_file()) }
}

fn check(path: &Path, metadata: &Metadata) -> Result<(), PrivateError> {
    check_owner(path, metadata)?;
    let mode = metadata.mode() & 0o7777;
    if mode & WRITE != 0 {
        return Err(PrivateError::Writable { path: path.to_owned(), mode });
    }
    Ok(())
}

fn check_owner(path: &Path, metadata: &Metadata) -> Result<(), PrivateError> {
    let (owner, own) = (metadata.uid(), rustix::process::geteuid().as_raw());
    if owner != own && owner != 0 {
        return Err(PrivateError::OtherUser { path: path.to_owned(), owner, own });
    }
    Ok(())
}

fn is_own(metadata: &Metadata) -> bool {
    metadata.uid() == rustix::process::geteuid().as_raw()
}

/// True if a path still names this open file or folder, and no other one has taken its place. A
/// lock counts only then.
///
/// # Errors
/// When the file or the path cannot be looked at. An absent path is no error.
pub fn is_at(file: &fs_err::File, path: &Path) -> io::Result<bool> {
    let opened = file.metadata()?;
    match fs_err::metadata(path) {
        Ok(found) => Ok((found.dev(), found.ino()) == (opened.dev(), opened.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn place() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs_err::write(&file, "text").unwrap();
        set(&file, 0o644);
        (folder, file)
    }

    fn set(path: &Path, mode: u32) {
        fs_err::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_path_names_an_open_file_until_another_takes_its_place() {
        let (folder, file) = place();
        let (opened, inside) = (open(&file).unwrap(), fs_err::File::open(folder.path()).unwrap());
        assert!(is_at(&opened, &file).unwrap() && is_at(&inside, folder.path()).unwrap());
        fs_err::rename(&file, folder.path().join("away")).unwrap();
        assert!(!is_at(&opened, &file).unwrap());
        fs_err::write(&file, "text").unwrap();
        assert!(!is_at(&opened, &file).unwrap());
    }

    #[test]
    fn a_name_that_is_taken_is_no_place_to_move_a_file_to() {
        let (folder, file) = place();
        for name in ["file.old", "file.old2", "file.old3"] {
            assert_eq!(aside(&file), folder.path().join(name));
            symlink("nowhere", folder.path().join(name)).unwrap();
        }
    }

    #[test]
    fn a_path_writable_for_other_users_is_refused_with_its_remedy() {
        let (folder, file) = place();
        check_folder(folder.path()).unwrap();
        assert_eq!(read(&file, 2).unwrap(), b"te");
        for mode in [0o666, 0o620, 0o602] {
            set(&file, mode);
            let command = format!("`chmod go-w '{}'`", file.display());
            for error in [open(&file).unwrap_err(), check_named(&file).unwrap_err()] {
                assert!(error.to_string().contains(&command), "{error}");
            }
            for error in [open_or_create(&file).unwrap_err(), open_to_append(&file).unwrap_err()] {
                assert!(matches!(error, PrivateError::Writable { .. }), "{error}");
            }
        }
        set(&file, 0o600);
        for mode in [0o777, 0o770, 0o1777] {
            set(folder.path(), mode);
            let error = check_folder(folder.path()).unwrap_err().to_string();
            assert!(error.contains("chmod go-w") && error.contains(&format!("{mode:04o}")));
        }
        set(folder.path(), 0o755);
        check_folder(folder.path()).unwrap();
        assert!(matches!(check_folder(&file).unwrap_err(), PrivateError::NoFolder { .. }));
    }

    #[test]
    fn links_and_pipes_are_not_accepted_as_files() {
        let (folder, file) = place();
        let link = folder.path().join("link");
        symlink(&file, &link).unwrap();
        for error in [open(&link), open_or_create(&link), open_to_append(&link)] {
            assert!(matches!(error.unwrap_err(), PrivateError::NoFile { .. }));
        }
        let dangling = folder.path().join("dangling");
        symlink(folder.path().join("made"), &dangling).unwrap();
        let error = open_or_create(&dangling).unwrap_err();
        assert!(matches!(error, PrivateError::NoFile { .. }), "{error}");
        assert!(!folder.path().join("made").exists());
        assert!(matches!(open(folder.path()).unwrap_err(), PrivateError::NoFile { .. }));
        // A person may name one by a link.
        check_named(&link).unwrap();
        assert!(open(&folder.path().join("absent")).unwrap_err().is_absent());
    }

    #[test]
    fn an_inner_file_must_not_be_a_link_and_a_secret_must_be_private() {
        let (folder, file) = place();
        check_inner_file(&file).unwrap();
        let error = check_secret(&file).unwrap_err().to_string();
        let remedy = format!("`chmod 600 '{}'`", file.display());
        assert!(error.contains("0644") && error.contains(&remedy), "{error}");
        set(&file, 0o600);
        check_secret(&file).unwrap();
        // Such as the end of a pipe.
        check_secret(Path::new("/dev/null")).unwrap();
        let link = folder.path().join("link");
        symlink(&file, &link).unwrap();
        check_secret(&link).unwrap();
        let error = check_inner_file(&link).unwrap_err();
        assert!(matches!(error, PrivateError::NoFile { .. }), "{error}");
        assert!(check_inner_file(&folder.path().join("absent")).unwrap_err().is_absent());
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&file, Some(65_534), None).unwrap();
            let error = check_inner_file(&file).unwrap_err();
            assert!(matches!(error, PrivateError::OtherUser { .. }), "{error}");
        }
    }

    #[test]
    fn an_inner_folder_must_not_be_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (inner, link) = (folder.path().join("inner"), folder.path().join("link"));
        assert!(check_inner_folder(&inner).unwrap_err().is_absent());
        fs_err::create_dir(&inner).unwrap();
        set(&inner, 0o775);
        check_inner_folder(&inner).unwrap();
        symlink(&inner, &link).unwrap();
        let error = check_inner_folder(&link).unwrap_err().to_string();
        assert!(error.contains(&format!("`rm '{}'`", link.display())), "{error}");
        fs_err::remove_file(&link).unwrap();
        fs_err::write(&link, "").unwrap();
        assert!(matches!(check_inner_folder(&link).unwrap_err(), PrivateError::NoFolder { .. }));
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&inner, Some(65_534), None).unwrap();
            let error = check_inner_folder(&inner).unwrap_err().to_string();
            assert!(error.contains("65534") && error.contains("`chown 0 "), "{error}");
        }
    }

    #[test]
    fn a_file_is_replaced_and_no_link_is_followed() {
        let (folder, file) = place();
        let link = folder.path().join("link");
        symlink(&file, &link).unwrap();
        replace(&link, b"new").unwrap();
        assert_eq!(fs_err::read_to_string(&file).unwrap(), "text");
        assert_eq!(read(&link, 100).unwrap(), b"new");
        let mode = fs_err::metadata(&link).unwrap().mode() & 0o777;
        assert_eq!(mode, 0o600);
        assert_eq!(fs_err::read_dir(folder.path()).unwrap().count(), 2, "nothing is left over");
    }
}
