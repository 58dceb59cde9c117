//! The resources that the process itself uses, read from `/proc` at each rendering. Other systems
//! have no such metrics.

use std::fmt;

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
};

/// Adds the process's own numbers on each reading.
#[derive(Debug)]
pub(crate) struct ProcessCollector;

/// The resources that a process uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessNumbers {
    /// Bytes of resident memory.
    pub resident_bytes: u64,
    /// Number of threads.
    pub threads: u64,
    /// Number of open file descriptors.
    pub open_files: u64,
}

/// The resources that the system counts.
#[derive(Debug, PartialEq)]
struct Usage {
    cpu_seconds: f64,
    resident_bytes: i64,
    threads: i64,
    open_fds: i64,
}

impl Collector for ProcessCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let Some(usage) = usage() else { return Ok(()) };
        let Usage { cpu_seconds, resident_bytes, threads, open_fds } = usage;
        let help = "CPU time of the gateway, children apart";
        let name = "process_cpu_seconds";
        let metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        ConstCounter::new(cpu_seconds).encode(metric)?;
        for (name, help, value) in [
            ("process_resident_memory_bytes", "Resident memory", resident_bytes),
            ("process_threads", "Threads", threads),
            ("process_open_fds", "Open file descriptors", open_fds),
        ] {
            let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            ConstGauge::new(value).encode(metric)?;
        }
        Ok(())
    }
}

/// The resources of this process as whole numbers.
pub(super) fn numbers() -> Option<ProcessNumbers> {
    let usage = usage()?;
    Some(ProcessNumbers {
        resident_bytes: u64::try_from(usage.resident_bytes).ok()?,
        threads: u64::try_from(usage.threads).ok()?,
        open_files: u64::try_from(usage.open_fds).ok()?,
    })
}

fn usage() -> Option<Usage> {
    let stat = fs_err::read_to_string("/proc/self/stat").ok()?;
    let open_fds = fs_err::read_dir("/proc/self/fd").ok()?.count();
    let ticks = rustix::param::clock_ticks_per_second();
    let page = i64::try_from(rustix::param::page_size()).ok()?;
    // The listing itself used one descriptor.
    let open_fds = i64::try_from(open_fds.saturating_sub(1)).ok()?;
    parse(&stat, ticks, page, open_fds)
}

/// Reads `/proc/self/stat`. The program's name, in brackets, may itself have brackets and blanks.
fn parse(stat: &str, ticks: u64, page: i64, open_fds: i64) -> Option<Usage> {
    let (_, fields) = stat.rsplit_once(')')?;
    // The first of these is the third of the file: the state.
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<i64>().ok();
    let cpu_ticks = u32::try_from(field(14)? + field(15)?).ok()?;
    let ticks = u32::try_from(ticks).ok().filter(|ticks| *ticks > 0)?;
    Some(Usage {
        cpu_seconds: f64::from(cpu_ticks) / f64::from(ticks),
        resident_bytes: field(24)?.checked_mul(page)?,
        threads: field(20)?,
        open_fds,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_is_read_after_a_process_name_with_parentheses() {
        let stat = "7 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20 0 9 0 77 1000 42 99";
        let usage = parse(stat, 100, 4096, 5).unwrap();
        let expected =
            Usage { cpu_seconds: 3.0, resident_bytes: 42 * 4096, threads: 9, open_fds: 5 };
        assert_eq!(usage, expected);
        for bad in ["", "7 (x", "7 (x) S", "7 (x) S 1 2 3 4 5 6 7 8 9 10 a b c d e f g h i j k l"] {
            assert_eq!(parse(bad, 100, 4096, 5), None, "{bad}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_is_measured() {
        let usage = usage().unwrap();
        assert!(usage.resident_bytes > 0 && usage.open_fds > 2 && usage.threads > 0, "{usage:?}");
    }
}
