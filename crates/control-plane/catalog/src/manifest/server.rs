//! Converts one server inside a manifest to the form of the catalog.

use narthex_model::{
    ClientVariable, SecretReference, VariablePlace,
    json::shortened,
    written::{duration, is_variable_name},
};
use serde_json::{Map, Value, json};

use super::{Reading, places::Places};

/// Permitted keys of a server inside an agent (R-M4, R-E21, R-D4).
const KEYS: [&str; 15] = [
    "command",
    "args",
    "env",
    "transport_type",
    "type",
    "timeout",
    "request_timeout",
    "mount_timeout",
    "max_output_tokens",
    "max_output_bytes",
    "url",
    "headers",
    "optional",
    "instructions",
    "disabled",
];
/// Transports of a server, and the words for them, in any case.
const TRANSPORTS: [(&str, &str); 5] = [
    ("stdio", "stdio"),
    ("http", "http"),
    ("streamable-http", "http"),
    ("streamable_http", "http"),
    ("sse", "sse"),
];
/// Limits of a server, and their names in the catalog.
const LIMITS: [(&str, &str); 2] =
    [("max_output_tokens", "maxOutputTokens"), ("max_output_bytes", "maxOutputBytes")];
/// Times of a server, and their names in the catalog.
const TIMES: [(&str, &str); 3] = [
    ("timeout", "timeoutMs"),
    ("request_timeout", "timeoutMs"),
    ("mount_timeout", "mountTimeoutMs"),
];
/// The keys of the transport: the first counts before the second (R-E24).
const TRANSPORT_KEYS: [&str; 2] = ["transport_type", "type"];
/// The place of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spot<'n> {
    /// The value of a variable, or of the header with this name.
    Value(Option<&'n str>),
    /// The address of a server.
    Url,
    /// An argument of a program, which all users of the machine can read.
    Argument,
}

/// Text before a token in the header that has it (RFC 6750 §2.1).
const BEARER: &str = "Bearer ";

impl Reading {
    /// A server of the catalog, and true if a run begins without it. Registers the written words in
    /// place of those of the catalog.
    pub(super) fn server(
        &mut self,
        (id, alias): (&str, &str),
        entry: &Value,
        (at, places): (&str, &mut Places),
    ) -> Option<(Value, bool)> {
        let fields = self.object(entry, at)?;
        self.only(fields, at, &KEYS);
        let mut made = Map::new();
        made.insert("id".to_owned(), id.into());
        made.insert("name".to_owned(), alias.into());
        let transport = self.transport(fields, at);
        spelt(fields, at, places);
        made.insert("type".to_owned(), transport.into());
        let (needed, other) =
            if transport == "stdio" { ("command", "url") } else { ("url", "command") };
        if !is_said(fields, needed) {
            let message = format!("a server by {transport} needs `{needed}`");
            self.fault(&format!("{at}.{needed}"), message, "add it");
        }
        if is_said(fields, other) {
            let message = format!("a server by {transport} has no `{other}`");
            self.fault(&format!("{at}.{other}"), message, "remove it, or change `transport_type`");
        }
        for (key, named) in LIMITS.into_iter().chain([("disabled", "disabled")]) {
            made.extend(fields.get(key).map(|value| (named.to_owned(), value.clone())));
        }
        self.times(fields, at, &mut made);
        if fields.contains_key("instructions") {
            let text = "`instructions` come from the server itself; this value is ignored";
            self.notice(&format!("{at}.instructions"), text);
        }
        match transport {
            "stdio" => self.program(fields, at, &mut made),
            _ => self.called(fields, at, &mut made),
        }
        let is_optional = match fields.get("optional") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(is_optional)) => *is_optional,
            Some(_) => {
                let at = format!("{at}.optional");
                self.fault(&at, "expected true or false", "write `true` or `false`");
                false
            }
        };
        Some((made.into(), is_optional))
    }

    /// `transport_type` counts before `type` (R-E24).
    fn transport(&mut self, fields: &Map<String, Value>, at: &str) -> &'static str {
        let likely = if is_said(fields, "url") { "http" } else { "stdio" };
        let key = TRANSPORT_KEYS.into_iter().find(|key| is_said(fields, key));
        let Some(key) = key else { return likely };
        let word = fields[key].as_str().unwrap_or_default();
        let known = TRANSPORTS.iter().find(|(known, _)| known.eq_ignore_ascii_case(word));
        known.map_or_else(
            || {
                let remedy = "write `stdio`, `http` or `sse`";
                self.fault(&format!("{at}.{key}"), "this is not a known transport", remedy);
                likely
            },
            |(_, transport)| *transport,
        )
    }

    /// `timeout` and `request_timeout` are one thing, the limit of a call (R-D4).
    fn times(&mut self, fields: &Map<String, Value>, at: &str, made: &mut Map<String, Value>) {
        if is_said(fields, "timeout") && is_said(fields, "request_timeout") {
            let remedy = "keep one: both are the limit of a call";
            self.fault(&format!("{at}.timeout"), "`request_timeout` is given as well", remedy);
        }
        for (key, named) in TIMES {
            let Some(value) = fields.get(key).filter(|value| !value.is_null()) else { continue };
            let at = format!("{at}.{key}");
            match duration_ms(value) {
                Ok(Some(ms)) => made.extend([(named.to_owned(), ms.into())]),
                Ok(None) => self.notice(&at, "zero or less: the default is used"),
                Err(()) => {
                    let remedy = "write a time with its unit, such as 500ms, 30s or 2m";
                    self.fault(&at, "this is not a time", remedy);
                }
            }
        }
    }

    fn program(&mut self, fields: &Map<String, Value>, at: &str, made: &mut Map<String, Value>) {
        made.extend(fields.get("command").map(|command| ("command".to_owned(), command.clone())));
        if let Some(args) = fields.get("args").filter(|args| !args.is_null()) {
            let at = format!("{at}.args");
            let Value::Array(args) = args else {
                return self.fault(&at, "expected a list", "write a list of texts");
            };
            let args = args.iter().enumerate();
            let texts =
                args.filter_map(|(n, arg)| self.text(arg, &format!("{at}[{n}]"), Spot::Argument));
            let texts: Vec<Value> = texts.map(Value::from).collect();
            made.insert("args".to_owned(), texts.into());
        }
        if fields.get("headers").is_some_and(|headers| !headers.is_null()) {
            let remedy = "write `env`, or reach the server by `url`";
            self.fault(
                &format!("{at}.headers"),
                "a server with a `command` takes no headers",
                remedy,
            );
        }
        let env = self.values(fields, "env", at);
        if let Some(env) = env {
            made.insert("default_config".to_owned(), env.into());
        }
    }

    fn called(&mut self, fields: &Map<String, Value>, at: &str, made: &mut Map<String, Value>) {
        if let Some(url) = fields.get("url").filter(|url| !url.is_null()) {
            let url = self.text(url, &format!("{at}.url"), Spot::Url);
            made.extend(url.map(|url| ("url".to_owned(), url.into())));
        }
        for key in ["env", "args"] {
            if fields.get(key).is_some_and(|value| !value.is_null()) {
                let message = format!("a server with a `url` takes no `{key}`");
                self.fault(&format!("{at}.{key}"), message, "remove it, or write `headers`");
            }
        }
        let given = fields.get("headers").and_then(Value::as_object);
        let token = given.and_then(|given| {
            let named = given.iter().find(|(name, _)| name.eq_ignore_ascii_case("authorization"));
            let (name, value) = named?;
            let token = value.as_str()?.strip_prefix(BEARER)?;
            SecretReference::parse(token).is_ok().then(|| (name.clone(), token.to_owned()))
        });
        if let Some((name, token)) = &token {
            let at = format!("{at}.headers.{}", shortened(name));
            self.notice(&at, format!("`{token}` is read as the secret of that name"));
            let auth = json!({ "mode": "apiKey", "key": token, "headerName": "Authorization",
                               "valuePrefix": BEARER });
            made.insert("auth".to_owned(), auth);
        }
        let mut fields = fields.clone();
        if let (Some(headers), Some((name, _))) =
            (fields.get_mut("headers").and_then(Value::as_object_mut), &token)
        {
            headers.remove(name);
        }
        let headers = self.values(&fields, "headers", at).filter(|headers| !headers.is_empty());
        if let Some(headers) = headers {
            made.insert("verbatim_headers".to_owned(), true.into());
            made.insert("default_config".to_owned(), headers.into());
        }
    }

    /// Variables or headers, each a text that may be a secret.
    fn values(
        &mut self,
        fields: &Map<String, Value>,
        key: &str,
        at: &str,
    ) -> Option<Map<String, Value>> {
        let at = format!("{at}.{key}");
        let given = fields.get(key).filter(|given| !given.is_null())?;
        let mut values = Map::new();
        for (name, value) in self.object(given, &at)? {
            let spot = Spot::Value((key == "headers").then_some(name));
            let text = self.text(value, &format!("{at}.{}", shortened(name)), spot);
            values.extend(text.map(|text| (name.clone(), text.into())));
        }
        Some(values)
    }

    /// Refuses a variable of the daemon whose value, which counts as a secret, all could read.
    fn shown_to_all(&mut self, written: &str, at: &str) -> Option<String> {
        let message =
            format!("`{written}` would show its value to every user who can list processes");
        let remedy = "write it below `env`, which the program reads, or write the text itself";
        self.fault(at, message, remedy);
        None
    }

    /// A text as the catalog writes it.
    fn text(&mut self, written: &Value, at: &str, spot: Spot<'_>) -> Option<String> {
        let written = match written {
            Value::String(text) => text.clone(),
            Value::Number(_) | Value::Bool(_) => written.to_string(),
            _ => {
                self.fault(at, "expected a text", "write a text");
                return None;
            }
        };
        if let Some(variable) = ClientVariable::find(&written) {
            let place = match spot {
                Spot::Value(header) => VariablePlace::in_value(&written, header),
                Spot::Url => VariablePlace::Text,
                Spot::Argument => VariablePlace::Argument,
            };
            self.fault(at, variable.to_string(), variable.remedy(place));
            return None;
        }
        if SecretReference::parse(&written).is_ok() {
            if matches!(spot, Spot::Value(_)) {
                self.notice(at, format!("`{written}` is read as the secret of that name"));
                return Some(written);
            }
            let remedy = "use the secret as the whole value of a variable or a header";
            self.fault(at, format!("`{written}` would show a secret here"), remedy);
            return None;
        }
        if let Some(name) = written.strip_prefix("env:").filter(|name| is_variable_name(name)) {
            if spot == Spot::Argument {
                return self.shown_to_all(&written, at);
            }
            let read = format!("${{env.{name}}}");
            self.notice(at, format!("`{written}` is read as `{read}`, a variable of the daemon"));
            return Some(read);
        }
        match rewritten(&written) {
            Ok((_, Some(name))) if spot == Spot::Argument => {
                self.shown_to_all(&format!("${{env:{name}}}"), at)
            }
            Ok((read, _)) => {
                if read != written {
                    let text = "its variables of the daemon are stored in the form of the catalog";
                    self.notice(at, text);
                }
                Some(read)
            }
            Err(name) if spot == Spot::Argument => self.shown_to_all(&format!("${{{name}}}"), at),
            Err(name) => {
                let message = format!("`${{{name}}}` inside a longer text is not read as a secret");
                let remedy = format!(
                    "make the secret the whole value, or write `${{env:{name}}}` for a variable of \
                     the daemon"
                );
                self.fault(at, message, remedy);
                None
            }
        }
    }
}

/// A text with `${env:NAME}` in the words of the catalog, and the first of these names. An `Err`
/// has the name that looks like a secret's.
fn rewritten(text: &str) -> Result<(String, Option<String>), String> {
    let (mut out, mut first) = (String::with_capacity(text.len()), None);
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        // Two dollars are one, and no placeholder.
        let is_text = before.ends_with('$');
        let inner = after.split_once('}').filter(|_| !is_text);
        match inner {
            Some((name, behind)) => {
                match name.strip_prefix("env:").filter(|name| is_variable_name(name)) {
                    Some(name) => {
                        out.push_str(&format!("${{env.{name}}}"));
                        first.get_or_insert_with(|| name.to_owned());
                    }
                    None if is_variable_name(name) => return Err(name.to_owned()),
                    // The catalog fills in or refuses other placeholders.
                    None => out.push_str(&format!("${{{name}}}")),
                }
                rest = behind;
            }
            None => {
                out.push_str(if is_text { "${" } else { "$${" });
                rest = after;
            }
        }
    }
    out.push_str(rest);
    Ok((out, first))
}

/// True if a key is there and has a value.
fn is_said(fields: &Map<String, Value>, key: &str) -> bool {
    fields.get(key).is_some_and(|value| !value.is_null())
}

/// Registers the members whose name in the catalog differs from the written one.
fn spelt(fields: &Map<String, Value>, at: &str, places: &mut Places) {
    // These members are generated, and not written.
    places.add("id", at.to_owned());
    places.add("name", at.to_owned());
    for (key, named) in LIMITS.into_iter().chain(TIMES) {
        if is_said(fields, key) {
            places.add(named, format!("{at}.{key}"));
        }
    }
    let transport = TRANSPORT_KEYS.into_iter().find(|key| is_said(fields, key));
    places.add("type", transport.map_or_else(|| at.to_owned(), |key| format!("{at}.{key}")));
    let values = if is_said(fields, "headers") { "headers" } else { "env" };
    places.add("default_config", format!("{at}.{values}"));
    places.add("verbatim_headers", format!("{at}.headers"));
    let mut names =
        fields.get("headers").and_then(Value::as_object).into_iter().flat_map(Map::keys);
    let token = names.find(|name| name.eq_ignore_ascii_case("authorization"));
    let token = token.map_or_else(String::new, |name| format!(".{}", shortened(name)));
    // Of all members of an authentication, a manifest can write only the token.
    places.add_whole("auth", format!("{at}.headers{token}"));
}

/// Milliseconds of a time: seconds, or a text with its unit. `None` for zero and less (R-E23).
fn duration_ms(value: &Value) -> Result<Option<u64>, ()> {
    let ms = match value {
        Value::Number(seconds) => match seconds.as_u64() {
            Some(seconds) => seconds.checked_mul(1000).ok_or(())?,
            None if seconds.as_i64().is_some() => 0,
            None => return Err(()),
        },
        Value::String(text) => {
            let (is_less, text) = match text.trim().strip_prefix('-') {
                Some(rest) => (true, rest),
                None => (false, text.trim()),
            };
            let ms = u64::try_from(duration(text).ok_or(())?.as_millis()).map_err(drop)?;
            if is_less { 0 } else { ms }
        }
        _ => return Err(()),
    };
    Ok(Some(ms).filter(|ms| *ms > 0))
}
