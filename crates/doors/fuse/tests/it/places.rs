//! The place of a mount, and other mounts there: only mounts of ours are taken away.

use std::{
    error::Error,
    os::fd::AsRawFd,
    path::{Path, PathBuf},
};

use fs_err as fs;
use narthex_fuse::{MountError, MountOptions, Mounted};
use rustix::{
    fs::{Mode, OFlags},
    mount::{MountFlags, UnmountFlags, mount, unmount},
};
use tempfile::TempDir;
use tokio::runtime::Handle;

use crate::world::World;

/// Something else that is mounted, until it is dropped.
struct Other(PathBuf);

impl Other {
    fn files_at(folder: &Path) -> Self {
        let none = None::<&std::ffi::CStr>;
        mount("other", folder, "tmpfs", MountFlags::empty(), none).expect("root may");
        Self(folder.to_owned())
    }

    /// A mount of FUSE that answers no request, as a killed program of another kind leaves it.
    fn dead_at(folder: &Path) -> Self {
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        let device = rustix::fs::open("/dev/fuse", flags, Mode::empty()).expect("it is there");
        let number = device.as_raw_fd();
        let options = format!("fd={number},rootmode=40755,user_id=0,group_id=0");
        let options = std::ffi::CString::new(options).expect("it has no 0");
        let flags = MountFlags::empty();
        mount("other", folder, "fuse", flags, options.as_c_str()).expect("root may");
        Self(folder.to_owned())
    }

    fn is_there(&self) -> bool {
        let path = self.0.canonicalize().expect("it is there");
        sources_at(&path).last().is_some_and(|source| source == "other")
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        if let Err(error) = unmount(&self.0, UnmountFlags::DETACH) {
            eprintln!("it was taken away before: {error}");
        }
    }
}

/// The mounts at a whole path, in the order of the kernel's list.
fn sources_at(path: &Path) -> Vec<String> {
    let info = fs::read("/proc/self/mountinfo").expect("it can be read");
    let info = String::from_utf8_lossy(&info).into_owned();
    let at = |line: &&str| line.split(' ').nth(4) == path.to_str();
    let source = |line: &str| {
        let (_, end) = line.split_once(" - ")?;
        end.split(' ').nth(1).map(str::to_owned)
    };
    info.lines().filter(at).filter_map(source).collect()
}

/// Files of a run at `w1/mcp` of a folder of its own; `None`, with a notice, where it cannot be.
fn nested() -> Option<(World, TempDir, Mounted)> {
    let world = World::new()?;
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: only root can mount something else there");
        return None;
    }
    let folder = TempDir::new().expect("there is room");
    let mcp = folder.path().join("w1/mcp");
    fs::create_dir_all(&mcp).expect("there is room");
    let mounted = mounted(&world, &mcp).expect("it can be mounted");
    Some((world, folder, mounted))
}

fn mounted(world: &World, folder: &Path) -> Result<Mounted, MountError> {
    let options = MountOptions::default();
    Mounted::new(world.process.clone(), folder, &options, Handle::current())
}

async fn unmounted(world: &World, mounted: Mounted) -> Result<(), MountError> {
    let unmounting = tokio::task::spawn_blocking(move || mounted.unmount());
    world.within(unmounting).await.expect("it ran")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_moved_mount_is_unmounted_at_its_new_place() {
    let Some((world, folder, mounted)) = nested() else { return };
    let (old, new) = (folder.path().join("w1"), folder.path().join("w2"));
    fs::rename(&old, &new).expect("no mount is in the way");
    fs::create_dir_all(old.join("mcp")).expect("there is room");
    let other = Other::files_at(&old.join("mcp"));
    assert_eq!(sources_at(&new.join("mcp")), ["narthex"]);
    assert!(mounted.is_mounted().expect("it can be read"));
    unmounted(&world, mounted).await.expect("it is unmounted");
    // Its device tells nothing now: another test may have mounted something with the same one.
    assert!(other.is_there());
    assert!(sources_at(&new.join("mcp")).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mount_covered_by_another_mount_is_reported_and_stays() {
    let Some((world, folder, first)) = nested() else { return };
    let mcp = folder.path().join("w1/mcp");
    let device = first.device().to_owned();
    // Below a mount of its own user, as root cannot be kept from mounting over it.
    let other = Other::files_at(&mcp);
    let error = unmounted(&world, first).await.expect_err("something is in the way");
    assert!(matches!(error, MountError::Stays { .. }), "{error:?}");
    let cause = error.source().expect("it has one").to_string();
    assert!(cause.contains("w1/mcp") && cause.contains("mounted over it"), "{cause}");
    assert!(other.is_there());
    assert_eq!(sources_at(&mcp), ["narthex", "other"]);
    drop(other);
    // The mount is dead by then, as its session is gone or about to end, and it is found again.
    narthex_fuse::free(&device).expect("nothing is in the way any more");
    assert!(sources_at(&mcp).is_empty());
    unmounted(&world, mounted(&world, &mcp).expect("it is free")).await.expect("it is unmounted");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_mount_of_another_program_is_left_alone() {
    let Some((world, folder, _mounted)) = nested() else { return };
    let mcp = folder.path().join("w1/other");
    fs::create_dir(&mcp).expect("there is room");
    let other = Other::dead_at(&mcp);
    let listed = std::fs::read_dir(&mcp).expect_err("no program answers");
    assert_eq!(listed.raw_os_error(), Some(rustix::io::Errno::NOTCONN.raw_os_error()));
    let cleaned = narthex_fuse::clean_up(&mcp);
    let Err(error @ MountError::Foreign { .. }) = cleaned else { panic!("{cleaned:?}") };
    let remedy = format!("umount {}", mcp.display());
    assert!(error.to_string().contains(&remedy), "{error}");
    let again = mounted(&world, &mcp);
    assert!(matches!(again, Err(MountError::Foreign { .. })), "{again:?}");
    assert_eq!(sources_at(&mcp), ["other"]);
    drop(other);
    unmounted(&world, mounted(&world, &mcp).expect("it is free")).await.expect("it is unmounted");
}

#[tokio::test(flavor = "multi_thread")]
async fn mounting_at_a_link_is_refused() {
    let Some((world, folder, _mounted)) = nested() else { return };
    let (target, link) = (folder.path().join("target"), folder.path().join("link"));
    fs::create_dir(&target).expect("there is room");
    std::os::unix::fs::symlink(&target, &link).expect("there is room");
    let again = mounted(&world, &link);
    assert!(matches!(again, Err(MountError::Folder { .. })), "{again:?}");
    assert!(sources_at(&target).is_empty());
    // A path through the link leads to the folder: the path is resolved once, before.
    let resolved = narthex_fuse::resolved(&link).expect("it is one");
    assert_eq!(resolved, target.canonicalize().expect("it is there"));
}
