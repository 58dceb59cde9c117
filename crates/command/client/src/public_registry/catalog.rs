//! Makes a server of the catalog from a way. Values that a user gives become keys of its schema.

use std::collections::BTreeMap;

use narthex_model::command::narthex;
use serde_json::{Map, Value, json};

use super::{
    document::ServerDocument,
    inputs::{Answers, Folders},
    slot::{Place, Slot},
    ways::{Form, Way, WayKind},
};

impl Way {
    /// The server as the catalog takes it, without an id and disabled, so that no run starts it
    /// before a person has read it. Fixed texts and defaults of the publisher are in it.
    ///
    /// # Errors
    /// The reason why the catalog cannot have this way, as a sentence.
    pub fn catalog_entry(&self, server: &ServerDocument) -> Result<Value, String> {
        let mut entry = self.reach(server)?;
        let mut schema = Map::new();
        for slot in &self.slots {
            if let Place::Env(name) | Place::Header(name) = &slot.place {
                schema.insert(name.clone(), key(slot, name));
            }
        }
        entry["name"] = json!(server.title.as_ref().unwrap_or(&server.name));
        if !server.description.is_empty() {
            entry["description"] = json!(server.description);
        }
        entry["disabled"] = json!(true);
        if !schema.is_empty() {
            entry["config_schema"] = Value::Object(schema);
        }
        // The catalog would fill in a placeholder of the publisher.
        match entry.to_string().contains("${") {
            true => Err("its description has `${`, which the catalog would fill in".to_owned()),
            false => Ok(entry),
        }
    }

    /// The command or the address.
    fn reach(&self, server: &ServerDocument) -> Result<Value, String> {
        let add = narthex("add {}", &[&server.name]);
        if matches!(self.form, Form::Bundle(_) | Form::Unpacked(_)) {
            return Err(format!(
                "a bundle is unpacked on one machine; `{add}` does that, for the servers of this \
                 daemon's configuration"
            ));
        }
        let mut bare = self.clone();
        bare.slots.retain(|slot| !matches!(slot.place, Place::Env(_) | Place::Header(_)));
        let draft = bare.draft(&Answers::default(), &Folders::default());
        let draft = draft.map_err(|faults| {
            let faults = faults.join("; ");
            format!("{faults}; `{add}` does that, for the servers of this daemon's configuration")
        })?;
        let mut entry = draft.entry(&BTreeMap::new());
        if let (Form::Program { first, .. }, WayKind::Oci) = (&self.form, self.kind)
            && let Some(args) = entry["args"].as_array_mut()
        {
            // The runtime takes the values from its own environment.
            let at = first.len().min(args.len());
            args.splice(at..at, self.variables().flat_map(|name| [json!("-e"), json!(name)]));
        }
        Ok(entry)
    }

    /// The variables of a program.
    fn variables(&self) -> impl Iterator<Item = &str> {
        self.slots.iter().filter_map(|slot| match &slot.place {
            Place::Env(name) => Some(name.as_str()),
            _ => None,
        })
    }
}

/// The key of the schema for a variable or a header.
fn key(slot: &Slot, name: &str) -> Value {
    let variables = slot.variables();
    let all = || std::iter::once(&slot.input).chain(variables.values().copied());
    let mut key = json!({ "type": "string" });
    let carrier = if matches!(slot.place, Place::Env(_)) { "env" } else { "header" };
    key[carrier] = json!(name);
    let is_secret = all().any(|input| input.is_secret);
    if is_secret {
        key["kind"] = json!("secret");
    }
    if all().any(|input| input.is_required) {
        key["required"] = json!(true);
    }
    let template = slot.input.value.as_ref().filter(|_| !variables.is_empty());
    let about = slot.input.description.clone().unwrap_or_default();
    let about = match template {
        Some(template) => format!("{about} Written as `{template}`.").trim().to_owned(),
        None => about,
    };
    if !about.is_empty() {
        key["description"] = json!(about);
    }
    let fixed = slot.input.value.as_ref().filter(|_| variables.is_empty());
    if let Some(default) = fixed.or(slot.input.default.as_ref()).filter(|_| !is_secret) {
        key["default"] = json!(default);
    }
    if template.is_none() && !is_secret && !slot.input.choices.is_empty() {
        key["enum"] = json!(slot.input.choices);
    }
    key
}

#[cfg(test)]
mod tests {
    use narthex_testkit::public_registry::example;

    use super::*;
    use crate::public_registry::{client::Listing, ways::ways};

    fn server(name: &str, version: &str) -> ServerDocument {
        Listing::read(example(name, version)).unwrap().listed.server
    }

    /// E201: a package becomes a disabled server with one version and its keys; secrets are
    /// declared, and no value of one is there.
    #[test]
    fn e201_a_package_becomes_a_disabled_server_with_keys() {
        let server = server("io.github.ada/weather", "1.4.0");
        let (usable, _) = ways(&server);
        let entry = usable[0].catalog_entry(&server).unwrap();
        assert_eq!((&entry["command"], &entry["disabled"]), (&json!("npx"), &json!(true)));
        let args = entry["args"].as_array().unwrap();
        assert!(args.contains(&json!("@ada/weather-mcp@1.4.0")), "{args:?}");
        let schema = &entry["config_schema"];
        assert_eq!(schema["WEATHER_KEY"]["kind"], "secret");
        assert_eq!(schema["WEATHER_KEY"]["required"], true);
        assert_eq!(
            schema["LOG_LEVEL"],
            json!({ "type": "string", "env": "LOG_LEVEL", "default": "info" })
        );
        assert!(entry.get("env").is_none(), "{entry}");
    }

    #[test]
    fn what_the_catalog_cannot_have_says_why() {
        let papers = server("com.example/papers", "0.5.0");
        let (usable, _) = ways(&papers);
        let of = |kind: WayKind| usable.iter().find(|way| way.kind == kind).unwrap();
        let token =
            &of(WayKind::Pypi).catalog_entry(&papers).unwrap()["config_schema"]["PAPERS_TOKEN"];
        assert_eq!(token["kind"], "secret");
        assert_eq!(token["description"], "Written as `Token {token}`.");
        let image = of(WayKind::Oci).catalog_entry(&papers).unwrap_err();
        assert!(image.contains("`narthex add com.example/papers` does that"), "{image}");
    }
}
