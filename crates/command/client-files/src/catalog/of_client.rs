//! Servers in the own file of a client, such as `.vscode/mcp.json`, as servers of the catalog.
//!
//! The reader of clients' files knows the dialects, and this module the catalog. A literal secret
//! is never stored: in `env` and `headers` the name of a secret takes its place, and elsewhere it
//! is refused. Faults and notices name the fields as the file has them.

use std::collections::BTreeSet;

use narthex_model::{
    Alias, SecretName, VariablePlace,
    command::{CommandLine, narthex},
    json::Place,
};
use serde_json::{Map, Value, json};

use super::pasted::{BEARER, HEADERS, Pasted, PastedFault, PastedServer, Reader};
use crate::{
    clients::Client,
    plan::is_narthex,
    servers::{
        Found, FoundServer, NameableSecret, Placed, Placeholder, Target, Text, is_by_env, spelling,
    },
};

/// The servers of a client's file, as the client writes them.
#[derive(Debug)]
pub struct OfClient {
    /// The client.
    pub client: &'static Client,
    /// The servers, with their places.
    pub servers: Vec<Placed>,
}

/// Texts in place of refused ones, which must go nowhere.
const HIDDEN: &str = "hidden";
const HIDDEN_URL: &str = "https://hidden.invalid";

/// Converts the servers of a client's file. What cannot be kept is a notice.
pub(super) fn take_out(file: &OfClient) -> Pasted {
    let mut file = File { taken: BTreeSet::new(), pasted: Pasted::default(), file };
    for placed in &file.file.servers {
        file.add(placed);
    }
    let mut pasted = file.pasted;
    if pasted.servers.is_empty() && pasted.faults.is_empty() {
        pasted.faults.push(PastedFault {
            place: String::new(),
            message: "the file has no server for the catalog".to_owned(),
            remedy: "add one, or name the client whose file it is with `--format`".to_owned(),
        });
    }
    pasted
}

/// The conversion of one file.
struct File<'f> {
    file: &'f OfClient,
    /// Names of secrets that the file has already.
    taken: BTreeSet<String>,
    pasted: Pasted,
}

impl File<'_> {
    fn add(&mut self, placed: &Placed) {
        let at = &placed.place;
        let server = match &placed.found {
            Found::Server(server) if is_narthex(self.file.client, server) => {
                let notice = format!("{at}: left out: it is narthex itself");
                return self.pasted.notices.push(notice);
            }
            Found::Unusable { reason, .. } => {
                return self.pasted.notices.push(format!("{at}: left out: {reason}"));
            }
            Found::Server(server) => server,
        };
        let alias = Alias::suggest(&server.name);
        if alias.as_str() != server.name {
            self.pasted.notices.push(format!("{at}: its id in the catalog is `{alias}`"));
        }
        let mut converter = Converter {
            server,
            alias: &alias,
            at,
            is_by_env: is_by_env(self.file.client.shape),
            taken: &mut self.taken,
            reader: Reader::default(),
            named: Vec::new(),
        };
        let entry = converter.entry();
        let Converter { mut reader, named, .. } = converter;
        let made = reader.server(alias.as_str(), &entry, at);
        // The notice of the replaced value names the secret already.
        let is_said = |notice: &String| {
            named.iter().any(|place| notice.starts_with(&format!("{place}: `${{")))
        };
        reader.notices.retain(|notice| !is_said(notice));
        let left_out = server.left_out.iter();
        let left_out = left_out.map(|one| format!("{at}: without `{}`: {}", one.field, one.words));
        let unfilled = server.placeholders.iter().filter_map(|placeholder| match placeholder {
            Placeholder::Unfilled { place, text } => Some(format!(
                "{at}.{place}: the client does not fill in `{text}`, so it stays text; write the \
                 value itself in its place"
            )),
            _ => None,
        });
        let spelling = Spelling { at, fields: spelling(self.file.client.shape, &placed.value) };
        let notices = reader.notices.iter().map(|notice| spelling.respelled(notice));
        self.pasted.notices.extend(notices.chain(left_out).chain(unfilled));
        self.pasted.faults.extend(
            reader
                .faults
                .into_iter()
                .map(|fault| PastedFault { place: spelling.respelled(&fault.place), ..fault }),
        );
        self.pasted.servers.extend(made.map(|made| spelling.moved(made)));
    }
}

/// The command that stores a secret.
fn setting(name: &SecretName) -> CommandLine {
    narthex("secrets set {}", &[name])
}

/// The names of fields in the file.
struct Spelling<'p> {
    at: &'p Place,
    fields: Vec<(&'static str, String)>,
}

impl Spelling<'_> {
    /// A text that begins with the place of a field, under the field's name in the file.
    fn respelled(&self, text: &str) -> String {
        let at = self.at.to_string();
        let rest = text.strip_prefix(&at).and_then(|rest| rest.strip_prefix('.'));
        match rest.and_then(|rest| self.field(rest)) {
            Some(field) => format!("{at}.{field}"),
            None => text.to_owned(),
        }
    }

    fn field(&self, text: &str) -> Option<String> {
        self.fields.iter().find_map(|(own, field)| {
            let rest = text.strip_prefix(own)?;
            let is_end = rest.is_empty() || rest.starts_with(['.', '[', ':']);
            is_end.then(|| format!("{field}{rest}"))
        })
    }

    fn moved(&self, mut server: PastedServer) -> PastedServer {
        for (_, file) in &mut server.moved {
            if let Some(field) = self.field(file) {
                *file = field;
            }
        }
        let fields = self.fields.iter().map(|(own, field)| ((*own).to_owned(), field.clone()));
        server.moved.extend(fields);
        server
    }
}

/// The conversion of one server to the form that the reader of pasted servers takes.
struct Converter<'f> {
    server: &'f FoundServer,
    alias: &'f Alias,
    at: &'f Place,
    is_by_env: bool,
    taken: &'f mut BTreeSet<String>,
    reader: Reader,
    /// Places of values that are replaced by names of secrets.
    named: Vec<Place>,
}

impl Converter<'_> {
    fn entry(&mut self) -> Value {
        let server = self.server;
        let mut entry = Map::new();
        entry.insert("type".to_owned(), server.transport().as_str().into());
        match &server.target {
            Target::Stdio { command, args, env, cwd } => {
                entry.insert("command".to_owned(), self.program(command).into());
                // The secrets of variables have their own names, and those of arguments other ones.
                let env = env.iter().map(|(key, text)| (key.clone(), self.value("env", key, text)));
                entry.insert("env".to_owned(), Value::Object(env.collect()));
                let args = args.iter().enumerate().map(|(index, arg)| self.argument(index, arg));
                entry.insert("args".to_owned(), args.collect());
                let cwd = cwd.as_ref().map(|cwd| self.folder(cwd));
                entry.extend(cwd.map(|cwd| ("cwd".to_owned(), cwd.into())));
            }
            Target::Remote { url, headers, .. } => {
                entry.insert("url".to_owned(), self.address(url).into());
                let headers = headers.iter();
                let headers =
                    headers.map(|(key, text)| (key.clone(), self.value(HEADERS, key, text)));
                entry.insert(HEADERS.to_owned(), Value::Object(headers.collect()));
            }
        }
        entry.extend(server.timeout_ms.map(|ms| ("timeoutMs".to_owned(), ms.into())));
        entry.extend(server.start_timeout_ms.map(|ms| ("mountTimeoutMs".to_owned(), ms.into())));
        let mut tools = Map::new();
        tools.extend(server.tools.allow.iter().map(|allow| ("allow".to_owned(), json!(allow))));
        if !server.tools.deny.is_empty() {
            tools.insert("deny".to_owned(), json!(server.tools.deny));
        }
        if !tools.is_empty() {
            entry.insert("tools".to_owned(), tools.into());
        }
        if server.is_disabled {
            entry.insert("disabled".to_owned(), true.into());
        }
        entry.into()
    }

    /// The catalog starts the program as it is written.
    fn program(&mut self, command: &Text) -> String {
        let at = self.at.key("command");
        if command.is_secret() {
            let message = "it looks like a secret, which the catalog would store as a text";
            self.reader.refuse(&at, message, "write the program alone");
            return HIDDEN.to_owned();
        }
        self.plain(command.expose(), &at, "write the program's path on the daemon's machine")
    }

    fn folder(&mut self, cwd: &str) -> String {
        let at = self.at.key("cwd");
        self.plain(cwd, &at, "write the folder's path on the daemon's machine")
    }

    /// A text that takes no variable.
    fn plain(&mut self, text: &str, at: &Place, remedy: &str) -> String {
        let text = self.of_client(text);
        if self.reader.is_of_clients(&text, at, VariablePlace::Text) {
            return HIDDEN.to_owned();
        }
        if text.contains("${") {
            self.reader.refuse(at, "the catalog takes no variable here", remedy);
            return HIDDEN.to_owned();
        }
        text
    }

    fn argument(&mut self, index: usize, arg: &Text) -> Value {
        if !arg.is_secret() {
            return self.of_client(arg.expose()).into();
        }
        let at = self.at.key("args").index(index);
        let name = self.name("KEY");
        let message = "it looks like a secret, and all users of the machine can read arguments";
        let set = setting(&name);
        let remedy =
            format!("pass it in `env`, as `${{{name}}}`, and store that secret with `{set}`");
        self.reader.refuse(&at, message, remedy);
        HIDDEN.into()
    }

    fn address(&mut self, url: &Text) -> String {
        if !url.is_secret() {
            return self.of_client(url.expose());
        }
        let message = "a part of it looks like a secret, which the catalog would store as a text";
        let remedy = "send the secret in a header, or write `${NAME}` in its place, for a variable \
                      of the daemon";
        self.reader.refuse(&self.at.key("url"), message, remedy);
        HIDDEN_URL.to_owned()
    }

    /// The value of a variable or a header.
    fn value(&mut self, field: &str, key: &str, text: &Text) -> Value {
        let at = self.at.key(field).key(key);
        let is_authorization = field == HEADERS && key.eq_ignore_ascii_case("authorization");
        let token = text.expose().strip_prefix(BEARER).filter(|_| is_authorization);
        let (begin, rest) = token.map_or(("", text.expose()), |token| (BEARER, token));
        if text.is_secret() {
            return self.secret(&at, key, begin).into();
        }
        if let Some(asked) = self.asked(rest) {
            let set = setting(&asked);
            self.reader.notices.push(format!(
                "{at}: only the client has this value; store it as the secret {asked} with `{set}`"
            ));
            self.named.push(at);
            return format!("{begin}${{{asked}}}").into();
        }
        if let Some(name) = self.variable(rest) {
            return format!("{begin}${{{name}}}").into();
        }
        self.of_client(text.expose()).into()
    }

    /// The name of a secret in place of its value, behind the text that its value begins with.
    fn secret(&mut self, at: &Place, key: &str, begin: &str) -> String {
        let mut nameable = self.server.nameable_secrets().into_iter();
        let found = nameable.find(|NameableSecret { key: other, .. }| other == key);
        let name = self.name(key);
        let set = setting(&name);
        if found.is_none() {
            let message = "a part of it looks like a secret, which the catalog would store as a \
                           text";
            let remedy = format!(
                "write `${{{name}}}` as the whole value, which may be any text, and store that \
                 secret with `{set}`"
            );
            self.reader.refuse(at, message, remedy);
            return HIDDEN.to_owned();
        }
        let part = if begin.is_empty() { "it" } else { "the token behind `Bearer `" };
        self.reader.notices.push(format!(
            "{at}: the value looks like a secret and is not stored; store {part} as the secret \
             {name} with `{set}`"
        ));
        self.named.push(at.clone());
        format!("{begin}${{{name}}}")
    }

    /// A name for a secret that the file does not name yet.
    fn name(&mut self, key: &str) -> SecretName {
        let name = SecretName::for_server(self.alias, key, |name| self.taken.contains(name));
        self.taken.insert(name.as_str().to_owned());
        name
    }

    /// The secret for a text that is one value which the client asks for.
    fn asked(&self, text: &str) -> Option<SecretName> {
        self.server.placeholders.iter().find_map(|placeholder| match placeholder {
            Placeholder::Asked { variable, .. } if text == format!("${{env:{variable}}}") => {
                SecretName::new(variable).ok()
            }
            _ => None,
        })
    }

    /// The secret for a text that is one variable. Where clients have another notation for
    /// variables of the environment, `env:` means these.
    fn variable(&self, text: &str) -> Option<SecretName> {
        let inside = text.strip_prefix("${env:")?.strip_suffix('}')?;
        // An unset variable that counts as empty has no other default.
        let name = inside.strip_suffix(":-").unwrap_or(inside);
        let is_home = name == "HOME" && self.server.placeholders.contains(&Placeholder::Home);
        let name = SecretName::new(name).ok()?;
        (!self.is_by_env && !is_home).then_some(name)
    }

    /// A text with the client's own words for values that only it has, so that these are refused
    /// by the words of the file.
    fn of_client(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for placeholder in &self.server.placeholders {
            let (own, word) = match placeholder {
                Placeholder::Asked { id, variable } => {
                    (format!("${{env:{variable}}}"), format!("${{input:{id}}}"))
                }
                Placeholder::Home => ("${env:HOME}".to_owned(), "${userHome}".to_owned()),
                Placeholder::Folder if self.is_by_env => {
                    ("${workspaceRoot}".to_owned(), "${workspaceFolder}".to_owned())
                }
                Placeholder::Folder
                | Placeholder::Variable { .. }
                | Placeholder::Unfilled { .. } => continue,
            };
            text = text.replace(&own, &word);
        }
        text
    }
}

#[cfg(test)]
mod tests;
