//! Traces of runs: `--otlp`, `--trace`, and the place in a trace that programs get.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::thread::JoinHandle;

use nix::sys::signal::{Signal, kill};

use crate::support::Ftsh;
use crate::support::run::Finished;
use crate::support::spans::{self, SpanRow};
use crate::support::sshd::Sshd;

/// Attributes that a picture of a trace shows.
const SHOWN: [&str; 6] = [
    "code.line.number",
    "ftsh.attempt",
    "ftsh.policy",
    "process.exit.code",
    "error.type",
    "host.name",
];

const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// Draws the spans below a parent, in the order of their starts, as lines with attributes.
fn tree(rows: &[SpanRow]) -> String {
    spans::check(rows).unwrap_or_else(|error| panic!("{error}"));
    let mut text = String::new();
    let ids: Vec<_> = rows.iter().map(|row| row.id.as_str()).collect();
    let is_root = |row: &&SpanRow| !row.parent.as_deref().is_some_and(|it| ids.contains(&it));
    let root = rows.iter().find(is_root).expect("a root");
    draw(rows, root, 0, &mut text);
    text
}

fn draw(rows: &[SpanRow], row: &SpanRow, depth: usize, text: &mut String) {
    let shown = SHOWN.iter().filter_map(|key| Some((key, row.attributes.get(*key)?)));
    let shown: Vec<_> = shown.map(|(key, value)| format!(" {key}={value}")).collect();
    *text += &format!("{}{}{}\n", "  ".repeat(depth), row.name, shown.concat());
    let mut inner: Vec<_> =
        rows.iter().filter(|inner| inner.parent.as_ref() == Some(&row.id)).collect();
    inner.sort_by_key(|row| row.start);
    for inner in inner {
        draw(rows, inner, depth + 1, text);
    }
}

/// Returns the spans in the file `spans` of a run.
fn spans_of(run: &Finished) -> Vec<SpanRow> {
    spans::read(&run.directory.path().join("spans"))
}

fn named<'r>(rows: &'r [SpanRow], name: &str) -> &'r SpanRow {
    rows.iter().find(|row| row.name == name).unwrap_or_else(|| panic!("{name} in {rows:#?}"))
}

/// Returns the ids of trace and span in the value of `TRACEPARENT`.
fn ids(header: &str) -> (String, String) {
    let fields: Vec<_> = header.trim().split('-').collect();
    let ["00", trace, span, "01"] = fields[..] else { panic!("{header}") };
    (trace.into(), span.into())
}

/// Returns the lines of spans of a file, without the resource.
fn sorted_spans(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).expect("spans");
    let mut all = Vec::new();
    for line in text.lines() {
        let data: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let spans = &data["resourceSpans"][0]["scopeSpans"][0]["spans"];
        all.extend(spans.as_array().expect("spans").iter().map(ToString::to_string));
    }
    all.sort();
    all
}

const SCRIPT: &str = "\
try 3 times every 400 ms
    sh -c 'mkdir one 2>/dev/null && exit 3; exit 0'
end
if .succeeds. (sh -c 'exit 1')
    echo never
end
echo text | cat > copy
function f
    sh -c 'exit 0'
end
f
forall x in a
    try 1 time
        sh -c 'kill -9 $$'
    catch
        echo $error_kind
    end
end
try for 50 ms
    sh -c 'sleep 1000'
end
";

const TREE: &str = "\
run script.ftsh process.exit.code=124 error.type=timeout
  try code.line.number=1 ftsh.policy=every
    attempt ftsh.attempt=1 error.type=exit
      sh code.line.number=2 process.exit.code=3 error.type=exit
    attempt ftsh.attempt=2
      sh code.line.number=2 process.exit.code=0
  sh code.line.number=4 process.exit.code=1
  cat code.line.number=7 process.exit.code=0
  sh code.line.number=9 process.exit.code=0
  branch code.line.number=12
    try code.line.number=13 ftsh.policy=ethernet error.type=signal
      attempt ftsh.attempt=1 error.type=signal
        sh code.line.number=14 error.type=signal
  try code.line.number=19 ftsh.policy=ethernet error.type=timeout
    attempt ftsh.attempt=1 error.type=timeout
      sh code.line.number=20 error.type=timeout
";

#[test]
fn a_file_gets_the_spans_of_a_run() {
    let run = Ftsh::script(SCRIPT).options(["--otlp", "spans", "--journal", "j"]).failure(124);
    let rows = spans_of(&run);
    assert_eq!(tree(&rows), TREE);
    let first = named(&rows, "try");
    assert_eq!(first.delays.len(), 1);
    let (script, command) = (named(&rows, "run script.ftsh"), named(&rows, "cat"));
    assert_eq!(script.attribute("code.file.path"), "script.ftsh");
    assert_eq!(command.attribute("process.executable.name"), "cat");
    assert!(command.attribute("process.pid").parse::<u32>().is_ok_and(|pid| pid > 1));
    assert_eq!(command.attribute("code.file.path"), "script.ftsh");
    assert_eq!(script.parent, None);
}

#[test]
fn a_journal_has_the_same_spans_as_the_run() {
    let run = Ftsh::script(SCRIPT).options(["--otlp", "spans", "--journal", "j"]).failure(124);
    let live = sorted_spans(&run.directory.path().join("spans"));
    let again = Ftsh::after(run).args(["--trace", "j", "--otlp", "again"]).success();
    assert_eq!(sorted_spans(&again.directory.path().join("again")), live);
    let run = Ftsh::script(SCRIPT).options(["--journal", "j"]).failure(124);
    let later = Ftsh::after(run).args(["--trace", "j", "--otlp", "spans"]).success();
    assert_eq!(tree(&spans_of(&later)), TREE);
}

/// A script whose first start is killed in its second attempt.
const KILLED: &str = "\
try 3 times every 1 ms
    sh -c 'mkdir one 2>/dev/null && exit 3; mkdir two 2>/dev/null || exit 0; exec sleep 1000'
end
sh -c 'exit 0'
";

const KILLED_TREE: &str = "\
run script.ftsh process.exit.code=0
  try code.line.number=1 ftsh.policy=every
    attempt ftsh.attempt=1 error.type=exit
      sh code.line.number=2 process.exit.code=3 error.type=exit
    attempt ftsh.attempt=2 error.type=killed
      sh code.line.number=2 error.type=killed
    attempt ftsh.attempt=3
      sh code.line.number=2 process.exit.code=0
  sh code.line.number=4 process.exit.code=0
";

/// Kills both processes of a shell in its second attempt.
fn killed(options: &[&str]) -> Finished {
    let run = Ftsh::script(KILLED).options(options).start();
    let second = run.directory().join("two");
    run.until("the second attempt", |_| second.exists());
    let interpreter = run.interpreter().expect("an interpreter");
    kill(run.pid(), Signal::SIGKILL).expect("it lives");
    let _ = kill(interpreter, Signal::SIGKILL);
    run.leave()
}

#[test]
fn a_run_that_was_killed_and_resumed_is_one_trace() {
    let options = ["--otlp", "spans", "--journal", "j"];
    let dead = killed(&options);
    let of_dead = Ftsh::after(dead).args(["--trace", "j", "--otlp", "dead"]).success();
    let rows = spans::read(&of_dead.directory.path().join("dead"));
    spans::check(&rows).expect("a trace");
    let open = rows.iter().filter(|row| row.attribute("error.type") == "killed");
    assert_eq!(open.count(), 4, "{rows:#?}");
    let resumed = Ftsh::after(of_dead).options(options).arg("script.ftsh").success();
    let mut rows = spans_of(&resumed);
    rows.sort_by(|one, other| one.id.cmp(&other.id));
    rows.dedup();
    assert_eq!(tree(&rows), KILLED_TREE);
    let again = Ftsh::after(resumed).args(["--trace", "j", "--otlp", "again"]).success();
    assert_eq!(tree(&spans::read(&again.directory.path().join("again"))), KILLED_TREE);
    let later = spans::read(&again.directory.path().join("again"));
    assert!(later.iter().all(|row| rows.contains(row)), "{later:#?}\n{rows:#?}");
}

#[test]
fn a_resume_writes_what_the_killed_start_had_not_written() {
    let dead = killed(&["--journal", "j"]);
    let resumed = Ftsh::after(dead).options(["--otlp", "spans", "--journal", "j"]);
    let rows = spans_of(&resumed.arg("script.ftsh").success());
    assert_eq!(tree(&rows), KILLED_TREE);
}

#[test]
fn a_program_learns_its_own_span() {
    let script = "sh -c 'echo $TRACEPARENT > parent; echo $TRACESTATE > state'\n\
                  TRACEPARENT=own sh -c 'echo $TRACEPARENT > own'";
    let run = Ftsh::script(script).options(["--otlp", "spans"]).env("TRACESTATE", "a=b");
    let run = run.env("TRACEPARENT", CALLER).success();
    let rows = spans_of(&run);
    let (trace, span) = ids(&run.read("parent"));
    let command = named(&rows, "sh");
    assert_eq!((&trace, &span), (&command.trace, &command.id));
    let root = named(&rows, "run script.ftsh");
    let (of_caller, around) = ids(CALLER);
    assert_eq!((&root.trace, root.parent.as_ref()), (&of_caller, Some(&around)));
    assert_eq!((run.read("state"), run.read("own")), ("a=b\n".into(), "own\n".into()));
}

#[test]
fn a_caller_decides_whether_a_trace_is_recorded() {
    let unrecorded = CALLER.replace("-01", "-00");
    let script = "sh -c 'echo $TRACEPARENT > parent'";
    let passed = |header: &str, options: &[&str]| {
        let run = Ftsh::script(script).options(options).env("TRACEPARENT", header).success();
        (run.read("parent"), run.directory.path().join("spans").exists())
    };
    assert_eq!(passed(&unrecorded, &["--otlp", "spans"]), (format!("{unrecorded}\n"), false));
    assert_eq!(passed(CALLER, &[]), (format!("{CALLER}\n"), false));
    let (own, has_spans) = passed("wrong", &["--otlp", "spans"]);
    assert!(has_spans && ids(&own).0 != ids(CALLER).0);
}

#[test]
fn a_program_in_the_place_of_the_shell_has_a_span() {
    for (code, ends) in [(0, "process.exit.code=0"), (3, "process.exit.code=3 error.type=exit")] {
        let script = format!("try 2 times\nexec sh -c 'exit {code}'\nend");
        let run = Ftsh::script(script).options(["--otlp", "spans"]).run();
        run.expect_code(code);
        let tree = tree(&spans_of(&run));
        assert!(tree.contains(&format!("      sh code.line.number=2 {ends}\n")), "{tree}");
        assert!(tree.starts_with(&format!("run script.ftsh {ends}\n")), "{tree}");
    }
}

#[test]
fn a_nested_shell_continues_the_trace() {
    let script = "ftsh=\"$1\"\n$ftsh -c 'sh -c \"exit 0\"'";
    let run = Ftsh::script(script).arg(crate::support::FTSH).options(["--otlp", "spans"]);
    let tree = tree(&spans_of(&run.success()));
    assert!(tree.contains("\n  ftsh "), "{tree}");
    assert!(tree.contains("\n    run -c ") && tree.contains("\n      sh "), "{tree}");
}

#[test]
fn a_prefix_names_its_program() {
    let run = Ftsh::new().args(["--otlp", "spans", "try", "2", "times", "--", "sh", "-c", "true"]);
    assert_eq!(spans_of(&run.success()).last().expect("a root").name, "run sh");
}

#[test]
fn a_file_that_does_not_work_changes_no_status() {
    let run = Ftsh::script("sh -c 'exit 0'").options(["--otlp", "none/spans"]).success();
    let line = run.one_line().errors();
    assert!(line.contains("2 spans were not sent: `"), "{line}");
    let quiet = Ftsh::script("sh -c 'exit 3'").options(["-l", "0", "--otlp", "none/spans"]);
    quiet.failure(3).expect_stdout(b"");
}

#[test]
fn wrong_words_are_refused() {
    Ftsh::new().args(["--trace", "j"]).refused(&["`--trace` needs `--otlp`"]);
    Ftsh::command("echo")
        .options(["--otlp", "ftp://here"])
        .refused(&["`--otlp`: `ftp://here` is not a URL"]);
    Ftsh::command("echo").options(["--otlp", ""]).refused(&["`--otlp` lacks its value"]);
    let run = Ftsh::command("echo").env("FTSH_OTLP", "1").env("OTEL_EXPORTER_OTLP_ENDPOINT", "x");
    run.refused(&["`--otlp`: `x` is not a URL"]);
    let same = ["--otlp", "j", "--journal", "j"];
    Ftsh::command("echo").options(same).refused(&["`--journal` and `--otlp`"]);
    let run = Ftsh::command("echo a").args(["--trace", "nosuch", "--otlp", "spans"]);
    run.refused(&["`--trace` shows a recorded run and takes no script"]);
}

#[test]
fn variables_of_opentelemetry_describe_and_refuse_the_trace() {
    let run = || Ftsh::command("sh -c 'exit 0'").env("FTSH_OTLP", "spans");
    let described = run().env("OTEL_SERVICE_NAME", "night");
    let described = described.env("OTEL_RESOURCE_ATTRIBUTES", "team=a%20b, service.name=other");
    let text = described.success().read("spans");
    for attribute in [
        r#"{"key":"service.name","value":{"stringValue":"night"}}"#,
        r#"{"key":"team","value":{"stringValue":"a b"}}"#,
    ] {
        assert!(text.contains(attribute), "{text}");
    }
    for (name, value) in
        [("OTEL_SDK_DISABLED", "TRUE"), ("OTEL_TRACES_EXPORTER", "none"), ("FTSH_OTLP", "0")]
    {
        let refused = run().env(name, value).success();
        assert!(!refused.directory.path().join("spans").exists(), "{name}");
    }
    let run = run().env("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc").env("FTSH_OTLP", "1").success();
    let line = run.one_line().errors();
    assert!(
        line.contains("2 spans were not sent: `OTEL_EXPORTER_OTLP_PROTOCOL` is grpc"),
        "{line}"
    );
}

/// A collector that answers one request. Returns its head and its body.
fn collector(status: u16) -> (String, JoinHandle<(String, String)>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let serve = move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let mut reader = BufReader::new(stream.try_clone().expect("a descriptor"));
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).expect("a line") > 0 {}
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
        let mut body = vec![0; length.and_then(|it| it.parse().ok()).expect("a length")];
        reader.read_exact(&mut body).expect("a body");
        write!(stream, "HTTP/1.1 {status} x\r\nContent-Length: 2\r\n\r\n{{}}").expect("a client");
        // Other clients wait for an answer.
        std::mem::forget(listener);
        (head, String::from_utf8(body).expect("text"))
    };
    (address, std::thread::spawn(serve))
}

#[test]
fn a_collector_gets_the_spans() {
    for by_variables in [false, true] {
        let (address, thread) = collector(200);
        let run =
            Ftsh::command("sh -c 'exit 0'").env("OTEL_EXPORTER_OTLP_HEADERS", "key=a%20b,x=y");
        let url = format!("http://{address}");
        let run = if by_variables {
            run.env("FTSH_OTLP", "1").env("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        } else {
            run.options(["--otlp", &url])
        };
        run.success().expect_stdout(b"");
        let (head, body) = thread.join().expect("a request");
        assert!(head.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{head}");
        for line in ["Content-Type: application/json\r\n", "key: a b\r\n", "x: y\r\n"] {
            assert!(head.contains(line), "{head}");
        }
        let data: serde_json::Value = serde_json::from_str(&body).expect("JSON");
        let spans = data["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().expect("spans");
        let rows: Vec<_> = spans.iter().map(|span| SpanRow::of(span).expect("a span")).collect();
        assert_eq!(tree(&rows).lines().count(), 2);
    }
}

#[test]
fn only_spans_that_were_not_sent_are_counted() {
    for more in [&[][..], &["--ping", "http://127.0.0.1:9/"]] {
        let (address, thread) = collector(200);
        let run = Ftsh::script("n=0\nwhile $n < 300\ntry 1 time; n=$n + 1; end\nend");
        let run = run.options(["--otlp", &format!("http://{address}"), "-f", "log"]);
        let run = run.options(more).success();
        let sent = thread.join().expect("a request").1.matches("\"spanId\"").count();
        let expected = format!("{} spans were not sent", 601 - sent);
        assert!(sent > 0 && run.read("log").contains(&expected), "{}", run.read("log"));
    }
}

#[test]
fn the_end_of_a_supervisor_during_the_last_report_shows_the_output() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", silent.local_addr().expect("an address"));
    let run = Ftsh::command("echo out; exit 0").options(["--cron", "--otlp", &url]).start();
    let client = silent.accept().expect("the request at the end").0;
    kill(run.pid(), Signal::SIGKILL).expect("a supervisor");
    run.until_gone("after SIGKILL");
    drop(client);
    let errors = run.leave().errors();
    assert!(errors.starts_with("ftsh: -c: ended by SIGKILL; it printed:\nout\n"), "{errors}");
}

#[test]
fn a_collector_that_refuses_is_one_line() {
    let (address, thread) = collector(503);
    let run = Ftsh::command("sh -c 'exit 0'").options(["--otlp", &format!("http://{address}/")]);
    let line = run.success().one_line().errors();
    assert!(line.contains("2 spans were not sent: ") && line.contains("503"), "{line}");
    thread.join().expect("a request");
}

#[test]
fn a_branch_elsewhere_is_part_of_the_trace() {
    let Some(sshd) = Sshd::start("") else { return };
    let script = "forall x in a on ssh h1\n\
                  try 2 times every 1 ms\nsh -c 'echo $TRACEPARENT > parent; exit 3'\n\
                  catch\nsh -c 'exit 0'\nend\nend";
    let run = sshd.reached_by(Ftsh::script(script), "").options(["--otlp", "spans", "--journal=j"]);
    let run = run.success();
    let rows = spans_of(&run);
    assert_eq!(
        tree(&rows),
        "\
run script.ftsh process.exit.code=0
  branch code.line.number=1 host.name=h1
    try code.line.number=2 ftsh.policy=every error.type=exit
      attempt ftsh.attempt=1 error.type=exit
        sh code.line.number=3 process.exit.code=3 error.type=exit
      attempt ftsh.attempt=2 error.type=exit
        sh code.line.number=3 process.exit.code=3 error.type=exit
    sh code.line.number=5 process.exit.code=0
"
    );
    let (trace, span) = ids(&run.read("parent"));
    assert!(rows.iter().any(|row| row.id == span && row.trace == trace && row.name == "sh"));
    let live = sorted_spans(&run.directory.path().join("spans"));
    let again = Ftsh::after(run).args(["--trace", "j", "--otlp", "again"]).success();
    assert_eq!(sorted_spans(&again.directory.path().join("again")), live);
}

#[test]
fn secrets_are_in_no_span() {
    let script = "secret=tool\n/bin/true\ncp /bin/true ./tool\n./$secret";
    let run = Ftsh::script(script).options(["--redact", "secret", "--otlp", "spans"]).success();
    let rows = spans_of(&run);
    assert!(rows.iter().all(|row| !row.name.contains("tool")), "{rows:#?}");
}
