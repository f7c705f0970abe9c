// Elements, numbers in words, and ticks along axes.

const DATA = JSON.parse(document.getElementById("data").textContent);
const RAISED = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };
const known = (v) => v !== null && v !== undefined && Number.isFinite(v);

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}
const html = (tag, attributes = {}, ...children) =>
  fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

// --- numbers -------------------------------------------------------------------------------------

const power = (n) => "10" + [...String(n)].map((c) => RAISED[c]).join("");
const minus = (words) => words.replace("-", "−");

// A number in words: 0.4512, 1.2 × 10⁻⁴.
function shown(v, digits = 4) {
  if (!known(v)) return "–";
  const size = Math.abs(v);
  if (size !== 0 && (size < 1e-3 || size >= 1e5)) {
    const [front, exponent] = v.toExponential(digits - 1).split("e");
    return minus(`${Number(front)} × ${power(Number(exponent))}`);
  }
  return minus(String(Number(v.toPrecision(digits))));
}

// --- axes ----------------------------------------------------------------------------------------

// Even ticks within limits: values, words, and the power of ten that all of them are multiples of.
function evenTicks(low, high, most) {
  const raw = (high - low) / Math.max(most, 1);
  const ten = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((k) => k * ten).find((k) => k >= raw * 0.85);
  const values = [];
  for (let k = Math.ceil(low / step - 1e-6); k * step <= high + 1e-6 * step; k++) values.push(k * step);
  const size = Math.max(Math.abs(low), Math.abs(high));
  const exponent = size < 0.01 || size >= 1e5 ? Math.floor(Math.log10(size)) : 0;
  const unit = step / 10 ** exponent;
  const decimals = Math.max(0, -Math.floor(Math.log10(unit) + 1e-9));
  const words = values.map((v) => minus((v / 10 ** exponent).toFixed(decimals).replace(/^-(0\.?0*)$/, "$1")));
  return { values, words, times: exponent ? `× ${power(exponent)}` : "" };
}

// Ticks of a logarithmic axis: powers of ten, and 2 and 5 of them where there are few.
function logTicks(low, high, most) {
  const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9);
  const decades = Math.log10(high / low);
  const factors = decades < 1.3 ? [1, 2, 3, 5, 7] : decades < 2.6 ? [1, 2, 5] : [1];
  const every = factors.length > 1 ? 1 : Math.max(1, Math.ceil((last - first + 1) / most));
  const values = [];
  for (let n = first - 1; n <= last; n++) {
    if (factors.length === 1 && (n < first || (n - last) % every)) continue;
    for (const k of factors) {
      const v = k * 10 ** n;
      if (v >= low * 0.9999 && v <= high * 1.0001) values.push(v);
    }
  }
  const plain = low >= 0.9e-3 && high <= 1.1e5;
  const words = values.map((v) => {
    if (plain) return String(Number(v.toPrecision(3)));
    const n = Math.floor(Math.log10(v) + 1e-9), front = Math.round(v / 10 ** n);
    return front === 1 ? power(n) : `${front} × ${power(n)}`;
  });
  return { values, words, times: "" };
}

// From values to places along an axis, and back.
function scaleOf(low, high, from, to, log) {
  const a = log ? Math.log(low) : low, b = log ? Math.log(high) : high;
  const place = (v) => from + ((log ? Math.log(v) : v) - a) / (b - a) * (to - from);
  const value = (x) => {
    const v = a + (x - from) / (to - from) * (b - a);
    return log ? Math.exp(v) : v;
  };
  return { place, value, low, high };
}

// Limits that hold all values, with a margin.
function around(values, log) {
  const some = values.filter((v) => known(v) && (!log || v > 0));
  if (!some.length) return log ? [0.1, 1] : [0, 1];
  let low = Math.min(...some), high = Math.max(...some);
  if (log) return low === high ? [low / 2, high * 2] : [low / (high / low) ** 0.05, high * (high / low) ** 0.05];
  const span = Math.max(high - low, 1e-3 * Math.max(Math.abs(low), Math.abs(high)), 1e-12);
  const middle = (low + high) / 2;
  return [middle - 0.56 * span, middle + 0.56 * span];
}

// The frame of a drawing: grid, ticks and words; x and y are scales.
function drawAxes(x, y, size, options) {
  const { left, right, top, bottom, width, height } = size;
  const group = svg("g", { class: "axes" });
  const across = evenTicks(x.low, x.high, Math.max(3, Math.floor((width - left - right) / 48)));
  const upright = options.log ? logTicks(y.low, y.high, 6) : evenTicks(y.low, y.high, 5);
  const ink = (tag, attributes, ...children) => group.append(svg(tag, attributes, ...children));
  upright.values.forEach((v, i) => {
    const at = y.place(v);
    if (!options.bare) ink("line", { class: "rule", x1: left, x2: width - right, y1: at, y2: at });
    ink("text", { x: left - 6, y: at + 4, "text-anchor": "end" }, upright.words[i]);
  });
  across.values.forEach((v, i) => {
    const at = x.place(v);
    ink("line", { class: "tick", x1: at, x2: at, y1: height - bottom, y2: height - bottom + 4 });
    ink("text", { x: at, y: height - bottom + 17, "text-anchor": "middle" }, across.words[i]);
  });
  if (upright.times) ink("text", { x: left - 6, y: top - 10 }, upright.times);
  const end = { x: width - right, y: height - 5, "text-anchor": "end", class: "label" };
  ink("text", end, options.xlabel + (across.times ? ` (${across.times})` : ""));
  ink("path", { class: "frame", d: `M${left},${top}V${height - bottom}H${width - right}` });
  return group;
}

// Room that the words of a vertical axis need.
function roomFor(low, high, log) {
  const { words } = log ? logTicks(low, high, 6) : evenTicks(low, high, 5);
  return 14 + 6.6 * Math.max(2, ...words.map((w) => w.length));
}

// The words beside an axis: the unit alone, where the title says the rest.
function axisWords(title, words) {
  const [, plain, unit] = words.match(/^(.*?)(?: \[(.*)\])?$/);
  if (!title.toLowerCase().startsWith(plain.toLowerCase())) return words;
  return unit ? `in ${unit}` : "";
}

// A button of a chart that is on or off; the chart is drawn anew.
function addSwitch(chart, words, pressed, act, title) {
  const button = html("button", { type: "button", class: "switch", "aria-pressed": String(pressed), title }, words);
  button.addEventListener("click", () => {
    const on = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(on));
    act(on);
    chart.draw();
  });
  chart.buttons.append(button);
}
