//! The part of an entry that lists a server's own notifications, by their exact names.

use narthex_model::NotificationName;

use super::{
    node::{Node, Place, field},
    problem::EntryProblem,
    reader::{Fields, Reader},
};

const KEY: &str = "notifications";
const WANTED: &str = "an array of names such as `acme/changed`";

impl Reader<'_> {
    /// Reads `notifications`. A name that cannot be used is left out, so that only written names
    /// are let through.
    pub(super) fn notifications(&mut self, fields: &Fields, at: &Place) -> Box<[NotificationName]> {
        let place = at.key(KEY);
        let nodes = match field(fields, KEY) {
            None => return Box::default(),
            Some(Node::List(nodes)) => nodes,
            Some(node) => {
                let (found, wanted) = (node.found(), WANTED);
                self.tolerated(&place, EntryProblem::WrongType { found, wanted });
                return Box::default();
            }
        };
        let mut names = Vec::with_capacity(nodes.len());
        for (index, node) in nodes.iter().enumerate() {
            let place = place.index(index);
            match node {
                Node::Text(text) => match NotificationName::new(text) {
                    Ok(name) => names.push(name),
                    Err(error) => self.tolerated(&place, error.into()),
                },
                _ => {
                    let (found, wanted) = (node.found(), "a name such as `acme/changed`");
                    self.tolerated(&place, EntryProblem::WrongType { found, wanted });
                }
            }
        }
        names.into()
    }
}
