//! The gateway against the fixture server, without any door.

#[cfg(test)]
mod breadth;
#[cfg(test)]
mod calls;
#[cfg(test)]
mod ending;
#[cfg(test)]
mod following;
#[cfg(test)]
mod questions;
#[cfg(test)]
mod retries;
#[cfg(test)]
mod scripted;
#[cfg(test)]
mod world;
