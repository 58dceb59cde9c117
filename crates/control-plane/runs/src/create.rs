//! Creation of a run: all faults are reported at once, and a refused run leaves nothing. The steps,
//! each with the type that it gives to the next one:
//!
//! 1. `request`: the creator may request the run, and its session is known: [`Requested`].
//! 2. `resolve`: the run's agent, servers, secrets and limits are found: `Resolved`.
//! 3. `resolve`: the run's servers are started: [`Started`].
//! 4. The first lists of the servers are compared with the accepted definitions: [`Screened`].
//! 5. The gateway gets the run, and `persist` stores its row. Storing the row is the last step that
//!    may fail: a run without a row has never existed.
//! 6. The session gets an event, and the creator gets [`Created`].

pub(crate) mod created;
pub(crate) mod creator;
pub(crate) mod direct_servers;
pub(crate) mod driver;
pub(crate) mod own_servers;
pub(crate) mod parent;
pub(crate) mod persist;
mod personal_sign_in;
mod refusal;
pub(crate) mod request;
pub(crate) mod resolve;
pub(crate) mod servers;
mod sockets;
pub(crate) mod warnings;

use std::{mem::take, sync::Arc};

use narthex_catalog::{Parsed, RunRequest};
use narthex_control::ControlError;
use narthex_definitions::reviews::Screened;
use narthex_gateway::RunView;
use narthex_model::WorkspaceId;
use narthex_registry::{FirstLists, HeldBack, KeptFurther};
use narthex_store::{RunRow, SessionRow};

use crate::{
    ATTEMPTS, OpenSockets, RUNS_MAX, RunError, Runs,
    create::{
        created::Created,
        creator::Creator,
        driver::Place,
        persist::{Disclosed, begin_event},
        request::Requested,
        resolve::Started,
        servers::RunServers,
        warnings::{RunWarning, unmatched},
    },
    frozen::{Frozen, FrozenAgent, ServerSource, run_place},
    instant,
    server_events::StartedServers,
};

impl Runs {
    /// Creates a run from a JSON document, and starts it. Waits until every server is ready or has
    /// failed. A caller that disconnects meanwhile does not leave half a run.
    ///
    /// # Errors
    /// When the document or an object that it refers to is faulty, the creator may not have a
    /// requested part, a secret is not set, a server that is not optional does not start, or the
    /// store or the vault fails. Then nothing is left, and all faults of one kind are reported at
    /// once (D9).
    pub async fn create(
        &self,
        workspace: &WorkspaceId,
        text: &str,
        by: Creator,
    ) -> Result<Created, RunError> {
        let (runs, workspace, text) = (self.clone(), workspace.clone(), text.to_owned());
        let creating = async move { Box::pin(runs.create_parsed(workspace, text, by)).await };
        let created = self.control().spawn(creating).await;
        created.unwrap_or_else(|error| Err(ControlError::Bug(error).into()))
    }

    async fn create_parsed(
        &self,
        workspace: WorkspaceId,
        text: String,
        by: Creator,
    ) -> Result<Created, RunError> {
        self.control().catalog_store(&workspace).await?;
        let parsed = RunRequest::parse(text.as_bytes()).map_err(RunError::Refused)?;
        let Parsed { value: request, warnings } = parsed;
        if self.shared.gateway.runs().len() >= RUNS_MAX {
            return Err(RunError::TooMany(RUNS_MAX));
        }
        // The permission is checked first: a forbidden request has no effect, and its answer does
        // not reveal whether the request would succeed.
        let permit = self.permit_spawn(&workspace, &request, &by).await?;
        let warnings =
            warnings.into_iter().map(|one| RunWarning::of_request(one.message)).collect();
        let requested = self.requested(workspace, request, text, by).await;
        let created = match requested {
            Ok(requested) => Box::pin(self.create_requested(requested, warnings)).await,
            Err(error) => Err(error),
        };
        if let Some(permit) = permit {
            permit.ended(created.as_ref().err().map(|error| error.kind().into()));
        }
        created
    }

    async fn create_requested(
        &self,
        requested: Requested,
        warnings: Vec<RunWarning>,
    ) -> Result<Created, RunError> {
        for _ in 0..ATTEMPTS {
            self.control().look_at_cuts().await?;
            let cuts = self.control().cuts();
            let started = match self.resolve_and_start(&requested).await {
                Ok(started) => started,
                Err(error) => {
                    self.note_refused(&requested, &error).await;
                    return Err(error);
                }
            };
            // A cut before the start of a server here has not reached that server.
            if self.control().cuts() == cuts {
                return Box::pin(self.screen_and_store(requested, started, warnings)).await;
            }
            started.set.unmount().await;
        }
        Err(RunError::Changed)
    }

    /// Screens the lists of the started servers, gives the run to the gateway, and stores it.
    async fn screen_and_store(
        &self,
        requested: Requested,
        started: Started,
        mut warnings: Vec<RunWarning>,
    ) -> Result<Created, RunError> {
        let Started { set, resolved, meters, source, agent_env } = started;
        let RunServers { policy, skipped, direct, built_in, secrets, withheld, omitted, .. } =
            resolved;
        warnings.extend(resolved.warnings);
        warnings.extend(omitted.iter().map(|one| RunWarning::of_operators(one.to_string())));
        let id = requested.token.run_id();
        let servers = StartedServers::of(&set).without(&skipped);
        let (unmatched, faults) = (unmatched(&set), set.faults().to_vec());
        let (place, first) = ((&requested.workspace, id), FirstLists::of(&set));
        let mut screened = self.shared.reviews.screen_all(place, &resolved.pinned, first).await?;
        warnings.extend(take(&mut screened.warnings).into_iter().map(RunWarning::of_review));
        let tools = source.built_in_tools(requested.session.parent.is_some());
        let agent_type = source.agent().map(FrozenAgent::agent_type);
        let executor = source.agent().and_then(FrozenAgent::executor);
        let (session, sealed) = self.sealed(&requested, source, &mut screened).await?;
        let missing = servers::missing(&policy, &self.shared.gateway.registry().snapshot());
        let held = HeldBack::new(resolved.pinned, screened.held);
        let place = Place {
            run: id,
            session: session.id,
            agent: &session.agent,
            agent_type,
            is_child: session.parent.is_some(),
        };
        let authority = self.authority(&requested.workspace, place, requested.driver.clone());
        let run = RunView::with_servers(&requested.token, requested.workspace.clone(), policy, set);
        let run = run.with_built_in(built_in).with_built_in_tools(tools).with_failed(withheld);
        let run = run.frozen_to(screened.first).with_held_back(held).with_authority(authority);
        let run = Arc::new(run.with_meters(meters).with_secrets(secrets));
        self.shared.gateway.begin_run(&run).map_err(RunError::Record)?;
        let disclosed = Disclosed {
            direct: direct.as_ref(),
            env: &agent_env,
            omitted: &omitted,
            executor: executor.as_ref(),
        };
        let stored = self.open_and_store(&run, &requested, (&session, &sealed), disclosed).await;
        let (row, sockets) = stored?;
        self.shared.stored.note(id);
        self.shared.expiries.add(instant(row.expires_at), id);
        self.settle(&requested, (&row, &run), servers).await;
        if let Some(permit) = requested.parent.and_then(|parent| parent.permit) {
            permit.used();
        }
        Ok(Created {
            row,
            run,
            token: requested.token,
            faults,
            skipped,
            warnings,
            unmatched,
            omitted,
            missing,
            direct,
            sockets,
            agent_env,
            former_pids: requested.former.map(|former| former.pids).unwrap_or_default(),
        })
    }

    /// The session of a new run, and the frozen configuration of the run, both sealed.
    async fn sealed(
        &self,
        requested: &Requested,
        source: ServerSource,
        screened: &mut Screened,
    ) -> Result<(SessionRow, String), RunError> {
        let agent_type = source.agent().map(FrozenAgent::agent_type);
        let session = self.sealed_session(requested, source.inputs().text(), agent_type).await?;
        let frozen = Frozen {
            prompt: requested.prompt(),
            of: source,
            lists: take(&mut screened.lists),
            further: KeptFurther::default(),
            held: screened.held.clone(),
            from: requested.resumed_from(),
        };
        let place = run_place(requested.token.run_id());
        let sealed = self.seal(&requested.workspace, &place, &frozen.text()).await?;
        Ok((session, sealed))
    }

    /// Opens the sockets of a started run and stores its row. If either fails, the run ends.
    async fn open_and_store(
        &self,
        run: &Arc<RunView>,
        requested: &Requested,
        (session, sealed): (&SessionRow, &str),
        disclosed: Disclosed<'_>,
    ) -> Result<(RunRow, Option<OpenSockets>), RunError> {
        let opening = async {
            let sockets = self.open_sockets(run, requested.request.has_sockets)?;
            let row = self.store_recorded(requested, session, sealed, disclosed).await?;
            Ok((row, sockets))
        };
        match opening.await {
            Ok(opened) => Ok(opened),
            Err(error) => {
                self.release(requested.token.run_id()).await;
                Err(error)
            }
        }
    }

    /// Finishes the creation of a stored run.
    async fn settle(
        &self,
        requested: &Requested,
        (row, run): (&RunRow, &Arc<RunView>),
        servers: StartedServers,
    ) {
        let (kind, payload) = begin_event(requested, row);
        if row.waiting.is_some() {
            self.tell(&row.workspace, row.session, Some(row.id), (kind, payload)).await;
            // The run begins again when a client claims it.
            self.release(row.id).await;
            self.call_executors();
            return;
        }
        let reason = self.start_reason(requested);
        self.report_servers(row, Some((kind, payload)), (servers, reason)).await;
        if let Err(error) = self.take_turns(run, row).await {
            tracing::warn!(
                run.id = %row.id,
                "a run was created, but could not be prepared; it starts when its token is first \
                 used: {error}"
            );
        }
    }
}
