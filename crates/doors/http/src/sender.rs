//! The address of the other end of a connection, beside the requests that need it. Imports no other
//! module of this crate.

use std::net::IpAddr;

use http::{Request, request::Parts};
use narthex_oauth::server::REGISTER_PATH;

/// The address of the other end of a connection.
#[derive(Debug, Clone, Copy)]
struct Sender(IpAddr);

/// Notes the sender of a registration. Other requests do not need it, and the map of extensions
/// costs an allocation.
pub(crate) fn note<B>(request: &mut Request<B>, sender: IpAddr) {
    if request.uri().path() == REGISTER_PATH {
        request.extensions_mut().insert(Sender(sender));
    }
}

/// The noted sender of a request; `None` for a request of this process.
pub(crate) fn of(parts: &Parts) -> Option<IpAddr> {
    parts.extensions.get().map(|Sender(address)| *address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn door_a4_a_registration_has_the_address_of_its_sender() {
        let address = IpAddr::from([93, 184, 216, 34]);
        let noted = |path: &str| {
            let mut request = Request::builder().uri(path).body(()).unwrap();
            note(&mut request, address);
            of(&request.into_parts().0)
        };
        assert_eq!(noted("/register"), Some(address));
        assert_eq!(noted("/mcp"), None);
    }
}
