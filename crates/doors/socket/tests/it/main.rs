//! The door in front of a real gateway over a fixture server in this process.

#![cfg(test)]

mod bounds;
mod legacy;
mod modern;
mod world;
