//! Kinds of events.

macro_rules! kinds {
    ($($(#[doc = $doc:literal])+ $name:ident = $word:literal;)+) => {
        /// The kind of an event (X-E99).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum EventKind {
            $($(#[doc = $doc])+ $name,)+
        }

        impl EventKind {
            /// All kinds.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// The name in tables and documents.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)+
                }
            }
        }
    };
}

kinds! {
    /// The agent reports its current activity.
    AgentStatus = "agent.status";
    /// The agent shows an artifact of its work.
    AgentArtifact = "agent.artifact";
    /// The agent shares files.
    AgentShare = "agent.share";
    /// The agent comments on a share.
    AgentComment = "agent.comment";
    /// The agent asks its humans a question, which a message answers.
    AgentInputRequest = "agent.input_request";
    /// The agent reports an error in its own words.
    AgentError = "agent.error";
    /// The agent requests a grant.
    AgentPermissionRequest = "agent.permission_request";
    /// The agent sends a message to its caller.
    AgentMessage = "agent.message";
    /// A message for the agent.
    UserMessage = "user.message";
    /// A human has created the requested grant (X-E83).
    PermissionGranted = "permission.granted";
    /// A human has denied the requested grant (X-E83).
    PermissionDenied = "permission.denied";
    /// The session was created, with its first run.
    SessionCreated = "session.created";
    /// A further run was created in the session.
    SessionResumed = "session.resumed";
    /// The session was suspended until a user resumes it; its runs have ended.
    SessionSuspended = "session.suspended";
    /// A server of a run is mounted (R-E31).
    McpMount = "mcp.mount";
    /// A server of a run was unmounted (R-E31).
    McpUnmount = "mcp.unmount";
    /// A server of a run does not start, or is lost (R-E40).
    McpError = "mcp.error";
    /// A lost server of a run is back (R-E41).
    McpReconnect = "mcp.reconnect";
    /// A run of the session, or one that the session wanted to create, was refused.
    SessionRunRefused = "session.run_refused";
    /// The agent reports that its work is done.
    SessionCompleted = "session.completed";
    /// The executor of the session failed; the platform reports this.
    SessionFailed = "session.failed";
    /// The parent run has ended the session.
    SessionCancelledByParent = "session.cancelled_by_parent";
    /// The platform asks an orchestrator to check something (X-E88).
    SessionWake = "session.wake";
    /// A reminder of an unacknowledged message of the session (X-E93).
    SessionMessageUnread = "session.message_unread";
    /// A message that this session has sent was given up or has expired (X-E93).
    SessionMessageUndelivered = "session.message_undelivered";
    /// The session has ended: no run can be created in it any more.
    SessionEnded = "session.ended";
}

impl EventKind {
    /// The kind of this name.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.as_str() == word)
    }

    /// True if the session itself acts, and not another party by a message or a decision.
    #[must_use]
    pub fn is_own(self) -> bool {
        match self {
            Self::AgentStatus
            | Self::AgentArtifact
            | Self::AgentShare
            | Self::AgentComment
            | Self::AgentInputRequest
            | Self::AgentError
            | Self::AgentPermissionRequest
            | Self::AgentMessage
            | Self::SessionCreated
            | Self::SessionResumed
            | Self::SessionCompleted => true,
            Self::UserMessage
            | Self::PermissionGranted
            | Self::PermissionDenied
            | Self::SessionFailed
            | Self::SessionCancelledByParent
            | Self::SessionRunRefused
            | Self::SessionWake
            | Self::SessionMessageUnread
            | Self::SessionMessageUndelivered
            | Self::SessionEnded
            | Self::SessionSuspended
            | Self::McpMount
            | Self::McpUnmount
            | Self::McpError
            | Self::McpReconnect => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// X-E99: each has a word of its own, in a form that the store's filter can distinguish.
    #[test]
    fn x_e99_kinds_are_read_by_their_words() {
        for kind in EventKind::ALL {
            let word = kind.as_str();
            assert_eq!(EventKind::parse(word), Some(*kind));
            assert!(word.bytes().all(|b| matches!(b, b'a'..=b'z' | b'_' | b'.')), "{word}");
        }
        assert_eq!(EventKind::parse("session"), None);
        assert_eq!(EventKind::parse(""), None);
    }
}
