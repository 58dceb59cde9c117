//! The package of Debian and its relatives: the program, its texts, and units of systemd that start
//! nothing until an administrator enables them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::archive::gz;
use super::build::Needs;
use super::entry::{Entry, TIME, write_all};
use super::product::{Product, SUMMARY};
use crate::peers::install;
use crate::process;

/// The address that Debian's form of a package requires. It reaches no one.
const MAINTAINER: &str = "The narthex project <packages@narthex.invalid>";
const CONFIG: &str = "etc/narthex/mcp.json";
/// The scripts that dpkg runs.
const SCRIPTS: [&str; 3] = ["postinst", "postrm", "prerm"];

/// Writes the package with `dpkg-deb`.
pub(super) fn make(product: &Product, folder: &Path) -> Result<PathBuf> {
    install::provide("dpkg-deb", &["--version"], &["dpkg"])?;
    let root = tempfile::tempdir()?;
    let files = files(product)?;
    write_all(&files, root.path())?;
    write_all(&control(product, &files, root.path())?, root.path())?;
    let Product { version, platform, .. } = product;
    let file = folder.join(format!("narthex_{version}_{}.deb", platform.debian_arch()));
    let mut command = Command::new("dpkg-deb");
    command.env("SOURCE_DATE_EPOCH", TIME.to_string());
    // The newest compression that all supported releases of Debian and Ubuntu can read.
    command.args(["--root-owner-group", "-Zxz", "--build"]).arg(root.path()).arg(&file);
    process::run(&mut command)?;
    Ok(file)
}

/// The files that are installed.
fn files(product: &Product) -> Result<Vec<Entry>> {
    let share = "usr/share";
    let mut files = vec![
        product.program("usr/bin/narthex"),
        product.completion("narthex.bash", &format!("{share}/bash-completion/completions/narthex")),
        product.completion("_narthex", &format!("{share}/zsh/vendor-completions/_narthex")),
        product
            .completion("narthex.fish", &format!("{share}/fish/vendor_completions.d/narthex.fish")),
        Entry::of("usr/lib/systemd/system/narthex.service", "packaging/systemd/system.service")?,
        Entry::of("usr/lib/systemd/user/narthex.service", "packaging/systemd/user.service")?,
        Entry::of(CONFIG, "packaging/debian/mcp.json")?,
        Entry::of(format!("{share}/doc/narthex/copyright"), "packaging/debian/copyright")?,
        Entry::of(format!("{share}/lintian/overrides/narthex"), "packaging/debian/overrides")?,
        Entry::file(format!("{share}/doc/narthex/changelog.gz"), gz(&changelog(product))?),
    ];
    for page in &product.manual {
        let path = format!("{share}/man/man1/{}.gz", page.path);
        files.push(Entry::file(path, gz(&page.bytes)?));
    }
    Ok(files)
}

/// The files by which dpkg knows the package.
fn control(product: &Product, files: &[Entry], root: &Path) -> Result<Vec<Entry>> {
    let size: usize = files.iter().map(|file| file.bytes.len().div_ceil(1024)).sum();
    let text = format!(
        "Package: narthex\nVersion: {}\nArchitecture: {}\nMaintainer: {MAINTAINER}\n\
         Installed-Size: {size}\nDepends: {}\nRecommends: ca-certificates\n\
         Suggests: bubblewrap, fuse3, nodejs\nSection: net\nPriority: optional\n\
         Description: {SUMMARY}\n narthex starts and supervises MCP servers, and gives every \
         client one address\n for all of them. It admits, limits and records each call.\n",
        product.version,
        product.platform.debian_arch(),
        depends(&product.needs)?,
    );
    let mut control = vec![
        Entry::file("DEBIAN/control", text),
        Entry::file("DEBIAN/conffiles", format!("/{CONFIG}\n")),
        Entry::file("DEBIAN/md5sums", md5sums(files, root)?),
    ];
    for script in SCRIPTS {
        let entry = Entry::of(format!("DEBIAN/{script}"), &format!("packaging/debian/{script}"))?;
        control.push(Entry { is_program: true, ..entry });
    }
    Ok(control)
}

/// The packages that the libraries of the program are in, and those of the scripts.
fn depends(needs: &Needs) -> Result<String> {
    let mut packages = vec!["adduser".to_owned()];
    for library in &needs.libraries {
        let package = match (library.as_str(), needs.glibc) {
            ("libgcc_s.so.1", _) => "libgcc-s1".to_owned(),
            (
                "libc.so.6" | "libm.so.6" | "libpthread.so.0" | "libdl.so.2",
                Some((major, minor)),
            ) => {
                format!("libc6 (>= {major}.{minor})")
            }
            (name, _) if name.starts_with("ld-linux") => continue,
            (name, _) => bail!("{name} is in no package of Debian that this knows"),
        };
        if !packages.contains(&package) {
            packages.push(package);
        }
    }
    packages.sort_unstable();
    Ok(packages.join(", "))
}

fn changelog(product: &Product) -> Vec<u8> {
    let text = format!(
        "narthex ({}) unstable; urgency=medium\n\n  * See the list of changes of this release.\n\n \
         -- {MAINTAINER}  Tue, 01 Jan 1980 00:00:00 +0000\n",
        product.version
    );
    text.into_bytes()
}

/// The checksums that dpkg verifies. Settings have none, since administrators change them.
fn md5sums(files: &[Entry], root: &Path) -> Result<String> {
    let mut paths: Vec<_> =
        files.iter().map(|file| file.path.as_str()).filter(|path| *path != CONFIG).collect();
    paths.sort_unstable();
    let output = Command::new("md5sum").args(paths).current_dir(root).output();
    let output = output.context("cannot start md5sum")?;
    anyhow::ensure!(output.status.success(), "md5sum: {}", output.status);
    Ok(String::from_utf8(output.stdout)?)
}

/// The folders and files that lie in the package, as `dpkg-deb --contents` prints them.
#[cfg(test)]
fn contents(file: &Path) -> String {
    let output = Command::new("dpkg-deb").arg("--contents").arg(file).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[cfg(test)]
mod tests {
    use fs_err as fs;

    use super::super::product::tests::product;
    use super::*;
    use crate::process::answers;

    /// the package names the libraries that the program needs.
    #[test]
    fn a_package_depends_on_what_the_program_needs() {
        let needs = product().needs;
        assert_eq!(depends(&needs).unwrap(), "adduser, libc6 (>= 2.34), libgcc-s1");
        let unknown = Needs { libraries: vec!["libssl.so.3".to_owned()], ..needs };
        assert!(depends(&unknown).unwrap_err().to_string().contains("libssl.so.3"));
    }

    /// an installation enables and starts no unit; an update restarts one that runs.
    #[test]
    fn scripts_start_nothing() {
        for script in SCRIPTS {
            let entry = Entry::of(script, &format!("packaging/debian/{script}")).unwrap();
            let text = String::from_utf8(entry.bytes).unwrap();
            let called = text.lines().filter(|line| line.contains("systemctl"));
            let verbs = called.map(|line| line.split_whitespace().nth(1).unwrap());
            for verb in verbs {
                assert!(["daemon-reload", "try-restart", "disable"].contains(&verb), "{verb}");
            }
        }
    }

    /// the package is the same each time that it is made.
    #[test]
    fn a_package_belongs_to_root_and_is_equal_each_time() {
        if !answers("dpkg-deb", &["--version"]) {
            eprintln!("SKIPPED: dpkg-deb is not installed");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let file = make(&product(), folder.path()).unwrap();
        let first = fs::read(&file).unwrap();
        let listed = contents(&file);
        for (path, mode) in [
            ("./usr/bin/narthex", "-rwxr-xr-x"),
            ("./usr/lib/systemd/system/narthex.service", "-rw-r--r--"),
            ("./usr/share/man/man1/narthex.1.gz", "-rw-r--r--"),
            ("./etc/narthex/mcp.json", "-rw-r--r--"),
        ] {
            let line = listed.lines().find(|line| line.ends_with(&format!(" {path}")));
            let line = line.unwrap_or_else(|| panic!("no {path} in {listed}"));
            assert!(line.starts_with(mode) && line.contains(" root/root "), "{line}");
        }
        make(&product(), folder.path()).unwrap();
        assert_eq!(fs::read(&file).unwrap(), first, "two runs differ");
    }
}
