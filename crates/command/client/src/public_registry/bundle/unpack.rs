//! Unpacks the archive of a bundle into an empty folder.
//!
//! Nothing of an archive is believed: names are checked, bytes are counted while they are written,
//! and no link is ever made, so that a later entry cannot be written through an earlier one. Of a
//! mode only the bit to execute counts. Files and folders are those of this user alone.

use std::{
    io::{BufReader, ErrorKind, Read, Seek, SeekFrom, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::Path,
};

use fs_err as fs;
use zip::{ZipArchive, read::ZipFile};

use super::path::inside;

/// The bits of a mode for the kind of a file, and their values for folders and regular files.
const KIND: u32 = 0o170_000;
const FOLDER: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;
const LINK: u32 = 0o120_000;
/// The bits of a mode by which a program runs as another user or group.
const SPECIAL: u32 = 0o6000;
/// The bytes that are read at a time.
const STEP: usize = 64 * 1024;

/// The beginning of the record at the end of an archive, its length, and that of a comment at most.
const END: [u8; 4] = *b"PK\x05\x06";
const END_LENGTH: u64 = 22;
const COMMENT_MAX: u64 = 0xffff;
/// The record in front of it, if the archive has the form for more than 65,535 entries, and its
/// length.
const LARGE: [u8; 4] = *b"PK\x06\x07";
const LARGE_LENGTH: usize = 20;

/// The limits of an archive.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Number of files and folders.
    pub(super) entries: usize,
    /// Number of bytes of all files together.
    pub(super) bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { entries: 50_000, bytes: 1024 * 1024 * 1024 }
    }
}

/// Writes the files of an archive below a folder. After a failure the folder has some of them.
///
/// # Errors
/// The reason for which the archive is refused, as a clause.
pub(super) fn unpack(
    archive: &Path,
    into: &Path,
    limits: Limits,
    is_stopped: &dyn Fn() -> bool,
) -> Result<(), String> {
    let mut file = BufReader::new(fs::File::open(archive).map_err(|error| error.to_string())?);
    check_end(&mut file)?;
    let mut zip = ZipArchive::new(file).map_err(|error| format!("it is no archive: {error}"))?;
    if zip.len() > limits.entries {
        return Err(format!("it has more than {} files", limits.entries));
    }
    if zip.has_duplicate_names() {
        return Err("it has two files with one name".to_owned());
    }
    let mut writer = Writer { into, left: limits.bytes, limits, is_stopped };
    for index in 0..zip.len() {
        let entry = zip.by_index(index).map_err(|error| format!("a file of it: {error}"))?;
        let name = String::from_utf8_lossy(entry.name_raw()).into_owned();
        writer.write(entry).map_err(|reason| format!("its file `{name}` {reason}"))?;
    }
    Ok(())
}

/// Refuses the form of archives with many entries: its number of them is only known once all are
/// in memory.
fn check_end(file: &mut (impl Read + Seek)) -> Result<(), String> {
    let failed = |error: std::io::Error| error.to_string();
    let length = file.seek(SeekFrom::End(0)).map_err(failed)?;
    let from = length.saturating_sub(END_LENGTH + COMMENT_MAX + LARGE_LENGTH as u64 + 4);
    file.seek(SeekFrom::Start(from)).map_err(failed)?;
    let mut tail = Vec::new();
    file.read_to_end(&mut tail).map_err(failed)?;
    file.rewind().map_err(failed)?;
    for (at, _) in tail.windows(END.len()).enumerate().filter(|(_, bytes)| *bytes == END) {
        let before = at.checked_sub(LARGE_LENGTH).map(|start| &tail[start..]);
        let is_large = before.is_some_and(|bytes| bytes.starts_with(&LARGE));
        let is_full = tail.get(at + 10..at + 12).is_some_and(|count| count == [0xff, 0xff]);
        if is_large || is_full {
            return Err("it has the form of archives with more than 65,535 files".to_owned());
        }
    }
    Ok(())
}

/// Writes entries below a folder.
struct Writer<'w> {
    into: &'w Path,
    /// The number of bytes that may still be written.
    left: u64,
    limits: Limits,
    is_stopped: &'w dyn Fn() -> bool,
}

impl Writer<'_> {
    /// Writes one entry; the reason of a refusal goes on a sentence about it.
    fn write<R: Read>(&mut self, mut entry: ZipFile<'_, R>) -> Result<(), String> {
        let name = std::str::from_utf8(entry.name_raw())
            .map_err(|_other| "has a name that is not UTF-8".to_owned())?;
        let path = self.into.join(inside(name)?);
        let is_folder = name.ends_with('/');
        let mode = mode(entry.external_attributes(), is_folder)?;
        let failed = |error: std::io::Error| match error.kind() {
            ErrorKind::AlreadyExists | ErrorKind::NotADirectory => {
                "has the place of another file".to_owned()
            }
            _ => format!("cannot be written: {error}"),
        };
        if is_folder {
            return folders(&path).map_err(failed);
        }
        folders(path.parent().unwrap_or(self.into)).map_err(failed)?;
        let mut options = fs::OpenOptions::new();
        options.write(true).create_new(true);
        options.options_mut().mode(mode);
        let mut file = options.open(&path).map_err(failed)?;
        let mut buffer = vec![0; STEP];
        loop {
            if (self.is_stopped)() {
                return Err("was not written: the command was stopped".to_owned());
            }
            let count = entry.read(&mut buffer).map_err(|error| format!("is damaged: {error}"))?;
            if count == 0 {
                return Ok(());
            }
            self.left = self.left.checked_sub(count as u64).ok_or_else(|| {
                let most = self.limits.bytes / (1024 * 1024);
                format!("makes it longer than {most} MiB when unpacked")
            })?;
            file.write_all(&buffer[..count]).map_err(failed)?;
        }
    }
}

/// The mode of a file: that of its owner alone, with the bit to execute of the archive.
fn mode(attributes: u32, is_folder: bool) -> Result<u32, &'static str> {
    let mode = attributes >> 16;
    match mode & KIND {
        0 => {}
        FOLDER if is_folder => {}
        REGULAR if !is_folder => {}
        LINK => return Err("is a link"),
        _ => return Err("is neither a file nor a folder"),
    }
    if mode & SPECIAL != 0 {
        return Err("has a mode by which it would run as another user (setuid, setgid)");
    }
    Ok(if mode & 0o111 == 0 { 0o600 } else { 0o700 })
}

/// Makes a folder and those above it.
fn folders(path: &Path) -> std::io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

#[cfg(test)]
mod tests;
