//! The `confinement` block of an entry. Nothing in it is passed over with a warning: a server whose
//! confinement was misspelt must not run without it.

use std::path::PathBuf;

use narthex_model::{Confinement, FileAccess, NetworkAccess, ProcessLimits};

use super::{
    node::{Node, Place, field, shortened},
    problem::EntryProblem,
    reader::{Fields, Reader},
};

const KEYS: [&str; 5] = ["filesystem", "network", "syscalls", "limits", "bwrap"];
const FILES: [&str; 2] = ["read", "write"];
const LIMITS: [&str; 4] = ["memoryMb", "processes", "openFiles", "cpuSeconds"];

/// What `network` may be, for messages.
const NETWORKS: &str = "`\"all\"`, `\"none\"` or `{\"connect\": [443]}`";

impl Reader<'_> {
    /// Reads the block; `None` if there is none, or after a fault.
    pub(super) fn confinement(
        &mut self,
        fields: &Fields,
        at: &Place,
        working_dir: Option<&PathBuf>,
    ) -> Option<Confinement> {
        let place = at.key("confinement");
        match field(fields, "confinement")? {
            Node::Text(word) if word == "strict" => {
                let root = self.context.workspace_root;
                Some(Confinement::strict(working_dir.map_or(root.to_owned(), PathBuf::clone)))
            }
            // Also where the default for all says otherwise.
            Node::Text(word) if word == "none" => Some(Confinement::default()),
            Node::Object(fields) => {
                let confinement = self.confinement_parts(fields, &place);
                if confinement.is_none() && !self.has_fault_within(&place) {
                    self.fault(&place, EntryProblem::ConfinementEmpty);
                }
                Some(confinement)
            }
            node => {
                self.wrong_type(&place, node, "`\"strict\"`, `\"none\"` or an object");
                None
            }
        }
    }

    fn confinement_parts(&mut self, fields: &Fields, at: &Place) -> Confinement {
        self.only(fields, at, &KEYS);
        Confinement {
            files: self.files(fields, at),
            network: self.network(fields, at),
            filters_system_calls: self.system_calls(fields, at),
            limits: self.limits(fields, at),
            has_namespaces: self.flag(fields, at, "bwrap").unwrap_or(false),
        }
    }

    /// Every key must be known.
    fn only(&mut self, fields: &Fields, at: &Place, known: &[&str]) {
        for (key, _) in fields.iter().filter(|(key, _)| !known.contains(&key.as_str())) {
            let known = known.join("`, `");
            let problem = EntryProblem::ConfinementKey { key: shortened(key), known };
            self.fault(at, problem);
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
        let read = self.paths(inner, &place, "read");
        let write = self.paths(inner, &place, "write");
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
            let place = place.index(index);
            match node {
                Node::Text(text) if !text.is_empty() => {
                    let path = self.expand(&place, text).map(|path| path.value);
                    paths.extend(path.map(|path| self.context.workspace_root.join(path)));
                }
                node => self.wrong_type(&place, node, "a path"),
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
                self.fault(&place, EntryProblem::ConfinementWord { wanted: NETWORKS });
                NetworkAccess::None
            }
        }
    }

    fn ports(&mut self, fields: &Fields, at: &Place) -> Vec<u16> {
        let place = at.key("connect");
        let Some(Node::List(nodes)) = field(fields, "connect") else {
            self.fault(&place, EntryProblem::ConfinementWord { wanted: NETWORKS });
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
                self.fault(&at.key("syscalls"), EntryProblem::ConfinementWord { wanted });
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
}

fn whole(node: &Node) -> Option<u64> {
    match node {
        Node::Number(number) => number.as_u64().filter(|number| *number > 0),
        _ => None,
    }
}
