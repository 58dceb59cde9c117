//! Tests of the door with a real gateway and a fixture server in this process.

#![cfg(test)]

mod bounds;
mod legacy;
mod modern;
mod world;
