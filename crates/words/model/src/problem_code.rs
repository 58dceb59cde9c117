//! Codes of the API's problems on which the command line decides. The texts beside them are for
//! people, and may change.

/// The request has no token, or one that is unknown, expired or revoked.
pub const TOKEN_INVALID: &str = "token_invalid";

/// The run of the token has ended.
pub const RUN_ENDED: &str = "run_ended";

/// The workspace has no share of this id.
pub const SHARE_NOT_FOUND: &str = "share_not_found";
