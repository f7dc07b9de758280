//! Links the program statically where the static libraries are available.
//!
//! Loading shared libraries takes a third of the time of a short script.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs, io};

/// Linker scripts in place of the shared libraries that rustc names.
const LIBRARIES: [(&str, &str); 3] = [
    ("libgcc_s.so", "GROUP ( -l:libgcc_eh.a -l:libgcc.a -l:libc.a )"),
    ("libc.so", "GROUP ( -l:libc.a -l:libgcc_eh.a )"),
    ("libm.so", "GROUP ( -l:libm.a )"),
];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=RUSTC_LINKER");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    if is_native_gnu() && matches!(can_link(&out), Ok(true)) {
        for argument in arguments(&out) {
            println!("cargo:rustc-link-arg-bin=ftsh={argument}");
        }
    }
}

/// Returns true if the target is the host, with the GNU C library.
fn is_native_gnu() -> bool {
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    env::var_os("HOST") == env::var_os("TARGET")
        && is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ENV", "gnu")
}

fn arguments(out: &Path) -> [String; 3] {
    [format!("-L{}", out.display()), "-static".into(), "-no-pie".into()]
}

/// Links a small program, because the static libraries are not installed everywhere.
fn can_link(out: &Path) -> io::Result<bool> {
    for (library, script) in LIBRARIES {
        fs::write(out.join(library), script)?;
    }
    let source = out.join("probe.c");
    fs::write(&source, "int main(void) { return 0; }\n")?;
    let linker = env::var_os("RUSTC_LINKER").unwrap_or_else(|| "cc".into());
    let status = Command::new(linker)
        .arg(&source)
        .args(["-Wl,-Bdynamic", "-lgcc_s", "-lm", "-lc"])
        .args(arguments(out))
        .arg("-o")
        .arg(out.join("probe"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    Ok(status.success())
}
