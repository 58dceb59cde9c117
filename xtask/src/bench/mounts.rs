//! The cost of servers as files: a call at a folder against the same call over HTTP on one
//! persistent connection, `ls` of many tools, and many readers at once.
#![expect(clippy::disallowed_types, reason = "synchronous: there is no tokio clock to pause here")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use fs_err as fs;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::plan::Era;
use super::results::{FileCallCost, MountCost, MountRate};
use super::stage::Fixture;
use super::{Options, program};
use crate::peers::Daemon;
use crate::process::Service;

const READY: Duration = Duration::from_secs(120);
const STOPPED: Duration = Duration::from_secs(30);
/// A server of few tools, whose calls are measured, and one of many, which are listed.
const ALIASES: [&str; 2] = ["calls", "many"];
const TOOLS: usize = 10_000;
/// A tool that answers at once, and one that takes as long as its arguments say.
const ECHO: Tool = Tool { name: "echo", arguments: r#"{"message":"hello"}"#, ms: 0 };
const SLEEP: Tool = Tool { name: "sleep", arguments: r#"{"ms":20}"#, ms: 20 };
/// Size of one read, as by `cat`.
const BUFFER: usize = 128 << 10;
const READERS: [(usize, Tool); 4] = [(1, ECHO), (8, ECHO), (64, ECHO), (64, SLEEP)];

/// The called tool.
#[derive(Clone, Copy)]
struct Tool {
    name: &'static str,
    arguments: &'static str,
    /// The tool's own time.
    ms: u32,
}

/// The device that keeps processors awake (Linux).
const LATENCY: &str = "/dev/cpu_dma_latency";

/// A daemon, and the files of its own run at a folder.
struct Stage {
    // In this order: the folder is free before the daemon ends.
    mount: Service,
    daemon: Daemon,
    folder: PathBuf,
    data: PathBuf,
    profile: String,
    _fixtures: [Fixture; 2],
    _dir: TempDir,
}

pub(super) fn measure(options: &Options, logs: &Path) -> Result<Option<MountCost>> {
    if !Path::new("/dev/fuse").exists() {
        eprintln!("mounts: SKIPPED, this machine has no /dev/fuse");
        return Ok(None);
    }
    let stage = Stage::start(options, logs)?;
    let (calls, lists) = if options.quick { (500, 5) } else { (5000, 20) };
    let call = stage.one_call(&stage.folder, calls)?;
    eprintln!("mounts: a call {call}");
    let awake = stage.awake(calls, logs)?;
    let ls_ms = stage.list(lists)?;
    eprintln!("mounts: ls of {TOOLS} tools {ls_ms:.1} ms");
    let mut rates = Vec::new();
    for (at_once, tool) in READERS {
        let rate = stage.parallel(at_once, tool, calls)?;
        eprintln!("mounts: {at_once} at once of `{}` {rate}", tool.name);
        rates.push(rate);
    }
    let Stage { mount, daemon, .. } = stage;
    let ended = mount.terminate(STOPPED)?;
    ensure!(ended.success(), "narthex mount ended with {ended}");
    daemon.stop(STOPPED)?;
    Ok(Some(MountCost { call, awake, tools: TOOLS, ls_ms, rates }))
}

impl Stage {
    fn start(options: &Options, logs: &Path) -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("narthex-bench-").tempdir()?;
        let fixture = |alias: &str, extra| {
            let log = logs.join(format!("mounts-{alias}.log"));
            Fixture::start(Era::Modern, &options.profile, extra, &log)
        };
        let fixtures = [fixture(ALIASES[0], 0)?, fixture(ALIASES[1], TOOLS)?];
        let entry = |fixture: &Fixture| json!({ "transport": "http", "url": fixture.url() });
        let servers: serde_json::Map<String, Value> =
            ALIASES.iter().zip(&fixtures).map(|(a, f)| ((*a).to_owned(), entry(f))).collect();
        let config = dir.path().join("mcp.json");
        fs::write(&config, json!({ "servers": servers }).to_string())?;
        let data = dir.path().join("data");
        let narthex = program("narthex", &options.profile);
        let daemon = Daemon::start_as(narthex, &config, &data, &logs.join("mounts.log"))?;
        daemon.wait_until_ready(&ALIASES, READY)?;
        let folder = dir.path().join("mcp");
        let mount = mounted(&folder, &data, &[], &options.profile, &logs.join("mount.log"))?;
        let profile = options.profile.clone();
        Ok(Self { mount, daemon, folder, data, profile, _fixtures: fixtures, _dir: dir })
    }

    /// The cost of a call at a folder that keeps the machine's processors awake, where that is
    /// possible.
    fn awake(&self, calls: usize, logs: &Path) -> Result<Option<FileCallCost>> {
        if let Err(error) = fs::OpenOptions::new().write(true).open(LATENCY) {
            eprintln!("mounts: SKIPPED, processors cannot be kept awake: {error}");
            return Ok(None);
        }
        let folder = self.folder.with_file_name("awake");
        let args = ["--low-latency"];
        let mount = mounted(&folder, &self.data, &args, &self.profile, &logs.join("awake.log"))?;
        let call = self.one_call(&folder, calls)?;
        eprintln!("mounts: a call, processors kept awake, {call}");
        let ended = mount.terminate(STOPPED)?;
        ensure!(ended.success(), "narthex mount ended with {ended}");
        Ok(Some(call))
    }

    /// The medians of a call over HTTP, of the same call as a file that is read once, and of one
    /// that is read to its end, in turns.
    fn one_call(&self, folder: &Path, calls: usize) -> Result<FileCallCost> {
        let asked = Asked::of(&self.daemon, ECHO)?;
        let mut http = Connection::open(&asked)?;
        let file = tools(folder, ALIASES[0]).join(ECHO.name);
        let mut took = [const { Vec::new() }; 3];
        let mut buffer = vec![0; BUFFER];
        for turn in 0..calls + calls / 10 {
            let one = [
                timed(|| http.call())?,
                timed(|| call_file(&file, ECHO, &mut buffer, Reads::Once))?,
                timed(|| call_file(&file, ECHO, &mut buffer, Reads::ToEnd))?,
            ];
            // The first ones open connections and fill caches.
            if turn >= calls / 10 {
                took.iter_mut().zip(one).for_each(|(took, one)| took.push(one));
            }
        }
        let [http, once, to_end] = took;
        Ok(FileCallCost {
            http_us: median_us(http)?,
            file_us: median_us(once)?,
            to_end_us: median_us(to_end)?,
        })
    }

    /// The median time of a list, in milliseconds.
    fn list(&self, lists: usize) -> Result<f64> {
        let folder = tools(&self.folder, ALIASES[1]);
        let mut took = Vec::new();
        for _ in 0..lists {
            let began = Instant::now();
            let found = fs::read_dir(&folder)?.count();
            took.push(began.elapsed());
            ensure!(found >= TOOLS, "there are {found} files of {TOOLS} tools");
        }
        Ok(median_us(took)? / 1e3)
    }

    /// The rates of `at_once` parallel calls, as files and over HTTP.
    fn parallel(&self, at_once: usize, tool: Tool, calls: usize) -> Result<MountRate> {
        let file = tools(&self.folder, ALIASES[0]).join(tool.name);
        let each = calls.div_ceil(at_once).max(20);
        let files = rate(at_once, each, || {
            let mut buffer = vec![0; BUFFER];
            (0..each).try_for_each(|_| call_file(&file, tool, &mut buffer, Reads::Once))
        })?;
        let asked = Asked::of(&self.daemon, tool)?;
        let http = rate(at_once, each, || {
            let mut connection = Connection::open(&asked)?;
            (0..each).try_for_each(|_| connection.call())
        })?;
        Ok(MountRate { at_once, tool_ms: tool.ms, files, http })
    }
}

/// The rate of calls a second of `threads` threads, each of which makes `each` calls.
fn rate(threads: usize, each: usize, work: impl Fn() -> Result<()> + Sync) -> Result<f64> {
    let began = Instant::now();
    let all = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(&work)).collect();
        threads.into_iter().map(thread::ScopedJoinHandle::join).collect::<Vec<_>>()
    });
    let took = began.elapsed().as_secs_f64();
    for one in all {
        match one {
            Ok(called) => called?,
            Err(_panicked) => bail!("a reader panicked"),
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "some thousands")]
    let count = (threads * each) as f64;
    Ok(count / took)
}

/// Mounts the files of the daemon's own run at a folder that is made for it.
fn mounted(
    folder: &Path,
    data: &Path,
    args: &[&str],
    profile: &str,
    log: &Path,
) -> Result<Service> {
    fs::create_dir(folder)?;
    let mut command = program("narthex", profile);
    command.args(["mount", "--json"]).args(args).arg("--data").arg(data).arg(folder);
    let mount = Service::start("narthex mount", &mut command, log)?;
    mount.wait_for("line that it is mounted", READY, |line| {
        let told: Value = serde_json::from_str(line).ok()?;
        (told["ok"] == true).then_some(())
    })?;
    Ok(mount)
}

fn tools(folder: &Path, alias: &str) -> PathBuf {
    folder.join(format!("0-{alias}")).join("tools")
}

/// The way in which a result is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reads {
    /// Once: the buffer has room for all of it.
    Once,
    /// Until there is no more, as `cat` does.
    ToEnd,
}

/// Open, write, read, close: with a buffer as `cat` has one.
fn call_file(path: &Path, tool: Tool, buffer: &mut [u8], reads: Reads) -> Result<()> {
    let mut file = fs::OpenOptions::new().read(true).write(true).open(path)?;
    file.write_all(tool.arguments.as_bytes())?;
    let mut length = 0;
    loop {
        let more = file.read(&mut buffer[length..])?;
        length += more;
        if more == 0 || reads == Reads::Once {
            break;
        }
    }
    let result = &buffer[..length];
    let is_whole = result.starts_with(b"{") && result.trim_ascii_end().ends_with(b"}");
    ensure!(is_whole, "this is no result: {}", String::from_utf8_lossy(result));
    Ok(())
}

fn timed(work: impl FnOnce() -> Result<()>) -> Result<Duration> {
    let began = Instant::now();
    work()?;
    Ok(began.elapsed())
}

/// The call over HTTP, and its target.
struct Asked {
    host: String,
    request: String,
}

impl Asked {
    fn of(daemon: &Daemon, Tool { name, arguments, .. }: Tool) -> Result<Self> {
        let url = daemon.endpoint_url(&format!("/mcp/{}/tools/{name}", ALIASES[0]));
        let rest = url.strip_prefix("http://").context("the daemon is asked over plain HTTP")?;
        let (host, path) = rest.split_once('/').context("a URL has a path")?;
        let token = fs::read_to_string(daemon.token_file())?;
        let length = arguments.len();
        let request = format!(
            "POST /{path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{arguments}",
            token.trim()
        );
        Ok(Self { host: host.to_owned(), request })
    }
}

/// One connection to the daemon, which is kept.
struct Connection<'a> {
    stream: BufReader<TcpStream>,
    request: &'a str,
}

impl<'a> Connection<'a> {
    fn open(Asked { host, request }: &'a Asked) -> Result<Self> {
        let stream = TcpStream::connect(host)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream), request })
    }

    fn call(&mut self) -> Result<()> {
        self.stream.get_mut().write_all(self.request.as_bytes())?;
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        ensure!(line.starts_with("HTTP/1.1 200 "), "the daemon answered {line}");
        let mut length = 0;
        while line != "\r\n" {
            line.clear();
            self.stream.read_line(&mut line)?;
            let lower = line.to_ascii_lowercase();
            if let Some(value) = lower.strip_prefix("content-length:") {
                length = value.trim().parse()?;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok(())
    }
}

fn median_us(mut all: Vec<Duration>) -> Result<f64> {
    all.sort_unstable();
    let median = all.get(all.len() / 2).context("nothing was measured")?;
    Ok(median.as_secs_f64() * 1e6)
}
