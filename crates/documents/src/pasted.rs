//! Servers in the form of desktop clients, `{"mcpServers": {…}}`, pasted as a file: each of them
//! becomes a server of the catalog (X-M12, D7).

use narthex_model::{
    SecretReference, UnknownKey,
    json::{Place, shortened},
    written::is_variable_name,
};
use serde_json::{Map, Value, json};

use crate::Document;

/// Servers, and notices for people about rewritten parts.
#[derive(Debug)]
pub struct Pasted {
    /// Servers of the catalog.
    pub servers: Vec<PastedServer>,
    /// In words for people.
    pub notices: Vec<String>,
    /// Each part that cannot be used. If there is one, no server may be stored, but the rest can be
    /// checked.
    pub faults: Vec<PastedFault>,
}

/// A part of a file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastedFault {
    /// Its place in the file, such as `mcpServers.docs.args[1]`.
    pub place: String,
    /// The remedy.
    pub remedy: String,
}

/// One server of the catalog, and the places of its parts in the file.
#[derive(Debug)]
pub struct PastedServer {
    /// The server in the form of the catalog.
    pub value: Value,
    /// Its place in the file, such as `mcpServers.docs`.
    place: Place,
    /// Fields of the catalog that have another place in the file, relative to the server.
    moved: Vec<(String, String)>,
}

impl PastedServer {
    /// The place in the file of a field that the catalog names.
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

/// The member with the headers of a server: a key of such files alone.
pub const HEADERS: &str = "headers";

/// Text before a token in the header that has it (RFC 6750 §2.1).
const BEARER: &str = "Bearer ";

/// Takes the servers out; `None` if this is one server.
#[must_use]
pub fn take_out(document: &Document) -> Option<Pasted> {
    let fields = document.value.as_object()?;
    let place = PLACES.into_iter().find(|place| fields.contains_key(*place))?;
    let mut reader = Reader::default();
    let further = fields.keys().filter(|key| *key != place && !key.starts_with('$'));
    for other in further {
        reader.fault(&Place::root(&shortened(other)), format!("leave nothing here but `{place}`"));
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
struct Reader {
    notices: Vec<String>,
    faults: Vec<PastedFault>,
}

impl Reader {
    fn fault(&mut self, at: &Place, remedy: impl Into<String>) {
        self.faults.push(PastedFault { place: at.to_string(), remedy: remedy.into() });
    }

    fn object<'v>(&mut self, value: &'v Value, at: &Place) -> Option<&'v Map<String, Value>> {
        if !value.is_object() {
            self.fault(at, "an object belongs here");
        }
        value.as_object()
    }

    /// Rewrites `${VAR}` for the catalog. A secret is the whole value of a variable or a header.
    fn server(&mut self, alias: &str, entry: &Value, at: &Place) -> Option<PastedServer> {
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
            *url = self.value(url, &at.key("url"), false).into();
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
            *written = self.value(written, &at.key(key), true).into();
            // The catalog has variables in its configuration.
            moved.push((place("default_config", key), place("env", key)));
        }
    }

    /// All users of the machine can read arguments, so the catalog fills nothing into them.
    fn arguments(&mut self, server: &Map<String, Value>, at: &Place) {
        let args = server.get("args").and_then(Value::as_array).into_iter().flatten();
        for (index, arg) in args.enumerate() {
            let at = at.index(index);
            match arg {
                Value::String(text) if rewritten(text).contains("${env.") => self.fault(
                    &at,
                    "all users of the machine can read arguments; hand the variable over in `env`",
                ),
                Value::String(_) => {}
                _ => self.fault(&at, "a text belongs here"),
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
            config.insert(name.clone(), self.value(written, &at, true).into());
            moved.push((place("default_config", name), place(HEADERS, name)));
        }
        if !config.is_empty() {
            server.insert("verbatim_headers".to_owned(), true.into());
            server.insert("default_config".to_owned(), config.into());
        }
    }

    /// A value as the catalog writes it. `${VAR}` alone is a secret of the workspace where there
    /// may be one; else, and inside a longer text, a variable of the daemon.
    fn value(&mut self, written: &Value, at: &Place, may_be_secret: bool) -> String {
        let written = match written {
            Value::String(text) => text.clone(),
            Value::Number(_) | Value::Bool(_) => written.to_string(),
            _ => {
                self.fault(at, "a text belongs here");
                return String::new();
            }
        };
        if may_be_secret && SecretReference::parse(&written).is_ok() {
            self.notices.push(format!("{at}: `{written}` is read as the secret of that name"));
            return written;
        }
        let rewritten = rewritten(&written);
        if rewritten != written {
            self.notices.push(format!(
                "{at}: `{written}` is read as `{rewritten}`, with variables of the daemon"
            ));
        }
        rewritten
    }
}

/// A place below a member of a server.
fn place(member: &str, key: &str) -> String {
    Place::root(member).key(key).to_string()
}

fn rewritten(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        let name = after.split_once('}').filter(|(name, _)| is_variable_name(name));
        match name {
            Some((name, behind)) => {
                out.push_str(&format!("${{env.{name}}}"));
                rest = behind;
            }
            None => {
                // Not a variable: text, as it was.
                out.push_str("$${");
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(text: &str) -> Document {
        crate::document::parse("d.json", text, true).unwrap().remove(0)
    }

    fn of(value: &Value) -> Document {
        document(&value.to_string())
    }

    /// X-M12, D7: each pasted server becomes one server, and rewritten parts are reported.
    #[test]
    fn x_m12_servers_of_a_desktop_client_are_taken_out() {
        let document = json!({ "mcpServers": {
            "docs": { "url": "https://${HOST}/mcp", "headers": {
                "authorization": "Bearer ${TOKEN}", "x-key": "${DOCS_KEY}" } },
            "github": { "command": "npx", "args": ["-y", "x", "$HOME"],
                        "env": { "TOKEN": "${GITHUB_TOKEN}", "PORT": 80 } } } });
        let Pasted { servers, notices, faults } = take_out(&of(&document)).unwrap();
        assert_eq!(faults, []);
        let values: Vec<_> = servers.iter().map(|server| server.value.clone()).collect();
        assert_eq!(
            values,
            [
                json!({ "id": "docs", "url": "https://${env.HOST}/mcp", "verbatim_headers": true,
                    "default_config": { "x-key": "${DOCS_KEY}" },
                    "auth": { "mode": "apiKey", "key": "${TOKEN}", "headerName": "Authorization",
                              "valuePrefix": "Bearer " } }),
                json!({ "id": "github", "command": "npx", "args": ["-y", "x", "$HOME"],
                    "env": { "TOKEN": "${GITHUB_TOKEN}", "PORT": "80" } }),
            ]
        );
        assert_eq!(notices.len(), 4, "{notices:?}");
        assert!(notices[0].starts_with("mcpServers.docs.headers.authorization"), "{notices:?}");
        for (server, field, place) in [
            (0, "", "mcpServers.docs"),
            (0, "auth.key", "mcpServers.docs.headers.authorization"),
            (0, "default_config.x-key", "mcpServers.docs.headers.x-key"),
            (0, "url", "mcpServers.docs.url"),
            (1, "default_config.TOKEN", "mcpServers.github.env.TOKEN"),
            (1, "args[2]", "mcpServers.github.args[2]"),
        ] {
            assert_eq!(servers[server].place(field), place, "{field}");
        }
    }

    #[test]
    fn x_m12_one_server_is_left_as_it_is() {
        for one in [json!({ "id": "a", "command": "npx" }), json!([]), json!(null)] {
            assert!(take_out(&of(&one)).is_none(), "{one}");
        }
    }

    #[test]
    fn x_m12_what_cannot_be_used_is_named() {
        for (value, place) in [
            (json!({ "mcpServers": [] }), "mcpServers"),
            (json!({ "mcpServers": { "a": 1 } }), "mcpServers.a"),
            (json!({ "mcpServers": { "a": { "id": "b" } } }), "mcpServers.a.id"),
            (json!({ "mcpServers": { "a": { "env": { "B": {} } } } }), "mcpServers.a.env.B"),
            (json!({ "mcpServers": { "a": { "args": [{}] } } }), "mcpServers.a.args[0]"),
            (json!({ "mcpServers": {}, "theme": "dark" }), "theme"),
        ] {
            let faults = take_out(&of(&value)).unwrap().faults;
            assert!(matches!(&faults[..], [one] if one.place == place), "{faults:?}");
        }
    }

    /// X-M12: every fault is reported at once, each with its server, its line and one remedy.
    #[test]
    fn x_m12_all_faults_have_their_server_and_line() {
        let text = r#"{
            "mcpServers": {
                "a": {
                    "url": "https://a.test",
                    "hedaers": {}
                },
                "b": {
                    "command": "x",
                    "args": ["-y", "--key=${API_KEY}"]
                }
            }
        }"#;
        let document = document(text);
        let faults = take_out(&document).unwrap().faults;
        let told: Vec<_> = faults
            .iter()
            .map(|one| (&*one.place, document.line(&one.place), &*one.remedy))
            .collect();
        let in_env = "all users of the machine can read arguments; hand the variable over in `env`";
        let expected = [
            ("mcpServers.a.hedaers", Some(5), "did you mean `headers`?"),
            ("mcpServers.b.args[1]", Some(9), in_env),
        ];
        assert_eq!(told, expected);
    }
}
