//! The life of a connection: connect, serve, reconnect, sleep, end.

use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, SystemTime},
};

use narthex_model::{CallErrorKind, ServerFailure, ServerState, Target, WarningKind, with_causes};
use narthex_upstream::{Doubt, Inventory, Link, LinkError, LinkEvent, ListChanges};
use narthex_wire::Notification;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep, sleep_until, timeout},
};

use super::{
    Connection,
    open::{Fault, Opened},
    pins::Seen,
};
use crate::{
    Baseline, Found, ServerEvent,
    registry::{EVENT_QUEUE, Shared},
};

/// The pauses before a server that was ready is connected again (D17).
const BACKOFF: [Duration; 3] =
    [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4)];
/// The pauses between the probes of a server that is merely unreachable: the first, and the
/// longest. Each is twice the one before, and up to a tenth longer or shorter by chance, so that
/// daemons that lost a server together do not come back together.
const PROBE_MIN: Duration = Duration::from_secs(30);
const PROBE_MAX: Duration = Duration::from_secs(300);
/// The shortest pause before a probe that a caller wants.
const PROBE_WANTED: Duration = Duration::from_secs(1);
/// Age from which the address of a sign-in is renewed for a caller. Addresses live a few minutes.
const ADDRESS_AGE: Duration = Duration::from_secs(300);
/// Time limits of the check: for a server that has failed, and for one that may be busy.
const CHECK_GRAVE: Duration = Duration::from_secs(2);
const CHECK_SLIGHT: Duration = Duration::from_secs(10);
/// Time after which a ready server has recovered: the next loss begins with the shortest pause.
const STABLE_AFTER: Duration = Duration::from_secs(30);
/// Largest number of changed names in one line of the log.
const CHANGED_TOLD: usize = 10;
/// Time that a server whose session is no longer wanted may take to open the session.
const GIVE_BACK_DEADLINE: Duration = Duration::from_secs(2);

/// The reason why a link ended.
enum End {
    /// The registry asked the connection to end.
    Asked,
    /// No caller has used the server for long enough.
    Idle,
    Lost(Arc<str>),
    /// The server refuses for a reason that only a person can change.
    Refused(Fault),
    /// The server takes no request before a person signs in.
    SignedOut(Fault),
    /// The grant of the credential was given or dropped.
    CredentialChanged,
}

impl End {
    /// The end of a link whose server did not answer for this reason.
    fn by(error: &LinkError) -> Self {
        let fault = Fault::of(error, with_causes(error));
        match fault.needs_person() {
            true if fault.sign_in.is_some() => Self::SignedOut(fault),
            true => Self::Refused(fault),
            false => Self::Lost(fault.message.into()),
        }
    }
}

/// The step after the end of a link.
enum Next {
    /// The next attempt begins at once.
    AtOnce,
    /// The next attempt follows, after a pause if it `pauses`.
    Reconnect { pauses: bool },
    /// No attempt follows.
    Fault(Fault),
}

/// Recent losses of a server.
#[derive(Default)]
struct Losses {
    /// Number of losses without a stable time in between.
    in_a_row: usize,
    /// Number of failed attempts to connect since the last loss.
    failures: usize,
    /// True while the server is lost and not back yet.
    is_away: bool,
    /// Number of failed probes since the row is in `error`.
    probes: u32,
}

impl Losses {
    /// The pause before the next attempt; `None` after the last one.
    fn pause(&self) -> Option<Duration> {
        if self.failures >= BACKOFF.len() {
            return None;
        }
        let step = (self.in_a_row.saturating_sub(1) + self.failures).min(BACKOFF.len() - 1);
        Some(BACKOFF[step])
    }

    /// True if another attempt may follow the one that has just failed.
    fn may_try_again(&self) -> bool {
        self.failures + 1 < BACKOFF.len()
    }

    /// The pause before the next probe.
    fn probe_pause(&self) -> Duration {
        let doubled = 2_u32.saturating_pow(self.probes);
        let pause = PROBE_MIN.saturating_mul(doubled).min(PROBE_MAX);
        let mut chance = [0];
        // Without randomness all daemons wait for the same time, which does no harm.
        let chance = getrandom::fill(&mut chance).map_or(0.5, |()| f64::from(chance[0]) / 255.0);
        pause.mul_f64(0.9 + chance * 0.2)
    }

    fn lost(&mut self, lived: Duration) {
        self.in_a_row = if lived >= STABLE_AFTER { 1 } else { self.in_a_row + 1 };
        self.failures = 0;
        self.is_away = true;
    }
}

/// Connects a server and keeps it connected until it is no longer wanted or fails for good.
pub(crate) async fn run(shared: Arc<Shared>, connection: Arc<Connection>) {
    connection.note_empty_headers();
    if connection.settings.awaits_consent {
        connection.ending().await;
        return connection.end(&shared, None).await;
    }
    let mut life = Life { shared: &shared, connection: &connection, link: None };
    {
        let mut leading = Box::pin(life.lead());
        tokio::select! {
            biased;
            () = connection.ending() => {
                // A session that is being opened gets its id only with the server's answer. Without
                // the id, narthex cannot end the session at the server.
                if connection.is_opening_session() {
                    drop(timeout(GIVE_BACK_DEADLINE, &mut leading).await);
                }
            }
            fault = &mut leading => {
                connection.failed(&shared, fault, IsProbed::No);
                // The row and the links of other callers stay until the connection is given up.
                connection.ending().await;
            }
        }
    }
    let link = life.link.take().or_else(|| connection.at_hand());
    connection.end(&shared, link).await;
}

/// Tells if a server in `error` is probed until it comes back by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IsProbed {
    Yes,
    No,
}

struct Life<'a> {
    shared: &'a Arc<Shared>,
    connection: &'a Arc<Connection>,
    /// The current link.
    link: Option<Arc<Link>>,
}

impl Life<'_> {
    /// Connects and serves until a fault is final, and returns that fault.
    async fn lead(&mut self) -> Fault {
        let mut dialect = None;
        let mut losses = Losses::default();
        let mut has_lived = false;
        let mut has_forgotten = false;
        loop {
            let (events, mut received) = mpsc::channel(EVENT_QUEUE);
            self.connection.credential_read();
            let opening =
                Box::pin(self.connection.open(self.shared, dialect, events, &mut received));
            let mut pauses = true;
            match opening.await {
                Ok(opened) => {
                    dialect = Some(opened.dialect);
                    self.is_back(&mut losses);
                    (has_lived, has_forgotten) = (true, false);
                    losses.probes = 0;
                    match self.serve(opened, &mut received, &mut losses).await {
                        Next::AtOnce => continue,
                        Next::Reconnect { pauses: after } => pauses = after,
                        Next::Fault(fault) => return fault,
                    }
                }
                Err(Fault { sign_in: Some(wanted), message, .. }) => {
                    dialect = None;
                    self.connection.authenticating(self.shared, &message, *wanted);
                    self.until_signed_in().await;
                    continue;
                }
                // The server works, unless it forgets again.
                Err(fault) if fault.is_forgotten && !has_forgotten => {
                    has_forgotten = true;
                    continue;
                }
                Err(fault) if has_lived && losses.may_try_again() && !fault.needs_person() => {
                    losses.failures += 1;
                    // The server may speak another dialect after its new start.
                    dialect = None;
                    self.connection.note_fault(&fault);
                }
                Err(fault) => {
                    losses.failures += 1;
                    dialect = None;
                    match self.is_down(fault, has_lived, &mut losses).await {
                        Some(fault) => return fault,
                        None => continue,
                    }
                }
            }
            let attempt = u32::try_from(losses.failures + 1).unwrap_or(u32::MAX);
            self.connection.update(self.shared, |found| {
                found.activity = Some("reconnecting");
                found.attempt = attempt;
                found.is_backing_off = losses.failures > 0;
            });
            sleep(losses.pause().filter(|_| pauses).unwrap_or_default()).await;
            if losses.failures > 0 {
                self.connection.update(self.shared, |found| found.is_backing_off = false);
            }
        }
    }

    /// Serves with a link until its end, and returns the step that follows.
    async fn serve(
        &mut self,
        opened: Opened,
        received: &mut mpsc::Receiver<LinkEvent>,
        losses: &mut Losses,
    ) -> Next {
        let link = self.link.insert(opened.link.clone()).clone();
        let since = Instant::now();
        match self.live(opened, received).await {
            End::Asked => std::future::pending().await,
            End::Idle => {
                self.sleep(&link).await;
                return Next::AtOnce;
            }
            End::SignedOut(fault) => {
                link.retire();
                let wanted = fault.sign_in.map(|wanted| *wanted).unwrap_or_default();
                self.connection.authenticating(self.shared, &fault.message, wanted);
                self.set_aside(&link);
                self.until_signed_in().await;
                return Next::AtOnce;
            }
            End::CredentialChanged => {
                link.retire();
                self.connection.signed_in(self.shared);
                self.set_aside(&link);
                return Next::AtOnce;
            }
            End::Lost(why) => self.lost(&link, &why).await,
            End::Refused(fault) => {
                self.lost(&link, &fault.message.as_str().into()).await;
                return Next::Fault(self.connection.with_remedy(fault));
            }
        }
        losses.lost(since.elapsed());
        let is_in_order = link.ended_in_order();
        if is_in_order {
            losses.in_a_row = 0;
        }
        // A session that the server forgot is no failure, unless that recurs. A program that ends
        // after each answer waits for no failure, either.
        Next::Reconnect { pauses: !(is_in_order || link.is_session_over() && losses.in_a_row == 1) }
    }

    /// Waits until a person has signed in. The wait also ends if a caller wants the server and the
    /// address of the sign-in may be too old: the next attempt gets another one.
    async fn until_signed_in(&self) {
        self.connection.is_wanted.store(false, Ordering::Release);
        let old_at = Instant::now() + ADDRESS_AGE;
        let wanted = async {
            sleep_until(old_at).await;
            while !self.connection.is_wanted.swap(false, Ordering::AcqRel) {
                self.connection.woken.notified().await;
            }
        };
        tokio::select! {
            () = self.connection.credential_news() => self.connection.signed_in(self.shared),
            () = wanted => {}
        }
    }

    /// Waits until a server that is down is to be probed. Returns the fault if the server is not
    /// probed, since a person must act.
    async fn is_down(&self, fault: Fault, has_lived: bool, losses: &mut Losses) -> Option<Fault> {
        let may_recover = self.connection.may_recover(&fault, has_lived);
        let fault = match (has_lived && !fault.needs_person(), may_recover) {
            (false, _) => self.connection.with_remedy(fault),
            (true, false) => fault.and("gave up after 3 attempts to reconnect"),
            (true, true) => {
                fault.and("3 attempts to reconnect failed; narthex tries again by itself")
            }
        };
        if !may_recover {
            return Some(fault);
        }
        self.unreachable(fault, losses).await;
        None
    }

    /// Shows the reason why the server is down, and waits until the next probe. If a caller wants
    /// the server, the wait ends after a second.
    async fn unreachable(&self, fault: Fault, losses: &mut Losses) {
        let tried = Instant::now();
        let pause = losses.probe_pause();
        self.connection.is_wanted.store(false, Ordering::Release);
        self.connection.failed(self.shared, fault, IsProbed::Yes);
        let wanted = async {
            while !self.connection.is_wanted.swap(false, Ordering::AcqRel) {
                self.connection.woken.notified().await;
            }
            sleep_until(tried + PROBE_WANTED).await;
        };
        // A probe that a caller wants is no sign of how long the server stays away.
        tokio::select! {
            () = sleep(pause) => losses.probes += 1,
            () = wanted => {}
            () = self.connection.credential_news() => {}
        }
    }

    /// Publishes each return of the server exactly once (R-E41).
    fn is_back(&self, losses: &mut Losses) {
        if !std::mem::take(&mut losses.is_away) {
            return;
        }
        let reconnects = self.connection.found().reconnects + 1;
        let attempt = u32::try_from(losses.failures + 1).unwrap_or(u32::MAX);
        self.connection.update(self.shared, |found| {
            (found.reconnects, found.reconnected_by) = (reconnects, attempt);
        });
        let alias = self.connection.alias().clone();
        self.shared.event(ServerEvent::Reconnected { alias, reconnects, attempt });
    }

    async fn lost(&mut self, link: &Arc<Link>, why: &Arc<str>) {
        let (shared, alias) = (self.shared, self.connection.alias());
        shared.event(ServerEvent::Lost { alias: alias.clone(), reason: why.clone() });
        // The link is retired before the row changes: a caller that gives the connection up later
        // finds no link to retire.
        link.retire();
        if link.closed().is_cancelled() && !link.is_session_over() {
            link.health().failed(CallErrorKind::TransportError, why);
        }
        self.connection.update(shared, |found| {
            found.state = ServerState::Connecting;
            found.activity = Some("reconnecting");
            found.link = None;
            found.losses += 1;
            found.loss = Some(why.clone());
        });
        if link.closed().is_cancelled() {
            self.connection.stopped(shared, link).await;
        } else {
            self.set_aside(link);
        }
        self.link = None;
    }

    /// Leaves a link to the calls that the server still answers; no attempt waits for them.
    fn set_aside(&mut self, link: &Arc<Link>) {
        self.connection.keep(link);
        let (connection, link) = (self.connection.clone(), link.clone());
        let ending = async move {
            connection.end_link(&link).await;
        };
        self.shared.tasks.spawn_on(ending, &self.shared.home());
        self.link = None;
    }

    /// Stops the server and waits until it is wanted again.
    async fn sleep(&mut self, link: &Arc<Link>) {
        tracing::info!(server.name = %self.connection.alias(), "stopped: it was idle");
        self.connection.is_wanted.store(false, Ordering::Release);
        link.retire();
        self.connection.update(self.shared, |found| {
            found.link = None;
            found.is_asleep = true;
        });
        self.connection.stopped(self.shared, link).await;
        self.link = None;
        // A caller that came together with an earlier one has left a stale notification, which is
        // ignored.
        while !self.connection.is_wanted.swap(false, Ordering::AcqRel) {
            self.connection.woken.notified().await;
        }
    }

    /// Shows the server as ready and handles its own messages, until the link ends.
    async fn live(&self, opened: Opened, events: &mut mpsc::Receiver<LinkEvent>) -> End {
        let Opened { link, dialect: _, seen, turn, is_stale } = opened;
        // Failures of the opening, and failures of an earlier link, are no sign for this link.
        link.health().clear();
        self.connection.ready(self.shared, link.clone(), seen);
        drop(turn);
        let handling = async {
            if is_stale {
                relist(self.shared, self.connection, &link).await;
            }
            self.follow(&link, events).await
        };
        tokio::select! {
            biased;
            () = self.connection.ending() => End::Asked,
            end = Box::pin(handling) => end,
            end = Box::pin(self.fails_its_check(&link)) => end,
            () = self.connection.credential_news() => End::CredentialChanged,
            () = self.is_idle(&link) => End::Idle,
        }
    }

    /// Checks the server whenever calls make it doubtful that it works (D30); resolves with the
    /// cause when the check fails. Meanwhile a server that works for no caller is not `ready`.
    async fn fails_its_check(&self, link: &Arc<Link>) -> End {
        let health = link.health();
        loop {
            let is_grave = health.doubted().await == Doubt::Grave;
            // Without a credential the server may still answer a ping, but works for no call. A
            // person may have signed in since the call.
            if let Some(error) = health.take_signed_out()
                && !self.connection.has_credential()
            {
                return End::by(&error);
            }
            if is_grave {
                self.connection.update(self.shared, |found| {
                    found.state = ServerState::Connecting;
                    found.activity = Some("checking");
                    found.link = None;
                });
            }
            // The doubt is cleared after the row has changed: a caller that finds no doubt reads
            // the row.
            health.clear();
            let within = if is_grave { CHECK_GRAVE } else { CHECK_SLIGHT };
            let checked = timeout(within, link.ping()).await;
            if link.closed().is_cancelled() {
                // The end of the link has its own reason, which another future reports.
                std::future::pending::<()>().await;
            }
            match checked {
                Ok(Ok(())) if is_grave => self.connection.update(self.shared, |found| {
                    found.state = ServerState::Ready;
                    found.activity = None;
                    found.link = Some(link.clone());
                }),
                Ok(Ok(())) => {}
                Ok(Err(error)) => return End::by(&error),
                Err(_late) => {
                    let text = format!("no answer to a check within {} s", within.as_secs());
                    health.failed(CallErrorKind::Timeout, &text);
                    return End::Lost(text.into());
                }
            }
        }
    }

    /// Follows the server's own messages until the link is lost. Callers are notified of changed
    /// lists once these were read.
    async fn follow(&self, link: &Arc<Link>, events: &mut mpsc::Receiver<LinkEvent>) -> End {
        let mut changes = ListChanges::default();
        loop {
            tokio::select! {
                biased;
                () = changes.due() => {
                    let notices = changes.begin();
                    let mut reading = Box::pin(relist(self.shared, self.connection, link));
                    loop {
                        tokio::select! {
                            biased;
                            () = &mut reading => break,
                            event = events.recv() => {
                                if let Some(end) = self.heard(link, event, &mut changes).await {
                                    return end;
                                }
                            }
                        }
                    }
                    changes.done();
                    self.warn_of(&changes);
                    for notice in notices {
                        self.shared.notice(self.connection, notice);
                    }
                }
                event = events.recv() => {
                    if let Some(end) = self.heard(link, event, &mut changes).await {
                        return end;
                    }
                }
                () = changes.quieted() => {
                    changes.calm();
                    self.warn_of(&changes);
                }
            }
        }
    }

    async fn heard(
        &self,
        link: &Arc<Link>,
        event: Option<LinkEvent>,
        changes: &mut ListChanges,
    ) -> Option<End> {
        match event {
            None => return Some(End::Lost("the connection ended".into())),
            Some(LinkEvent::Closed(why)) => return Some(End::Lost(why)),
            // The shared link declares no client capabilities.
            Some(LinkEvent::Request(request)) => link.refuse_undeclared(&request).await,
            Some(LinkEvent::Notification(message)) => {
                match Notification::is_list_change(message.method()) {
                    true => changes.heard(message),
                    false => self.shared.notice(self.connection, message),
                }
            }
        }
        None
    }

    fn warn_of(&self, changes: &ListChanges) {
        let warning = changes.endless().map(|pause| {
            let seconds = pause.as_secs();
            format!(
                "the server announces changes of its lists too often, so narthex reads them only \
                 every {seconds} s"
            )
        });
        self.connection.warn(self.shared, WarningKind::ListChanges, warning);
    }

    /// Resolves when no caller has used the server for the time in its settings.
    async fn is_idle(&self, link: &Arc<Link>) {
        let Some(limit) = self.connection.settings.idle_stop else {
            return std::future::pending().await;
        };
        loop {
            let idle = match self.connection.further_count() {
                0 => link.idle().unwrap_or_default(),
                _ => Duration::ZERO,
            };
            match limit.checked_sub(idle).filter(|left| !left.is_zero()) {
                Some(left) => sleep(left).await,
                None if link.retire_unused() => return,
                // A caller entered the link just now.
                None => {}
            }
        }
    }
}

impl Connection {
    fn ready(&self, shared: &Shared, link: Arc<Link>, seen: Seen) {
        self.update(shared, |found| {
            found.state = ServerState::Ready;
            found.activity = None;
            found.error = None;
            found.warnings = Arc::default();
            (found.is_asleep, found.is_probed) = (false, false);
            found.attempt = 0;
            found.is_backing_off = false;
            self.listed(found, seen);
            found.link = Some(link);
            found.last_check = Some(SystemTime::now());
        });
    }

    /// Stores the present lists of the server. If more names differ from the first lists than
    /// before, logs the differences in one line.
    pub(super) fn listed(&self, found: &mut Found, seen: Seen) {
        let Seen { inventory, facts, pinned } = seen;
        let is_pinned = pinned.is_some();
        let listed = pinned.as_ref().map_or(&inventory, |said| said.listed());
        for warning in
            listed.warnings().iter().filter(|one| !found.inventory.warnings().contains(one))
        {
            tracing::warn!(server.name = %self.alias(), "{warning}");
        }
        found.inventory = inventory;
        found.inventory_version += 1;
        found.facts = Some(facts.clone());
        found.pinned = pinned;
        self.match_gates(found);
        // Runs review the lists that are mounted for runs alone, and pinned lists were reviewed.
        if !self.is_shown() || is_pinned {
            return;
        }
        let first = found.first.get_or_insert_with(|| {
            let first = Baseline::new(&found.inventory, &facts);
            Arc::new(first)
        });
        let changed = first.changed(&found.inventory, &facts);
        if changed.len() > found.changed {
            let shown = changed.iter().take(CHANGED_TOLD).cloned().collect::<Vec<_>>().join(", ");
            tracing::warn!(
                server.name = %self.alias(),
                "its definitions differ from those that it listed first, and clients get the new \
                 ones: {} changed: {shown}", changed.len()
            );
        }
        found.changed = changed.len();
    }

    /// Logs each gate without a match in the lists once: its author meant to gate an item that is
    /// open.
    fn match_gates(&self, found: &mut Found) {
        let all = found.pinned.as_ref().map_or(&found.inventory, |said| said.listed());
        let unmatched = self.definition.gates.unmatched(&all.names());
        if *unmatched == *found.unmatched {
            return;
        }
        for gate in unmatched.iter().filter(|_| self.is_shown()) {
            tracing::warn!(server.name = %self.alias(), "{gate}");
        }
        found.unmatched = unmatched.into();
    }

    /// The fault with a person's remedy for a credential that is refused.
    fn with_remedy(&self, fault: Fault) -> Fault {
        match super::remedy::of(&self.definition, self.is_shown()).filter(|_| fault.is_refused) {
            Some(remedy) => fault.and(remedy),
            None => fault,
        }
    }

    /// True if a server that failed for this reason is probed until it is back. A person must mend
    /// credentials; a server that was never reached may be configured wrongly, unless time may mend
    /// it.
    fn may_recover(&self, fault: &Fault, has_lived: bool) -> bool {
        let is_remote = matches!(self.definition.target, Target::Http(_));
        let is_temporary = fault.is_unreachable || has_lived;
        self.definition.recovers && is_remote && is_temporary && !fault.needs_person()
    }

    /// Stores the cause of a failed attempt where callers and operators see it.
    fn note_fault(&self, fault: &Fault) {
        self.found().health.failed(fault.kind, &fault.message);
    }

    fn failed(&self, shared: &Shared, fault: Fault, is_probed: IsProbed) {
        self.note_fault(&fault);
        let (kind, message) = (fault.kind, fault.text());
        let is_told = |error: &ServerFailure| error.operator_cause() == message;
        let is_new = !self.found().error.as_ref().is_some_and(is_told);
        if is_new {
            let name = self.alias();
            tracing::warn!(server.name = %name, error.kind = %kind, "server failed: {message}");
        }
        self.update(shared, |found| {
            found.state = ServerState::Error;
            found.activity = None;
            found.link = None;
            (found.is_asleep, found.is_backing_off) = (false, false);
            found.is_probed = is_probed == IsProbed::Yes;
            found.probes += 1;
            found.error = Some(ServerFailure::new(kind, message));
            if !found.inventory.is_empty() {
                found.had = std::mem::take(&mut found.inventory);
                found.inventory_version += 1;
            }
        });
    }

    async fn stopped(&self, shared: &Shared, link: &Arc<Link>) {
        if link.stop().await == narthex_upstream::Ended::Killed {
            self.update(shared, |found| found.forced_kills += 1);
            shared.event(ServerEvent::Killed { alias: self.alias().clone() });
        }
    }
}

/// Reads the lists anew, and publishes the part that callers may see.
pub(crate) async fn relist(shared: &Arc<Shared>, connection: &Arc<Connection>, link: &Arc<Link>) {
    let within = connection.settings.deadlines.list;
    // Pinned definitions are listed and reviewed in turns, so that the newest list counts.
    let _listing = connection.turn_to_list().await;
    let known = connection.found();
    let known = known.pinned.as_ref().map_or(&known.inventory, |said| said.listed());
    if let Some(inventory) = Inventory::fetch_anew(link, within, known).await {
        // The turn begins only when the lists are there: a server that does not answer delays no
        // decision.
        let turn = connection.turn_to_look().await;
        let seen = connection.seen_anew(shared, inventory, link.facts(), turn.as_ref()).await;
        connection.update(shared, |found| {
            connection.listed(found, seen);
            found.last_check = Some(SystemTime::now());
        });
    }
}
