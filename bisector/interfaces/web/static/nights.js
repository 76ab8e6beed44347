// The nights of a series as a chart that zooms (uPlot): drag to zoom, double click for all; without it the drawing stays.
(() => {
  "use strict";
  let place = null;
  const equip = () => {
    const now = document.getElementById("nights-zoom");
    if (!now || now === place) return;
    place = now;
    const data = JSON.parse(document.getElementById("data").textContent);
    const still = place.firstElementChild;
    const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
    const order = data.x.map((_, i) => i).sort((a, b) => data.x[a] - data.x[b]);
    const sorted = (values) => order.map((i) => values[i]);
    const columns = [data.x, data.level, data.low, data.high, data.reference].map(sorted);
    const markAlerts = (u) => {
      u.ctx.save();
      u.ctx.fillStyle = colour("band");
      for (const [x] of data.alerts) u.ctx.fillRect(u.valToPos(x, "x", true) - 4, u.bbox.top, 8, u.bbox.height);
      u.ctx.restore();
    };
    const line = (label, stroke, more) => ({label, stroke: colour(stroke), points: {size: 5}, ...more});
    const axis = {stroke: colour("quiet"), grid: {stroke: colour("faint"), width: 1}};
    const day = "{YYYY}-{MM}-{DD}";
    let plot = null;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Zoom";
    button.addEventListener("click", () => {
      if (plot) { plot.destroy(); plot = null; still.style.display = ""; button.textContent = "Zoom"; return; }
      still.style.display = "none";
      button.textContent = "Whole drawing";
      plot = new uPlot({
        width: Math.max(place.clientWidth, 320), height: 400,
        tzDate: (at) => uPlot.tzDate(new Date(at * 1e3), "UTC"),
        axes: [{...axis, space: 110, values: day}, {...axis, size: 80, label: data.axis, labelSize: 24}],
        series: [{label: "night", value: day}, line("newest commit", "old"), line("low", "line", {width: 0, points: {show: false}}), line("high", "line", {width: 0, points: {show: false}}), line("reference, scaled", "line", {paths: () => null})],
        bands: [{series: [3, 2], fill: colour("line") + "33"}],
        hooks: {drawClear: [markAlerts]},
      }, columns, place);
    });
    place.before(button);
    addEventListener("resize", () => { if (plot) plot.setSize({width: Math.max(place.clientWidth, 320), height: 400}); });
  };
  equip();
  document.addEventListener("drawn", equip);  // by changes.js
})();
