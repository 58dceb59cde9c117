//! The wheel, by which pip and uv install the program: `uvx narthex`.
//!
//! The program lies among the scripts of the wheel, so no Python runs when it is started.

use std::io::{Cursor, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use fs_err as fs;
use sha2::{Digest, Sha256};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use super::entry::{Entry, sorted};
use super::platform::Platform;
use super::product::{LICENSE, Product, SUMMARY};

/// The oldest version of macOS that the Rust toolchain supports, by processor.
const MACOS: [(&str, &str); 2] = [("x86_64", "10_12_x86_64"), ("aarch64", "11_0_arm64")];

/// Writes the wheel.
pub(super) fn make(product: &Product, folder: &Path) -> Result<PathBuf> {
    let version = &product.version;
    let tag = format!("py3-none-{}", platform_tag(product.platform, product.needs.glibc)?);
    let info = format!("narthex-{version}.dist-info");
    let mut entries = vec![
        product.program(&format!("narthex-{version}.data/scripts/narthex")),
        Entry::file(format!("{info}/METADATA"), metadata(product)),
        Entry::file(
            format!("{info}/WHEEL"),
            format!(
                "Wheel-Version: 1.0\nGenerator: narthex xtask {version}\nRoot-Is-Purelib: false\n\
                 Tag: {tag}\n"
            ),
        ),
        product.license(&format!("{info}/licenses/LICENSE")),
    ];
    entries.push(record(&entries, &info));
    let file = folder.join(format!("narthex-{version}-{tag}.whl"));
    fs::write(&file, zipped(entries)?)?;
    Ok(file)
}

/// The part of the tag that says on which systems the program runs.
fn platform_tag(platform: &Platform, glibc: Option<(u32, u32)>) -> Result<String> {
    match (platform.os, glibc) {
        ("linux", Some((major, minor))) => {
            Ok(format!("manylinux_{major}_{minor}_{}", platform.arch))
        }
        ("macos", _) => {
            let tag = MACOS.iter().find(|(arch, _)| *arch == platform.arch);
            let (_, tag) = tag.with_context(|| format!("no tag for {}", platform.arch))?;
            Ok(format!("macosx_{tag}"))
        }
        (os, _) => bail!("a wheel has no tag for {os} without a version of glibc"),
    }
}

fn metadata(product: &Product) -> Vec<u8> {
    let mut text = format!(
        "Metadata-Version: 2.4\nName: narthex\nVersion: {}\nSummary: {SUMMARY}\n\
         License-Expression: {LICENSE}\nLicense-File: LICENSE\n\
         Description-Content-Type: text/markdown\n\n",
        product.version
    )
    .into_bytes();
    text.extend_from_slice(&product.readme("").bytes);
    text
}

/// The list of all files with their hashes, in which it has none itself.
fn record(entries: &[Entry], info: &str) -> Entry {
    let path = format!("{info}/RECORD");
    let mut text = String::new();
    for Entry { path, bytes, .. } in entries {
        let hash = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(bytes));
        text.push_str(&format!("{path},sha256={hash},{}\n", bytes.len()));
    }
    text.push_str(&format!("{path},,\n"));
    Entry::file(path, text)
}

fn zipped(entries: Vec<Entry>) -> Result<Vec<u8>> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for entry in sorted(entries) {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .compression_level(Some(9))
            // The earliest time that the format has, which is that of all packages.
            .last_modified_time(DateTime::default())
            .unix_permissions(entry.mode());
        zip.start_file(&entry.path, options)?;
        zip.write_all(&entry.bytes)?;
    }
    Ok(zip.finish()?.into_inner())
}

/// A virtual environment of Python with one wheel, which is fetched from nowhere.
pub(super) fn install(wheel: &Path, environment: &Path) -> Result<()> {
    let python = crate::peers::install::interpreter()?;
    crate::process::run(Command::new(python).args(["-m", "venv"]).arg(environment))?;
    let mut pip = Command::new(environment.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    crate::process::run(pip.args(["--no-index", "--no-deps"]).arg(wheel))
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::super::platform::PLATFORMS;
    use super::super::product::tests::product;
    use super::*;

    #[test]
    fn tags_name_the_oldest_system() {
        let tag = |at: usize, glibc| platform_tag(&PLATFORMS[at], glibc);
        assert_eq!(tag(0, Some((2, 34))).unwrap(), "manylinux_2_34_x86_64");
        assert_eq!(tag(1, Some((2, 28))).unwrap(), "manylinux_2_28_aarch64");
        assert_eq!(tag(3, None).unwrap(), "macosx_11_0_arm64");
        assert!(tag(0, None).is_err());
    }

    #[test]
    fn a_wheel_lists_each_file_with_its_hash_and_is_equal_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let file = make(&product(), folder.path()).unwrap();
        let bytes = fs::read(&file).unwrap();
        let mut zip = zip::ZipArchive::new(Cursor::new(&bytes)).unwrap();
        let mut found = Vec::new();
        for at in 0..zip.len() {
            let mut one = zip.by_index(at).unwrap();
            let mut content = Vec::new();
            one.read_to_end(&mut content).unwrap();
            found.push((
                one.name().unwrap().into_owned(),
                one.unix_mode().unwrap() & 0o777,
                content,
            ));
        }
        let (_, _, record) = found.iter().find(|(name, ..)| name.ends_with("/RECORD")).unwrap();
        let record = String::from_utf8(record.clone()).unwrap();
        assert_eq!(record.lines().count(), found.len());
        for (name, _, content) in found.iter().filter(|(name, ..)| !name.ends_with("/RECORD")) {
            let hash = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(content));
            let line = format!("{name},sha256={hash},{}\n", content.len());
            assert!(record.contains(&line), "no {line} in {record}");
        }
        let script = found.iter().find(|(name, ..)| name.ends_with(".data/scripts/narthex"));
        assert_eq!(script.unwrap().1, 0o755);
        make(&product(), folder.path()).unwrap();
        assert_eq!(fs::read(&file).unwrap(), bytes, "two runs differ");
    }
}
