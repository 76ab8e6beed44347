// The samples as a chart that zooms (uPlot): drag to zoom, or the buttons; without this script the drawing stays.
(() => {
  "use strict";
  // Where a drawing is wider than the screen, its culprit is what is looked for.
  for (const wide of document.querySelectorAll(".wide")) {
    const mark = wide.querySelector("text.culprit");
    if (!mark) continue;
    const [inner, outer] = [mark, wide].map((e) => e.getBoundingClientRect());
    wide.scrollLeft += (inner.left + inner.right - outer.left - outer.right) / 2;
  }
  const data = JSON.parse(document.getElementById("data").textContent);
  const place = document.getElementById("zoom");
  if (!place || !data.kinds.length) return;
  const still = place.firstElementChild;
  const names = {old: "older side", new: "with the change", open: "on which side is open", warmup: "warm-up", flagged: "flagged", "left-out": "does not count"};
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const colourOf = (kind) => colour({old: "old", new: "new", open: "quiet", flagged: "proof"}[kind] || "line");
  // uPlot wants one ascending x for all series: each sample has its own place, null where another kind is.
  const all = data.kinds.flatMap((k, s) => k.x.map((x, i) => [x, s, k.y[i]])).sort((a, b) => a[0] - b[0]);
  const columns = [all.map((p) => p[0]), ...data.kinds.map((_, s) => all.map((p) => (p[1] === s ? p[2] : null)))];
  const end = data.boots.length;
  let plot = null;
  const commitsAt = (u) => data.commits.map((c) => (c[1] + c[2]) / 2).filter((x) => x >= u.scales.x.min && x <= u.scales.x.max);
  const nameAt = (x) => (data.commits.find((c) => (c[1] + c[2]) / 2 === x) || [""])[0];
  const options = () => ({
    width: Math.max(place.clientWidth, 320),
    height: 400,
    scales: {x: {time: false}},
    cursor: {drag: {x: true, y: true, uni: 30}},
    legend: {live: false},
    axes: [
      {stroke: colour("quiet"), grid: {stroke: colour("faint")}, rotate: -40, size: 80, splits: commitsAt, values: (u, s) => s.map(nameAt)},
      {stroke: colour("quiet"), grid: {stroke: colour("faint")}, size: 80, label: data.metric + " in " + data.unit},
    ],
    series: [{}, ...data.kinds.map((k) => ({
      label: names[k.kind], stroke: colourOf(k.kind), paths: () => null,
      points: {show: true, size: k.kind === "flagged" ? 7 : 5, fill: colourOf(k.kind)},
    }))],
  });
  const draw = () => { if (plot) plot.destroy(); plot = new uPlot(options(), columns, place); };
  const bar = document.createElement("div");
  const button = (text, action) => {
    const made = document.createElement("button");
    made.type = "button"; made.textContent = text; made.addEventListener("click", action); bar.append(made);
    return made;
  };
  const scale = (factor) => {
    if (!plot) toggle();
    const {min, max} = plot.scales.x, middle = (min + max) / 2, half = (max - min) / 2 * factor;
    plot.setScale("x", {min: Math.max(0, middle - half), max: Math.min(end, middle + half)});
  };
  const toggle = () => {
    if (plot) { plot.destroy(); plot = null; still.removeAttribute("hidden"); }
    else { still.setAttribute("hidden", ""); still.style.display = "none"; draw(); }
    if (!plot) still.style.display = "";
    main.textContent = plot ? "Whole drawing" : "Zoom";
    for (const one of more) one.hidden = !plot;
  };
  const main = button("Zoom", toggle);
  const more = [button("Closer", () => scale(0.5)), button("Farther", () => scale(2)), button("All", draw)];
  for (const one of more) one.hidden = true;
  place.before(bar);
  addEventListener("resize", () => { if (plot) plot.setSize({width: Math.max(place.clientWidth, 320), height: 400}); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (plot) draw(); });
  // What is folded is printed, too.
  addEventListener("beforeprint", () => { for (const d of document.querySelectorAll("details")) d.open = true; });
})();
