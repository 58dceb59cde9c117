//! Servers in a registry: their starts, inventories, losses and ends.

mod ending;
mod health;
mod lists;
mod losing;
mod sign_ins;
mod starting;
