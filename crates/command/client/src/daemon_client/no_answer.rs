//! The failure of a request that got no answer.

use narthex_http_client::ClientError;
use narthex_model::with_causes;

use crate::Failure;

/// The failure of an error of the HTTP client, with its causes.
#[must_use]
pub fn failure(error: &ClientError) -> Failure {
    Failure::new(error.kind(), with_causes(error))
}
