//! `narthex connect`: the daemon's Unix socket as standard input and output.
//!
//! A client starts the command once and knows nothing of daemons. So the command starts a missing
//! daemon, and connects again when the daemon has ended. The client's session is then opened again,
//! and unanswered requests get an error.

mod dial;
mod link;
mod session;

use std::process::ExitCode;

use crate::cli::ConnectArgs;
use narthex_model::{ErrorKind, command::narthex};
use tokio::sync::Notify;

use self::{
    dial::Dialer,
    link::{Input, Link, Output},
    session::Session,
};
use crate::{Context, Failure, daemon_client::given_token, output};

fn of_a_run() -> String {
    "the token belongs to a run, and `connect` reaches only the daemon's own run: configure the \
     client with the entry of `mcpServers` from the answer to the run's creation, and send this \
     token as `Authorization: Bearer`; a run with sockets is also reachable by `socat - \
     UNIX-CONNECT:PATH`"
        .to_owned()
}

/// The reason why passing messages came to its end.
enum End {
    /// The client has closed its side, and has all answers.
    Done,
    /// The daemon has closed the connection.
    Lost,
}

/// Runs the command. Standard output belongs to the protocol: failures go to standard error in any
/// format.
pub async fn run(args: &ConnectArgs, context: &Context) -> ExitCode {
    match connect(args, context).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output::notice(&match context.format.is_json() {
                true => failure.to_json().to_string(),
                false => format!("error: {failure}"),
            });
            failure.exit_code()
        }
    }
}

async fn connect(args: &ConnectArgs, context: &Context) -> Result<(), Failure> {
    // The holder of a run's token would get more than that run, and not know it.
    if given_token(&context.daemon)?.is_some_and(|token| token.expose().starts_with("nxt_")) {
        return Err(Failure::usage(of_a_run()));
    }
    let limits = context.daemon.limits;
    let (mut input, mut output) = (Input::begin(limits), Output::new());
    let mut dialer = Dialer::new(args, context, input.closed());
    let mut session = Session::new(limits);
    let mut wait = dialer.wait();
    let mut link = Link::new(dialer.dial(&mut wait).await?, limits);
    loop {
        match pass(&mut link, &mut input, &mut output, &mut session, &dialer).await? {
            End::Done => return Ok(()),
            End::Lost => {
                output.write(session.lost()).await?;
            }
        }
        if args.wait.is_zero() || input.has_ended() {
            return Err(closed());
        }
        output::notice("the daemon closed the connection; connecting again");
        link = match redial(&mut dialer, &mut session, &mut output).await {
            Ok(link) => link,
            Err(failure) => {
                // Lines that came meanwhile are answered, too.
                while let Some(line) = input.waiting() {
                    session.note_client(&line);
                }
                output.write(session.lost()).await?;
                return Err(failure);
            }
        };
        output::notice("connected again");
    }
}

/// Dials, and opens the client's session again where it had one.
async fn redial(
    dialer: &mut Dialer<'_>,
    session: &mut Session,
    output: &mut Output,
) -> Result<Link, Failure> {
    let mut wait = dialer.wait();
    loop {
        let mut link = Link::new(dialer.dial(&mut wait).await?, session.limits());
        let Some(hello) = session.hello() else { return Ok(link) };
        if dialer.within(reopens(&mut link, session, &hello)).await? {
            output.write(session.news()).await?;
            return Ok(link);
        }
        // A daemon that is about to end still takes connections.
        if !dialer.pauses(&wait).await {
            return Err(closed());
        }
    }
}

/// Opens the client's session again; false if the daemon has gone before it is open.
async fn reopens(link: &mut Link, session: &mut Session, hello: &[u8]) -> Result<bool, Failure> {
    if link.write(hello).await.is_err() {
        return Ok(false);
    }
    loop {
        let Some(line) = link.next().await? else { return Ok(false) };
        match session.is_opened_by(&line) {
            None => {}
            Some(true) => break,
            Some(false) => {
                let text = "the daemon does not know the client's session any more; start the \
                            client again";
                return Err(Failure::new(ErrorKind::Conflict, text));
            }
        }
    }
    for line in session.state() {
        if link.write(&line).await.is_err() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Passes messages until one side has ended.
///
/// # Errors
/// When a side breaks, or the daemon hangs: it has not answered the client's first message.
async fn pass(
    link: &mut Link,
    input: &mut Input,
    output: &mut Output,
    session: &mut Session,
    dialer: &Dialer<'_>,
) -> Result<End, Failure> {
    let session = std::cell::RefCell::new(session);
    let (is_asked, has_answer) = (Notify::new(), std::cell::Cell::new(false));
    let (from_daemon, to_daemon) = link.sides();
    let asking = async {
        while let Some(line) = input.next().await {
            is_asked.notify_one();
            let is_meant = session.borrow_mut().note_client(&line);
            if is_meant && let Err(error) = to_daemon.write(&line).await {
                // A daemon that has gone shows on the other side as well, after its last answers.
                tracing::debug!(%error, "standard input could not be forwarded to the daemon");
                return std::future::pending().await;
            }
        }
        // The client has no more to say; its requests must still be answered.
        drop(to_daemon.end().await);
    };
    let answering = async {
        while let Some(line) = from_daemon.next().await? {
            has_answer.set(true);
            let is_meant = session.borrow_mut().note_daemon(&line);
            if is_meant && !output.write([line]).await? {
                return Ok(End::Done);
            }
        }
        Ok(End::Lost)
    };
    let watching = async {
        is_asked.notified().await;
        dialer.listens_for_life(|| has_answer.get()).await
    };
    tokio::pin!(asking, answering, watching);
    tokio::select! {
        biased;
        end = &mut answering => return end,
        () = &mut asking => {}
        hung = &mut watching => match hung? {},
    }
    // The daemon ends once it has answered all.
    let end = tokio::select! {
        biased;
        end = answering => end?,
        hung = watching => match hung? {},
    };
    match end {
        End::Lost if session.borrow().is_answered() => Ok(End::Done),
        end => Ok(end),
    }
}

fn closed() -> Failure {
    let status = narthex("status", &[]);
    let text = format!("the daemon closed the connection; is it still running? See `{status}`");
    Failure::new(ErrorKind::Unavailable, text)
}
