// Times are drawn anew whenever one looks closer or the window gets another size; rows can be folded.
const svg = document.querySelector("svg.timeline"), tip = document.getElementById("tip");
const left = +svg.dataset.left, top_ = +svg.dataset.top, high = +svg.dataset.row, whole = +svg.dataset.seconds;
const fixed = svg.viewBox.baseVal.height, margin = 32;
const rows = [...svg.querySelectorAll("g.row")].map(g => ({
  g, inner: +g.dataset.inner, folded: false,
  label: g.querySelector("text"), name: g.querySelector("text").firstChild.data,
  bars: [...g.querySelectorAll("rect[data-from]")].map(spans),
  limits: [...g.querySelectorAll("line[data-at]")].map(e => ({ e, at: +e.dataset.at })),
}));
const gaps = [...svg.querySelectorAll("rect.gap")].map(spans);
const marks = [...svg.querySelectorAll("g.mark")].map(e => ({ e, at: +e.dataset.at }));
const axis = svg.querySelector("g.axis"), title = svg.querySelector(".title"), legend = svg.querySelector("g.legend");
const times = svg.appendChild(axis.cloneNode());
let width = +svg.dataset.width, from = 0, to = whole, shown = rows, asked = false;

function spans(e) { return { e, from: +e.dataset.from, to: +e.dataset.to }; }
const place = time => left + (time - from) / (to - from) * width;
const clamped = x => Math.min(Math.max(x, left), left + width);

// Which times are marked: the least step with room for its words.
const steps = [];
for (let ten = 1e-6; ten < 10; ten *= 10) steps.push(ten, 2 * ten, 5 * ten);
steps.push(10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400);
for (let ten = 86400; ten < 1e12; ten *= 10) steps.push(2 * ten, 5 * ten, 10 * ten);
function words(time, step) {
  if (time < 60 || step < 1) return step < 1 ? time.toFixed(Math.min(6, Math.ceil(-Math.log10(step)))) + " s" : Math.round(time) + " s";
  const t = Math.round(time), parts = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  let rest = t;
  return parts.map(([size, unit]) => {
    const count = Math.floor(rest / size);
    rest %= size;
    return count ? count + " " + unit : "";
  }).filter(Boolean).join(" ") || "0";
}

function stretch({ e, from: begins, to: ends }) {
  const a = clamped(place(begins)), b = clamped(place(ends));
  e.style.display = ends < from || begins > to ? "none" : "";
  e.setAttribute("x", a);
  e.setAttribute("width", Math.max(b - a - 0.5, 0.8));
}

function draw() {
  asked = false;
  const bottom = top_ + shown.length * high;
  for (const row of shown) {
    row.bars.forEach(stretch);
    for (const { e, at } of row.limits) {
      e.style.display = at < from || at > to ? "none" : "";
      e.setAttribute("x1", place(at));
      e.setAttribute("x2", place(at));
    }
  }
  gaps.forEach(gap => { stretch(gap); gap.e.setAttribute("height", bottom - top_); });
  for (const { e, at } of marks) {
    e.style.display = at < from || at > to ? "none" : "";
    e.setAttribute("transform", `translate(${place(at)} 0)`);
    e.querySelector("line").setAttribute("y2", bottom);
  }
  const step = steps.find(step => step / (to - from) * width >= 100) || whole;
  const lines = [], texts = [];
  for (let n = Math.ceil(from / step); n * step <= to; n++) {
    const x = place(n * step);
    lines.push(`<g class="tick"><line x1="${x}" x2="${x}" y1="${top_ - 4}" y2="${bottom}"/></g>`);
    texts.push(`<g class="tick"><text x="${x}" y="${top_ - 8}" text-anchor="middle">${words(n * step, step)}</text></g>`);
  }
  axis.innerHTML = lines.join("");
  times.innerHTML = `<rect class="paper" y="${top_ - 24}" width="100%" height="22"/>` + texts.join("");
}
function soon() {
  if (!asked) requestAnimationFrame(draw);
  asked = true;
}

// Gives rows their places, without those that are folded.
function arrange() {
  shown = [];
  for (let i = 0; i < rows.length; i++) {
    rows[i].g.style.display = "";
    rows[i].g.setAttribute("transform", `translate(0 ${top_ + shown.length * high})`);
    shown.push(rows[i]);
    rows[i].label.firstChild.data = (rows[i].folded ? "▸ " : "") + rows[i].name;
    if (rows[i].folded) {
      for (let end = i + rows[i].inner; i < end;) rows[++i].g.style.display = "none";
    }
  }
  resize();
}

function resize() {
  const wide = Math.max(document.documentElement.clientWidth, left + 300);
  let tall = fixed - (rows.length - shown.length) * high;
  const moved = wide - (left + width + margin);
  width = wide - left - margin;
  legend.shift = (legend.shift || 0) + moved;
  // Next to a long title there is no space for the legend, which is below the rows then.
  const box = legend.getBBox(), end = title.getBBox();
  const isBelow = box.x + legend.shift < end.x + end.width + margin;
  legend.setAttribute("transform", isBelow ? `translate(${end.x - box.x} ${tall - box.y})` : `translate(${legend.shift} 0)`);
  if (isBelow) tall += box.height + margin / 2;
  svg.setAttribute("viewBox", `0 0 ${wide} ${tall}`);
  svg.setAttribute("width", wide);
  svg.setAttribute("height", tall);
  soon();
}

function look(begin, length) {
  length = Math.min(Math.max(length, whole / 1e6), whole);
  from = Math.min(Math.max(begin, 0), whole - length);
  to = from + length;
  soon();
}
function closer(factor, at) { look(at - (at - from) * factor, (to - from) * factor); }

const time = event => from + (clamped(event.clientX + scrollX) - left) / width * (to - from);
let dragged = null;
svg.addEventListener("wheel", event => {
  const scrolls = document.documentElement.scrollHeight > innerHeight;
  if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
    event.preventDefault();
    look(from + (event.deltaX || event.deltaY) / width * (to - from), to - from);
  } else if (event.ctrlKey || event.metaKey || event.altKey || !scrolls) {
    event.preventDefault();
    closer(Math.exp(event.deltaY * 0.002), time(event));
  }
}, { passive: false });
svg.addEventListener("pointerdown", event => {
  if (event.button || event.target.closest(".label")) return;
  dragged = time(event);
  svg.setPointerCapture(event.pointerId);
});
svg.addEventListener("pointerup", () => { dragged = null; });
svg.addEventListener("dblclick", event => { if (!event.target.closest(".label")) look(0, whole); });
svg.addEventListener("click", event => {
  const label = event.target.closest(".label"), row = label && rows.find(row => row.label === label);
  if (row && row.inner) { row.folded = !row.folded; arrange(); }
});
addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const length = to - from, acts = {
    "+": () => closer(0.8, from + length / 2), "=": () => closer(0.8, from + length / 2),
    "-": () => closer(1.25, from + length / 2), "0": () => look(0, whole),
    ArrowLeft: () => look(from - length / 8, length), ArrowRight: () => look(from + length / 8, length),
  };
  if (acts[event.key]) { event.preventDefault(); acts[event.key](); }
});
svg.addEventListener("pointermove", event => {
  if (dragged !== null) look(from + dragged - time(event), to - from);
  const under = document.elementFromPoint(event.clientX, event.clientY);
  const said = under && under.closest("[aria-label]"), text = said && said !== svg && said.getAttribute("aria-label");
  tip.style.display = text ? "block" : "none";
  tip.textContent = text || "";
  tip.style.left = Math.max(0, Math.min(event.clientX + 12, innerWidth - tip.offsetWidth - 4)) + "px";
  tip.style.top = Math.max(0, Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 4)) + "px";
});
svg.addEventListener("pointerleave", () => { tip.style.display = "none"; });
// The browser's own hint comes late; what it says stays there for those who can't see.
for (const title of svg.querySelectorAll("title")) {
  title.parentNode.setAttribute("aria-label", title.textContent);
  title.remove();
}
// The times stay in sight, above all else.
addEventListener("scroll", () => times.setAttribute("transform", `translate(0 ${Math.max(0, scrollY - (top_ - 24))})`));
addEventListener("resize", resize);
resize();
