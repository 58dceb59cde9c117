//! The system's counts for processes: processor time and memory.

use anyhow::{Context as _, anyhow};
use tokio::time::Instant;

/// The processor time of some processes at one moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Watch {
    pub(super) at: Instant,
    pub(super) cpu_ns: u64,
}

impl Watch {
    pub(super) fn look(processes: &[u32]) -> anyhow::Result<Self> {
        let cpu_ns = processes.iter().map(|pid| cpu_ns(*pid)).sum::<anyhow::Result<u64>>()?;
        Ok(Self { at: Instant::now(), cpu_ns })
    }

    /// Processor time per time that passes.
    pub(super) fn rate_since(&self, earlier: &Self) -> f64 {
        let elapsed_ns = self.at.duration_since(earlier.at).as_secs_f64() * 1e9;
        let used = self.cpu_ns.saturating_sub(earlier.cpu_ns);
        as_f64(used) / elapsed_ns
    }
}

/// Exact up to 2^53, which processor time in nanoseconds reaches after a hundred days.
#[expect(clippy::cast_precision_loss, reason = "see above")]
pub(super) fn as_f64(number: u64) -> f64 {
    number as f64
}

/// User and system time of all threads of a process, also of those that have ended.
#[cfg(target_os = "linux")]
fn cpu_ns(process: u32) -> anyhow::Result<u64> {
    use nix::{time::ClockId, unistd::Pid};

    let pid = Pid::from_raw(i32::try_from(process).context("no process id")?);
    let clock = ClockId::pid_cpu_clock_id(pid).with_context(|| format!("process {process}"))?;
    let time = clock.now().with_context(|| format!("process {process}"))?;
    let duration = std::time::Duration::from(time);
    u64::try_from(duration.as_nanos()).context("a process older than time")
}

#[cfg(not(target_os = "linux"))]
fn cpu_ns(_process: u32) -> anyhow::Result<u64> {
    Err(anyhow!("processes can only be watched on Linux"))
}

/// The resident memory of processes together. Pages that several processes have are shared out
/// among them, so that a sum counts them once.
pub(super) fn memory(processes: &[u32]) -> anyhow::Result<u64> {
    processes.iter().map(|pid| memory_of(*pid)).sum()
}

fn memory_of(process: u32) -> anyhow::Result<u64> {
    let text = fs_err::read_to_string(format!("/proc/{process}/smaps_rollup"))?;
    let kib = text.lines().find_map(|line| line.strip_prefix("Pss:")?.trim().strip_suffix(" kB"));
    let kib: u64 = kib.ok_or_else(|| anyhow!("process {process} shows no Pss"))?.trim().parse()?;
    Ok(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_uses_time_and_memory() {
        let own = [std::process::id()];
        let first = Watch::look(&own).unwrap();
        while Watch::look(&own).unwrap().cpu_ns == first.cpu_ns {}
        assert!(Watch::look(&own).unwrap().rate_since(&first) > 0.0);
        assert!(memory(&own).unwrap() > 100 * 1024);
        assert_eq!(memory(&[]).unwrap(), 0);
    }
}
