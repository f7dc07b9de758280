use std::path::PathBuf;

use lsp_server::Message;
use serde_json::{Value, json};

use super::*;
use crate::durations::NoDurations;
use crate::lint::UnknownPrograms;
use crate::lsp::{LanguageServer, ServerContext};

const URI: &str = "file:///nowhere/a.ftsh";

fn server() -> LanguageServer {
    LanguageServer::new(ServerContext {
        policy: policy(),
        programs: Box::new(UnknownPrograms),
        durations: Box::new(NoDurations),
        variables: variables(),
        directory: PathBuf::from("/nowhere"),
    })
}

/// Returns the answers to a message, and the diagnostics after it.
fn send(server: &mut LanguageServer, message: Value) -> Vec<Value> {
    let message: Message = serde_json::from_value(message).expect("a message");
    let mut answers = server.handle(message);
    answers.extend(server.diagnostics());
    answers.into_iter().map(|it| serde_json::to_value(it).expect("JSON")).collect()
}

fn request(server: &mut LanguageServer, method: &str, params: impl Into<Value>) -> Value {
    let params = params.into();
    let answers = send(server, json!({ "id": 7, "method": method, "params": params }));
    let [answer] = &answers[..] else { panic!("one answer: {answers:?}") };
    answer.clone()
}

#[test]
fn connections_begin_and_end() {
    let mut server = server();
    let at = json!({ "textDocument": { "uri": URI }, "position": { "line": 0, "character": 0 } });
    let code = |answer: &Value| answer["error"]["code"].as_i64();
    assert_eq!(code(&request(&mut server, "textDocument/hover", at.clone())), Some(-32002));
    let hello = request(&mut server, "initialize", json!({ "capabilities": {} }));
    assert_eq!(hello["result"]["serverInfo"]["name"], "ftsh");
    assert!(send(&mut server, json!({ "method": "initialized", "params": {} })).is_empty());
    // It isn't open.
    assert_eq!(code(&request(&mut server, "textDocument/hover", at.clone())), Some(-32602));
    assert_eq!(code(&request(&mut server, "textDocument/hover", json!([]))), Some(-32602));
    assert_eq!(code(&request(&mut server, "initialize", json!({}))), Some(-32601));
    assert_eq!(code(&request(&mut server, "textDocument/dance", Value::Null)), Some(-32601));
    let text = json!({ "uri": URI, "languageId": "ftsh", "version": 1, "text": "try for 5\nif a" });
    let opened = json!({ "method": "textDocument/didOpen", "params": { "textDocument": text } });
    let messages = send(&mut server, opened);
    assert_eq!(
        messages[0]["params"]["diagnostics"].as_array().map(Vec::len),
        Some(2),
        "{messages:?}"
    );
    assert!(
        request(&mut server, "textDocument/hover", at.clone())["result"]["contents"].is_object()
    );
    let change = json!({ "textDocument": { "uri": URI, "version": 2 }, "contentChanges": [{ "text": "a" }] });
    let change = json!({ "method": "textDocument/didChange", "params": change });
    let messages = send(&mut server, change);
    assert_eq!(
        (&messages[0]["params"]["version"], &messages[0]["params"]["diagnostics"]),
        (&json!(2), &json!([]))
    );
    let closed =
        json!({ "method": "textDocument/didClose", "params": { "textDocument": { "uri": URI } } });
    assert_eq!(send(&mut server, closed.clone())[0]["params"]["diagnostics"], json!([]));
    assert!(send(&mut server, closed).is_empty());
    // Nothing of this has an answer.
    for method in ["textDocument/didOpen", "textDocument/didChange", "textDocument/didClose", "$/x"]
    {
        assert!(send(&mut server, json!({ "method": method, "params": [1] })).is_empty());
    }
    assert!(send(&mut server, json!({ "id": 3, "result": null })).is_empty());
    assert!(!server.was_shut_down());
    assert_eq!(request(&mut server, "shutdown", Value::Null)["result"], Value::Null);
    assert_eq!(code(&request(&mut server, "textDocument/hover", at)), Some(-32600));
    assert!(!server.is_over());
    send(&mut server, json!({ "method": "exit" }));
    assert!(server.is_over() && server.was_shut_down());
}

#[test]
fn exit_without_shutdown_is_noticed() {
    let mut server = server();
    send(&mut server, json!({ "method": "exit" }));
    assert!(server.is_over() && !server.was_shut_down());
}

/// Sends requests with any text and any position of the cursor.
#[test]
fn no_text_and_no_position_panics() {
    let pieces = [
        "try ",
        "for ",
        "5 ",
        "é",
        "🦀",
        "\n",
        "\r\n",
        "end",
        "\"",
        "'",
        "$",
        "${v",
        "}",
        "<<E",
        "->v",
        "| ",
        "function f",
        "v=",
        "(",
        ".eq. ",
        "\\",
        "#",
        "\0",
        "backoff ",
        "forall x in ",
        "at most ",
        "channel c ",
        "through c",
        "read ",
        "\u{feff}",
        "f(",
        "local ",
        "export v=$w",
    ];
    let mut state = 1_u64;
    let mut next = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize % below
    };
    let mut server = server();
    request(&mut server, "initialize", json!({}));
    for _ in 0..300 {
        let text: String = (0..next(12)).map(|_| pieces[next(pieces.len())]).collect();
        let text = json!({ "uri": URI, "languageId": "ftsh", "version": 1, "text": text });
        send(
            &mut server,
            json!({ "method": "textDocument/didOpen", "params": { "textDocument": text } }),
        );
        for _ in 0..4 {
            let place = json!({ "line": next(4), "character": next(20) });
            let params = json!({
                "textDocument": { "uri": URI },
                "position": place,
                "newName": "w",
                "context": { "includeDeclaration": true },
                "options": { "tabSize": 4, "insertSpaces": true },
            });
            for method in [
                "hover",
                "completion",
                "definition",
                "references",
                "documentSymbol",
                "formatting",
                "prepareRename",
                "rename",
            ] {
                request(&mut server, &format!("textDocument/{method}"), params.clone());
            }
        }
    }
}
