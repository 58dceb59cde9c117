//! Child processes as actors: groups, stop ladder, captured logs.
