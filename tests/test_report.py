"""The page of a study: complete, self-contained, and deaf to what names and failures try to smuggle in."""

import base64
import hashlib
import http.client
import json
import math
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import nestbo as nb
from damage import sign
from nestbo.cli import app
from nestbo.cli.reporting import _state
from nestbo.errors import ArgumentError, NestboError
from nestbo.plots import DRAWINGS
from nestbo.report import Folder, Watch, overview, page
from nestbo.report.page import _duration
from nestbo.report.serving import Live, hosts
from nestbo.strategies import STRATEGIES

ROOT = Path(__file__).parent.parent
EVIL = (
    """</td></script><script>window.hit = 1</script><img src=x onerror='window.hit = 2'>"><svg onload=h()> & {{ 7 }}"""
)


def cost(x):
    return x.flatten()[0].item() + x.flatten()[1].item() ** 2


class Reader(HTMLParser):
    """The tags of a page, with their attributes, and its text."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        if self.tags and self.cdata_elem is None:
            self.text += data

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


def read(study, **options):
    reader = Reader(page(study, **options))
    assert "could not be" not in reader.text
    return reader


def scripts(reader):
    """The scripts that a browser runs: data are none."""
    return [attributes for attributes in reader.all("script") if attributes.get("type") != "application/json"]


def given(html, kind):
    """What Plotly is given for one chart."""
    found = re.search(f'data-chart="{kind}".*?<script type="application/json">(.*?)</script>', html, re.DOTALL)
    return json.loads(found[1])


def sections(reader):
    return [attributes["id"] for attributes in reader.all("section") if "id" in attributes]


@pytest.fixture(scope="module")
def arms():
    """A short run with a nested model, and with a failure that attacks the page."""
    study = nb.Study(nb.Sphere(5), nb.HDGaBO(2, initial=3, metric="isotropic"))

    def objective(x):
        if len(study.history) == 4:
            raise RuntimeError(EVIL)
        return cost(x)

    return study.run(objective, 9, progress=False)


@pytest.fixture(scope="module")
def attacked(arms):
    """Its page, with a name and settings that attack it as well."""
    return page(arms, name=EVIL, facts={"objective": EVIL, EVIL: EVIL})


# what is on it


def test_all_there_is_to_say(arms):
    reader = read(arms, name="robot", facts={"budget": 12, "objective": "robot.py:cost", "seed": 987654321})
    found = ["best", "convergence", "model", "subspace", "failures", "timeline", "trials", "settings"]
    assert sections(reader) == found
    kinds = [image["data-kind"] for image in reader.all("img")]
    drawn = ["best", "convergence", "surrogate", "predictions", "importance"]
    assert kinds == [*drawn, "latent", "subspace", "reconstruction"]
    assert all(image["alt"] for image in reader.all("img"))
    assert reader.all("progress") == [{"max": "12", "value": "9", "aria-label": "Evaluations done"}]
    assert f"{arms.best.value:.6g}".replace("-", "−") in reader.text
    for said in ("nested:2", "robot.py:cost", "metric=isotropic", torch.__version__.split("+")[0]):
        assert said in reader.text
    assert "987654321" not in reader.text  # the study's own settings are not to be overwritten
    rows = [attributes for attributes in reader.all("td") if "data-key" in attributes]
    assert len(rows) == 4 * 9


def test_the_best_point_is_there_to_the_last_bit(arms, attacked):
    assert str(arms.best.x.tolist()) in Reader(attacked).text


@pytest.mark.parametrize("way", ["minimize", "maximize"])
def test_the_direction_is_that_of_the_study(way):
    study = nb.Study(nb.Sphere(2), nb.RandomSearch(), direction=way).run(cost, 4, progress=False)
    reader = read(study)
    assert {"minimize": "Minimising", "maximize": "Maximising"}[way] in reader.text
    assert sections(reader) == ["best", "convergence", "timeline", "trials", "settings"]


def test_a_study_without_trials():
    reader = read(nb.Study(nb.Sphere(2)), facts={"budget": 5})
    assert sections(reader) == ["trials", "settings"]
    assert "No trials yet" in reader.text


def test_a_study_with_questions_only():
    study = nb.Study(nb.Sphere(2))
    study.ask(2)
    assert "2 asked, none told" in read(study).text


def test_a_study_with_failures_only():
    study = nb.Study(nb.Sphere(2))
    for _ in range(3):
        study.tell(study.ask(), failed="the motor stalled")
    reader = read(study)
    assert sections(reader) == ["failures", "trials", "settings"]
    assert "3 × the motor stalled" in reader.text


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_strategy_has_a_page(name):
    method = STRATEGIES[name].samples()[0]
    study = nb.Study(nb.Sphere(3), method)
    points = nb.Study(nb.Sphere(3), nb.RandomSearch(), seed=2)
    for _ in range(7):
        x = points.ask().x
        study.add(x, cost(x))
    study.tell(study.ask(), 1.0)
    assert "best" in sections(read(study))


@pytest.mark.parametrize("clock", [-1e9, 1e20, 1e300, float("inf")])
def test_a_clock_that_was_far_off_does_not_cost_the_page(clock, monkeypatch):
    study = nb.Study(nb.Sphere(2), nb.RandomSearch())
    study.add([0.0, 0.0, 1.0], 1.0)
    with monkeypatch.context() as context:
        context.setattr(time, "time", lambda: clock)
        study.run(cost, 2, progress=False)
    assert repr(study.best.x.tolist()[0]) in read(study).text


def test_a_product_shows_each_part():
    space = nb.Product(nb.Sphere(2), nb.Product(nb.SPD(2), nb.Box([0, -1], [1, 1])))
    study = nb.Study(space, nb.RandomSearch()).run(cost, 3, progress=False)
    assert [image["data-kind"] for image in read(study).all("img")][:2] == ["best", "convergence"]


def test_a_broken_picture_does_not_cost_the_page(monkeypatch):
    study = nb.Study(nb.Sphere(2), nb.GaBO()).run(cost, 6, progress=False)
    monkeypatch.setitem(DRAWINGS, "convergence", None)
    html = page(study)
    assert "This picture could not be drawn. TypeError" in html
    assert "surrogate" in [image["data-kind"] for image in Reader(html).all("img")]


def test_the_same_study_gives_the_same_pictures():
    study = nb.Study(nb.SPD(2), nb.RandomSearch()).run(cost, 4, progress=False)
    pictures = [[image["src"] for image in read(study).all("img")] for _ in range(2)]
    assert pictures[0] == pictures[1]


# charts


@pytest.fixture(scope="module")
def lab():
    """Named parameters of several kinds, values over some powers of ten, and a failure."""
    space = nb.Product(force=nb.Box(0, 40), rate=nb.Box(1e-6, 1, scale="log"), passes=nb.Integer(1, 8),
                       tool=nb.Choice("soft", EVIL[:20]), wrist=nb.Quaternion())  # fmt: skip
    study = nb.Study(space, nb.GaBO(initial=4), seed=1)
    return study.run(lambda force, **rest: _failing(force, len(study.history)), 9, progress=False)


def _failing(force, count):
    if count == 3:
        raise RuntimeError(EVIL)
    return (force - 12) ** 2 + 1e-3


@pytest.fixture(scope="module")
def lab_page(lab):
    return page(lab, name="lab")


def traces(html, kind, face=0):
    return {trace["name"]: trace for trace in given(html, kind)["faces"][face]["data"]}


def test_convergence_has_a_log_scale_and_a_reference(lab, lab_page):
    value, log = given(lab_page, "convergence")["faces"]
    assert (value["layout"]["yaxis"].get("type"), log["layout"]["yaxis"]["type"]) == (None, "log")
    drawn, best = traces(lab_page, "convergence"), lab.best
    assert drawn["value"]["x"] == [trial.index for trial in lab.history if trial.status == "told"]
    assert drawn["failed"]["x"] == [2]
    assert drawn["best so far"]["y"][-1] == pytest.approx(best.value)
    reference = drawn["random search, as the model expects"]["y"]
    assert reference == sorted(reference, reverse=True)
    gaps = traces(lab_page, "convergence", 1)["value"]["y"]
    assert gaps.count(None) == 1  # the best value itself
    assert min(gap for gap in gaps if gap is not None) > 0


def test_parallel_coordinates_show_every_named_number(lab, lab_page):
    (face,) = given(lab_page, "parameters")["faces"]
    assert face["layout"]["xaxis"]["ticktext"][:4] == ["force", "rate", "passes", "tool"]
    assert len(face["data"]) == 8
    best = face["data"][-1]
    assert best["name"].startswith("best")
    unit = [lab.best.parameters["force"] / 40, 1 + math.log10(lab.best.parameters["rate"]) / 6]
    assert best["y"][:2] == pytest.approx(unit, abs=1e-6)


def test_slices_pass_through_the_best_point(lab, lab_page):
    faces = {face["label"]: face for face in given(lab_page, "slices")["faces"]}
    assert list(faces)[:4] == ["force", "rate", "passes", "tool"]
    assert faces["rate"]["layout"]["xaxis"]["type"] == "log"
    mean = next(trace for trace in faces["force"]["data"] if trace["name"] == "expected value")
    wanted = lab.model().predict(lab.best.x).item()
    assert np.interp(lab.best.parameters["force"], mean["x"], mean["y"]) == pytest.approx(wanted, abs=3.0)
    assert faces["passes"]["data"][0]["x"] == [str(k) for k in range(1, 9)]


def test_overlapping_evaluations_lie_in_lanes_of_their_own():
    study = nb.Study(nb.Sphere(2), nb.RandomSearch())
    for trial in study.ask(3):
        time.sleep(0.002)
        study.tell(trial, 1.0)
    study.run(cost, 2, progress=False)
    (told,) = given(page(study), "timeline")["faces"][0]["data"]
    assert told["y"][:3] == [1, 2, 3]
    assert set(told["y"]) == {1, 2, 3}


def test_charts_of_a_stranger_are_text_too(lab_page):
    text = json.dumps([given(lab_page, kind) for kind in ("convergence", "parameters", "slices", "timeline")])
    assert "window.hit" not in re.sub(r"&lt;[^<]*", "", text)
    assert not re.search(r"<(?!br>|extra>|/extra>)", text)
    assert "&lt;/td&gt;" in text


def test_the_table_has_a_column_for_each_named_parameter(lab_page):
    labels = [cell["data-label"] for cell in Reader(lab_page).all("td") if cell.get("class") == "parameter"]
    assert labels == ["force", "rate", "passes", "tool", "wrist"] * 9


def test_a_page_stays_small(lab_page, attacked):
    assert max(len(html.encode()) for html in (lab_page, attacked)) < 3e6


# what is not


def test_nothing_comes_from_elsewhere(attacked):
    reader = Reader(attacked)
    addresses = [a[key] for _, a in reader.tags for key in ("src", "href", "action", "data") if key in a]
    assert addresses
    assert [address[:40] for address in addresses if not address.startswith(("data:", "#"))] == []
    style = "".join(re.findall(r"<style[^>]*>(.*?)</style>", attacked, re.DOTALL))
    assert "url(" not in style
    assert "@import" not in style


def test_names_and_failures_are_text_and_nothing_else(attacked):
    reader = Reader(attacked)
    assert len(scripts(reader)) == 2
    assert reader.all("svg") == []
    assert {name for _, attributes in reader.tags for name in attributes if name.startswith("on")} == set()
    assert reader.text.count("window.hit = 1") >= 4
    assert "{{ 7 }}" in reader.text


def test_memories_of_a_stranger_are_text_too():
    study = nb.Study(nb.Sphere(2), nb.RandomSearch()).run(cost, 2, progress=False)
    study._store.file.connection.execute("UPDATE trials SET memory = ?", ('{"arm": "<script>x</script>"}',))
    sign(study._store.file.connection)
    study._known = type(study._known)()
    reader = read(nb.Study.copy(study))
    assert len(scripts(reader)) == 2
    assert "<script>x</script>" in reader.text


def test_a_name_that_is_no_text_is_shown_as_far_as_it_goes():
    assert read(nb.Study(nb.Sphere(2)), name="a\udcff").text.encode()


def test_only_the_script_of_the_page_may_run(attacked):
    policy = next(
        a["content"] for a in Reader(attacked).all("meta") if a.get("http-equiv") == "Content-Security-Policy"
    )
    allowed = dict(part.split(" ", 1) for part in policy.split("; "))
    for pattern, directive in ((r"<script>(.*?)</script>", "script-src"), (r"<style[^>]*>(.*?)</style>", "style-src")):
        contents = re.findall(pattern, attacked, re.DOTALL)
        digests = [base64.b64encode(hashlib.sha256(content.encode()).digest()).decode() for content in contents]
        assert {f"'sha256-{digest}'" for digest in digests} == set(allowed[directive].split())
        assert len(digests) == 2
    assert allowed["default-src"] == "'none'"
    assert allowed["img-src"] == "data:"


# copies


def test_a_copy_is_the_study_as_it_was(tmp_path):
    study = nb.Study(nb.Sphere(2), nb.GaBO(initial=2), store=tmp_path / "a.db").run(cost, 4, progress=False)
    copy = study.copy()
    wanted = study.models()["full:0"].gp.lengthscale
    study.add([0.0, 0.0, 1.0], -5.0)
    assert len(copy.history) == 4
    assert torch.equal(copy.models()["full:0"].gp.lengthscale, wanted)
    copy.add([0.0, 0.0, 1.0], -7.0)
    assert study.best.value == -5.0


# serving


def test_a_page_is_drawn_again_after_something_happened_and_a_rest(monkeypatch):
    now, states, drawn = [100.0], ["a"], []
    monkeypatch.setattr("nestbo.report.serving.time.monotonic", lambda: now[0])

    def draw(state):
        drawn.append(state)
        now[0] += 2.0
        return f"page {state}"

    live = Live(lambda: states[-1], draw)
    assert (live.page(), live.state()) == ("page a", "a")
    states.append("b")
    assert (live.page(), live.state()) == ("page a", "a")
    now[0] += 7.0
    assert (live.state(), live.page()) == ("b", "page b")
    assert drawn == ["a", "b"]


@pytest.fixture
def watch():
    def broken():
        raise ValueError("the disk is gone")

    made = Watch(lambda: "state", lambda state: "<p>ä page</p>")
    made.broken = broken
    thread = threading.Thread(target=made.run)
    thread.start()
    yield made
    made.stop()
    thread.join(10)


def ask(watch, path="/", host=None, method="GET"):
    port = int(watch.url.split(":")[2].strip("/"))
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request(method, path, headers={} if host is None else {"Host": host.format(port)})
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer, body


def test_the_page_is_served_to_this_machine(watch):
    answer, body = ask(watch)
    assert (answer.status, body) == (200, "<p>ä page</p>")
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert ask(watch, "/state?x")[1] == "state"
    assert ask(watch, host="localhost:{}")[0].status == 200
    assert watch._server.server_address[0] == "127.0.0.1"


@pytest.mark.parametrize("host", ["evil.example:{}", "evil.example", "127.0.0.1", "localhost:1"])
def test_another_host_is_refused(watch, host):
    answer, body = ask(watch, host=host)
    assert answer.status == 421
    assert "page" not in body


@pytest.mark.parametrize("host", ["LOCALHOST:{}", "127.0.0.1:{}"])
def test_names_of_hosts_have_no_case(watch, host):
    assert ask(watch, host=host)[0].status == 200


def test_the_port_of_http_may_be_left_out():
    assert hosts(80) == {"127.0.0.1:80", "localhost:80", "127.0.0.1", "localhost"}
    assert hosts(8765) == {"127.0.0.1:8765", "localhost:8765"}
    try:
        made = Watch(lambda: "state", lambda state: "page", port=80)
    except NestboError:
        pytest.skip("port 80 is not free, or not ours")
    thread = threading.Thread(target=made.run)
    thread.start()
    found = [
        ask(made, host=host)[0].status for host in ("127.0.0.1", "localhost", None, "evil.example", "localhost:81")
    ]
    made.stop()
    thread.join(10)
    assert found == [200, 200, 200, 421, 421]


@pytest.mark.parametrize(
    ("path", "method", "status"), [("/../a.db", "GET", 404), ("/x", "GET", 404), ("/", "POST", 501), ("/", "HEAD", 200)]
)
def test_there_is_one_page(watch, path, method, status):
    answer, body = ask(watch, path, method=method)
    assert answer.status == status
    assert "page</p>" not in body


def test_what_goes_wrong_is_said_and_the_next_may_go_right(watch, monkeypatch):
    live = watch._server.RequestHandlerClass.live
    monkeypatch.setattr(live, "_state", watch.broken)
    answer, body = ask(watch)
    assert (answer.status, body) == (500, "ValueError: the disk is gone\n")
    monkeypatch.undo()
    assert ask(watch)[0].status == 200


def test_a_busy_port_is_reported():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(NestboError, match=rf"Port {port} is in use by another program\. Choose another"):
            Watch(lambda: "", str, port=port)
    with pytest.raises(ArgumentError, match="port from 0 to 65535"):
        Watch(lambda: "", str, port=70000)


# the commands


def invoke(*arguments, code=0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], prog_name="nestbo")
    assert result.exit_code == code, result.output
    return result


def stored(path, n=4):
    with nb.Study(nb.Sphere(2), nb.RandomSearch(), store=path) as study:
        study.run(cost, n, progress=False)
    return path


def test_report_writes_a_file(tmp_path):
    store = stored(tmp_path / "polish & <b>.db")
    output = tmp_path / "report.html"
    result = invoke("report", store, "-o", output)
    assert result.stderr == f"Wrote {output}.\n"
    reader = Reader(output.read_text(encoding="utf-8"))
    assert reader.all("b") == [{}, {}, {}]  # of the page itself
    assert "polish & <b>" in reader.text
    assert str(tmp_path) not in output.read_text()


def test_report_says_what_is_wrong(tmp_path):
    store = stored(tmp_path / "a.db")
    said = invoke("report", store, "-o", tmp_path / "nowhere" / "a.html", code=1).stderr
    assert said.startswith("Cannot write ")
    assert "Choose another file." in said
    assert "There is no study at" in invoke("report", tmp_path / "b.db", "-o", "x.html", code=2).stderr


@pytest.fixture
def watching(tmp_path):
    """A study, and the address at which another process watches it."""
    store = stored(tmp_path / "a.db")
    command = [sys.executable, "-m", "nestbo", "watch", str(store), "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    line = process.stderr.readline()
    shown = re.sub(r":\d+/", ":8765/", line).replace(str(store), "polish.db")
    assert shown in (ROOT / "docs" / "report.md").read_text()
    yield store, re.search(r"http://127\.0\.0\.1:\d+/", line)[0], process
    process.kill()
    process.communicate()


def test_watch_ends_with_ctrl_c(watching):
    _, url, process = watching
    host = url.removeprefix("http://").strip("/")
    connection = http.client.HTTPConnection(host, timeout=60)
    connection.request("GET", "/")
    assert "Minimising" in connection.getresponse().read().decode()
    connection.close()
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 0
    assert process.stderr.read() == ""


def test_watch_reports_a_busy_port(tmp_path):
    store = stored(tmp_path / "a.db")
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        said = invoke("watch", store, "--port", other.getsockname()[1], code=1).stderr
    assert "is in use by another program" in said


def test_the_state_changes_whenever_something_is_asked_or_told(tmp_path):
    """Also when a point is found for an index that was reserved before."""
    while_reserved, after = [], []

    @dataclass(frozen=True, repr=False)
    class Looking(nb.RandomSearch):
        def suggest(self, *given, **options):
            while_reserved.append(_state(watcher))
            return super().suggest(*given, **options)

    study = nb.Study(nb.Sphere(2), nb.RandomSearch(), store=tmp_path / "a.db")
    with study, nb.Study.load(tmp_path / "a.db") as watcher:
        study.strategy = Looking()
        for outcome in ({"value": 1.0}, {"failed": "why"}):
            trial = study.ask()
            after.append(_state(watcher))
            study.tell(trial, **outcome)
            after.append(_state(watcher))
    assert len({*while_reserved, *after}) == 5  # the second was reserved after the first was told
    assert while_reserved[1] == after[1]


# several studies


@pytest.fixture
def folder(tmp_path):
    """Two studies, a file that holds none, and what shows them."""
    stored(tmp_path / "one.db")
    stored(tmp_path / "t & o.db", 6)
    (tmp_path / "other.db").write_text("no study")
    made = Folder(tmp_path, _state, lambda study, name, state: f"{name} {len(study.history)}")
    yield made
    made.close()


def test_the_studies_of_a_folder_are_side_by_side(folder, tmp_path):
    html = folder.page(folder.state())
    reader = Reader(html)
    assert [a["href"] for a in reader.all("a")] == ["one/", "t%20%26%20o/"]
    assert "2 studies in this folder" in reader.text
    assert [trace["name"] for trace in given(html, "/")["faces"][0]["data"]] == ["one", "t &amp; o"]
    assert given(html, "one")["faces"][0]["data"][0]["x"] == [0, 1, 2, 3]
    before = folder.state()
    stored(tmp_path / "three.db")
    assert folder.state() != before
    assert list(folder.studies()) == ["one", "t & o", "three"]
    (tmp_path / "three.db").unlink()
    assert list(folder.studies()) == ["one", "t & o"]


def test_an_empty_folder_says_so(tmp_path):
    assert "There is no study here yet" in Reader(Folder(tmp_path, _state, page).page("")).text


def test_each_study_of_a_folder_has_a_page_of_its_own(folder):
    made = Watch(folder.state, folder.page, room=folder.room)
    thread = threading.Thread(target=made.run)
    thread.start()
    found = [
        (ask(made, path)[0].status, ask(made, path)[1]) for path in ("/t%20%26%20o/", "/no/", "/../one/", "/one/x")
    ]
    state = ask(made, "/one/state")[1]
    made.stop()
    thread.join(10)
    assert found[0] == (200, "t & o 6")
    assert [status for status, _ in found[1:]] == [404, 404, 404]
    assert state == _state(folder.studies()["one"])


# in a browser


@pytest.fixture(scope="module")
def chromium():
    driver, browser = shutil.which("chromedriver"), shutil.which("chromium")
    if driver is None or browser is None:
        pytest.skip("needs Debian's chromium and chromium-driver: make browser")
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    # The sandbox cannot start as root, in a container.
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    made = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield made
    made.quit()


def shown(chromium, html, tmp_path, width=1280):
    """The page in the browser, at this width."""
    file = tmp_path / "report.html"
    file.write_text(html, encoding="utf-8")
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    chromium.get_log("browser")
    chromium.get(file.as_uri())
    return chromium


def column(chromium, index):
    script = "return [...document.querySelectorAll('.sortable tbody tr')].map(r => r.cells[arguments[0]].innerText)"
    return chromium.execute_script(script, index)


def click(chromium, title):
    script = "[...document.querySelectorAll('th button')].find(b => b.innerText.startsWith(arguments[0])).click()"
    chromium.execute_script(script, title)


def check_quiet(chromium):
    """The browser complains of nothing, and no attack on the page has run."""
    assert chromium.get_log("browser") == []
    assert chromium.execute_script("return window.hit") is None


@pytest.mark.parametrize("width", [1280, 390])
def test_a_browser_shows_it(chromium, attacked, tmp_path, width):
    shown(chromium, attacked, tmp_path, width)
    check_quiet(chromium)
    sizes = chromium.execute_script("return [...document.images].map(i => i.complete && i.naturalWidth)")
    assert len(sizes) == 8
    assert min(sizes) > 100
    assert chromium.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")
    assert chromium.execute_script("return getComputedStyle(document.querySelector('.tiles')).display") == "flex"
    assert EVIL in chromium.title


def settled(chromium, html, tmp_path, width=1400):
    """The page, with its charts drawn."""
    shown(chromium, html, tmp_path, width)
    deadline = time.monotonic() + 20
    while chromium.execute_script("return document.querySelectorAll('[data-chart]:not(:has(.main-svg))').length"):
        assert time.monotonic() < deadline, chromium.get_log("browser")
        time.sleep(0.05)
    return chromium


@pytest.mark.parametrize("width", [1400, 400])
def test_charts_take_the_place_of_pictures_and_nothing_is_cut(chromium, lab_page, tmp_path, width):
    settled(chromium, lab_page, tmp_path, width)
    check_quiet(chromium)
    kinds = chromium.execute_script("return [...document.querySelectorAll('[data-chart]')].map(f => f.dataset.chart)")
    assert kinds == ["convergence", "parameters", "slices", "predictions", "timeline"]
    parts = "figure, figure .chart, .main-svg, table:not(.sortable), section"
    wide = """return [...document.querySelectorAll(arguments[0])].filter(
        e => e.getBoundingClientRect().right > innerWidth || e.scrollWidth > e.clientWidth + 1).map(e => e.outerHTML)"""
    assert [html[:60] for html in chromium.execute_script(wide, parts)] == []
    table = "return document.querySelector('.sortable').scrollWidth <= document.querySelector('#trials').clientWidth"
    assert width > 400 or chromium.execute_script(table)
    covered = "return getComputedStyle(document.querySelector('[data-kind=convergence]').parentElement).display"
    assert chromium.execute_script(covered) == "none"


def test_a_log_scale_is_chosen_and_kept(chromium, lab_page, tmp_path):
    settled(chromium, lab_page, tmp_path)
    select = chromium.find_element("css selector", "[data-chart=convergence] select")
    select.send_keys("Distance")
    kind = "return document.querySelector('[data-chart=convergence] .chart')._fullLayout.yaxis.type"
    for _ in range(2):
        deadline = time.monotonic() + 10
        while chromium.execute_script(kind) != "log" and time.monotonic() < deadline:
            time.sleep(0.05)
        assert chromium.execute_script(kind) == "log"
        settled(chromium, lab_page, tmp_path)


def test_the_keyboard_moves_from_trial_to_trial(chromium, lab_page, tmp_path):
    settled(chromium, lab_page, tmp_path)
    plot = chromium.find_element("css selector", "[data-chart=convergence] .chart")
    said = chromium.find_element("css selector", "[data-chart=convergence] output")
    plot.send_keys("\ue014")  # the arrow to the right
    assert said.get_property("textContent").startswith("trial 0, value")
    plot.send_keys("\ue010")  # end
    assert said.get_property("textContent").startswith("trial 8, value")
    assert chromium.execute_script("return document.querySelectorAll('.hoverlayer .hovertext').length") == 1


def test_charts_follow_a_dark_page(chromium, lab_page, tmp_path):
    settled(chromium, lab_page, tmp_path)
    ink = "return document.querySelector('[data-chart=convergence] .chart')._fullLayout.font.color"
    light = chromium.execute_script(ink)
    dark = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", dark)
    deadline = time.monotonic() + 10
    while chromium.execute_script(ink) == light and time.monotonic() < deadline:
        time.sleep(0.05)
    assert (light, chromium.execute_script(ink)) == ("#1d2430", "#e8ebf0")
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_paper_and_browsers_without_scripts_get_pictures(chromium, lab_page, tmp_path):
    settled(chromium, lab_page, tmp_path)
    shows = """const seen = s => getComputedStyle(document.querySelector(s)).display;
        return [seen('[data-kind=convergence]'), seen('[data-chart=convergence] .chart'), seen('.choice')]"""
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert chromium.execute_script(shows) == ["block", "none", "none"]
    paper = {"width": 720, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", paper)
    assert chromium.execute_script("return document.querySelector('.sortable').scrollWidth") <= 720
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    chromium.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    chromium.refresh()
    chromium.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert chromium.find_element("css selector", "[data-kind=convergence]").is_displayed()
    assert not chromium.find_element("id", "parameters").is_displayed()


def test_the_tree_of_a_screen_reader_has_names_and_no_ticks(chromium, lab_page, tmp_path):
    settled(chromium, lab_page, tmp_path)
    nodes = chromium.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    tree = [(n["role"]["value"], n.get("name", {}).get("value", "")) for n in nodes if not n["ignored"]]
    groups = [name for role, name in tree if role == "group" and "trials" in name]
    assert any(name.startswith("Values and the best so far, trial by trial. Values of 9 trials.") for name in groups)
    assert {"Zoom in", "Zoom out", "Reset axes"} <= {name for role, name in tree if role == "button"}
    assert ("combobox", "Vertical axis") in tree
    assert not [name for role, name in tree if role == "StaticText" and name == "best so far"]
    named = ("button", "combobox", "image", "link", "region", "table")
    assert [role for role, name in tree if role in named and not name] == []


@pytest.mark.parametrize("width", [1400, 400])
def test_a_folder_in_a_browser(chromium, folder, tmp_path, width):
    settled(chromium, overview(folder.studies(), name="studies"), tmp_path, width)
    assert chromium.get_log("browser") == []
    rights = "return [...document.querySelectorAll('.side section')].map(s => s.getBoundingClientRect().right)"
    found = chromium.execute_script(rights)
    assert max(found) <= width
    assert (found[0] == found[1]) == (width == 400)


def test_the_table_sorts(chromium, tmp_path):
    study = nb.Study(nb.Sphere(2), nb.RandomSearch())
    for value in (10.0, 9.0, -2.5, None, 1e-3, 100.0):
        trial = study.ask()
        study.tell(trial, value, failed=None if value is not None else "broke")
    shown(chromium, page(study), tmp_path)
    assert column(chromium, 0) == ["0", "1", "2", "3", "4", "5"]
    click(chromium, "Value")
    assert column(chromium, 2) == ["−2.5", "0.001", "9", "10", "100", ""]
    click(chromium, "Value")
    assert column(chromium, 2) == ["100", "10", "9", "0.001", "−2.5", ""]
    chromium.refresh()
    assert column(chromium, 2)[0] == "100"
    click(chromium, "Trial")
    assert column(chromium, 0) == ["0", "1", "2", "3", "4", "5"]


def test_what_would_be_smuggled_in_unescaped_could_not_run(chromium, tmp_path):
    evil = "<script>window.hit = 1</script><img src=x onerror='window.hit = 2'></main>"
    shown(chromium, page(nb.Study(nb.Sphere(2))).replace("</main>", evil), tmp_path)
    assert chromium.execute_script("return window.hit") is None
    chromium.get_log("browser")


def test_the_page_renews_itself(chromium, watching):
    store, url, process = watching
    chromium.get(url)
    assert len(column(chromium, 0)) == 4
    click(chromium, "Value")
    with nb.Study.load(store) as study:
        study.run(cost, 2, progress=False)
    deadline = time.monotonic() + 30
    while len(column(chromium, 0)) < 6 and time.monotonic() < deadline:
        time.sleep(0.2)
    values = [float(value.replace("−", "-")) for value in column(chromium, 2)]
    assert len(values) == 6
    assert values == sorted(values)
    process.send_signal(signal.SIGINT)
    process.wait(20)
    while chromium.find_element("id", "live").text == "live" and time.monotonic() < deadline:
        time.sleep(0.2)
    assert chromium.find_element("id", "live").text == "not connected"


def test_files_of_the_page_are_shipped():
    folder = Path(nb.__file__).parent / "report"
    names = {"page.html", "page.css", "page.js", "charts.css", "charts.js"}
    assert names <= {file.name for file in folder.iterdir()}


def test_plotly_is_as_published():
    folder = Path(nb.__file__).parent / "report" / "vendor"
    digest = hashlib.sha256((folder / "plotly-basic.min.js").read_bytes()).hexdigest()
    assert digest in (folder / "README.md").read_text()
    assert "MIT" in (folder / "LICENSE.plotly").read_text()


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(None, "–"), (0.0023, "2.3 ms"), (0.5, "0.5 s"), (42.4, "42 s"), (90, "1.5 min"), (7200, "2.0 h"), (2e5, "2.3 d")],
)
def test_durations_are_said_in_the_units_that_people_use(seconds, said):
    assert _duration(seconds) == said


@pytest.fixture(scope="module")
def constrained():
    """The page of a study with constraints."""
    study = nb.Study(nb.Sphere(2), nb.GaBO(), noise="infer")
    points = nb.Study(nb.Sphere(2), nb.RandomSearch(), seed=3)
    for value, constraint in ((3.0, 1.0), (1.0, -1.0), (2.0, 0.5), (2.001, 0.5), (0.5, -0.1)):
        study.add(points.ask().x, value, constraints=constraint)
    return page(study)


def test_constraints_are_told(constrained):
    reader = Reader(constrained)
    assert "could not be" not in reader.text
    assert "Infeasible2" in reader.text
    best = "Trial 2 is recommended, of those that satisfy the constraints", "Trial 3 is recommended, of those"
    assert any(said in reader.text for said in best)


def test_constraints_are_in_the_table(chromium, constrained, tmp_path):
    shown(chromium, constrained, tmp_path)
    assert column(chromium, 1) == ["told", "infeasible", "told", "told", "infeasible"]
    assert column(chromium, 3) == ["1", "−1", "0.5", "0.5", "−0.1"]


def test_a_study_in_which_nothing_is_allowed():
    study = nb.Study(nb.Sphere(2), nb.RandomSearch())
    study.tell(study.ask(), 1.0, constraints=-1.0)
    reader = read(study)
    assert "No evaluation satisfies the constraints so far." in reader.text
    assert sections(reader) == ["trials", "settings"]


@pytest.fixture
def unsaved(monkeypatch):
    """Pictures are drawn but not written, for tests of the words beside them."""
    monkeypatch.setattr("nestbo.report.figures._address", lambda figure: "data:,")


@pytest.mark.usefixtures("unsaved")
def test_a_noisy_study_shows_the_recommended_point_first():
    study = nb.Study(nb.Sphere(2), nb.GaBO(), noise=0.5)
    for k, x in enumerate(study.space.random(9, rng=torch.Generator().manual_seed(1))):
        study.add(x, cost(x) + 0.5 * (k % 3))
    found, reader = study.recommendation(), read(study)
    assert found.trial.index == study.recommend().index != study.best.index
    assert found.low < found.mean < found.high
    mean, lucky = (f"{value:.6g}".replace("-", "−") for value in (found.mean, study.best.value))
    assert 0 < reader.text.index(mean) < reader.text.index(lucky)
    assert f"Trial {found.trial.index} is recommended" in reader.text
    assert str(found.trial.x.tolist()) in reader.text


@pytest.mark.usefixtures("unsaved")
def test_exact_values_recommend_nothing_but_the_best():
    study = nb.Study(nb.Sphere(2), nb.RandomSearch()).run(cost, 4, progress=False)
    assert study.recommendation() is None
    assert "recommended" not in read(study).text
