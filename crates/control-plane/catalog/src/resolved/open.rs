//! Opens a run's configuration: the only place where values of secrets are filled in.

mod sign_in;

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
};

use narthex_model::{
    Alias, ApiKeyAuth, AuthorizationCodeAuth, ClientCredentialsAuth, ClientProof, EntryConfinement,
    ExchangeIdentity, HeaderSource, HttpTarget, OAuth, OAuthClient, OAuthExchange, Secret,
    SecretName, ServerAuth, ServerDefinition, StdioTarget, Target, command::narthex,
};
use serde_json::{Map, Value, json};

use super::{ResolvedKey, ResolvedRun, ResolvedServer, ResolvedTarget, ResolvedValue, carried};
use crate::{
    carrier::Carrier,
    fill::{Openers, opened, opened_text},
    resolve::key::{objection, taken},
    server::{
        AuthClient, AuthText, EntryAuth, EntryClientCredentials, EntryExchange, EntryProof,
        EntrySignIn, ProgramConfinement, url,
    },
    template::{ConfigValue, Placeholder, Source, Template},
};

/// Lookups of the program that starts a server. They return `None` for a value that is not
/// available.
#[derive(Clone, Copy)]
pub struct Opening<'a> {
    /// Returns the value of a secret, in the version that the run has pinned.
    pub secret: &'a dyn Fn(&SecretName) -> Option<Secret>,
    /// Returns a variable of the daemon's environment.
    pub env: &'a dyn Fn(&str) -> Option<Secret>,
    /// Returns a key of `runner`.
    pub runner: &'a dyn Fn(&str) -> Option<String>,
}

/// The reason why a server's configuration cannot be opened. Shows names, and no values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// A secret was cleared after the run was created.
    #[error(
        "`{alias}` needs the secret `{name}` for `{field}`, and its value in this run was cleared; \
         create a new run once the secret is set"
    )]
    Secret {
        /// The server.
        alias: Alias,
        /// The place of the secret.
        field: String,
        /// The secret.
        name: SecretName,
    },
    /// A variable is no longer set, or the runner does not know a key (O70).
    #[error("`{alias}` needs `{placeholder}` for `{field}`, which has no value here")]
    Unknown {
        /// The server.
        alias: Alias,
        /// The place of the placeholder.
        field: String,
        /// The unknown value, such as `runner.scripts_dir`.
        placeholder: String,
    },
    /// A value that its header, variable or URL cannot carry.
    #[error("the value for `{field}` of `{alias}` {why}")]
    Unfit {
        /// The server.
        alias: Alias,
        /// The place of the value.
        field: String,
        /// The fault of the value.
        why: &'static str,
    },
    /// The value of a secret that its header or variable cannot carry.
    #[error(
        "the secret `{name}` for `{field}` of `{alias}` {why}; set it again with `{command}`",
        command = narthex("secrets set {}", &[name])
    )]
    UnfitSecret {
        /// The server.
        alias: Alias,
        /// The place of the secret.
        field: String,
        /// The secret.
        name: SecretName,
        /// The fault of the value.
        why: &'static str,
    },
    /// The server is an image or a script, which cannot be started here.
    #[error("`{field}` of `{alias}`: narthex cannot start {shape} yet; {remedy}")]
    NotStarted {
        /// The server.
        alias: Alias,
        /// The field of the server's entry.
        field: &'static str,
        /// The shape of the server.
        shape: &'static str,
        /// The remedy.
        remedy: &'static str,
    },
}

impl ResolvedRun {
    /// The run with all values, for a runner that starts the servers itself. The caller of this
    /// function must check that the runner has the `runner` role and has requested the values.
    ///
    /// # Errors
    /// The first value that is not available.
    pub fn payload(&self, opening: Opening<'_>) -> Result<Value, OpenError> {
        let mut servers = Map::new();
        for (alias, server) in &self.servers {
            servers.insert(alias.to_string(), server.payload(opening)?);
        }
        Ok(json!({
            "run_id": self.run_id,
            "session_id": self.session_id,
            "agent_name": self.agent,
            "resolved_mcp_servers": servers,
        }))
    }
}

impl ResolvedServer {
    /// The definition for starting and calling the server, with all values filled in.
    ///
    /// # Errors
    /// The first value that is not available, or a server that cannot be started.
    pub fn definition(&self, opening: Opening<'_>) -> Result<ServerDefinition, OpenError> {
        let opener = Opener { server: self, opening };
        let mut carried = BTreeMap::new();
        let mut filled_in = Vec::new();
        for (name, key) in &self.config {
            let text = Secret::new(opener.text(name, key)?);
            if key.is_hidden {
                filled_in.push(text.clone());
            }
            if let ResolvedValue::Tree(tree) = &key.value {
                filled_in.extend(opener.variables(tree.placeholders()));
            }
            carried.insert(key.carrier.name().to_owned(), text);
        }
        let mut sources: Vec<_> = self.config.iter().filter_map(key_source).collect();
        let target = match &self.target {
            ResolvedTarget::Http { url, is_sse, auth } => {
                filled_in.extend(opener.variables(url.placeholders()));
                sources.extend(auth_source(auth));
                Target::Http(HttpTarget {
                    url: opener.url(url)?,
                    is_sse: *is_sse,
                    headers: carried,
                    auth: opener.auth(auth, &mut filled_in)?,
                })
            }
            ResolvedTarget::Command { command, args, cwd, confinement } => {
                let args = args.iter().map(|arg| opener.template("args", arg));
                let cwd = cwd.as_ref().map(|cwd| opener.template("cwd", cwd)).transpose()?;
                let working_dir = cwd.map(PathBuf::from);
                let confinement =
                    confinement.as_ref().map(|one| opener.confinement(one)).transpose()?;
                let confinement = confinement.map(|one| one.confinement(working_dir.clone()));
                Target::Stdio(StdioTarget {
                    command: command.clone(),
                    args: args.collect::<Result<_, _>>()?,
                    env: carried,
                    working_dir,
                    confinement: confinement.map(Box::new),
                })
            }
            ResolvedTarget::Image { .. } => {
                let remedy = "give the server a `command` with `args` that runs it, such as \
                              `docker run -i`, or mark its attachment as `optional`";
                return Err(opener.not_started("image", "a container image", remedy));
            }
            ResolvedTarget::Script { .. } => {
                let remedy = "give the server a `command` with `args` that runs it, or mark its \
                              attachment as `optional`";
                return Err(opener.not_started("script", "a script", remedy));
            }
        };
        let definition = ServerDefinition::new(self.alias.clone(), target);
        Ok(ServerDefinition {
            timeout: self.settings.timeout(),
            progress_extends: self.settings.progress_extends(),
            mount_timeout: self.settings.mount_timeout(),
            recovers: self.settings.auto_recover != Some(false),
            output: self.settings.output(),
            exposed: Box::new(self.exposed()),
            gates: Box::new(self.gates.clone()),
            notifications: self.settings.notifications.clone().into(),
            is_disabled: self.settings.disabled,
            filled_in,
            header_sources: sources,
            ..definition
        })
    }

    /// The server with all values, as in [`ResolvedRun::payload`], and for the same callers.
    ///
    /// # Errors
    /// The first value that is not available.
    pub fn payload(&self, opening: Opening<'_>) -> Result<Value, OpenError> {
        let opener = Opener { server: self, opening };
        let mut config = Map::new();
        for (name, key) in &self.config {
            config.insert(name.clone(), opener.value(name, key)?);
        }
        let mut payload = json!({ "type": self.transport(), "config": config });
        match &self.target {
            ResolvedTarget::Http { url, .. } => payload["url"] = json!(opener.url(url)?),
            ResolvedTarget::Command { command, args, cwd, confinement } => {
                let args = args.iter().map(|arg| opener.template("args", arg));
                payload["command"] = json!(command);
                payload["args"] = json!(args.collect::<Result<Vec<_>, _>>()?);
                if let Some(cwd) = cwd {
                    payload["cwd"] = json!(opener.template("cwd", cwd)?);
                }
                if let Some(confinement) = confinement {
                    payload["confinement"] = json!(opener.confinement(confinement)?);
                }
            }
            ResolvedTarget::Image { image } => payload["image"] = json!(image),
            ResolvedTarget::Script { script } => payload["script"] = json!(script),
        }
        Ok(payload)
    }
}

/// The source of a key's value that travels as a header.
fn key_source((name, key): (&String, &ResolvedKey)) -> Option<HeaderSource> {
    let Carrier::Header(header) = &key.carrier else { return None };
    let (secret, variables) = match &key.value {
        ResolvedValue::Secret(secret) => (Some(secret.clone()), Vec::new()),
        ResolvedValue::Tree(tree) => (None, variables_of(tree.placeholders())),
    };
    let (header, key) = (header.clone(), format!("config.{name}"));
    Some(HeaderSource { header, key, secret, variables, workspace: None })
}

/// The source of the key of `auth`.
fn auth_source(auth: &EntryAuth) -> Option<HeaderSource> {
    let EntryAuth::ApiKey { header_name, key, .. } = auth else { return None };
    let (secret, variables) = match &key.0 {
        ConfigValue::Secret(secret) => (Some(secret.clone()), Vec::new()),
        other => (None, variables_of(other.placeholders())),
    };
    let (header, key) = (header_name.clone(), "auth.key".to_owned());
    Some(HeaderSource { header, key, secret, variables, workspace: None })
}

fn variables_of(placeholders: Vec<&Placeholder>) -> Vec<String> {
    let of_env = placeholders.into_iter().filter(|one| one.source == Source::Env);
    of_env.map(|one| one.key.clone()).collect()
}

/// Opens the values of one server.
struct Opener<'a> {
    server: &'a ResolvedServer,
    opening: Opening<'a>,
}

impl Opener<'_> {
    fn alias(&self) -> Alias {
        self.server.alias.clone()
    }

    fn not_started(
        &self,
        field: &'static str,
        shape: &'static str,
        remedy: &'static str,
    ) -> OpenError {
        OpenError::NotStarted { alias: self.alias(), field, shape, remedy }
    }

    fn unknown(&self, field: &str, placeholder: &Placeholder) -> OpenError {
        let field = field.to_owned();
        OpenError::Unknown { alias: self.alias(), field, placeholder: placeholder.to_string() }
    }

    fn unfit(&self, field: &str, why: &'static str) -> OpenError {
        OpenError::Unfit { alias: self.alias(), field: field.to_owned(), why }
    }

    /// Does as [`Self::unfit`], and names the secret that the value is, if it is one.
    fn unfit_value(
        &self,
        field: &str,
        secret: Option<&SecretName>,
        why: &'static str,
    ) -> OpenError {
        let Some(name) = secret else { return self.unfit(field, why) };
        let (alias, field) = (self.alias(), field.to_owned());
        OpenError::UnfitSecret { alias, field, name: name.clone(), why }
    }

    /// The values of variables of the daemon, all of which count as secrets: they are redacted from
    /// the server's output (D22).
    fn variables<'p>(&self, open: impl IntoIterator<Item = &'p Placeholder>) -> Vec<Secret> {
        let of_env = open.into_iter().filter(|open| open.source == Source::Env);
        of_env.filter_map(|open| (self.opening.env)(&open.key)).collect()
    }

    fn openers(&self) -> Openers<'_> {
        Openers { env: self.opening.env, runner: self.opening.runner }
    }

    fn secret(&self, field: &str, name: &SecretName) -> Result<Secret, OpenError> {
        (self.opening.secret)(name).ok_or_else(|| OpenError::Secret {
            alias: self.alias(),
            field: field.to_owned(),
            name: name.clone(),
        })
    }

    fn template(&self, field: &str, template: &Template) -> Result<String, OpenError> {
        opened_text(template, &self.openers()).map_err(|open| self.unknown(field, &open))
    }

    fn confinement(&self, of: &ProgramConfinement) -> Result<EntryConfinement, OpenError> {
        of.opened(|path, at| {
            let field = at.to_string();
            let path = self.template(&field, path)?;
            match Path::new(&path).is_absolute() {
                true => Ok(path),
                false => Err(self.unfit(&field, "is not an absolute path")),
            }
        })
    }

    fn url(&self, template: &Template) -> Result<String, OpenError> {
        let text = self.template("url", template)?;
        match url::objection(&text) {
            None => Ok(text),
            Some(why) => Err(self.unfit("url", why)),
        }
    }

    /// The value as its type.
    fn value(&self, name: &str, key: &ResolvedKey) -> Result<Value, OpenError> {
        match &key.value {
            ResolvedValue::Secret(secret) => {
                Ok(self.secret(name, secret)?.expose().to_owned().into())
            }
            ResolvedValue::Tree(tree) => {
                let value = opened(tree, &self.openers());
                let value = value.map_err(|open| self.unknown(name, &open))?;
                match key.value_type {
                    None => Ok(value),
                    Some(value_type) => taken(value_type, tree, value)
                        .ok_or_else(|| self.unfit(name, "has another type than its schema allows")),
                }
            }
        }
    }

    /// The value as the text that travels.
    fn text(&self, name: &str, key: &ResolvedKey) -> Result<String, OpenError> {
        let value = self.value(name, key)?;
        let text = match &key.value {
            ResolvedValue::Secret(_) => crate::fill::text_of(&value),
            ResolvedValue::Tree(tree) => carried(key.value_type, tree, &value),
        };
        match objection(&key.carrier, &text) {
            None => Ok(text),
            Some(why) => {
                let secret = match &key.value {
                    ResolvedValue::Secret(secret) => Some(secret),
                    ResolvedValue::Tree(_) => None,
                };
                Err(self.unfit_value(name, secret, why))
            }
        }
    }

    /// The authentication of requests. A server that a person must sign in to is no hindrance: the
    /// run has it without being connected (D17).
    fn auth(&self, auth: &EntryAuth, opened: &mut Vec<Secret>) -> Result<ServerAuth, OpenError> {
        let oauth = match auth {
            EntryAuth::None => return Ok(ServerAuth::None),
            EntryAuth::ApiKey { header_name, value_prefix, key } => {
                let secret = match &key.0 {
                    ConfigValue::Secret(name) => Some(name),
                    ConfigValue::Tree(_) | ConfigValue::Removed => None,
                };
                let key = self.auth_text("auth.key", key)?;
                if let Some(why) = objection(&Carrier::Header(header_name.clone()), key.expose()) {
                    return Err(self.unfit_value("auth.key", secret, why));
                }
                opened.push(key.clone());
                let (header_name, value_prefix) = (header_name.clone(), value_prefix.clone());
                return Ok(ServerAuth::ApiKey(ApiKeyAuth {
                    header_name,
                    value_prefix,
                    key: Some(key),
                }));
            }
            EntryAuth::ClientCredentials(auth) => {
                OAuth::ClientCredentials(self.client_credentials(auth)?)
            }
            EntryAuth::AuthorizationCode(auth) => OAuth::AuthorizationCode(self.sign_in(auth)?),
        };
        Ok(ServerAuth::OAuth(Box::new(oauth)))
    }

    fn client_credentials(
        &self,
        auth: &EntryClientCredentials,
    ) -> Result<ClientCredentialsAuth, OpenError> {
        let proof = match &auth.proof {
            EntryProof::Secret { client_secret, token_endpoint_auth_method } => {
                ClientProof::Secret {
                    secret: self.auth_text("auth.clientSecret", client_secret)?,
                    method: *token_endpoint_auth_method,
                }
            }
            EntryProof::Key { private_key, key_id, algorithm } => ClientProof::Key {
                pem: self.auth_text("auth.privateKey", private_key)?,
                key_id: key_id.clone(),
                algorithm: algorithm.clone(),
            },
        };
        Ok(ClientCredentialsAuth {
            token_url: auth.token_url.clone(),
            client_id: self.auth_text("auth.clientId", &auth.client_id)?.expose().to_owned(),
            proof,
            scopes: auth.scopes.iter().cloned().collect(),
            audience: auth.audience.clone(),
            resource: auth.resource.clone(),
            authorization_server: auth.authorization_server.clone(),
            auth_error: auth.auth_error.clone(),
            // The caller knows the workspace.
            grant: None,
        })
    }

    fn sign_in(&self, auth: &EntrySignIn) -> Result<AuthorizationCodeAuth, OpenError> {
        let client = auth.client.as_ref().map(|client| self.auth_client(client)).transpose()?;
        Ok(AuthorizationCodeAuth {
            scopes: auth.scopes.iter().cloned().collect(),
            client,
            tokens: None,
            redirect_uri: auth.redirect_uri.clone(),
            resource: auth.resource.clone(),
            registration: auth.registration,
            pkce: auth.pkce,
            refresh_scope: auth.refresh_scope,
            client_name: auth.client_name.clone(),
            authorization_server: auth.authorization_server.clone(),
            legacy: auth.legacy,
            keep_alive: auth.keep_alive,
            exchange: auth.exchange.as_ref().map(exchanged),
            auth_error: auth.auth_error.clone(),
            // The caller knows the workspace.
            grant: None,
        })
    }

    fn auth_client(&self, client: &AuthClient) -> Result<OAuthClient, OpenError> {
        let id = self.auth_text("auth.client.clientId", &client.client_id)?.expose().to_owned();
        let secret = client.client_secret.as_ref();
        let secret = secret.map(|secret| self.auth_text("auth.client.clientSecret", secret));
        Ok(OAuthClient { id, secret: secret.transpose()? })
    }

    fn auth_text(&self, name: &str, text: &AuthText) -> Result<Secret, OpenError> {
        match &text.0 {
            ConfigValue::Secret(secret) => self.secret(name, secret),
            ConfigValue::Tree(tree) => {
                let value = opened(tree, &self.openers());
                let value = value.map_err(|open| self.unknown(name, &open))?;
                Ok(Secret::new(crate::fill::text_of(&value)))
            }
            ConfigValue::Removed => Err(self.unfit(name, "is empty")),
        }
    }
}

/// The exchange of the identity of the human who drives the run.
fn exchanged(exchange: &EntryExchange) -> Box<OAuthExchange> {
    let EntryExchange { kind, identity_provider, audience, fallback } = exchange;
    let identity = ExchangeIdentity::Login(identity_provider.clone());
    let (audience, fallback) = (audience.clone(), *fallback);
    Box::new(OAuthExchange { kind: *kind, identity, audience, fallback })
}

impl fmt::Debug for Opening<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opening").finish_non_exhaustive()
    }
}
