//! Server: incoming messages to outgoing messages.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;

use bstr::BString;
use lsp_server::{ErrorCode, Message, Notification, Request, RequestId, Response, ResponseError};
use lsp_types::notification::{
    DidChangeTextDocument, DidCloseTextDocument, DidOpenTextDocument, Exit, Notification as _,
    PublishDiagnostics,
};
use lsp_types::request::{
    Completion, DocumentSymbolRequest, Formatting, GotoDefinition, HoverRequest, Initialize,
    PrepareRenameRequest, References, Rename, Request as _, Shutdown,
};
use lsp_types::{
    CompletionList, CompletionOptions, CompletionParams, DidChangeTextDocumentParams,
    DidCloseTextDocumentParams, DidOpenTextDocumentParams, DocumentFormattingParams,
    DocumentSymbolParams, GotoDefinitionParams, HoverParams, HoverProviderCapability,
    InitializeResult, OneOf, Position, PrepareRenameResponse, PublishDiagnosticsParams,
    ReferenceParams, RenameOptions, RenameParams, ServerCapabilities, ServerInfo,
    TextDocumentPositionParams, TextDocumentSyncCapability, TextDocumentSyncKind, Uri,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::document::Document;
use super::rename_files::{SharedFunction, Workspace};
use super::{completion, definition, diagnostics, formatting, hover, outline, rename};
use crate::durations::Durations;
use crate::lint::Programs;
use ftsh_syntax::backoff::Policy;

/// Environment of a server.
pub struct ServerContext {
    /// Policy of tries that name no policy.
    pub policy: Policy,
    /// Programs that a script would find.
    pub programs: Box<dyn Programs>,
    /// Durations of earlier attempts.
    pub durations: Box<dyn Durations>,
    /// Variables of the environment.
    pub variables: HashMap<String, Option<BString>>,
    /// Working directory.
    pub directory: PathBuf,
}

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionState {
    /// Before `initialize`.
    New,
    /// After `initialize`.
    Open,
    /// After `shutdown`.
    ShutDown,
    /// After `exit`; true if `shutdown` came before.
    Over(bool),
}

/// Server with the open documents of an editor.
pub struct LanguageServer {
    context: ServerContext,
    state: ConnectionState,
    documents: HashMap<String, Document>,
    /// Documents changed since their last diagnostics.
    changed: BTreeSet<String>,
}

impl LanguageServer {
    /// Creates a server before `initialize`.
    pub fn new(context: ServerContext) -> Self {
        Self {
            context,
            state: ConnectionState::New,
            documents: HashMap::new(),
            changed: BTreeSet::new(),
        }
    }

    /// Returns true after `exit`.
    pub fn is_over(&self) -> bool {
        matches!(self.state, ConnectionState::Over(_))
    }

    /// Returns true after `shutdown`.
    pub fn was_shut_down(&self) -> bool {
        matches!(self.state, ConnectionState::ShutDown | ConnectionState::Over(true))
    }

    /// Handles a message, and returns the immediate answers.
    pub fn handle(&mut self, message: Message) -> Vec<Message> {
        match message {
            Message::Request(request) => vec![self.answer(request).into()],
            Message::Notification(notification) => self.take(notification),
            // The server sends no requests.
            Message::Response(_) => Vec::new(),
        }
    }

    /// Returns the diagnostics of documents changed since the last call.
    pub fn diagnostics(&mut self) -> Vec<Message> {
        let changed = std::mem::take(&mut self.changed);
        let documents = changed.iter().filter_map(|uri| self.documents.get(uri));
        let diagnostics = documents.map(|document| {
            diagnostics::publish(document, &self.context.policy, &*self.context.programs)
        });
        diagnostics.map(publication).collect()
    }

    fn answer(&mut self, request: Request) -> Response {
        let Request { id, method, params } = request;
        let answer = match (self.state, &*method) {
            (ConnectionState::New, Initialize::METHOD) => {
                self.state = ConnectionState::Open;
                answered(capabilities())
            }
            (ConnectionState::New, _) => {
                refused(ErrorCode::ServerNotInitialized, "`initialize` comes first")
            }
            (ConnectionState::Open, Shutdown::METHOD) => {
                self.state = ConnectionState::ShutDown;
                Ok(Value::Null)
            }
            (ConnectionState::Open, method) => self.answer_about_document(method, params),
            (ConnectionState::ShutDown | ConnectionState::Over(_), _) => {
                refused(ErrorCode::InvalidRequest, "nothing comes after `shutdown`")
            }
        };
        Response { id, response_result: answer }
    }

    /// Answers a request about a document.
    fn answer_about_document(&self, method: &str, params: Value) -> Result<Value, ResponseError> {
        let is_outside = |name: &str| self.context.variables.contains_key(name);
        match method {
            HoverRequest::METHOD => {
                let HoverParams { text_document_position_params: at, .. } = read(params)?;
                let document = self.document(&at.text_document.uri)?;
                {
                    let ServerContext { policy, durations, .. } = &self.context;
                    answered(hover::hover(document, at.position, policy, &**durations))
                }
            }
            Completion::METHOD => {
                let CompletionParams { text_document_position: at, .. } = read(params)?;
                let document = self.document(&at.text_document.uri)?;
                let ServerContext { variables, directory, .. } = &self.context;
                let items = completion::completion(document, at.position, variables, directory);
                // The next letter may add candidates: programs, files.
                answered(CompletionList { is_incomplete: true, items })
            }
            Formatting::METHOD => {
                let DocumentFormattingParams { text_document, .. } = read(params)?;
                answered(formatting::format(self.document(&text_document.uri)?))
            }
            GotoDefinition::METHOD => {
                let GotoDefinitionParams { text_document_position_params: at, .. } = read(params)?;
                answered(definition::definition(self.document(&at.text_document.uri)?, at.position))
            }
            References::METHOD => {
                let ReferenceParams { text_document_position: at, context, .. } = read(params)?;
                let document = self.document(&at.text_document.uri)?;
                answered(definition::references(document, at.position, context.include_declaration))
            }
            DocumentSymbolRequest::METHOD => {
                let DocumentSymbolParams { text_document, .. } = read(params)?;
                answered(outline::outline(self.document(&text_document.uri)?))
            }
            PrepareRenameRequest::METHOD => {
                let TextDocumentPositionParams { text_document, position } = read(params)?;
                let document = self.document(&text_document.uri)?;
                let shared = self.shared_function(document, position)?;
                let prepared = match shared {
                    Some(function) => function.prepare(document),
                    None => rename::prepare(document, position, &is_outside),
                };
                let (range, placeholder) =
                    prepared.map_err(|reason| error(ErrorCode::RequestFailed, &reason))?;
                answered(PrepareRenameResponse::RangeWithPlaceholder { range, placeholder })
            }
            Rename::METHOD => {
                let RenameParams { text_document_position: at, new_name, .. } = read(params)?;
                let document = self.document(&at.text_document.uri)?;
                let edit = match self.shared_function(document, at.position)? {
                    Some(function) => function.rename(&new_name),
                    None => rename::rename(document, at.position, &new_name, &is_outside),
                };
                let edit = edit.map_err(|reason| error(ErrorCode::RequestFailed, &reason))?;
                answered(edit)
            }
            _ => refused(ErrorCode::MethodNotFound, &format!("unknown method `{method}`")),
        }
    }

    /// Returns the function at a position, if several files share the function.
    fn shared_function(
        &self,
        document: &Document,
        place: Position,
    ) -> Result<Option<SharedFunction>, ResponseError> {
        let workspace = Workspace { open: &self.documents, root: &self.context.directory };
        SharedFunction::at(document, place, &workspace)
            .map_err(|reason| error(ErrorCode::RequestFailed, &reason))
    }

    fn document(&self, uri: &Uri) -> Result<&Document, ResponseError> {
        self.documents.get(uri.as_str()).ok_or_else(|| {
            error(ErrorCode::InvalidParams, &format!("`{}` is not open", uri.as_str()))
        })
    }

    fn take(&mut self, notification: Notification) -> Vec<Message> {
        let Notification { method, params } = notification;
        // An invalid notification has no answer, and is ignored.
        match (self.state, &*method) {
            (state, Exit::METHOD) => {
                self.state = ConnectionState::Over(state == ConnectionState::ShutDown);
            }
            (ConnectionState::Open, DidOpenTextDocument::METHOD) => {
                if let Ok(DidOpenTextDocumentParams { text_document: it }) = read(params) {
                    self.changed.insert(it.uri.as_str().to_owned());
                    let uri = it.uri.as_str().to_owned();
                    self.documents.insert(uri, Document::new(it.uri, Some(it.version), it.text));
                }
            }
            (ConnectionState::Open, DidChangeTextDocument::METHOD) => {
                let Ok(it) = read::<DidChangeTextDocumentParams>(params) else { return Vec::new() };
                let uri = it.text_document.uri.as_str().to_owned();
                if let Some(document) = self.documents.get_mut(&uri) {
                    document.change(it.text_document.version, it.content_changes);
                    self.changed.insert(uri);
                }
            }
            (ConnectionState::Open, DidCloseTextDocument::METHOD) => {
                if let Ok(DidCloseTextDocumentParams { text_document: it }) = read(params)
                    && self.documents.remove(it.uri.as_str()).is_some()
                {
                    return vec![publication(PublishDiagnosticsParams::new(
                        it.uri,
                        Vec::new(),
                        None,
                    ))];
                }
            }
            _ => {}
        }
        Vec::new()
    }
}

fn capabilities() -> InitializeResult {
    let completion = CompletionOptions {
        trigger_characters: Some(["$", "{", ".", "/"].map(str::to_owned).to_vec()),
        ..CompletionOptions::default()
    };
    let rename = RenameOptions {
        prepare_provider: Some(true),
        work_done_progress_options: lsp_types::WorkDoneProgressOptions::default(),
    };
    InitializeResult {
        capabilities: ServerCapabilities {
            text_document_sync: Some(TextDocumentSyncCapability::Kind(
                TextDocumentSyncKind::INCREMENTAL,
            )),
            hover_provider: Some(HoverProviderCapability::Simple(true)),
            completion_provider: Some(completion),
            definition_provider: Some(OneOf::Left(true)),
            references_provider: Some(OneOf::Left(true)),
            document_symbol_provider: Some(OneOf::Left(true)),
            document_formatting_provider: Some(OneOf::Left(true)),
            rename_provider: Some(OneOf::Right(rename)),
            ..ServerCapabilities::default()
        },
        server_info: Some(ServerInfo {
            name: "ftsh".into(),
            version: Some(env!("CARGO_PKG_VERSION").into()),
        }),
    }
}

fn publication(params: PublishDiagnosticsParams) -> Message {
    Notification::new(PublishDiagnostics::METHOD.into(), params).into()
}

/// Returns the answer to an invalid request.
pub(super) fn refusal(id: RequestId, reason: &str) -> Message {
    Response { id, response_result: refused(ErrorCode::InvalidRequest, reason) }.into()
}

fn read<P: DeserializeOwned>(params: Value) -> Result<P, ResponseError> {
    serde_json::from_value(params)
        .map_err(|reason| error(ErrorCode::InvalidParams, &reason.to_string()))
}

fn answered(answer: impl Serialize) -> Result<Value, ResponseError> {
    serde_json::to_value(answer)
        .map_err(|reason| error(ErrorCode::InternalError, &reason.to_string()))
}

fn refused(code: ErrorCode, reason: &str) -> Result<Value, ResponseError> {
    Err(error(code, reason))
}

fn error(code: ErrorCode, reason: &str) -> ResponseError {
    ResponseError { code: code as i32, message: reason.to_owned(), data: None }
}
