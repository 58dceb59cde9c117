//! The platforms of releases, under the names that each kind of package has for them.

use anyhow::{Context, Result};

/// A platform.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Platform {
    /// The operating system, as Rust names it.
    pub(super) os: &'static str,
    /// The processor, as Rust names it.
    pub(super) arch: &'static str,
    /// `process.platform` of Node.
    pub(super) node_os: &'static str,
    /// `process.arch` of Node.
    pub(super) node_arch: &'static str,
    /// The blocks of a formula that hold on this platform.
    pub(super) brew: [&'static str; 2],
}

/// All platforms of a release.
pub(super) const PLATFORMS: [Platform; 4] = [
    Platform {
        os: "linux",
        arch: "x86_64",
        node_os: "linux",
        node_arch: "x64",
        brew: ["on_linux", "on_intel"],
    },
    Platform {
        os: "linux",
        arch: "aarch64",
        node_os: "linux",
        node_arch: "arm64",
        brew: ["on_linux", "on_arm"],
    },
    Platform {
        os: "macos",
        arch: "x86_64",
        node_os: "darwin",
        node_arch: "x64",
        brew: ["on_macos", "on_intel"],
    },
    Platform {
        os: "macos",
        arch: "aarch64",
        node_os: "darwin",
        node_arch: "arm64",
        brew: ["on_macos", "on_arm"],
    },
];

impl Platform {
    /// The platform of this machine.
    pub(super) fn current() -> Result<&'static Self> {
        let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
        PLATFORMS
            .iter()
            .find(|one| one.os == os && one.arch == arch)
            .with_context(|| format!("no packages are made for {os} on {arch}"))
    }

    /// The end of names of files, such as `linux-x86_64`.
    pub(super) fn suffix(&self) -> String {
        format!("{}-{}", self.os, self.arch)
    }

    /// The name of the architecture at Debian and in images: `amd64` or `arm64`.
    pub(super) fn debian_arch(&self) -> &'static str {
        if self.arch == "x86_64" { "amd64" } else { "arm64" }
    }

    /// The name of the package of npm with the program.
    pub(super) fn npm_package(&self) -> String {
        format!("@narthex/{}-{}", self.node_os, self.node_arch)
    }
}
