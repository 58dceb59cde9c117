//! The consent of a human to a registered client, as it is stored.

use narthex_model::PrincipalId;
use narthex_oauth::server::Consent;

/// The consent of a human to a client.
#[derive(Debug, Clone)]
pub struct Connection {
    /// The human for whom the client acts.
    pub acts_for: PrincipalId,
    /// The consent.
    pub consent: Consent,
    /// True if the human may still let the client act.
    pub is_allowed: bool,
}
