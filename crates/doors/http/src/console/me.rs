//! The account of the signed-in human: connections to servers (X-E49), programs that act for the
//! human, passkeys, and sign-ins.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::StatusCode;
use narthex_console::{
    Told, html,
    pages::me::{Adding, MeOnwardPage, MePage},
    parts::{
        Action, Moment, Same, Words,
        form::{Field, Input},
        item::{Badge, Dated, Item},
    },
};
use narthex_control::{Connecting, OwnSession, PasskeyRow, UserConnection};
use narthex_model::{ErrorKind, command::narthex};

use super::{
    answer::{self, Answered},
    frame::{Head, frame, way},
    page::Page,
    viewer::Viewer,
};
use crate::{
    Access,
    body::RequestBody,
    problem::Problem,
    routes::{AUTHOR, EVERY},
    servers::Query,
    shapes::CsrfForm,
    signin::{Program, programs_of, revoke_program},
};

/// The page and its actions, with the access of the API's connections. All of them are about the
/// human alone.
pub(super) const PAGES: &[Page] = &[
    Page::get("me", Access::Member(EVERY), |viewer, _| Box::pin(show(viewer)))
        .in_nav("My account", "person"),
    Page::post("me/connections/{name}/connect", Access::Member(EVERY), |viewer, body| {
        Box::pin(connect(viewer, body))
    }),
    Page::post("me/connections/{name}/disconnect", Access::Member(EVERY), |viewer, body| {
        Box::pin(disconnect(viewer, body))
    }),
    Page::post("me/programs/{name}/revoke", Access::Member(EVERY), |viewer, body| {
        Box::pin(revoke(viewer, body))
    }),
    Page::post("me/passkeys/{name}/remove", Access::Member(EVERY), |viewer, body| {
        Box::pin(remove_passkey(viewer, body))
    }),
    Page::post("me/sign-ins/{name}/end", Access::Member(EVERY), |viewer, body| {
        Box::pin(end_login(viewer, body))
    }),
];

/// Number of connections of one page.
const PAGE: usize = 40;
/// The reason why a passkey stays.
const NOT_PROVED: &str = "a link proves no human: sign in with a passkey or at a provider first";

async fn show(viewer: &Viewer<'_>) -> Answered {
    let query = viewer.query(&["after", "done", "name"])?;
    let (control, signed_in) = (viewer.control(), &viewer.signed_in);
    let (connections, next) = connections(viewer, query.text("after")).await?;
    let passkeys = control.passkeys(&signed_in.account.id).await?;
    let head = Head {
        title: Words::new("My account"),
        sentence: "Your connections to servers, the programs that act for you, and your sign-ins.",
        same: Some(Same::new(
            &narthex("connections list", &[]).in_workspace(viewer.workspace.as_str()).to_string(),
            &format!("GET /api/workspaces/{}/users/me/mcp-tokens", viewer.workspace),
        )),
    };
    let mut frame = frame(viewer, head).await?;
    frame.told = told(&query);
    let page = MePage {
        frame,
        connections,
        next,
        programs: programs_of(control, signed_in).iter().map(|one| program(viewer, one)).collect(),
        connect: viewer.path("connect"),
        passkeys: passkeys.iter().map(|row| passkey(viewer, row)).collect(),
        adding: adding(viewer).await?,
        logins: control.own_sessions(signed_in)?.iter().map(|one| login(viewer, one)).collect(),
    };
    Ok(answer::page(StatusCode::OK, html(&page)))
}

/// The rows of the connections, and the address of the next page.
async fn connections(
    viewer: &Viewer<'_>,
    after: &str,
) -> Result<(Vec<Item>, Option<String>), Problem> {
    let user = &viewer.signed_in.account.id;
    let sees_all = viewer.principal.has_any(&viewer.workspace, AUTHOR);
    let all = viewer.control().connections(&viewer.workspace, user, sees_all).await?;
    let mut rest = all.iter().filter(|one| one.server.as_str() > after);
    let shown: Vec<_> = rest.by_ref().take(PAGE).collect();
    let next = rest.next().and(shown.last()).map(|last| {
        let mut written = form_urlencoded::Serializer::new(String::new());
        written.append_pair("after", &last.server);
        viewer.path(&format!("me?{}", written.finish()))
    });
    Ok((shown.into_iter().map(|one| connection(viewer, one)).collect(), next))
}

fn connection(viewer: &Viewer<'_>, one: &UserConnection) -> Item {
    let UserConnection { workspace: _, server, name, is_connected, facts } = one;
    let act = |verb: &str, label, hint| {
        let path = viewer.action("me/connections", server, verb);
        Action::new(path, label, hint).page()
    };
    let mut item = Item::new(&viewer.csrf, name.as_deref().unwrap_or(server));
    item.facts.push(Words::new(server));
    item.badge = Some(match (is_connected, facts) {
        (true, _) => Badge::fine("connected"),
        (false, Some(_)) => Badge::asks("needs a sign-in"),
        (false, None) => Badge::off("not connected"),
    });
    match name {
        Some(_) => {
            let (label, hint) = match facts {
                Some(_) => ("Connect again", "leads to the sign-in of the server once more"),
                None => ("Connect", "leads to the sign-in of the server, in this browser"),
            };
            let connect = act("connect", label, hint);
            item.actions.push(if *is_connected { connect } else { connect.primary() });
        }
        None => {
            item.note = Some(Words::new("The server is gone, or you may not see it any more."));
        }
    }
    if let Some(facts) = facts {
        let hint = "revokes the tokens where that is possible, and deletes them";
        item.actions.push(act("disconnect", "Disconnect", hint));
        item.facts.push(Words::new(&format!("signed in at {}", facts.issuer)));
        let scopes = facts.scopes.trim();
        if !scopes.is_empty() {
            item.facts.push(Words::new(&format!("scopes {scopes}")));
        }
        item.times.extend(facts.succeeded_at.and_then(|at| dated("last token", at)));
        item.times.extend(facts.failed_at.and_then(|at| dated("last failure", at)));
    }
    item
}

/// A time in seconds since 1970.
fn dated(label: &'static str, seconds: u64) -> Option<Dated> {
    let at = UNIX_EPOCH.checked_add(Duration::from_secs(seconds))?;
    Some(Dated { label, at: Moment::new(at) })
}

fn since(label: &'static str, at: SystemTime) -> Dated {
    Dated { label, at: Moment::new(at) }
}

fn program(viewer: &Viewer<'_>, one: &Program) -> Item {
    let Program { id, name, place, sees, since } = one;
    let path = viewer.action("me/programs", id, "revoke");
    let hint = "closes the program's sessions, and ends its tokens";
    let facts =
        [format!("answers go to {place}"), format!("uses {sees}"), format!("since {since}")];
    Item {
        facts: facts.iter().map(|fact| Words::new(fact)).collect(),
        actions: vec![Action::new(path, "Revoke", hint).page()],
        ..Item::new(&viewer.csrf, name)
    }
}

fn passkey(viewer: &Viewer<'_>, row: &PasskeyRow) -> Item {
    let is_proved = viewer.signed_in.method.is_authenticated();
    let path = viewer.action("me/passkeys", &row.id, "remove");
    let remove = Action::new(path, "Remove", "no one signs in with this passkey any more").page();
    let is_off = viewer.control().needs_proof() && !is_proved;
    let label = if row.label.is_empty() { "a passkey without a name" } else { row.label.as_str() };
    let mut item = Item::new(&viewer.csrf, label);
    item.times.push(since("added", row.created_at));
    match row.used_at {
        Some(at) => item.times.push(since("last used", at)),
        None => item.facts.push(Words::new("not used yet")),
    }
    item.actions.push(if is_off { remove.off(NOT_PROVED) } else { remove });
    item
}

/// The way to another passkey, by the conditions of the ceremony.
async fn adding(viewer: &Viewer<'_>) -> Result<Adding, Problem> {
    let control = viewer.control();
    Ok(match (control.has_passkeys(), control.adds_passkeys(&viewer.signed_in).await?) {
        (false, _) => Adding::Off("Passkeys do not work at this numeric address."),
        (true, false) => Adding::Off(
            "Your link adds no passkey. For a link that adds one, ask an operator who signs in \
             with a passkey or at a provider.",
        ),
        (true, true) => {
            let input =
                Input::Line { value: String::new(), example: "such as: my phone".to_owned() };
            let field = Field::new("label", "Name of the new passkey", input);
            Adding::Form { field: Box::new(field), then: viewer.path("me?done=passkey") }
        }
    })
}

fn login(viewer: &Viewer<'_>, one: &OwnSession) -> Item {
    let title = format!("Signed in {}", way(one.method.as_str()));
    let mut item = Item::new(&viewer.csrf, &title);
    item.times.push(since("since", one.since));
    item.times.push(since("last used", one.seen_at));
    item.actions.push(match one.is_this {
        true => {
            item.badge = Some(Badge::fine("this browser"));
            Action::new("/signout".to_owned(), "Sign out", "ends the sign-in of this browser")
                .page()
        }
        false => {
            let path = viewer.action("me/sign-ins", &one.id, "end");
            let hint = "the browser of this sign-in has to sign in again";
            Action::new(path, "End", hint).page()
        }
    });
    item
}

/// The sentence for the last action.
fn told(query: &Query) -> Option<Told> {
    let name = Words::new(query.subject());
    let sentence = match query.text("done") {
        "disconnect" => format!("You are no longer connected to {name}."),
        "revoke" => "The program no longer acts for you.".to_owned(),
        "remove" => "The passkey was removed.".to_owned(),
        "passkey" => "The passkey was added.".to_owned(),
        "end" => "The sign-in has ended.".to_owned(),
        _ => return None,
    };
    Some(Told { sentence: Words::new(&sentence), is_failure: false })
}

/// Starts the sign-in of the human to a server, which only this browser can finish.
async fn connect(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let CsrfForm { csrf: _ } = viewer.form(body).await?;
    let signed_in = &viewer.signed_in;
    let server = viewer.segment(0);
    let wanted = Connecting {
        workspace: viewer.workspace.clone(),
        server: server.clone(),
        user: signed_in.account.id.clone(),
        session: Some(signed_in.session.clone()),
        sees_all: viewer.principal.has_any(&viewer.workspace, AUTHOR),
    };
    let begun = viewer.control().connect(wanted, &viewer.by()).await?;
    if !matches!(begun.url.scheme(), "http" | "https") {
        let text = "the server named no page for its sign-in; ask who stored the server";
        return Err(Problem::new(ErrorKind::Unavailable, text));
    }
    let head = Head {
        title: Words::new(&format!("Connect to {server}")),
        sentence: "The server asks for your account, which your own runs will use.",
        same: Some(Same::new(
            &narthex("connections connect {}", &[&server])
                .in_workspace(viewer.workspace.as_str())
                .to_string(),
            &format!(
                "POST /api/workspaces/{}/users/me/mcp-tokens/{server}/connect",
                viewer.workspace
            ),
        )),
    };
    let page = MeOnwardPage {
        frame: frame(viewer, head).await?,
        server: Words::new(&server),
        host: Words::new(begun.url.host_str().unwrap_or_default()),
        url: begun.url.to_string(),
        back: viewer.path("me"),
    };
    Ok(answer::page(StatusCode::OK, html(&page)))
}

async fn disconnect(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let CsrfForm { csrf: _ } = viewer.form(body).await?;
    let (server, user) = (viewer.segment(0), &viewer.signed_in.account.id);
    let sees_all = viewer.principal.has_any(&viewer.workspace, AUTHOR);
    let (control, workspace) = (viewer.control(), &viewer.workspace);
    control.disconnect(workspace, &server, user, sees_all, &viewer.by()).await?;
    done(viewer, "disconnect", &server)
}

async fn revoke(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let CsrfForm { csrf: _ } = viewer.form(body).await?;
    let (control, signed_in) = (viewer.control(), &viewer.signed_in);
    revoke_program(viewer.door, control, signed_in, &viewer.segment(0)).await?;
    done(viewer, "revoke", "")
}

async fn remove_passkey(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let CsrfForm { csrf: _ } = viewer.form(body).await?;
    let signed_in = &viewer.signed_in;
    let is_proved = signed_in.method.is_authenticated();
    let (owner, id) = (&signed_in.account.id, viewer.segment(0));
    viewer.control().passkey_remove(owner, &id, &viewer.by(), is_proved).await?;
    done(viewer, "remove", "")
}

async fn end_login(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let CsrfForm { csrf: _ } = viewer.form(body).await?;
    viewer.control().own_session_end(&viewer.signed_in, &viewer.segment(0)).await?;
    done(viewer, "end", "")
}

fn done(viewer: &Viewer<'_>, verb: &str, name: &str) -> Answered {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("done", verb).append_pair("name", name);
    answer::redirect(&viewer.path(&format!("me?{}", query.finish())))
}
