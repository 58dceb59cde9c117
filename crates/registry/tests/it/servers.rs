//! Servers in a registry: how they start, what they have, how they are lost and how they end.

mod ending;
mod health;
mod lists;
mod losing;
mod starting;
