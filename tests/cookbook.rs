//! Scripts of the cookbook, with stand-ins for their programs.

use std::fs;
use std::path::Path;

use crate::support::Ftsh;
use crate::support::documents;
use crate::support::run::Finished;

pub(crate) fn script(heading: &str) -> String {
    let has_it = |page: &String| {
        fs::read_to_string(page).expect("a page").contains(&format!("\n## {heading}\n"))
    };
    script_of(&pages().into_iter().find(has_it).expect(heading), heading)
}

/// Paths of the cookbook's pages of recipes.
fn pages() -> Vec<String> {
    documents::below("docs/cookbook")
        .into_iter()
        .filter(|page| !page.ends_with("index.md"))
        .collect()
}

/// Returns the script below a heading, with short delays.
pub(crate) fn script_of(document: &str, heading: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(document);
    let text = fs::read_to_string(path).expect("a document");
    let section = text.split(&format!("\n## {heading}\n")).nth(1).expect(heading);
    let section = section.split("\n## ").next().unwrap_or(section);
    let script = section.split("```ftsh\n").nth(1).expect("a script");
    let script = script.split("```").next().unwrap_or(script);
    let mut words = Vec::new();
    for line in script.split('\n') {
        let line = &line.replace("hedge after 20 seconds at most 2", "hedge after 100 ms");
        let line = &line.replace("wait=5", "wait=0.005");
        let line = match line.split_once("every ") {
            Some((head, tail)) if head.trim_start().starts_with("try") => {
                format!("{head}every 5 ms{}", condition(tail))
            }
            _ => line.to_owned(),
        };
        words.push(match line.split_once("backoff ") {
            Some((head, policy)) => {
                let name = policy.split(' ').next().unwrap_or_default();
                format!("{head}backoff {name} from 1 ms{}", condition(policy))
            }
            None => line,
        });
    }
    words.join("\n")
}

/// Removes the `while` clause at the end of a line.
fn condition(tail: &str) -> &str {
    tail.find(" while ").map_or("", |at| &tail[at..])
}

#[test]
fn every_recipe_is_tried() {
    let text: String =
        pages().iter().map(|page| fs::read_to_string(page).expect("a page")).collect();
    let headings: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    assert!(headings.len() >= 20);
    for heading in headings {
        let tried =
            ["Recipe::new(", "Recipe::of(", "= script("].map(|it| format!("{it}\"{heading}\""));
        let texts = [
            include_str!("cookbook.rs"),
            include_str!("cookbook_elsewhere.rs"),
            include_str!("cookbook_endings.rs"),
            include_str!("cookbook_servers.rs"),
        ];
        let is_tried = tried.iter().any(|it| texts.iter().any(|text| text.contains(it)));
        assert!(is_tried, "{heading} isn't tried");
    }
}

#[test]
fn every_recipe_checks_its_arguments() {
    let argument = regex::Regex::new(r"(?m)^args |\$[1-9*@]").expect("a pattern");
    let text: String =
        pages().iter().map(|page| fs::read_to_string(page).expect("a page")).collect();
    let mut checked = 0;
    for heading in text.lines().filter_map(|line| line.strip_prefix("## ")) {
        let script = script(heading);
        if argument.is_match(&script) {
            let finished = Recipe::running(script, Ftsh::new()).stdout("").failure(2);
            finished.expect_stderr("usage: script.ftsh ");
            checked += 1;
        }
    }
    assert!(checked >= 20, "{checked} recipes");
}

/// A run of the script below a heading.
pub(crate) struct Recipe(pub Ftsh);

impl Recipe {
    pub(crate) fn new(heading: &str) -> Self {
        Self::of(heading, Ftsh::new())
    }

    pub(crate) fn of(heading: &str, run: Ftsh) -> Self {
        Self::running(script(heading), run)
    }

    pub(crate) fn running(script: String, run: Ftsh) -> Self {
        let run = run.file("script.ftsh", script).arg("script.ftsh");
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", run.path("bin").display());
        Self(run.env("PATH", path).env("FTSH_BACKOFF", "fixed from 1 ms"))
    }

    /// Adds a stand-in that appends its words to `calls`.
    pub(crate) fn program(self, name: &str, body: &str) -> Self {
        let text = format!("#!/bin/sh\necho {name} $* >> calls\n{body}\n");
        Self(self.0.program(&format!("bin/{name}"), &text))
    }

    pub(crate) fn file(self, name: &str, content: &str) -> Self {
        Self(self.0.file(name, content))
    }

    pub(crate) fn args(self, arguments: &[&str]) -> Self {
        Self(self.0.args(arguments))
    }

    pub(crate) fn stdout(self, text: &str) -> Self {
        Self(self.0.stdout(text))
    }

    pub(crate) fn success(self) -> Finished {
        self.failure(0)
    }

    pub(crate) fn failure(self, code: i32) -> Finished {
        let finished = self.0.failure(code);
        finished.nothing_left();
        finished
    }
}

/// Returns a stand-in that fails a number of times before it works.
pub(crate) fn fails(times: u32, then: &str) -> String {
    format!("echo x >> times; test $(wc -l < times) -gt {times} || exit 5\n{then}")
}

/// Returns the number of lines of a file with this beginning.
pub(crate) fn count(finished: &Finished, file: &str, start: &str) -> usize {
    finished.read(file).lines().filter(|line| line.starts_with(start)).count()
}

#[test]
fn one_of_several_mirrors() {
    let wget = "case $4 in *.de.*) echo data > \"$3\";; *) exit 4;; esac";
    let finished = Recipe::new("One of several mirrors").program("wget", wget).args(&["a b"]);
    assert_eq!(finished.success().read("a b"), "data\n");
}

#[test]
fn hedge_a_slow_mirror() {
    let wget = "case $4 in *.de.*) echo data;; *) echo part; exec sleep 100;; esac";
    let finished = Recipe::new("Hedge a slow mirror").program("wget", wget).args(&["a b"]);
    let finished = finished.success();
    assert_eq!(finished.read("a b"), "data\n");
    assert!((1..=3).contains(&count(&finished, "calls", "wget")));
}

#[test]
fn a_copy_that_goes_on_where_it_stopped() {
    let recipe = Recipe::new("A copy that continues where it stopped");
    let finished = recipe.program("rsync", &fails(3, "")).args(&["from", "to"]).success();
    assert_eq!(count(&finished, "calls", "rsync -a --partial --timeout=60 from to"), 4);
}

#[test]
fn wait_for_a_port() {
    let recipe = Recipe::new("Wait for a port").program("nc", &fails(4, ""));
    let finished = recipe.args(&["host", "5432"]).success();
    assert_eq!(count(&finished, "calls", "nc -z -w 2 host 5432"), 5);
}

#[test]
fn wait_until_something_is_ready() {
    let recipe = |last: &str| {
        let cloud = format!(
            "echo x >> times; case $(wc -l < times) in 1) exit 1;; 2) echo starting;; *) echo {last};; esac"
        );
        let recipe = Recipe::new("Wait until something is ready").program("cloud", &cloud);
        recipe.args(&["box"])
    };
    recipe("ready").stdout("box is ready\n").success();
    let finished = recipe("failed").stdout("").failure(1);
    finished.expect_stderr("box will never be ready");
    assert_eq!(count(&finished, "calls", "cloud"), 3);
}

#[test]
fn wait_for_room_on_a_disk() {
    let df = "echo x >> times; test $(wc -l < times) -gt 2 && free=600 || free=20
              echo Filesystem 1M-blocks Used Available; echo disk 1000 400 $free 40% /";
    let recipe = Recipe::new("Wait for room on a disk").program("df", df);
    // The first time, the disk is full in the middle.
    let tar = "test -e \"$4/half\" && exit 9; echo half > \"$4/half\"; echo t >> tars
               test $(wc -l < tars) = 2";
    let finished = recipe.program("tar", tar).file("d/other", "").args(&["a.tar", "d"]).success();
    assert_eq!(finished.read("d/data/half"), "half\n");
    assert_eq!(count(&finished, "calls", "df"), 4);
    let recipe = Recipe::new("Wait for room on a disk").program("rm", "").args(&["a.tar"]);
    let finished = recipe.failure(2);
    finished.expect_stderr("usage: script.ftsh archive directory");
    assert!(!finished.directory.path().join("calls").exists(), "nothing was removed");
}

#[test]
fn deploy_to_many_hosts() {
    let recipe = Recipe::new("Deploy to many hosts");
    let finished = recipe.program("rsync", "").program("ssh", "").args(&["a", "b", "c"]).success();
    let text = finished.text();
    assert!(["a", "b", "c"].iter().all(|host| text.contains(&format!("{host} is done\n"))));
    let recipe = Recipe::new("Deploy to many hosts").program("rsync", "exec sleep 60");
    let ssh = recipe.program("ssh", "").program("rsync", "case $4 in b:*) exit 12;; esac");
    let finished = ssh.args(&["b"]).failure(12);
    assert_eq!(count(&finished, "calls", "rsync"), 3);
}

#[test]
fn ask_all_hosts() {
    let ssh = "case $3 in down) echo half; exit 255;; *) echo \" up\";; esac";
    let recipe = Recipe::new("Ask all hosts").program("ssh", ssh).args(&["a", "down", "z"]);
    let finished = recipe.failure(255);
    let text = finished.text();
    let mut lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.pop(), Some("down: no answer"));
    lines.sort_unstable();
    assert_eq!(lines, ["a: up", "z: up"]);
    assert_eq!(count(&finished, "calls", "ssh -o BatchMode=yes down"), 2);
    finished.expect_stderr("1 of 3 branches failed");
}

#[test]
fn deploy_a_few_at_a_time() {
    let recipe = |curl: &str| {
        let recipe = Recipe::new("Deploy a few at a time").file("hosts", "a\nb\nc\n");
        recipe.program("rsync", "").program("ssh", "").program("curl", curl)
    };
    let finished = recipe(&fails(1, "")).success();
    assert_eq!(count(&finished, "calls", "ssh -o BatchMode=yes"), 3);
    let text = script("Deploy a few at a time").replace("for 2 minutes", "3 times");
    let run = recipe("exit 7").0.file("script.ftsh", text);
    let finished = Recipe(run).failure(7);
    assert_eq!(count(&finished, "calls", "ssh -o BatchMode=yes c"), 0, "c is left alone");
}

#[test]
fn two_of_three() {
    let recipe = |curl: &str| Recipe::new("Two of three").program("curl", curl).args(&["file"]);
    let slow = "case $4 in *//b.*) exec sleep 60;; esac";
    recipe(slow).stdout("stored on two nodes\n").success();
    let text = script("Two of three").replace("for 1 minute", "2 times");
    let run = recipe("case $4 in *//b.*) exec sleep 60;; *) exit 7;; esac").0;
    Recipe(run.file("script.ftsh", text)).stdout("").failure(7);
}

#[test]
fn certificates_that_expire() {
    let openssl =
        "case $1 in x509) read host; echo \"notAfter=$host\";; *) date -d \"${3%:443}\" ;; esac";
    let recipe = |hosts: &[&str]| {
        let recipe = Recipe::new("Certificates that expire").program("openssl", openssl);
        recipe.program("mail", "cat > mailed").args(hosts)
    };
    let finished = recipe(&["90days", "30days"]).success();
    assert_eq!(count(&finished, "calls", "mail"), 0);
    let finished = recipe(&["90days", "3days"]).failure(1);
    assert_eq!(finished.read("mailed"), "3days\n");
    finished.expect_stderr("3days expires in 2 days");
}

#[test]
fn keep_what_came_in() {
    let recipe =
        Recipe::new("Keep what came in").program("curl", "cat >> got; test $(wc -l < got) = 6");
    let recipe = Recipe(recipe.0.stdin("1\n2\n3\n").args(["http://host/"]));
    assert_eq!(recipe.success().read("got"), "1\n2\n3\n1\n2\n3\n");
    // As described below the script.
    let atomic = "try for 1 hour atomic\ncurl -fsS -T - \"$1\"\nend\n".to_owned();
    let recipe = Recipe::running(atomic, Ftsh::new());
    let recipe = recipe.program("curl", "cat >> got; test $(wc -l < got) = 6");
    let recipe = Recipe(recipe.0.stdin("1\n2\n3\n").args(["http://host/"]));
    assert_eq!(recipe.success().read("got"), "1\n2\n3\n1\n2\n3\n");
}

#[test]
fn values_from_json() {
    let reply = "{\"state\": \"done\", \"artifacts\": [{\"url\": \"a b\"}, {\"url\": \"c\"}]}";
    let curl = format!("case $1 in -fsSO) echo \"got $2\";; *) echo '{reply}';; esac");
    let recipe = Recipe::new("Values from JSON").program("curl", &curl).args(&["http://host/"]);
    let finished = recipe.success();
    assert_eq!(finished.text(), "state: done\ngot a b\ngot c\n");
}

#[test]
fn names_from_find() {
    let recipe = Recipe::new("Names from find").file("d/a b.log", "A").file("d/c\nd.log", "");
    let recipe = recipe.program("find", "printf 'd/a b.log\\0d/c\\nd.log\\0'").args(&["d"]);
    let finished = recipe.success();
    assert!(finished.directory.path().join("d/a b.log.gz").exists());
    assert!(finished.directory.path().join("d/c\nd.log.gz").exists());
    Recipe::new("Names from find").program("find", "").args(&["d"]).success();
}

#[test]
fn a_producer_and_its_workers() {
    let aws = "case $2 in
        ls) echo '2026-01-01 10:00:00   5 a/1.jpg'; echo '2026-01-01 10:00:00   5 b.jpg';;
        cp) case $3 in */b.jpg) exit 1;; esac;;
        esac";
    let recipe = Recipe::new("A producer and its workers").program("thumbnail", "");
    let finished = recipe.program("aws", aws).failure(1);
    assert_eq!(count(&finished, "calls", "thumbnail in/a/1.jpg"), 1);
    assert_eq!(count(&finished, "calls", "aws s3 cp s3://photos/b.jpg in/b.jpg"), 5);
    finished.expect_stderr("1 of 2 branches failed");
}

#[test]
fn rotate() {
    let recipe = Recipe::new("Rotate").program("systemctl", "").args(&["a b", "service"]);
    let recipe = recipe.file("a b", "0").file("a b.1", "1").file("a b.2", "2").file("a b.7", "7");
    let finished = recipe.success();
    let read = |name| finished.read(name);
    assert_eq!([read("a b.1"), read("a b.2"), read("a b.3")], ["0", "1", "2"]);
    assert_eq!((read("a b.7").as_str(), count(&finished, "calls", "systemctl reload")), ("7", 1));
    assert!(!finished.directory.path().join("a b").exists());
}

#[test]
fn count_down() {
    let text = script("Count down").replace("1 second", "1 ms");
    let run = Recipe::new("Count down").0.file("script.ftsh", text);
    let recipe = Recipe(run).program("systemctl", "").args(&["shop", "2"]);
    let finished = recipe.stdout("shop restarts in 2\nshop restarts in 1\n").success();
    assert_eq!(count(&finished, "calls", "systemctl restart shop"), 1);
}

#[test]
fn pull_many_images() {
    let text = script("Pull many images").replace("for 30 minutes", "3 times");
    let run = Recipe::new("Pull many images").0.file("script.ftsh", text);
    let recipe = Recipe(run).program("docker", "test $3 != gone").args(&["a", "gone", "b"]);
    let finished = recipe.stdout("not pulled:\ngone\n").failure(1);
    assert_eq!(count(&finished, "calls", "docker"), 5);
}

#[test]
fn poll_a_job() {
    let recipe = |last: &str| {
        let sacct = format!(
            "echo x >> times; case $(wc -l < times) in 1) exit 1;; 2) echo '  RUNNING ';; *) echo ' {last} ';; esac"
        );
        let text = script("Poll a job").replace("sleep 30 seconds", "sleep 1 ms");
        let run = Recipe::new("Poll a job").0.file("script.ftsh", text);
        let recipe = Recipe(run).program("sacct", &sacct).program("sbatch", "echo 42");
        recipe.args(&["job.sh"])
    };
    let finished = recipe("COMPLETED").stdout("job 42 is done\n").success();
    assert_eq!(count(&finished, "calls", "sacct -n -X -o State -j 42"), 3);
    recipe("FAILED").stdout("").failure(1).expect_stderr("job 42: FAILED");
}

#[test]
fn wait_for_a_port_without_nc() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port().to_string();
    let recipe = |port| Recipe::new("Wait for a port without nc").args(&["127.0.0.1", port]);
    recipe(&port).success();
    let text = script("Wait for a port without nc").replace("for 1 minute", "3 times");
    // A program of other tests could get the port above after its listener.
    Recipe(recipe("1").0.file("script.ftsh", text)).failure(1);
}

#[test]
fn restart_one_after_the_other() {
    let recipe = Recipe::new("Restart one after the other").program("ssh", "");
    let curl = fails(2, "case $6 in *//b:*) exit 7;; esac");
    let recipe = recipe.program("curl", &curl).args(&["a"]).stdout("a is back\n");
    let finished = recipe.success();
    assert_eq!(count(&finished, "calls", "ssh"), 1, "restarted once");
    let shorter = script("Restart one after the other").replace("for 2 minutes", "3 times");
    let run = Ftsh::script(shorter)
        .program("bin/ssh", "#!/bin/sh\necho $3 >> restarted\n")
        .program("bin/curl", "#!/bin/sh\ncase $6 in *//b:*) exit 7;; esac\n")
        .args(["a", "b", "c"]);
    let path = format!("{}:/usr/bin:/bin", run.path("bin").display());
    let finished = run.env("PATH", path).stdout("a is back\n").run();
    assert_eq!(finished.read("restarted"), "a\nb\n", "c is left alone");
}

#[test]
fn fail_over() {
    let recipe = |curl: &str| {
        let recipe = Recipe::new("Fail over").program("curl", curl);
        recipe.program("switch-over", "").args(&["one", "two"])
    };
    let finished = recipe(&fails(2, "")).stdout("").success();
    assert_eq!(count(&finished, "calls", "switch-over"), 0);
    let finished = recipe("exit 7").success();
    assert_eq!(count(&finished, "calls", "switch-over --from one --to two"), 1);
    assert!(finished.text().ends_with("two has taken over\n"));
}

#[test]
fn a_backup_that_raises_an_alarm() {
    let recipe = |pg_dump: &str| {
        let text = script("A backup that raises an alarm").replace("for 2 hours", "3 times");
        let run = Recipe(Recipe::new("A backup that raises an alarm").0.file("script.ftsh", text));
        let run = run.program("pg_dump", pg_dump).program("rsync", &fails(1, ""));
        run.program("mail", "cat > mailed").args(&["shop"])
    };
    let finished = recipe("echo data").success();
    assert_eq!(count(&finished, "calls", "pg_dump"), 1, "dumped once");
    assert_eq!(count(&finished, "calls", "rsync"), 2);
    assert!(finished.directory.path().join("shop.sql.gz").exists());
    let finished = recipe("echo half; exit 3").failure(3);
    assert!(finished.read("mailed").contains("`pg_dump shop` exited with 3"));
    assert!(!finished.directory.path().join("shop.sql.gz").exists());
}

#[test]
fn a_database_migration() {
    let recipe = |psql: &str| {
        let recipe = Recipe::new("A database migration").program("pg_isready", &fails(2, ""));
        recipe.program("psql", psql).args(&["new.sql"])
    };
    let lost = "echo x >> lost; test $(wc -l < lost) -gt 2 || exit 2";
    assert_eq!(count(&recipe(lost).success(), "calls", "psql"), 3);
    assert_eq!(count(&recipe("exit 3").failure(3), "calls", "psql"), 1);
}

#[test]
fn jobs_for_a_cluster() {
    let squeue = "echo x >> times; test $(wc -l < times) -gt 2 && seq 20 || seq 600";
    let recipe = Recipe::new("Jobs for a cluster").program("squeue", squeue);
    let recipe = recipe.program("sbatch", "echo 4711").args(&["job.sh"]);
    let recipe = Recipe(recipe.0.env("USER", "me"));
    let finished = recipe.stdout("job.sh is job 4711\n").success();
    assert_eq!(count(&finished, "calls", "sbatch"), 1);
}

#[test]
fn clean_up_after_a_failure() {
    let recipe = |index: &str| {
        let recipe = Recipe::new("Clean up after a failure").program("index", index);
        recipe.program("unzip", "echo text > $4/text").args(&["a.zip"])
    };
    let left = |finished: &Finished| {
        let entries = fs::read_dir(finished.directory.path()).expect("a directory");
        let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with("tmp.") || name.contains(".part")).count()
    };
    let finished = recipe("ls $1").success();
    assert_eq!((finished.read("index").as_str(), left(&finished)), ("text\n", 0));
    let finished = recipe("exit 3").failure(3);
    assert_eq!(left(&finished), 0);
}

#[test]
fn a_job_for_cron() {
    let run = Ftsh::new().args(["--splay", "0s"]);
    let recipe = Recipe::of("A job for cron", run).file("data/a b.csv", "").file("data/c.csv", "");
    let recipe = recipe.program("rsync", "").program("report", "echo \"on $1\"").args(&["data"]);
    let finished = recipe.success();
    assert_eq!(finished.read("data/a b.csv.report"), "on a b.csv\n");
}

#[test]
fn one_at_a_time() {
    let recipe = |flock: &str| {
        let recipe = Recipe::new("One at a time").program("prepare", "");
        recipe.program("flock", flock).program("reindex", "")
    };
    let finished = recipe("echo x >> times; test $(wc -l < times) -gt 2 || exit 75; shift 4; $*");
    let finished = finished.success();
    assert_eq!(count(&finished, "calls", "flock"), 3);
    assert_eq!(count(&finished, "calls", "reindex"), 1);
    assert_eq!(count(&recipe("exit 3").failure(3), "calls", "flock"), 1);
}

#[test]
fn many_jobs_for_one_server() {
    let recipe = Recipe::new("Many jobs for one server").program("rsync", &fails(3, ""));
    let finished = recipe.args(&["a"]).success();
    let call = "rsync -a rsync://mirror.example.org/a /srv/mirror/a";
    assert_eq!(count(&finished, "calls", call), 4);
}

#[test]
fn instead_of_a_retry_loop_in_bash() {
    let recipe = |curl: &str| {
        let recipe = Recipe::new("Instead of a retry loop in bash").program("curl", curl);
        recipe.program("process", "").args(&["http://host/"])
    };
    let finished = recipe(&fails(4, "")).success();
    assert_eq!(count(&finished, "calls", "process data"), 1);
    let finished = recipe("exit 22").failure(22);
    assert_eq!((count(&finished, "calls", "curl"), count(&finished, "calls", "process")), (5, 0));
}

#[test]
fn instead_of_timeout() {
    let text = script("Instead of timeout").replace("5 minutes", "100 ms");
    let recipe = |make: &str| {
        let run = Recipe::new("Instead of timeout").0.file("script.ftsh", &text);
        Recipe(run).program("make", make)
    };
    recipe("setsid sleep 60 & sleep 60").stdout("too late\n").failure(124);
    let slower = script("Instead of timeout");
    let run = Recipe::new("Instead of timeout").0.file("script.ftsh", slower);
    let finished = Recipe(run).program("make", "exit 124").failure(124);
    assert_eq!(finished.text(), "failed: `make test` exited with 124\n");
}

#[test]
fn instead_of_a_retry_tool() {
    let recipe = Recipe::new("Instead of a retry tool").program("fetch", &fails(4, "echo data"));
    let finished = recipe.program("unpack", "cat > unpacked").success();
    assert_eq!(finished.read("unpacked"), "data\n");
}

#[test]
fn instead_of_gnu_parallel() {
    let recipe = Recipe::new("Instead of GNU parallel").file("a b.svg", "A").file("c.svg", "C");
    let convert = "cp \"$1\" \"${2#png:}\"";
    let finished = recipe.program("convert", convert).success();
    assert_eq!((finished.read("a b.png"), finished.read("c.png")), ("A".into(), "C".into()));
}

#[test]
fn instead_of_xargs() {
    let recipe =
        Recipe::new("Instead of xargs -P").file("logs/a b.log", "A").file("logs/c.log", "");
    let finished = recipe.success();
    assert!(finished.directory.path().join("logs/a b.log.gz").exists());
}
