//! Tests of the record, its queue and its file.
