//! The command of a set-up, as its messages name it: for the clients that the user has named.

use narthex_model::command::{CommandLine, narthex};

/// The command that makes the set-up again, or continues it.
pub(super) fn again(only: &[String]) -> CommandLine {
    match only {
        [] => narthex("setup", &[]),
        only => narthex("setup --only {}", &[&only.join(",")]),
    }
}

/// The command that makes the set-up without a question.
pub(super) fn sure(only: &[String]) -> CommandLine {
    match only {
        [] => narthex("setup --yes", &[]),
        only => narthex("setup --yes --only {}", &[&only.join(",")]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_clients_are_named_again() {
        let only = ["cursor".to_owned(), "zed".to_owned()];
        assert_eq!(again(&[]).to_string(), "narthex setup");
        assert_eq!(again(&only).to_string(), "narthex setup --only cursor,zed");
        assert_eq!(sure(&[]).to_string(), "narthex setup --yes");
        assert_eq!(sure(&only).to_string(), "narthex setup --yes --only cursor,zed");
    }
}
