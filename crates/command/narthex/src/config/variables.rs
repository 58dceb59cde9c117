//! The variables that the catalog may name (`catalog.env`), and reading that list again.

use std::sync::Arc;

use narthex_control::{Setting, SettingPlace, Variables};
use toml::Value;

use super::{
    Flags,
    layers::Layers,
    settings::{layers_of, settings_file},
};

const KEY: &str = "catalog.env";
const VARIABLE: &str = "NARTHEX_CATALOG_ENV";

/// The variables of the environment that the catalog may name: none, unless the settings list them
/// (O68).
///
/// # Errors
/// A name in the list that cannot be allowed, with the place of the list.
pub(crate) fn read(
    layers: &Layers,
    flags: &Flags,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Variables, String> {
    let variables = Variables::new(&listed(layers), Arc::new(super::variable));
    let variables = variables.map_err(|error| match layers.get(KEY) {
        Some(given) => format!("{}: {error}", given.source),
        None => error.to_string(),
    })?;
    let is_by_variable = layers.get(KEY).is_some_and(|given| given.source == VARIABLE);
    let place = match settings_file(flags, env) {
        _ if is_by_variable => SettingPlace::Variable(VARIABLE),
        Some((file, _is_named)) => SettingPlace::File(std::path::absolute(&file).unwrap_or(file)),
        None => return Ok(variables),
    };
    let flags = flags.clone();
    let read = Arc::new(move || {
        let layers = layers_of(&flags, &super::variable).map_err(|failure| failure.message)?;
        match layers.faults.is_empty() {
            true => Ok(listed(&layers)),
            false => Err(layers.faults.join("; ")),
        }
    });
    Ok(variables.with_setting(Setting { place, read }))
}

fn listed(layers: &Layers) -> Vec<String> {
    let items = layers.get(KEY).and_then(|given| given.value.as_array()).into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}
