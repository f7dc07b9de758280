//! Values that pass real processes unchanged to the byte.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use super::support::Ftsh;

/// Values that no environment, argument or file name changes. None is empty or contains a NUL or a
/// slash.
const VALUES: [&[u8]; 9] = [
    b"plain",
    b"\n",
    b"i\n",
    b"i\n\n",
    b"\r\n",
    b" i\t",
    b"-i \"$i\" '*' \\",
    b"\xff\xfe\x80\n",
    b"~=;#\xc3\x85\x01\x7f\n",
];

const SCRIPT: &str = r#"
function same; return $1; end
function tell; printf "%s\0" "$1"; end
for value in "$@"
    tell "$value"
    a=same($value); tell "$a"
    forany b in "$a"; tell "$b"; end
    forall c in "$a"; tell "$c"; end
    export "D=$a"; printenv -0 D
    E="$a" printenv -0 E
    printf "%s" "$a" -> raw; cat -< raw; printf "\0"
    printf "%s\n" "$a" -> line; tell "$line"
    ftsh -c 'printf "%s\0" "$1"' x "$a"
end
"#;

#[test]
fn arguments_come_out_as_they_went_in() {
    // A value that is read as a line loses its line end, including a CR before it.
    let values = || VALUES.into_iter().filter(|value| !value.ends_with(b"\r"));
    let expected: Vec<u8> = values().flat_map(|value| [value, b"\0"].concat().repeat(9)).collect();
    Ftsh::script(SCRIPT).args(values().map(OsStr::from_bytes)).stdout(expected).success();
}

#[test]
fn the_environment_comes_out_as_it_went_in() {
    for value in VALUES {
        let script = "printf '%s\\0' \"$A\"; A=\"$A\"; printenv -0 A";
        let expected = [value, b"\0"].concat().repeat(2);
        Ftsh::command(script).env("A", OsStr::from_bytes(value)).stdout(expected).success();
    }
}

#[test]
fn a_loop_over_files_removes_those_that_it_names() {
    let run = Ftsh::command("for f in *; if \"$f\" .ne. keep; rm -- \"$f\"; end; end");
    for name in VALUES.into_iter().chain([&b"keep"[..], b"keep\n"]) {
        fs::write(run.path(OsStr::from_bytes(name)), "").expect("a file");
    }
    let finished = run.success();
    let left: Vec<_> = fs::read_dir(&finished.directory).expect("a directory").collect();
    assert_eq!(left.len(), 1);
}
