// The page: every figure is drawn, sliders move them, buttons copy and change the light.

const drawn = [];
for (const figure of document.querySelectorAll("figure[data-chart]")) {
  const data = DATA.charts[figure.dataset.chart];
  const kind = data.kind === "map" ? Field : Lines;
  const chart = new kind(figure, data);
  drawn.push(chart);
  let width = 0;
  new ResizeObserver(() => {
    if (chart.plot.clientWidth === width || !chart.plot.clientWidth) return;
    width = chart.plot.clientWidth;
    chart.draw();
  }).observe(chart.plot);
  chart.draw();
}

// --- sliders -------------------------------------------------------------------------------------

const sliders = [...document.querySelectorAll("[data-slider]")].map((place) => {
  const key = place.dataset.slider, times = DATA.sliders[key];
  const input = place.querySelector("input"), told = place.querySelector("output");
  const button = place.querySelector(".play"), face = button.querySelector("span");
  const moved = drawn.filter((chart) => chart.data.slider === key);
  let playing = null;
  const show = () => {
    const words = `t = ${shown(times[input.valueAsNumber])} fm`;
    told.textContent = words;
    input.setAttribute("aria-valuetext", words);
    moved.forEach((chart) => chart.move(input.valueAsNumber));
  };
  const stop = () => {
    clearInterval(playing);
    playing = null;
    face.textContent = "▶";
    button.setAttribute("aria-label", "Play");
  };
  const go = (frame) => { input.value = frame; show(); };
  button.addEventListener("click", () => {
    if (playing) return stop();
    if (input.value === input.max) go(0);
    face.textContent = "❚❚";
    button.setAttribute("aria-label", "Pause");
    playing = setInterval(() => {
      go(input.valueAsNumber + 1);
      if (input.value === input.max) stop();
    }, Math.max(80, Math.min(400, 6000 / times.length)));
  });
  input.addEventListener("input", () => { if (playing) stop(); show(); });
  show();
  return { input, go, stop };
});

// On paper nothing moves: the last time is shown, then the one that was.
let before = [];
addEventListener("beforeprint", () => {
  before = sliders.map(({ input, go, stop }) => {
    const frame = input.value;
    stop();
    if (frame !== input.max) go(input.max);
    return frame;
  });
});
addEventListener("afterprint", () => sliders.forEach(({ go }, i) => before[i] !== undefined && go(before[i])));

// --- light and dark ------------------------------------------------------------------------------

const theme = document.getElementById("theme"), root = document.documentElement;
const preferred = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : preferred.matches);
function showTheme() {
  theme.textContent = isDark() ? "Light mode" : "Dark mode";
}
theme.addEventListener("click", () => {
  root.dataset.theme = isDark() ? "light" : "dark";
  showTheme();
});
preferred.addEventListener("change", showTheme);
showTheme();

// --- copies --------------------------------------------------------------------------------------

async function copy(words) {
  try {
    await navigator.clipboard.writeText(words);
    return true;
  } catch {  // an older browser, or one that asks first
    const area = html("textarea", { readonly: "" });
    area.value = words;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}
for (const button of document.querySelectorAll("button.copy")) {
  button.addEventListener("click", async () => {
    const done = await copy(document.getElementById(button.dataset.copies).textContent);
    const told = button.parentElement.querySelector(".copied");
    told.textContent = done ? "Copied." : "This browser does not copy; select the text below.";
    setTimeout(() => { told.textContent = ""; }, 4000);
  });
}
