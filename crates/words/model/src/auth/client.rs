//! Clients of authorization servers.

use crate::Secret;

/// A client that an operator has registered.
#[derive(Debug, Clone, PartialEq)]
pub struct OAuthClient {
    /// The client's id.
    pub id: String,
    /// The client's secret; public clients have none.
    pub secret: Option<Secret>,
}
