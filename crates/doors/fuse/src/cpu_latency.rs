//! Keeps idle processors from sleeping: to wake one for each switch between a program, this process
//! and the daemon can take longer than all that they do.

use std::{
    fs::File,
    io::{self, Write},
    path::Path,
};

use fs_err::OpenOptions;

/// The device of the kernel's limit on the time for waking (`PM QoS`).
pub(crate) const DEVICE: &str = "/dev/cpu_dma_latency";

/// Keeps all processors from sleeping for as long as the value lives.
#[derive(Debug)]
pub(crate) struct CpuLatency {
    /// The wish holds as long as the file is open.
    _wish: File,
}

impl CpuLatency {
    /// Sets the most µs that waking a processor may take: none.
    pub(crate) fn begin(device: &Path) -> io::Result<Self> {
        let mut wish = OpenOptions::new().write(true).open(device)?.into_parts().0;
        wish.write_all(&0_i32.to_ne_bytes())?;
        Ok(Self { _wish: wish })
    }
}
