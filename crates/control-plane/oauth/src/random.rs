//! Random texts.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

/// Random bytes as base64url, which is valid in a URL, a form and a header.
///
/// # Errors
/// When the operating system gives none.
pub(crate) fn random_text<const BYTES: usize>() -> Result<String, getrandom::Error> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}
