//! The reasons why a form was refused, each at its field.

use narthex_control::{CatalogError, ControlError, FieldError};
use narthex_model::{ErrorKind, command::completed_in};
use narthex_outbound::OutboundError;

use crate::{console::viewer::Viewer, problem::Problem};

/// The reasons why a form was refused; none for a form that was not sent yet.
#[derive(Debug, Default)]
pub(super) struct Faults {
    fields: Vec<FieldError>,
    whole: Option<String>,
}

impl Faults {
    /// The faults of a refused change. A failure that no change of the form mends is a problem.
    pub(super) fn of(viewer: &Viewer<'_>, error: ControlError) -> Result<Self, Problem> {
        match error {
            ControlError::Catalog(
                CatalogError::Refused(fields) | CatalogError::Question(fields),
            ) => Ok(Self { fields, whole: None }),
            error if is_of_the_form(error.kind()) => {
                let text = error.to_string();
                let text = completed_in(&text, viewer.workspace.as_str()).into_owned();
                Ok(Self { fields: Vec::new(), whole: Some(text) })
            }
            error => Err(error.into()),
        }
    }

    /// The faults of a refused channel or webhook.
    pub(super) fn of_outbound(viewer: &Viewer<'_>, error: OutboundError) -> Result<Self, Problem> {
        match error {
            OutboundError::Control(error) => Self::of(viewer, error),
            error => Err(error.into()),
        }
    }

    /// One fault of a field.
    pub(super) fn one(field: &str, message: &str, remedy: &str) -> Self {
        Self { fields: vec![FieldError::invalid(field, message, remedy)], whole: None }
    }

    /// Adds a fault of a field.
    pub(super) fn add(&mut self, field: &str, message: &str, remedy: &str) {
        self.fields.push(FieldError::invalid(field, message, remedy));
    }

    /// True without any fault.
    pub(super) fn is_empty(&self) -> bool {
        self.fields.is_empty() && self.whole.is_none()
    }

    /// The fault of a field, or of a part of its value.
    pub(super) fn at(&self, name: &str) -> Option<String> {
        let found = self.fields.iter().find(|fault| is_under(&fault.field, name))?;
        Some(format!("{}; {}", found.message, found.remedy))
    }

    /// The faults that belong to none of these fields.
    pub(super) fn rest(&self, known: &[&str]) -> Option<String> {
        let is_rest = |fault: &&FieldError| !known.iter().any(|name| is_under(&fault.field, name));
        let fields = self.fields.iter().filter(is_rest).map(ToString::to_string);
        let all: Vec<_> = self.whole.clone().into_iter().chain(fields).collect();
        (!all.is_empty()).then(|| all.join(" "))
    }
}

/// True for a refusal that another form may not get.
fn is_of_the_form(kind: ErrorKind) -> bool {
    match kind {
        ErrorKind::Invalid | ErrorKind::Conflict | ErrorKind::NotFound | ErrorKind::Exhausted => {
            true
        }
        ErrorKind::Unauthenticated
        | ErrorKind::Denied
        | ErrorKind::Unavailable
        | ErrorKind::Timeout
        | ErrorKind::Bug => false,
    }
}

/// True for the place `name`, `name.part` or `name[0]`.
fn is_under(place: &str, name: &str) -> bool {
    let rest = place.strip_prefix(name);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_stand_at_their_fields_and_the_others_at_the_form() {
        let mut faults = Faults::one("models[0].id", "it is missing", "give a value");
        faults.add("modelset", "it is wrong", "leave it out");
        assert_eq!(faults.at("models").unwrap(), "it is missing; give a value");
        assert_eq!(faults.at("name"), None);
        assert_eq!(faults.rest(&["models"]).unwrap(), "`modelset`: it is wrong; leave it out");
        assert_eq!(faults.rest(&["models", "modelset"]), None);
        assert!(!faults.is_empty() && Faults::default().is_empty());
    }
}
