"""The page as a reader sees it: on a screen and on a phone, by day and by night, on paper."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlencode

import pytest

from npumake.report.page import page
from report.browser import CHECKS, opened
from report.pages import chain, findings_of
from workspaces import Workspace, few

# (width in pixels, whether it is dark)
SCREENS = [(width, is_dark) for width in (1280, 700, 400) for is_dark in (False, True)]
SAMPLED = few(SCREENS, lambda screen: screen in {(1280, False), (400, True)})


@pytest.fixture(scope="module")
def text(reported_once: Workspace) -> str:
    return (reported_once.project / "out" / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def long_names() -> str:
    """Of a page with 60 nodes, whose names are as long as those of an exporter."""
    return page({"net:chip": findings_of(chain(60, "/model.22/cv3.0/backbone/stage"))}, {}).text


@pytest.mark.slow
@pytest.mark.parametrize(("width", "is_dark"), SAMPLED)
@pytest.mark.parametrize("kind", ["text", "long_names"])
def test_every_text_is_read_at_every_width_and_in_both_schemes(
    kind: str, width: int, is_dark: bool, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    seen, console = opened(request.getfixturevalue(kind), tmp_path, CHECKS, width, is_dark)
    assert console == []
    assert seen["width"] == width
    assert seen["texts"] > 50
    assert (seen["background"] == "rgb(255, 255, 255)") is not is_dark
    assert {name: seen[name] for name in ("overlaps", "faint", "dead", "overflow")} == {
        "overlaps": [],
        "faint": [],
        "dead": [],
        "overflow": 0,
    }


@pytest.mark.slow
def test_a_table_says_on_a_phone_what_each_figure_is(text: str, tmp_path: Path) -> None:
    script = """const cells = [...document.querySelectorAll('#summary tbody tr:first-child td')];
      return cells.slice(1).map((cell) => [getComputedStyle(cell, '::before').content,
        cell.getBoundingClientRect().right <= innerWidth]);"""
    cells, _ = opened(text, tmp_path, script, 400)
    assert {'"top1, float"', '"Worst cosine"', '"Method"'} <= {label for label, _ in cells}
    assert all(is_inside for _, is_inside in cells)


@pytest.mark.slow
def test_an_address_names_a_build_and_a_node(text: str, tmp_path: Path) -> None:
    at = {"build": "digits@kl:rdk-x5", "node": "block1_pointwise"}
    script = "return [build.name, chosen, document.getElementById('build').value];"
    named, console = opened(text, tmp_path, script, fragment=f"#{urlencode(at)}")
    assert (named, console) == ([at["build"], at["node"], at["build"]], [])


@pytest.mark.slow
def test_an_address_of_nothing_opens_the_page_as_ever(text: str, tmp_path: Path) -> None:
    at = f"#{urlencode({'build': 'digits:none', 'node': '<b>'})}"
    assert opened(text, tmp_path, "return build.name;", fragment=at) == ("digits:ara240", [])


@pytest.mark.slow
def test_every_link_to_a_node_leads_to_it(text: str, tmp_path: Path) -> None:
    script = """return data.builds.flatMap((each) => { show(each);
      return [...document.querySelectorAll("a[href*='node=']")].map((link) => {
        const at = new URLSearchParams(link.hash.slice(1));
        location.hash = link.hash; follow();
        return [at.get('build') === build.name, at.get('node') === chosen,
          link.textContent === chosen];
      }); });"""
    links, console = opened(text, tmp_path, script)
    assert console == []
    assert len(links) >= 4 * 12
    assert all(all(link) for link in links)


@pytest.mark.slow
def test_a_note_links_the_nodes_that_it_names(tmp_path: Path) -> None:
    document = findings_of(chain(10)).document
    note = "on the CPU: node conv 1 (Conv), node conv 11, node sum 0"
    text = page({"net:chip": type(findings_of(chain(10)))({**document, "notes": [note]})}, {}).text
    script = """const note = document.querySelector('#summary .notes li');
      return [note.textContent, [...note.querySelectorAll('a')].map((link) => link.textContent)];"""
    said, console = opened(text, tmp_path, script)
    assert (said, console) == ([note, ["node conv 1", "node sum 0"]], [])


@pytest.mark.slow
def test_a_printed_page_is_light_and_whole(text: str, tmp_path: Path) -> None:
    """By the rules for print: they name the light colours again, and cut no table."""
    script = """const rules = [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules])
        .filter((rule) => rule.media?.mediaText === 'print').flatMap((rule) => [...rule.cssRules]);
      const of = (selector, name) => rules.find((rule) => rule.selectorText?.includes(selector))
        ?.style.getPropertyValue(name).trim();
      dispatchEvent(new Event('beforeprint'));
      return [of(':root', '--paper'), of('.scroll', 'max-height'),
        [...document.querySelectorAll('details')].every((each) => each.open)];"""
    assert opened(text, tmp_path, script, is_dark=True) == (["#ffffff", "none", True], [])
