// The wheel looks closer or from further away, dragging moves, a double click shows all again.
const svg = document.querySelector("svg"), told = document.getElementById("told");
const left = +svg.dataset.left, width = +svg.dataset.width, whole = +svg.dataset.seconds;
const bars = [...svg.querySelectorAll("rect[data-from]")].map(e => ({ e, from: +e.dataset.from, to: +e.dataset.to }));
const limits = [...svg.querySelectorAll("line[data-at]")].map(e => ({ e, at: +e.dataset.at }));
const ticks = [...svg.querySelectorAll("g.tick")];
let from = 0, to = whole, dragged = null;

const clamped = x => Math.min(Math.max(x, left), left + width);
const place = time => left + (time - from) / (to - from) * width;
const words = time => {
  const digits = Math.max(0, Math.min(6, 2 - Math.floor(Math.log10((to - from) / 8))));
  if (to - from < 480) return time.toFixed(digits) + " s";
  const h = Math.floor(time / 3600), m = Math.floor(time % 3600 / 60), s = Math.floor(time % 60);
  return (h ? h + " h " : "") + m + " min" + (s ? " " + s + " s" : "");
};

function draw() {
  for (const { e, from: begins, to: ends } of bars) {
    const a = clamped(place(begins)), b = clamped(place(ends));
    e.style.display = ends < from || begins > to ? "none" : "";
    e.setAttribute("x", a);
    e.setAttribute("width", Math.max(b - a, 0.8));
  }
  for (const { e, at } of limits) {
    e.style.display = at < from || at > to ? "none" : "";
    e.setAttribute("x1", place(at));
    e.setAttribute("x2", place(at));
  }
  ticks.forEach((g, index) => {
    const time = from + (to - from) * index / Math.max(ticks.length - 1, 1), x = place(time);
    const line = g.querySelector("line"), text = g.querySelector("text");
    line.setAttribute("x1", x);
    line.setAttribute("x2", x);
    text.setAttribute("x", x);
    text.textContent = words(time);
  });
}

function look(begin, length) {
  length = Math.min(Math.max(length, whole / 1e6), whole);
  from = Math.min(Math.max(begin, 0), whole - length);
  to = from + length;
  draw();
}

const scale = () => svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
const time = event => from + (event.clientX - svg.getBoundingClientRect().left - left * scale()) / (width * scale()) * (to - from);

svg.addEventListener("wheel", event => {
  event.preventDefault();
  const factor = Math.exp(event.deltaY * 0.002), at = time(event);
  look(at - (at - from) * factor, (to - from) * factor);
}, { passive: false });
svg.addEventListener("pointerdown", event => { dragged = time(event); svg.setPointerCapture(event.pointerId); });
svg.addEventListener("pointerup", () => { dragged = null; });
svg.addEventListener("dblclick", () => look(0, whole));
svg.addEventListener("pointermove", event => {
  if (dragged !== null) look(from + dragged - time(event), to - from);
  const under = document.elementFromPoint(event.clientX, event.clientY);
  const title = under && under.dataset && under.dataset.said;
  told.style.display = title ? "block" : "none";
  told.textContent = title || "";
  told.style.left = Math.min(event.clientX + 12, innerWidth - told.offsetWidth - 4) + "px";
  told.style.top = Math.min(event.clientY + 14, innerHeight - told.offsetHeight - 4) + "px";
});
svg.addEventListener("pointerleave", () => { told.style.display = "none"; });
// The browser's own hint comes late.
for (const title of svg.querySelectorAll("title")) {
  title.parentNode.dataset.said = title.textContent;
  title.remove();
}
