//! Sign-ins of narthex at the authorization servers of others, over HTTP and a store.

pub mod store;
