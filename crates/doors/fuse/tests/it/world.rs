//! A folder with a mount, and programs that run in it.

use std::{path::PathBuf, process::Output, sync::Arc, time::Duration};

use narthex_fuse::{MountError, MountOptions, Mounted};
use narthex_model::{Alias, Pid};
use narthex_vfs::Mounted as MountedServer;
use narthex_vfs::{Limits, MountName, Namespace, Process};
use tempfile::TempDir;
use tokio::{
    process::{Child, Command},
    runtime::Handle,
    time::timeout,
};

use crate::device::Fake;

/// Longer than anything here takes: what hangs fails.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct World {
    pub(crate) namespace: Namespace,
    pub(crate) process: Arc<Process>,
    pub(crate) fake: Arc<Fake>,
    pub(crate) of_server: MountedServer,
    pub(crate) mounted: Option<Mounted>,
    folder: TempDir,
}

pub(crate) fn name() -> MountName {
    let pid = Pid::new(1);
    MountName { pid, alias: Alias::new("files").expect("it is one") }
}

impl World {
    /// A mount of one server as `1-files`; `None`, with a notice, where there is no FUSE.
    pub(crate) fn new() -> Option<Self> {
        Self::of(Fake::new())
    }

    pub(crate) fn of(fake: Arc<Fake>) -> Option<Self> {
        Self::bounded(fake, Limits::default())
    }

    pub(crate) fn bounded(fake: Arc<Fake>, limits: Limits) -> Option<Self> {
        if !std::path::Path::new("/dev/fuse").exists() {
            eprintln!("SKIPPED: this machine has no /dev/fuse, so nothing of the mount is tested");
            return None;
        }
        let folder = TempDir::new().expect("there is room");
        let namespace = Namespace::new(limits, None);
        let process = namespace.begin(name().pid, None, &[]).expect("it is the first");
        let of_server = namespace.mount(name(), fake.clone()).expect("nothing is there");
        // One thread: what the kernel asks is taken in turn.
        let options = MountOptions { threads: 1, ..MountOptions::default() };
        let mounted = Mounted::new(process.clone(), folder.path(), &options, Handle::current());
        let mounted = Some(mounted.expect("it can be mounted"));
        Some(Self { namespace, process, fake, of_server, mounted, folder })
    }

    /// The folder of the server.
    pub(crate) fn server(&self) -> PathBuf {
        self.folder.path().join("1-files")
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    /// Mounts the files once more at the same folder.
    pub(crate) fn mount_again(&self) -> Result<Mounted, MountError> {
        let options = MountOptions::default();
        Mounted::new(self.process.clone(), self.folder.path(), &options, Handle::current())
    }

    /// A program in the folder of the server.
    pub(crate) fn command(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(args).current_dir(self.server()).kill_on_drop(true);
        command
    }

    /// Runs a program and returns its output.
    pub(crate) async fn run(&self, program: &str, args: &[&str]) -> Output {
        let output = self.command(program, args).output();
        timeout(PATIENCE, output).await.expect("it ends").expect("it starts")
    }

    /// Runs a script of bash and returns its output; it has to end well.
    pub(crate) async fn bash(&self, script: &str) -> String {
        self.says("bash", &["-c", script]).await
    }

    /// Runs a script of Python and returns its output; it has to end well.
    pub(crate) async fn python(&self, script: &str) -> String {
        self.says("python3", &["-c", script]).await
    }

    /// Waits until a program waits for a read of a file here, or for its size, and the mount knows
    /// of it.
    pub(crate) async fn until_reads(&self, child: &Child) {
        let proc = PathBuf::from(format!("/proc/{}", child.id().expect("it runs")));
        // `read`, `pread64`, `fstat`, `newfstatat` and `statx`.
        let reads = match cfg!(target_arch = "x86_64") {
            true => ["0", "17", "5", "262", "332"],
            false => ["63", "67", "80", "79", "291"],
        };
        let is_reading = || {
            let call = fs_err::read_to_string(proc.join("syscall")).ok()?;
            let mut words = call.split_whitespace();
            let is_read = words.next().is_some_and(|number| reads.contains(&number));
            let fd = u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
            let file = fs_err::read_link(proc.join(format!("fd/{fd}"))).ok()?;
            (is_read && file.starts_with(self.folder.path())).then_some(())
        };
        let waiting = async {
            while is_reading().is_none() {
                tokio::task::yield_now().await;
            }
        };
        self.within(waiting).await;
        // The requests of the kernel are answered in turn: the earlier ones are known by then.
        self.bash("cat ctl/error").await;
    }

    async fn says(&self, program: &str, args: &[&str]) -> String {
        let output = self.run(program, args).await;
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program} {args:?} ended with {}: {said}", output.status);
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    pub(crate) async fn within<T>(&self, step: impl Future<Output = T>) -> T {
        timeout(PATIENCE, step).await.expect("it ends")
    }
}
