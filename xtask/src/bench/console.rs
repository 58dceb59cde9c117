//! The cost of the console of a large site: the time and the size of each page beside the request
//! of the API with the same data, live updates, open pages while nothing happens, and the
//! instructions that open pages add to calls.
//!
//! The site is filled by what is measured itself: servers of a file, runs over REST, and calls at
//! `/mcp`, each of which is an event of the audit.

mod costs;
mod live;
mod person;
mod report;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

pub(super) use self::costs::ConsoleCost;
use self::costs::{CallsBesidePages, Filled, Loaded, PageCost};
use self::live::Open;
use self::person::{Connection, Person};
pub(super) use self::report::{aims, write};
use super::load::read_within;
use super::plan::Era;
use super::runs::count::Counter;
use super::runs::{Calls, ONE, QUICK_WINDOW, STOPPED, Size, Stage, wait_until_quiet, write_secret};
use super::{Options, program, stage};

const LARGE: Site =
    Site { size: Size { servers: 500, runs: 1000, has_all_tools: true }, calls: 100_000 };
const QUICK: Site =
    Site { size: Size { servers: 50, runs: 100, has_all_tools: true }, calls: 5_000 };

/// A time for calls that fill the audit, and the longest time for all of them.
const FILLING: Duration = Duration::from_secs(10);
const FILLED: Duration = Duration::from_secs(300);
const FILLERS: &str = "8";
/// Number of times that each address is loaded, and of those before that are not counted.
const LOADS: usize = 30;
const QUICK_LOADS: usize = 5;
const WARM_UP: usize = 3;
/// The path of the first page, and of pages below it.
const HOME: &str = "/w/default/";
/// Pages besides those of the navigation. `RUN` stands for the id of a run with many calls.
const PAGES: &[&str] = &[
    "servers?state=ready&q=s1",
    "servers/s0",
    "servers/s0/tools",
    "servers/s0/definitions",
    "servers/s0/calls",
    "servers/s0/runs",
    "tools?sort=size&page=3",
    "tools?q=echo",
    "agents/bench",
    "runs?status=running",
    "runs/1",
    "runs/1?status=failed",
    "runs/1/tools",
    "runs/1/children",
    "runs/1/messages",
    "sessions",
    "audit?run=RUN",
    "audit?kind=workspace.",
    "audit?outcome=failed",
    "search?q=s1",
];
/// Pages whose parts are live, as many as one login session may have open.
const OPEN: [&str; 4] = ["", "servers", "runs", "approvals"];
/// Number of measurements of instructions. The least one counts, as other work only adds.
const ROUNDS: usize = 2;

/// A site that is to be filled.
#[derive(Clone, Copy)]
struct Site {
    size: Size,
    calls: u64,
}

pub(super) fn measure(options: &Options, logs: &Path) -> Result<ConsoleCost> {
    let site = if options.quick { QUICK } else { LARGE };
    let profile = &options.profile;
    let stage = Stage::start(profile, site.size, logs, program("narthex", profile))?;
    let size = fill(&stage, site, profile, logs)?;
    eprintln!("console: {size:?}");
    let person = Person::sign_in(profile, &stage.data, &stage.daemon.endpoint_url(""))?;
    let pages = pages(&person, if options.quick { QUICK_LOADS } else { LOADS })?;
    wait_until_quiet(stage.daemon.pid())?;
    let idle = live::idle(&stage, &person, options.quick)?;
    eprintln!("console: {idle:?}");
    let live = live::measure(&stage, &person, options.quick)?;
    eprintln!("console: {live:?}");
    stage.daemon.stop(STOPPED)?;
    let calls = match Counter::find() {
        Some(counter) => Some(beside_pages(profile, logs, &counter)?),
        None => {
            eprintln!("instructions are not counted: that needs valgrind (Debian: the same name)");
            None
        }
    };
    Ok(ConsoleCost { size, pages, live, idle, calls })
}

/// Creates runs, and calls tools until the audit has enough events. The first run makes half of
/// the calls.
fn fill(stage: &Stage, site: Site, profile: &str, logs: &Path) -> Result<Filled> {
    let Site { size, calls } = site;
    let tools = stage::own_tools(Era::Legacy, profile, logs)?;
    let created = stage.create(profile, size.runs)?;
    let own = stage.data.join("run.token");
    write_secret(&own, &created.token)?;
    let callers = [(own.as_path(), "mcp__lib__"), (stage.daemon.token_file(), "mcp__s0__")];
    let mut made = 0;
    for (token, prefix) in callers.into_iter().cycle() {
        if made >= calls {
            break;
        }
        let mut load = stage.load(profile, token, prefix, FILLING);
        load.args(["--connections", FILLERS]);
        let sent = read_within::<Calls>(&mut load, FILLED)?.sent;
        ensure!(sent > 0, "no call was made within {FILLING:?}");
        made += sent;
        eprintln!("console: {made} of {calls} calls");
    }
    wait_until_quiet(stage.daemon.pid())?;
    Ok(Filled { servers: size.servers, tools: size.servers * tools, runs: size.runs, calls: made })
}

/// The cost of each page of the navigation, and of further ones.
fn pages(person: &Person, loads: usize) -> Result<Vec<PageCost>> {
    let mut connection = person.connect()?;
    let home = connection.see(HOME)?.body;
    let nav = home.split_once("<nav").and_then(|(_, rest)| rest.split_once("</nav>"));
    let nav = nav.map_or("", |(nav, _)| nav);
    let mut paths: Vec<String> = links(nav).collect();
    ensure!(paths.len() > 5, "the navigation has only {paths:?}");
    let run = run_of(&connection.see(&format!("{HOME}runs/1"))?.body)?;
    paths.extend(PAGES.iter().map(|path| format!("{HOME}{}", path.replace("RUN", &run))));
    let mut found = Vec::new();
    for path in paths {
        let page = connection.get(&path)?;
        if page.status != 200 {
            eprintln!("console: {path} is LEFT OUT: it was answered with {}", page.status);
            continue;
        }
        // A trace of the API is a stream without an end; the page has its events from the audit.
        let trace = format!("/api/workspaces/default/audit?run={run}&kind=session.mcp.");
        let same = same(&page.body);
        let same = same.map(|same| if same.ends_with("/trace") { trace } else { same });
        let loaded = loaded(&mut connection, &path, loads)?;
        let api = same.and_then(|same| of_api(&mut connection, same, loads));
        let cost = PageCost { path, page: loaded, api };
        eprintln!("console: {}", report::line(&cost));
        found.push(cost);
    }
    Ok(found)
}

/// The request of the API with its cost, if it can be made.
fn of_api(connection: &mut Connection, path: String, loads: usize) -> Option<(String, Loaded)> {
    match loaded(connection, &path, loads) {
        Ok(loaded) => Some((path, loaded)),
        Err(error) => {
            eprintln!("console: the request beside is LEFT OUT: {error:#}");
            None
        }
    }
}

fn loaded(connection: &mut Connection, path: &str, loads: usize) -> Result<Loaded> {
    let mut took = Vec::with_capacity(loads);
    let mut bytes = 0;
    for turn in 0..WARM_UP + loads {
        let answer = connection.see(path)?;
        if turn >= WARM_UP {
            took.push(answer.first_byte);
            bytes = bytes.max(answer.body.len());
        }
    }
    let (first_ms, slowest_ms) = median_and_most(took)?;
    Ok(Loaded { first_ms, slowest_ms, bytes })
}

/// The median and the greatest of times, in milliseconds.
fn median_and_most(mut all: Vec<Duration>) -> Result<(f64, f64)> {
    all.sort_unstable();
    let median = all.get(all.len() / 2).context("nothing was measured")?;
    let most = all.last().context("nothing was measured")?;
    Ok((median.as_secs_f64() * 1e3, most.as_secs_f64() * 1e3))
}

/// Instructions of a small call: without an open page, beside pages, and shown by a page.
fn beside_pages(profile: &str, logs: &Path, counter: &Counter) -> Result<CallsBesidePages> {
    let narthex = counter.under(&program("narthex", profile), logs);
    let stage = Stage::start(profile, ONE, logs, narthex)?;
    let person = Person::sign_in(profile, &stage.data, &stage.daemon.endpoint_url(""))?;
    let own = format!("{HOME}runs/local");
    let open = OPEN.map(|page| format!("{HOME}{page}"));
    let cases: [&[String]; 3] = [&[], &open, std::slice::from_ref(&own)];
    let mut least = [f64::MAX; 3];
    for _ in 0..ROUNDS {
        for (pages, least) in cases.iter().zip(&mut least) {
            let opened = pages.iter().map(|page| Open::page(&person, page));
            let opened = opened.collect::<Result<Vec<_>>>()?;
            wait_until_quiet(stage.daemon.pid())?;
            let token = stage.daemon.token_file();
            let load = stage.load(profile, token, "mcp__s0__", QUICK_WINDOW);
            let counted = stage.count(counter, load)?;
            *least = least.min(counted);
            eprintln!("console: {counted:.0} instructions per call beside {pages:?}");
            opened.into_iter().try_for_each(|open| open.end().map(drop))?;
        }
    }
    stage.daemon.stop(STOPPED)?;
    let [without, beside, shown] = least;
    Ok(CallsBesidePages { pages: OPEN.len(), without, beside, shown })
}

/// The addresses of links.
fn links(html: &str) -> impl Iterator<Item = String> {
    html.split("href=\"").skip(1).filter_map(|rest| Some(plain(rest.split_once('"')?.0)))
}

/// The request of the API that a page names as the same.
fn same(html: &str) -> Option<String> {
    let (_, rest) = html.split_once("<dt>API</dt>")?;
    let (_, rest) = rest.split_once("GET /api/")?;
    let path = rest.split_once('<')?.0.trim();
    Some(format!("/api/{}", plain(path)))
}

/// The id of the run of a page.
fn run_of(html: &str) -> Result<String> {
    let (_, rest) = html.split_once("run_").context("the page names no run")?;
    let digits: String = rest.chars().take_while(char::is_ascii_hexdigit).collect();
    ensure!(!digits.is_empty(), "the page names no run");
    Ok(format!("run_{digits}"))
}

/// A text of HTML as it was before it was escaped.
fn plain(html: &str) -> String {
    html.replace("&quot;", "\"").replace("&#39;", "'").replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::{links, median_and_most, run_of, same};
    use std::time::Duration;

    #[test]
    fn addresses_are_read_from_a_page() {
        let page = "<a href=\"/w/default/\">a</a><a href=\"/w/default/x?a=1&amp;b=2\">b</a> \
                    <dt>API</dt><dd><code>GET /api/x?a=1&amp;b=2</code></dd> run_0a1b2c3d4e5f.";
        assert_eq!(links(page).collect::<Vec<_>>(), ["/w/default/", "/w/default/x?a=1&b=2"]);
        assert_eq!(same(page).as_deref(), Some("/api/x?a=1&b=2"));
        assert_eq!(same("<p>POST /api/x</p>"), None);
        assert_eq!(run_of(page).unwrap(), "run_0a1b2c3d4e5f");
        assert!(run_of("none").is_err());
    }

    #[test]
    fn the_median_and_the_greatest_are_told() {
        let times = [3, 1, 2].map(Duration::from_millis).to_vec();
        let (median, most) = median_and_most(times).unwrap();
        assert_eq!(
            (median.round().to_string(), most.round().to_string()),
            ("2".into(), "3".into())
        );
        assert!(median_and_most(Vec::new()).is_err());
    }
}
