//! The parts of the machine that a program of the catalog may reach, in the form of files (D22).

use narthex_model::{
    ConfinementProblem, EntryConfinement,
    json::{Node, Place},
};
use serde::{Serialize, Serializer};

use super::shape::argument;
use crate::{
    fault::FaultCode,
    reader::{Object, Reader},
    template::Template,
};

/// The confinement of a program, whose paths may hold values that the daemon itself knows.
#[derive(Clone, PartialEq)]
pub(crate) struct ProgramConfinement {
    written: EntryConfinement,
    /// The templates, in the order of [`EntryConfinement::paths`].
    paths: Vec<Template>,
}

pub(super) fn read(reader: &mut Reader, object: &Object<'_>) -> Option<ProgramConfinement> {
    let node = object.get("confinement")?;
    let at = object.at.key("confinement");
    let written = EntryConfinement::read(node, &at, &mut |at, problem| {
        let code = match problem {
            ConfinementProblem::Key { .. } => FaultCode::UnknownField,
            ConfinementProblem::Word { .. } | ConfinementProblem::Empty => FaultCode::ValueInvalid,
            ConfinementProblem::Type { .. } => FaultCode::TypeWrong,
        };
        reader.fault(at, code, problem.to_string(), problem.remedy());
    })?;
    let paths = written.paths(&at).into_iter().map(|(at, text)| path(reader, text, &at));
    let paths = paths.collect();
    Some(ProgramConfinement { written, paths })
}

/// Reads a path. A faulty one is empty.
fn path(reader: &mut Reader, text: &str, at: &Place) -> Template {
    if text.is_empty() {
        return Template::default();
    }
    if !text.starts_with('/') && !text.starts_with("${") {
        let message = "the path is relative, and there is no folder that it is relative to";
        reader.invalid(at, message, "begin it with `/` or `${runtime.project_dir}`");
    }
    argument(reader, &Node::Text(text.to_owned()), at).unwrap_or_default()
}

impl ProgramConfinement {
    /// Its paths, each with its place in an entry's `confinement`, which is at `at`.
    pub(crate) fn paths(&self, at: &Place) -> Vec<(Place, &Template)> {
        let places = self.written.paths(at).into_iter().map(|(at, _)| at);
        places.zip(&self.paths).collect()
    }

    /// This confinement with the known values of a run in its paths.
    pub(crate) fn filled(
        &self,
        at: &Place,
        mut fill: impl FnMut(&Template, &Place) -> Template,
    ) -> Self {
        let paths = self.paths(at).into_iter().map(|(at, path)| fill(path, &at)).collect();
        Self { written: self.written.clone(), paths }
    }

    /// This confinement as it is written, with paths that have no placeholder.
    pub(crate) fn opened<E>(
        &self,
        mut open: impl FnMut(&Template, &Place) -> Result<String, E>,
    ) -> Result<EntryConfinement, E> {
        let at = Place::default().key("confinement");
        let paths = self.paths(&at).into_iter().map(|(at, path)| open(path, &at).map(Into::into));
        let paths: Vec<_> = paths.collect::<Result<_, _>>()?;
        Ok(self.written.clone().with_paths(paths))
    }
}

impl Serialize for ProgramConfinement {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.written.serialize(serializer)
    }
}
