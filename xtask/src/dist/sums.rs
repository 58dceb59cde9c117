//! Checksums of the packages, as `sha256sum --check` reads them.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Result;
use fs_err as fs;
use sha2::{Digest, Sha256};

const NAME: &str = "SHA256SUMS";

/// Writes the checksums of all files of a folder, which have no folders below them.
pub(super) fn write(folder: &Path) -> Result<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_file() && !path.ends_with(NAME) {
            files.push(path);
        }
    }
    files.sort_unstable();
    let mut text = String::new();
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        writeln!(text, "{}  {name}", of(&file)?)?;
    }
    let file = folder.join(NAME);
    fs::write(&file, text)?;
    Ok(file)
}

/// The SHA-256 of a file, in hexadecimal digits.
pub(super) fn of(file: &Path) -> Result<String> {
    let mut hash = Sha256::new();
    io::copy(&mut fs::File::open(file)?, &mut HashWriter(&mut hash))?;
    Ok(hex::encode(hash.finalize()))
}

/// A hash as the end of a copy.
struct HashWriter<'h>(&'h mut Sha256);

impl io::Write for HashWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_but_the_sums_themselves_are_listed_in_order() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("b"), "abc").unwrap();
        fs::write(folder.path().join("a"), "").unwrap();
        write(folder.path()).unwrap();
        let text = fs::read_to_string(write(folder.path()).unwrap()).unwrap();
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(text, format!("{empty}  a\n{abc}  b\n"));
    }
}
