"""Draws the spans of a file of `--otlp` as an SVG."""

import json
from html import escape

LEFT, WIDTH, ROW, TOP = 210, 760, 24, 56

STYLE = """
.trace { font: 12px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; color-scheme: light dark }
.trace text { fill: #24292f }
.trace .paper { fill: #fff }
.trace .title { font-weight: 600; font-size: 15px }
.trace .dim { fill: #59636e; font-size: 11px }
.trace .tick { stroke: #d1d9e0 }
.trace .good { fill: #1f883d }
.trace .bad { fill: #cf222e }
.trace .outer { fill-opacity: .35 }
.trace .delay { stroke: #9a6700; stroke-width: 2 }
@media (prefers-color-scheme: dark) {
.trace text { fill: #e6edf3 }
.trace .paper { fill: #0d1117 }
.trace .dim { fill: #9198a1 }
.trace .tick { stroke: #3d444d }
}
"""


def value(attribute):
    return next(iter(attribute["value"].values()))


def spans(path):
    """Returns the spans by their ids, the latest one of each id."""
    found = {}
    for line in path.read_text().splitlines():
        for span in json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"]:
            span["from"], span["to"] = (int(span[f"{end}TimeUnixNano"]) for end in ["start", "end"])
            span["attributes"] = {it["key"]: value(it) for it in span["attributes"]}
            found[span["spanId"]] = span
    return found


def rows(found, parent=None, depth=0):
    """Returns the spans below a parent with their depths, in the order of their starts."""
    inner = [span for span in found.values() if span.get("parentSpanId") == parent]
    for span in sorted(inner, key=lambda span: span["from"]):
        yield span, depth
        yield from rows(found, span["spanId"], depth + 1)


def note(span):
    attributes = span["attributes"]
    notes = [attributes.get("error.type"), f"{(span['to'] - span['from']) / 1e9:.1f} s"]
    return ", ".join(filter(None, notes))


def draw(path, picture):
    all_rows = list(rows(spans(path)))
    start, end = all_rows[0][0]["from"], all_rows[0][0]["to"]
    x = lambda time: LEFT + WIDTH * (time - start) / (end - start)
    height = TOP + ROW * len(all_rows) + 12
    width = LEFT + WIDTH + 110
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="trace" role="img" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
        f"<title>{escape(all_rows[0][0]['name'])}</title>",
        f"<style>{STYLE}</style>",
        f'<rect class="paper" width="{width}" height="{height}"/>',
        f'<text class="title" x="12" y="22">trace {all_rows[0][0]["traceId"]}</text>',
    ]
    seconds = (end - start) / 1e9
    step = next(step for step in [0.5, 1, 2, 5, 10, 30, 60] if seconds / step <= 10)
    for number in range(int(seconds / step) + 1):
        at = x(start + number * step * 1e9)
        out.append(f'<line class="tick" x1="{at:.1f}" x2="{at:.1f}" y1="{TOP - 8}" y2="{height - 8}"/>')
        out.append(f'<text class="dim" x="{at + 3:.1f}" y="{TOP - 12}">{number * step:g} s</text>')
    for index, (span, depth) in enumerate(all_rows):
        y = TOP + ROW * index
        name, attempt = span["name"], span["attributes"].get("ftsh.attempt")
        label = f"{name} {attempt}" if attempt else name
        kind = "bad" if "status" in span else "good"
        outer = "" if "process.executable.name" in span["attributes"] else " outer"
        left, right = x(span["from"]), x(span["to"])
        out.append(f'<text x="{12 + 14 * depth}" y="{y + 15}">{escape(label)}</text>')
        out.append(f'<rect class="{kind}{outer}" x="{left:.1f}" y="{y + 3}" width="{max(right - left, 2):.1f}" height="{ROW - 8}" rx="2"/>')
        out.append(f'<text class="dim" x="{right + 5:.1f}" y="{y + 15}">{escape(note(span))}</text>')
        for event in span.get("events", []):
            at = x(int(event["timeUnixNano"]))
            out.append(f'<line class="delay" x1="{at:.1f}" x2="{at:.1f}" y1="{y + 1}" y2="{y + ROW - 3}"/>')
    picture.write_text("\n".join(out + ["</svg>"]) + "\n")
