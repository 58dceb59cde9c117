//! Archives as `tar` and `gzip` read them: the release's own, and the form of packages of npm.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;
use flate2::{Compression, GzBuilder};
use fs_err as fs;
use tar::{Builder, EntryType, Header};

use super::entry::{Entry, TIME, sorted};
use super::product::Product;

/// Writes the archive of a release, with all files in one folder.
pub(super) fn make(product: &Product, folder: &Path) -> Result<PathBuf> {
    let name = name(&product.version, &product.platform.suffix());
    let mut entries = vec![product.program("narthex"), product.license("LICENSE")];
    entries.push(product.readme("README.md"));
    entries.extend(product.manual.iter().map(|page| page.below("man/man1")));
    entries.extend(product.completions.iter().map(|one| one.below("completions")));
    let entries: Vec<_> = entries.iter().map(|entry| entry.below(&name)).collect();
    let file = folder.join(format!("{name}.tar.gz"));
    fs::write(&file, tar_gz(entries)?)?;
    Ok(file)
}

/// The name of a release's archive, without its ending.
pub(super) fn name(version: &str, suffix: &str) -> String {
    format!("narthex-{version}-{suffix}")
}

/// A compressed archive of the entries.
pub(super) fn tar_gz(entries: Vec<Entry>) -> Result<Vec<u8>> {
    let output = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    let mut builder = Builder::new(output);
    for entry in sorted(entries) {
        append(&mut builder, &entry)?;
    }
    Ok(builder.into_inner()?.finish()?)
}

/// Adds a file that belongs to root.
pub(super) fn append(builder: &mut Builder<impl Write>, entry: &Entry) -> Result<()> {
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::Regular);
    header.set_size(entry.bytes.len() as u64);
    header.set_mode(entry.mode());
    header.set_mtime(TIME);
    header.set_uid(0);
    header.set_gid(0);
    Ok(builder.append_data(&mut header, &entry.path, entry.bytes.as_slice())?)
}

/// Adds a folder of a user.
pub(super) fn append_folder(
    builder: &mut Builder<impl Write>,
    path: &str,
    mode: u32,
    user: u32,
) -> Result<()> {
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::Directory);
    header.set_size(0);
    header.set_mode(mode);
    header.set_mtime(TIME);
    header.set_uid(user.into());
    header.set_gid(user.into());
    Ok(builder.append_data(&mut header, path, std::io::empty())?)
}

/// Bytes compressed as a file of their own.
pub(super) fn gz(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut output = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    output.write_all(bytes)?;
    Ok(output.finish()?)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::GzDecoder;

    use super::super::product::tests::product;
    use super::*;

    fn entries(file: &[u8]) -> Vec<(String, u32, u64, Vec<u8>)> {
        let mut archive = tar::Archive::new(GzDecoder::new(file));
        let read = |entry: std::io::Result<tar::Entry<'_, _>>| {
            let mut entry = entry.unwrap();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).unwrap();
            let header = entry.header();
            let path = entry.path().unwrap().to_str().unwrap().to_owned();
            (path, header.mode().unwrap(), header.mtime().unwrap(), bytes)
        };
        archive.entries().unwrap().map(read).collect()
    }

    /// the archive is the same each time that it is made.
    #[test]
    fn an_archive_has_the_program_its_texts_and_pages_sorted_and_without_times() {
        let folder = tempfile::tempdir().unwrap();
        let file = make(&product(), folder.path()).unwrap();
        let name = file.file_name().unwrap().to_str().unwrap();
        let root = name.strip_suffix(".tar.gz").unwrap();
        let bytes = fs::read(&file).unwrap();
        let found = entries(&bytes);
        let paths: Vec<_> = found.iter().map(|(path, ..)| path.as_str()).collect();
        let mut wanted: Vec<_> = [
            "LICENSE",
            "README.md",
            "completions/_narthex",
            "completions/narthex.bash",
            "completions/narthex.fish",
            "man/man1/narthex.1",
            "narthex",
        ]
        .map(|path| format!("{root}/{path}"))
        .into();
        wanted.sort_unstable();
        assert_eq!(paths, wanted);
        assert!(found.iter().all(|(_, _, time, _)| *time == TIME));
        let (_, mode, _, program) = found.last().unwrap();
        assert_eq!((*mode, program), (0o755, &product().binary));
        make(&product(), folder.path()).unwrap();
        assert_eq!(fs::read(&file).unwrap(), bytes, "two runs differ");
    }
}
