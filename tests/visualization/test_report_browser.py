"""The page in a real browser: sliders move curves, nothing is fetched, everybody can read it."""

import base64
import io
import json
import shutil

import numpy as np
import pytest
from PIL import Image

import relboltz as rb
from relboltz.visualization.report import written

pytestmark = pytest.mark.docs

FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
USUAL = dict(every=0.1, samples=1, backend="cpu", progress=False)
PHONE, DESK = 360, 1280


def paths():
    """Chromium and its driver; skips with the reason where one is missing."""
    names = ("chromium", "chromium-browser", "google-chrome")
    browser = next((found for name in names if (found := shutil.which(name))), None)
    driver = shutil.which("chromedriver")
    if browser is None or driver is None:
        pytest.skip("no Chromium with chromedriver here: apt-get install chromium chromium-driver")
    return browser, driver


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    webdriver = pytest.importorskip("selenium.webdriver", reason="no selenium here")
    from selenium.webdriver.chrome.service import Service

    binary, driver = paths()
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    found = webdriver.Chrome(options=options, service=Service(driver))
    found.set_script_timeout(120)
    yield found
    found.quit()


def spot(x, y, z, px, py, pz):
    return np.exp(-(x**2) - y**2 - np.sqrt(px**2 + py**2 + pz**2) / 0.4)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Pages about homogeneous matter, about space, about two runs, and a mean of replicas."""
    folder = tmp_path_factory.mktemp("pages")
    start = {"g": rb.initial.gaussian(0.5, [0.9, 0.9, 0.4])}
    box, model = rb.PhaseSpace(7, 2.5), rb.qcd(0.3, 1)
    one = rb.solve(model, box, start, end=0.5, **USUAL)
    other = rb.solve(model, box, start, end=0.4, seed=2, **USUAL)
    grid = rb.PhaseSpace(6, 2.0, [4, 3, 1], [2.0, 1.5, 0.7], "open")
    plane = rb.solve(rb.gluons(0.3), grid, {"g": spot}, end=0.3, **USUAL)
    mean = rb.solve(model, box, start, end=0.2, replicas=2, **USUAL)
    results = {"box": {"one": one}, "space": {"plane": plane}, "both": {"one": one, "two": other}}
    results["mean"] = {"mean": mean}
    return {name: written(some, folder / f"{name}.html") for name, some in results.items()}


def opened(browser, path, width=DESK, dark=False):
    """The page at a width, in light or dark; logs of what came before are dropped."""
    media = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width == PHONE}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": media})
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    for kind in ("browser", "performance"):
        browser.get_log(kind)
    browser.get(path.as_uri())
    return browser


def paths_of(browser, figure):
    """Return the appearance of a figure's curves, by kind."""
    script = "return [...arguments[0].querySelectorAll('path.curve[data-kind]')].map((p) => \
        [p.dataset.kind, p.getAttribute('d')])"
    return dict(browser.execute_script(script, figure))


def find(browser, selector):
    return browser.find_elements("css selector", selector)


def press(browser, element, *keys):
    browser.execute_script("arguments[0].focus()", element)
    element.send_keys(*keys)


# --- it moves -----------------------------------------------------------------------------------


def test_the_slider_moves_the_curve_and_not_the_start(browser, pages):
    from selenium.webdriver.common.keys import Keys

    opened(browser, pages["box"])
    figure, slider = find(browser, "figure")[0], find(browser, "input[type=range]")[0]
    told = find(browser, ".slider output")[0]
    last = paths_of(browser, figure)
    assert told.text == "t = 0.5 fm" and last["points"].startswith("M")
    press(browser, slider, Keys.ARROW_LEFT)
    before = paths_of(browser, figure)
    assert told.text == slider.get_attribute("aria-valuetext") == "t = 0.4 fm"
    assert before["points"] != last["points"]
    assert before["start"] == last["start"] and before["predicted"] == last["predicted"]
    press(browser, slider, Keys.END)
    assert paths_of(browser, figure) == last
    assert "t = 0.5 fm" in figure.find_element("css selector", "svg[role=img]").accessible_name


def test_the_slider_moves_maps_and_profiles(browser, pages):
    from selenium.webdriver.common.keys import Keys

    opened(browser, pages["space"])
    shown = "return [...document.querySelectorAll('image.map')].map((i) => i.getAttribute('href'))"
    last = browser.execute_script(shown)
    assert len(last) >= 4 and all(href.startswith("data:image/png") for href in last)
    press(browser, find(browser, "input[type=range]")[0], Keys.HOME)
    first = browser.execute_script(shown)
    assert all(a != b for a, b in zip(first, last, strict=True))
    kind = "document.querySelector('#run0-space figure path.curve[data-kind=points]')"
    before = browser.execute_script(f"return {kind}.getAttribute('d')")
    press(browser, find(browser, "input[type=range]")[0], Keys.END)
    assert browser.execute_script(f"return {kind}.getAttribute('d')") != before
    button = find(browser, ".switch")[0]
    assert button.text == "rescale"
    browser.execute_script("arguments[0].click()", button)
    assert browser.execute_script(shown)[0] != last[0]
    assert button.get_attribute("aria-pressed") == "true"


def test_curves_can_be_left_out_and_straightened(browser, pages):
    opened(browser, pages["box"])
    figure = find(browser, "figure")[0]
    plain = paths_of(browser, figure)
    for button in figure.find_elements("css selector", ".legend button"):
        if button.text == "at the start":
            browser.execute_script("arguments[0].click()", button)
    assert set(paths_of(browser, figure)) == set(plain) - {"start"}
    for button in figure.find_elements("css selector", ".switch"):
        if button.text == "straightened":
            browser.execute_script("arguments[0].click()", button)
    bent = paths_of(browser, figure)
    points = [part.split(",") for part in bent["predicted"][1:].split("L")]
    x, y = np.array(points, float).T
    assert abs(y - np.polyval(np.polyfit(x, y, 1), x)).max() < 1.0  # pixels: a straight line
    assert "straight line" in figure.text


def test_numbers_stand_in_a_table_too(browser, pages):
    opened(browser, pages["box"])
    figure = next(f for f in find(browser, "figure") if f.text.startswith("Temperature"))
    browser.execute_script("arguments[0].querySelector('summary').click()", figure)
    rows = figure.find_elements("css selector", "tbody tr")
    assert len(rows) == 6
    assert [row.find_element("css selector", "th").text for row in rows][:3] == ["0", "0.1", "0.2"]


def test_the_configuration_is_copied(browser, pages):
    opened(browser, pages["box"])
    told = find(browser, ".copied")[0]
    browser.execute_script(
        "window.kept = ''; navigator.clipboard.writeText = async (t) => { window.kept = t; }"
    )
    browser.execute_script("document.querySelector('button.copy').click()")
    text = browser.execute_script("return document.getElementById('run0-toml').textContent")
    assert browser.execute_script("return window.kept") == text and "[model]" in text
    assert told.text == "Copied."


# --- it needs nothing ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["box", "space", "both", "mean"])
def test_nothing_is_fetched_and_nothing_complains(browser, pages, name):
    opened(browser, pages[name])
    script = "for (const i of document.querySelectorAll('input[type=range]')) { i.value = 1; \
        i.dispatchEvent(new Event('input')); } \
        for (const b of document.querySelectorAll('button')) b.click();"
    browser.execute_script(script)
    assert browser.get_log("browser") == []
    events = [json.loads(e["message"])["message"] for e in browser.get_log("performance")]
    asked = [e["params"]["request"]["url"] for e in events
             if e["method"] == "Network.requestWillBeSent"]  # fmt: skip
    assert pages[name].as_uri() in asked
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    assert [url for url in asked if url.startswith("file:")] == [pages[name].as_uri()]


# --- everybody can read it ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["box", "space", "both"])
@pytest.mark.parametrize("width", [PHONE, DESK])
def test_no_width_makes_the_page_scroll_sideways(browser, pages, name, width):
    opened(browser, pages[name], width)
    wide = browser.execute_script("return document.documentElement.scrollWidth")
    assert wide <= width
    out = (
        "return [...document.querySelectorAll('main figure, main table, main p, main dl')].filter(\
        (e) => e.getBoundingClientRect().left < 0).length"
    )
    assert browser.execute_script(out) == 0


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", ["box", "space", "both"])
def test_an_accessibility_check_finds_nothing_serious(browser, pages, name, dark):
    axe = pytest.importorskip("axe_core_python.selenium", reason="no axe-core-python here")
    opened(browser, pages[name], dark=dark)
    browser.execute_script("for (const e of document.querySelectorAll('details')) e.open = true")
    found = axe.Axe().run(browser)
    assert len(found["passes"]) > 20
    assert [(v["id"], v["impact"], v["nodes"][0]["html"]) for v in found["violations"]] == []


def picture(browser):
    """Return the pixels as an array of colours from 0 to 255."""
    shot = browser.execute_cdp_cmd("Page.captureScreenshot", {})["data"]
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(shot))).convert("RGB"), float)


def test_dark_is_dark_and_a_button_changes_it(browser, pages):
    light = picture(opened(browser, pages["box"]))
    dark = picture(opened(browser, pages["box"], dark=True))
    assert light.mean() > 200 and dark.mean() < 70
    button = find(browser, "#theme")[0]
    assert button.text == "Light mode"
    browser.execute_script("arguments[0].click()", button)
    assert button.text == "Dark mode" and picture(browser).mean() > 200


def test_on_paper_there_are_no_sliders_and_it_is_the_last_time(browser, pages):
    from selenium.webdriver.common.keys import Keys

    opened(browser, pages["box"], dark=True)
    slider, told = find(browser, "input[type=range]")[0], find(browser, ".slider output")[0]
    press(browser, slider, Keys.HOME)
    browser.execute_script(
        "addEventListener('beforeprint', () => { \
        window.printed = document.querySelector('.slider output').textContent; })"
    )
    browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    assert browser.execute_script("return window.printed") == "t = 0.5 fm"
    assert told.text == "t = 0 fm"
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert not slider.is_displayed() and told.is_displayed()
    paper = "return getComputedStyle(document.body).backgroundColor"
    assert browser.execute_script(paper) == "rgb(255, 255, 255)"
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
