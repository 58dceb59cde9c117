//! One server of the run, behind the daemon.

use bytes::Bytes;
use narthex_vfs::{Answer, Device, Kind, MountName, Node};

use crate::mounter::Daemon;

/// A mount whose operations the daemon does. The daemon decides on permissions; nothing is checked
/// here.
#[derive(Debug)]
pub(crate) struct RemoteDevice {
    daemon: Daemon,
    name: MountName,
}

impl RemoteDevice {
    pub(crate) fn new(daemon: Daemon, name: MountName) -> Self {
        Self { daemon, name }
    }

    fn path(&self, node: &Node) -> String {
        format!("{}{}", self.name.path(), node.sub_path())
    }

    fn get(&self, node: Node) -> Answer<'_> {
        Box::pin(async move { self.daemon.get(&self.path(&node), "read").await })
    }

    fn post(&self, node: Node, body: Bytes) -> Answer<'_> {
        Box::pin(async move { self.daemon.post(&self.path(&node), body).await })
    }
}

impl Device for RemoteDevice {
    fn list(&self, kind: Kind) -> Answer<'_> {
        self.get(Node::List(kind))
    }

    fn call<'a>(&'a self, tool: &'a str, arguments: Bytes) -> Answer<'a> {
        self.post(Node::Tool(tool.to_owned()), arguments)
    }

    fn read<'a>(&'a self, uri: &'a str) -> Answer<'a> {
        self.get(Node::Resource(uri.to_owned()))
    }

    fn prompt<'a>(&'a self, name: &'a str, arguments: Bytes) -> Answer<'a> {
        self.post(Node::Prompt(name.to_owned()), arguments)
    }

    // Each has a name of its own: the daemon reports to observers which file was read.

    fn schema<'a>(&'a self, tool: &'a str) -> Answer<'a> {
        self.get(Node::Schema(tool.to_owned()))
    }

    fn description<'a>(&'a self, tool: &'a str) -> Answer<'a> {
        self.get(Node::Description(tool.to_owned()))
    }

    fn status(&self) -> Answer<'_> {
        self.get(Node::Status)
    }

    fn logs(&self) -> Answer<'_> {
        self.get(Node::Logs)
    }
}
