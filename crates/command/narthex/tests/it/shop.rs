//! A place with a registry of servers on this machine.

use fs_err as fs;
use narthex_testkit::public_registry::RegistryFixture;
use serde_json::Value;

use crate::support::{Done, Place};

pub(crate) struct Shop {
    pub(crate) place: Place,
    pub(crate) registry: RegistryFixture,
}

impl Shop {
    /// A command with the registry of this shop.
    pub(crate) fn run(&self, words: &[&str]) -> Done {
        self.place.run([words, &["--registry", &self.registry.url]].concat())
    }

    /// As [`Self::run`], with this standard input.
    pub(crate) fn pipe(&self, words: &[&str], text: &str) -> Done {
        self.place.pipe(&[words, &["--registry", &self.registry.url]].concat(), text)
    }

    /// The entries of the settings.
    pub(crate) fn entries(&self) -> Value {
        let text = fs::read_to_string(self.place.path("config/narthex/settings.json"));
        let text = text.unwrap_or_else(|_missing| "{}".to_owned());
        serde_json::from_str::<Value>(&text).unwrap()["mcp"]["servers"].take()
    }

    /// The names of the secrets that are set.
    pub(crate) fn secrets(&self) -> String {
        self.place.run(["secrets", "list", "--quiet"]).succeeded().stdout
    }
}
