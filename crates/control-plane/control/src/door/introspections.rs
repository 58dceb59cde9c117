//! Questions of services and clients about access tokens (RFC 7662).

use std::{sync::Arc, time::SystemTime};

use narthex_model::{PrincipalId, Role};
use narthex_oauth::server::{
    Asker, Client, ErrorCode, IntrospectionRequest, OAuthError, introspection,
};

use super::{
    DoorDesk,
    access::DoorAccess,
    answers::{DoorAnswer, DoorForm},
    server::DoorServer,
};
use crate::{ControlError, KnownToken};

/// Most questions of one service or client in a minute.
const QUESTIONS_MAX: usize = 600;
/// The refusal of more questions.
const TOO_MANY: OAuthError =
    OAuthError::new(ErrorCode::TemporarilyUnavailable, "too many questions; ask in a minute");

/// A service that asks about tokens, as its own token proves it.
#[derive(Debug, Clone)]
pub enum DoorAsker {
    /// The holder of the admin token.
    Operator,
    /// A service of a workspace.
    Service(Arc<KnownToken>),
}

/// A proved sender of a question.
enum Proved {
    Service(DoorAsker),
    Client(Box<Client>),
}

impl DoorDesk<'_> {
    /// Answers a question about a token. `service` is the one whose token is in the header of the
    /// request.
    ///
    /// A token that the sender may not see is inactive for it, as an unknown one is. A client sees
    /// its own tokens: anyone can register a client.
    ///
    /// # Errors
    /// When the store fails. Refusals are answers.
    pub async fn introspect(
        &self,
        form: DoorForm<'_>,
        service: Option<DoorAsker>,
    ) -> Result<DoorAnswer, ControlError> {
        let DoorForm { authorization, content_type, body } = form;
        let request = match IntrospectionRequest::read(authorization, content_type, body) {
            Ok(request) => request,
            Err(error) => return Ok(error.into()),
        };
        let asker = match (request.asker, service) {
            (Asker::Service, Some(service)) => Proved::Service(service),
            (Asker::Service, None) => return Ok(IntrospectionRequest::NO_SERVICE.into()),
            (Asker::Client(credentials), _) => match self.proved(&credentials).await? {
                Ok(client) if client.is_public() => {
                    return Ok(IntrospectionRequest::PUBLIC.into());
                }
                Ok(client) => Proved::Client(Box::new(client)),
                Err(error) => return Ok(error.into()),
            },
        };
        let (server, now) = (self.server, SystemTime::now());
        let before = asker.counted(server, now);
        if before.is_none_or(|before| before >= QUESTIONS_MAX) {
            return Ok(TOO_MANY.into());
        }
        let access = self.access(request.token.expose()).await?;
        let seen = access.filter(|access| asker.sees(access));
        let record = seen.as_ref().map(DoorAccess::record);
        Ok(DoorAnswer::plain(introspection(record, server.door().issuer(), now)))
    }
}

impl Proved {
    /// Counts a question. Returns the number of earlier ones within a minute. Clients, which
    /// anyone can register, take no room from services.
    fn counted(&self, server: &DoorServer, now: SystemTime) -> Option<usize> {
        match self {
            Self::Service(DoorAsker::Operator) => {
                server.questions.count(&PrincipalId::local_admin(), now)
            }
            Self::Service(DoorAsker::Service(token)) => {
                server.questions.count(&token.account.id, now)
            }
            Self::Client(client) => server.client_questions.count(&client.id, now),
        }
    }

    /// True if the sender may see an access token: as an operator, with a role that lists the
    /// registered clients of its workspace, or as the client that has the token.
    fn sees(&self, access: &DoorAccess) -> bool {
        match self {
            Self::Service(DoorAsker::Operator) => true,
            Self::Service(DoorAsker::Service(token)) => {
                let account = &token.account;
                let roles = account.roles.get(&access.client.row.workspace);
                let lists = [Role::Admin, Role::Auditor];
                account.is_operator
                    || roles.is_some_and(|roles| lists.iter().any(|role| roles.contains(role)))
            }
            Self::Client(client) => access.record().grant.client_id == client.id,
        }
    }
}
