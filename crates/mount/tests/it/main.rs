//! The namespace with devices that do as they are told.

mod device;
mod model;
mod operations;
mod races;
