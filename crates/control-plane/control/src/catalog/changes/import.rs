//! Import of many objects, as a whole or not at all; and the export of a workspace in one document
//! that can be imported elsewhere (O83).

use std::collections::{BTreeMap, BTreeSet};

use narthex_audit::Noted;
use narthex_catalog::fields::{CatalogError, FieldCode, FieldError, FieldWarning};
use narthex_catalog::{ServerEntry, document};
use narthex_model::{CatalogKind, SecretName, WorkspaceId, command::narthex, written::inside};
use narthex_store::{CatalogRow, CatalogStep};
use serde_json::{Value, json};

use super::{
    CatalogChange, Precondition, changed,
    cutting::{cut_through, is_cut},
    tag,
};
use crate::{
    By, Control, ControlError,
    catalog::{
        checks::{Definition, Stored, Workspace},
        export,
        personal::to_prepare,
    },
};

/// The conditions of an import, and its actor.
#[derive(Debug, Clone)]
pub struct CatalogImport {
    /// The workspace to store into.
    pub workspace: WorkspaceId,
    /// The actor.
    pub by: By,
    /// True if the actor may write servers, and read the way to reach them (X-M7, X-D12).
    pub may_write_servers: bool,
    /// True if the import is only checked.
    pub is_dry: bool,
    /// The servers that were written inside an agent, each with the agent's name. They replace only
    /// servers that a manifest of the agent has made.
    pub inside: BTreeMap<String, String>,
    /// True if the imported servers are not asked for their authorization servers.
    pub is_offline: bool,
}

/// The result of an import, or of its check.
#[derive(Debug, Clone, PartialEq)]
pub struct CatalogImported {
    /// The objects of the document, in an order in which references hold.
    pub changes: Vec<CatalogImportChange>,
    /// Warnings for people, about these objects and about others that the import breaks.
    pub warnings: Vec<FieldWarning>,
    /// Servers from earlier manifests of the document's agents that these agents no longer attach.
    /// They stay stored.
    pub left: Vec<CatalogLeft>,
}

/// A server from a manifest of an agent that the agent no longer attaches.
#[derive(Debug, Clone, PartialEq)]
pub struct CatalogLeft {
    /// The agent.
    pub agent: String,
    /// The server's id.
    pub id: String,
    /// The stored version tag: see [`Precondition::Tags`].
    pub tag: String,
    /// Every place that refers to the server.
    pub users: Vec<FieldError>,
}

/// The change of one object.
#[derive(Debug, Clone, PartialEq)]
pub struct CatalogImportChange {
    /// The kind of the object.
    pub kind: CatalogKind,
    /// The object's id.
    pub id: String,
    /// The object's place in the document, such as `servers[0]`.
    pub place: String,
    /// The object before, without hidden literals; `None` if there was none that can be read.
    pub before: Option<Value>,
    /// The object after, without hidden literals.
    pub after: Value,
    /// True if the stored object does not change.
    pub is_same: bool,
}

/// The members of the document.
const GROUPS: [(&str, CatalogKind); 3] = [
    ("servers", CatalogKind::Server),
    ("capabilities", CatalogKind::Capability),
    ("agents", CatalogKind::Agent),
];
/// The version of the document's form.
const VERSION: u64 = 1;

/// Largest number of objects of one document: each is an event, and all of them one transaction.
const OBJECTS_MAX: usize = 1000;

/// An object of the document.
struct Given {
    definition: Definition,
    /// The object's place in the document.
    place: String,
}

/// The rights of an import over servers.
#[derive(Debug, Clone)]
struct May {
    /// True if it may store servers.
    write_servers: bool,
    /// The servers that were written inside an agent, each with the agent's name.
    replace: BTreeMap<String, String>,
}

/// An object that is ready to store.
struct Ready {
    kind: CatalogKind,
    id: String,
    document: String,
    before: Option<CatalogRow>,
}

impl Control {
    /// All objects of a workspace in one document, for [`Control::catalog_import`]. References to
    /// secrets replace hidden literals.
    ///
    /// # Errors
    /// When an object cannot be read, there is no store or no such workspace, or the store or the
    /// vault fails.
    pub async fn catalog_export(&self, workspace: &WorkspaceId) -> Result<Value, ControlError> {
        let stored = self.catalog_stored(workspace).await?;
        let exported = self.catalog_work(move || export::exported(&stored));
        Ok(exported.await??)
    }

    /// Stores all objects of a document, new ones and replacements, or only reports the effect.
    /// Objects that the document does not name stay.
    ///
    /// # Errors
    /// When an object is wrong by itself or together with all others; when the document has servers
    /// and the caller may not write servers; when there is no store or no such workspace, or the
    /// store or the vault fails. Then nothing was stored.
    pub async fn catalog_import(
        &self,
        import: CatalogImport,
        text: Vec<u8>,
    ) -> Result<CatalogImported, ControlError> {
        let work = async move |this: Self| {
            let CatalogImport { workspace, by, may_write_servers, is_dry, inside, is_offline } =
                import;
            let may = May { write_servers: may_write_servers, replace: inside };
            let together = this.shared.cataloguing.take(&workspace).await;
            let (mut ready, mut imported) =
                this.import_prepared(&workspace, text.clone(), may.clone()).await?;
            if is_dry {
                return Ok(imported);
            }
            let mut together = Some(together);
            let to_ask = if is_offline { Vec::new() } else { to_ask(&ready, &imported.changes) };
            if !to_ask.is_empty() {
                // No other change waits for the authorization servers.
                drop(together.take());
                let more = this.ask_all(&workspace, &to_ask).await?;
                together = Some(this.shared.cataloguing.take(&workspace).await);
                (ready, imported) = this.import_prepared(&workspace, text, may).await?;
                imported.warnings.extend(more);
            }
            let _together = together;
            let store = this.catalog_store(&workspace).await?;
            let steps: Vec<_> = ready
                .iter()
                .filter(|one| one.before.as_ref().is_none_or(|row| row.document != one.document))
                .map(|one| CatalogStep {
                    kind: one.kind,
                    id: &one.id,
                    before: one.before.as_ref(),
                    document: &one.document,
                    is_cut: is_cut(one.kind, &one.document),
                })
                .collect();
            let event = |step: &CatalogStep<'_>| {
                let (workspace, by) = (workspace.clone(), by.clone());
                let precondition = Precondition::None;
                let (kind, is_offline) = (step.kind, true);
                let change = CatalogChange { workspace, kind, precondition, by, is_offline };
                changed(&change, step.before, step.id, step.document)
            };
            let noted = this.note_all(steps.iter().map(event).collect()).await?;
            let written = store.catalog_change(&workspace, &steps, &by.id).await;
            if !written.map_err(ControlError::Store)? {
                return Err(CatalogError::ImportOutrun.into());
            }
            Noted::all_done(noted).await;
            for one in &ready {
                cut_through(&this, &workspace, one.kind, &one.id, &one.document);
            }
            Ok(imported)
        };
        self.to_the_end(work).await
    }
}

impl Control {
    async fn import_prepared(
        &self,
        workspace: &WorkspaceId,
        text: Vec<u8>,
        may: May,
    ) -> Result<(Vec<Ready>, CatalogImported), ControlError> {
        let stored = self.catalog_stored(workspace).await?;
        Ok(self.catalog_work(move || prepare(&stored, &text, &may)).await??)
    }

    /// Prepares the sign-ins to servers, and reports the faults of all of them at once (X-M13).
    async fn ask_all(
        &self,
        workspace: &WorkspaceId,
        servers: &[Placed],
    ) -> Result<Vec<FieldWarning>, ControlError> {
        let (mut faults, mut warnings) = (Vec::new(), Vec::new());
        for Placed { entry, place } in servers {
            match self.prepare_sign_in(workspace, entry, place).await {
                Ok(warning) => warnings.extend(warning),
                Err(ControlError::Catalog(CatalogError::Refused(more))) => faults.extend(more),
                Err(error) => return Err(error),
            }
        }
        if faults.is_empty() { Ok(warnings) } else { Err(CatalogError::Refused(faults).into()) }
    }
}

/// A server of the document, with its place there.
struct Placed {
    entry: ServerEntry,
    place: String,
}

/// The servers whose authorization servers are asked before the import.
fn to_ask(ready: &[Ready], changes: &[CatalogImportChange]) -> Vec<Placed> {
    let servers = ready.iter().filter(|one| one.kind == CatalogKind::Server);
    let placed = servers.filter_map(|one| {
        let entry = to_prepare(&one.document, one.before.as_ref())?;
        let is_it = |change: &&CatalogImportChange| change.kind == one.kind && change.id == one.id;
        let place = changes.iter().find(is_it).map(|change| change.place.clone());
        Some(Placed { entry, place: place.unwrap_or_default() })
    });
    placed.collect()
}

/// Reads a document, and checks all of it against all stored objects.
fn prepare(
    stored: &Stored,
    text: &[u8],
    may: &May,
) -> Result<(Vec<Ready>, CatalogImported), CatalogError> {
    let document = document(text).map_err(CatalogError::of)?;
    let Read { given, secrets, mut errors, mut warnings, is_named } = read(document)?;
    let has_servers = given.iter().any(|one| one.definition.kind() == CatalogKind::Server);
    if has_servers && !may.write_servers {
        return Err(CatalogError::ServersDenied);
    }
    for kind in CatalogKind::ALL {
        let is_new = |one: &&Given| {
            one.definition.kind() == kind && stored.find(kind, one.definition.id()).is_none()
        };
        stored.room_for(kind, given.iter().filter(is_new).count())?;
    }
    let old = stored.read();
    let mut new = stored.read();
    for one in &given {
        new.put(one.definition.clone());
    }
    // Other objects may refer to an unreadable object. If there is one, only faults within a single
    // object are reported.
    let is_read = errors.is_empty();
    let is_due = |code: FieldCode| is_read || code.is_of_itself(is_named);
    let servers = given.iter().filter(|one| one.definition.kind() == CatalogKind::Server);
    errors.extend(
        servers.filter_map(|one| taken(one, &old, stored, may.replace.get(one.definition.id())?)),
    );
    for one in &given {
        match new.alone(&one.definition) {
            Ok(unwise) => warnings.extend(unwise.into_iter().map(|warning| FieldWarning {
                field: inside(&one.place, &warning.field),
                ..warning
            })),
            Err(faults) => errors.extend(
                faults
                    .into_iter()
                    .filter(|fault| is_due(fault.code))
                    .map(|fault| FieldError { field: inside(&one.place, &fault.field), ..fault }),
            ),
        }
    }
    match new.broken_since(&old, given.iter().map(|one| &one.definition)) {
        Ok(broken) => warnings.extend(broken),
        Err(refused) => errors.extend(refused.into_iter().filter(|_| is_read)),
    }
    if !errors.is_empty() {
        return Err(CatalogError::Refused(errors));
    }
    warnings.extend(unset(&secrets, stored));
    let (mut ready, mut changes) = (Vec::new(), Vec::new());
    let left = left(&given, &new, stored);
    for Given { definition, place, .. } in given {
        let (kind, id) = (definition.kind(), definition.id().to_owned());
        let (before, document) = (stored.find(kind, &id).cloned(), definition.document());
        changes.push(CatalogImportChange {
            kind,
            place,
            before: old.definition(kind, &id).map(|one| export::shown(&one, &old)),
            after: export::shown(&definition, &new),
            is_same: before.as_ref().is_some_and(|row| row.document == document),
            id: id.clone(),
        });
        ready.push(Ready { kind, id, document, before });
    }
    Ok((ready, CatalogImported { changes, warnings, left }))
}

/// Warnings about secrets that a document names and that are not set.
fn unset(secrets: &BTreeSet<SecretName>, stored: &Stored) -> impl Iterator<Item = FieldWarning> {
    let unset = secrets.iter().filter(|name| !stored.secrets.contains(*name));
    unset.map(|name| {
        let command = narthex("secrets set {}", &[name]).in_workspace(&stored.workspace);
        let message = format!("the secret `{name}` is not set; set it with `{command}`");
        FieldWarning { field: "secrets".to_owned(), message }
    })
}

/// The fault of a server inside an agent's manifest that would replace a server which no manifest
/// of the agent has made.
fn taken(one: &Given, old: &Workspace, stored: &Stored, agent: &str) -> Option<FieldError> {
    let id = &stored.find(one.definition.kind(), one.definition.id())?.id;
    if old.made_by(agent).any(|made| made.id.as_str() == id) {
        return None;
    }
    let text = format!("the catalog has a server `{id}`, which no manifest of this agent has made");
    let remedy = format!(
        "rename the server here, attach the other by `names`, or delete it with `{}`",
        narthex("servers delete {}", &[id])
    );
    Some(FieldError::invalid(&one.place, text, remedy))
}

/// Servers that earlier manifests of these agents made, that the agents no longer attach, and that
/// the document does not contain.
fn left(given: &[Given], new: &Workspace, stored: &Stored) -> Vec<CatalogLeft> {
    let mut found = Vec::new();
    let kind = CatalogKind::Server;
    for one in given {
        let Definition::Agent(agent) = &one.definition else { continue };
        for made in new.made_by(agent.name.as_str()) {
            let id = made.id.to_string();
            let is_given =
                given.iter().any(|one| one.definition.kind() == kind && one.definition.id() == id);
            if is_given || agent.servers.values().any(|used| used.reference == made.id) {
                continue;
            }
            let Some(row) = stored.find(kind, &id) else { continue };
            let (agent, tag) = (agent.name.to_string(), tag(row));
            found.push(CatalogLeft { agent, tag, users: new.users_named(kind, &id), id });
        }
    }
    found
}

/// The readable part of a workspace's document.
struct Read {
    /// The objects, in an order in which references hold.
    given: Vec<Given>,
    secrets: BTreeSet<SecretName>,
    errors: Vec<FieldError>,
    /// Warnings about each object by itself.
    warnings: Vec<FieldWarning>,
    /// True if the name of every object is known.
    is_named: bool,
}

/// Reads the objects of the document.
fn read(document: Value) -> Result<Read, CatalogError> {
    let Value::Object(mut members) = document else {
        let fault = FieldError::invalid("", "this is not a document of a workspace", SHAPE);
        return Err(CatalogError::Refused(vec![fault]));
    };
    let lists = GROUPS.iter().filter_map(|(group, _)| members.get(*group)?.as_array());
    let count: usize = lists.map(Vec::len).sum();
    if count > OBJECTS_MAX {
        let message = format!("the document has {count} objects; the limit is {OBJECTS_MAX}");
        let fault = FieldError::invalid(
            "",
            message,
            "store them in several documents, one after the other",
        );
        return Err(CatalogError::Refused(vec![fault]));
    }
    let mut all = Read {
        given: Vec::new(),
        secrets: BTreeSet::new(),
        errors: Vec::new(),
        warnings: Vec::new(),
        is_named: true,
    };
    if let Some(version) = members.remove("version")
        && version != json!(VERSION)
    {
        let remedy = "use the version of narthex that wrote the document, or a later one";
        all.errors.push(FieldError::invalid(
            "version",
            "this version of the format is not supported",
            remedy,
        ));
    }
    let (secrets, wrong) = SecretName::listed(members.get("secrets"));
    all.secrets = secrets;
    members.remove("secrets");
    all.errors.extend(wrong.into_iter().map(|place| {
        let message = "an item must name one secret, and nothing else";
        FieldError::invalid(
            &place,
            message,
            format!("write `{{\"name\": \"KEY\"}}`; `{}` sets it", narthex("secrets set KEY", &[])),
        )
    }));
    for (group, kind) in GROUPS {
        let items = match members.remove(group) {
            None | Some(Value::Null) => continue,
            Some(Value::Array(items)) => items,
            Some(_) => {
                all.errors.push(FieldError::invalid(group, "this is not a list", SHAPE));
                continue;
            }
        };
        for (index, item) in items.iter().enumerate() {
            all.add(kind, format!("{group}[{index}]"), &item.to_string());
        }
    }
    for unknown in members.keys() {
        let name = narthex_model::json::shortened(unknown);
        all.errors.push(FieldError::invalid(&name, "this is not known here", SHAPE));
    }
    Ok(all)
}

impl Read {
    /// Reads an object at `place`.
    fn add(&mut self, kind: CatalogKind, place: String, text: &str) {
        let read = match Definition::parse(kind, text.as_bytes(), None) {
            Ok((definition, unwise)) => {
                let at =
                    |one: FieldWarning| FieldWarning { field: inside(&place, &one.field), ..one };
                self.warnings.extend(unwise.into_iter().map(at));
                Some(definition)
            }
            Err(faults) => {
                let at = |one: FieldError| FieldError { field: inside(&place, &one.field), ..one };
                self.errors.extend(faults.into_iter().map(at));
                Definition::partly(kind, text.as_bytes())
            }
        };
        self.is_named &= read.is_some();
        let Some(definition) = read else { return };
        let is_same =
            |one: &Given| one.definition.kind() == kind && one.definition.id() == definition.id();
        if self.given.iter().any(is_same) {
            let message = format!("the {kind} `{}` is given twice", definition.id());
            self.errors.push(FieldError::invalid(&place, message, "keep one"));
        }
        self.given.push(Given { definition, place });
    }
}

const SHAPE: &str = "write `servers`, `capabilities` and `agents`, each a list of objects";
