//! Properties of the chain: whatever is done to it is found.

mod chains;
