//! Links the program statically where the static libraries are available, puts the functions of a
//! start together, and leaves out the tables for unwinding.
//!
//! Loading shared libraries takes a third of the time of a short script. Page faults in scattered
//! code take another part. The tables are a twelfth of the program.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs, io};

/// Linker scripts in place of the shared libraries that rustc names.
const LIBRARIES: [(&str, &str); 3] = [
    ("libgcc_s.so", "GROUP ( -l:libgcc_eh.a -l:libgcc.a -l:libc.a )"),
    ("libc.so", "GROUP ( -l:libc.a -l:libgcc_eh.a )"),
    ("libm.so", "GROUP ( -l:libm.a )"),
];

/// Linker scripts of release builds. `packaging/start-order/order.py` writes the first one, which
/// puts the functions of a start together.
const SCRIPTS: [&str; 2] = ["packaging/start-order/start.ld", "packaging/no-unwinding.ld"];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for script in SCRIPTS {
        println!("cargo:rerun-if-changed={script}");
    }
    println!("cargo:rerun-if-env-changed=RUSTC_LINKER");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let plain = if is_native_gnu() {
        arguments(&out)
    } else if is("CARGO_CFG_TARGET_ENV", "musl") {
        Vec::new()
    } else {
        return;
    };
    let scripted = [&plain[..], script(&out).as_slice()].concat();
    let found = [scripted, plain].into_iter().find(|it| matches!(can_link(&out, it), Ok(true)));
    for argument in found.iter().flatten() {
        println!("cargo:rustc-link-arg-bin=ftsh={argument}");
    }
}

/// Returns true if the target is the host, with the GNU C library.
fn is_native_gnu() -> bool {
    env::var_os("HOST") == env::var_os("TARGET")
        && is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ENV", "gnu")
}

fn is(name: &str, value: &str) -> bool {
    env::var(name).is_ok_and(|found| found == value)
}

fn arguments(out: &Path) -> Vec<String> {
    vec![format!("-L{}", out.display()), "-static".into(), "-no-pie".into()]
}

/// Writes the linker scripts into a single one, since some linkers take only the last. Returns the
/// argument for it: none in a build for tests, whose functions are not inlined, which unwinds, and
/// whose start does not matter.
fn script(out: &Path) -> Option<String> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let is_release = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let scripts = SCRIPTS.map(|name| fs::read_to_string(root.join(name)).expect("a script"));
    let path = out.join("release.ld");
    fs::write(&path, scripts.concat()).expect("the folder for the output");
    is_release.then(|| format!("-Wl,-T,{}", path.display()))
}

/// Links a small program, because the static libraries are not installed everywhere.
fn can_link(out: &Path, arguments: &[String]) -> io::Result<bool> {
    for (library, script) in LIBRARIES {
        fs::write(out.join(library), script)?;
    }
    let source = out.join("probe.c");
    fs::write(&source, "int main(void) { return 0; }\n")?;
    let linker = env::var_os("RUSTC_LINKER").unwrap_or_else(|| "cc".into());
    let status = Command::new(linker)
        .arg(&source)
        .args(["-Wl,-Bdynamic", "-lgcc_s", "-lm", "-lc"])
        .args(arguments)
        .arg("-o")
        .arg(out.join("probe"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    Ok(status.success())
}
