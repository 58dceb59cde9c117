//! The list of secrets, with the form of the row that is replaced.

use http::StatusCode;
use narthex_console::{
    Told, html,
    pages::secrets::{SecretRow, SecretState, SecretsPage, SetFacts, Users, ValueForm},
    parts::{
        Empty, Filter, Moment, Same, Words,
        form::{Field, Input},
    },
};
use narthex_model::{
    ErrorKind, PrincipalId, SecretName, SecretSummary,
    command::{CommandLine, narthex},
};

use super::{
    done::Done,
    entries::{Entries, Entry},
};
use crate::{
    Access,
    console::{
        answer::{self, Answered},
        frame::{Head, frame},
        viewer::Viewer,
    },
    problem::Problem,
    routes::ADMIN,
    servers::Query,
};

/// Number of rows of one page.
const PAGE: usize = 40;
/// Number of things that a row names.
const USERS: usize = 6;
/// The filter for secrets to which nothing refers.
const UNUSED: &str = "unused";
/// The states in the order of the filters, with their words.
const STATES: [(&str, &str); 3] = [("set", "set"), ("unset", "not set"), (UNUSED, "not used")];
/// The parameters of the address.
const KNOWN: [&str; 6] = ["q", "state", "after", "replace", "done", "name"];

/// The part of the list that is shown.
#[derive(Default)]
pub(super) struct Wanted {
    part: String,
    state: &'static str,
    after: String,
    /// The secret whose form is open.
    replacing: String,
    /// The reason why the value in that form was refused.
    fault: Option<String>,
}

impl Wanted {
    fn of(query: &Query) -> Result<Self, Problem> {
        let word = query.text("state");
        let state = match STATES.iter().find(|(known, _)| *known == word) {
            Some((known, _)) => *known,
            None if word.is_empty() => "",
            None => {
                let text = "this state is not known; choose one of the filters above the list";
                return Err(Problem::new(ErrorKind::Invalid, text));
            }
        };
        Ok(Self {
            part: query.text("q").to_owned(),
            state,
            after: query.text("after").to_owned(),
            replacing: query.text("replace").to_owned(),
            fault: None,
        })
    }

    fn fits(&self, name: &SecretName, entry: &Entry) -> bool {
        is_in(self.state, entry) && self.has_name(name)
    }

    fn has_name(&self, name: &SecretName) -> bool {
        name.as_str().contains(&self.part.to_uppercase())
    }
}

fn is_in(state: &str, entry: &Entry) -> bool {
    match state {
        "set" => entry.set.is_some(),
        "unset" => entry.set.is_none(),
        UNUSED => entry.users.is_empty(),
        _ => true,
    }
}

/// Shows the list.
pub(super) async fn show(viewer: &Viewer<'_>) -> Answered {
    let query = viewer.query(&KNOWN)?;
    let wanted = Wanted::of(&query)?;
    page(viewer, &wanted, told(&query), StatusCode::OK).await
}

/// Shows the row of a secret whose new value was refused, with the reason and without the value.
pub(super) async fn refused(viewer: &Viewer<'_>, name: &SecretName, fault: String) -> Answered {
    let name = name.as_str().to_owned();
    let wanted =
        Wanted { part: name.clone(), replacing: name, fault: Some(fault), ..Wanted::default() };
    page(viewer, &wanted, None, StatusCode::UNPROCESSABLE_ENTITY).await
}

async fn page(
    viewer: &Viewer<'_>,
    wanted: &Wanted,
    told: Option<Told>,
    status: StatusCode,
) -> Answered {
    let entries = Entries::read(viewer).await?;
    if wanted.state == UNUSED && !entries.sees_users {
        let text = "which secrets are not used depends on the catalog, which is for authors";
        return Err(Problem::new(ErrorKind::Denied, text));
    }
    let fitting: Vec<_> =
        entries.all.iter().filter(|(name, entry)| wanted.fits(name, entry)).collect();
    let mut rest = fitting.iter().filter(|(name, _)| name.as_str() > wanted.after.as_str());
    let shown: Vec<_> = rest.by_ref().take(PAGE).collect();
    let next = rest.next().and(shown.last()).map(|(name, _)| {
        address(viewer, &[("q", &wanted.part), ("state", wanted.state), ("after", name.as_str())])
    });
    let request = format!("GET /api/workspaces/{}/secrets", viewer.workspace);
    let head = Head {
        title: Words::new("Secrets"),
        sentence: "Values that servers and channels get by name. No page and no request shows one \
                   again.",
        same: Some(Same::new(&command(viewer, narthex("secrets list", &[])), &request)),
    };
    let mut frame = frame(viewer, head).await?;
    frame.told = told;
    let may_change = viewer.may(Access::Member(ADMIN));
    let rows = shown.iter().map(|(name, entry)| {
        Row { viewer, wanted, name, may_change }.of(entry, entries.sees_users)
    });
    let page = SecretsPage {
        frame,
        filtered: wanted.part.clone(),
        path: viewer.path("secrets"),
        add: may_change.then(|| viewer.path("secrets/new")),
        filters: filters(viewer, wanted, &entries),
        rows: rows.collect(),
        count: fitting.len(),
        next,
        command: several_lines(viewer),
        empty: empty(viewer, entries.all.is_empty()),
    };
    Ok(answer::page(status, html(&page)))
}

/// The command that sets a secret from a file, which may have several lines.
pub(super) fn several_lines(viewer: &Viewer<'_>) -> Words {
    Words::new(&format!("{} < FILE", command(viewer, narthex("secrets set NAME", &[]))))
}

/// A command in the workspace of the page.
pub(super) fn command(viewer: &Viewer<'_>, command: CommandLine) -> String {
    command.in_workspace(viewer.workspace.as_str()).to_string()
}

/// The sentence for an action that was done.
fn told(query: &Query) -> Option<Told> {
    let name = SecretName::new(query.text("name")).ok()?;
    Done::of(query.text("done")).map(|done| done.told(&name))
}

/// A row that is made.
struct Row<'r, 'v> {
    viewer: &'r Viewer<'v>,
    wanted: &'r Wanted,
    name: &'r SecretName,
    may_change: bool,
}

impl Row<'_, '_> {
    fn of(&self, entry: &Entry, sees_users: bool) -> SecretRow {
        let is_open = self.may_change && self.wanted.replacing == self.name.as_str();
        let state = match &entry.set {
            None => SecretState::Unset { form: self.may_change.then(|| self.form("Value of", "")) },
            Some(set) if is_open => SecretState::Replacing {
                facts: self.facts(set),
                form: self.form("New value of", ", saved on submit"),
                cancel: format!("{}#{}", self.address(""), self.id()),
            },
            Some(set) => SecretState::Set {
                facts: self.facts(set),
                change: self.may_change.then(|| self.change()),
            },
        };
        let users = match sees_users {
            true => Users::Known {
                shown: entry.users.iter().take(USERS).cloned().collect(),
                more: entry.users.len().saturating_sub(USERS),
            },
            false => Users::Withheld,
        };
        SecretRow { id: self.id(), name: Words::new(self.name.as_str()), state, users }
    }

    fn id(&self) -> String {
        format!("secret-{}", self.name)
    }

    fn form(&self, before: &str, after: &str) -> ValueForm {
        let (name, is_open) = (self.name.as_str(), self.wanted.replacing == self.name.as_str());
        let fault = self.wanted.fault.as_deref().filter(|_| is_open);
        ValueForm {
            path: self.viewer.path(&format!("secrets/{name}/set")),
            field: Field::new("value", &format!("{before} {name}{after}"), Input::Unseen)
                .in_row(name)
                .fault(fault),
        }
    }

    /// The paths of Replace and of Clear. The first one leads to the field, which gets the focus.
    fn change(&self) -> [String; 2] {
        let field = self.form("", "").field.id();
        let replace = format!("{}#{field}", self.address(self.name.as_str()));
        [replace, self.viewer.path(&format!("secrets/{}/clear", self.name))]
    }

    /// The same part of the list with the form of a secret.
    fn address(&self, replacing: &str) -> String {
        let Wanted { part, state, after, .. } = self.wanted;
        let pairs =
            [("q", &**part), ("state", *state), ("after", &**after), ("replace", replacing)];
        address(self.viewer, &pairs)
    }

    fn facts(&self, set: &SecretSummary) -> SetFacts {
        let control = self.viewer.control();
        let by = match PrincipalId::new(&set.updated_by) {
            Ok(id) => control.principal_name(&id),
            Err(_unfit) => set.updated_by.clone(),
        };
        SetFacts {
            at: Moment::new(set.updated_at),
            by: Words::new(&by),
            version: set.versions.last().map_or(0, |newest| newest.version.get()),
        }
    }
}

fn filters(viewer: &Viewer<'_>, wanted: &Wanted, entries: &Entries) -> Vec<Filter> {
    let count = |state: &str| {
        let named = entries.all.iter().filter(|(name, _)| wanted.has_name(name));
        named.filter(|(_, entry)| is_in(state, entry)).count()
    };
    let filter = |word: &str, label: &str| Filter {
        href: address(viewer, &[("q", &wanted.part), ("state", word)]),
        label: label.to_owned(),
        count: Some(count(word)),
        is_current: wanted.state == word,
    };
    // Without the catalog it is unknown which secrets nothing refers to.
    let known = STATES.iter().filter(|(word, _)| entries.sees_users || *word != UNUSED);
    let each = known.map(|(word, label)| filter(word, label));
    let mut filters: Vec<_> = std::iter::once(filter("", "all")).chain(each).collect();
    if !wanted.part.is_empty() {
        let label = format!("named “{}” ✕", Words::within(&wanted.part, 40));
        let href = address(viewer, &[("state", wanted.state)]);
        filters.push(Filter { href, label, count: None, is_current: true });
    }
    filters
}

/// The address of the list with these parameters; empty ones are left out.
fn address(viewer: &Viewer<'_>, pairs: &[(&str, &str)]) -> String {
    let mut written = form_urlencoded::Serializer::new(String::new());
    written.extend_pairs(pairs.iter().filter(|(_, value)| !value.is_empty()));
    match written.finish().as_str() {
        "" => viewer.path("secrets"),
        query => viewer.path(&format!("secrets?{query}")),
    }
}

fn empty(viewer: &Viewer<'_>, is_whole: bool) -> Empty {
    match is_whole {
        true => Empty {
            title: "No secrets yet",
            sentence: "A secret is a value that servers and channels get by its name, such as a \
                       key."
                .to_owned(),
            example: Some(command(viewer, narthex("secrets set LINEAR_API_KEY", &[]))),
            page: Some("docs/guides/secrets.md"),
        },
        false => Empty {
            title: "No secret fits",
            sentence: "Take a filter away, or search for another part of the name.".to_owned(),
            example: None,
            page: None,
        },
    }
}
