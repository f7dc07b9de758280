#!/usr/bin/env python3
"""Preprocessor of mdBook: puts pages from outside of `docs/` into the book.

Links to such pages lead to their places in the book. Links to other files outside of `docs/` lead
to the repository, and pictures outside of `docs/` become part of the page.
"""

import base64
import html
import json
import os
import posixpath
import re
import sys

# A link or a picture with a relative target.
LINK = re.compile(r"(!?)(\[[^\[\]]*\])\(([^)\s:]+)\)")

# The address of the repository in `Cargo.toml`.
REPOSITORY = re.compile(r'^repository = "(.*)"$', re.M)

# Blocks of commands for another shell, whose words would color those of ftsh.
COMMANDS = re.compile(r"\A```(?:sh|console)$", re.M)

# A space in a table between a number and its unit, or around a slash between numbers.
UNIT = re.compile(r"(?<=\d) (?=(?:%|[kMG]?i?B|[mµn]?s|min|h)(?!\w)|/ \d)|(?<=\d /) (?=\d)")

# Code with an option, and without characters that Markdown or HTML would read.
OPTIONS = re.compile(r"(?:[\w./:=,+]+ )*-[\w./:=,+ -]*")

# The expected output at the end of an example, as tests read it.
OUTPUT = re.compile(r"\A```ftsh([^\n]*)\n(.*?)((?:^#(?:>|2>|:)[^\n]*\n)*)```\Z", re.M | re.S)


def example(block):
    """Returns an example with its output in a block of its own.

    An example whose label is the severity of a message, such as `error`, is marked with the label.
    """
    match = OUTPUT.match(block)
    if not match:
        return COMMANDS.sub("```text", block)
    label, script, output = match.groups()
    lines = []
    for line in output.splitlines():
        mark, _, text = line.partition(" ")
        kind = {"#>": "stdout", "#2>": "stderr", "#:": "status"}[mark]
        text = f"exit {text}" if kind == "status" else text
        lines.append((kind == "status", f'<span class="{kind}">{html.escape(text)}</span>'))
    lines = "\n".join(line for _, line in sorted(lines, key=lambda it: it[0]))
    output = f'\n\n<pre class="output"><samp>{lines}</samp></pre>\n' if lines else ""
    text = f"```ftsh\n{script}```{output}"
    label = label.strip()
    if label in ("error", "warning", "failure"):
        text = f'<div class="message of-{label}">\n\n{text}\n\n</div>'
    return text


def table_rows(text):
    """Returns a text whose table rows do not break between a number and its unit."""
    return re.sub(r"^\|.*", lambda row: UNIT.sub("\u00a0", row.group(0)), text, flags=re.M)


def options(text):
    """Returns a text whose lines do not break inside of options, except in headings."""

    def code(match):
        if not OPTIONS.fullmatch(match.group(1)):
            return match.group(0)
        words = re.sub(r"(?<!\S)-\S+", r'<span class="option">\g<0></span>', match.group(1))
        return f"<code>{words}</code>"

    return re.sub(
        r"^[^#\n].*", lambda line: re.sub("`([^`]+)`", code, line.group(0)), text, flags=re.M
    )


class Book:
    def __init__(self, context):
        config = context["config"]
        self.root = context["root"]
        self.places = config["preprocessor"]["pages"]["places"]
        self.source = config["book"]["src"]
        with open(os.path.join(self.root, "Cargo.toml"), encoding="utf-8") as manifest:
            self.repository = REPOSITORY.search(manifest.read()).group(1)

    def place(self, path):
        """Returns the place in the book of a file, whose path is relative to the sources."""
        return self.places.get(path, path)

    def link(self, match, page):
        """Returns a link of a page for the page's place in the book."""
        mark, text, target = match.groups()
        path, _, anchor = target.partition("#")
        if not path:
            return match.group(0)
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page), path))
        path = path.removeprefix(f"../{self.source}/")
        if mark and path.startswith("../"):
            return f"{mark}{text}({self.picture(path)})"
        place = self.place(path)
        if place.startswith("../"):
            return f"{mark}{text}({self.repository}/blob/main/{place[3:]})"
        place = posixpath.relpath(place, posixpath.dirname(self.place(page)) or ".")
        return f"{mark}{text}({place}{'#' if anchor else ''}{anchor})"

    def picture(self, path):
        with open(os.path.join(self.root, self.source, path), "rb") as file:
            data = base64.b64encode(file.read()).decode()
        return f"data:image/svg+xml;base64,{data}"

    def convert(self, item):
        chapter = item.get("Chapter") if isinstance(item, dict) else None
        if not chapter:
            return
        page = chapter["path"]
        if page:
            chapter["path"] = self.place(page)
            parts = re.split(r"(^```.*?^```$)", chapter["content"], flags=re.M | re.S)
            parts[::2] = [
                LINK.sub(lambda match: self.link(match, page), options(table_rows(it)))
                for it in parts[::2]
            ]
            parts[1::2] = [example(block) for block in parts[1::2]]
            chapter["content"] = "".join(parts)
        for item in chapter["sub_items"]:
            self.convert(item)


def main():
    if sys.argv[1:2] == ["supports"]:
        return
    context, content = json.load(sys.stdin)
    book = Book(context)
    for item in content.get("items", content.get("sections", [])):
        book.convert(item)
    json.dump(content, sys.stdout)


if __name__ == "__main__":
    main()
