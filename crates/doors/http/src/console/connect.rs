//! Connect a client: the change of its file on one's own machine, the texts to copy elsewhere, and
//! the clients that came since the page was opened.
//!
//! Files are written only where the daemon and the browser belong to one user: see [`machine`]. No
//! page has a token in it: it names the command that shows one.

mod ways;

use std::time::SystemTime;

use http::{StatusCode, Uri};
use narthex_client_files::connect::{ConnectError, Look, OwnMachine, Standing, WayBack, of_user};
use narthex_console::{
    Told, html,
    pages::connect::{Arrival, Arrived, Chosen, ConnectPage, OwnFile},
    parts::{Action, Filter, Moment, Same, Words},
};
use narthex_model::{ErrorKind, PrincipalId, Timestamp, command::narthex, with_causes};
use tokio::task::spawn_blocking;

use super::{
    answer::{self, Answered},
    frame::{self, Head, frame},
    live::{self, Follows, Fragment, Live, Topic},
    page::Page,
    viewer::Viewer,
};
use crate::{
    Access,
    body::RequestBody,
    problem::Problem,
    routes::{AUDIT, EVERY},
    servers::Query,
    shapes::CsrfForm,
};

/// The page, and the change of a file, which is for the user of the machine alone.
pub(super) const PAGES: &[Page] = &[
    Page::get("connect", Access::Member(EVERY), |viewer, _| Box::pin(show(viewer)))
        .in_nav("Connect a client", "out"),
    Page::post("connect/{name}/write", Access::Operator, |viewer, body| {
        Box::pin(write(viewer, body))
    }),
    Page::post("connect/{name}/undo", Access::Operator, |viewer, body| {
        Box::pin(undo(viewer, body))
    }),
];

/// The live part: the clients that came since a time.
pub(super) const TOPIC: Topic = Topic {
    name: "connect",
    access: Access::Member(EVERY),
    params: &["since"],
    follows: Follows::Clients,
    parts: |viewer, query| Box::pin(async move { parts(viewer, query) }),
};

/// Number of clients that the live part shows.
const SHOWN: usize = 5;
/// Maximum number of characters of a line of a file.
const LINE_MAX: usize = 2_000;
/// The parameters of the address.
const KNOWN: [&str; 3] = ["client", "since", "done"];

async fn show(viewer: &Viewer<'_>) -> Answered {
    let query = viewer.query(&KNOWN)?;
    let client = query.text("client");
    let since = query.time("since")?.unwrap_or_else(SystemTime::now);
    let head = Head {
        title: Words::new("Connect a client"),
        sentence: "Your editor or agent gets one address for all servers.",
        same: Some(Same::new(
            &narthex("setup", &[]).to_string(),
            &format!("GET /api/workspaces/{}/mcp-clients", viewer.workspace),
        )),
    };
    let mut frame = frame(viewer, head).await?;
    frame.told = told(&query);
    let arrived = arrived(viewer, since);
    let parts = vec![part(&arrived)];
    let live = vec![frame::live(&frame), Live { topic: &TOPIC, parts }];
    let beginning = [("since", Timestamp::new(since).to_string())];
    frame.live = Some(live::address(viewer, live, &query_of(&beginning)?));
    let url = ways::url(viewer);
    let page = ConnectPage {
        frame,
        clients: clients(viewer, client),
        chosen: chosen(viewer, client, &url).await?,
        url,
        arrived,
        again: address(viewer, client, Some(since)),
    };
    Ok(answer::page(StatusCode::OK, html(&page)))
}

/// The parameters of a stream that the address of the page does not have.
fn query_of(pairs: &[(&str, String)]) -> Result<Query, Problem> {
    let mut written = form_urlencoded::Serializer::new(String::new());
    written.extend_pairs(pairs);
    let uri: Result<Uri, _> = format!("/?{}", written.finish()).parse();
    let uri = uri.map_err(|_unfit| Problem::new(ErrorKind::Bug, "a time is no part of a URI"))?;
    Query::of(&uri, &KNOWN)
}

/// The address of the page for a client.
fn address(viewer: &Viewer<'_>, client: &str, since: Option<SystemTime>) -> String {
    let mut written = form_urlencoded::Serializer::new(String::new());
    if !client.is_empty() {
        written.append_pair("client", client);
    }
    if let Some(since) = since {
        written.append_pair("since", &Timestamp::new(since).to_string());
    }
    viewer.path(&format!("connect?{}", written.finish()))
}

/// The clients to choose from: those of the table, and the ways without a file.
fn clients(viewer: &Viewer<'_>, chosen: &str) -> Vec<Filter> {
    let of_table = of_user().map(|client| (client.id.as_str(), client.name.as_str()));
    let all = of_table.chain(ways::WITHOUT_FILE);
    let filter = |(id, name): (&str, &str)| Filter {
        href: address(viewer, id, None),
        label: name.to_owned(),
        count: None,
        is_current: id == chosen,
    };
    all.map(filter).collect()
}

/// The ways of the chosen client.
async fn chosen(viewer: &Viewer<'_>, id: &str, url: &str) -> Result<Option<Chosen>, Problem> {
    if id.is_empty() {
        return Ok(None);
    }
    let without_file = ways::WITHOUT_FILE.into_iter().find(|(known, _)| *known == id);
    if let Some((id, name)) = without_file {
        let why = "This client has no file that narthex could write.";
        let file = OwnFile::Off(Words::new(why));
        let ways = ways::without_file(viewer, id, url);
        return Ok(Some(Chosen { name: Words::new(name), file, ways }));
    }
    let client = of_user().find(|client| client.id == id).ok_or_else(|| {
        let name = Words::within(id, 100);
        Problem::new(ErrorKind::NotFound, format!("no client is called `{name}`; choose another"))
    })?;
    let machine = machine(viewer);
    let ways = ways::of(viewer, client, url, machine.ok());
    let file = match machine {
        Ok(machine) => own_file(viewer, machine, id).await?,
        Err(why) => OwnFile::Off(Words::new(why)),
    };
    Ok(Some(Chosen { name: Words::new(&client.name), file, ways }))
}

/// The machine whose files narthex may write for this human; otherwise the reason why not.
///
/// The daemon has the machine only if it listens on loopback alone, has no public address, and
/// runs as the owner of the home folder. The request came to a name of this machine, and its human
/// is an operator, who can start programs as that user by a server of the configuration anyway.
fn machine<'v>(viewer: &Viewer<'v>) -> Result<&'v OwnMachine, &'static str> {
    let elsewhere = "Files of clients are written only where its daemon runs on your machine, as \
                     you. Copy the text instead, on the machine of the client.";
    let machine = viewer.door.options.own_machine.as_ref().ok_or(elsewhere)?;
    let is_here = viewer.door.options.listen.ip().is_loopback();
    let host = viewer.control().sign_in_origin().map(|origin| origin.authority());
    if !is_here || !host.is_some_and(is_name_of_this_machine) || !machine.is_of_this_user() {
        return Err(elsewhere);
    }
    let is_theirs = viewer.may(Access::Operator) && viewer.workspace == *viewer.control().home();
    match is_theirs {
        true => Ok(machine),
        false => Err("Only an operator writes files of this machine, in the workspace of the \
                      configuration. Copy the text instead."),
    }
}

/// True for a host, with or without a port, that is this machine for each browser.
fn is_name_of_this_machine(authority: &str) -> bool {
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    host == "localhost" || host.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
}

/// Runs work on files apart from the threads of connections.
async fn of_files<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ConnectError> + Send + 'static,
) -> Result<Result<T, ConnectError>, Problem> {
    let done = spawn_blocking(work).await;
    done.map_err(|_ended| Problem::new(ErrorKind::Bug, "the work on a file did not end"))
}

fn failed(error: &ConnectError) -> Problem {
    Problem::new(error.kind(), with_causes(error))
}

/// The file of a client, with the change that the button makes.
async fn own_file(viewer: &Viewer<'_>, machine: &OwnMachine, id: &str) -> Result<OwnFile, Problem> {
    let (machine, wanted) = (machine.clone(), id.to_owned());
    let look = match of_files(move || machine.look(&wanted)).await? {
        Ok(look) => look,
        // The other ways are shown all the same.
        Err(error) => return Ok(OwnFile::Off(Words::new(&sentence(&failed(&error))))),
    };
    let Look { client, path, is_new, seal, name, entry } = look;
    let hint = client.refresh_hint.as_deref().unwrap_or_default();
    let refresh = if hint.is_empty() { String::new() } else { format!("After that: {hint}.") };
    let act = |verb: &str, label, about: &str| {
        Action::new(viewer.action("connect", id, verb), label, about).primary().page()
    };
    let (state, lines, action) = match entry {
        Standing::Absent(text) => {
            let state = match is_new {
                true => "The file is not there yet. Write makes it, with these lines.",
                false => "The file has no entry for this daemon yet. Write adds these lines.",
            };
            let mut write = act("write", "Write", "changes the file; Take it out undoes that");
            write.path = format!("{}?seal={seal}", write.path);
            let lines = text.lines().map(|line| Words::within(line, LINE_MAX)).collect();
            (state.to_owned(), lines, Some(write))
        }
        Standing::Present(way) => {
            let undo = act("undo", "Take it out", "brings the file back as it was before");
            let undo = Action { is_primary: false, ..undo };
            let (back, undo) = match way {
                WayBack::Alone => (String::new(), undo),
                WayBack::SetUp => {
                    let command = narthex("setup --undo", &[]);
                    let text = format!(" A set-up wrote it: `{command}` undoes that.");
                    (text, undo.off("a set-up has also moved servers: undo the set-up"))
                }
                WayBack::ByHand => {
                    let text = " It was written by hand: take it out by hand.".to_owned();
                    (text, undo.off("narthex has no record of this entry"))
                }
            };
            (format!("The file has this daemon as `{name}`.{back}"), Vec::new(), Some(undo))
        }
    };
    Ok(OwnFile::Known {
        path: Words::new(&path.display().to_string()),
        state: Words::new(&state),
        lines,
        refresh: Words::new(&refresh),
        action,
    })
}

/// A failure as a sentence of the page.
fn sentence(problem: &Problem) -> String {
    crate::html::sentence(problem.detail())
}

/// The clients that this human may know of, since a time.
fn arrived(viewer: &Viewer<'_>, since: SystemTime) -> Arrived {
    let sees_all = viewer.may(Access::Member(AUDIT));
    let me = &viewer.signed_in.account.id;
    let is_theirs = |user: &Option<PrincipalId>| sees_all || user.as_ref() == Some(me);
    let all = viewer.door.gateway.arrivals();
    let theirs = all
        .iter()
        .rev()
        .filter(|one| one.at >= since && one.workspace == viewer.workspace && is_theirs(&one.user));
    let shown = theirs.take(SHOWN).map(|one| Arrival {
        name: Words::within(&one.name, 100),
        version: Words::within(&one.version, 100),
        at: Moment::new(one.at),
    });
    Arrived { clients: shown.collect() }
}

fn parts(viewer: &Viewer<'_>, query: &Query) -> Result<Vec<Fragment>, Problem> {
    let since = query.time("since")?.unwrap_or(SystemTime::UNIX_EPOCH);
    Ok(vec![part(&arrived(viewer, since))])
}

fn part(arrived: &Arrived) -> Fragment {
    Fragment::new("arrived", html(arrived))
}

/// The sentence for the last action.
fn told(query: &Query) -> Option<Told> {
    // The address names a row of the table, and no words of its own.
    let client = of_user().find(|client| client.id == query.text("client"))?;
    let sentence = match query.text("done") {
        "write" => {
            format!("The file of {} has the entry now. Below you see it arrive.", client.name)
        }
        "undo" => "The entry is out of the file again.".to_owned(),
        _ => return None,
    };
    Some(Told { sentence: Words::new(&sentence), is_failure: false })
}

/// Puts the entry into the file, if it is the one that was shown.
async fn write(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let CsrfForm { csrf: _ } = viewer.form(body).await?;
    let machine = machine(viewer).map_err(denied)?.clone();
    let (id, seal) = (viewer.segment(0), viewer.query(&["seal"])?.text("seal").to_owned());
    let client = id.clone();
    let written = of_files(move || machine.connect(&id, &seal)).await?;
    written.map_err(|error| failed(&error))?;
    done(viewer, "write", &client)
}

/// Takes the entry out of the file again.
async fn undo(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let CsrfForm { csrf: _ } = viewer.form(body).await?;
    let machine = machine(viewer).map_err(denied)?.clone();
    let id = viewer.segment(0);
    let client = id.clone();
    let undone = of_files(move || machine.take_back(&id)).await?;
    undone.map_err(|error| failed(&error))?;
    done(viewer, "undo", &client)
}

fn denied(why: &'static str) -> Problem {
    Problem::new(ErrorKind::Denied, why)
}

fn done(viewer: &Viewer<'_>, verb: &str, client: &str) -> Answered {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("client", client).append_pair("done", verb);
    answer::redirect(&viewer.path(&format!("connect?{}", query.finish())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only a host that is this machine for each browser counts as this machine.
    #[test]
    fn s4_only_names_of_loopback_are_this_machine() {
        for here in ["localhost", "localhost:7717", "127.0.0.1:80", "127.0.0.2", "[::1]:7717"] {
            assert!(is_name_of_this_machine(here), "{here}");
        }
        for there in
            ["", "narthex.example.com", "localhost.example.com", "10.0.0.1:7717", "[::]:80", "::1"]
        {
            assert!(!is_name_of_this_machine(there), "{there}");
        }
    }
}
