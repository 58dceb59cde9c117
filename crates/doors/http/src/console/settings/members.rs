//! The members of a workspace: their roles, a new member, and what a removal ends.

use std::{sync::Arc, time::SystemTime};

use narthex_console::{
    pages::settings::{Card, Cell, Form, Piece},
    parts::{
        Action, Empty, Moment, Words,
        form::{Field, Input},
        item::{Badge, Item},
    },
};
use narthex_control::{Account, GrantSearch};
use narthex_model::{ErrorKind, PrincipalKind, Role, Roles, command::narthex};
use serde_json::json;

use super::{
    faults::Faults,
    roles,
    tab::{self, Asking, Made},
};
use crate::{
    Access,
    body::RequestBody,
    console::{
        answer::{self, Answered},
        sent::Sent,
        viewer::Viewer,
    },
    problem::Problem,
};

const TAB: &str = "settings/members";
const DONE: [(&str, &str); 3] = [
    ("saved", "The roles of {} are saved."),
    ("removed", "{} is no member any more."),
    ("created", "The account of {} is created, and has its roles."),
];
/// Number of grants that are counted.
const COUNTED: u32 = 100;
/// The box that creates an account.
const CREATE: &str = "create";

pub(super) async fn show(viewer: &Viewer<'_>) -> Answered {
    let query = viewer.query(&["after", "done", "name"])?;
    let mut all = viewer.control().members(&viewer.workspace)?;
    all.sort_by(|one, other| one.name.as_str().cmp(other.name.as_str()));
    let rest = all.iter().filter(|one| one.name.as_str() > query.text("after"));
    let counted = format!("{} members", all.len());
    let (shown, more) = tab::first(viewer, TAB, rest, &counted, |one| one.name.to_string());
    let rows = shown.iter().map(|one| row(viewer, one)).collect();
    let pieces = match shown.is_empty() {
        true => vec![Piece::Empty(empty(viewer))],
        false => vec![Piece::Rows(rows), more],
    };
    let head = tab::head(
        viewer,
        "Members",
        "The people and the services that may do something in this workspace.",
        narthex("members list", &[]),
        &tab::request(viewer, "GET", "/members"),
    );
    let sentence = "Operators may do everything here, also without a role.";
    let cards = vec![Card::new("members", "Members", sentence, pieces)];
    let primary = Some(tab::adding(viewer, "settings/members/new", "Add a member"));
    let made = Made { primary, ..Made::new(head, TAB, cards) };
    Made { told: tab::told(&query, &DONE), ..made }.answer(viewer).await
}

fn row(viewer: &Viewer<'_>, one: &Account) -> Item {
    let mut item = Item::new(&viewer.csrf, one.name.as_str());
    item.href = Some(path(viewer, one, "roles"));
    item.badge = one.disabled_at.is_some().then(|| Badge::off("disabled"));
    item.facts.push(Words::new(kind(one)));
    item.facts.push(Words::new(&roles::words(one.roles.get(&viewer.workspace))));
    if one.id == viewer.signed_in.account.id {
        item.facts.push(Words::new("you"));
    }
    let hint = "asks first, and then takes all roles of this workspace away";
    let remove = Action::new(path(viewer, one, "remove"), "Remove", hint).page();
    item.actions.push(match tab::off(viewer) {
        None => remove,
        Some(why) => remove.off(why),
    });
    item
}

fn kind(one: &Account) -> &'static str {
    match one.kind {
        PrincipalKind::Human => "a human",
        PrincipalKind::Service => "a service",
        PrincipalKind::Client => "a client",
    }
}

fn path(viewer: &Viewer<'_>, one: &Account, verb: &str) -> String {
    viewer.path(&format!("{TAB}/{}/{verb}", one.id))
}

fn empty(viewer: &Viewer<'_>) -> Empty {
    let example = narthex("members set NAME author", &[]).in_workspace(viewer.workspace.as_str());
    Empty {
        title: "No members yet",
        sentence: "Only operators may do something here.".to_owned(),
        example: Some(example.to_string()),
        page: Some("docs/guides/team.md"),
    }
}

/// The member of the path. Others are absent.
fn member(viewer: &Viewer<'_>) -> Result<Arc<Account>, Problem> {
    let id = viewer.segment(0);
    let found = viewer.control().members(&viewer.workspace)?;
    let found = found.into_iter().find(|one| one.id.as_str() == id);
    found.ok_or_else(|| Problem::new(ErrorKind::NotFound, "this is no member of the workspace"))
}

/// The roles of one member.
pub(super) async fn one(viewer: &Viewer<'_>) -> Answered {
    let query = tab::only_done(viewer)?;
    let one = member(viewer)?;
    let chosen = one.roles.get(&viewer.workspace).cloned().unwrap_or_default();
    let made = roles_of(viewer, &one, &chosen, &Faults::default());
    Made { told: tab::told(&query, &DONE), ..made }.answer(viewer).await
}

/// Sets the roles of one member, as `PUT` of the API does.
pub(super) async fn set(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let sent: Sent = viewer.form(body).await?;
    let sent = sent.only(roles::is_box)?;
    let one = member(viewer)?;
    let chosen = roles::sent(&sent);
    match give(viewer, one.id.as_str(), &chosen).await? {
        // A human may have taken their own right to see the members away.
        None if one.id == viewer.signed_in.account.id && !viewer.principal.is_operator() => {
            answer::redirect(&viewer.path("settings"))
        }
        None => tab::done(viewer, TAB, "saved", one.name.as_str()),
        Some(faults) => roles_of(viewer, &one, &chosen, &faults).answer(viewer).await,
    }
}

/// Gives a principal these roles; the faults if that was refused.
async fn give(viewer: &Viewer<'_>, who: &str, chosen: &Roles) -> Result<Option<Faults>, Problem> {
    if chosen.is_empty() {
        let remedy = "check at least one, or remove the member";
        return Ok(Some(Faults::one("roles", "no role is checked", remedy)));
    }
    let text = json!({ "roles": chosen }).to_string();
    let (control, workspace) = (viewer.control(), &viewer.workspace);
    let is_operator = viewer.principal.is_operator();
    let set = control.member_set(workspace, who, text.as_bytes(), is_operator, &viewer.by()).await;
    match set {
        Ok(_member) => Ok(None),
        Err(error) => Faults::of(viewer, error).map(Some),
    }
}

fn roles_of(viewer: &Viewer<'_>, one: &Account, chosen: &Roles, faults: &Faults) -> Made {
    let name = one.name.as_str();
    let rest = format!("/members/{}", one.id);
    let head = tab::head(
        viewer,
        &format!("Roles of {name}"),
        "What this member may do in the workspace.",
        narthex("members set {} author", &[&name]),
        &tab::request(viewer, "PUT", &rest),
    );
    let mut facts = vec![
        ("kind", Cell::new(kind(one))),
        ("id", Cell::new(one.id.as_str())),
        ("known since", Cell::at("", Moment::new(one.created_at))),
    ];
    if one.disabled_at.is_some() {
        facts.push(("state", Cell::new("disabled: an operator enables the account").bad()));
    }
    let form = Form::new(path(viewer, one, "roles"), &viewer.csrf, "Save the roles")
        .group(roles::group(chosen, faults))
        .fault(faults.rest(&["roles"]))
        .off(tab::off(viewer));
    let mut cards = vec![
        Card::new("facts", "The member", "", vec![Piece::Pairs(facts)]),
        Card::new("roles", "Roles", "", vec![Piece::Form(form)]),
    ];
    cards.extend(link_of(viewer, one));
    if tab::off(viewer).is_none() {
        let href = path(viewer, one, "remove");
        let label = Words::new(&format!("Remove {name}"));
        let sentence = "Takes all roles of this workspace away.";
        let pieces = vec![Piece::Link { href, label }];
        cards.push(Card::new("remove", "Remove", sentence, pieces));
    }
    Made::new(head, TAB, cards).refused(!faults.is_empty())
}

/// The card that makes a link, by the form of the sign-in page, which is for operators.
fn link_of(viewer: &Viewer<'_>, one: &Account) -> Option<Card> {
    if one.kind != PrincipalKind::Human || !viewer.principal.is_operator() {
        return None;
    }
    let form = Form::new("/signin/links".to_owned(), &viewer.csrf, "Make a sign-in link")
        .keep("name", one.name.as_str());
    let sentence = "A link signs its reader in as this human, once, within 15 minutes. It is \
                    shown once: send it to this human alone.";
    Some(Card::new("invite", "Invite", sentence, vec![Piece::Form(form)]))
}

/// The empty form of a new member.
pub(super) async fn new(viewer: &Viewer<'_>) -> Answered {
    viewer.query(&[])?;
    adding(viewer, "", &Roles::from([Role::Author]), &Faults::default()).answer(viewer).await
}

/// Gives a human roles. An operator may create the account by the same form.
pub(super) async fn add(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let sent: Sent = viewer.form(body).await?;
    let sent = sent.only(|name| roles::is_box(name) || ["name", CREATE].contains(&name))?;
    let (name, chosen) = (sent.text("name"), roles::sent(&sent));
    let (mut faults, mut verb) = (Faults::default(), "saved");
    if name.is_empty() {
        faults.add("name", "it is missing", "write the name of the account");
    }
    if chosen.is_empty() {
        faults.add("roles", "no role is checked", "check at least one");
    }
    if faults.is_empty() && sent.is_on(CREATE) {
        viewer.check(Access::Operator)?;
        let text = json!({ "name": name }).to_string();
        match viewer.control().principal_create(text.as_bytes(), &viewer.by()).await {
            Ok(_account) => verb = "created",
            Err(error) => faults = Faults::of(viewer, error)?,
        }
    }
    if faults.is_empty() {
        match give(viewer, &name, &chosen).await? {
            None => {
                let all = viewer.control().members(&viewer.workspace)?;
                let named =
                    |one: &&Arc<Account>| one.name.as_str() == name || one.id.as_str() == name;
                let place = all.iter().find(named).map(|one| format!("{TAB}/{}/roles", one.id));
                return tab::done(viewer, place.as_deref().unwrap_or(TAB), verb, &name);
            }
            Some(refused) => faults = refused,
        }
    }
    adding(viewer, &name, &chosen, &faults).answer(viewer).await
}

fn adding(viewer: &Viewer<'_>, name: &str, chosen: &Roles, faults: &Faults) -> Made {
    let head = tab::head(
        viewer,
        "Add a member",
        "A human or a service gets roles in this workspace.",
        narthex("members set NAME author", &[]),
        &tab::request(viewer, "PUT", "/members/NAME"),
    );
    let is_operator = viewer.principal.is_operator();
    let field = Field::new("name", "Name", Input::line(name))
        .required()
        .fault(faults.at("name").as_deref())
        .help("Of the account; of a service with its workspace, as in team/ci.");
    let mut fields = vec![field];
    if is_operator {
        let create = Field::new(CREATE, "Create the account", Input::Check { is_on: false });
        fields.push(create.help("For a human who has none yet. Then make a sign-in link."));
    }
    let form = Form::new(viewer.path("settings/members/new"), &viewer.csrf, "Add")
        .fields(fields)
        .group(roles::group(chosen, faults))
        .fault(faults.rest(&["name", "roles"]));
    let mut pieces = Vec::new();
    if !is_operator {
        let text = "Only an operator brings a human into a workspace. You can give roles to \
                    services of this workspace, and to members.";
        pieces.push(Piece::Note(Words::new(text)));
    }
    pieces.push(Piece::Form(form));
    let cards = vec![Card::new("add", "The member", "", pieces)];
    Made::new(head, TAB, cards).refused(!faults.is_empty())
}

/// Asks before a member is removed.
pub(super) async fn ask(viewer: &Viewer<'_>) -> Answered {
    viewer.query(&[])?;
    let one = member(viewer)?;
    let name = one.name.as_str();
    let rest = format!("/members/{}", one.id);
    let head = tab::head(
        viewer,
        &format!("Remove {name}?"),
        "What ends, before the roles are taken away.",
        narthex("members remove {}", &[&name]),
        &tab::request(viewer, "DELETE", &rest),
    );
    let facts = vec![
        ("kind", Cell::new(kind(&one))),
        ("roles", Cell::new(&roles::words(one.roles.get(&viewer.workspace)))),
    ];
    let form = Form::new(path(viewer, &one, "remove"), &viewer.csrf, "Remove the member");
    let effects = effects(viewer, &one).await?;
    Asking { head, effects, facts, form, back: viewer.path(TAB) }.answer(viewer).await
}

/// The things that end with the membership.
async fn effects(viewer: &Viewer<'_>, one: &Account) -> Result<Vec<String>, Problem> {
    let (control, workspace) = (viewer.control(), &viewer.workspace);
    let mut effects = vec!["All roles in this workspace go. The account stays.".to_owned()];
    if one.id == viewer.signed_in.account.id {
        effects.push("This is you: you may no longer open this workspace.".to_owned());
    }
    let is_admin = |one: &Account| {
        let own = one.roles.get(workspace);
        one.disabled_at.is_none() && own.is_some_and(|own| own.contains(&Role::Admin))
    };
    let others = control.members(workspace)?;
    let has_another = others.iter().any(|other| other.id != one.id && is_admin(other));
    if is_admin(one) && !has_another {
        effects.push("This is the last admin: after that, only operators change it.".to_owned());
    }
    if one.kind == PrincipalKind::Service {
        let now = SystemTime::now();
        let tokens = control.service_tokens(workspace)?;
        let live = tokens.iter().filter(|token| token.account.id == one.id && token.is_live(now));
        effects.push(format!("Its tokens are revoked at once: {}.", live.count()));
        return Ok(effects);
    }
    let user = Some(one.id.clone());
    let search = GrantSearch { user, limit: COUNTED, ..GrantSearch::default() };
    let grants = control.grants_search(workspace, &search).await?;
    let more = if grants.next.is_some() { " or more" } else { "" };
    effects.push(format!("Grants to this human end: {}{more}.", grants.items.len()));
    let connections = control.connections(workspace, &one.id, true).await?;
    let kept = connections.iter().filter(|one| one.facts.is_some()).count();
    effects.push(format!("Sign-ins of this human to servers here are deleted: {kept}."));
    let clients = control.clients(workspace)?;
    let now = SystemTime::now();
    let acting =
        clients.iter().filter(|client| client.acts_for() == Some(&one.id) && client.is_live(now));
    let count = acting.count();
    effects.push(format!("Programs that act for this human here lose their access: {count}."));
    Ok(effects)
}

/// Removes a member, as `DELETE` of the API does.
pub(super) async fn remove(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let sent: Sent = viewer.form(body).await?;
    let sent = sent.only(|name| name == tab::SURE)?;
    let one = member(viewer)?;
    if !tab::is_sure(&sent) {
        return answer::redirect(&path(viewer, &one, "remove"));
    }
    let (control, workspace) = (viewer.control(), &viewer.workspace);
    control.member_remove(workspace, one.id.as_str(), &viewer.by()).await?;
    match one.id == viewer.signed_in.account.id && !viewer.principal.is_operator() {
        true => answer::redirect("/"),
        false => tab::done(viewer, TAB, "removed", one.name.as_str()),
    }
}
