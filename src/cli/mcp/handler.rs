//! What the server answers to each request of the protocol. rmcp knows the revisions, the handshake and the
//! shapes; here are the tools, the resources and what is said of the server.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ErrorData, Implementation,
    InitializeRequestParams, InitializeResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ReadResourceRequestParams,
    ReadResourceResponse, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};

use super::arguments::{self, Line};
use super::call::Document;
use super::resources;
use super::tools::Catalog;
use super::wire::Lines;
use super::worker::Queue;
use crate::error::Error;

/// How often whoever waits is told how far it is.
const TICK: Duration = Duration::from_secs(1);

const INSTRUCTIONS: &str = "nf keeps a durable record of long work: nf_status shows what waits on whom. \
    The daily path is nf_start, nf_freeze, nf_packet, then a SEPARATE reviewer answers the packet and \
    nothing else, nf_reply, nf_consume, nf_resume. A rejection is a valid answer that leads to repair, \
    never to a second reviewer. A tool grants no authority. On an error do what its fix says; after \
    not_durable or a lost answer repeat the call with the same op.";

/// The server.
pub struct Handler {
    catalog: Arc<Catalog>,
    queue: Queue,
}

/// Serves until the other side is gone.
pub async fn serve(handler: Handler, lines: Lines) {
    // The service is begun without rmcp's own handshake loop, which ends at the first message that it does
    // not expect; `initialize` is answered like any request, and each request of 2026-07-28 names its
    // version.
    let running = rmcp::service::serve_directly(handler, lines, None);
    let _ = running.waiting().await;
}

/// An error of the command line as one of the protocol.
pub fn invalid(error: &Error) -> ErrorData {
    let cause = error.cause.as_deref().map(|cause| format!(" ({cause})")).unwrap_or_default();
    let body = serde_json::to_value(error.body()).ok();
    ErrorData::invalid_params(format!("{}{cause}", error.message), body)
}

impl Handler {
    /// A server of these tools.
    pub fn new(catalog: Arc<Catalog>, queue: Queue) -> Self {
        Self { catalog, queue }
    }

    /// Whether results and receipts are there to be read: whoever may not show them gets them in no other
    /// way.
    fn has_resources(&self) -> bool {
        self.catalog.has("nf_show")
    }

    /// Runs a command line and waits for its document.
    pub async fn run(
        &self,
        line: Line,
        writes: bool,
        long: bool,
        context: &RequestContext<RoleServer>,
    ) -> Result<Document, ErrorData> {
        let cancelled = context.ct.clone();
        let is_cancelled = Arc::new(move || cancelled.is_cancelled());
        let (way, mut answer) = self.queue.hand_in(line, writes, long, is_cancelled);
        let token = context.meta.get_progress_token();
        let (mut ticks, mut last) = (0.0, 0.0);
        loop {
            match tokio::time::timeout(TICK, &mut answer).await {
                Ok(Ok(document)) => return Ok(document),
                Ok(Err(_)) => return Err(ErrorData::internal_error("the call was not run", None)),
                Err(_) => ticks += 1.0,
            }
            let Some(token) = &token else { continue };
            let progress = match way.bytes() {
                Some((done, total)) => ProgressNotificationParam::new(token.clone(), done as f64)
                    .with_total(total as f64)
                    .with_message("bytes"),
                None => ProgressNotificationParam::new(token.clone(), ticks).with_message("seconds waited"),
            };
            if progress.progress > last {
                last = progress.progress;
                let _ = context.peer.notify_progress(progress).await;
            }
        }
    }
}

fn answered(document: Document) -> CallToolResult {
    match document.failed {
        true => CallToolResult::structured_error(document.value),
        false => CallToolResult::structured(document.value),
    }
}

/// A list that is given whole has no pages.
pub fn first_page(request: Option<&PaginatedRequestParams>) -> Result<(), ErrorData> {
    match request.and_then(|request| request.cursor.as_deref()) {
        Some(_) => Err(ErrorData::invalid_params("Invalid cursor: all is on the first page", None)),
        None => Ok(()),
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let tools = ServerCapabilities::builder().enable_tools();
        let capabilities = match self.has_resources() {
            true => tools.enable_resources().build(),
            false => tools.build(),
        };
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("nf", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn initialize(
        &self,
        mut request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let agreed = self.negotiate_initialize(&request)?;
        // Later requests are of the revision that was agreed on, not of the one that was asked for.
        request.protocol_version = agreed.protocol_version.clone();
        context.peer.set_peer_info(request);
        Ok(agreed)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        first_page(request.as_ref())?;
        Ok(ListToolsResult::with_all_items(self.catalog.described()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let tool = self.catalog.find(&request.name).map_err(|error| invalid(&error))?;
        let given = request.arguments.unwrap_or_default();
        let document = match arguments::line(&tool.name, &tool.words, &tool.arguments, &given) {
            Ok(line) => self.run(line, tool.writes, tool.long, &context).await?,
            Err(error) => Document::misused(&error),
        };
        Ok(answered(document).into())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let cursor = request.and_then(|request| request.cursor);
        match self.has_resources() {
            true => resources::page(self, cursor.as_deref(), &context).await,
            false => Err(ErrorData::method_not_found::<rmcp::model::ListResourcesRequestMethod>()),
        }
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        first_page(request.as_ref())?;
        match self.has_resources() {
            true => Ok(resources::templates()),
            false => Err(ErrorData::method_not_found::<rmcp::model::ListResourceTemplatesRequestMethod>()),
        }
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        match self.has_resources() {
            true => resources::read(self, &request.uri, &context).await,
            false => Err(ErrorData::method_not_found::<rmcp::model::ReadResourceRequestMethod>()),
        }
    }
}
