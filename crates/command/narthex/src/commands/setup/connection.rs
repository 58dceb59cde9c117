//! The entry by which a client reaches narthex after a set-up.

use narthex_client::environment::program;
use narthex_client_files::{
    clients::{Client, OwnEntry},
    connect::own_edit,
    edit::{Document, EditError},
    rewrite::Edit,
};

use crate::{Failure, config::Settings, elsewhere::Elsewhere};

/// The usual name of narthex's own entry.
pub(super) const NAME: &str = "narthex";

/// The facts of narthex's own entry.
pub(super) struct Connection {
    program: String,
    arguments: Vec<String>,
}

impl Connection {
    pub(super) fn of(settings: &Settings) -> Result<Self, Failure> {
        let arguments = Elsewhere::of(settings).arguments()?;
        Ok(Self { program: program().to_string_lossy().into_owned(), arguments })
    }

    /// The edit that puts the entry into a file of a client, after the other edits. Its name is one
    /// that no other entry has: the client may reach another narthex under the usual name.
    pub(super) fn edit(
        &self,
        client: &Client,
        folder: &str,
        document: &Document,
        others: &[Edit],
    ) -> Result<Option<Edit>, EditError> {
        let own = OwnEntry { name: NAME, program: &self.program, arguments: &self.arguments };
        own_edit(client, folder, document, others, &own)
    }
}

/// The name of the entry that an edit concerns.
pub(super) fn inserted(edit: &Edit) -> String {
    match edit {
        Edit::Insert { name, .. } | Edit::Remove { name, .. } | Edit::Replace { name, .. } => {
            name.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use narthex_client_files::{
        clients::{Scope, clients},
        edit::Format,
    };

    use super::*;

    /// The name of the entry that comes into a file beside others.
    fn name(text: &str, others: &[Edit]) -> String {
        let mut rows = clients().iter();
        let client = rows.find(|row| row.id == "cursor" && row.scope == Scope::User).unwrap();
        let document = Document::parse(Format::Jsonc, text.as_bytes()).unwrap();
        let own = Connection { program: "/bin/narthex".to_owned(), arguments: Vec::new() };
        match own.edit(client, "", &document, others).unwrap() {
            Some(Edit::Insert { name, .. }) => name,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_entry_of_another_narthex_keeps_its_name() {
        assert_eq!(name("{}", &[]), "narthex");
        let other = r#"{ "mcpServers": { "narthex": { "command": "ssh" } } }"#;
        assert_eq!(name(other, &[]), "narthex-2");
        let two = r#"{ "mcpServers": { "narthex": {}, "narthex-2": {}, "docs": {} } }"#;
        assert_eq!(name(two, &[]), "narthex-3");
        let mut rows = clients().iter();
        let client = rows.find(|row| row.id == "cursor" && row.scope == Scope::User).unwrap();
        let parent = client.parents("").remove(0);
        let gone = [Edit::Remove { parent, name: "narthex".to_owned() }];
        assert_eq!(name(other, &gone), "narthex");
    }
}
