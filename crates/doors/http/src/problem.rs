//! Refusals of the API: problem details (RFC 9457), with their status from one table (D24).

use std::borrow::Cow;

use http::{HeaderValue, StatusCode, header};
use narthex_control::{CatalogError, ControlError, FieldCode, FieldError, RulesError};
use narthex_definitions::reviews::ReviewError;
use narthex_model::{ErrorKind, WorkspaceId, command::completed_in, for_models, value_for_models};
use narthex_runs::{ModelWords, Rejection, RunError};
use serde_json::{Value, json};

use crate::{
    auth::Principal,
    respond::{self, Response},
    shapes::{self, As, Fault, ProblemMembers, ProtocolMembers},
};

/// The reason why a request of the API is refused.
#[derive(Debug)]
pub(crate) struct Problem {
    kind: ErrorKind,
    status: StatusCode,
    detail: String,
    /// The faults of a run's servers or of an object's fields, and members for readers that
    /// understand only one error (O61).
    members: Box<ProblemMembers>,
    /// The error of JSON-RPC by which a tool call failed.
    protocol: Option<Box<ProtocolMembers>>,
    /// The workspace to add to the commands in the texts.
    workspace: Option<WorkspaceId>,
    /// True if a model reads the texts.
    is_for_model: bool,
    /// The text for the holder of a run's token, instead of all other texts, if only a human can
    /// mend the cause (D28).
    for_models: Option<Box<ModelWords>>,
}

/// The HTTP status of an error kind, from the table of this door.
pub(crate) fn status_of_kind(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::Invalid => StatusCode::BAD_REQUEST,
        ErrorKind::Unauthenticated => StatusCode::UNAUTHORIZED,
        ErrorKind::Denied => StatusCode::FORBIDDEN,
        ErrorKind::NotFound => StatusCode::NOT_FOUND,
        ErrorKind::Conflict => StatusCode::CONFLICT,
        ErrorKind::Exhausted => StatusCode::TOO_MANY_REQUESTS,
        ErrorKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        ErrorKind::Timeout => StatusCode::GATEWAY_TIMEOUT,
        ErrorKind::Bug => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl Problem {
    pub(crate) fn new(kind: ErrorKind, detail: impl Into<String>) -> Self {
        Self {
            kind,
            status: status_of_kind(kind),
            detail: detail.into(),
            members: Box::default(),
            protocol: None,
            workspace: None,
            is_for_model: false,
            for_models: None,
        }
    }

    /// The problem for a workspace that does not exist, or that the caller may not know.
    pub(crate) fn no_workspace(workspace: WorkspaceId) -> Self {
        ControlError::from(CatalogError::NoWorkspace(workspace)).into()
    }

    /// Replaces the kind's status by a more specific one.
    pub(crate) fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    /// Changes the members.
    pub(crate) fn with(mut self, change: impl FnOnce(&mut ProblemMembers)) -> Self {
        change(&mut self.members);
        self
    }

    /// Adds a code for programs.
    pub(crate) fn with_code(self, code: impl Into<String>) -> Self {
        self.with(|members| members.code = Some(code.into()))
    }

    /// Answers the error of JSON-RPC by which a tool call failed.
    pub(crate) fn with_protocol(self, code: i64, data: Option<Value>) -> Self {
        let code = Some(code);
        Self { protocol: Some(Box::new(ProtocolMembers { code, data })), ..self }
    }

    /// A problem with all faults of the body.
    pub(crate) fn of_fields(detail: impl Into<String>, fields: &[FieldError]) -> Self {
        let problem = Self::new(ErrorKind::Invalid, detail).with_fields(fields);
        problem.with_status(StatusCode::UNPROCESSABLE_ENTITY)
    }

    fn with_fields(self, fields: &[FieldError]) -> Self {
        self.with(|members| members.errors = faults(fields))
    }

    /// Adds this workspace to the commands in the texts.
    pub(crate) fn in_workspace(mut self, workspace: &WorkspaceId) -> Self {
        complete(&mut self.detail, workspace);
        self.workspace = Some(workspace.clone());
        self
    }

    /// Rewords the problem for its reader. The holder of a run's token is a model, which reads no
    /// remedy that only humans can use (D28).
    pub(crate) fn read_by(mut self, principal: &Principal) -> Self {
        if !principal.is_model() {
            return self;
        }
        if let Some(ModelWords { code, what }) = self.for_models.take().map(|words| *words) {
            let detail = format!("no run was created: {what}");
            let problem = Self::new(self.kind, &*detail).with_status(self.status).with_code(code);
            return problem.with(|members| members.error = Some(detail));
        }
        if let Cow::Owned(detail) = for_models(&self.detail) {
            self.detail = detail;
        }
        self.is_for_model = true;
        self
    }

    pub(crate) fn kind(&self) -> ErrorKind {
        self.kind
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// The text of the problem.
    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }

    pub(crate) fn answer(&self) -> Response {
        let mut response = respond::json(self.status, self.body().into());
        let kind = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        response
    }

    /// # Panics
    /// When the problem is no JSON: no member of a shape has a fault, and all names are text.
    fn body(&self) -> Vec<u8> {
        let head = shapes::ProblemHead {
            about: "about:blank",
            title: self.status.canonical_reason().unwrap_or_default(),
            status: self.status.as_u16(),
            detail: self.detail.clone(),
            kind: self.kind.into(),
        };
        if let Some(protocol) = &self.protocol {
            let errors = self.whole().map(|whole| vec![Fault::Field(As::of(&whole))]);
            let shown = shapes::ToolCallProblem { head, errors, protocol };
            return serde_json::to_vec(&shown).expect("a problem is JSON");
        }
        let members = As::<ProblemMembers>::of(&self.members).with(|members| {
            if let Some(whole) = self.whole() {
                members["errors"] = json!([whole]);
            }
            if self.is_for_model {
                value_for_models(members);
            }
            if let Some(workspace) = &self.workspace {
                for_each_text(members, &|text| complete(text, workspace));
            }
        });
        let shown = shapes::Problem { head, members };
        serde_json::to_vec(&shown).expect("a problem is JSON")
    }
}

impl Problem {
    /// The one fault of a request that is refused as a whole, in the shape of a field's fault.
    /// `None` if the problem has field faults, or its kind has no list of faults.
    fn whole(&self) -> Option<FieldError> {
        let remedy = match self.kind {
            _ if self.members.errors.is_some() => return None,
            ErrorKind::Invalid => "see `/api/openapi.json` for what this request takes",
            ErrorKind::Denied => {
                "see `/api/me` for the caller of this token, and use a token that may do this"
            }
            ErrorKind::Unauthenticated
            | ErrorKind::NotFound
            | ErrorKind::Conflict
            | ErrorKind::Exhausted
            | ErrorKind::Unavailable
            | ErrorKind::Timeout
            | ErrorKind::Bug => return None,
        };
        Some(fault("", self.kind.as_str(), &self.detail, remedy))
    }
}

/// Adds the workspace to the commands in a text.
fn complete(text: &mut String, workspace: &WorkspaceId) {
    if let Cow::Owned(completed) = completed_in(text, workspace.as_str()) {
        *text = completed;
    }
}

/// The faults in the shape of the API. `None` if there are none.
fn faults(fields: &[FieldError]) -> Option<Vec<Fault>> {
    let faults = fields.iter().map(|field| Fault::Field(As::of(field)));
    (!fields.is_empty()).then(|| faults.collect())
}

fn for_each_text(value: &mut Value, change: &impl Fn(&mut String)) {
    match value {
        Value::String(text) => change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| for_each_text(item, change)),
        Value::Object(members) => {
            members.values_mut().for_each(|member| for_each_text(member, change));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Splits a sentence into a fault and its remedy, which is the text after the last `; `. Without
/// one the remedy is `else_remedy`.
fn fault(field: &str, code: &'static str, sentence: &str, else_remedy: &str) -> FieldError {
    let (message, remedy) = sentence.rsplit_once("; ").unwrap_or((sentence, else_remedy));
    FieldError {
        field: field.to_owned(),
        code: FieldCode::Own(code),
        message: message.to_owned(),
        remedy: remedy.to_owned(),
    }
}

/// The field of a request for a run that caused the error, if a single field did.
fn run_field(error: &RunError) -> Option<FieldError> {
    match error {
        RunError::NoAgent { .. } => {
            let remedy = "name an agent of the workspace";
            Some(fault("agent_name", "agent_not_found", &error.to_string(), remedy))
        }
        RunError::NoParent => {
            let message = "there is no active run with this id";
            Some(fault("parent_run_id", "run_not_found", message, "name an active run"))
        }
        RunError::Denied { field, message } => {
            Some(fault(field, "denied", message, "leave it out, or ask an operator"))
        }
        _ => None,
    }
}

impl From<ControlError> for Problem {
    fn from(error: ControlError) -> Self {
        let kind = error.kind();
        if matches!(kind, ErrorKind::Bug | ErrorKind::Unavailable | ErrorKind::Timeout) {
            // The causes go to the log only: they may show how this host is set up.
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            tracing::warn!(cause, "a request to the API failed: {error}");
        }
        let problem = Self::new(kind, error.to_string());
        match error {
            ControlError::Catalog(
                CatalogError::Refused(fields) | CatalogError::Question(fields),
            ) => Self::of_fields(problem.detail, &fields),
            ControlError::Catalog(CatalogError::Changed { .. })
            | ControlError::Rules(RulesError::Changed) => {
                problem.with_status(StatusCode::PRECONDITION_FAILED)
            }
            ControlError::Grant(error) => problem.with_code(error.code()),
            ControlError::Keyed(error) => problem.with_code(error.code()),
            ControlError::Catalog(error) => problem.with_fields(error.fields()),
            _ => problem,
        }
    }
}

impl From<ReviewError> for Problem {
    fn from(error: ReviewError) -> Self {
        match error {
            ReviewError::Control(error) => error.into(),
            error => Self::new(error.kind(), error.to_string()),
        }
    }
}

impl From<RunError> for Problem {
    fn from(error: RunError) -> Self {
        let (members, for_models) = (error.members(), error.for_models().map(Box::new));
        let error = match error {
            RunError::Control(error) => return Self { for_models, ..error.into() },
            error => error,
        };
        let servers = error.faults();
        let servers = servers.iter().map(|fault| Fault::Server(As::of(fault)));
        let field = run_field(&error).map(|field| Fault::Field(As::of(&field)));
        let errors: Vec<_> = servers.chain(field).collect();
        let mut members = members.map(members_of).unwrap_or_default();
        if !errors.is_empty() {
            members.errors = Some(errors);
        }
        let problem = Self::new(error.kind(), error.to_string());
        Self { members: Box::new(members), for_models, ..problem }
    }
}

/// The members of a refused run.
fn members_of(rejection: Rejection) -> ProblemMembers {
    let Rejection { error, code, server_name, reference, field, missing_fields, details, errors } =
        rejection;
    let faults: Vec<_> = errors.iter().map(|fault| Fault::Config(As::of(fault))).collect();
    ProblemMembers {
        errors: (!faults.is_empty()).then_some(faults),
        error: Some(error),
        code,
        server_name,
        reference: reference.map(|server| server.to_string()),
        field: field.map(str::to_owned),
        missing_fields,
        details: details.map(As::json),
        ..ProblemMembers::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(problem: &Problem) -> Value {
        serde_json::from_slice(&problem.body()).unwrap()
    }

    /// The answers to invalid and denied requests have one shape: a list of faults by field, even
    /// if the fault concerns the whole request.
    #[test]
    fn an_invalid_or_denied_request_gets_a_list_of_faults() {
        for (kind, text, message, remedy) in [
            (ErrorKind::Invalid, "it is broken; mend it", "it is broken", "mend it"),
            (ErrorKind::Denied, "not you", "not you", "see `/api/me` for the caller"),
        ] {
            let errors = body(&Problem::new(kind, text))["errors"].take();
            assert_eq!(errors.as_array().unwrap().len(), 1, "{errors}");
            let [field, code, told] = ["field", "code", "message"].map(|name| &errors[0][name]);
            assert_eq!(
                (field, code, told),
                (&json!("body"), &json!(kind.as_str()), &json!(message))
            );
            assert!(errors[0]["remedy"].as_str().unwrap().starts_with(remedy), "{errors}");
        }
        let field = FieldError::invalid("a", "b", "c");
        let errors = body(&Problem::of_fields("x", &[field]))["errors"].take();
        assert_eq!((errors.as_array().unwrap().len(), &errors[0]["field"]), (1, &json!("a")));
        for kind in [ErrorKind::NotFound, ErrorKind::Conflict, ErrorKind::Bug] {
            assert_eq!(body(&Problem::new(kind, "x")).get("errors"), None, "{kind:?}");
        }
        let denied = RunError::Denied { field: "scope", message: "not yours; leave it".into() };
        let problem = body(&Problem::from(denied));
        let fault = json!({ "field": "scope", "code": "denied", "message": "not yours",
                            "remedy": "leave it" });
        assert_eq!((&problem["errors"], &problem["field"]), (&json!([fault]), &json!("scope")));
    }

    /// D24: each kind has a status of its own.
    #[test]
    fn d24_each_kind_of_error_has_a_separate_status() {
        let mut statuses = ErrorKind::ALL.map(|kind| status_of_kind(kind).as_u16()).to_vec();
        statuses.sort_unstable();
        assert_eq!(statuses, [400, 401, 403, 404, 409, 429, 500, 503, 504]);
    }
}
