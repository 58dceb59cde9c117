//! The crate tests of shares: one binary.

#[cfg(test)]
mod depot;
#[cfg(test)]
mod escapes;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod races;
#[cfg(test)]
mod world;
