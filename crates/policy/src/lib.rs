//! The only maker of a Permit: decides whether one request may be forwarded.
