//! Generator of the manual pages and the completions. The default folder is `dist`.

mod pages;

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let folder = PathBuf::from(std::env::args_os().nth(1).unwrap_or_else(|| "dist".into()));
    match write(&folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("dist: can't write into `{}`: {error}", folder.display());
            ExitCode::FAILURE
        }
    }
}

fn write(folder: &PathBuf) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    for (name, content) in pages::all()? {
        let path = folder.join(name);
        std::fs::write(&path, content)?;
        println!("{}", path.display());
    }
    Ok(())
}
