//! The crate's tests: one binary.

#[cfg(test)]
mod embedding;
#[cfg(test)]
mod entries;
#[cfg(test)]
mod examples;
#[cfg(test)]
mod levels;
#[cfg(test)]
mod oauth;
#[cfg(test)]
mod opening;
#[cfg(test)]
mod placeholders;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod reading;
#[cfg(test)]
mod runs;
#[cfg(test)]
mod schemas;
#[cfg(test)]
mod shapes;
#[cfg(test)]
mod sign_in;
#[cfg(test)]
mod urls;
#[cfg(test)]
mod world;
