//! From messages to messages.

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
    InitializeResult, OneOf, PrepareRenameResponse, PublishDiagnosticsParams, ReferenceParams,
    RenameOptions, RenameParams, ServerCapabilities, ServerInfo, TextDocumentPositionParams,
    TextDocumentSyncCapability, TextDocumentSyncKind, Uri,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::document::Document;
use super::{completion, definition, formatting, hover, mistakes, outline, rename};
use crate::lint::Programs;
use ftsh_syntax::backoff::Policy;

/// What a server finds around it.
pub struct Around {
    /// The delays of tries that name none.
    pub policy: Policy,
    /// The programs that a script would find.
    pub programs: Box<dyn Programs>,
    /// The variables of the environment.
    pub variables: HashMap<String, Option<BString>>,
    /// Where it runs.
    pub directory: PathBuf,
}

/// How far a conversation has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Nobody has said hello.
    New,
    /// It is on.
    Open,
    /// The editor has said that it is about to end.
    ShutDown,
    /// It is over; whether the editor said so before.
    Over(bool),
}

/// The texts that an editor has open, and what it has said.
pub struct Server {
    around: Around,
    stage: Stage,
    documents: HashMap<String, Document>,
    /// Texts of which nothing was said since they changed.
    changed: BTreeSet<String>,
}

impl Server {
    /// A server that nobody has talked to.
    pub fn new(around: Around) -> Self {
        Self { around, stage: Stage::New, documents: HashMap::new(), changed: BTreeSet::new() }
    }

    /// Whether the editor has ended the conversation.
    pub fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over(_))
    }

    /// Whether the editor has said that it would.
    pub fn was_shut_down(&self) -> bool {
        matches!(self.stage, Stage::ShutDown | Stage::Over(true))
    }

    /// What is to be answered at once.
    pub fn handle(&mut self, message: Message) -> Vec<Message> {
        match message {
            Message::Request(request) => vec![self.answer(request).into()],
            Message::Notification(notification) => self.take(notification),
            // Nothing was asked.
            Message::Response(_) => Vec::new(),
        }
    }

    /// What is to be said of the texts that have changed since this was asked.
    pub fn opinions(&mut self) -> Vec<Message> {
        let changed = std::mem::take(&mut self.changed);
        let documents = changed.iter().filter_map(|uri| self.documents.get(uri));
        let opinions = documents.map(|document| {
            mistakes::publish(document, &self.around.policy, &*self.around.programs)
        });
        opinions.map(publication).collect()
    }

    fn answer(&mut self, request: Request) -> Response {
        let Request { id, method, params } = request;
        let answer = match (self.stage, &*method) {
            (Stage::New, Initialize::METHOD) => {
                self.stage = Stage::Open;
                told(capabilities())
            }
            (Stage::New, _) => refused(ErrorCode::ServerNotInitialized, "`initialize` comes first"),
            (Stage::Open, Shutdown::METHOD) => {
                self.stage = Stage::ShutDown;
                Ok(Value::Null)
            }
            (Stage::Open, method) => self.look(method, params),
            (Stage::ShutDown | Stage::Over(_), _) => {
                refused(ErrorCode::InvalidRequest, "nothing comes after `shutdown`")
            }
        };
        Response { id, response_result: answer }
    }

    /// Answers what is asked about a text.
    fn look(&self, method: &str, params: Value) -> Result<Value, ResponseError> {
        let is_outside = |name: &str| self.around.variables.contains_key(name);
        match method {
            HoverRequest::METHOD => {
                let HoverParams { text_document_position_params: at, .. } = read(params)?;
                let document = self.document(&at.text_document.uri)?;
                told(hover::hover(document, at.position, &self.around.policy))
            }
            Completion::METHOD => {
                let CompletionParams { text_document_position: at, .. } = read(params)?;
                let document = self.document(&at.text_document.uri)?;
                let Around { variables, directory, .. } = &self.around;
                let items = completion::completion(document, at.position, variables, directory);
                // The next letter may bring more: programs, files.
                told(CompletionList { is_incomplete: true, items })
            }
            Formatting::METHOD => {
                let DocumentFormattingParams { text_document, .. } = read(params)?;
                told(formatting::format(self.document(&text_document.uri)?))
            }
            GotoDefinition::METHOD => {
                let GotoDefinitionParams { text_document_position_params: at, .. } = read(params)?;
                told(definition::definition(self.document(&at.text_document.uri)?, at.position))
            }
            References::METHOD => {
                let ReferenceParams { text_document_position: at, context, .. } = read(params)?;
                let document = self.document(&at.text_document.uri)?;
                told(definition::references(document, at.position, context.include_declaration))
            }
            DocumentSymbolRequest::METHOD => {
                let DocumentSymbolParams { text_document, .. } = read(params)?;
                told(outline::outline(self.document(&text_document.uri)?))
            }
            PrepareRenameRequest::METHOD => {
                let TextDocumentPositionParams { text_document, position } = read(params)?;
                let document = self.document(&text_document.uri)?;
                let (range, placeholder) = rename::prepare(document, position, &is_outside)
                    .map_err(|reason| error(ErrorCode::RequestFailed, &reason))?;
                told(PrepareRenameResponse::RangeWithPlaceholder { range, placeholder })
            }
            Rename::METHOD => {
                let RenameParams { text_document_position: at, new_name, .. } = read(params)?;
                let document = self.document(&at.text_document.uri)?;
                let edit = rename::rename(document, at.position, &new_name, &is_outside)
                    .map_err(|reason| error(ErrorCode::RequestFailed, &reason))?;
                told(edit)
            }
            _ => refused(ErrorCode::MethodNotFound, &format!("ftsh doesn't know `{method}`")),
        }
    }

    fn document(&self, uri: &Uri) -> Result<&Document, ResponseError> {
        self.documents.get(uri.as_str()).ok_or_else(|| {
            error(ErrorCode::InvalidParams, &format!("`{}` isn't open", uri.as_str()))
        })
    }

    fn take(&mut self, notification: Notification) -> Vec<Message> {
        let Notification { method, params } = notification;
        // What isn't understood has no answer, and there is nothing to be done about it.
        match (self.stage, &*method) {
            (stage, Exit::METHOD) => self.stage = Stage::Over(stage == Stage::ShutDown),
            (Stage::Open, DidOpenTextDocument::METHOD) => {
                if let Ok(DidOpenTextDocumentParams { text_document: it }) = read(params) {
                    self.changed.insert(it.uri.as_str().to_owned());
                    let uri = it.uri.as_str().to_owned();
                    self.documents.insert(uri, Document::new(it.uri, Some(it.version), it.text));
                }
            }
            (Stage::Open, DidChangeTextDocument::METHOD) => {
                let Ok(it) = read::<DidChangeTextDocumentParams>(params) else { return Vec::new() };
                let uri = it.text_document.uri.as_str().to_owned();
                if let Some(document) = self.documents.get_mut(&uri) {
                    document.change(it.text_document.version, it.content_changes);
                    self.changed.insert(uri);
                }
            }
            (Stage::Open, DidCloseTextDocument::METHOD) => {
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

/// The answer to a request that is none.
pub fn refusal(id: RequestId, reason: &str) -> Message {
    Response { id, response_result: refused(ErrorCode::InvalidRequest, reason) }.into()
}

fn read<P: DeserializeOwned>(params: Value) -> Result<P, ResponseError> {
    serde_json::from_value(params)
        .map_err(|reason| error(ErrorCode::InvalidParams, &reason.to_string()))
}

fn told(answer: impl Serialize) -> Result<Value, ResponseError> {
    serde_json::to_value(answer)
        .map_err(|reason| error(ErrorCode::InternalError, &reason.to_string()))
}

fn refused(code: ErrorCode, reason: &str) -> Result<Value, ResponseError> {
    Err(error(code, reason))
}

fn error(code: ErrorCode, reason: &str) -> ResponseError {
    ResponseError { code: code as i32, message: reason.to_owned(), data: None }
}
