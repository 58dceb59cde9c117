//! Servers in the form of desktop clients, `{"mcpServers": {…}}`, in a file: each becomes a server
//! of the catalog (X-M12, D7). Parts of it serve the own files of clients, too.

use narthex_model::{
    ClientVariable, SecretReference, UnknownKey, VariablePlace,
    json::{Place, shortened},
    written::is_variable_name,
};
use serde_json::{Map, Value, json};

/// Servers, and notices for people about rewritten parts.
#[derive(Debug, Default)]
pub struct Pasted {
    /// Servers of the catalog.
    pub servers: Vec<PastedServer>,
    /// Notices about rewritten parts.
    pub notices: Vec<String>,
    /// Each part that cannot be used. If there is one, no server may be stored, but the rest can be
    /// checked.
    pub faults: Vec<PastedFault>,
}

/// A part of a file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastedFault {
    /// The part's place in the file, such as `mcpServers.docs.args[1]`.
    pub place: String,
    /// The fault, without the remedy.
    pub message: String,
    /// The remedy.
    pub remedy: String,
}

/// One server of the catalog, and the places of its parts in the file.
#[derive(Debug)]
pub struct PastedServer {
    /// The server in the form of the catalog.
    pub value: Value,
    /// The server's place in the file, such as `mcpServers.docs`.
    pub(super) place: Place,
    /// Fields of the catalog that have another place in the file, relative to the server.
    pub(super) moved: Vec<(String, String)>,
}

impl PastedServer {
    /// The place in the file for a field of the catalog.
    #[must_use]
    pub fn place(&self, field: &str) -> String {
        let is_of = |moved: &str| {
            let rest = field.strip_prefix(moved);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        let moved = self.moved.iter().find(|(catalog, _)| is_of(catalog));
        match moved.map_or(field, |(_, file)| file) {
            "" => self.place.to_string(),
            field => format!("{}.{field}", self.place),
        }
    }
}

/// The members in which clients have their servers.
const PLACES: [&str; 2] = ["mcpServers", "servers"];

/// The member with the headers of a server, which only such files have.
pub const HEADERS: &str = "headers";

/// Text before a token in the header that has it (RFC 6750 §2.1).
pub(super) const BEARER: &str = "Bearer ";

/// Converts the servers of a document; `None` if the document is a single server of the catalog.
pub(super) fn take_out(document: &Value) -> Option<Pasted> {
    let fields = document.as_object()?;
    let place = PLACES.into_iter().find(|place| fields.contains_key(*place))?;
    let mut reader = Reader::default();
    let further = fields.keys().filter(|key| *key != place && !key.starts_with('$'));
    for other in further {
        reader.fault(
            &Place::root(&shortened(other)),
            format!("remove this key: the document may have only `{place}`"),
        );
    }
    let mut servers = Vec::new();
    let root = Place::root(place);
    for (alias, entry) in reader.object(&fields[place], &root).into_iter().flatten() {
        servers.extend(reader.server(alias, entry, &root.key(alias)));
    }
    Some(Pasted { servers, notices: reader.notices, faults: reader.faults })
}

/// Rewrites servers, and gathers all notices and faults.
#[derive(Default)]
pub(super) struct Reader {
    pub(super) notices: Vec<String>,
    pub(super) faults: Vec<PastedFault>,
}

impl Reader {
    fn fault(&mut self, at: &Place, remedy: impl Into<String>) {
        self.refuse(at, "this cannot be used", remedy);
    }

    pub(super) fn refuse(
        &mut self,
        at: &Place,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        let (message, remedy) = (message.into(), remedy.into());
        self.faults.push(PastedFault { place: at.to_string(), message, remedy });
    }

    /// Refuses a text with a variable that only clients fill in; true if it has one.
    pub(super) fn is_of_clients(&mut self, text: &str, at: &Place, place: VariablePlace) -> bool {
        let found = ClientVariable::find(text);
        if let Some(variable) = found {
            self.refuse(at, variable.to_string(), variable.remedy(place));
        }
        found.is_some()
    }

    fn object<'v>(&mut self, value: &'v Value, at: &Place) -> Option<&'v Map<String, Value>> {
        if !value.is_object() {
            self.fault(at, "an object belongs here");
        }
        value.as_object()
    }

    /// Rewrites `${VAR}` for the catalog. A secret is the whole value of a variable or a header.
    pub(super) fn server(
        &mut self,
        alias: &str,
        entry: &Value,
        at: &Place,
    ) -> Option<PastedServer> {
        let mut server = self.object(entry, at)?.clone();
        if server.get("id").is_some_and(|id| id.as_str() != Some(alias)) {
            self.fault(&at.key("id"), "leave it out: the name is the id");
        }
        server.insert("id".to_owned(), alias.into());
        // The catalog itself knows no `headers`, so it could not name them.
        let keys = server.keys().filter(|key| *key != HEADERS);
        for key in keys.filter(|key| UnknownKey::new(key, &[HEADERS]).meant().is_some()) {
            self.fault(&at.key(key), format!("did you mean `{HEADERS}`?"));
        }
        let mut moved = Vec::new();
        self.env(&mut server, &at.key("env"), &mut moved);
        if let Some(given) = server.remove(HEADERS).filter(|given| !given.is_null()) {
            self.headers(&mut server, &given, &at.key(HEADERS), &mut moved);
        }
        if let Some(url) = server.get_mut("url") {
            *url = self.value(url, &at.key("url"), Spot::Url).into();
        }
        self.arguments(&server, &at.key("args"));
        Some(PastedServer { value: server.into(), place: at.clone(), moved })
    }

    fn env(
        &mut self,
        server: &mut Map<String, Value>,
        at: &Place,
        moved: &mut Vec<(String, String)>,
    ) {
        let Some(env) = server.get_mut("env").filter(|env| !env.is_null()) else { return };
        if self.object(env, at).is_none() {
            return;
        }
        for (key, written) in env.as_object_mut().into_iter().flatten() {
            *written = self.value(written, &at.key(key), Spot::Variable).into();
            // The catalog has variables in its configuration.
            moved.push((place("default_config", key), place("env", key)));
        }
    }

    /// All users of the machine can read arguments, so the catalog fills nothing into them.
    fn arguments(&mut self, server: &Map<String, Value>, at: &Place) {
        let args = server.get("args").and_then(Value::as_array).into_iter().flatten();
        for (index, arg) in args.enumerate() {
            let at = at.index(index);
            let Value::String(text) = arg else {
                self.fault(&at, "a text belongs here");
                continue;
            };
            let is_told = self.is_of_clients(text, &at, VariablePlace::Argument);
            if !is_told && Rewritten::of(text).has_variable {
                self.fault(
                    &at,
                    "all users of the machine can read arguments; hand the variable over in `env`",
                );
            }
        }
    }

    /// Headers are configuration of the catalog, except for a token, which is authentication.
    fn headers(
        &mut self,
        server: &mut Map<String, Value>,
        given: &Value,
        at: &Place,
        moved: &mut Vec<(String, String)>,
    ) {
        let mut config = Map::new();
        for (name, written) in self.object(given, at).into_iter().flatten() {
            let at = at.key(name);
            let token = written.as_str().and_then(|text| text.strip_prefix(BEARER));
            if let Some(token) = token.filter(|token| SecretReference::parse(token).is_ok())
                && name.eq_ignore_ascii_case("authorization")
            {
                self.notices.push(format!("{at}: `{token}` is read as the secret of that name"));
                let auth = json!({ "mode": "apiKey", "key": token,
                                   "headerName": "Authorization", "valuePrefix": BEARER });
                server.insert("auth".to_owned(), auth);
                moved.push(("auth".to_owned(), place(HEADERS, name)));
                continue;
            }
            config.insert(name.clone(), self.value(written, &at, Spot::Header(name)).into());
            moved.push((place("default_config", name), place(HEADERS, name)));
        }
        if !config.is_empty() {
            server.insert("verbatim_headers".to_owned(), true.into());
            server.insert("default_config".to_owned(), config.into());
        }
    }

    /// A value as the catalog writes it. `${VAR}` alone is a secret of the workspace where there
    /// may be one; else, and inside a longer text, a variable of the daemon, as `${env:VAR}` is.
    fn value(&mut self, written: &Value, at: &Place, spot: Spot<'_>) -> String {
        let written = match written {
            Value::String(text) => text.clone(),
            Value::Number(_) | Value::Bool(_) => written.to_string(),
            _ => {
                self.fault(at, "a text belongs here");
                return String::new();
            }
        };
        if self.is_of_clients(&written, at, spot.of_variable(&written)) {
            return written;
        }
        if spot != Spot::Url && SecretReference::parse(&written).is_ok() {
            self.notices.push(format!("{at}: `{written}` is read as the secret of that name"));
            return written;
        }
        let Rewritten { text, has_variable, with_default, as_text } = Rewritten::of(&written);
        if let Some(name) = with_default {
            let message =
                format!("the catalog has no default for the variable of `${{{name}:-…}}`");
            self.refuse(at, message, format!("leave the default out: write `${{{name}}}`"));
            return written;
        }
        if has_variable {
            self.notices.push(format!(
                "{at}: `{written}` is read as `{text}`, with variables of the daemon"
            ));
        } else if let Some(name) = as_text {
            self.notices.push(format!("{at}: `{name}` names no variable, and stays as it is"));
        }
        text
    }
}

/// The place of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spot<'n> {
    /// The address of a server.
    Url,
    /// A variable of a program.
    Variable,
    /// The header with this name.
    Header(&'n str),
}

impl Spot<'_> {
    fn of_variable(self, text: &str) -> VariablePlace {
        match self {
            Self::Url => VariablePlace::Text,
            Self::Variable => VariablePlace::in_value(text, None),
            Self::Header(name) => VariablePlace::in_value(text, Some(name)),
        }
    }
}

/// A place below a member of a server.
fn place(member: &str, key: &str) -> String {
    Place::root(member).key(key).to_string()
}

/// A text with `${NAME}` and `${env:NAME}` as the catalog writes them.
#[derive(Debug, Default, PartialEq, Eq)]
struct Rewritten {
    text: String,
    /// True if the text has a variable of the daemon.
    has_variable: bool,
    /// The first variable with a default, shown without the default, such as `env:NAME`.
    with_default: Option<String>,
    /// The first `${…}` that is no variable, in a form that may be shown.
    as_text: Option<String>,
}

impl Rewritten {
    fn of(text: &str) -> Self {
        let mut read = Self { text: String::with_capacity(text.len()), ..Self::default() };
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            read.text.push_str(before);
            if before.ends_with('$') {
                // Two dollars: text, in both.
                read.text.push_str("${");
                rest = after;
                continue;
            }
            rest = match after.split_once('}') {
                Some((inside, behind)) if read.variable(inside) => behind,
                Some(_) | None => {
                    read.text.push_str("$${");
                    after
                }
            };
        }
        read.text.push_str(rest);
        read
    }

    /// Adds a variable; false if this names none, and is text.
    fn variable(&mut self, inside: &str) -> bool {
        let (written, default) = match inside.split_once(":-") {
            Some((written, default)) => (written, Some(default)),
            None => (inside, None),
        };
        let name = written.strip_prefix("env:").unwrap_or(written);
        if !is_variable_name(name) {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.:-".contains(c);
            // Anything else could be part of a secret.
            let shown = if inside.chars().all(is_plain) { inside } else { "…" };
            self.as_text.get_or_insert_with(|| format!("${{{}}}", shortened(shown)));
            return false;
        }
        if default.is_some() {
            self.with_default.get_or_insert_with(|| written.to_owned());
        }
        self.has_variable = true;
        self.text.push_str(&format!("${{env.{name}}}"));
        true
    }
}

#[cfg(test)]
mod tests;
