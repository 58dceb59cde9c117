//! The warnings of `narthex up` about its settings.

use narthex_client::commands::users::first_passkey;
use narthex_control::{Control, ControlError};
use narthex_model::{Alias, meant_hint, with_causes};
use narthex_policy::RunPolicy;
use narthex_registry::Snapshot;

use crate::{config::Settings, output};

/// Warns of names that `--tools` gives and no file has: most are misspelt.
pub(super) fn tell_unknown(policy: &RunPolicy, snapshot: &Snapshot) {
    let RunPolicy::Attached(named) = policy else { return };
    let is_unknown = |alias: &&Alias| snapshot.get(alias.as_str()).is_none();
    let known = || snapshot.servers.iter().map(|row| row.name.as_str());
    for name in named.iter().filter(is_unknown).map(Alias::as_str) {
        output::notice(&absent(name, known()));
    }
}

fn absent<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    let meant = meant_hint(name, known);
    format!("warning: there is no server `{name}`, which `tools` names{meant}")
}

/// Tells about grants that prove no human (D15).
pub(super) async fn tell_unproved(settings: &Settings, control: Option<&Control>) {
    let Some(control) = control else { return };
    match unproved(settings.granting.require_proof, control).await {
        Ok(Some(text)) => output::notice(&text),
        Ok(None) => {}
        // The failure is only logged, since nothing depends on the answer.
        Err(error) => {
            let cause = with_causes(&error);
            tracing::warn!("cannot find out if a passkey or an OpenID provider exists: {cause}");
        }
    }
}

/// The words on grants that prove no human, as long as no human can prove to be one or no proof is
/// required. `None` if grants prove humans, or there are neither grants nor the setting.
async fn unproved(
    require_proof: Option<bool>,
    control: &Control,
) -> Result<Option<String>, ControlError> {
    let passkey = first_passkey();
    Ok(match (control.has_proofs().await?, require_proof) {
        (true, Some(false)) => Some(
            "grants are advisory: `grants.require_proof` is off, so a program with the admin token \
             can grant, add passkeys and remove them"
                .to_owned(),
        ),
        (true, _) => None,
        (false, Some(true)) => Some(format!(
            "warning: no human can create a grant, since `grants.require_proof` is set and there \
             is neither a passkey nor an OpenID provider; {passkey}"
        )),
        (false, None) if !control.are_grants_used().await? => None,
        (false, _) => Some(format!(
            "grants are advisory: there is neither a passkey nor an OpenID provider, so no grant \
             proves a human; {passkey}; from then on only grants of humans who signed in with one \
             have an effect"
        )),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absent_server_is_named_with_the_likely_one() {
        let text = "warning: there is no server `onee`, which `tools` names; did you mean `one`?";
        assert_eq!(absent("onee", ["one", "other"]), text);
    }
}
