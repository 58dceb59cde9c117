//! Numbers of other crates, read when they are rendered.

use std::fmt;

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
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

/// Numbers of another crate, by the value of one label.
pub struct Labelled<N> {
    /// The name, without the prefix of the program.
    pub name: &'static str,
    /// The meaning of the numbers.
    pub help: &'static str,
    /// The label. Its values must be of a bounded set, and none may be text of a client.
    pub label: &'static str,
    /// Reads the present numbers. Must not block.
    pub read: Box<dyn Fn() -> Vec<(String, N)> + Send + Sync>,
}

/// Numbers that only rise.
#[derive(Debug)]
pub(crate) struct LabelledCounter(pub(crate) Labelled<u64>);

/// Numbers that rise and fall.
#[derive(Debug)]
pub(crate) struct LabelledGauge(pub(crate) Labelled<i64>);

impl Collector for LabelledCounter {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        self.0.encode(encoder, MetricType::Counter, ConstCounter::new)
    }
}

impl Collector for LabelledGauge {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        self.0.encode(encoder, MetricType::Gauge, ConstGauge::new)
    }
}

impl<N> Labelled<N> {
    /// Writes one line a number. Without a number nothing is written.
    fn encode<M: EncodeMetric>(
        &self,
        mut encoder: DescriptorEncoder<'_>,
        kind: MetricType,
        metric_of: impl Fn(N) -> M,
    ) -> Result<(), fmt::Error> {
        let all = (self.read)();
        if all.is_empty() {
            return Ok(());
        }
        let name = format!("narthex_{}", self.name);
        let mut metric = encoder.encode_descriptor(&name, self.help, None, kind)?;
        for (value, number) in all {
            let labels = [(self.label, value)];
            metric_of(number).encode(metric.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

impl<N> fmt::Debug for Labelled<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Labelled").field("name", &self.name).finish_non_exhaustive()
    }
}
