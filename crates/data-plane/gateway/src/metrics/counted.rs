//! Counters of other crates, read when they are rendered.

use std::fmt;

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, counter::ConstCounter},
};

/// A counter of another crate.
pub(crate) struct Counted {
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
    pub(crate) read: Box<dyn Fn() -> u64 + Send + Sync>,
}

impl Collector for Counted {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let name = format!("narthex_{}", self.name);
        let metric = encoder.encode_descriptor(&name, self.help, None, MetricType::Counter)?;
        ConstCounter::new((self.read)()).encode(metric)
    }
}

impl fmt::Debug for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counted").field("name", &self.name).finish_non_exhaustive()
    }
}
