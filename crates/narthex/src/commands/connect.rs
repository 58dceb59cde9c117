//! `narthex connect`: the daemon's Unix socket as standard input and output.

use std::{path::PathBuf, process::ExitCode};

use narthex_cli::ConnectArgs;
use narthex_model::{Alias, ErrorKind};
use tokio::{
    io::{AsyncWriteExt, copy, stdin, stdout},
    net::UnixStream,
};

use crate::{Failure, cli::Context, daemon_client::given_token, data_dir::DataDir, output};

const OF_A_RUN: &str = "the token is a run's, and `connect` has the daemon's own run: use the \
    endpoint that `narthex runs create` shows, or unset NARTHEX_TOKEN and --token-file";

/// Standard output belongs to the protocol: failures go to standard error in any format.
pub(crate) async fn run(args: &ConnectArgs, context: &Context) -> ExitCode {
    match connect(args.server.as_ref(), context).await {
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

async fn connect(server: Option<&Alias>, context: &Context) -> Result<(), Failure> {
    // Whoever has a run's token would get more than that run, and not know it.
    if given_token(&context.settings)?.is_some_and(|token| token.expose().starts_with("nxt_")) {
        return Err(Failure::usage(OF_A_RUN));
    }
    let path = socket(server, context)?;
    let stream = UnixStream::connect(&path).await.map_err(|error| {
        let text = match server {
            Some(alias) => format!(
                "cannot connect to {}: {error}; does the daemon have a server `{alias}`? See \
                 `narthex status`",
                path.display()
            ),
            None => format!("cannot connect to {}: {error}", path.display()),
        };
        Failure::new(ErrorKind::Unavailable, text)
    })?;
    let (mut from_daemon, mut to_daemon) = stream.into_split();
    let asking = async {
        copy(&mut stdin(), &mut to_daemon).await?;
        // The client has no more to say; what it asked is still to be answered.
        to_daemon.shutdown().await
    };
    let mut output = stdout();
    let answering = async {
        let answered = copy(&mut from_daemon, &mut output).await;
        output.flush().await?;
        answered
    };
    tokio::pin!(asking, answering);
    let is_input_open = tokio::select! {
        asked = &mut asking => match asked {
            Ok(()) => false,
            // A daemon that has gone shows on the other side as well, after its last answers.
            Err(error) => {
                tracing::debug!(%error, "could not pass on standard input");
                true
            }
        },
        answered = &mut answering => return end(answered, true),
    };
    end(answering.await, is_input_open)
}

fn end(answered: std::io::Result<u64>, is_input_open: bool) -> Result<(), Failure> {
    match answered {
        Ok(_) if !is_input_open => Ok(()),
        Ok(_) => Err(Failure::new(
            ErrorKind::Unavailable,
            "the daemon closed the connection; is it still running? See `narthex status`",
        )),
        // The client went away without closing its end first.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => {
            let text = format!("the connection to the daemon broke: {error}");
            Err(Failure::new(ErrorKind::Unavailable, text))
        }
    }
}

fn socket(server: Option<&Alias>, context: &Context) -> Result<PathBuf, Failure> {
    let daemon = DataDir::at(&context.settings.data).daemon()?;
    let folder = daemon.socket_dir.ok_or_else(|| {
        Failure::new(
            ErrorKind::Unavailable,
            "the daemon has no Unix socket; its log says why. Use its HTTP address instead",
        )
    })?;
    Ok(folder.join(server.map_or_else(|| "mcp.sock".to_owned(), |alias| format!("{alias}.sock"))))
}
