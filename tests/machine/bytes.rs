//! Exactness of values to the byte in every use, except for the line end of a command's output.

use bstr::{BString, ByteSlice};
use ftsh_machine::driver;
use ftsh_machine::{Config, Machine, Outcome};
use ftsh_sim::{Call, Model, Simulated};
use proptest::prelude::*;

/// Sources of a value: the code that assigns `a`, and true if a command writes the value.
const SOURCES: &[(&str, bool)] = &[
    ("a=\"$1\"", false),
    ("a=\"$FROM\"", false),
    ("emit -> a", true),
    ("ok ->> a", true),
    ("try\n emit\nend -> a", true),
    ("wrapped -> a", true),
    ("ok | emit -> a", true),
];

/// Code that copies a value from `a` to `b`.
const PATHS: &[&str] = &[
    "b=\"$a\"",
    "b=\"${a}\"",
    "b=\"${a:-}\"",
    "b=\"${a:+$a}\"",
    "b=\"${unset:-$a}\"",
    "b=same($a)",
    "b=same(\"$a\")",
    "b=same(same($a))",
    "for b in \"$a\"; success; end",
    "for b in \"x$a\" \"$a\"; success; end",
    "forany b in \"$a\"; success; end",
    "forany x in no \"$a\" in order\n if $x .eq. no\n failure\n end\n b=\"$x\"\nend",
    "forall x in \"$a\"; cat -< none; show \"$x\"; end; b=\"$a\"",
    "set \"$a\"",
    "set_all \"$a\"",
    "set_second x \"$a\"",
    "set_last x y \"$a\"",
    "A=\"$a\" set_from_environment",
    "ok | set \"$a\"",
    "export \"b=$a\"",
    "b=\"$a\"; export b; ok",
    "b=old; export b; ok; b=\"$a\"",
    "try 2 times\n b=\"$a\"\n if $attempt .eql. 1\n failure\n end\nend",
    "if \"$a\" .eq. $a\n b=\"$a\"\nend",
    "f=/f; echo -n \"$a\" > $f; cat < $f -> raw; cat -< raw -> c; b=\"$a\"",
];

const FUNCTIONS: &str = "
function same; return $1; end
function set; b=\"$1\"; end
function set_all; for b in \"$@\"; success; end; end
function set_second; shift; b=\"$1\"; end
function set_last; shift $# .sub. 1; b=\"$1\"; end
function set_from_environment; b=\"$A\"; end
function wrapped; emit; end
";

fn hexadecimal(bytes: &[u8]) -> String {
    let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.concat() + "\n"
}

/// Returns the output of `show` in a script in which `$1`, `$FROM` and `emit` are the value.
fn shown(script: &str, value: &[u8]) -> (Outcome, String) {
    let parsed = ftsh_syntax::parse("script", script).expect("a script");
    let emitted = BString::from(value);
    let mut world = Simulated::new(1)
        .command("ok", |_, _| Model::succeeds())
        .command("emit", move |_, _| Model::succeeds().prints(emitted.clone()))
        .command("cat", |call, _| Model::succeeds().prints(call.input.clone()))
        .command("show", |call, _| Model::succeeds().prints(hexadecimal(&call.words[1])))
        .command("show_b", |call: &Call, _| {
            let value = call.variable("b").map(|value| hexadecimal(value.as_bytes()));
            Model::succeeds().prints(value.unwrap_or_default())
        })
        .command("show_input", |call, _| Model::succeeds().prints(hexadecimal(&call.input)));
    let args = vec!["script".into(), value.into()];
    let environment = vec![("FROM".into(), value.into())];
    let mut machine = Machine::new(&parsed, args, environment, Config::default(), 1);
    let outcome = driver::run(&mut machine, &mut world);
    (outcome, world.stdout())
}

/// Returns the value of a variable to which a command wrote `bytes`.
fn without_line_end(bytes: &[u8]) -> &[u8] {
    match bytes.strip_suffix(b"\n") {
        Some(line) => line.strip_suffix(b"\r").unwrap_or(line),
        None => bytes,
    }
}

/// Generates bytes with a special meaning elsewhere, mostly at both ends.
fn value() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        prop::sample::select(&b"\n\r\n\r \t\0$\"'\\*?[]~=;#-\xff\xc3\x85x"[..]),
        any::<u8>(),
    ];
    prop::collection::vec(byte, 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_value_is_exact_whichever_way_it_takes(
        value in value(),
        (source, written) in prop::sample::select(SOURCES),
        paths in prop::collection::vec(prop::sample::select(PATHS), 1..4),
    ) {
        let paths = paths.join("\na=\"$b\"\nb=\n");
        let script = format!(
            "none=\"\"\na=\"$1\"\n{source}\nshow_input -< a\n{paths}\n\
             show \"$b\"\nexport b\nshow_b\nb=\"$b\" show_b\nshow_input -< b\n{FUNCTIONS}"
        );
        let (outcome, shown) = shown(&script, &value);
        prop_assert_eq!(outcome, Outcome::Succeeded, "{}", script);
        let expected = if written { without_line_end(&value) } else { &value };
        let lines: Vec<&str> = shown.lines().collect();
        let all = hexadecimal(&value);
        prop_assert_eq!(lines[0], all.trim_end(), "what `-< a` reads: {}", script);
        let expected = hexadecimal(expected);
        for line in &lines[1..] {
            prop_assert_eq!(*line, expected.trim_end(), "{}", script);
        }
        prop_assert!(lines.len() >= 5, "{}", script);
    }
}

#[test]
fn exporting_output_keeps_the_variable() {
    let script = "emit -> b; export b; show_b; show \"$b\"; show_input -< b; show_b";
    let (outcome, shown) = shown(script, b"x\r\n");
    assert_eq!((outcome, &*shown), (Outcome::Succeeded, "78\n78\n780d0a\n78\n"));
}

#[test]
fn output_of_a_command_can_be_a_home() {
    let script = "emit -> HOME; cd; export a=$PWD; show $a; cd /; emit -> OLDPWD; cd -; show $PWD";
    let (outcome, shown) = shown(script, b"/h\n");
    assert_eq!((outcome, &*shown), (Outcome::Succeeded, "2f68\n2f68\n"));
}

#[test]
fn functions_are_exact_to_the_byte() {
    let name = "\u{1}a b\n*'\"$x\\";
    super::world()
        .model(|simulated| simulated.file("/odd", name).file("/list", &format!("{name}\0{name}")))
        .run("cat < /odd -> v\nx=basename(\"/d/$v\")\nif $x .ne. $v; failure; end\ncat < /list -> l\nfor n in split($l, '\\0'); if $n .ne. $v; failure; end; echo -n .; end")
        .succeeds()
        .prints("..");
}

#[test]
fn random_repeats_and_now_moves_with_time() {
    let run = || {
        let ran = super::world()
            .run("a=now(); sleep 90; b=now(); d=$b .sub. $a; r=random(1, 1000000); echo $d $r")
            .succeeds();
        ran.world.stdout()
    };
    let said = run();
    assert!(said.starts_with("90 "), "{said}");
    assert_eq!(said, run());
}
