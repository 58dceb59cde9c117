//! The registry's crate tests: one binary.

#[cfg(test)]
mod config;
#[cfg(test)]
mod embedding;
#[cfg(test)]
mod fake_source;
#[cfg(test)]
mod layers;
#[cfg(test)]
mod misbehaving;
#[cfg(test)]
mod mounts;
#[cfg(test)]
use narthex_testkit::peer;
#[cfg(test)]
mod pins;
#[cfg(test)]
mod servers;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod unruly;
#[cfg(test)]
mod verbs;
#[cfg(test)]
mod world;
