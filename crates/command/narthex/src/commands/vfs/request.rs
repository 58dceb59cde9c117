//! Requests for a path of the file tree.

use std::borrow::Cow;

use http::Method;
use narthex_vfs::ROOT;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::daemon_client::ApiRequest;

/// The request of an operation that changes nothing, such as `read`.
pub(super) fn look(path: &str, operation: &str) -> ApiRequest {
    ApiRequest::new(Method::GET, format!("{}?op={operation}", address(path)))
}

/// The daemon's path for a path of the folder, percent-encoded once.
pub(super) fn address(path: &str) -> String {
    const PLAIN: &AsciiSet =
        &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.').remove(b'~');
    format!("/vfs{}", utf8_percent_encode(&whole(path), PLAIN))
}

/// A path from its beginning.
pub(super) fn whole(path: &str) -> Cow<'_, str> {
    match path.starts_with('/') {
        true => Cow::Borrowed(path),
        false => Cow::Owned(format!("{ROOT}/{path}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absolute_and_relative_paths_address_the_namespace() {
        assert_eq!(address("/mnt/mcp"), "/vfs/mnt/mcp");
        assert_eq!(address("1-a/tools/x"), "/vfs/mnt/mcp/1-a/tools/x");
        assert_eq!(address("1-a/tools/a%2Fb"), "/vfs/mnt/mcp/1-a/tools/a%252Fb");
        assert_eq!(address("/etc/passwd"), "/vfs/etc/passwd");
    }
}
