//! Scripts of the cookbook with branches on other machines, with stand-ins for `ssh` and `srun`.

use crate::cluster::SSH;
use crate::cookbook::{Recipe, count};

#[test]
fn jobs_on_three_machines() {
    // One machine is unreachable. On another one, the shell dies once in the middle of a scan.
    let ssh = SSH.replace("= down", "= alpha");
    let tesseract = "case $1 in
         *bad.tif) exit 3;;
         *lost.tif) test -e died || { touch died; kill -9 $PPID; exec sleep 1000; };;
         esac
         echo text > \"$2.txt\"";
    let recipe = Recipe::new("Jobs on three machines").program("tesseract", tesseract);
    let recipe = ["bad", "good", "lost", "with a blank"]
        .into_iter()
        .fold(recipe, |recipe, name| recipe.file(&format!("scans/{name}.tif"), ""));
    let run = recipe.0.program("bin/ssh", &ssh).options(["--summary", "--results=r", "-t", "2"]);
    let finished =
        Recipe(run.env("FTSH_LEASE", "1s")).stdout("no text of scans/bad.tif\n").failure(3);
    for name in ["good", "lost", "with a blank"] {
        assert_eq!(finished.read(&format!("scans/{name}.tif.txt")), "text\n");
    }
    assert_eq!(count(&finished, "calls", "tesseract scans/bad.tif"), 3);
    assert_eq!(count(&finished, "calls", "tesseract scans/lost.tif"), 2);
    assert_eq!(finished.read("r").lines().count(), 4);
    finished.expect_stderr("\n    alpha: no branch, avoided ");
    finished.expect_stderr("(1 lost");
    finished.expect_stderr(
        "scan=scans/bad.tif: line 4: `tesseract scans/bad.tif scans/bad.tif.part` exited with 3",
    );
}

#[test]
fn files_for_machines_without_a_common_directory() {
    let align = "case $2 in bad.fq) echo part; exit 3;; esac; cat $1/index \"$2\"; ls";
    let recipe = Recipe::new("Files for machines without a common directory");
    let recipe = recipe.program("align", align).file("genome/index", "index\n");
    let recipe = ["bad", "good", "with a blank"]
        .into_iter()
        .fold(recipe, |recipe, name| recipe.file(&format!("{name}.fq"), "sample\n"));
    let recipe = Recipe(recipe.0.program("bin/ssh", SSH)).stdout("not aligned: bad.fq\n");
    let finished = recipe.failure(3);
    for name in ["good", "with a blank"] {
        let expected = format!("index\nsample\nbam\ncalls\ngenome\n{name}.fq\n");
        assert_eq!(finished.read(&format!("bam/{name}.fq.bam")), expected);
    }
    assert!(!finished.directory.path().join("bam/bad.fq.bam").exists());
}

#[test]
fn a_block_runs_on_each_host() {
    let recipe = Recipe::new("Run a block on each host").args(&["alpha", "beta"]);
    // One of both hosts fails once.
    let fetch = "echo \"$FTSH_ATTEMPT\"; ! mkdir tried 2> /dev/null";
    let recipe = recipe.program("fetch-release", fetch).program("systemctl", "");
    let finished = Recipe(recipe.0.program("bin/ssh", SSH)).success();
    for host in ["alpha", "beta"] {
        assert!(finished.text().contains(&format!("{host} is done\n")));
    }
    assert_eq!(count(&finished, "calls", "systemctl restart shop"), 2);
    assert_eq!(count(&finished, "calls", "fetch-release"), 3);
}

#[test]
fn jobs_on_slurm() {
    let srun = "while case $1 in -*) ;; *) false;; esac; do shift; done; exec \"$@\"";
    let align =
        "case $1 in *bad.fq) exit 3;; *late.fq) test -e tried || { touch tried; exit 4; };; esac
         echo aligned";
    let recipe = Recipe::new("Jobs on Slurm").program("srun", srun).program("align", align);
    let recipe = ["bad", "good", "late"]
        .into_iter()
        .fold(recipe, |recipe, name| recipe.file(&format!("samples/{name}.fq"), ""));
    let finished = recipe.stdout("samples/bad.fq isn't aligned\n").failure(3);
    for name in ["good", "late"] {
        assert_eq!(finished.read(&format!("samples/{name}.fq.bam")), "aligned\n");
    }
    let jobs = finished.read("calls");
    let jobs: Vec<_> = jobs.lines().filter(|line| line.starts_with("srun ")).collect();
    assert_eq!(jobs.len(), 6, "a job for each attempt: {jobs:#?}");
    assert!(jobs.iter().all(|job| job.contains(" --partition=long --mem=4G ")), "{jobs:#?}");
    finished.expect_stderr("sample=samples/bad.fq: ");
}
