//! Children that misbehave in a registry: each fault stays where it belongs, and no process is
//! left.

mod calls;
mod crashes;
mod ends;
mod starts;
