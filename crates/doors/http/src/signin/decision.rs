//! The page on which a human decides a run's grant request (D15). The page does no more than the
//! API, and admits only humans whom the API admits.

use http::StatusCode;
use narthex_control::{
    ConsentError, GrantRequestRow, GrantRequestStatus, connection_path, decision_path,
};
use narthex_model::{
    ErrorKind, GrantDuration, GrantRequestId, PrincipalId, ServerId, Timestamp, WorkspaceId,
};
use serde_json::{Value, json};

use super::{
    Answered, Kept, Visitor,
    authorize::onward_to_consent,
    connection,
    cookie::ONWARD,
    nothing,
    page::{escaped, html, put, safe},
    redirect,
};
use crate::{
    Access,
    auth::{Principal, authorize},
    body::RequestBody,
    problem::Problem,
    respond::Response,
    routes::ADMIN,
    shapes::{Decision, DecisionForm},
};

/// A run's grant request, as a signed-in human sees it.
struct Shown<'a> {
    row: &'a GrantRequestRow,
    /// A warning about the requested scope: it names the scope that the tool requires, or the scope
    /// that was probably meant.
    warning: Option<String>,
    /// The name of the human who drives the run.
    driver: Option<String>,
    who: &'a str,
    csrf: &'a str,
    /// The token for one answer by this page; empty if the request is not pending.
    consent: &'a str,
    /// True if an approval needs a stronger proof than this sign-in.
    needs_proof: bool,
}

impl Visitor<'_> {
    /// Shows a run's grant request. A browser that is not signed in returns to this page after the
    /// sign-in.
    pub(super) async fn decision(&self) -> Answered {
        let (workspace, id) = self.place()?;
        let Some((token, signed_in)) = self.session()? else {
            let mut response =
                self.ways_in("You decide the request of an agent after you sign in.");
            let onward = format!("{workspace}/{}", id.to_text());
            self.jar().set(&mut response, Kept::Onward, &onward, ONWARD);
            return Ok(response);
        };
        let principal = Principal::Human(signed_in.clone());
        authorize(Access::Member(ADMIN), &principal, || Ok(workspace.clone()))?;
        let row = self.control.grant_request(&workspace, &id.to_text()).await?;
        let is_proved = signed_in.method.is_authenticated();
        let consent = match row.status {
            GrantRequestStatus::Pending => {
                let about = decision_path(&workspace, &id.to_text());
                let shown = self.control.consents()?.show(&signed_in.account.id, token, &about);
                Some(
                    shown
                        .map_err(|error| Problem::new(ErrorKind::Unavailable, error.to_string()))?,
                )
            }
            _ => None,
        };
        let warning = match consent {
            Some(_) => self.control.required_scopes(&workspace).await?.warning_of(&row.of),
            None => None,
        };
        Ok(page(&Shown {
            row: &row,
            warning,
            driver: row.user.as_ref().map(|id| self.driver(id)),
            who: signed_in.account.name.as_str(),
            csrf: &self.control.form_token(token),
            consent: consent.as_ref().map_or("", |token| token.expose()),
            needs_proof: self.control.needs_proof() && !is_proved,
        }))
    }

    fn driver(&self, id: &PrincipalId) -> String {
        let name = self.control.principal_name(id);
        if *id == PrincipalId::local_admin() {
            format!("{name} (the holder of the admin token)")
        } else {
            name
        }
    }

    /// Approves or denies the request.
    pub(super) async fn decide(&self, body: RequestBody) -> Answered {
        let (workspace, id) = self.place()?;
        let (form, id) = (self.form::<DecisionForm>(body).await?, id.to_text());
        let DecisionForm { csrf, consent, decision, scope, reason } = form;
        let (token, signed_in) = self.checked_session(Some(&csrf))?;
        let principal = Principal::Human(signed_in);
        authorize(Access::Member(ADMIN), &principal, || Ok(workspace.clone()))?;
        let by = principal.granter()?;
        let here = decision_path(&workspace, &id);
        if let Err(error) = self.control.consents()?.answer(&consent, token, &here) {
            return Ok(used(&error, &here));
        }
        let mut body = json!({ "reason": reason.unwrap_or_default() });
        match decision {
            Decision::Approve => {
                if let Some(scope) = scope {
                    body["scope"] = Value::from(scope);
                }
                let body = body.to_string();
                self.control.grant_request_approve(&workspace, &id, body.as_bytes(), by).await?;
            }
            Decision::Deny => {
                let body = body.to_string();
                self.control.grant_request_deny(&workspace, &id, body.as_bytes(), by).await?;
            }
        }
        redirect(&here)
    }

    /// The page that a browser gets after the sign-in: the page that it asked for before.
    pub(super) fn onward(&self) -> String {
        let kept = self.jar().find(&self.parts.headers, Kept::Onward);
        if let Some(consent) = kept.and_then(onward_to_consent) {
            return consent;
        }
        if let Some(page) = kept.and_then(self.door.beside.onward) {
            return page;
        }
        let place = kept.and_then(|kept| {
            let (workspace, id) = kept.split_once('/')?;
            let workspace = WorkspaceId::new(workspace).ok()?;
            if let Some(server) = id.strip_prefix(connection::KEPT) {
                let server = ServerId::new(server).ok()?;
                return Some(connection_path(&workspace, server.as_str()));
            }
            Some(decision_path(&workspace, &GrantRequestId::parse(id)?.to_text()))
        });
        place.unwrap_or_else(|| "/".to_owned())
    }

    pub(super) fn place(&self) -> Result<(WorkspaceId, GrantRequestId), Problem> {
        let workspace = WorkspaceId::new(&self.segment()).map_err(|_unfit| nothing())?;
        let id = GrantRequestId::parse(&self.nth_segment(1)).ok_or_else(nothing)?;
        Ok((workspace, id))
    }
}

/// The answer to a decision from a page that was already used, or was open for too long. It decides
/// nothing, and links to a fresh page.
fn used(error: &ConsentError, path: &str) -> Response {
    let title = "Please check again";
    let main = format!(
        "<h1>{title}</h1>\n<p role=\"alert\">No decision was made: {}.</p>\n<a class=\"button\" \
         href=\"{}\">Show the request again</a>\n",
        escaped(&error.to_string()),
        escaped(path)
    );
    html(StatusCode::CONFLICT, title, "", &main)
}

fn page(shown: &Shown<'_>) -> Response {
    let row = shown.row;
    let (title, told) = match row.status {
        GrantRequestStatus::Pending => ("Approve this request?", "waits for you"),
        GrantRequestStatus::Approved => ("Approved", "was approved"),
        GrantRequestStatus::Denied => ("Denied", "was denied"),
        GrantRequestStatus::Expired => ("Too late", "was not decided in time"),
    };
    let mut main = format!("<h1>{title}</h1>\n");
    let by = row.decided.as_ref().map(|(_, by)| format!(" by {}", safe(by))).unwrap_or_default();
    put(&mut main, format_args!("<p>This request {told}{by}.</p>\n<dl>\n"));
    for (name, value) in facts(shown) {
        put(&mut main, format_args!("<dt>{name}</dt><dd>{}</dd>\n", safe(&value)));
    }
    main.push_str("</dl>\n");
    let reason = if row.reason.is_empty() { "(nothing)" } else { &row.reason };
    put(
        &mut main,
        format_args!(
            "<h2>What the agent says about it</h2>\n<blockquote>{}</blockquote>\n<p \
             class=\"hint\">The agent wrote this. No human has checked it.</p>\n",
            safe(reason)
        ),
    );
    if row.status == GrantRequestStatus::Pending {
        durations(&mut main, shown);
        form(&mut main, shown);
    }
    put(
        &mut main,
        format_args!("<p class=\"hint\">You are signed in as {}.</p>\n", escaped(shown.who)),
    );
    html(StatusCode::OK, title, "", &main)
}

/// The facts of the request: the agent and the grant that it requests.
fn facts(shown: &Shown<'_>) -> Vec<(&'static str, String)> {
    let row = shown.row;
    let mut facts = Vec::new();
    if let Some(agent) = &row.agent {
        facts.push(("agent", agent.to_string()));
    }
    if let Some(driver) = &shown.driver {
        facts.push(("driven by", driver.clone()));
    }
    facts.push(("workspace", row.workspace.to_string()));
    facts.push(("run", row.run.to_text()));
    facts.push(("asks for", row.of.word().to_owned()));
    if let Value::Object(details) = row.of.details() {
        for (name, value) in details {
            let name = match name.as_str() {
                "scope" => "tool scope",
                "server" => "only at the server",
                "tool" => "only the tool",
                "arguments_digest" => "only with the arguments of the digest",
                "child_agent_id" => "agent to start",
                "allowed_models" => "only with the models",
                "allowed_runtime_types" => "only with the runtimes",
                _ => "also",
            };
            facts.push((name, value.as_str().map_or_else(|| value.to_string(), str::to_owned)));
        }
    }
    if let Some(warning) = &shown.warning {
        facts.push(("warning", warning.clone()));
    }
    if row.of.details().get("arguments_digest").is_some() {
        let unknown = "the agent gave only their digest, so they cannot be shown here";
        let is_said = !row.arguments.is_empty();
        let arguments = if is_said { row.arguments.clone() } else { unknown.to_owned() };
        facts.push(("these arguments", arguments));
    }
    facts.push(("how long", row.duration.to_owned()));
    facts.push(("waits until", Timestamp::new(row.expires_at).to_string()));
    facts
}

/// The durations that a decision may choose from.
fn words(row: &GrantRequestRow) -> impl Iterator<Item = &'static str> {
    let has_session = row.session.is_some();
    GrantDuration::WORDS.into_iter().filter(move |word| has_session || *word != "session")
}

/// Adds the durations of a grant, and the calls to which each would apply.
fn durations(main: &mut String, shown: &Shown<'_>) {
    let row = shown.row;
    let driver = shown.driver.as_deref().unwrap_or_default();
    let (of, when) = match &row.agent {
        Some(agent) => {
            (format!(" of the agent {agent}"), ", whichever user has the turn".to_owned())
        }
        None => (String::new(), format!(" while it is the turn of {driver}")),
    };
    main.push_str("<h2>Calls that an approval covers</h2>\n<dl>\n");
    for word in words(row) {
        let told = match (word, row.session) {
            ("once", Some(_)) => format!("the next call{of} in this session that needs it{when}"),
            ("once", None) => format!("the next call{of} in the workspace that needs it{when}"),
            ("run", _) => format!("all calls{of} in this run{when}"),
            ("session", _) => format!("all calls{of} in this session and all its runs{when}"),
            _ => format!("all calls{of} in the workspace{when}, until the grant is revoked"),
        };
        put(main, format_args!("<dt>{word}</dt><dd>{}</dd>\n", safe(&told)));
    }
    main.push_str("</dl>\n");
}

fn form(main: &mut String, shown: &Shown<'_>) {
    if shown.needs_proof {
        main.push_str(
            "<p class=\"note\">You signed in with a link, which proves no human. To approve, sign \
             in with a passkey or at a provider. You can always deny.</p>\n",
        );
    }
    let (csrf, consent) = (escaped(shown.csrf), escaped(shown.consent));
    put(
        main,
        format_args!(
            "<form method=\"post\" class=\"decide\">\
             <input type=\"hidden\" name=\"csrf\" value=\"{csrf}\">\n\
             <input type=\"hidden\" name=\"consent\" value=\"{consent}\">\n\
             <label>How long <select name=\"scope\">\n"
        ),
    );
    for word in words(shown.row) {
        let chosen = if word == shown.row.duration { " selected" } else { "" };
        put(main, format_args!("<option{chosen}>{word}</option>\n"));
    }
    main.push_str(
        "</select></label>\n<label>Reason (shown to the agent) <input name=\"reason\" \
         maxlength=\"500\"></label>\n<button name=\"decision\" \
         value=\"approve\">Approve</button>\n<button name=\"decision\" \
         value=\"deny\">Deny</button>\n</form>\n",
    );
}
