//! The tools that a run sees, by name and digest, for later reports (E20).

use std::{fmt, sync::Arc};

use narthex_model::Alias;
use sha2::{Digest, Sha256};

/// The tools of an aggregated endpoint at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSet {
    /// The tools, in the listed order.
    pub tools: Vec<SeenTool>,
    /// Digest of the names, servers and digests of all tools.
    pub digest: DefinitionDigest,
}

/// One tool that a run sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenTool {
    /// Qualified name of the tool.
    pub name: Arc<str>,
    /// Server of the tool.
    pub server: Alias,
    /// Digest of the definition in the server's own bytes; for narthex's own tools, of the shown
    /// definition.
    pub digest: DefinitionDigest,
}

/// SHA-256 of a shown definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DefinitionDigest([u8; 32]);

impl DefinitionDigest {
    pub(crate) fn new(sha256: [u8; 32]) -> Self {
        Self(sha256)
    }
}

impl SeenTool {
    /// A tool of this server, with its qualified name and its shown definition.
    #[must_use]
    pub fn new(name: Arc<str>, server: Alias, raw: &[u8]) -> Self {
        Self { name, server, digest: DefinitionDigest(Sha256::digest(raw).into()) }
    }
}

impl ToolSet {
    /// The set of these tools, in the listed order.
    #[must_use]
    pub fn new(tools: Vec<SeenTool>) -> Self {
        let mut whole = Sha256::new();
        for SeenTool { name, server, digest } in &tools {
            // Neither a name nor an alias has a NUL in it.
            for part in [name.as_bytes(), b"\0", server.as_str().as_bytes(), b"\0", &digest.0] {
                whole.update(part);
            }
        }
        Self { tools, digest: DefinitionDigest(whole.finalize().into()) }
    }
}

impl fmt::Display for DefinitionDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(tools: &[(&str, &str, &str)]) -> ToolSet {
        let seen = |(name, server, raw): &(&str, &str, &str)| {
            SeenTool::new((*name).into(), Alias::new(server).unwrap(), raw.as_bytes())
        };
        ToolSet::new(tools.iter().map(seen).collect())
    }

    /// E20: any difference of two sets shows in their digests, and a definition has its own.
    #[test]
    fn e20_different_tool_sets_have_different_digests() {
        let one = set(&[("mcp__a__x", "a", "{}")]);
        let digest = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
        assert_eq!(one.tools[0].digest.to_string(), digest);
        assert_eq!(one, set(&[("mcp__a__x", "a", "{}")]));
        let others = [
            set(&[]),
            set(&[("mcp__a__y", "a", "{}")]),
            set(&[("mcp__a__x", "b", "{}")]),
            set(&[("mcp__a__x", "a", "{ }")]),
            set(&[("mcp__a__x", "a", "{}"), ("mcp__a__y", "a", "{}")]),
        ];
        for other in others {
            assert_ne!(one.digest, other.digest, "{other:?}");
        }
    }
}
