//! The shares of agents, and comments on them.

use super::super::operation::{Content, Operation, delete, get, of, patch, post};
use crate::shapes;

pub(super) const OPERATIONS: &[Operation] = &[
    get("/api/workspaces/{workspace}/shares", "share_list", "Lists the shares")
        .asks(&["after", "limit"])
        .gives(of::<shapes::Page<shapes::Share>>()),
    get("/api/workspaces/{workspace}/shares/{id}", "share_show", "Shows one share with its files")
        .gives(of::<shapes::ShareWhole>()),
    delete(
        "/api/workspaces/{workspace}/shares/{id}",
        "share_delete",
        "Deletes a share with its comments",
    )
    .ends(),
    get(
        "/api/workspaces/{workspace}/shares/{id}/content",
        "share_content",
        "Downloads a file of a share",
    )
    .asks(&["share_path"])
    .answers(200, Content::File, &["ContentDisposition"])
    .refuses(&[400]),
    get(
        "/api/workspaces/{workspace}/shares/{id}/comments",
        "share_comments",
        "Lists the threads of comments on a share",
    )
    .asks(&["after", "limit"])
    .gives(of::<shapes::Page<shapes::ShareThread>>()),
    post(
        "/api/workspaces/{workspace}/shares/{id}/comments",
        "share_comment",
        "Comments on a share; its agent gets the comment as a message",
    )
    .takes(of::<shapes::ShareCommentNew>())
    .makes(of::<shapes::ShareThread>())
    .refuses(&[429]),
    patch(
        "/api/workspaces/{workspace}/shares/{id}/comments/{thread}",
        "share_thread_change",
        "Resolves or reopens a thread of comments",
    )
    .takes(of::<shapes::ShareThreadChange>())
    .gives(of::<shapes::ShareThread>()),
];
