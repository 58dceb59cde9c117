//! The name of a server in a registry, and its name here.

use narthex_model::{Alias, command::narthex};

use crate::{Failure, cli::AddServerArgs, public_registry::client::last_part};

/// Checks that the name has the form of a registry's names.
pub(super) fn check_name(name: &str) -> Result<(), Failure> {
    let is_part = |part: &str| {
        let is_sign = |byte: u8| matches!(byte, b'.' | b'_' | b'-');
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || is_sign(byte))
    };
    match name.split_once('/') {
        Some((publisher, server)) if is_part(publisher) && is_part(server) => Ok(()),
        _ => {
            let find = match name.contains("://") {
                true => {
                    format!("add an address with `{}`", narthex("mcp add NAME --url {}", &[&name]))
                }
                false => format!(
                    "find the name with `{}`, or add a program with `{}`",
                    narthex("search WORDS", &[]),
                    narthex("mcp add NAME -- COMMAND", &[])
                ),
            };
            Err(Failure::usage(format!(
                "`{name}` is not a name of a registry, such as io.github.ada/weather; {find}"
            )))
        }
    }
}

/// The server's name here.
pub(super) fn alias(args: &AddServerArgs) -> Result<Alias, Failure> {
    if let Some(given) = &args.alias {
        return Alias::of_server(given).map_err(|error| Failure::usage(format!("--as: {error}")));
    }
    let derived = Alias::suggest(last_part(&args.name));
    Alias::of_server(derived.as_str()).map_err(|error| {
        let text = format!("`{}` gives no name for the server here: {error}", args.name);
        Failure::usage(format!("{text}; choose one with --as"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_a_registry_has_a_publisher_and_a_server() {
        for good in ["io.github.ada/weather", "a/b_c.d-e"] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for bad in ["weather", "/a", "a/", "a/b/c", "a b/c", "a/../b", "-"] {
            let message = check_name(bad).unwrap_err().message;
            assert!(message.contains("narthex search WORDS"), "{message}");
            assert!(message.contains("narthex mcp add NAME -- COMMAND"), "{message}");
        }
        let message = check_name("https://a.example/mcp").unwrap_err().message;
        let add = "`narthex mcp add NAME --url https://a.example/mcp`";
        assert!(message.contains(add), "{message}");
    }
}
