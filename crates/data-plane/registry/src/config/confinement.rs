//! The `confinement` block of an entry, with its paths filled in.

use std::path::PathBuf;

use narthex_model::{Confinement, EntryConfinement};

use super::{
    node::{Place, field},
    reader::{Fields, Reader},
};

impl Reader<'_> {
    /// Reads the block; `None` if there is none, or after a fault.
    pub(super) fn confinement(
        &mut self,
        fields: &Fields,
        at: &Place,
        working_dir: Option<&PathBuf>,
    ) -> Option<Confinement> {
        let place = at.key("confinement");
        let node = field(fields, "confinement")?;
        let read = EntryConfinement::read(node, &place, &mut |at, problem| {
            self.fault(at, problem);
        })?;
        let root = self.context.workspace_root;
        let mut paths = Vec::new();
        for (at, path) in read.paths(&place) {
            let path = self.expand(&at, path);
            paths.push(path.map_or_else(PathBuf::new, |path| self.below(root, &path.value)));
        }
        let strict_read = working_dir.map_or(root.to_owned(), PathBuf::clone);
        Some(read.clone().with_paths(paths).confinement(Some(strict_read)))
    }
}
