//! The data plane: every call of every door goes through this one pipeline.
