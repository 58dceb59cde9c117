//! Variables of the environment that begin as narthex's own and are none of them. Most are
//! misspelt.

use narthex_client::{
    environment::{self, TOKEN},
    output::harmless,
};
use narthex_model::meant_hint;

use super::{MASTER_KEY, layers::KEYS, shared_clients, signin};

/// The beginning of narthex's variables.
const OURS: &str = "NARTHEX_";

/// Variables that this program reads and that are no settings.
const READ: [&str; 3] = ["NARTHEX_SETTINGS", TOKEN, MASTER_KEY];

/// Variables for other programs: an executor gives them to the program of a run, and pages of the
/// documentation to clients. A command that such a program starts has them, too.
const OF_OTHERS: [&str; 14] = [
    "NARTHEX_AGENT",
    "NARTHEX_ATTEMPT",
    "NARTHEX_CLIENT_TOKEN",
    "NARTHEX_EVENTS_URL",
    "NARTHEX_FOLDER",
    "NARTHEX_HEADER",
    "NARTHEX_MCP_URL",
    "NARTHEX_MODEL",
    "NARTHEX_RUNTIME_TYPE",
    "NARTHEX_RUN_FILE",
    "NARTHEX_RUN_ID",
    "NARTHEX_RUN_TOKEN",
    "NARTHEX_SESSION_ID",
    "NARTHEX_WORKSPACE",
];

/// Beginnings of variables whose ends are free: passwords at providers, and the variables of tests.
const OPEN: [&str; 3] = [signin::SECRET, shared_clients::SECRET, "NARTHEX_TEST_"];

/// A warning of the variables of this process that are ignored, without their values. `None` if
/// there are none.
pub(crate) fn unknown_variables() -> Option<String> {
    warning(environment::names())
}

fn warning(names: impl IntoIterator<Item = String>) -> Option<String> {
    let mut unknown: Vec<_> = names.into_iter().filter(|name| is_unknown(name)).collect();
    unknown.sort();
    let told = |name: &String| {
        let known = KEYS.iter().map(|key| key.variable).chain(READ);
        format!("{}{}", harmless(name), meant_hint(name, known))
    };
    let told: Vec<_> = unknown.iter().map(told).collect();
    match told.as_slice() {
        [] => None,
        [one] => Some(format!("warning: narthex has no variable {one}")),
        several => Some(format!("warning: narthex has no variables {}", several.join(", "))),
    }
}

fn is_unknown(name: &str) -> bool {
    let is_setting = || KEYS.iter().any(|key| key.variable == name);
    let others = [&READ[..], &OF_OTHERS];
    name.starts_with(OURS)
        && !is_setting()
        && !OPEN.iter().any(|start| name.starts_with(start))
        && !others.iter().any(|all| all.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(names: &[&str]) -> Option<String> {
        warning(names.iter().map(|&name| name.to_owned()))
    }

    #[test]
    fn a_misspelt_variable_is_told_with_the_nearest_known_name() {
        assert_eq!(
            of(&["PATH", "NARTHEX_LISTN", "NARTHEX_DATA"]).unwrap(),
            "warning: narthex has no variable NARTHEX_LISTN; did you mean `NARTHEX_LISTEN`?"
        );
        let both = of(&["NARTHEX_ZZZZZZZZZZZZZZZ", "NARTHEX_TOKN"]).unwrap();
        assert!(both.contains("NARTHEX_TOKN; did you mean `NARTHEX_TOKEN`?"), "{both}");
        assert!(both.ends_with(", NARTHEX_ZZZZZZZZZZZZZZZ"), "{both}");
    }

    #[test]
    fn known_variables_of_narthex_its_programs_and_its_tests_are_not_told() {
        for key in KEYS {
            assert_eq!(of(&[key.variable]), None, "{}", key.variable);
        }
        let free = [
            "NARTHEX_OIDC_SECRET_CORP",
            "NARTHEX_OAUTH_SECRET_CHAT",
            "NARTHEX_TEST_POSTGRES",
            "narthex_listn",
            "NARTHEX",
        ];
        for names in [&READ[..], &OF_OTHERS, &free] {
            assert_eq!(of(names), None, "{names:?}");
        }
    }

    /// Each variable that the executor gives to a program is known here.
    #[test]
    fn variables_of_executors_are_known() {
        let source = include_str!("../../../../control-plane/executor/src/program.rs");
        let given = source.split("add(\"").skip(1).filter_map(|rest| rest.split('"').next());
        let given: Vec<_> = given.filter(|name| name.starts_with(OURS)).collect();
        assert!(given.len() > 5, "{given:?}");
        assert_eq!(of(&given), None);
    }
}
