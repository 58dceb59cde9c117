//! The shapes of the API: a type for each answer and for each body.
//!
//! Handlers answer with these types, and the OpenAPI document has the schemas that are generated
//! from them. A doc comment is the description of its type or member in the document.
//!
//! An answer is a `Serialize` type. A body is read member by member where it is stored, so that all
//! faults are reported at once; its type gives the schema, and a test sends its example.
//!
//! A layer of its own: imports no other module of this crate.

mod access;
mod audit;
mod claims;
mod events;
mod files;
mod grants;
mod ids;
mod limits;
mod outbound;
mod page;
mod policy;
mod runs;
mod schema;
mod secrets;
mod servers;
mod sessions;
mod shares;
mod watching;

pub(crate) use self::{
    access::*,
    audit::*,
    claims::*,
    events::*,
    files::*,
    grants::*,
    ids::*,
    limits::*,
    outbound::*,
    page::{Listed, PAGE_MAX, Page},
    policy::*,
    runs::*,
    schema::{Nullable, Schemas, Shape},
    secrets::*,
    servers::*,
    sessions::*,
    shares::*,
    watching::*,
};
