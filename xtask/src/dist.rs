//! `cargo xtask dist`: the packages of a release for this platform, in `target/packages`.
//!
//! One program is built, or named with `--binary`, and goes into each package. Packages of the same
//! program are equal byte for byte: entries are sorted, and times and owners are fixed.

mod archive;
mod build;
mod check;
mod deb;
mod entry;
mod formula;
mod image;
mod npm;
mod platform;
mod product;
mod sbom;
mod sums;
mod wheel;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};
use fs_err as fs;

use self::platform::Platform;
use self::product::Product;
use crate::tally::Tally;
use crate::workspace;

#[derive(Args, Default)]
pub(crate) struct Options {
    /// Package this program instead of building one.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Make only these packages.
    #[arg(long, value_name = "PACKAGE")]
    only: Vec<Kind>,
    /// The address of the folder that will have the files, for the formula [default: that of
    /// `target/packages`]
    #[arg(long, value_name = "URL")]
    release_url: Option<String>,
    /// Install each package in a clean place, and call a tool there.
    #[arg(long)]
    check: bool,
}

/// A kind of package.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// An archive with the program, manual pages and completions.
    Tar,
    /// A package of Debian, with units of systemd (Linux).
    Deb,
    /// An image of containers (Linux).
    Image,
    /// Packages of npm.
    Npm,
    /// A package for pip and uv.
    Wheel,
    /// The list of dependencies.
    Sbom,
    /// A formula of Homebrew, with the archives that are in the folder.
    Formula,
}

impl Kind {
    fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    /// True if this machine can make the package.
    fn is_possible(self) -> bool {
        match self {
            Self::Deb | Self::Image => cfg!(target_os = "linux"),
            Self::Tar | Self::Npm | Self::Wheel | Self::Sbom | Self::Formula => true,
        }
    }

    fn needs_program(self) -> bool {
        !matches!(self, Self::Sbom | Self::Formula)
    }

    /// Writes the package, and gives its files. `product` is there for packages that need it.
    fn make(
        self,
        product: Option<&Product>,
        folder: &Path,
        options: &Options,
    ) -> Result<Vec<PathBuf>> {
        let product = || product.context("there is no program for the package");
        Ok(match self {
            Self::Tar => vec![archive::make(product()?, folder)?],
            Self::Deb => vec![deb::make(product()?, folder)?],
            Self::Image => image::make(product()?, folder)?,
            Self::Npm => npm::make(product()?, folder)?,
            Self::Wheel => vec![wheel::make(product()?, folder)?],
            Self::Sbom => vec![sbom::make(folder)?],
            Self::Formula => vec![formula::make(folder, options.release_url.as_deref())?],
        })
    }
}

/// Makes the chosen packages, and tries them if asked. False if one has failed.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let platform = Platform::current()?;
    let folder = folder();
    let chosen = chosen(options);
    if options.only.is_empty() && folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let mut files = Vec::new();
    let product = match chosen.iter().any(|kind| kind.needs_program()) {
        true => Some(product(options, platform)?),
        false => None,
    };
    for kind in &chosen {
        println!("== {}", kind.name());
        let made = kind.make(product.as_ref(), &folder, options).with_context(|| kind.name())?;
        for file in &made {
            println!("{}", file.display());
        }
        files.extend(made.into_iter().map(|file| (*kind, file)));
    }
    println!("{}", sums::write(&folder)?.display());
    match (options.check, product) {
        (true, Some(product)) => check::run(&product, &files),
        (true, None) => check::run_documents(&files),
        (false, _) => Ok(true),
    }
}

/// Builds the program, makes all packages and tries each, for a step of a longer run.
pub(crate) fn check_all() -> Result<Tally> {
    let is_good = run(&Options { check: true, ..Options::default() })?;
    ensure!(is_good, "a package does not work, see above");
    Ok(Tally { passed: 1, failed: 0 })
}

fn chosen(options: &Options) -> Vec<Kind> {
    let all = Kind::value_variants().iter().copied().filter(|kind| kind.is_possible());
    all.filter(|kind| options.only.is_empty() || options.only.contains(kind)).collect()
}

fn product(options: &Options, platform: &'static Platform) -> Result<Product> {
    let binary = match &options.binary {
        Some(binary) => std::path::absolute(binary)?,
        None => build::build()?,
    };
    Product::read(&binary, platform)
}

/// The folder of all packages.
fn folder() -> PathBuf {
    workspace::target().join("packages")
}
