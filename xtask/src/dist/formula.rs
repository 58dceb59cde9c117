//! The formula of Homebrew: one template, with the archives that are in the folder of packages.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use fs_err as fs;

use super::archive;
use super::platform::PLATFORMS;
use super::product::{SUMMARY, VERSION};
use super::sums;
use crate::workspace;

const TEMPLATE: &str = "packaging/homebrew/narthex.rb";

/// Writes the formula for the archives in a folder. `release_url` is the address of a folder that
/// will have them; without one the formula installs from this disk.
///
/// # Errors
/// When there is no archive.
pub(super) fn make(folder: &Path, release_url: Option<&str>) -> Result<PathBuf> {
    let here = format!("file://{}", folder.display());
    let base = release_url.unwrap_or(&here).trim_end_matches('/');
    let mut blocks = String::new();
    for platform in &PLATFORMS {
        let name = format!("{}.tar.gz", archive::name(VERSION, &platform.suffix()));
        let file = folder.join(&name);
        if !file.exists() {
            println!("{} is not there: the formula has no block for it", file.display());
            continue;
        }
        let sum = sums::of(&file)?;
        let [os, processor] = platform.brew;
        blocks.push_str(&format!(
            "\n  {os} do\n    {processor} do\n      url \"{base}/{name}\"\n      \
             sha256 \"{sum}\"\n    end\n  end\n"
        ));
    }
    ensure!(!blocks.is_empty(), "{} has no archive for a formula", folder.display());
    let template = fs::read_to_string(workspace::root().join(TEMPLATE))?;
    let file = folder.join("narthex.rb");
    fs::write(&file, filled(&template, homepage(base), &blocks))?;
    Ok(file)
}

/// The page of the project: the folder of a release lies below it.
fn homepage(base: &str) -> &str {
    base.split_once("/releases/").map_or(base, |(page, _)| page)
}

fn filled(template: &str, homepage: &str, blocks: &str) -> String {
    template
        .replace("@SUMMARY@", SUMMARY)
        .replace("@VERSION@", VERSION)
        .replace("@HOMEPAGE@", homepage)
        .replace("  # @PLATFORMS@\n", blocks.strip_prefix('\n').unwrap_or(blocks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_formula_has_a_block_for_each_archive_that_is_there() {
        let folder = tempfile::tempdir().unwrap();
        assert!(make(folder.path(), None).unwrap_err().to_string().contains("no archive"));
        let archive = folder.path().join(format!("narthex-{VERSION}-linux-x86_64.tar.gz"));
        fs::write(&archive, "abc").unwrap();
        let url = "https://host.example/narthex/releases/download/v1/";
        let text = fs::read_to_string(make(folder.path(), Some(url)).unwrap()).unwrap();
        assert!(!text.contains('@'), "{text}");
        assert_eq!(text.matches("sha256 ").count(), 1);
        for line in [
            format!("      url \"{url}narthex-{VERSION}-linux-x86_64.tar.gz\"\n"),
            // The checksum of `abc`.
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad".to_owned(),
            "homepage \"https://host.example/narthex\"".to_owned(),
        ] {
            assert!(text.contains(&line), "no {line} in {text}");
        }
    }
}
