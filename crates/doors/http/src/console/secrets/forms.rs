//! The forms that give a secret a value. A value is read once, and no answer repeats it.

use http::StatusCode;
use narthex_console::{
    html,
    pages::secrets::SecretNewPage,
    parts::{
        Same, Words,
        form::{Field, Input},
    },
};
use narthex_model::{ErrorKind, Secret, SecretName, command::narthex};
use narthex_wire::is_redactable;
use serde::{Deserialize, Deserializer};

use super::{
    done::Done,
    entries::{is_set, named},
    list::{command, refused, several_lines},
};
use crate::{
    body::RequestBody,
    console::{
        answer::{self, Answered},
        frame::{Head, frame},
        viewer::{Form, Viewer},
    },
    problem::Problem,
};

/// Enough bytes for the longest value with every byte escaped.
const FORM_MAX: usize = 256 * 1024;
/// Maximum length of a value in bytes.
const VALUE_MAX: usize = 64 * 1024;
const EMPTY: &str = "Type a value: an empty one is refused. Clear takes a value away.";

/// The form of a row.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ValueForm {
    csrf: String,
    #[serde(deserialize_with = "secret")]
    value: Secret,
}

/// The form of a new secret. Its name may be a value, typed into the wrong field.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewForm {
    csrf: String,
    name: String,
    #[serde(deserialize_with = "secret")]
    value: Secret,
}

impl Form for ValueForm {
    fn csrf(&self) -> &str {
        &self.csrf
    }
}

impl Form for NewForm {
    fn csrf(&self) -> &str {
        &self.csrf
    }
}

fn secret<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Secret, D::Error> {
    String::deserialize(deserializer).map(Secret::new)
}

/// The reasons why the form of a new secret was refused.
#[derive(Default)]
struct Faults {
    /// The name, if it is one. Another text is not repeated: it may be the value.
    name: Option<SecretName>,
    of_name: Option<String>,
    of_value: Option<String>,
}

/// The result of storing a value: or the reason of a refusal.
type Put = Result<Done, String>;

/// Gives the secret of the path a value.
pub(super) async fn set(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let ValueForm { csrf: _, value } = viewer.form_within(body, FORM_MAX).await?;
    let name = named(viewer)?;
    match put(viewer, &name, value).await? {
        Ok(done) => done.answer(viewer, &name),
        Err(fault) => refused(viewer, &name, fault).await,
    }
}

/// Shows the empty form of a new secret.
pub(super) async fn new(viewer: &Viewer<'_>) -> Answered {
    viewer.query(&[])?;
    page(viewer, Faults::default(), StatusCode::OK).await
}

/// Gives a name that is not set a value.
pub(super) async fn add(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let NewForm { csrf: _, name, value } = viewer.form_within(body, FORM_MAX).await?;
    let is_too_much = value.expose().len() > VALUE_MAX || value.expose().contains('\0');
    let mut faults = Faults::default();
    match SecretName::new(name.trim()) {
        Ok(name) if is_set(viewer, &name).await? => {
            let text = "This name has a value already: use Replace in its row.";
            faults.of_name = Some(text.to_owned());
            faults.name = Some(name);
        }
        Ok(name) => faults.name = Some(name),
        Err(error) => faults.of_name = Some(error.to_string()),
    }
    if value.expose().is_empty() {
        faults.of_value = Some(EMPTY.to_owned());
    }
    if let (Some(name), None, None) = (&faults.name, &faults.of_name, &faults.of_value) {
        let name = name.clone();
        match put(viewer, &name, value).await? {
            Ok(done) => return done.answer(viewer, &name),
            Err(fault) if is_too_much => faults.of_value = Some(fault),
            Err(fault) => faults.of_name = Some(fault),
        }
    }
    page(viewer, faults, StatusCode::UNPROCESSABLE_ENTITY).await
}

/// Stores a value.
async fn put(viewer: &Viewer<'_>, name: &SecretName, value: Secret) -> Result<Put, Problem> {
    if value.expose().is_empty() {
        return Ok(Err(EMPTY.to_owned()));
    }
    let done = if is_redactable(&value) { Done::Set } else { Done::Short };
    let control = viewer.control();
    match control.secret_put(&viewer.workspace, name, value, &viewer.by()).await {
        Ok(_stored) => Ok(Ok(done)),
        Err(error) if error.kind() == ErrorKind::Invalid => Ok(Err(error.to_string())),
        Err(error) => Err(error.into()),
    }
}

async fn page(viewer: &Viewer<'_>, faults: Faults, status: StatusCode) -> Answered {
    let Faults { name, of_name, of_value } = faults;
    let request = format!("PUT /api/workspaces/{}/secrets/NAME", viewer.workspace);
    let head = Head {
        title: Words::new("Add a secret"),
        sentence: "A value that is saved under a name, and never shown again.",
        same: Some(Same::new(&command(viewer, narthex("secrets set NAME", &[])), &request)),
    };
    let name = Input::Line {
        value: name.map(|name| name.as_str().to_owned()).unwrap_or_default(),
        example: "LINEAR_API_KEY".to_owned(),
    };
    let page = SecretNewPage {
        frame: frame(viewer, head).await?,
        path: viewer.path("secrets/new"),
        back: viewer.path("secrets"),
        name: Field::new("name", "Name", name)
            .help("1 to 64 of A-Z, 0-9 and _, without a digit in front.")
            .fault(of_name.as_deref()),
        value: Field::new("value", "Value", Input::Unseen)
            .help("It is saved on submit.")
            .fault(of_value.as_deref()),
        command: several_lines(viewer),
    };
    Ok(answer::page(status, html(&page)))
}
