//! Definitions as attackers and as honest servers write them, through the public interface.

#[cfg(test)]
mod look_alikes;
#[cfg(test)]
mod ordinary;
#[cfg(test)]
mod poisoned;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod rug_pulls;

#[cfg(test)]
use narthex_definitions::Definition;
#[cfg(test)]
use serde_json::Value;

#[cfg(test)]
fn definition(value: &Value) -> Definition {
    let key = ["uriTemplate", "uri", "name"].into_iter().find_map(|key| value[key].as_str());
    Definition::read(key.unwrap_or_default(), value.to_string().as_bytes())
        .expect("it is an object")
}
