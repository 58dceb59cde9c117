//! Tasks of servers: the server that made each task, and the id by which its client knows it.
//!
//! Task ids are the servers' own. At the aggregated endpoint the ids of two servers may be equal:
//! the later task then has another id there, by table, like a resource whose URI two servers list.
//!
//! This module is a layer of its own: it imports no other module of this crate, and knows no
//! session.

mod awake;
mod owner;
mod routes;

pub(crate) use awake::has_ended;
pub(crate) use owner::{TaskOwner, with_id};
pub(crate) use routes::TaskRoutes;
