//! nginx as a plain reverse proxy: where it comes from, its configuration, its processes.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use fs_err as fs;

use crate::process::{Descendants, Service, answers, capture, run};
use crate::workspace;

/// The name of the package in Debian.
const PACKAGE: &str = "nginx";
const DOWNLOADED: Duration = Duration::from_secs(120);
/// Interval and number of the checks of a start.
const POLL: Duration = Duration::from_millis(20);
const POLLS: usize = 250;

/// The program.
pub(super) struct Nginx {
    program: PathBuf,
    pub(super) version: String,
}

impl Nginx {
    /// Takes the installed nginx, or Debian's package unpacked below the build directory, which
    /// changes nothing of the system.
    pub(super) fn find_or_download() -> Result<Self> {
        let unpacked = workspace::target().join("bench/nginx");
        let local = unpacked.join("usr/sbin/nginx");
        let places = [PathBuf::from(PACKAGE), PathBuf::from("/usr/sbin/nginx"), local.clone()];
        let program = match places.into_iter().find(|place| answers(place, &["-v"])) {
            Some(program) => program,
            None => {
                download(&unpacked).context(
                    "nginx is needed to compare with; install it, or run this on Debian",
                )?;
                ensure!(answers(&local, &["-v"]), "the unpacked nginx does not run here");
                local
            }
        };
        let said = capture(Command::new(&program).arg("-v"), DOWNLOADED)?.stderr;
        let version = said.trim().rsplit('/').next().unwrap_or_default().to_owned();
        Ok(Self { program, version })
    }

    /// Starts it in front of a server.
    pub(super) fn start(&self, upstream: &str, dir: &Path, log: &Path) -> Result<Running> {
        fs::create_dir_all(dir)?;
        let addr = free_address()?;
        let config = config(addr, upstream);
        fs::write(dir.join("nginx.conf"), &config)?;
        let mut command = Command::new(&self.program);
        command.arg("-p").arg(dir).args(["-c", "nginx.conf", "-e", "stderr"]);
        let service = Service::start("nginx", &mut command, log)?;
        wait_until_open(addr, &service)?;
        Ok(Running { url: format!("http://{addr}/mcp"), config, service })
    }
}

/// A running nginx.
pub(super) struct Running {
    pub(super) url: String,
    pub(super) config: String,
    service: Service,
}

impl Running {
    /// The master and its workers.
    pub(super) fn processes(&self) -> Vec<u32> {
        let mut ids = Descendants::of(self.service.pid()).ids();
        ids.push(self.service.pid());
        ids
    }
}

fn download(into: &Path) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let fetch = || {
        let mut command = Command::new("apt-get");
        command.args(["download", PACKAGE]).current_dir(dir.path());
        capture(&mut command, DOWNLOADED)
    };
    if !fetch()?.status.success() {
        // The lists of packages may never have been read here.
        run(Command::new("apt-get").arg("update"))?;
        let again = fetch()?;
        ensure!(again.status.success(), "apt-get cannot download it: {}", again.stderr);
    }
    let package = fs::read_dir(dir.path())?.next().context("apt-get has left no file")??;
    fs::create_dir_all(into)?;
    run(Command::new("dpkg-deb").arg("-x").arg(package.path()).arg(into))
}

/// A port that was free a moment ago: nginx cannot be asked which one it took.
fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

fn wait_until_open(addr: SocketAddr, service: &Service) -> Result<()> {
    for _ in 0..POLLS {
        if TcpStream::connect(addr).is_ok() {
            return Ok(());
        }
        thread::park_timeout(POLL);
    }
    bail!("nginx does not listen{}", service.quote())
}

/// Keep-alive on both sides without a limit that a benchmark would reach, the access log on, one
/// worker for each core, and answers passed on as they come, which event streams need.
fn config(listen: SocketAddr, upstream: &str) -> String {
    let workers = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let upstream = upstream.trim_start_matches("http://").split('/').next().unwrap_or_default();
    format!(
        "daemon off;
worker_processes {workers};
error_log stderr warn;
pid nginx.pid;
events {{
    worker_connections 4096;
}}
http {{
    access_log access.log;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    keepalive_requests 1000000000;
    upstream fixture {{
        server {upstream};
        keepalive 64;
        keepalive_requests 1000000000;
    }}
    server {{
        listen {listen};
        location / {{
            proxy_pass http://fixture;
            proxy_http_version 1.1;
            proxy_set_header Connection \"\";
            proxy_set_header Host $http_host;
            proxy_buffering off;
        }}
    }}
}}
"
    )
}

#[cfg(test)]
mod tests {
    use super::config;

    #[test]
    fn the_upstream_is_a_host_and_a_port() {
        let text = config("127.0.0.1:80".parse().unwrap(), "http://127.0.0.1:81/mcp");
        assert!(text.contains("server 127.0.0.1:81;"), "{text}");
        assert!(text.contains("listen 127.0.0.1:80;"), "{text}");
    }
}
