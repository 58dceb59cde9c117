//! Posts to other systems: messages of agents to channels, and decisions of humans to webhooks.
//!
//! * Address and signing key are secrets of the workspace, named and never shown.
//! * A name without a public address is refused, unless operators have allowed the host: the author
//!   of a channel must not reach hosts that only this host can reach.
//! * Signatures follow [Standard Webhooks](https://www.standardwebhooks.com).

mod channels;
mod error;
mod post;
mod provider;
mod sign;
mod webhooks;

use std::{
    fmt,
    sync::{Arc, atomic::Ordering},
};

use narthex_control::Control;

pub use self::{
    channels::{Message, Posted, Sender, channel_spelling},
    error::{MessageFailure, OutboundError},
    provider::ProviderKind,
    webhooks::{WEBHOOK_EVENTS, is_retrying},
};
use self::{post::Poster, webhooks::Counts};
pub use narthex_store::{ChannelRow, DeliveryRow, WebhookRow};

/// Posts to channels and webhooks. Clones are handles to the same value.
#[derive(Clone)]
pub struct Outbound {
    shared: Arc<Shared>,
}

struct Shared {
    control: Control,
    poster: Poster,
    counts: Counts,
}

impl Outbound {
    /// Posts for the workspaces of a control plane. Hosts in `allowed_hosts`, with or without
    /// `:port`, may have any address, and need no TLS.
    #[must_use]
    pub fn new(control: Control, allowed_hosts: Vec<String>) -> Self {
        let poster = Poster::new(allowed_hosts, control.registry().proxies());
        let counts = Counts::default();
        Self { shared: Arc::new(Shared { control, poster, counts }) }
    }

    /// Numbers of webhook events that were delivered, of failed attempts, and of events that were
    /// given up.
    #[must_use]
    pub fn counts(&self) -> [u64; 3] {
        let Counts { delivered, failed, given_up } = &self.shared.counts;
        [delivered, failed, given_up].map(|count| count.load(Ordering::Relaxed))
    }

    fn control(&self) -> &Control {
        &self.shared.control
    }
}

impl fmt::Debug for Outbound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbound").field("poster", &self.shared.poster).finish_non_exhaustive()
    }
}
