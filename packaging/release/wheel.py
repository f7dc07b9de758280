"""Packs a wheel for Python's package index: `wheel.py PREFIX VERSION MACHINE FOLDER`.

PREFIX has the program in `bin` and its files in `share`, which pip installs below a virtual environment. The program
needs no C library, so the wheel fits those with glibc and those with musl. SOURCE_DATE_EPOCH is the time of each file.
"""

import base64
import hashlib
import os
import pathlib
import sys
import time
import zipfile

prefix, version, machine, folder = sys.argv[1:]
tags = [f"py3-none-{system}_{machine}" for system in ("manylinux2014", "manylinux_2_17", "musllinux_1_1")]
name = f"ftsh-{version}"
info = f"{name}.dist-info"
metadata = f"""\
Metadata-Version: 2.4
Name: ftsh
Version: {version}
Summary: Fault-tolerant shell: scripts around commands that fail
Keywords: shell,retry,backoff,cron,timeout
License-Expression: MIT OR Apache-2.0
License-File: LICENSE-APACHE
License-File: LICENSE-MIT
License-File: notices
Requires-Python: >=3.7
Classifier: Environment :: Console
Classifier: Operating System :: POSIX :: Linux
Classifier: Topic :: System :: System Shells
Description-Content-Type: text/markdown

`ftsh` is a shell for scripts around commands that fail: retries with backoff, deadlines, parallel branches.

    ftsh try 5 times -- curl --fail --remote-name https://example.org/file

The wheel contains the program, without any module of Python. `man ftsh` has the manual.
"""
wheel = "".join(
    ["Wheel-Version: 1.0\nGenerator: ftsh\nRoot-Is-Purelib: false\n"] + [f"Tag: {tag}\n" for tag in tags]
)


def files():
    """Yields the path and the content of each file in the wheel, and whether the file is a program."""
    below = pathlib.Path(prefix)
    for path in sorted(path for path in below.rglob("*") if path.is_file()):
        relative = path.relative_to(below)
        is_program = relative.parts[0] == "bin"
        place = f"scripts/{relative.name}" if is_program else f"data/{relative}"
        yield f"{name}.data/{place}", path.read_bytes(), is_program
    for license in ("LICENSE-APACHE", "LICENSE-MIT", "notices"):
        yield f"{info}/licenses/{license}", (below / "share/doc/ftsh" / license).read_bytes(), False
    yield f"{info}/METADATA", metadata.encode(), False
    yield f"{info}/WHEEL", wheel.encode(), False


epoch = time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"]))[:6]
system = ".".join(tag.removeprefix("py3-none-") for tag in tags)
with zipfile.ZipFile(f"{folder}/{name}-py3-none-{system}.whl", "w") as archive:

    def write(path, content, is_program=False):
        entry = zipfile.ZipInfo(path, epoch)
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = (0o100755 if is_program else 0o100644) << 16
        archive.writestr(entry, content, compresslevel=9)

    record = ""
    for path, content, is_program in files():
        write(path, content, is_program)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += f"{path},sha256={digest},{len(content)}\n"
    write(f"{info}/RECORD", f"{record}{info}/RECORD,,\n")
