//! The shapes of the API: a type for each answer and for each body.
//!
//! Handlers answer with these types, and the OpenAPI document has the schemas that are generated
//! from them. A doc comment is the description of its type or member in the document.
//!
//! An answer is a `Serialize` type. A body is read member by member where it is stored, so that all
//! faults are reported at once; its type gives the schema, and a test sends its example.
//!
//! A layer of its own: imports no other module of this crate.

/// Types of values whose schema no type of Rust has, with the schema at each use.
macro_rules! raw {
    ($($(#[doc = $about:literal])+ $name:ident = $schema:tt;)*) => {$(
        $(#[doc = $about])+
        #[derive(Debug, serde::Serialize)]
        pub(crate) struct $name(serde_json::Value);

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                std::borrow::Cow::Borrowed(stringify!($name))
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!($schema)
            }
        }
    )*};
}

/// The words of an enum that serde spells. A missing variant does not compile.
macro_rules! spelled {
    ($of:ty: $($variant:ident),+) => {{
        type Of = $of;
        let _is_complete = |one: Of| match one { $(Of::$variant)|+ => () };
        [$(Of::$variant),+].map(|one| serde_json::json!(one))
    }};
}

mod access;
mod audit;
mod catalog;
mod claims;
mod clients;
mod daemon;
mod door;
mod events;
mod files;
mod grants;
mod ids;
mod limits;
mod oauth;
mod outbound;
mod page;
mod part;
mod policy;
mod problem;
mod profiles;
mod public_registry;
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
    catalog::*,
    claims::*,
    clients::*,
    daemon::*,
    door::*,
    events::*,
    files::*,
    grants::*,
    ids::*,
    limits::*,
    oauth::*,
    outbound::*,
    page::{PAGE_MAX, Page},
    part::As,
    policy::*,
    problem::*,
    profiles::*,
    public_registry::*,
    runs::*,
    schema::{Nullable, Schemas, Shape, members},
    secrets::*,
    servers::*,
    sessions::*,
    shares::*,
    watching::*,
};
