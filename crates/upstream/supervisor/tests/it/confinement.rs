//! Confined children: forbidden parts of the system are gone, and needed ones are there.

use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use narthex_model::{Confinement, ErrorKind, FileAccess, NetworkAccess, ProcessLimits};
use narthex_supervisor::{BaseEnvironment, Process, ProcessSpec, Shim, SpawnError};
use rustix::process::{Signal, kill_process};
use tokio::io::AsyncWriteExt;
use tokio_util::task::TaskTracker;

use crate::support::{in_time, read_all, shell, shim};
use crate::trees::shim_of;

/// Tries one action after the other, and prints the result of each.
const TRIES: &str = r#"
import ctypes, os, socket, sys
def attempt(name, act):
    try:
        act()
        print(name, "ok", flush=True)
    except OSError as error:
        print(name, error.strerror, flush=True)
    except MemoryError:
        print(name, "no memory", flush=True)
libc = ctypes.CDLL(None, use_errno=True)
def call(*arguments):
    if libc.syscall(*arguments) == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
def connect(port):
    socket.create_connection(("127.0.0.1", int(port)), timeout=10).close()
"#;

struct Scene {
    directory: tempfile::TempDir,
}

impl Scene {
    /// `in` may be read, `out` written, `secret` is another program's. `tmp` is the folder for
    /// temporary files of all programs; all of it lies in that of the machine.
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        for folder in ["in", "out", "secret", "tmp"] {
            fs_err::create_dir(directory.path().join(folder)).unwrap();
            fs_err::write(directory.path().join(folder).join("file"), "text").unwrap();
        }
        Self { directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn files(&self) -> Option<FileAccess> {
        Some(FileAccess { read: vec![self.path("in")], write: vec![self.path("out")] })
    }

    /// Runs tries of python; gives their outcomes.
    async fn python(&self, confinement: Confinement, tries: &str) -> String {
        let mut spec = ProcessSpec::new("/usr/bin/python3", self.environment());
        spec.args = vec!["-c".to_owned(), format!("{TRIES}\n{tries}")];
        self.run(spec, confinement).await
    }

    /// The environment of a daemon for which `tmp` is the folder for temporary files.
    fn environment(&self) -> BaseEnvironment {
        BaseEnvironment::from_lookup(|name| match name {
            "TMPDIR" => Some(self.path("tmp").into_os_string()),
            _ => std::env::var_os(name),
        })
    }

    async fn run(&self, mut spec: ProcessSpec, confinement: Confinement) -> String {
        spec.shim = shim();
        spec.confinement = Some(confinement);
        spec.base_environment = self.environment();
        let tracker = TaskTracker::new();
        let (process, mut io) = Process::spawn(spec, &tracker).await.unwrap();
        io.stdin.shutdown().await.unwrap();
        let said = read_all(&mut io).await;
        in_time(process.exited()).await;
        format!("{said}{}", process.log_tail().join("\n"))
    }

    /// The names in the shared folder for temporary files.
    fn left_in_tmp(&self) -> Vec<String> {
        let entries = fs_err::read_dir(self.path("tmp")).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    fn file_tries(&self) -> String {
        let base = self.directory.path().display();
        format!(
            r#"
attempt("read in", lambda: open("{base}/in/file").read())
attempt("write in", lambda: open("{base}/in/file", "w"))
attempt("truncate in", lambda: os.truncate("{base}/in/file", 0))
attempt("write out", lambda: open("{base}/out/new", "w").write("x"))
attempt("read out", lambda: open("{base}/out/file").read())
attempt("read secret", lambda: open("{base}/secret/file").read())
attempt("list secret", lambda: os.listdir("{base}/secret"))
attempt("write secret", lambda: open("{base}/secret/new", "w"))
attempt("write etc", lambda: open("/etc/narthex-test", "w"))
attempt("temporary", lambda: open(os.environ["TMPDIR"] + "/new", "w").write("x"))
attempt("read shared", lambda: open("{base}/tmp/file").read())
attempt("write shared", lambda: open("{base}/tmp/other", "w"))
attempt("list shared", lambda: os.listdir("{base}/tmp"))
attempt("null", lambda: open("/dev/null", "w").write("x"))
"#
        )
    }
}

fn lines(text: &str) -> Vec<&str> {
    text.lines().collect()
}

#[tokio::test]
async fn d22_files_outside_are_denied() {
    let scene = Scene::new();
    let confinement = Confinement { files: scene.files(), ..Confinement::default() };
    let said = scene.python(confinement, &scene.file_tries()).await;
    let expected = [
        "read in ok",
        "write in Permission denied",
        "truncate in Permission denied",
        "write out ok",
        "read out ok",
        "read secret Permission denied",
        "list secret Permission denied",
        "write secret Permission denied",
        "write etc Permission denied",
        "temporary ok",
        "read shared Permission denied",
        "write shared Permission denied",
        "list shared Permission denied",
        "null ok",
    ];
    assert_eq!(lines(&said), expected);
    assert_eq!(fs_err::read_to_string(scene.path("in/file")).unwrap(), "text");
    assert_eq!(scene.left_in_tmp(), ["file"], "its own folder went with it");
}

/// The shared folder for temporary files has other programs' files and sockets. A confined program
/// gets its own folder, which is removed with its process tree, also if the daemon kills it or its
/// shim is killed.
#[tokio::test]
async fn d22_a_confined_program_has_its_own_folder_for_temporary_files() {
    let scene = Scene::new();
    let told = scene.path("out/told");
    let script = format!(
        "mkdir -m 0 \"$TMPDIR/closed\"; printf %s \"$TMPDIR\" > {}; echo ready; sleep 1000",
        told.display()
    );
    let mut found = Vec::new();
    for ends in ["killed", "without its shim"] {
        let mut spec = shell(&script);
        spec.base_environment = scene.environment();
        spec.confinement = Some(Confinement { files: scene.files(), ..Confinement::default() });
        let (process, _io) = crate::support::start(spec, &TaskTracker::new()).await;
        let own = PathBuf::from(fs_err::read_to_string(&told).unwrap());
        assert_eq!(own.parent(), Some(&*scene.path("tmp")), "{ends}");
        assert!(own.join("closed").exists());
        match ends {
            "killed" => process.kill_now(),
            _ => kill_process(shim_of(&process), Signal::KILL).unwrap(),
        }
        in_time(process.exited()).await;
        assert_eq!(scene.left_in_tmp(), ["file"], "{ends}");
        found.push(own);
    }
    assert_ne!(found[0], found[1]);
}

/// All other programs share the folder, as before.
#[tokio::test]
async fn d22_programs_with_unlimited_files_share_the_folder_for_temporary_files() {
    let scene = Scene::new();
    let confinement = Confinement { network: NetworkAccess::None, ..Confinement::default() };
    let said = scene.python(confinement, "print(os.environ['TMPDIR'])").await;
    assert_eq!(said.trim(), scene.path("tmp").display().to_string());
}

/// Processes that a child starts are confined as it is.
#[tokio::test]
async fn d22_children_of_a_confined_child_are_confined() {
    let scene = Scene::new();
    let confinement = Confinement { files: scene.files(), ..Confinement::default() };
    let script = format!("setsid cat {}/secret/file", scene.directory.path().display());
    let said = scene.run(shell(&script), confinement).await;
    assert!(said.contains("Permission denied") && !said.contains("text"), "{said}");
}

/// D22: a program with limited files cannot reach other programs' sockets in the file system, such
/// as the daemon's, wherever they are. It reaches a socket that its entry names.
#[tokio::test]
async fn d22_a_program_with_limited_files_reaches_no_foreign_unix_socket() {
    let scene = Scene::new();
    let places = ["tmp/sock", "secret/sock", "in/sock", "out/sock"].map(|name| scene.path(name));
    let _listeners = places.clone().map(|path| UnixListener::bind(path).unwrap());
    let tries: String = places
        .iter()
        .map(|path| {
            let path = path.display();
            format!("attempt('unix', lambda: socket.socket(socket.AF_UNIX).connect('{path}'))\n")
        })
        .collect();
    let pairs = r#"
attempt("pair", lambda: socket.socketpair())
attempt("datagrams", lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
attempt("tcp", lambda: socket.socket())
attempt("io_uring", lambda: call(425, 8, 0))
"#;
    let no = "Operation not permitted";
    let unix = format!("unix {no}");
    let (datagrams, io_uring) = (format!("datagrams {no}"), format!("io_uring {no}"));
    let expected = [&*unix, &unix, &unix, &unix, "pair ok", &datagrams, "tcp ok", &io_uring];
    let open = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    for network in [NetworkAccess::All, NetworkAccess::Connect(vec![open])] {
        let confinement = Confinement { files: scene.files(), network, ..Confinement::default() };
        let said = scene.python(confinement, &format!("{tries}{pairs}")).await;
        assert_eq!(lines(&said), expected);
    }
    // A socket that is named, such as that of a database, keeps the family open.
    let mut files = scene.files().unwrap();
    files.write.push(places[3].clone());
    let confinement = Confinement { files: Some(files), ..Confinement::default() };
    let said = scene.python(confinement, &tries).await;
    assert_eq!(lines(&said).last(), Some(&"unix ok"), "{said}");
}

#[tokio::test]
async fn d22_without_a_network_there_is_no_socket() {
    let scene = Scene::new();
    let confinement = Confinement { network: NetworkAccess::None, ..Confinement::default() };
    let tries = r#"
attempt("tcp", lambda: socket.socket())
attempt("udp", lambda: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM))
attempt("unix", lambda: socket.socket(socket.AF_UNIX))
attempt("pair", lambda: socket.socketpair())
attempt("datagrams", lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
attempt("io_uring", lambda: call(425, 8, 0))
attempt("ptrace", lambda: call(101 if os.uname().machine == "x86_64" else 117, 0, 0, 0, 0))
attempt("memory", lambda: open(f"/proc/{os.getppid()}/mem", "r+b"))
"#;
    let said = scene.python(confinement, tries).await;
    let no = "Operation not permitted";
    let expected = [
        format!("tcp {no}"),
        format!("udp {no}"),
        format!("unix {no}"),
        "pair ok".to_owned(),
        // Such a pair can send to any socket.
        format!("datagrams {no}"),
        format!("io_uring {no}"),
        // A process that could trace other processes could use their sockets.
        format!("ptrace {no}"),
        "memory Permission denied".to_owned(),
    ];
    assert_eq!(lines(&said), expected);
}

#[tokio::test]
async fn d22_only_the_named_ports_are_connected_to() {
    let scene = Scene::new();
    let allowed = TcpListener::bind("127.0.0.1:0").unwrap();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = |listener: &TcpListener| listener.local_addr().unwrap().port();
    let network = NetworkAccess::Connect(vec![port(&allowed)]);
    let confinement = Confinement { network, ..Confinement::default() };
    let tries = format!(
        r#"
attempt("allowed", lambda: connect({}))
attempt("other", lambda: connect({other}))
attempt("listen", lambda: socket.socket().bind(("127.0.0.1", 0)))
attempt("mptcp", lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262))
attempt("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
attempt("packet", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
attempt("fast", lambda: socket.socket().sendto(b"x", 0x20000000, ("127.0.0.1", {other})))
attempt("udp", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
"#,
        port(&allowed),
        other = port(&other)
    );
    let said = scene.python(confinement, &tries).await;
    let expected = [
        "allowed ok",
        "other Permission denied",
        "listen Permission denied",
        "mptcp Operation not permitted",
        "raw Operation not permitted",
        "packet Operation not permitted",
        "fast Operation not permitted",
        "udp ok",
    ];
    assert_eq!(lines(&said), expected);
}

#[tokio::test]
async fn d22_dangerous_calls_and_privileges_are_gone() {
    let scene = Scene::new();
    let confinement = Confinement { filters_system_calls: true, ..Confinement::default() };
    let tries = r#"
import platform
x86 = platform.machine() == "x86_64"
attempt("mount", lambda: call(165 if x86 else 40, b"none", b"/mnt", b"tmpfs", 0, None))
attempt("ptrace", lambda: call(101 if x86 else 117, 0, 0, 0, 0))
attempt("bpf", lambda: call(321 if x86 else 280, 0, None, 0))
attempt("unshare", lambda: call(272 if x86 else 97, 0x10000000))
attempt("clone", lambda: call(56 if x86 else 220, 0x10000011, 0, 0, 0, 0))
attempt("second number", lambda: call((165 if x86 else 40) | (0x40000000 if x86 else 0), 0))
attempt("tcp", lambda: socket.socket())
attempt("thread", lambda: __import__("threading").Thread(target=lambda: None).start())
attempt("program", lambda: __import__("subprocess").run(["/bin/true"], check=True))
status = open("/proc/self/status").read().split()
print("capabilities", status[status.index("CapEff:") + 1], flush=True)
print("no new privileges", status[status.index("NoNewPrivs:") + 1], flush=True)
"#;
    let said = scene.python(confinement, tries).await;
    let expected = [
        "mount Operation not permitted",
        "ptrace Operation not permitted",
        "bpf Operation not permitted",
        "unshare Operation not permitted",
        "clone Operation not permitted",
        "second number Operation not permitted",
        "tcp ok",
        "thread ok",
        "program ok",
        "capabilities 0000000000000000",
        "no new privileges 1",
    ];
    assert_eq!(lines(&said), expected);
}

/// Whatever is taken away, root keeps no privilege by which it could be taken back: none over
/// processes, the kernel, devices, file systems or limits.
#[tokio::test]
async fn d22_a_privileged_program_cannot_undo_its_confinement() {
    let scene = Scene::new();
    let tries = r#"
status = open("/proc/self/status").read().split()
kept = int(status[status.index("CapEff:") + 1], 16)
# Those of capabilities(7), from CAP_CHOWN = 0: modules, raw I/O, ptrace, admin, boot, resources,
# devices, packets, handles of files, and all that are newer.
harmful = [2, 8, 9, *range(11, 31), *range(32, 41)]
print("harmful", [one for one in harmful if kept >> one & 1], flush=True)
"#;
    let limits = ProcessLimits { open_files: Some(64), ..ProcessLimits::default() };
    let parts = [
        Confinement { files: scene.files(), ..Confinement::default() },
        Confinement { network: NetworkAccess::None, ..Confinement::default() },
        Confinement { network: NetworkAccess::Connect(vec![443]), ..Confinement::default() },
        Confinement { limits, ..Confinement::default() },
        Confinement { files: scene.files(), has_namespaces: true, ..Confinement::default() },
    ];
    for confinement in parts {
        let shown = format!("{confinement:?}");
        assert_eq!(scene.python(confinement, tries).await, "harmful []\n", "{shown}");
    }
}

#[tokio::test]
async fn d22_limits_of_a_confined_program_are_enforced() {
    let scene = Scene::new();
    let limits = ProcessLimits {
        memory_mb: Some(256),
        open_files: Some(20),
        cpu_seconds: Some(600),
        processes: None,
    };
    let confinement = Confinement { limits, ..Confinement::default() };
    let tries = r#"
import resource
attempt("little", lambda: bytearray(50 << 20))
attempt("much", lambda: bytearray(400 << 20))
attempt("files", lambda: [os.open("/dev/null", os.O_RDONLY) for _ in range(30)])
print("cpu", resource.getrlimit(resource.RLIMIT_CPU), flush=True)
"#;
    let said = scene.python(confinement, tries).await;
    let expected = ["little ok", "much no memory", "files Too many open files", "cpu (600, 600)"];
    assert_eq!(lines(&said), expected);
}

/// Python and node, each with all that `strict` takes away.
#[tokio::test]
async fn a_strictly_confined_server_works() {
    let scene = Scene::new();
    let file = scene.path("in/file");
    let strict = Confinement::strict(Some(scene.path("in")));
    let read = format!("print(open({file:?}).read())");
    assert_eq!(scene.python(strict.clone(), &read).await, "text\n");

    let secret = scene.path("secret/file");
    let script = format!(
        "const fs = require('fs');
         console.log(fs.readFileSync({file:?}, 'utf8'));
         try {{ fs.readFileSync({secret:?}) }} catch (error) {{ console.log(error.code) }}
         require('net').connect(9).on('error', error => console.log(error.code));"
    );
    let mut spec = ProcessSpec::new("node", BaseEnvironment::from_process());
    spec.args = vec!["-e".to_owned(), script];
    assert_eq!(lines(&scene.run(spec, strict).await), ["text", "EACCES", "EPERM"]);
}

/// The rest of the machine is not there at all. `xtask test` installs bubblewrap.
#[tokio::test]
async fn d22_files_outside_are_absent_in_namespaces() {
    let scene = Scene::new();
    let confinement = Confinement {
        files: scene.files(),
        network: NetworkAccess::None,
        filters_system_calls: true,
        has_namespaces: true,
        ..Confinement::default()
    };
    let tries = format!(
        "{}\nattempt('tcp', lambda: socket.socket())\n\
         attempt('unshare', lambda: os.unshare(0x10000000) if hasattr(os, 'unshare') \
         else call(272, 0x10000000))\n\
         print('processes', len([name for name in os.listdir('/proc') if name.isdigit()]) < 4)",
        scene.file_tries()
    );
    let said = scene.python(confinement, &tries).await;
    let expected = [
        "read in ok",
        "write in Read-only file system",
        "truncate in Read-only file system",
        "write out ok",
        "read out ok",
        "read secret No such file or directory",
        "list secret No such file or directory",
        "write secret No such file or directory",
        "write etc Read-only file system",
        "temporary ok",
        "read shared No such file or directory",
        "write shared ok",
        "list shared ok",
        "null ok",
        "tcp Operation not permitted",
        "unshare Operation not permitted",
        "processes True",
    ];
    assert_eq!(lines(&said), expected);
}

/// A child in namespaces is stopped like any other, with the time to end by itself.
#[tokio::test]
async fn r_m19_a_child_in_namespaces_is_stopped_gently() {
    let scene = Scene::new();
    let confinement =
        Confinement { files: scene.files(), has_namespaces: true, ..Confinement::default() };
    let out = scene.path("out/ended");
    let script = format!(
        "trap 'echo gently > {}; exit 0' TERM; echo ready; while :; do sleep 1000 & wait; done",
        out.display()
    );
    let mut spec = shell(&script);
    spec.confinement = Some(confinement);
    let (process, _io) = crate::support::start(spec, &TaskTracker::new()).await;
    let exit = in_time(process.stop()).await;
    assert_eq!(fs_err::read_to_string(out).unwrap(), "gently\n");
    assert!(!exit.forced, "{exit:?}");
}

#[tokio::test]
async fn d22_a_program_that_cannot_be_confined_is_not_started() {
    let scene = Scene::new();
    let refused = async |change: &dyn Fn(&mut ProcessSpec)| {
        let mut spec = shell("echo loose > out/loose");
        spec.working_dir = Some(scene.directory.path().to_owned());
        spec.confinement = Some(Confinement { files: scene.files(), ..Confinement::default() });
        change(&mut spec);
        let error = Process::spawn(spec, &TaskTracker::new()).await.unwrap_err();
        assert!(matches!(error, SpawnError::Unconfined { .. }), "{error:?}");
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(!scene.path("out/loose").exists());
        error.to_string()
    };
    let said = refused(&|spec| spec.shim = Shim::Absent).await;
    assert!(
        said.contains("`sh` was not started") && said.contains("needs the supervising shim"),
        "{said}"
    );
    let said = refused(&|spec| {
        let files = FileAccess { read: vec!["/nowhere".into()], write: Vec::new() };
        spec.confinement = Some(Confinement { files: Some(files), ..Confinement::default() });
    });
    let said = said.await;
    assert!(said.contains("`/nowhere` does not exist"), "{said}");
}

#[tokio::test]
async fn a_missing_program_is_reported_as_not_found_when_confined() {
    let scene = Scene::new();
    let mut spec = ProcessSpec::new("no-such-program", BaseEnvironment::from_process());
    spec.shim = shim();
    let has_namespaces = true;
    let files = scene.files();
    spec.confinement = Some(Confinement { files, has_namespaces, ..Confinement::default() });
    let error = Process::spawn(spec, &TaskTracker::new()).await.unwrap_err();
    assert!(matches!(error, SpawnError::NotFound { .. }), "{error:?}");
}
