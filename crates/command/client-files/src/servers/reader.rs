//! Reads one entry in the dialect of its client.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::dialect::{Dialect, Duration, Empty};
use super::left_out::{left_out, shown};
use super::placeholder::{Rewritten, rewrite};
use super::{Found, FoundServer, LeftOut, Placeholder, Target, Text, ToolLists, fields, secrets};
use crate::clients::{Shape, Transport};

/// The longest time of a call or a start in narthex.
const TIME_MAX_MS: f64 = 600_000.0;

/// Reads an entry; `None` if it is no server.
pub(super) fn read(shape: Shape, name: &str, value: &Value, is_off: bool) -> Option<Found> {
    if fields::is_no_server(shape, value) {
        return None;
    }
    let server = match value.as_object() {
        None => Err("it is not a map of keys".to_owned()),
        Some(fields) => Reader::new(shape, fields).server(name, is_off),
    };
    Some(match server {
        Ok(server) => Found::Server(Box::new(server)),
        Err(reason) => Found::Unusable { name: name.to_owned(), reason },
    })
}

/// The fields of an entry that are not read yet, and the facts that were found.
struct Reader {
    dialect: Dialect,
    shape: Shape,
    rest: Map<String, Value>,
    placeholders: BTreeSet<Placeholder>,
    spelled: BTreeMap<String, String>,
    left_out: Vec<LeftOut>,
}

type Texts = BTreeMap<String, Text>;

impl Reader {
    fn new(shape: Shape, fields: &Map<String, Value>) -> Self {
        Self {
            dialect: Dialect::of(shape),
            shape,
            rest: fields::flattened(shape, fields),
            placeholders: BTreeSet::new(),
            spelled: BTreeMap::new(),
            left_out: Vec::new(),
        }
    }

    /// Reads all fields; `Err` is the reason why narthex cannot use the entry.
    fn server(mut self, name: &str, is_off: bool) -> Result<FoundServer, String> {
        let target = match self.transport()? {
            Transport::Stdio => self.stdio()?,
            Transport::Http => self.remote(false)?,
            Transport::Sse => self.remote(true)?,
        };
        let timeout_ms = self.duration(self.dialect.timeout);
        let start_timeout_ms = self.duration(self.dialect.start);
        let is_disabled = is_off || self.is_disabled();
        let tools = self.tools();
        self.leave_the_rest();
        let Self { placeholders, spelled, left_out, .. } = self;
        let name = name.to_owned();
        Ok(FoundServer {
            name,
            target,
            timeout_ms,
            start_timeout_ms,
            tools,
            is_disabled,
            placeholders,
            spelled,
            left_out,
        })
    }

    /// The transport, by its word, else by the fields that are there.
    fn transport(&mut self) -> Result<Transport, String> {
        let word = ["type", "transport"].into_iter().find_map(|field| self.take_text(field));
        let has_command = self.has(self.dialect.command);
        let address = self.dialect.urls.iter().find(|(field, _)| self.has(field));
        match word.map(|word| (kind(&word), word)) {
            Some((Some(kind), _)) => Ok(kind),
            Some((None, word)) => Err(format!("narthex has no transport `{}`", shown(&word))),
            None if is_address_first(self.shape) && address.is_some() || !has_command => {
                address.map(|(_, kind)| *kind).ok_or_else(|| match self.rest.get("settings") {
                    Some(_) => "it belongs to an extension of the client".to_owned(),
                    None => "it has neither a program nor an address".to_owned(),
                })
            }
            None => Ok(Transport::Stdio),
        }
    }

    fn stdio(&mut self) -> Result<Target, String> {
        let field = self.dialect.command;
        let written = self.rest.remove(field).ok_or("it has no program")?;
        let command = self.text(field, "", &written)?;
        if command.expose().is_empty() {
            return Err("it has no program".to_owned());
        }
        // The name of a program is no secret, also where it looks like one.
        let command = match command.expose().contains(char::is_whitespace) {
            true => command,
            false => Text::Plain(command.expose().to_owned()),
        };
        self.spell("command", &command, &written);
        let args = self.args(command.expose())?;
        let mut env = self.texts(self.dialect.env)?;
        self.passed_on(&mut env)?;
        let cwd = match self.dialect.cwd.and_then(|field| self.take_text(field)) {
            Some(cwd) => Some(self.rewritten("cwd", &cwd)?.text),
            None => None,
        };
        Ok(Target::Stdio { command, args, env, cwd: cwd.filter(|cwd| !cwd.is_empty()) })
    }

    fn remote(&mut self, is_sse: bool) -> Result<Target, String> {
        let urls = self.dialect.urls.iter();
        let found = urls.map(|(field, _)| *field).find(|field| self.has(field));
        let field = found.ok_or("it has no address")?;
        let written = self.rest.remove(field).unwrap_or_default();
        let url = self.text(field, "", &written)?;
        self.spell("url", &url, &written);
        let lower = url.expose().to_ascii_lowercase();
        if !["http://", "https://", "${env:"].iter().any(|begin| lower.starts_with(begin)) {
            return Err("its address begins with neither `http://` nor `https://`".to_owned());
        }
        let mut headers = self.headers()?;
        self.named_headers(&mut headers)?;
        Ok(Target::Remote { is_sse, url, headers })
    }

    fn args(&mut self, command: &str) -> Result<Vec<Text>, String> {
        let words = match self.rest.remove("args") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(words)) => words,
            Some(_) => return Err("`args` is not a list".to_owned()),
        };
        let mut all = Vec::with_capacity(words.len());
        for (index, word) in words.iter().enumerate() {
            let place = format!("args[{index}]");
            let word = plain(word).ok_or_else(|| format!("`{place}` is not a text"))?;
            all.push(self.rewritten(&place, &word)?);
        }
        let literals: Vec<_> = all.iter().map(|one| one.literals.clone()).collect();
        let secret = secrets::secret_args(command, &literals);
        let texts = all.into_iter().zip(secret);
        let texts: Vec<_> = texts.map(|(one, is_secret)| Text::new(one.text, is_secret)).collect();
        for (index, (text, written)) in texts.iter().zip(&words).enumerate() {
            self.spell(&format!("args[{index}]"), text, written);
        }
        Ok(texts)
    }

    fn headers(&mut self) -> Result<Texts, String> {
        let [outer, inner] = self.dialect.headers else {
            return self.texts(self.dialect.headers.first().copied().unwrap_or_default());
        };
        let Some(Value::Object(mut options)) = self.rest.remove(*outer) else {
            return Ok(Texts::new());
        };
        let headers = options.remove(*inner);
        for (field, value) in options {
            self.leave(&format!("{outer}.{field}"), &value);
        }
        self.rest.extend(headers.map(|headers| ((*inner).to_owned(), headers)));
        self.texts(inner)
    }

    /// A map of names to texts.
    fn texts(&mut self, field: &str) -> Result<Texts, String> {
        let map = match self.rest.remove(field) {
            None | Some(Value::Null) => return Ok(Texts::new()),
            Some(Value::Object(map)) => map,
            Some(_) => return Err(format!("`{field}` is not a map of keys")),
        };
        let values = map.iter().filter(|(_, value)| !value.is_null());
        values
            .map(|(name, value)| {
                let text = self.text(&format!("{field}.{}", shown(name)), name, value)?;
                Ok((name.clone(), text))
            })
            .collect()
    }

    /// Variables that the client passes on, or keeps in its own store, by their names alone.
    fn passed_on(&mut self, env: &mut Texts) -> Result<(), String> {
        for item in self.take_list("env_vars") {
            let name = item.as_str().or_else(|| item["name"].as_str()).unwrap_or_default();
            let source = item["source"].as_str().unwrap_or("local");
            if source != "local" {
                self.leave("env_vars", &item);
            } else if !env.contains_key(name) {
                self.add(env, name, Rewritten::variable(name, true)?);
            }
        }
        for item in self.take_list("env_keys") {
            let Some(name) = item.as_str().filter(|name| !env.contains_key(*name)) else {
                continue;
            };
            self.add(env, name, Rewritten::asked(name)?);
        }
        Ok(())
    }

    /// Headers whose values are in variables.
    fn named_headers(&mut self, headers: &mut Texts) -> Result<(), String> {
        if self.shape != Shape::Codex {
            return Ok(());
        }
        if let Some(name) = self.take_text("bearer_token_env_var") {
            let token = Rewritten::variable(&name, false)?.after("Bearer ");
            self.add(headers, "Authorization", token);
        }
        if let Some(Value::Object(map)) = self.rest.remove("env_http_headers") {
            for (header, name) in map {
                let name = name.as_str().unwrap_or_default();
                self.add(headers, &header, Rewritten::variable(name, false)?);
            }
        }
        Ok(())
    }

    fn add(&mut self, texts: &mut Texts, name: &str, value: Rewritten) {
        self.placeholders.extend(value.placeholders);
        texts.insert(name.to_owned(), Text::Plain(value.text));
    }

    /// A text, which is a secret by itself or under its name.
    fn text(&mut self, place: &str, name: &str, value: &Value) -> Result<Text, String> {
        let text = plain(value).ok_or_else(|| format!("`{place}` is not a text"))?;
        let rewritten = self.rewritten(place, &text)?;
        let is_secret = secrets::is_secret(name, &rewritten.literals);
        Ok(Text::new(rewritten.text, is_secret))
    }

    fn rewritten(&mut self, place: &str, text: &str) -> Result<Rewritten, String> {
        let rewritten = rewrite(text, self.dialect.notation);
        let rewritten = rewritten.map_err(|reason| format!("`{place}`: {reason}"))?;
        self.placeholders.extend(rewritten.placeholders.iter().cloned());
        let unfilled = rewritten
            .unfilled
            .iter()
            .map(|text| Placeholder::Unfilled { place: place.to_owned(), text: shown(text) });
        self.placeholders.extend(unfilled);
        Ok(rewritten)
    }

    /// Notes a text as the file has it, if it may be shown and differs.
    fn spell(&mut self, place: &str, text: &Text, written: &Value) {
        let written = plain(written).filter(|written| text.expose() != written.as_str());
        if let Some(written) = written.filter(|_| !text.is_secret()) {
            self.spelled.insert(place.to_owned(), written);
        }
    }

    /// A time in milliseconds, within narthex's limits.
    fn duration(&mut self, duration: Option<Duration>) -> Option<u64> {
        let Duration { field, unit_ms } = duration?;
        let number = self.rest.get(field)?.as_f64().filter(|number| *number > 0.0)?;
        self.rest.remove(field);
        let ms = (number * unit_ms).round();
        let within = ms.clamp(1.0, TIME_MAX_MS);
        if ms > within {
            let words = "narthex has at most 10 minutes, which is used".to_owned();
            self.left_out.push(LeftOut { field: field.to_owned(), words });
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "just clamped")]
        let within = within as u64;
        Some(within)
    }

    fn is_disabled(&mut self) -> bool {
        let mut is = |field: &str, value: bool| match self.rest.get(field) {
            Some(Value::Bool(found)) => {
                let is = *found == value;
                self.rest.remove(field);
                is
            }
            _ => false,
        };
        let is_disabled = is("disabled", true);
        is("enabled", false) || is_disabled
    }

    fn tools(&mut self) -> ToolLists {
        let lists = self.dialect.lists;
        let allow = lists.allow.and_then(|field| self.take_names(field));
        let allow = allow.filter(|names| {
            let is_all = names.iter().any(|name| name == "*");
            !(is_all || names.is_empty() && lists.empty == Empty::All)
        });
        let deny = lists.deny.and_then(|field| self.take_names(field)).unwrap_or_default();
        ToolLists { allow, deny }
    }

    fn take_names(&mut self, field: &str) -> Option<Vec<String>> {
        let names = self.rest.get(field)?.as_array()?;
        let names: Option<Vec<_>> =
            names.iter().map(|name| name.as_str().map(str::to_owned)).collect();
        if names.is_some() {
            self.rest.remove(field);
        }
        names
    }

    fn take_list(&mut self, field: &str) -> Vec<Value> {
        match self.rest.get(field) {
            Some(Value::Array(_)) => match self.rest.remove(field) {
                Some(Value::Array(items)) => items,
                _ => Vec::new(),
            },
            _ => Vec::new(),
        }
    }

    fn take_text(&mut self, field: &str) -> Option<String> {
        let text = self.rest.get(field)?.as_str()?.to_owned();
        self.rest.remove(field);
        Some(text)
    }

    fn has(&self, field: &str) -> bool {
        self.rest.get(field).is_some_and(|value| !value.is_null() && value != "")
    }

    fn leave_the_rest(&mut self) {
        for (field, value) in std::mem::take(&mut self.rest) {
            self.leave(&field, &value);
        }
        self.left_out.sort();
        self.left_out.dedup();
    }

    /// Notes a field that narthex does not keep, unless it has no content.
    fn leave(&mut self, field: &str, value: &Value) {
        self.left_out.extend(left_out(&self.dialect, field, value));
    }
}

impl Text {
    fn new(text: String, is_secret: bool) -> Self {
        match is_secret {
            true => Self::Secret(narthex_model::Secret::new(text)),
            false => Self::Plain(text),
        }
    }
}

/// The transport of a type word, in any of its spellings.
fn kind(word: &str) -> Option<Transport> {
    let word = word.to_ascii_lowercase().replace(['-', '_', '+'], "");
    match word.as_str() {
        "stdio" | "local" => Some(Transport::Stdio),
        "http" | "streamablehttp" | "remote" => Some(Transport::Http),
        "sse" | "httpsse" => Some(Transport::Sse),
        _ => None,
    }
}

/// True for clients that prefer an address to a program.
fn is_address_first(shape: Shape) -> bool {
    matches!(shape, Shape::Gemini | Shape::Qwen)
}

fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}
