// Curves in the same axes: drawn anew for every time of a slider, width, and choice of curves.

const DASHES = ["", "7 3 2 3", "2 3"];
const colorOf = (place) => (place === -1 ? "var(--ink)" : place === -2 ? "var(--muted)" : `var(--c${place})`);

class Lines {
  constructor(figure, data) {
    this.figure = figure;
    this.data = data;
    this.frame = data.slider ? DATA.sliders[data.slider].length - 1 : 0;
    this.log = data.log;
    this.straight = false;
    this.hidden = new Set();
    this.ylabel = html("p", { class: "ylabel" });
    this.plot = html("div", { class: "plot" });
    this.tip = html("div", { class: "tip", hidden: "" });
    this.buttons = html("div", { class: "buttons" });
    this.addLegend();
    this.addSwitches();
    figure.querySelector("figcaption").after(this.ylabel, this.plot);
    figure.append(this.addTable());
    this.plot.addEventListener("pointermove", (event) => this.point(event));
    this.plot.addEventListener("pointerdown", (event) => this.point(event));
    this.plot.addEventListener("pointerleave", () => this.leave());
  }

  // -- what is drawn --------------------------------------------------------------------------

  x(curve) {
    const x = curve.x || this.data.x;
    if (!this.straight) return x;
    const { squares, last } = this.data.straight;
    const m2 = curve.kind === "predicted" ? last : squares[curve.kind === "start" ? 0 : this.frame];
    return x.map((p) => (known(m2) ? Math.sqrt(p * p + Math.max(m2, 0)) : null));
  }

  now(values) {
    return Array.isArray(values[0]) ? values[this.frame] : values;
  }

  bent(f) {
    const inverse = known(f) && f > 0 ? 1 / f + this.data.straight.eta : 0;
    return inverse > 0 ? Math.log(inverse) : null;
  }

  y(curve) {
    const y = this.now(curve.y);
    return this.straight ? y.map((f) => this.bent(f)) : y;
  }

  visible() {
    return this.data.curves.filter((_, i) => !this.hidden.has(i));
  }

  limits() {
    if (this.straight) {
      const all = this.data.curves.flatMap((c) => (Array.isArray(c.y[0]) ? c.y[c.y.length - 1] : c.y));
      return around([0, ...all.map((f) => this.bent(f))], false);
    }
    const { limits } = this.data;
    if (limits && this.log === this.data.log) return limits;
    const all = this.visible().flatMap((c) => c.y.flat());
    const bands = this.visible().flatMap((c) =>
      c.error && !this.log ? c.y.flat().flatMap((v, i) => (known(v) ? [v - c.error.flat()[i], v + c.error.flat()[i]] : [])) : []);
    return around(all.concat(bands), this.log);
  }

  span() {
    const all = this.data.curves.flatMap((c) => this.x(c)).filter(known);
    const low = Math.min(...all), high = Math.max(...all);
    return this.straight ? [Math.min(low, 0), high] : [low, high > low ? high : low + 1];
  }

  draw() {
    const width = Math.max(240, Math.round(this.plot.clientWidth || 340));
    const height = Math.round(Math.min(300, Math.max(210, 0.64 * width)));
    const log = this.log && !this.straight;
    let [low, high] = this.limits();
    if (log) low = Math.max(low, high * 1e-12);
    const size = { left: roomFor(low, high, log), right: 12, top: 22, bottom: 40, width, height };
    const [first, last] = this.span();
    this.sx = scaleOf(first, last, size.left, width - size.right, false);
    this.sy = scaleOf(low, high, height - size.bottom, size.top, log);
    this.size = size;
    const id = `clip-${this.figure.dataset.chart}`;
    const clip = svg("clipPath", { id }, svg("rect", { x: size.left - 4, y: size.top - 4,
      width: width - size.left - size.right + 8, height: height - size.top - size.bottom + 8 }));
    const curves = svg("g", { "clip-path": `url(#${id})` });
    const order = { start: 0, predicted: 1 };
    const shownCurves = this.visible().slice().sort((a, b) => (order[a.kind] ?? 2) - (order[b.kind] ?? 2));
    shownCurves.forEach((curve) => this.drawCurve(curve, curves, log));
    this.cross = svg("line", { class: "cross", y1: size.top, y2: height - size.bottom, visibility: "hidden" });
    const label = this.straight ? "energy E [GeV]" : this.data.xlabel;
    const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": this.told() },
      clip, drawAxes(this.sx, this.sy, size, { log, xlabel: label }), curves, this.cross);
    this.plot.replaceChildren(picture, this.tip);
    this.ylabel.textContent = axisWords(this.data.title, this.data.ylabel);
    if (this.straight) {
      const formula = ["ln(1/f)", "ln(1/f + 1)", "ln(1/f − 1)"][(this.data.straight.eta + 3) % 3];
      this.ylabel.textContent = `${formula}: (E − μ)/T, a straight line, in equilibrium`;
    }
  }

  drawCurve(curve, group, log) {
    const x = this.x(curve), y = this.y(curve), color = colorOf(curve.color);
    const ok = (v) => known(v) && (!log || v > 0);
    let path = "", open = false;
    const points = [];
    y.forEach((v, i) => {
      if (!ok(v) || !known(x[i])) { open = false; return; }
      const at = [this.sx.place(x[i]).toFixed(1), this.sy.place(v).toFixed(1)];
      path += `${open ? "L" : "M"}${at[0]},${at[1]}`;
      open = true;
      points.push(at);
    });
    if (curve.error && !this.straight) this.drawBand(curve, x, y, group, log, color);
    const classes = { start: "curve start", predicted: "curve predicted" };
    group.append(svg("path", { d: path, class: classes[curve.kind] || "curve", "data-kind": curve.kind,
      style: `stroke:${color}`, "stroke-dasharray": curve.kind === "predicted" ? "6 4" : DASHES[curve.dash] || null }));
    if (curve.kind === "points" ? points.length <= 80 : curve.kind === "line" && points.length < 3) {
      points.forEach(([cx, cy]) => group.append(svg("circle", { cx, cy, r: 2.4, style: `fill:${color}` })));
    }
  }

  drawBand(curve, x, y, group, log, color) {
    const e = this.now(curve.error), up = [], down = [];
    y.forEach((v, i) => {
      if (!known(v) || !known(e[i]) || (log && v <= 0)) return;
      const low = log ? Math.max(v - e[i], this.sy.low * 1e-3) : v - e[i];
      const at = this.sx.place(x[i]).toFixed(1);
      up.push(`${at},${this.sy.place(v + e[i]).toFixed(1)}`);
      down.unshift(`${at},${this.sy.place(low).toFixed(1)}`);
    });
    group.append(svg("polygon", { class: "band", points: [...up, ...down].join(" "), style: `fill:${color}` }));
  }

  // What a picture shows, for those who do not see it.
  told() {
    const parts = this.visible().map((curve) => {
      const y = this.now(curve.y).filter(known);
      if (!y.length) return `${curve.words}: no value`;
      if (curve.kind === "predicted" && y.length === 2) return `${curve.words}: ${shown(y[0])}`;
      return `${curve.words}: from ${shown(y[0])} to ${shown(y[y.length - 1])}`;
    });
    const when = this.data.slider ? `, t = ${shown(DATA.sliders[this.data.slider][this.frame])} fm` : "";
    return `${this.data.title}: ${this.data.ylabel} against ${this.data.xlabel}${when}. ${parts.join("; ")}.`;
  }

  // -- legend and switches --------------------------------------------------------------------

  addLegend() {
    const { curves } = this.data;
    if (curves.length < 2) return;
    const list = html("ul", { class: "legend" });
    const entries = new Map();
    curves.forEach((curve, i) => {
      const key = curve.kind === "predicted" ? `predicted ${curve.words}` : `${i}`;
      if (!entries.has(key)) entries.set(key, []);
      entries.get(key).push(i);
    });
    const last = (places) => Number(curves[places[0]].kind === "predicted");
    for (const places of [...entries.values()].sort((a, b) => last(a) - last(b))) {
      const curve = curves[places[0]];
      const color = colorOf(places.length > 1 ? -1 : curve.color);
      const dash = curve.kind === "predicted" ? "6 4" : DASHES[curve.dash];
      const swatch = svg("svg", { width: 26, height: 10, viewBox: "0 0 26 10", "aria-hidden": "true" },
        svg("path", { d: "M1,5H25", class: curve.kind === "start" ? "curve start" : "curve", style: `stroke:${color}`, "stroke-dasharray": dash || null }));
      const button = html("button", { type: "button", "aria-pressed": "true" }, swatch, curve.words);
      button.addEventListener("click", () => {
        const on = button.getAttribute("aria-pressed") === "true";
        button.setAttribute("aria-pressed", String(!on));
        places.forEach((i) => (on ? this.hidden.add(i) : this.hidden.delete(i)));
        this.draw();
      });
      list.append(html("li", {}, button));
    }
    this.figure.querySelector("figcaption").after(list);
  }

  addSwitches() {
    const values = this.data.curves.flatMap((c) => c.y.flat()).filter(known);
    if (values.some((v) => v > 0) && values.every((v) => v >= 0)) {
      addSwitch(this, "log scale", this.log, (on) => { this.log = on; });
    }
    if (this.data.straight) addSwitch(this, "straightened", false, (on) => { this.straight = on; }, "A thermal spectrum becomes a straight line");
    this.figure.querySelector("figcaption").append(this.buttons);
  }

  // -- numbers --------------------------------------------------------------------------------

  point(event) {
    if (!this.sx) return;
    const box = this.plot.getBoundingClientRect();
    const x = this.sx.value((event.clientX - box.left) * this.size.width / box.width);
    let best = null;
    const curves = this.visible().filter((c) => c.kind !== "start");
    for (const curve of curves.filter((c) => c.kind !== "predicted")) {
      this.x(curve).forEach((v) => {
        if (known(v) && (best === null || Math.abs(v - x) < Math.abs(best - x))) best = v;
      });
    }
    if (best === null || x < this.sx.low - 0.02 * (this.sx.high - this.sx.low)) return this.leave();
    const rows = curves.map((curve) => {
      const place = nearest(this.x(curve), best);
      const value = this.y(curve)[place];
      const error = curve.error && !this.straight ? this.now(curve.error)[place] : null;
      const words = shown(value) + (known(error) ? ` ± ${shown(error, 1)}` : "");
      return html("div", {}, html("i", { style: `background:${colorOf(curve.color)}` }), `${curve.words}${curve.of ? `, ${curve.of}` : ""}: ${words}`);
    });
    const unit = (this.straight ? "E [GeV]" : this.data.xlabel).split(" ");
    this.tip.replaceChildren(html("b", {}, `${unit[0]} ${shown(best)} ${(unit.find((w) => w[0] === "[") || "").slice(1, -1)}`), ...rows);
    this.tip.hidden = false;
    const at = this.sx.place(best);
    this.cross.setAttribute("x1", at);
    this.cross.setAttribute("x2", at);
    this.cross.setAttribute("visibility", "visible");
    const part = at / this.size.width;
    this.tip.style.left = part < 0.5 ? `${100 * part + 3}%` : "auto";
    this.tip.style.right = part < 0.5 ? "auto" : `${100 * (1 - part) + 3}%`;
  }

  leave() {
    this.tip.hidden = true;
    if (this.cross) this.cross.setAttribute("visibility", "hidden");
  }

  addTable() {
    const place = html("div", { class: "scroll", role: "group", tabindex: "0", "aria-label": `Numbers: ${this.data.title}` });
    this.numbers = html("details", { class: "numbers" }, html("summary", {}, "Numbers"), place);
    this.numbers.addEventListener("toggle", () => this.fillTable());
    return this.numbers;
  }

  fillTable() {
    if (!this.numbers.open) return;
    const { curves } = this.data;
    const xs = [...new Set(curves.filter((c) => c.kind !== "predicted").flatMap((c) => c.x || this.data.x))].sort((a, b) => a - b);
    const columns = curves.map((curve) => {
      const x = curve.x || this.data.x, y = this.now(curve.y);
      const constant = curve.kind === "predicted" && y.length === 2;
      const by = new Map(x.map((v, i) => [v, y[i]]));
      return { words: curve.words + (curve.of ? `, ${curve.of}` : ""), at: (v) => (constant ? y[0] : by.get(v)), some: constant || xs.some((v) => by.has(v)) };
    }).filter((column) => column.some);
    const head = html("tr", {}, ...[this.data.xlabel, ...columns.map((c) => c.words)].map((w) => html("th", { scope: "col" }, w)));
    const body = xs.map((v) => html("tr", {}, html("th", { scope: "row" }, shown(v)), ...columns.map((c) => html("td", {}, shown(c.at(v))))));
    const caption = html("caption", {}, this.told().split(". ")[0]);
    this.numbers.querySelector("div").replaceChildren(html("table", {}, caption, html("thead", {}, head), html("tbody", {}, ...body)));
  }

  move(frame) {
    this.frame = frame;
    this.draw();
    this.fillTable();
  }
}

function nearest(values, wanted) {
  let best = 0;
  values.forEach((v, i) => { if (Math.abs(v - wanted) < Math.abs(values[best] - wanted)) best = i; });
  return best;
}
