"""A terminal's screens over time, as one animated SVG that needs nothing else.

Each row of the screen is a strip of all that ever stands in it, side by side, and is moved from one to the next: what
doesn't change is there once. Without animation the last screen is shown.
"""

from html import escape

import pyte

CELL, LINE, MARGIN = 8.4, 19, 14
BACKGROUND, TEXT = "#1f2430", "#d7dae0"
COLOURS = {
    "black": "#3b4252", "red": "#ff7b72", "green": "#8fd17f", "brown": "#e5c07b", "blue": "#7aa8ff",
    "magenta": "#d2a8ff", "cyan": "#76d5e0", "white": "#d7dae0", "brightblack": "#7f8796",
}
# The screen knows no dim text, but a colour that looks like it.
DIM = (b"\x1b[2m", b"\x1b[90m")
# Screens that stand for less are not seen.
BLINK = 0.03
# The last screen stays for so long.
REST = 4


class Film:
    def __init__(self, columns, rows):
        self.columns, self.rows = columns, rows
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.shots, self.begin = [], 0

    def shows(self, now, output):
        """What a program has written at a moment, in seconds."""
        now -= self.begin
        self.stream.feed(output.replace(*DIM))
        if self.shots and now - self.shots[-1][0] < BLINK:
            now = self.shots.pop()[0]
        cursor = self.screen.cursor
        place = None if cursor.hidden else (cursor.x, cursor.y)
        self.shots.append((now, [self.row(y) for y in range(self.rows)], place))

    def cut(self):
        """Lets the film begin with the last screen."""
        self.begin += self.shots[-1][0]
        self.shots = [(0, *self.shots[-1][1:])]

    def text(self):
        return "\n".join(row.rstrip() for row in self.screen.display).rstrip()

    def row(self, y):
        """A row as its runs of one style: where each begins, its text, its look."""
        runs = []
        for x in range(self.columns):
            cell = self.screen.buffer[y][x]
            look = (cell.fg, cell.bold, cell.underscore, cell.reverse)
            if runs and runs[-1][2] == look and runs[-1][0] + len(runs[-1][1]) == x:
                runs[-1] = (runs[-1][0], runs[-1][1] + cell.data, look)
            elif cell.data != " ":
                runs.append((x, cell.data, look))
        return tuple((x, text.rstrip(), look) for x, text, look in runs)

    def svg(self, title):
        end = self.shots[-1][0] + REST
        width, height = self.columns * CELL + 2 * MARGIN, self.rows * LINE + 2 * MARGIN
        style = [
            f"text{{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;"
            f"fill:{TEXT};white-space:pre}}",
            f".c{{animation:c {end:.2f}s step-end infinite}}",
            "@media (prefers-reduced-motion:reduce){*{animation:none!important}}",
        ]
        body = []
        for y in range(self.rows):
            strip = changes((now, rows[y]) for now, rows, _ in self.shots)
            if strip == [(0, ())]:
                continue
            places = [-i * width for i in range(len(strip))]
            drawn = [
                text(run, i * width, y) for i, (_, runs) in enumerate(strip) for run in runs
            ]
            moved = f'transform="translate({places[-1]:.0f})"'
            if len(strip) > 1:
                frames = ((now, f"translate({at:.0f}px)") for (now, _), at in zip(strip, places))
                style.append(keyframes(f"r{y}", frames, end))
                style.append(f".r{y}{{animation:r{y} {end:.2f}s step-end infinite}}")
            body.append(f'<g class="r{y}" {moved}>{"".join(drawn)}</g>')
        cursor = changes((now, place or (-2, 0)) for now, _, place in self.shots)
        moves = [(now, f"{x * CELL:.1f}px,{y * LINE}px") for now, (x, y) in cursor]
        style.append(keyframes("c", ((now, f"translate({at})") for now, at in moves), end))
        at = moves[-1][1].replace("px", "")
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" '
            f'height="{height}" role="img"><title>{escape(title)}</title><style>{"".join(style)}</style>'
            f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>'
            f'<svg x="{MARGIN}" y="{MARGIN}" width="{self.columns * CELL:.0f}" height="{self.rows * LINE}">'
            f'<rect class="c" width="{CELL}" height="{LINE - 2}" y="1" fill="{TEXT}" opacity=".3" '
            f'transform="translate({at})"/>\n' + "\n".join(body) + "\n</svg></svg>\n"
        )


def changes(moments):
    """Without those moments at which nothing changes; the first is the beginning."""
    kept = []
    for now, what in moments:
        if not kept or kept[-1][1] != what:
            kept.append((now if kept else 0, what))
    return kept


def keyframes(name, moments, end):
    frames = "".join(f"{now / end * 100:.2f}%{{transform:{what}}}" for now, what in moments)
    return f"@keyframes {name}{{{frames}}}"


def text(run, left, y):
    x, words, (colour, bold, underlined, reverse) = run
    length = len(words) * CELL
    # The grid holds in any font.
    place = f'x="{left + x * CELL:.1f}" y="{y * LINE + 14}" textLength="{length:.1f}"'
    look = "".join([
        "" if colour == "default" else f' style="fill:{COLOURS.get(colour, "#" + colour)}"',
        ' font-weight="bold"' if bold else "",
        ' text-decoration="underline"' if underlined else "",
        ' opacity=".6"' if reverse else "",
    ])
    return f"<text {place}{look}>{escape(words)}</text>"
