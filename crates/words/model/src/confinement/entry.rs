//! The `confinement` of an entry, as files and the catalog write it. Nothing in it is passed over
//! with a warning: a server whose confinement was misspelt must not run without it.

use std::path::PathBuf;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::{Confinement, FileAccess, NetworkAccess, ProcessLimits};
use crate::json::{Node, Place, field, shortened};

/// The `confinement` of an entry.
///
/// Serializes to its one normal form, which [`EntryConfinement::read`] reads as the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryConfinement {
    /// The confinement of [`Confinement::strict`].
    Strict,
    /// Nothing is limited, even if the default for all programs limits something.
    None,
    /// Its parts; paths are as they were written.
    Parts(Confinement),
}

/// The fault of a written confinement.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfinementProblem {
    /// A key that nothing reads.
    #[error(
        "`{key}` is not known here, and narthex does not start a server with less confinement than \
         its entry may demand"
    )]
    Key {
        /// The key, shortened.
        key: String,
        /// The allowed keys.
        known: String,
    },
    /// A word or shape that means nothing.
    #[error("this is not a confinement")]
    Word {
        /// The allowed values.
        wanted: &'static str,
    },
    /// An object that limits nothing.
    #[error("this object limits nothing")]
    Empty,
    /// JSON of another type.
    #[error("expected {wanted}, found {found}")]
    Type {
        /// The type of the found value.
        found: &'static str,
        /// The allowed type.
        wanted: &'static str,
    },
}

impl ConfinementProblem {
    /// The remedy.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            Self::Key { known, .. } => format!("use `{known}`"),
            Self::Word { wanted } => format!("use {wanted}"),
            Self::Empty => "name a limit, or write `\"strict\"` or `\"none\"`".to_owned(),
            Self::Type { wanted, .. } => format!("write {wanted}"),
        }
    }
}

const KEYS: [&str; 5] = ["filesystem", "network", "syscalls", "limits", "bwrap"];
const FILES: [&str; 2] = ["read", "write"];
const LIMITS: [&str; 4] = ["memoryMb", "processes", "openFiles", "cpuSeconds"];

/// The allowed values of `network`, for messages.
const NETWORKS: &str = "`\"all\"`, `\"none\"` or `{\"connect\": [443]}`";

type Fields = [(String, Node)];

impl EntryConfinement {
    /// Reads a confinement, and reports all its faults to `tell`, each with its place. With any
    /// fault no program may start. `None` after a fault of the whole; a path at fault is empty, so
    /// that the others keep their places.
    pub fn read(
        node: &Node,
        at: &Place,
        tell: &mut dyn FnMut(&Place, ConfinementProblem),
    ) -> Option<Self> {
        let mut reader = Reader { tell, has_fault: false };
        match node {
            Node::Text(word) if word == "strict" => Some(Self::Strict),
            Node::Text(word) if word == "none" => Some(Self::None),
            Node::Object(fields) => {
                let confinement = reader.parts(fields, at);
                if confinement.is_none() && !reader.has_fault {
                    reader.fault(at, ConfinementProblem::Empty);
                }
                Some(Self::Parts(confinement))
            }
            node => {
                reader.wrong_type(at, node, "`\"strict\"`, `\"none\"` or an object");
                None
            }
        }
    }

    /// Each path as it was written, with its place below that of the confinement.
    pub fn paths(&self, at: &Place) -> Vec<(Place, &str)> {
        let Self::Parts(Confinement { files: Some(files), .. }) = self else { return Vec::new() };
        let at = at.key("filesystem");
        let mut found = Vec::new();
        for (key, paths) in FILES.into_iter().zip([&files.read, &files.write]) {
            let at = at.key(key);
            // Paths that were read from JSON are text.
            let texts = paths.iter().enumerate().filter_map(|(i, path)| Some((i, path.to_str()?)));
            found.extend(texts.map(|(index, path)| (at.index(index), path)));
        }
        found
    }

    /// The confinement with other paths, as many as [`EntryConfinement::paths`] returns and in
    /// their order.
    #[must_use]
    pub fn with_paths(self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let Self::Parts(mut confinement) = self else { return self };
        if let Some(files) = &mut confinement.files {
            let all = files.read.iter_mut().chain(&mut files.write);
            all.zip(paths).for_each(|(path, other)| *path = other);
        }
        Self::Parts(confinement)
    }

    /// The confinement that the entry describes. A strict one lets `strict_read` be read, with all
    /// files below.
    #[must_use]
    pub fn confinement(self, strict_read: Option<PathBuf>) -> Confinement {
        match self {
            Self::Strict => Confinement::strict(strict_read),
            Self::None => Confinement::default(),
            Self::Parts(confinement) => confinement,
        }
    }
}

impl Serialize for EntryConfinement {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Strict => serializer.serialize_str("strict"),
            Self::None => serializer.serialize_str("none"),
            Self::Parts(confinement) => normal(confinement).serialize(serializer),
        }
    }
}

fn normal(confinement: &Confinement) -> Value {
    let Confinement { files, network, filters_system_calls, limits, has_namespaces } = confinement;
    let mut parts = Map::new();
    if let Some(FileAccess { read, write }) = files {
        let lists = FILES.into_iter().zip([read, write]).filter(|(_, paths)| !paths.is_empty());
        let lists: Map<_, _> = lists.map(|(key, paths)| (key.to_owned(), json!(paths))).collect();
        parts.insert("filesystem".to_owned(), Value::Object(lists));
    }
    match network {
        NetworkAccess::All => None,
        NetworkAccess::None => parts.insert("network".to_owned(), json!("none")),
        NetworkAccess::Connect(ports) => {
            parts.insert("network".to_owned(), json!({ "connect": ports }))
        }
    };
    if *filters_system_calls {
        parts.insert("syscalls".to_owned(), json!("default"));
    }
    let ProcessLimits { memory_mb, processes, open_files, cpu_seconds } = limits;
    let limits = LIMITS.into_iter().zip([memory_mb, processes, open_files, cpu_seconds]);
    let limits: Map<_, _> =
        limits.filter_map(|(key, limit)| Some((key.to_owned(), json!((*limit)?)))).collect();
    if !limits.is_empty() {
        parts.insert("limits".to_owned(), Value::Object(limits));
    }
    if *has_namespaces {
        parts.insert("bwrap".to_owned(), json!(true));
    }
    let mut parts = Value::Object(parts);
    // Normal forms are compared as texts, also with those of other builds.
    parts.sort_all_objects();
    parts
}

struct Reader<'t> {
    tell: &'t mut dyn FnMut(&Place, ConfinementProblem),
    has_fault: bool,
}

impl Reader<'_> {
    fn fault(&mut self, at: &Place, problem: ConfinementProblem) {
        self.has_fault = true;
        (self.tell)(at, problem);
    }

    fn wrong_type(&mut self, at: &Place, node: &Node, wanted: &'static str) {
        self.fault(at, ConfinementProblem::Type { found: node.found(), wanted });
    }

    fn parts(&mut self, fields: &Fields, at: &Place) -> Confinement {
        self.only(fields, at, &KEYS);
        Confinement {
            files: self.files(fields, at),
            network: self.network(fields, at),
            filters_system_calls: self.system_calls(fields, at),
            limits: self.limits(fields, at),
            has_namespaces: self.namespaces(fields, at),
        }
    }

    /// Every key must be known.
    fn only(&mut self, fields: &Fields, at: &Place, known: &[&str]) {
        for (key, _) in fields.iter().filter(|(key, _)| !known.contains(&key.as_str())) {
            let known = known.join("`, `");
            self.fault(at, ConfinementProblem::Key { key: shortened(key), known });
        }
    }

    /// The fields of the object `key`.
    fn part<'n>(
        &mut self,
        fields: &'n Fields,
        at: &Place,
        key: &str,
        known: &[&str],
    ) -> Option<(&'n Fields, Place)> {
        let place = at.key(key);
        match field(fields, key)? {
            Node::Object(inner) => {
                self.only(inner, &place, known);
                Some((inner, place))
            }
            node => {
                self.wrong_type(&place, node, "an object");
                None
            }
        }
    }

    fn files(&mut self, fields: &Fields, at: &Place) -> Option<FileAccess> {
        let (inner, place) = self.part(fields, at, "filesystem", &FILES)?;
        let [read, write] = FILES.map(|key| self.paths(inner, &place, key));
        Some(FileAccess { read, write })
    }

    fn paths(&mut self, fields: &Fields, at: &Place, key: &str) -> Vec<PathBuf> {
        let place = at.key(key);
        let nodes = match field(fields, key) {
            None => return Vec::new(),
            Some(Node::List(nodes)) => nodes,
            Some(node) => {
                self.wrong_type(&place, node, "an array of paths");
                return Vec::new();
            }
        };
        let mut paths = Vec::new();
        for (index, node) in nodes.iter().enumerate() {
            match node {
                Node::Text(text) if !text.is_empty() => paths.push(PathBuf::from(text)),
                node => {
                    self.wrong_type(&place.index(index), node, "a path");
                    // So that the others keep their places.
                    paths.push(PathBuf::new());
                }
            }
        }
        paths
    }

    fn network(&mut self, fields: &Fields, at: &Place) -> NetworkAccess {
        let place = at.key("network");
        match field(fields, "network") {
            None => NetworkAccess::All,
            Some(Node::Text(word)) if word == "all" => NetworkAccess::All,
            Some(Node::Text(word)) if word == "none" => NetworkAccess::None,
            Some(Node::Object(inner)) => {
                self.only(inner, &place, &["connect"]);
                NetworkAccess::Connect(self.ports(inner, &place))
            }
            Some(_) => {
                self.fault(&place, ConfinementProblem::Word { wanted: NETWORKS });
                NetworkAccess::None
            }
        }
    }

    fn ports(&mut self, fields: &Fields, at: &Place) -> Vec<u16> {
        let place = at.key("connect");
        let Some(Node::List(nodes)) = field(fields, "connect") else {
            self.fault(&place, ConfinementProblem::Word { wanted: NETWORKS });
            return Vec::new();
        };
        let mut ports = Vec::new();
        for (index, node) in nodes.iter().enumerate() {
            let port = whole(node).and_then(|port| u16::try_from(port).ok());
            match port {
                Some(port) => ports.push(port),
                None => self.wrong_type(&place.index(index), node, "a port from 1 to 65535"),
            }
        }
        ports
    }

    fn system_calls(&mut self, fields: &Fields, at: &Place) -> bool {
        match field(fields, "syscalls") {
            None => false,
            Some(Node::Text(word)) if word == "all" => false,
            Some(Node::Text(word)) if word == "default" => true,
            Some(_) => {
                let wanted = "`\"default\"` or `\"all\"`";
                self.fault(&at.key("syscalls"), ConfinementProblem::Word { wanted });
                true
            }
        }
    }

    fn limits(&mut self, fields: &Fields, at: &Place) -> ProcessLimits {
        let Some((inner, place)) = self.part(fields, at, "limits", &LIMITS) else {
            return ProcessLimits::default();
        };
        let [memory_mb, processes, open_files, cpu_seconds] = LIMITS.map(|key| {
            let node = field(inner, key)?;
            let limit = whole(node);
            if limit.is_none() {
                self.wrong_type(&place.key(key), node, "a whole number from 1");
            }
            limit
        });
        ProcessLimits { memory_mb, processes, open_files, cpu_seconds }
    }

    fn namespaces(&mut self, fields: &Fields, at: &Place) -> bool {
        match field(fields, "bwrap") {
            None => false,
            Some(Node::Bool(value)) => *value,
            Some(node) => {
                self.wrong_type(&at.key("bwrap"), node, "true or false");
                true
            }
        }
    }
}

fn whole(node: &Node) -> Option<u64> {
    match node {
        Node::Number(number) => number.as_u64().filter(|number| *number > 0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The stored form of an entry is read as the same entry, and repeats nothing.
    #[test]
    fn d22_the_normal_form_is_read_as_the_same() {
        let forms = [
            json!("strict"),
            json!("none"),
            json!({ "network": "none" }),
            json!({ "filesystem": {} }),
            json!({ "filesystem": { "read": ["/a", "/b"], "write": ["/c"] },
                "network": { "connect": [443] }, "syscalls": "default",
                "limits": { "memoryMb": 1, "processes": 2, "openFiles": 3, "cpuSeconds": 4 },
                "bwrap": true }),
        ];
        for form in forms {
            let node = Node::parse(form.to_string().as_bytes()).unwrap();
            let refuse = &mut |at: &Place, problem| panic!("{at}: {problem}");
            let read = EntryConfinement::read(&node, &Place::default(), refuse).unwrap();
            assert_eq!(json!(read), form);
        }
    }
}
