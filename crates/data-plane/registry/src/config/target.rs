//! The part of an entry that both documents share: the way to reach the server.

use std::{
    collections::{BTreeMap, HashSet},
    path::PathBuf,
};

use narthex_model::{HttpTarget, Secret, SecretPlace, ServerAuth, StdioTarget, Target, header};

use super::{
    auth,
    node::{Node, Place, field},
    problem::EntryProblem,
    reader::{Fields, Reader},
    secrets,
};

/// The keys of an entry in both documents.
pub(super) const ENTRY_KEYS: [&str; 35] = [
    "transport",
    "url",
    "command",
    "args",
    "env",
    "cwd",
    "confinement",
    "headers",
    "auth",
    "timeoutMs",
    "timeout",
    "progressExtends",
    "progress_extends",
    "mountTimeout",
    "mount_timeout",
    "autoRecover",
    "auto_recover",
    "maxOutputTokens",
    "max_output_tokens",
    "maxOutputBytes",
    "max_output_bytes",
    "limits",
    "tools",
    "resources",
    "prompts",
    "tool_scopes",
    "resource_scopes",
    "prompt_scopes",
    "notifications",
    "disabled",
    "pinDefinitions",
    "pin_definitions",
    "onFlagged",
    "on_flagged",
    "name",
];

/// The kind of target that an entry describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Stdio,
    Http { is_sse: bool },
}

impl Reader<'_> {
    /// Reads the target; `None` after a fault. `url_key` is the key of the url.
    pub(super) fn target(
        &mut self,
        fields: &Fields,
        at: &Place,
        wanted: Wanted,
        url_key: &str,
    ) -> Option<Target> {
        // The auth block is checked whatever the transport is.
        let auth = auth::read(self, fields, at);
        match wanted {
            Wanted::Stdio => {
                self.unused(fields, at, &["url", "headers"], "stdio");
                if auth.is_some_and(|auth| !auth.sends_nothing()) {
                    self.warn(&at.key("auth"), "a stdio server does not use this; use `env`");
                }
                self.stdio(fields, at).map(Target::Stdio)
            }
            Wanted::Http { is_sse } => {
                self.unused(fields, at, &["command", "args", "env", "cwd", "confinement"], "http");
                let url = self.filled(fields, at, url_key);
                if url.is_none() {
                    self.fault_if_absent(fields, at, url_key, EntryProblem::NoUrl);
                }
                let url = url.and_then(|url| self.url(&at.key(url_key), &url.value));
                let headers = self.headers(fields, at, auth.as_ref());
                let (url, auth) = (url?, auth?);
                let is_authorized = |name: &String| name.eq_ignore_ascii_case("authorization");
                let auth = match auth {
                    // The entry has a credential of its own.
                    ServerAuth::Unstated if headers.keys().any(is_authorized) => ServerAuth::None,
                    auth => auth,
                };
                Some(Target::Http(HttpTarget { url, is_sse, headers, auth }))
            }
        }
    }

    fn stdio(&mut self, fields: &Fields, at: &Place) -> Option<StdioTarget> {
        let command = self.filled(fields, at, "command");
        if command.is_none() {
            self.fault_if_absent(fields, at, "command", EntryProblem::NoCommand);
        }
        let args = self.args(fields, at);
        let env = self.env(fields, at);
        let cwd = self.filled(fields, at, "cwd").map(|cwd| cwd.value);
        let working_dir = cwd.map(|cwd| self.below(self.context.workspace_root, &cwd));
        let confinement = self.confinement(fields, at, working_dir.as_ref()).map(Box::new);
        let command = command?.value;
        if args.is_empty() && command.contains(char::is_whitespace) {
            let place = at.key("command");
            self.warn(
                &place,
                "this must be the name of one program; put its arguments into `args`",
            );
        }
        let command = self.program(command, working_dir.as_ref());
        Some(StdioTarget { command, args, env, working_dir, confinement })
    }

    /// Completes a relative path of a program: it begins at the working folder of the entry, not at
    /// that of the daemon.
    fn program(&self, command: String, working_dir: Option<&PathBuf>) -> String {
        // A placeholder may have the beginning of a whole path, and a `/` that it may be without.
        let known = match self.is_open(&command) {
            true => command.split("${").next().unwrap_or_default(),
            false => &command,
        };
        let folder = working_dir.map_or(self.context.workspace_root, PathBuf::as_path);
        if !known.contains('/') || self.begins_open(folder) {
            return command;
        }
        folder.join(&command).to_str().map_or(command, str::to_owned)
    }

    /// Reports an empty text as an absent one; a fault in the text is already reported.
    fn fault_if_absent(&mut self, fields: &Fields, at: &Place, key: &str, problem: EntryProblem) {
        let place = at.key(key);
        if field(fields, key).is_none() {
            self.fault(at, problem);
        } else if !self.has_fault_at(&place) {
            self.fault(&place, problem);
        }
    }

    fn args(&mut self, fields: &Fields, at: &Place) -> Vec<String> {
        let place = at.key("args");
        match field(fields, "args") {
            None => Vec::new(),
            Some(Node::List(nodes)) => {
                let mut args = Vec::with_capacity(nodes.len());
                for (index, node) in nodes.iter().enumerate() {
                    let place = place.index(index);
                    let Some(arg) = self.any_text(node, &place) else { continue };
                    if !arg.is_from_elsewhere() && secrets::looks_secret("", &arg.value) {
                        self.warn(
                            &place,
                            "this looks like a secret, and other programs on this machine can \
                             read arguments; pass it in `env` as `${env:NAME}` or `${secret:NAME}`",
                        );
                    }
                    args.push(arg.value);
                }
                args
            }
            Some(node) => {
                self.wrong_type(&place, node, "an array of strings");
                Vec::new()
            }
        }
    }

    fn env(&mut self, fields: &Fields, at: &Place) -> BTreeMap<String, Secret> {
        let mut env = BTreeMap::new();
        for (name, node, place) in self.map(fields, at, "env") {
            if name.is_empty() || name.contains(['=', '\0']) {
                let name = super::node::shortened(name);
                self.fault(&place, EntryProblem::BadEnvName { name });
            } else if let Some(value) =
                self.text_or_secret(node, &place, SecretPlace::Variable(name.clone()))
            {
                self.advise_if_secret(&place, name, &value);
                env.insert(name.clone(), Secret::new(value.value));
            }
        }
        env
    }

    fn headers(
        &mut self,
        fields: &Fields,
        at: &Place,
        auth: Option<&ServerAuth>,
    ) -> BTreeMap<String, Secret> {
        let mut seen = HashSet::new();
        match auth {
            Some(ServerAuth::ApiKey(key)) => {
                seen.insert(key.header_name.to_ascii_lowercase());
            }
            Some(ServerAuth::OAuth(_)) => {
                seen.insert("authorization".to_owned());
            }
            Some(ServerAuth::None | ServerAuth::Unstated) | None => {}
        }
        let mut headers = BTreeMap::new();
        for (name, node, place) in self.map(fields, at, "headers") {
            let lower = name.to_ascii_lowercase();
            if !header::is_name(name) {
                let name = super::node::shortened(name);
                self.fault(&place, EntryProblem::BadHeaderName { name });
            } else if header::is_own(name) {
                self.warn(&place, "ignored: narthex sets this header itself; remove it");
            } else if !seen.insert(lower) {
                self.fault(&place, EntryProblem::HeaderTwice { name: name.clone() });
            } else if let Some(value) =
                self.text_or_secret(node, &place, SecretPlace::Header(name.clone()))
            {
                self.advise_if_secret_header(&place, name, &value);
                self.header_from(name, &place, &value);
                if let Some(value) = self.header_value(&place, value.value) {
                    headers.insert(name.clone(), Secret::new(value));
                }
            }
        }
        headers
    }

    /// A text that HTTP can carry in a header.
    pub(super) fn header_value(&mut self, place: &Place, value: String) -> Option<String> {
        if header::is_value(&value) || self.is_open(&value) {
            return Some(value);
        }
        self.fault(place, EntryProblem::BadHeaderValue);
        None
    }

    /// The fields of the object `key`, with their places.
    fn map<'n>(
        &mut self,
        fields: &'n Fields,
        at: &Place,
        key: &str,
    ) -> Vec<(&'n String, &'n Node, Place)> {
        let place = at.key(key);
        match field(fields, key) {
            None => Vec::new(),
            Some(Node::Object(fields)) => {
                fields.iter().map(|(name, node)| (name, node, place.key(name))).collect()
            }
            Some(node) => {
                self.wrong_type(&place, node, "an object of strings");
                Vec::new()
            }
        }
    }

    fn unused(&mut self, fields: &Fields, at: &Place, keys: &[&str], transport: &str) {
        for key in keys.iter().filter(|key| field(fields, key).is_some()) {
            self.warn(&at.key(key), format!("ignored: {transport} servers do not use it"));
        }
    }
}
