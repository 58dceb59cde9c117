//! The authorization fixture by plain requests, as a client meets it.

mod client;
mod flows;
mod grants;
mod switches;
mod token_switches;
