//! The image for containers, from nothing but the program and what it needs: its libraries,
//! certificates of authorities, one user that is not root, and a folder for data.
//!
//! `buildah` writes it twice: in the format of the Open Container Initiative, and in that of
//! Docker, which alone can have a health check.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use fs_err as fs;
use tar::{Archive, Builder};

use super::archive;
use super::entry::{Entry, TIME, sorted, write_all};
use super::product::{LICENSE, Product, SUMMARY};
use crate::peers::install;
use crate::process;

/// The user of the daemon, a number that no distribution gives to another.
pub(super) const USER: u32 = 65532;
/// The folder of the data, which is to be a volume.
pub(super) const DATA: &str = "/var/lib/narthex";
/// The folder of settings and servers.
pub(super) const CONFIG: &str = "/etc/narthex";

const CERTIFICATES: &str = "etc/ssl/certs/ca-certificates.crt";
const STEP: Duration = Duration::from_secs(300);
/// Exit code 1 unless the daemon of the data directory runs.
const HEALTH: &str = "CMD narthex daemon status --quiet";

/// Containers and images in a folder of their own, so that those of the machine stay as they are.
pub(super) struct Store {
    folder: tempfile::TempDir,
}

impl Store {
    pub(super) fn new() -> Result<Self> {
        install::provide("buildah", &["--version"], &["buildah"])?;
        // Below the folder for builds: the one for temporary files may be in memory.
        let folder = crate::workspace::target().join("buildah");
        fs::create_dir_all(&folder)?;
        Ok(Self { folder: tempfile::tempdir_in(folder)? })
    }

    /// A command of buildah.
    pub(super) fn buildah(&self, words: &[&str]) -> Command {
        let mut command = Command::new("buildah");
        // Without it, buildah refuses the health check before it knows in which formats it writes.
        command.env("BUILDAH_FORMAT", "docker");
        let place = |name: &str| self.folder.path().join(name);
        command.arg("--root").arg(place("root")).arg("--runroot").arg(place("run"));
        // Without privileges of mounting, and without namespaces.
        command.args(["--storage-driver", "vfs"]).args(words);
        command
    }

    /// Runs a command, and gives its output.
    pub(super) fn run(&self, words: &[&str]) -> Result<String> {
        let done = process::capture(&mut self.buildah(words), STEP)?;
        let said = format!("{}{}", done.stdout, done.stderr);
        ensure!(done.status.success(), "buildah {}: {}\n{said}", words.join(" "), done.status);
        Ok(done.stdout.trim().to_owned())
    }
}

/// Writes the image in both formats.
pub(super) fn make(product: &Product, folder: &Path) -> Result<Vec<PathBuf>> {
    let store = Store::new()?;
    let arch = product.platform.debian_arch();
    let container = store.run(&["from", "--arch", arch, "scratch"])?;
    let root = tempfile::NamedTempFile::with_suffix(".tar")?;
    fs::write(root.path(), root_file_system(files(product)?)?)?;
    // An archive is unpacked, with the owners and permissions that are in it.
    let archive = root.path().to_str().context("the folder for temporary files is no text")?;
    store.run(&["add", "--quiet", &container, archive, "/"])?;
    configure(&store, &container, product)?;
    let name = archive::name(&product.version, &product.platform.suffix());
    let mut made = Vec::new();
    for (format, transport) in [("oci", "oci-archive"), ("docker", "docker-archive")] {
        let file = folder.join(format!("{name}.{format}.tar"));
        if file.exists() {
            fs::remove_file(&file)?;
        }
        let to = format!("{transport}:{}:narthex:{}", file.display(), product.version);
        let time = TIME.to_string();
        let how = ["commit", "--quiet", "--disable-compression=false", "--format", format];
        store.run(&[how.as_slice(), &["--timestamp", &time, &container, &to]].concat())?;
        equalize_times(&file)?;
        made.push(file);
    }
    Ok(made)
}

/// An archive of all files, and of the folders that the daemon writes to.
fn root_file_system(files: Vec<Entry>) -> Result<Vec<u8>> {
    let mut folders: BTreeMap<String, [u32; 2]> = BTreeMap::new();
    for file in &files {
        let parents = file.path.match_indices('/').map(|(at, _)| &file.path[..at]);
        folders.extend(parents.map(|path| (path.to_owned(), [0o755, 0])));
    }
    let data = DATA.trim_start_matches('/');
    let own = [("tmp", 0o1777, 0), ("var", 0o755, 0), ("var/lib", 0o755, 0), (data, 0o700, USER)];
    folders.extend(own.map(|(path, mode, user)| (path.to_owned(), [mode, user])));
    let mut builder = Builder::new(Vec::new());
    for (path, [mode, user]) in &folders {
        archive::append_folder(&mut builder, path, *mode, *user)?;
    }
    for file in sorted(files) {
        archive::append(&mut builder, &file)?;
    }
    Ok(builder.into_inner()?)
}

/// Gives all entries of an archive one time: `buildah` gives each the time at which it wrote it.
fn equalize_times(file: &Path) -> Result<()> {
    let bytes = fs::read(file)?;
    let mut archive = Archive::new(bytes.as_slice());
    let mut builder = Builder::new(Vec::new());
    for entry in archive.entries()? {
        let mut entry = entry?;
        let mut header = entry.header().clone();
        ensure!(header.path()? == entry.path()?, "the name of {:?} is too long", entry.path()?);
        header.set_mtime(TIME);
        header.set_cksum();
        builder.append(&header, &mut entry)?;
    }
    Ok(fs::write(file, builder.into_inner()?)?)
}

fn configure(store: &Store, container: &str, product: &Product) -> Result<()> {
    let label = |name: &str, value: &str| format!("org.opencontainers.image.{name}={value}");
    let labels = [
        label("title", "narthex"),
        label("description", SUMMARY),
        label("version", &product.version),
        label("licenses", LICENSE),
    ];
    let (user, data) = (format!("{USER}:{USER}"), format!("NARTHEX_DATA={DATA}"));
    let mut words = vec!["config", "--user", &user, "--workingdir", CONFIG, "--volume", DATA];
    words.extend(["--env", "PATH=/usr/bin", "--env", &data, "--env", "HOME=/var/lib/narthex"]);
    words.extend(["--env", "XDG_CONFIG_HOME=/etc"]);
    words.extend([
        "--entrypoint",
        r#"["/usr/bin/narthex"]"#,
        "--cmd",
        "up --config /etc/narthex/mcp.json",
    ]);
    words.extend(["--port", "7717", "--stop-signal", "SIGTERM"]);
    words.extend(["--healthcheck", HEALTH, "--healthcheck-start-period", "20s"]);
    words.extend(["--healthcheck-interval", "30s", "--healthcheck-timeout", "5s"]);
    for label in &labels {
        words.extend(["--label", label]);
    }
    words.push(container);
    store.run(&words)?;
    Ok(())
}

/// The files of the image.
fn files(product: &Product) -> Result<Vec<Entry>> {
    let user = format!("narthex:x:{USER}:{USER}::{DATA}:/sbin/nologin\n");
    let mut files = vec![
        product.program("usr/bin/narthex"),
        product.license("usr/share/doc/narthex/LICENSE"),
        Entry::file("etc/passwd", format!("root:x:0:0::/root:/sbin/nologin\n{user}")),
        Entry::file("etc/group", format!("root:x:0:\nnarthex:x:{USER}:\n")),
        Entry::file("etc/nsswitch.conf", "hosts: files dns\n"),
        Entry::of("etc/narthex/mcp.json", "packaging/debian/mcp.json")?,
    ];
    let certificates = Path::new("/").join(CERTIFICATES);
    if !certificates.exists() {
        install::apt_install(&["ca-certificates"])?;
    }
    files.push(Entry::file(CERTIFICATES, fs::read(certificates)?));
    files.extend(libraries(product)?);
    Ok(files)
}

/// The libraries of this system that the program is linked with, with their licences. A later
/// library of the same name serves a program that was built with an earlier one, so each machine
/// that can build the program has the right ones.
fn libraries(product: &Product) -> Result<Vec<Entry>> {
    let program = tempfile::tempdir()?;
    write_all(&[product.program("narthex")], program.path())?;
    let mut ldd = Command::new("ldd");
    ldd.arg(program.path().join("narthex"));
    let done = process::capture(&mut ldd, STEP)?;
    ensure!(done.status.success(), "ldd cannot read the program: {}", done.stderr);
    let mut files = Vec::new();
    for path in loaded(&done.stdout) {
        // Programs have the path of the loader inside; libraries are found in the usual folders.
        files.push(Entry::program(path.trim_start_matches('/'), fs::read(path)?));
    }
    for package in ["libc6", "libgcc-s1"] {
        let licence = format!("usr/share/doc/{package}/copyright");
        if let Ok(text) = fs::read(Path::new("/").join(&licence)) {
            files.push(Entry::file(licence, text));
        }
    }
    Ok(files)
}

/// The paths in the output of `ldd`.
fn loaded(output: &str) -> Vec<&str> {
    let words = output.lines().filter_map(|line| {
        let path = line.split_once("=> ").map_or(line, |(_, path)| path);
        path.trim().split(' ').next()
    });
    words.filter(|path| path.starts_with('/')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_read_by_path_and_the_kernels_own_has_none() {
        let said = "\tlinux-vdso.so.1 (0x00007ffd)\n\
                    \tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n";
        let wanted = ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"];
        assert_eq!(loaded(said), wanted);
    }

    /// A-16: archives that were written at different times are equal.
    #[test]
    fn archives_of_images_have_no_times() {
        let folder = tempfile::tempdir().unwrap();
        let written = |name: &str, time: u64| {
            let mut builder = Builder::new(Vec::new());
            let mut header = tar::Header::new_gnu();
            header.set_size(3);
            header.set_mtime(time);
            header.set_mode(0o444);
            builder.append_data(&mut header, "blobs/sha256/0", &b"abc"[..]).unwrap();
            let file = folder.path().join(name);
            fs::write(&file, builder.into_inner().unwrap()).unwrap();
            file
        };
        let files = [written("early", 1), written("late", 1_000_000_000)];
        let read = || files.each_ref().map(|file| fs::read(file).unwrap());
        let [early, late] = read();
        assert_ne!(early, late);
        files.iter().for_each(|file| equalize_times(file).unwrap());
        let [early, late] = read();
        assert_eq!(early, late);
        let mut archive = Archive::new(early.as_slice());
        let entry = archive.entries().unwrap().next().unwrap().unwrap();
        assert_eq!((entry.size(), entry.header().mode().unwrap()), (3, 0o444));
    }

    /// The image has no user of a name that the kernel does not know, and none that is root.
    #[test]
    #[cfg(target_os = "linux")]
    fn the_files_of_an_image_have_users_and_certificates() {
        let certificates = Path::new("/").join(CERTIFICATES);
        if !certificates.exists() {
            eprintln!("SKIPPED: ca-certificates are not installed");
            return;
        }
        let this = fs::read(std::env::current_exe().unwrap()).unwrap();
        let product = Product { binary: this, ..super::super::product::tests::product() };
        let files = files(&product).unwrap();
        let text = |path: &str| {
            let found = files.iter().find(|file| file.path == path);
            String::from_utf8_lossy(&found.unwrap_or_else(|| panic!("no {path}")).bytes)
        };
        assert!(text("etc/passwd").contains("narthex:x:65532:65532:"));
        assert!(text(CERTIFICATES).contains("BEGIN CERTIFICATE"));
        assert!(files.iter().any(|file| file.path.ends_with("/libc.so.6")));
    }
}
