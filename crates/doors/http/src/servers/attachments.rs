//! The attachments of an agent, each with its own route.

use http::{HeaderValue, Method, StatusCode, header};
use narthex_control::{CatalogAttachment, CatalogConnection, CatalogError, ControlError};
use narthex_model::{CatalogKind, json::shortened};
use percent_encoding::percent_decode_str;

use super::{Answered, Asked, catalog::with_tag, document, ok};
use crate::{
    body::RequestBody,
    respond,
    routes::Target,
    shapes::{As, Attachment, AttachmentMembers, AttachmentWritten, Connection},
};

impl Asked<'_> {
    /// Handles all attachments of an agent, or one of them.
    pub(super) async fn of_attachments(&self, body: RequestBody) -> Answered {
        match self.target {
            Target::Attachment => self.attachment(body).await,
            _ => self.attachments(body).await,
        }
    }

    /// Lists the attachments of an agent page by page, or adds one.
    async fn attachments(&self, body: RequestBody) -> Answered {
        if self.parts.method == Method::PUT {
            return self.attach(body, None).await;
        }
        let all = self.control()?.attachment_list(&self.workspace()?, &self.agent()).await?;
        let page = self.page(all.items, |one| one.alias.as_str(), shown)?;
        Ok(with_tag(page, &all.tag))
    }

    /// Shows, replaces or removes one attachment.
    async fn attachment(&self, body: RequestBody) -> Answered {
        let alias = percent_decode_str(self.segments[2]).decode_utf8_lossy();
        match self.parts.method {
            Method::PUT => self.attach(body, Some(&alias)).await,
            Method::DELETE => {
                self.query(&[])?;
                let change = self.change(CatalogKind::Agent)?;
                self.control()?.attachment_delete(change, &self.agent(), &alias).await?;
                Ok(respond::empty(StatusCode::NO_CONTENT))
            }
            _ => {
                self.query(&[])?;
                let agent = self.agent();
                let all = self.control()?.attachment_list(&self.workspace()?, &agent).await?;
                let one = all.items.iter().find(|item| item.alias.as_str() == alias);
                let one = one.ok_or_else(|| {
                    let alias = shortened(&alias);
                    ControlError::Catalog(CatalogError::NotAttached { agent, alias })
                })?;
                Ok(with_tag(ok(&shown(one)), &all.tag))
            }
        }
    }

    /// Lists the servers to which a human must sign in, and whether the caller has done so (X-E27).
    pub(super) async fn connections(&self) -> Answered {
        let control = self.control()?;
        let user = self.principal.human();
        let (workspace, agent) = (self.workspace()?, self.agent());
        let all = control.attachment_connections(&workspace, &agent, user.as_ref()).await?;
        self.page(all, |one| one.server.as_str(), connection)
    }

    async fn attach(&self, body: RequestBody, alias: Option<&str>) -> Answered {
        self.query(&[])?;
        let change = self.change(CatalogKind::Agent)?;
        let text = self.entry(body, &[]).await?.into_bytes();
        let attached = self.control()?.attachment_put(change, &self.agent(), alias, text).await?;
        let Attachment { members } = shown(&attached.attachment);
        let warnings = attached.warnings.iter().map(As::of).collect();
        let status = if attached.was_there { StatusCode::OK } else { StatusCode::CREATED };
        let mut response = document(status, &AttachmentWritten { members, warnings });
        if !attached.was_there {
            let own = self.parts.uri.path();
            let place = match alias {
                Some(_) => own.to_owned(),
                None => format!("{own}/{}", attached.attachment.alias),
            };
            if let Ok(place) = HeaderValue::from_str(&place) {
                response.headers_mut().insert(header::LOCATION, place);
            }
        }
        Ok(with_tag(response, &attached.tag))
    }

    fn agent(&self) -> String {
        percent_decode_str(self.segments[1]).decode_utf8_lossy().into_owned()
    }
}

fn shown(attachment: &CatalogAttachment) -> Attachment {
    let CatalogAttachment { alias, reference, config, optional, tools } = attachment;
    let members = AttachmentMembers {
        alias: alias.to_string(),
        name: reference.to_string(),
        env: config.clone(),
        optional: *optional,
        tools: tools.clone(),
    };
    Attachment { members }
}

fn connection(connection: &CatalogConnection) -> Connection {
    let CatalogConnection { server, name, is_connected } = connection;
    Connection {
        catalog_entry_id: server.to_string(),
        name: server.to_string(),
        display_name: name.clone(),
        connected: *is_connected,
    }
}
