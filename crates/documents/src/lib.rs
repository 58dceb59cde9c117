//! Objects of the catalog as people keep them in files: JSON or YAML, an agent with its servers
//! inside, and what desktop clients keep. Read, and taken apart into what the catalog has.

mod agent_file;
mod document;
mod error;
mod pasted;

pub use agent_file::{TakenApart, take_apart};
pub use document::{Document, read, text_of, yaml};
pub use error::DocumentError;
pub use pasted::{Pasted, take_out};
