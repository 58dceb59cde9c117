//! Counts of tangle inside of crates: circles of imports between files, types whose inherent
//! functions lie in many files, and parameters that are tuples. Tests do not count.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};

use super::ratchets::Counted;
use super::source::Source;

/// A module by its path from the root of its crate.
type Path = Vec<String>;

/// A file of a crate, and the parts of it that count.
struct File {
    crate_name: String,
    module: Path,
    source: String,
    /// Paths from the root that the file uses.
    used: BTreeSet<Path>,
    /// Names that it offers under its own path: the last word, and where it leads.
    offered: BTreeMap<String, Path>,
    /// Types with inherent functions in the file.
    types: BTreeSet<String>,
    /// The functions with a parameter that is a tuple: their lines and names.
    tuples: Vec<(usize, String)>,
}

/// A circle of files, each of which leads to each other by imports.
struct Circle {
    files: Vec<String>,
    /// Number of imports from one of them to another.
    arrows: usize,
}

/// Counts the tangle of all crates of the product, and reports each place.
pub(super) fn count(sources: &[Source], mut report: impl FnMut(String)) -> Vec<Counted> {
    let files: Vec<File> = sources.iter().filter_map(File::read).collect();
    let mut crates: BTreeMap<&str, Vec<&File>> = BTreeMap::new();
    for file in &files {
        crates.entry(&file.crate_name).or_default().push(file);
    }
    let (mut largest, mut arrows, mut spread, mut tuples) = (0, 0, 0, 0);
    for (name, files) in &crates {
        for Circle { files, arrows: of_it } in circles(files) {
            largest = largest.max(files.len());
            arrows += of_it;
            let all = files.join(" ");
            report(format!("{name}: a circle of {} files, {of_it} imports: {all}", files.len()));
        }
        let mut types: BTreeMap<&str, usize> = BTreeMap::new();
        for file in files {
            file.types.iter().for_each(|name| *types.entry(name).or_default() += 1);
            for (line, function) in &file.tuples {
                tuples += 1;
                report(format!("{}:{line}: `{function}` takes a tuple", file.source));
            }
        }
        for (of, number) in types.iter().filter(|(_, number)| **number > 1) {
            spread = spread.max(*number);
            report(format!("{name}: `impl {of}` stands in {number} files"));
        }
    }
    let counted = |name, number, remedy| Counted { name, number, remedy };
    vec![
        counted("largest_circle", largest, "have one of the files import less"),
        counted("circle_imports", arrows, "have files of a circle import less of each other"),
        counted("impl_files", spread, "give the type fewer files, or a part of it another type"),
        counted("tuple_parameters", tuples, "give the tuple a name as a struct, or pass its parts"),
    ]
}

impl File {
    /// `None` for a file that does not count.
    fn read(source: &Source) -> Option<Self> {
        if !source.is_rust() || source.is_test() || !source.path.starts_with("crates/") {
            return None;
        }
        let dir = source.crate_dir()?;
        let inside = source.path[dir.len()..].strip_prefix("/src/")?;
        let mut module: Path =
            inside.trim_end_matches(".rs").split('/').map(String::from).collect();
        if matches!(module.last().map(String::as_str), Some("lib" | "main" | "mod")) {
            module.pop();
        }
        let parsed = syn::parse_file(&source.text).ok()?;
        let children = parsed.items.iter().filter_map(|item| match item {
            syn::Item::Mod(item) => Some(item.ident.to_string()),
            _ => None,
        });
        let mut reader = Reader {
            here: module.clone(),
            children: children.collect(),
            file: Self {
                crate_name: dir.rsplit('/').next()?.to_owned(),
                module,
                source: source.path.clone(),
                used: BTreeSet::new(),
                offered: BTreeMap::new(),
                types: BTreeSet::new(),
                tuples: Vec::new(),
            },
        };
        reader.visit_file(&parsed);
        Some(reader.file)
    }
}

/// Reads one file; `here` is the module that is being read.
struct Reader {
    here: Path,
    /// The modules that the file declares.
    children: BTreeSet<String>,
    file: File,
}

impl Reader {
    /// A path from the root of the crate; `None` if it leads out of the crate.
    fn resolved(&self, path: &[String]) -> Option<Path> {
        let mut base = self.here.clone();
        let mut rest = path;
        match rest.first()?.as_str() {
            "crate" => (base, rest) = (Path::new(), &rest[1..]),
            "self" => rest = &rest[1..],
            "super" => {
                while let Some(("super", after)) =
                    rest.split_first().map(|(first, after)| (first.as_str(), after))
                {
                    base.pop()?;
                    rest = after;
                }
            }
            first if self.children.contains(first) => base.clone_from(&self.file.module),
            _ => return None,
        }
        base.extend(rest.iter().cloned());
        Some(base)
    }

    fn uses(&mut self, tree: &syn::UseTree, prefix: &mut Path, is_offer: bool) {
        match tree {
            syn::UseTree::Path(path) => {
                prefix.push(path.ident.to_string());
                self.uses(&path.tree, prefix, is_offer);
                prefix.pop();
            }
            syn::UseTree::Group(group) => {
                group.items.iter().for_each(|item| self.uses(item, prefix, is_offer));
            }
            syn::UseTree::Name(name) => self.take(prefix, &name.ident, &name.ident, is_offer),
            syn::UseTree::Rename(name) => self.take(prefix, &name.ident, &name.rename, is_offer),
            syn::UseTree::Glob(_) => {
                if let Some(path) = self.resolved(prefix) {
                    self.file.used.insert(path);
                }
            }
        }
    }

    fn take(&mut self, prefix: &[String], name: &syn::Ident, shown: &syn::Ident, is_offer: bool) {
        let mut path = prefix.to_vec();
        if name != "self" {
            path.push(name.to_string());
        }
        let Some(path) = self.resolved(&path) else { return };
        match is_offer {
            true => drop(self.file.offered.insert(shown.to_string(), path)),
            false => drop(self.file.used.insert(path)),
        }
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_test(&item.attrs) {
            self.here.push(item.ident.to_string());
            visit::visit_item_mod(self, item);
            self.here.pop();
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if !is_test(&item.attrs) {
            let is_offer = !matches!(item.vis, syn::Visibility::Inherited);
            self.uses(&item.tree, &mut Path::new(), is_offer);
        }
    }

    /// `pub(super)` imports nothing.
    fn visit_visibility(&mut self, _visibility: &'ast syn::Visibility) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let words: Path = path.segments.iter().map(|part| part.ident.to_string()).collect();
        if let Some(path) = self.resolved(&words) {
            self.file.used.insert(path);
        }
        visit::visit_path(self, path);
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if is_test(&item.attrs) {
            return;
        }
        if let (None, syn::Type::Path(of)) = (&item.trait_, &*item.self_ty)
            && let Some(last) = of.path.segments.last()
        {
            self.file.types.insert(last.ident.to_string());
        }
        visit::visit_item_impl(self, item);
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !is_test(&item.attrs) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        let is_tuple = |input: &syn::FnArg| match input {
            syn::FnArg::Typed(typed) => is_tuple(&typed.ty),
            syn::FnArg::Receiver(_) => false,
        };
        if signature.inputs.iter().any(is_tuple) {
            let name = &signature.ident;
            self.file.tuples.push((name.span().start().line, name.to_string()));
        }
        visit::visit_signature(self, signature);
    }
}

fn is_tuple(ty: &syn::Type) -> bool {
    match ty {
        syn::Type::Tuple(tuple) => !tuple.elems.is_empty(),
        syn::Type::Reference(reference) => is_tuple(&reference.elem),
        _ => false,
    }
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::List(list) => {
            list.path.is_ident("cfg") && list.tokens.to_string().contains("test")
        }
        syn::Meta::Path(path) => path.segments.last().is_some_and(|last| last.ident == "test"),
        syn::Meta::NameValue(_) => false,
    })
}

/// The circles of a crate's files that have more than one.
fn circles(files: &[&File]) -> Vec<Circle> {
    let places: BTreeMap<&[String], usize> =
        files.iter().enumerate().map(|(at, file)| (&*file.module, at)).collect();
    // Follows what modules offer of others to the file that has it.
    let target = |path: &Path| {
        let (mut path, mut steps) = (path.clone(), 0);
        loop {
            let at = (0..=path.len()).rev().find_map(|end| Some((end, *places.get(&path[..end])?)));
            let (end, at) = at?;
            match path.get(end).and_then(|name| files[at].offered.get(name)) {
                Some(onward) if steps < 8 => {
                    let rest = path.split_off(end + 1);
                    path.clone_from(onward);
                    path.extend(rest);
                    steps += 1;
                }
                _ => return Some(at),
            }
        }
    };
    let arrows: Vec<BTreeSet<usize>> = files
        .iter()
        .enumerate()
        .map(|(at, file)| file.used.iter().filter_map(target).filter(|to| *to != at).collect())
        .collect();
    let reached: Vec<BTreeSet<usize>> = (0..files.len()).map(|at| reached(at, &arrows)).collect();
    let mut circles = Vec::new();
    let mut done = BTreeSet::new();
    for at in 0..files.len() {
        let circle: BTreeSet<usize> =
            reached[at].iter().copied().filter(|to| reached[*to].contains(&at)).collect();
        if circle.len() > 1 && done.insert(circle.clone()) {
            let inside = circle.iter().map(|from| arrows[*from].intersection(&circle).count());
            let names = circle.iter().map(|at| match files[*at].module.is_empty() {
                true => "the root".to_owned(),
                false => files[*at].module.join("::"),
            });
            circles.push(Circle { files: names.collect(), arrows: inside.sum() });
        }
    }
    circles
}

/// The files to which imports lead from one of them, itself too if they lead back.
fn reached(from: usize, arrows: &[BTreeSet<usize>]) -> BTreeSet<usize> {
    let (mut found, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(at) = open.pop() {
        open.extend(arrows[at].iter().copied().filter(|to| found.insert(*to)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::count;
    use crate::tidy::source::Source;

    fn numbers(files: &[(&str, &str)]) -> [usize; 4] {
        let source = |(path, text): &(&str, &str)| Source {
            path: format!("crates/words/a/src/{path}.rs"),
            text: (*text).to_owned(),
        };
        let sources: Vec<_> = files.iter().map(source).collect();
        let counted = count(&sources, drop);
        std::array::from_fn(|at| counted[at].number)
    }

    #[test]
    fn circles_of_imports_are_found() {
        let root = ("lib", "mod a; mod b; pub use a::A;");
        let chain = [root, ("a", "pub struct A; use crate::b::B;"), ("b", "pub struct B;")];
        assert_eq!(numbers(&chain)[..2], [0, 0]);
        // The root only offers what `a` has.
        let circle = [root, ("a", "use super::b;"), ("b", "fn f(_: crate::A) {}"), ("c", "")];
        assert_eq!(numbers(&circle)[..2], [2, 2]);
        let inner = [("a", "use self::b::B;"), ("a/b", "pub struct B(super::A);")];
        assert_eq!(numbers(&inner)[..2], [2, 2]);
        let by_sight = [("a", "use self::b::B;"), ("a/b", "pub(super) struct B;")];
        assert_eq!(numbers(&by_sight)[..2], [0, 0]);
        let by_tests = [("a", "use crate::b;"), ("b", "#[cfg(test)] mod t { use crate::a; }")];
        assert_eq!(numbers(&by_tests)[..2], [0, 0]);
    }

    #[test]
    fn files_of_a_type_and_tuples_are_counted() {
        let files = [
            ("a", "struct A; impl A { fn f(&self, (b, c): (u8, u8), d: ()) {} }"),
            ("b", "impl crate::a::A {} impl Drop for crate::a::A {}"),
            ("c", "impl Drop for A {} fn f(a: &(u8, u8)) {} #[test] fn t(a: (u8, u8)) {}"),
        ];
        assert_eq!(numbers(&files)[2..], [2, 2]);
    }
}
