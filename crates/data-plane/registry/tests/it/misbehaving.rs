//! Children that misbehave in a registry: a fault affects its own server alone, and no process is
//! left.

mod calls;
mod crashes;
mod ends;
mod starts;
