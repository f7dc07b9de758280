//! `use`: functions and channels of other files.

use std::fs;

use nix::sys::signal::{Signal, kill};

use crate::support::Ftsh;

const GREET: &str = "function greet\n    echo hello $1\n    missing-program\nend\n";

#[test]
fn files_define_functions_and_channels_for_the_whole_script() {
    let script = "args name\nuse lib/a.ftsh\nuse lib/b.ftsh\ngreet $name\necho ${twice(3)}\n\
                  try through disk\n    echo passed\nend";
    Ftsh::script(script)
        .file(
            "lib/a.ftsh",
            "# Names.\nuse b.ftsh\nfunction greet\n    echo hello $1, ${twice(2)}\nend",
        )
        .file("lib/b.ftsh", "channel disk at most 2\nfunction twice\n    return 2 * $1\nend")
        .args(["you"])
        .stdout("hello you, 4\n6\npassed\n")
        .success();
}

#[test]
fn the_path_counts_from_the_directory_of_the_file() {
    let greet = "function greet\n    echo hello\nend";
    Ftsh::new()
        .file("there/main.ftsh", "use lib.ftsh\ngreet")
        .file("there/lib.ftsh", greet)
        .args(["there/main.ftsh"])
        .stdout("hello\n")
        .success();
    Ftsh::command("use there/lib.ftsh\ngreet")
        .file("there/lib.ftsh", greet)
        .stdout("hello\n")
        .success();
}

#[test]
fn failures_and_errors_name_the_used_file() {
    let run = Ftsh::script("use lib.ftsh\ngreet you").file("lib.ftsh", GREET).stdout("hello you\n");
    let finished = run.failure(127);
    finished.expect_stderr("lib.ftsh:3");
    for options in [&["-n"][..], &[]] {
        let script = Ftsh::script("use lib.ftsh\ngreet").options(options);
        let finished = script.file("lib.ftsh", "function greet\n  if true\n").stdout("").failure(2);
        finished.expect_stderr("lib.ftsh:");
    }
}

#[test]
fn a_check_reads_the_files_and_a_print_does_not() {
    let script = || Ftsh::script("use   lib.ftsh\nx=greet()").options(["-n"]);
    script().failure(2).expect_stderr("lib.ftsh");
    Ftsh::script("use   lib.ftsh\nx=greet()")
        .options(["-p"])
        .stdout("use lib.ftsh\nx=greet()\n")
        .success();
    // A function of a used file is no missing program.
    let script = "use lib.ftsh\ntry 5 times\n    greet\nend";
    let finished = Ftsh::script(script)
        .options(["-n", "--strict"])
        .file("lib.ftsh", "function greet\n    echo hi\nend")
        .success();
    assert_eq!(finished.errors(), "");
}

#[test]
fn a_resumed_run_keeps_the_files_of_its_first_start() {
    let greet =
        |word: &str| format!("use names.ftsh\nfunction greet\n    echo {word} ${{name()}}\nend");
    let script = "use lib.ftsh\ntry 2 times every 1 ms\n\
                  sh -c 'test -e been || { echo > been; exec sleep 1000; }'\nend\ngreet";
    let run = Ftsh::script(script)
        .options(["--journal=j"])
        .file("lib.ftsh", greet("hello"))
        .file("names.ftsh", "function name\n    return you\nend")
        .start();
    run.until_lines("been", 1);
    kill(run.interpreter().expect("an interpreter"), Signal::SIGKILL).expect("it lives");
    let finished = run.leave();
    fs::write(finished.directory.path().join("lib.ftsh"), greet("goodbye")).expect("a file");
    fs::remove_file(finished.directory.path().join("names.ftsh")).expect("a file");
    let next = Ftsh::after(finished).options(["--journal=j"]).args(["script.ftsh"]);
    next.stdout("hello you\n").success();
}
