//! Compares two configurations of a server without storing secrets for it (E52).

use std::{path::Path, time::Duration};

use hmac::{Hmac, KeyInit as _, Mac as _};
use narthex_model::{
    ApiKeyAuth, AuthErrorPattern, AuthorizationCodeAuth, ClientCredentialsAuth, ClientProof,
    ExchangeFallback, ExchangeIdentity, GivenIdentity, HeaderSource, HttpTarget, NamedSecret,
    OAuth, OAuthClient, OAuthExchange, OAuthPkce, OAuthRegistration, OAuthResource, OAuthTokens,
    Secret, SecretMethod, SecretName, ServerAuth, ServerDefinition, SharedGrant, StdioTarget,
    Target, WorkspaceId,
};
use sha2::Sha256;

/// A configuration's fingerprint under a key that only this process has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Digest([u8; 32]);

/// The key, generated anew by each registry and stored nowhere else.
pub(crate) struct DigestKey(Hmac<Sha256>);

impl DigestKey {
    pub(crate) fn new(key: &[u8; 32]) -> Self {
        let mac = Hmac::<Sha256>::new_from_slice(key);
        Self(mac.expect("HMAC takes keys of any length"))
    }

    /// The digest of all parts of a definition that a connection depends on. The definition is
    /// destructured in full, so that a new field cannot be forgotten here. A configuration that
    /// switches the server off has the same digest: the switch is no property of a connection.
    pub(crate) fn of(&self, definition: &ServerDefinition) -> Digest {
        let ServerDefinition {
            alias,
            target,
            timeout,
            progress_extends,
            mount_timeout,
            recovers,
            is_disabled: _,
            pins_definitions,
            shows_flagged,
            filled_in,
            header_sources,
            named_secrets,
            // The place of the entry, and not its content.
            approved_in: _,
            // The output limits are the gateway's part, which reads the row.
            output: _,
            traffic: _,
            exposed: _,
            gates: _,
            notifications: _,
        } = definition;
        let mut fields = Fields(self.0.clone());
        fields.text(alias.as_str());
        fields.duration(*timeout);
        fields.duration(*progress_extends);
        fields.duration(*mount_timeout);
        fields.flag(*recovers);
        fields.flag(*pins_definitions);
        fields.flag(*shows_flagged);
        match target {
            Target::Stdio(target) => fields.stdio(target),
            Target::Http(target) => fields.http(target),
        }
        fields.many(filled_in.iter().map(Secret::expose));
        fields.sources(header_sources);
        fields.named(named_secrets);
        Digest(fields.0.finalize().into_bytes().into())
    }

    /// The digest of a live server, whose definitions may be pinned: pins of an entry of another
    /// file are different pins.
    pub(crate) fn of_live(&self, definition: &ServerDefinition, file: Option<&Path>) -> Digest {
        let digest = self.of(definition);
        let Some(file) = file.filter(|_| definition.pins_definitions) else { return digest };
        let mut fields = Fields(self.0.clone());
        fields.0.update(&digest.0);
        fields.text(&file.to_string_lossy());
        Digest(fields.0.finalize().into_bytes().into())
    }
}

/// Each field is hashed with its length, so that no two lists have one hash input (E53).
struct Fields(Hmac<Sha256>);

impl Fields {
    fn number(&mut self, number: u64) {
        self.0.update(&number.to_be_bytes());
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.update(text.as_bytes());
    }

    fn flag(&mut self, is_set: bool) {
        self.0.update(&[u8::from(is_set)]);
    }

    fn optional(&mut self, text: Option<&str>) {
        self.flag(text.is_some());
        self.text(text.unwrap_or_default());
    }

    fn optional_secret(&mut self, secret: Option<&Secret>) {
        self.optional(secret.map(Secret::expose));
    }

    fn duration(&mut self, duration: Option<Duration>) {
        self.flag(duration.is_some());
        let millis = duration.unwrap_or_default().as_millis();
        self.number(u64::try_from(millis).unwrap_or(u64::MAX));
    }

    fn many<'t>(&mut self, texts: impl ExactSizeIterator<Item = &'t str>) {
        self.number(texts.len() as u64);
        texts.for_each(|text| self.text(text));
    }

    /// Hashes the sources of headers: a remedy that names them must be true of the connection that
    /// has them.
    fn sources(&mut self, sources: &[HeaderSource]) {
        self.number(sources.len() as u64);
        for HeaderSource { header, key, secret, variables, workspace } in sources {
            self.text(header);
            self.text(key);
            self.optional(secret.as_ref().map(SecretName::as_str));
            self.many(variables.iter().map(String::as_str));
            self.optional(workspace.as_ref().map(WorkspaceId::as_str));
        }
    }

    /// Hashes the versions of secrets: a new value of a secret is another configuration.
    fn named(&mut self, secrets: &[NamedSecret]) {
        self.number(secrets.len() as u64);
        for NamedSecret { name, key, place: _, opened } in secrets {
            self.text(name.as_str());
            self.text(key);
            self.number(opened.as_ref().map_or(0, |id| id.version));
        }
    }

    fn stdio(&mut self, target: &StdioTarget) {
        let StdioTarget { command, args, env, working_dir, confinement } = target;
        self.text("stdio");
        self.text(command);
        self.many(args.iter().map(String::as_str));
        self.many(env.keys().map(String::as_str));
        self.many(env.values().map(Secret::expose));
        let folder = working_dir.as_ref().map(|folder| folder.to_string_lossy());
        self.optional(folder.as_deref());
        let confinement = confinement.as_ref().map(|limits| format!("{limits:?}"));
        self.optional(confinement.as_deref());
    }

    fn oauth(&mut self, oauth: &OAuth) {
        self.text(oauth.mode());
        match oauth {
            OAuth::ClientCredentials(auth) => self.client_credentials(auth),
            OAuth::AuthorizationCode(auth) => self.authorization_code(auth),
        }
    }

    /// Scopes come in their own order, whatever that of the file is (E49).
    fn client_credentials(&mut self, auth: &ClientCredentialsAuth) {
        let ClientCredentialsAuth {
            token_url,
            client_id,
            proof,
            scopes,
            audience,
            resource,
            authorization_server,
            auth_error,
            grant,
        } = auth;
        self.optional(token_url.as_deref());
        self.text(client_id);
        match proof {
            ClientProof::Secret { secret, method } => {
                self.text("secret");
                self.text(secret.expose());
                self.optional(method.map(SecretMethod::word));
            }
            ClientProof::Key { pem, key_id, algorithm } => {
                self.text("key");
                self.text(pem.expose());
                self.optional(key_id.as_deref());
                self.optional(algorithm.as_deref());
            }
        }
        self.many(scopes.iter().map(String::as_str));
        self.optional(audience.as_deref());
        self.optional(resource.as_deref());
        self.optional(authorization_server.as_deref());
        self.optional(auth_error.as_ref().map(AuthErrorPattern::as_str));
        self.grant(grant.as_ref());
    }

    fn grant(&mut self, grant: Option<&SharedGrant>) {
        self.flag(grant.is_some());
        if let Some(SharedGrant { workspace, server }) = grant {
            self.text(workspace.as_str());
            self.text(server);
        }
    }

    fn authorization_code(&mut self, auth: &AuthorizationCodeAuth) {
        let AuthorizationCodeAuth {
            scopes,
            client,
            tokens,
            redirect_uri,
            resource,
            registration,
            pkce,
            refresh_scope,
            client_name,
            authorization_server,
            legacy,
            keep_alive,
            exchange,
            auth_error,
            grant,
        } = auth;
        self.many(scopes.iter().map(String::as_str));
        self.flag(client.is_some());
        if let Some(OAuthClient { id, secret }) = client {
            self.text(id);
            self.optional_secret(secret.as_ref());
        }
        self.flag(tokens.is_some());
        if let Some(OAuthTokens { access_token, refresh_token, expires_at }) = tokens {
            self.text(access_token.expose());
            self.optional_secret(refresh_token.as_ref());
            self.flag(expires_at.is_some());
            self.number(expires_at.unwrap_or_default());
        }
        self.optional(redirect_uri.as_deref());
        self.optional(resource.as_ref().map(OAuthResource::as_str));
        self.optional(registration.map(OAuthRegistration::word));
        self.optional(pkce.map(OAuthPkce::word));
        self.flag(refresh_scope.is_some());
        self.flag(refresh_scope.unwrap_or_default());
        self.optional(client_name.as_deref());
        self.optional(authorization_server.as_deref());
        self.flag(*legacy);
        self.flag(*keep_alive);
        self.flag(exchange.is_some());
        if let Some(exchange) = exchange {
            self.exchange(exchange);
        }
        self.optional(auth_error.as_ref().map(AuthErrorPattern::as_str));
        self.grant(grant.as_ref());
    }

    fn exchange(&mut self, exchange: &OAuthExchange) {
        let OAuthExchange { kind, identity, audience, fallback } = exchange;
        self.text(kind.word());
        match identity {
            ExchangeIdentity::Login(provider) => {
                self.text("login");
                self.text(provider);
            }
            ExchangeIdentity::Given(given) => {
                let GivenIdentity { token_url, client, id_token, refresh_token } = &**given;
                self.text("given");
                self.text(token_url);
                self.text(&client.id);
                self.optional_secret(client.secret.as_ref());
                self.optional_secret(id_token.as_ref());
                self.optional_secret(refresh_token.as_ref());
            }
        }
        self.optional(audience.as_deref());
        self.optional(fallback.map(ExchangeFallback::word));
    }

    fn http(&mut self, target: &HttpTarget) {
        let HttpTarget { url, is_sse, headers, auth } = target;
        self.text("http");
        self.text(url);
        self.flag(*is_sse);
        self.many(headers.keys().map(String::as_str));
        self.many(headers.values().map(Secret::expose));
        match auth {
            ServerAuth::None => self.text("none"),
            ServerAuth::Unstated => self.text("unstated"),
            ServerAuth::ApiKey(ApiKeyAuth { header_name, value_prefix, key }) => {
                self.text("apiKey");
                self.text(header_name);
                self.text(value_prefix);
                self.optional_secret(key.as_ref());
            }
            ServerAuth::OAuth(oauth) => self.oauth(oauth),
        }
    }
}

#[cfg(test)]
mod tests;
