//! `narthex users`: accounts of humans, and their sign-in.

use narthex_model::command::narthex;
use std::process::ExitCode;

use http::Method;
use serde_json::{Value, json};

use super::waiting::waiting;
use crate::cli::{CreateUserArgs, PasskeysCommand, UsersCommand};
use crate::{
    Context, Failure,
    daemon_client::{ApiRequest, DaemonClient, segment, workspace_path},
    output::{self, harmless},
    table,
};

pub async fn run(command: UsersCommand, context: Context) -> Result<ExitCode, Failure> {
    let client = DaemonClient::operator(&context.daemon)?;
    let users = Users { client, context };
    match command {
        UsersCommand::Create(args) => users.create(&args).await,
        UsersCommand::List => users.list().await,
        UsersCommand::Link { name } => users.link(&name).await,
        UsersCommand::Disable { name, undo } => users.disable(&name, !undo).await,
        UsersCommand::Passkeys(PasskeysCommand::List { name }) => users.passkeys(&name).await,
        UsersCommand::Passkeys(PasskeysCommand::Remove { name, passkey }) => {
            users.remove_passkey(&name, &passkey).await
        }
    }
}

/// Shows the principal of the token.
pub async fn whoami(context: Context) -> Result<ExitCode, Failure> {
    let client = DaemonClient::operator(&context.daemon)?;
    let me = waiting("asking the daemon", &context, client.api_get("/api/me")).await?;
    if context.format.is_quiet() {
        output::line(&table::text(&me, "name"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let operator = if me["is_operator"] == true { ", an operator" } else { "" };
    let kind = table::text(&me, "kind").replace('_', " ");
    let sentence = format!("{} ({kind}{operator})", table::text(&me, "name"));
    output::told(&me, &sentence, context.format)
}

struct Users {
    client: DaemonClient,
    context: Context,
}

/// The steps by which a human adds the first passkey.
pub fn first_passkey() -> String {
    format!(
        "create a human with `{}`, print a sign-in link with `{}`, and add the passkey on its page",
        narthex("users create NAME", &[]),
        narthex("users link NAME", &[])
    )
}

impl Users {
    async fn create(&self, args: &CreateUserArgs) -> Result<ExitCode, Failure> {
        let CreateUserArgs { name, role, workspace, operator } = args;
        let body = json!({ "name": name, "is_operator": operator });
        let mut made = self.send(Method::POST, "/api/principals".to_owned(), Some(&body)).await?;
        if !role.is_empty() {
            let id = made["id"].as_str().unwrap_or_default().to_owned();
            let path = workspace_path(workspace, &format!("/members/{}", segment(&id)));
            let set = self.send(Method::PUT, path, Some(&json!({ "roles": role }))).await;
            made["roles"] = match set {
                Ok(member) => json!({ (args.workspace.as_str()): member["roles"] }),
                Err(failure) => {
                    let set = narthex("members set {} author", &[&name]);
                    let text = format!(
                        "the user {name} was created, but has no role: {}; then set this role or \
                         another with `{set}`",
                        failure.message
                    );
                    return Err(Failure { message: text, ..failure });
                }
            };
        }
        let link = narthex("users link {}", &[&name]);
        self.told(&made, &format!("created the user {name}; `{link}` prints a sign-in link"))
    }

    async fn list(&self) -> Result<ExitCode, Failure> {
        let asked = self.client.api_all("/api/principals");
        let mut humans = waiting("asking the daemon", &self.context, asked).await?;
        humans.retain(|one| one["kind"] == "human");
        let format = self.context.format;
        if format.is_json() {
            output::done(&json!({ "items": humans }))?;
        } else if format.is_quiet() {
            for one in &humans {
                output::line(&harmless(text(one, "name")))?;
            }
        } else {
            let none = table::none_yet("humans", &narthex("users create NAME", &[]));
            let rows: Vec<_> = humans.iter().map(row).collect();
            let header = ["name", "state", "roles", "created", "by"];
            output::line(&table::render(&header, &rows, &none))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    async fn link(&self, name: &str) -> Result<ExitCode, Failure> {
        let path = format!("{}/sign-in-links", path_of(name));
        let made = self.send(Method::POST, path, None).await?;
        if self.context.format.is_json() {
            output::done(&made)?;
            return Ok(ExitCode::SUCCESS);
        }
        output::line(&harmless(text(&made, "url")))?;
        if !self.context.format.is_quiet() {
            let until = harmless(text(&made, "expires_at"));
            output::notice(&format!("this link signs {name} in once, until {until}"));
            if made["adds_passkey"] == false {
                let url = text(&made, "url");
                let page = url.split_once("/link/").map_or(url, |(page, _)| page);
                output::notice(&format!(
                    "{name} cannot add a passkey with this link, since a link made here proves no \
                     human; an operator who signed in with a passkey or at a provider can make one \
                     that adds a passkey, at {}",
                    harmless(page)
                ));
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    async fn disable(&self, name: &str, is_disabled: bool) -> Result<ExitCode, Failure> {
        let body = json!({ "is_disabled": is_disabled });
        let changed = self.send(Method::PATCH, path_of(name), Some(&body)).await?;
        let what = if is_disabled { "is disabled" } else { "is enabled" };
        self.told(&changed, &format!("{name} {what}"))
    }

    async fn passkeys(&self, name: &str) -> Result<ExitCode, Failure> {
        let all = self.passkeys_of(name).await?;
        if self.context.format.is_json() {
            output::done(&json!({ "items": all }))?;
            return Ok(ExitCode::SUCCESS);
        }
        if self.context.format.is_quiet() {
            for one in &all {
                output::line(&harmless(text(one, "id")))?;
            }
        } else {
            let members = ["id", "label", "enrolled_by", "created_at", "used_at"];
            let row = |one: &Value| members.map(|member| shown(one, member)).to_vec();
            let rows: Vec<_> = all.iter().map(row).collect();
            output::line(&table::render(
                &["id", "label", "added by", "added", "used"],
                &rows,
                "There are no passkeys yet; add one on the sign-in page.",
            ))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    async fn remove_passkey(&self, name: &str, start: &str) -> Result<ExitCode, Failure> {
        let all = self.passkeys_of(name).await?;
        let ids = all.iter().filter_map(|one| one["id"].as_str());
        let mut fitting = ids.filter(|id| !start.is_empty() && id.starts_with(start));
        let id = match (fitting.next(), fitting.next()) {
            (Some(id), None) => id,
            (None, _) => {
                let list = narthex("users passkeys list {}", &[&name]);
                let text = format!("{name} has no passkey `{start}`; list them with `{list}`");
                return Err(Failure::new(narthex_model::ErrorKind::NotFound, text));
            }
            (Some(_), Some(_)) => {
                return Err(Failure::usage(format!(
                    "several passkeys begin with `{start}`; give more characters of the id"
                )));
            }
        };
        let path = format!("{}/passkeys/{}", path_of(name), segment(id));
        self.send(Method::DELETE, path, None).await?;
        self.told(
            &json!({ "id": id }),
            &format!("removed the passkey {id}: {name} cannot sign in with it any more"),
        )
    }

    async fn passkeys_of(&self, name: &str) -> Result<Vec<Value>, Failure> {
        let path = format!("{}/passkeys", path_of(name));
        waiting("asking the daemon", &self.context, self.client.api_all(&path)).await
    }

    async fn send(
        &self,
        method: Method,
        path: String,
        body: Option<&Value>,
    ) -> Result<Value, Failure> {
        let mut request = ApiRequest::new(method, path);
        if let Some(body) = body {
            request = request.entry(&body.to_string());
        }
        waiting("asking the daemon", &self.context, self.client.api(request)).await
    }

    fn told(&self, data: &Value, sentence: &str) -> Result<ExitCode, Failure> {
        if self.context.format.is_json() {
            output::done(data)?;
        } else if !self.context.format.is_quiet() {
            output::line(&harmless(sentence))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn row(human: &Value) -> Vec<String> {
    let state = match (human["disabled_at"].is_string(), human["is_operator"] == true) {
        (true, _) => "disabled",
        (false, true) => "operator",
        (false, false) => "active",
    };
    let roles = human["roles"].as_object().into_iter().flatten().flat_map(|(workspace, roles)| {
        let roles = roles.as_array().into_iter().flatten().filter_map(Value::as_str);
        roles.map(move |role| format!("{workspace}={role}"))
    });
    let roles = roles.collect::<Vec<_>>().join(" ");
    let roles = if roles.is_empty() { "-".to_owned() } else { harmless(&roles) };
    let (created, by) = (shown(human, "created_at"), shown(human, "created_by"));
    vec![shown(human, "name"), state.to_owned(), roles, created, by]
}

fn path_of(name: &str) -> String {
    format!("/api/principals/{}", segment(name))
}

fn shown(value: &Value, member: &str) -> String {
    value[member].as_str().map_or_else(|| "-".to_owned(), harmless)
}

fn text<'v>(value: &'v Value, member: &str) -> &'v str {
    value[member].as_str().unwrap_or_default()
}
