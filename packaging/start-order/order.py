#!/usr/bin/env python3
"""Writes `start.ld`, the order of functions that `build.rs` gives to the linker.

usage: order.py PROGRAM

PROGRAM is a release build with symbols. This script runs typical starts of PROGRAM one instruction
at a time, and lists the functions that ran. Functions of most starts come first, and of these the
functions with the largest executed part.
Hashes in the names of symbols become wildcards, so the order holds for other compilers too.
Needs x86_64 and `nm`.
"""

import bisect
import ctypes
import os
import re
import signal
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

# Starts whose functions are put together.
STARTS = [
    ["-c", "echo hi"],
    ["-c", "/bin/true"],
    ["-c", "/bin/true | /bin/true"],
    ["-c", "try for 1 hour or 3 times\n/bin/true\nend"],
    ["try", "1", "time", "--", "true"],
    ["forall", "from", "input", "at", "most", "2", "--", "true"],
]
# Words for the start that reads words.
INPUT = b"a\nb\nc\n"
# Functions of many types share a name without its hash. A name that brings mostly other code is left out.
MIN_EXECUTED_PART = 0.03

# Average of x86_64.
BYTES_PER_INSTRUCTION = 4

TRACEME, SINGLESTEP, SETOPTIONS, PEEKUSER = 0, 9, 0x4200, 3
# Follow fork, vfork and clone; kill the program with this script.
OPTIONS = 2 | 4 | 8 | 0x100000
# Offset of the program counter in `struct user`.
RIP = 16 * 8
WALL = 0x40000000

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


def executed(program, arguments):
    """Returns the addresses of the instructions of PROGRAM that ran."""
    reading, writing = os.pipe()
    os.write(writing, INPUT)
    os.close(writing)
    child = os.fork()
    if child == 0:
        os.dup2(reading, 0)
        libc.ptrace(TRACEME, 0, None, None)
        os.kill(os.getpid(), signal.SIGSTOP)
        os.execv(program, [program, *arguments])
    os.close(reading)
    os.waitpid(child, 0)
    libc.ptrace(SETOPTIONS, child, None, OPTIONS)
    libc.ptrace(SINGLESTEP, child, None, None)
    addresses = set()
    while True:
        try:
            process, status = os.waitpid(-1, WALL)
        except ChildProcessError:
            return addresses
        if not os.WIFSTOPPED(status):
            continue
        addresses.add(libc.ptrace(PEEKUSER, process, RIP, None))
        stop = os.WSTOPSIG(status)
        passed = 0 if stop in (signal.SIGTRAP, signal.SIGSTOP) else stop
        libc.ptrace(SINGLESTEP, process, None, passed)


def nm(*arguments):
    output = subprocess.run(["nm", "--defined-only", *arguments], check=True, capture_output=True)
    return output.stdout.decode().splitlines()


def functions(program):
    """Returns the functions of PROGRAM as sorted tuples of address, size and name."""
    fields = (line.split() for line in nm("-S", program))
    found = ((int(f[0], 16), int(f[1], 16), f[3]) for f in fields if len(f) == 4 and f[2] in "tTwWiI")
    return sorted(found)


def members():
    """Returns the member of the C library that defines each of its functions."""
    archive = subprocess.run(["cc", "-print-file-name=libc.a"], check=True, capture_output=True)
    found = {}
    for line in nm("-A", archive.stdout.decode().strip()):
        place, *_, kind, name = line.split() if line else [""] * 3
        if kind and kind in "tTwWiI":
            found.setdefault(name, place.split(":")[1])
    return found


def pattern(name, members):
    """Returns the pattern of the sections with a function."""
    if not name.startswith(("_ZN", "_R")):
        return f"*libc.a:{members[name]}(.text .text.*)" if name in members else None
    name = re.sub(r"17h[0-9a-f]{16}E", "17h*E", name)
    name = re.sub(r"\.llvm\.\d+", "*", name)
    name = re.sub(r"Cs[0-9A-Za-z]+_", "Cs*_", name)
    name = re.sub(r"\.\d+$", "*", name)
    return f"*(.text*.{name})"


def main():
    program = os.path.abspath(sys.argv[1])
    runs = [executed(program, start) for start in STARTS]
    known = functions(program)
    starts = [function[0] for function in known]
    steps, used_by = defaultdict(int), defaultdict(set)
    for address in set().union(*runs):
        at = bisect.bisect_right(starts, address) - 1
        if at >= 0 and address < known[at][0] + known[at][1]:
            steps[known[at]] += 1
            used_by[known[at]].update(number for number, run in enumerate(runs) if address in run)
    libc_members = members()
    size, count, used, users = (defaultdict(kind) for kind in (int, int, int, set))
    for function in known:
        if found := pattern(function[2], libc_members):
            size[found] += function[1]
            count[found] += 1
            used[found] += BYTES_PER_INSTRUCTION * steps[function]
            users[found] |= used_by[function]
    part = {found: used[found] / size[found] for found in used if used[found]}
    kept = [found for found in part if count[found] == 1 or part[found] > MIN_EXECUTED_PART]
    kept.sort(key=lambda found: (-len(users[found]), -part[found], found))
    head = "/* Written by order.py: functions that typical starts run. */\nSECTIONS\n{\n  .text.start :\n  {\n"
    lines = "".join(f"    {found}\n" for found in kept)
    Path(__file__).with_name("start.ld").write_text(head + lines + "  }\n}\nINSERT BEFORE .text;\n")
    total = sum(size[found] for found in kept)
    print(f"{len(kept)} patterns, {total} bytes, {sum(used[found] for found in kept)} of them ran")


if __name__ == "__main__":
    main()
