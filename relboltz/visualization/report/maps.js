// Maps: colours in a plane, a bar that says what they mean, arrows of a flow.

const SCALES = Object.fromEntries(Object.entries(DATA.scales).map(([name, colors]) =>
  [name, colors.map((c) => [0, 2, 4].map((k) => parseInt(c.slice(k, k + 2), 16)))]));

function colorAt(scale, part) {
  const place = Math.min(1, Math.max(0, part)) * (scale.length - 1);
  const k = Math.min(Math.floor(place), scale.length - 2);
  return scale[k].map((c, i) => Math.round(c + (place - k) * (scale[k + 1][i] - c)));
}

// A picture of rows of colours, the first row below; what has no value is left clear.
function pictureOf(columns, rows, colors) {
  const canvas = html("canvas", { width: columns, height: rows });
  const context = canvas.getContext("2d"), image = context.createImageData(columns, rows);
  colors.forEach((color, i) => {
    if (!color) return;
    const place = 4 * ((rows - 1 - Math.floor(i / columns)) * columns + (i % columns));
    image.data.set([...color, 255], place);
  });
  context.putImageData(image, 0, 0);
  return canvas.toDataURL();
}

class Field {
  constructor(figure, data) {
    this.figure = figure;
    this.data = data;
    this.frame = DATA.sliders[data.slider].length - 1;
    this.ylabel = html("p", { class: "ylabel" }, axisWords(data.title, data.ylabel));
    this.plot = html("div", { class: "plot" });
    this.tip = html("div", { class: "tip", hidden: "" });
    figure.querySelector("figcaption").after(this.ylabel, this.plot);
    this.buttons = html("div", { class: "buttons" });
    this.own = false;
    addSwitch(this, "rescale", false, (on) => { this.own = on; }, "Colours of this time alone");
    figure.querySelector("figcaption").append(this.buttons);
    if (data.flow) figure.append(html("p", { class: "note" }, `Longest arrow: ${shown(data.flow.fastest, 2)} of the speed of light.`));
    this.plot.addEventListener("pointermove", (event) => this.point(event));
    this.plot.addEventListener("pointerdown", (event) => this.point(event));
    this.plot.addEventListener("pointerleave", () => { this.tip.hidden = true; });
  }

  // Where the colours begin and end: of all times, or of this one.
  range() {
    const { low, high, log, colors } = this.data;
    const some = this.data.frames[this.frame].filter((v) => known(v) && (!log || v > 0));
    if (!this.own || !some.length) return [low, high];
    const [least, most] = [Math.min(...some), Math.max(...some)];
    if (colors === "signed") {
      const middle = (low + high) / 2, reach = Math.max(most - middle, middle - least, 1e-3 * (high - low));
      return [middle - reach, middle + reach];
    }
    const first = log ? Math.max(least, 1e-3 * most) : least;
    return most - first > 1e-6 * Math.abs(most) ? [first, most] : [low, high];
  }

  part(v) {
    const { log } = this.data, { low, high } = this;
    return log ? Math.log(Math.max(v, low) / low) / Math.log(high / low) : (v - low) / (high - low);
  }

  // The shape of the box, if both axes are lengths and it is not too long.
  ratio() {
    const [a, b] = this.data.axes.map((axis) => axis.ends[1] - axis.ends[0]);
    const alike = this.data.axes.every((axis) => axis.words.endsWith("[fm]"));
    return alike ? Math.min(1.4, Math.max(0.35, b / a)) : 0.75;
  }

  draw() {
    const { data } = this, width = Math.max(240, Math.round(this.plot.clientWidth || 320));
    const [a, b] = data.axes;
    [this.low, this.high] = this.range();
    const bar = 30 + roomFor(this.low, this.high, data.log);
    const left = Math.max(roomFor(b.ends[0], b.ends[1], false), 30);
    const inner = Math.min(width - left - bar, 420);
    const height = Math.round(inner * this.ratio()) + 22 + 40;
    const size = { left, right: width - left - inner, top: 22, bottom: 40, width, height };
    this.size = size;
    this.sx = scaleOf(...a.ends, left, left + inner, false);
    this.sy = scaleOf(...b.ends, height - 40, 22, false);
    const scale = SCALES[data.colors], now = data.frames[this.frame];
    const href = pictureOf(a.cells, b.cells, now.map((v) => (known(v) ? colorAt(scale, this.part(v)) : null)));
    const place = { x: left, y: 22, width: inner, height: height - 62 };
    const image = svg("image", { class: "map", href, ...place, preserveAspectRatio: "none" });
    const empty = svg("rect", { class: "empty", ...place });
    const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": this.told(now) },
      empty, image, this.arrows(), drawAxes(this.sx, this.sy, size, { xlabel: a.words, bare: true }), this.bar(left + inner + 14, scale),
      svg("text", { x: 0, y: 14, class: "label" }, b.words));
    this.plot.replaceChildren(picture, this.tip);
  }

  // What the colours mean.
  bar(x, scale) {
    const { low, high } = this, { log } = this.data, { height } = this.size, rows = 64;
    const href = pictureOf(1, rows, Array.from({ length: rows }, (_, k) => colorAt(scale, k / (rows - 1))));
    const group = svg("g", { class: "axes" }, svg("image", { href, x, y: 22, width: 12, height: height - 62, preserveAspectRatio: "none" }));
    const y = scaleOf(low, high, height - 40, 22, log), ticks = log ? logTicks(low, high, 5) : evenTicks(low, high, 5);
    ticks.values.forEach((v, i) => group.append(svg("text", { x: x + 17, y: y.place(v) + 4 }, ticks.words[i])));
    if (ticks.times) group.append(svg("text", { x: x - 2, y: 12 }, ticks.times));
    return group;
  }

  arrows() {
    const { flow } = this.data, group = svg("g", { class: "arrows" });
    if (!flow) return group;
    const [u, v] = flow.frames[this.frame];
    const cell = Math.min(this.spacing(flow.a, this.sx), this.spacing(flow.b, this.sy));
    const long = 0.95 * cell / flow.fastest;
    let path = "";
    flow.b.forEach((b, j) => flow.a.forEach((a, i) => {
      const k = j * flow.a.length + i;
      if (!known(u[k]) || !known(v[k])) return;
      path += arrow(this.sx.place(a), this.sy.place(b), u[k] * long, -v[k] * long);
    }));
    group.append(svg("path", { d: path, class: "under" }), svg("path", { d: path }));
    return group;
  }

  spacing(values, scale) {
    if (values.length < 2) return 40;
    return Math.abs(scale.place(values[1]) - scale.place(values[0]));
  }

  told(now) {
    const some = now.filter(known), when = DATA.sliders[this.data.slider][this.frame];
    const range = some.length ? `from ${shown(Math.min(...some))} to ${shown(Math.max(...some))}` : "no value";
    const [a, b] = this.data.axes;
    return `Map: ${this.data.title}, ${a.words} across, ${b.words} upwards, t = ${shown(when)} fm. ${this.data.ylabel}: ${range}.`;
  }

  point(event) {
    const box = this.plot.getBoundingClientRect(), unit = this.size.width / box.width;
    const place = [this.sx.value((event.clientX - box.left) * unit), this.sy.value((event.clientY - box.top) * unit)];
    const cells = this.data.axes.map((axis, k) =>
      Math.floor((place[k] - axis.ends[0]) / (axis.ends[1] - axis.ends[0]) * axis.cells));
    const [a, b] = this.data.axes;
    if (cells[0] < 0 || cells[1] < 0 || cells[0] >= a.cells || cells[1] >= b.cells) {
      this.tip.hidden = true;
      return;
    }
    const value = this.data.frames[this.frame][cells[1] * a.cells + cells[0]];
    const where = this.data.axes.map((axis, k) => shown(axis.ends[0] + (cells[k] + 0.5) * (axis.ends[1] - axis.ends[0]) / axis.cells, 3));
    this.tip.replaceChildren(html("b", {}, `(${where.join(", ")})`), html("div", {}, shown(value)));
    this.tip.hidden = false;
    const part = this.sx.place(place[0]) / this.size.width;
    this.tip.style.left = part < 0.5 ? `${100 * part + 4}%` : "auto";
    this.tip.style.right = part < 0.5 ? "auto" : `${100 * (1 - part) + 4}%`;
  }

  move(frame) {
    this.frame = frame;
    this.draw();
  }
}

// A path around the middle (x, y), with a head at its end.
function arrow(x, y, dx, dy) {
  const long = Math.hypot(dx, dy);
  if (long < 2) return "";
  const head = Math.min(4, 0.4 * long), [ux, uy] = [dx / long, dy / long];
  const [ex, ey] = [x + dx / 2, y + dy / 2];
  const side = (s) => `${(ex - head * (ux + s * 0.6 * uy)).toFixed(1)},${(ey - head * (uy - s * 0.6 * ux)).toFixed(1)}`;
  const [bx, by, tx, ty] = [x - dx / 2, y - dy / 2, ex, ey].map((v) => v.toFixed(1));
  return `M${bx},${by}L${tx},${ty}M${side(1)}L${tx},${ty}L${side(-1)}`;
}
