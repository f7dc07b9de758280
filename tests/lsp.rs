//! The language server in conversation with an editor.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::Duration;

use nix::poll::{PollFlags, PollTimeout};
use serde_json::{Value, json};
use wait_timeout::ChildExt;

use super::support::run::command;
use super::support::{FTSH, Ftsh, is_ready};

/// Far longer than an answer takes.
const PATIENCE: Duration = Duration::from_secs(60);
const URI: &str = "file:///nowhere/a%20script.ftsh";

/// An editor.
struct Editor {
    server: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    asked: i64,
}

impl Drop for Editor {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

impl Editor {
    fn start() -> Self {
        let mut command = command(FTSH);
        command.args(["--backoff", "exponential from 1 s", "--lsp"]);
        command.env_remove("FTSH_DEADLINE").env("MAIL_TO", "me");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut server = command.spawn().expect("a server");
        let input = server.stdin.take();
        let output = BufReader::new(server.stdout.take().expect("its output"));
        Self { server, input, output, asked: 0 }
    }

    /// Starts a server, initializes it and opens a text.
    fn with(text: &str) -> Self {
        let mut editor = Self::start();
        let capabilities = json!({ "general": { "positionEncodings": ["utf-16"] } });
        editor.ask(
            "initialize",
            json!({ "processId": null, "rootUri": null, "capabilities": capabilities }),
        );
        editor.tell("initialized", json!({}));
        let document = json!({ "uri": URI, "languageId": "ftsh", "version": 1, "text": text });
        editor.tell("textDocument/didOpen", json!({ "textDocument": document }));
        editor
    }

    fn send(&mut self, text: &str) {
        let input = self.input.as_mut().expect("an open pipe");
        let message = format!("Content-Length: {}\r\n\r\n{text}", text.len());
        input.write_all(message.as_bytes()).expect("a server that reads");
    }

    fn tell(&mut self, method: &str, params: impl Into<Value>) {
        let params = params.into();
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string());
    }

    /// Returns the next message of the server.
    fn hear(&mut self) -> Value {
        if self.output.buffer().is_empty() {
            let patience = PollTimeout::try_from(PATIENCE).expect("a short time");
            let speaks = is_ready(self.output.get_ref(), PollFlags::POLLIN, patience);
            assert!(speaks, "the server says nothing");
        }
        let mut length = None;
        loop {
            let mut line = String::new();
            self.output.read_line(&mut line).expect("a line");
            match line.trim_end().split_once(": ") {
                Some(("Content-Length", value)) => length = value.parse().ok(),
                Some(_) => {}
                None => break,
            }
        }
        let mut text = vec![0; length.expect("a length, not the end")];
        self.output.read_exact(&mut text).expect("a message");
        let message: Value = serde_json::from_slice(&text).expect("JSON");
        assert_eq!(message["jsonrpc"], "2.0");
        message
    }

    /// Returns the answer to a request, after messages in between.
    fn ask_all(&mut self, method: &str, params: impl Into<Value>) -> (Vec<Value>, Value) {
        let params = params.into();
        self.asked += 1;
        let id = self.asked;
        self.send(
            &json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string(),
        );
        let mut said = Vec::new();
        loop {
            let message = self.hear();
            if message["id"] == id {
                return (said, message);
            }
            said.push(message);
        }
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        let answer = self.ask_all(method, params).1;
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    fn ask_at(&mut self, method: &str, line: u32, character: u32) -> Value {
        let method = format!("textDocument/{method}");
        self.ask(&method, json!({ "textDocument": { "uri": URI }, "position": { "line": line, "character": character } }))
    }

    /// Returns the next diagnostics.
    fn opinion(&mut self) -> Value {
        let message = self.hear();
        assert_eq!(message["method"], "textDocument/publishDiagnostics", "{message}");
        message["params"].clone()
    }

    /// Returns the exit status of the server and its error output.
    fn end(mut self) -> (Option<i32>, String) {
        drop(self.input.take());
        let status = self.server.wait_timeout(PATIENCE).expect("a child").expect("an end");
        assert_eq!(status.signal(), None);
        let mut words = String::new();
        self.server.stderr.take().expect("a pipe").read_to_string(&mut words).expect("text");
        (status.code(), words)
    }
}

fn range(line: u32, from: u32, to: u32) -> Value {
    json!({ "start": { "line": line, "character": from }, "end": { "line": line, "character": to } })
}

#[test]
fn an_editor_is_served_from_hello_to_goodbye() {
    let mut editor = Editor::with("greeting='Grüß 🦀'; try for 5 minutse\n  echo $greeting\nend\n");
    let opinion = editor.opinion();
    assert_eq!((&opinion["uri"], &opinion["version"]), (&json!(URI), &json!(1)));
    let [mistake] = &opinion["diagnostics"].as_array().expect("a list")[..] else {
        panic!("{opinion}")
    };
    // A crab takes two units, an accented letter one.
    assert_eq!((&mistake["range"], &mistake["severity"]), (&range(0, 30, 37), &json!(1)));
    assert!(mistake["message"].as_str().is_some_and(|it| it.contains("did you mean `minutes`?")));

    let change = json!([
        { "range": range(0, 30, 37), "text": "minutes" },
        { "range": range(0, 11, 15), "text": "Hej" },
    ]);
    let version = json!({ "uri": URI, "version": 2 });
    editor.tell(
        "textDocument/didChange",
        json!({ "textDocument": version, "contentChanges": change }),
    );
    let opinion = editor.opinion();
    assert_eq!((&opinion["version"], &opinion["diagnostics"]), (&json!(2), &json!([])));

    let hover = editor.ask_at("hover", 0, 20);
    assert_eq!(hover["range"], range(0, 19, 22), "{hover}");
    let text = hover["contents"]["value"].as_str().expect("text");
    assert!(text.contains("attempts: as many as fit into 5 min"), "{text}");
    assert!(
        text.contains("delays (`exponential from 1 s to 1 min by 2`): 1 s, then 2 s"),
        "{text}"
    );
    assert!(text.contains("takes at most: 5 min"), "{text}");

    let offered = editor.ask_at("completion", 1, 11);
    let labels: Vec<_> =
        offered["items"].as_array().expect("a list").iter().map(|it| &it["label"]).collect();
    assert!(labels.contains(&&json!("greeting")), "{labels:?}");

    let definition = editor.ask_at("definition", 1, 9);
    assert_eq!(definition, json!([{ "uri": URI, "range": range(0, 0, 8) }]));

    let rename = json!({
        "textDocument": { "uri": URI }, "position": { "line": 1, "character": 9 }, "newName": "hello",
    });
    let edits = editor.ask("textDocument/rename", rename);
    assert_eq!(
        edits["changes"][URI],
        json!([
            { "range": range(0, 0, 8), "newText": "hello" },
            { "range": range(1, 8, 16), "newText": "hello" },
        ])
    );
    let refused = json!({
        "textDocument": { "uri": URI }, "position": { "line": 1, "character": 9 }, "newName": "MAIL_TO",
    });
    let (_, refusal) = editor.ask_all("textDocument/rename", refused);
    assert_eq!(refusal["error"]["message"], "`MAIL_TO` is in the environment already");

    let outline =
        editor.ask("textDocument/documentSymbol", json!({ "textDocument": { "uri": URI } }));
    assert_eq!(outline[0]["name"], "try for 5 minutes");

    assert_eq!(editor.ask("shutdown", Value::Null), Value::Null);
    editor.tell("exit", Value::Null);
    assert_eq!(editor.end(), (Some(0), String::new()));
}

/// Formatting by the server equals the output of `-p`.
#[test]
fn formatting_equals_the_printed_script() {
    let text = "try  3 times # é\n\techo   '🦀'|cat\nend\n";
    let mut editor = Editor::with(text);
    let options = json!({ "tabSize": 8, "insertSpaces": false });
    let params = json!({ "textDocument": { "uri": URI }, "options": options });
    let edits = editor.ask_all("textDocument/formatting", params).1;
    let [edit] = &edits["result"].as_array().expect("edits")[..] else { panic!("{edits}") };
    assert_eq!(
        edit["range"],
        json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 2, "character": 0 } })
    );
    let printed = format!("{}end\n", edit["newText"].as_str().expect("text"));
    Ftsh::new().args(["-p", "-c", text]).stdout(printed).success();
}

/// Fast typing yields diagnostics of the last text, maybe of earlier ones, and never of an old text
/// at the end.
#[test]
fn the_last_diagnostics_belong_to_the_last_text() {
    let mut editor = Editor::with("");
    for version in 2..200 {
        let document = json!({ "uri": URI, "version": version });
        let change = json!([{ "text": "x\n".repeat(version) + "if" }]);
        editor.tell(
            "textDocument/didChange",
            json!({ "textDocument": document, "contentChanges": change }),
        );
    }
    let mut versions = Vec::new();
    while versions.last() != Some(&199) {
        let opinion = editor.opinion();
        let version = opinion["version"].as_i64().expect("a version");
        if version > 1 {
            let line = &opinion["diagnostics"][0]["range"]["start"]["line"];
            assert_eq!(line.as_i64(), Some(version), "{opinion}");
        }
        versions.push(version);
    }
    assert!(versions.is_sorted(), "{versions:?}");
}

#[test]
fn the_server_ends_when_the_editor_is_gone() {
    assert_eq!(Editor::start().end(), (Some(1), String::new()));
    assert_eq!(Editor::with("try").end(), (Some(1), String::new()));
    let mut editor = Editor::with("a");
    editor.ask("shutdown", Value::Null);
    assert_eq!(editor.end(), (Some(0), String::new()));
    let mut editor = Editor::with("a");
    editor.tell("exit", Value::Null);
    assert_eq!(editor.end(), (Some(1), String::new()));
}

#[test]
fn invalid_messages_are_harmless() {
    let mut editor = Editor::with("a");
    editor.opinion();
    for nonsense in
        ["", "{", "null", "\"\\ud800\"", "[]", "{\"method\":5}", &"[".repeat(100_000), "\u{0}"]
    {
        editor.send(nonsense);
    }
    editor.send(r#"{"jsonrpc":"2.0","id":"x","params":{}}"#);
    assert_eq!(editor.hear()["error"]["code"], -32600);
    assert!(editor.ask_at("hover", 4_294_967_295, 4_294_967_295).is_null());
    let (code, words) = editor.end();
    assert_eq!(code, Some(1));
    assert_eq!(words.matches("cannot parse a message of the editor").count(), 8, "{words}");
    for nonsense in [
        "hello\r\n",
        "Content-Length: 99999999999999999999\r\n\r\n",
        "Content-Length: 18446744073709551615\r\n\r\n",
    ] {
        let mut editor = Editor::start();
        editor.input.as_mut().expect("a pipe").write_all(nonsense.as_bytes()).expect("a reader");
        let (code, words) = editor.end();
        assert_eq!(code, Some(2), "{words}");
        assert!(words.starts_with("ftsh: ") && words.lines().count() == 1, "{words}");
    }
}

#[test]
fn scripts_come_from_the_editor_alone() {
    for arguments in [&["--lsp", "script"][..], &["--lsp", "-c", "a"]] {
        let words = "ftsh: `--lsp` takes no script: an editor provides the scripts";
        Ftsh::new().args(arguments).refused(&[words]);
    }
    Ftsh::new().arg("--lsp").stdin("").stdout("").failure(1);
}
