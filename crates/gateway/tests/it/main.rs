//! The gateway against the fixture server, without any door.

#[cfg(test)]
mod calls;
#[cfg(test)]
mod questions;
#[cfg(test)]
mod retries;
#[cfg(test)]
mod world;
