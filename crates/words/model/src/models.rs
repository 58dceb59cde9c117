//! The models that a workspace lets its agents ask for, and what they are called (X-E87).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::json::{Node, Place, field};

/// The most models of a workspace, and short names of one.
const MODELS_MAX: usize = 200;
/// The longest name of a model, in bytes.
const NAME_MAX: usize = 200;

/// A model that runs may ask for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnabledModel {
    /// The model's id for the executor that carries out a run.
    pub id: String,
    /// Other names of the model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub short_names: Vec<String>,
}

/// The models of a workspace, the newest first. Without any nothing is checked. Cheap to clone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EnabledModels {
    all: Arc<[EnabledModel]>,
}

/// A fault of a list of models: its place in the list, the problem and the remedy.
pub type ModelFault = (Place, &'static str, &'static str);

impl EnabledModels {
    /// Reads a list as people write it.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn read(node: &Node, at: &Place) -> Result<Self, Vec<ModelFault>> {
        let mut faults = Vec::new();
        let Node::List(items) = node else {
            return Err(vec![(at.clone(), "it is not a list", REMEDY)]);
        };
        if items.len() > MODELS_MAX {
            faults.push((at.clone(), "it is too long", "enable 200 models at most"));
        }
        let mut all: Vec<EnabledModel> = Vec::new();
        for (index, item) in items.iter().enumerate() {
            all.extend(model(item, &at.index(index), &mut faults));
        }
        for (index, one) in all.iter().enumerate() {
            if all[..index].iter().any(|before| before.id == one.id) {
                faults.push((at.clone(), "the list has a model twice", "keep one"));
            }
        }
        if faults.is_empty() { Ok(Self { all: all.into() }) } else { Err(faults) }
    }

    /// Reads what [`text`](Self::text) has written. `None` if it is something else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Self::default());
        }
        let all: Vec<EnabledModel> = serde_json::from_str(text).ok()?;
        Some(Self { all: all.into() })
    }

    /// The stored text of the list; empty without any model.
    #[must_use]
    pub fn text(&self) -> String {
        match self.all.is_empty() {
            true => String::new(),
            false => serde_json::to_string(&self.all[..]).expect("texts can be written"),
        }
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> &[EnabledModel] {
        &self.all
    }

    /// The id of the model of a name: the id itself, or the first of which it is a
    /// short name. `None` if there is none.
    #[must_use]
    pub fn resolve<'m>(&'m self, name: &'m str) -> Option<&'m str> {
        if self.all.is_empty() || self.all.iter().any(|one| one.id == name) {
            return Some(name);
        }
        let is_called = |one: &&EnabledModel| one.short_names.iter().any(|short| short == name);
        self.all.iter().find(is_called).map(|one| one.id.as_str())
    }
}

const REMEDY: &str = "write a list such as `[{\"id\": \"opus-4-5\", \"short_names\": [\"opus\"]}]`";

fn model(node: &Node, at: &Place, faults: &mut Vec<ModelFault>) -> Option<EnabledModel> {
    let Node::Object(fields) = node else {
        faults.push((at.clone(), "it is not an object", REMEDY));
        return None;
    };
    for (key, _) in fields.iter().filter(|(key, _)| !["id", "short_names"].contains(&&**key)) {
        faults.push((at.key(key), "this is not known here", "a model has `id` and `short_names`"));
    }
    let id = match field(fields, "id") {
        Some(node) => name(node, &at.key("id"), faults),
        None => {
            faults.push((at.key("id"), "it is missing", "give a value"));
            None
        }
    };
    let short_names = match field(fields, "short_names") {
        None | Some(Node::Null) => Vec::new(),
        Some(Node::List(items)) => {
            let at = at.key("short_names");
            let names = items.iter().enumerate();
            names.filter_map(|(index, item)| name(item, &at.index(index), faults)).collect()
        }
        Some(_) => {
            faults.push((at.key("short_names"), "it is not a list", "write a list of names"));
            Vec::new()
        }
    };
    Some(EnabledModel { id: id?, short_names })
}

fn name(node: &Node, at: &Place, faults: &mut Vec<ModelFault>) -> Option<String> {
    match node {
        Node::Text(text)
            if (1..=NAME_MAX).contains(&text.len()) && !text.chars().any(char::is_control) =>
        {
            Some(text.clone())
        }
        _ => {
            faults.push((at.clone(), "it is not a name of a model", "write 1 to 200 bytes"));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<EnabledModels, Vec<String>> {
        let node = Node::parse(text.as_bytes()).unwrap();
        let read = EnabledModels::read(&node, &Place::root("models"));
        read.map_err(|faults| faults.iter().map(|(at, ..)| at.to_string()).collect())
    }

    /// X-E87: a short name is the first model that has it; without models any name is one.
    #[test]
    fn x_e87_a_short_name_resolves_to_the_first_model_with_that_name() {
        let models = read(
            r#"[{ "id": "opus-5", "short_names": ["opus", "best"] },
                { "id": "opus-4", "short_names": ["opus"] }, { "id": "small" }]"#,
        );
        let models = models.unwrap();
        for (name, id) in [
            ("opus", Some("opus-5")),
            ("best", Some("opus-5")),
            ("opus-4", Some("opus-4")),
            ("small", Some("small")),
            ("large", None),
        ] {
            assert_eq!(models.resolve(name), id, "{name}");
        }
        assert_eq!(EnabledModels::parse(&models.text()), Some(models));
        let none = read("[]").unwrap();
        assert_eq!((none.resolve("anything"), none.text().as_str()), (Some("anything"), ""));
        assert_eq!(EnabledModels::parse(""), Some(none));
    }

    #[test]
    fn all_faults_of_models_are_reported_with_their_places() {
        assert_eq!(read("7").unwrap_err(), ["models"]);
        let faults = read(
            r#"[1, {}, { "id": "" }, { "id": "a", "more": 1, "short_names": [2] },
                { "id": "b", "short_names": "c" }, { "id": "a" }]"#,
        );
        let expected = [
            "models[0]",
            "models[1].id",
            "models[2].id",
            "models[3].more",
            "models[3].short_names[0]",
            "models[4].short_names",
            "models",
        ];
        assert_eq!(faults.unwrap_err(), expected);
    }
}
