"""Records what somebody sees who uses ftsh at a terminal: `record.py FTSH FOLDER` makes prefix.svg, prompt.svg
and forall.svg, and draws timeline.svg and trace.svg in ../operate.

The terminal, the shell and the commands are real; only the keys are pressed by this program, and the server that some
downloads come from is its own, on this machine, and as unreliable as is told of it below.
"""

import os
import pty
import random
import select
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from fcntl import ioctl
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from termios import TIOCSWINSZ

from film import Film
from spans import draw

PORT = 8080


class Server(BaseHTTPRequestHandler):
    """Takes up to a second and a half; a third of all parts fail, and the one that isn't there always."""

    chance = random.Random(3)

    def do_GET(self):
        time.sleep(self.chance.uniform(0.3, 1.5))
        fails = "/part/" in self.path and self.chance.random() < 0.33
        self.send_response(404 if self.path.endswith("/17") else 503 if fails else 200)
        self.end_headers()

    def log_message(self, *_):
        pass


def serve():
    server = ThreadingHTTPServer(("127.0.0.1", PORT), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


class Session:
    """A shell at a terminal of its own, in a home of its own."""

    def __init__(self, argv, columns, rows, home):
        self.film, self.begun = Film(columns, rows), time.monotonic()
        environment = {"PATH": os.environ["PATH"], "HOME": home, "TERM": "xterm-256color", "LANG": "C.UTF-8"}
        self.shell, self.terminal = pty.fork()
        if self.shell == 0:
            os.chdir(home)
            # The size has to be there before the shell looks.
            ioctl(0, TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.execve(argv[0], argv, environment)

    def watch(self, seconds=60, until=None):
        """Films for so long, or until a text is the last on the screen."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if not select.select([self.terminal], [], [], left)[0]:
                continue
            try:
                output = os.read(self.terminal, 65536)
            except OSError:
                break
            self.film.shows(time.monotonic() - self.begun, output)
            if until and self.film.text().endswith(until):
                return
        if until:
            sys.exit(f"there is no {until!r} in\n{self.film.text()}")

    def types(self, text, enter=True):
        for key in text:
            os.write(self.terminal, key.encode())
            self.watch(0.07)
        self.watch(0.5)
        if enter:
            self.press("\r")

    def press(self, key, pause=0.4):
        os.write(self.terminal, key.encode())
        self.watch(pause)

    def ends(self, path, title):
        os.kill(self.shell, signal.SIGHUP)
        os.close(self.terminal)
        os.waitpid(self.shell, 0)
        path.write_text(self.film.svg(title))


def prefix(ftsh, home, path):
    """A prefix around a command that hangs and starts another one. The film begins with the status line."""
    user = Session(["/usr/bin/env", "PS1=$ ", "sh", "-i"], 84, 6, home)
    user.watch(0.5)
    user.types("ftsh try 3 times each 2 s -- sh -c 'sleep 600 & sleep 900'", enter=False)
    user.press("\r")
    user.watch(until="…")
    user.film.cut()
    user.watch(until="\n$")
    user.watch(1.5)
    user.types("pgrep -fa 'sleep [69]00' || echo nothing is left")
    user.watch(3)
    user.ends(path, "ftsh repeats a command that hangs, shows attempt and delay in a status line, and leaves no process")


def prompt(ftsh, home, path):
    user = Session([ftsh], 84, 22, home)
    user.watch(1)
    # Misspelt, it is red.
    user.types("crul", enter=False)
    for _ in range(3):
        user.press("\x7f", 0.12)
    user.types(f"url -sf localhost:{PORT}/index -o index")
    user.watch(2)
    # Alt-R
    user.press("\x1br", 1.5)
    user.press("\r", 4)
    server = serve()
    user.watch(until="~>")
    user.watch(2.5)
    server.shutdown()
    server.server_close()
    for line in ["try for 4 seconds", f"  curl -sf localhost:{PORT}/b -o b", "end"]:
        user.types(line)
    user.watch(until="[exit 7] ~>")
    user.watch(2)
    user.types("why")
    user.watch(3)
    user.ends(path, "The prompt: a command that fails, Alt-R puts it into a try, and why tells of attempts")


SCRIPT = f"""\
try
    forall n in 1 .to. 24 at most 5 keep going
        try 4 times backoff full from 1 s
            curl -sf localhost:{PORT}/part/$n -o $n >& log.$n
        end
    end
catch
    echo "missing: $failed"
end
"""


def forall(ftsh, home, path):
    (Path(home) / "fetch.ftsh").write_text(SCRIPT)
    server = serve()
    user = Session([ftsh], 84, 14, home)
    user.watch(0.6)
    user.types("cat fetch.ftsh")
    user.watch(2)
    user.types("ftsh fetch.ftsh")
    user.watch(until="~>")
    user.ends(path, "A forall at a terminal: a bar of what succeeded, failed and runs, until all is done")
    server.shutdown()
    server.server_close()


PROGRAMS = {
    # The first attempts fail, hang or are slow.
    "fetch": """\
n=$(($(cat "count.$1" 2> /dev/null || echo 0) + 1))
echo $n > "count.$1"
case "$1 $n" in
"alpha 1") sleep 0.4; exit 1;;
"beta 1") sleep 60;;
gamma\\ [123]) sleep 0.25; exit 1;;
delta*) sleep 1.1;;
north*) sleep 1;;
*.sum*) sleep 0.6;;
*) sleep 0.7;;
esac
""",
    "check": "cat > /dev/null; sleep 0.3",
    "publish": "sleep 60",
}


def timeline(ftsh, home, path):
    """Draws a run of the script in durable.md."""
    page = path.parent.parent / "operate" / "durable.md"
    home = Path(home)
    script = page.read_text().split("The picture shows a run of this script:")[1].split("```")[1]
    (home / "site.ftsh").write_text(script.split("\n", 1)[1])
    for name, text in PROGRAMS.items():
        (home / name).write_text(f"#!/bin/sh\n{text}")
        (home / name).chmod(0o755)
    environment = {"PATH": f"{home}:{os.environ['PATH']}", "HOME": str(home)}
    run = [ftsh, "--seed", "7", "-l", "0", "--journal", "run.journal", "site.ftsh"]
    subprocess.run(run, cwd=home, env=environment, check=True)
    picture = page.with_name("timeline.svg")
    subprocess.run([ftsh, "--timeline", "run.journal", "-o", picture], cwd=home, env=environment, check=True)


# The first fetch fails. The first publication of beta waits until the shell is killed.
SITES = {
    "fetch": "sleep 0.6; mkdir fetched 2> /dev/null && exit 1; exit 0",
    "publish": 'sleep 0.5; test "$1" = gamma && sleep 0.4 && exit 0; mkdir begun 2> /dev/null && exec sleep 60; sleep 0.4',
}


def trace(ftsh, home, path):
    """Draws the trace of the script in observability.md, whose shell is killed once."""
    page = path.parent.parent / "operate" / "observability.md"
    home = Path(home)
    (home / "site.ftsh").write_text(page.read_text().split("```ftsh\n")[1].split("```")[0])
    for name, text in SITES.items():
        (home / name).write_text(f"#!/bin/sh\n{text}\n")
        (home / name).chmod(0o755)
    environment = {"PATH": f"{home}:{os.environ['PATH']}", "HOME": str(home)}
    run = [ftsh, "-l", "0", "--journal", "run.journal", "--otlp", "spans", "site.ftsh"]
    first = subprocess.Popen(run, cwd=home, env=environment)
    while not (home / "begun").exists():
        time.sleep(0.01)
    time.sleep(1)
    [interpreter] = subprocess.run(["pgrep", "-P", str(first.pid)], capture_output=True, text=True).stdout.split()
    for pid in [first.pid, int(interpreter)]:
        os.kill(pid, signal.SIGKILL)
    first.wait()
    time.sleep(1)
    subprocess.run(run, cwd=home, env=environment, check=True)
    draw(home / "spans", page.with_name("trace.svg"))


def main():
    ftsh, folder = os.path.abspath(sys.argv[1]), Path(sys.argv[2]).resolve()
    os.environ["PATH"] = f"{os.path.dirname(ftsh)}:{os.environ['PATH']}"
    for session in [prefix, prompt, forall, timeline, trace]:
        with tempfile.TemporaryDirectory() as home:
            session(ftsh, home, folder / f"{session.__name__}.svg")


if __name__ == "__main__":
    main()
