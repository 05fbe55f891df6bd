"""The shelf of tiny wrong projects: one mistake a file, its message in the file's own head.

# error: the message, where a final … stands for the parser's own words
# at: line:column, 0:0 for the whole file
# hint: what to do, if anything
"""

import re
from pathlib import Path

import pytest

from npumake.errors import Place, ProjectError
from npumake.project.document import parse_document
from npumake.project.reader import project_of

SHELF = sorted((Path(__file__).parent / "wrong").glob("*.yaml"))


def expected(source: bytes) -> dict[str, str]:
    return dict(re.findall(r"^# (error|at|hint): (.*)$", source.decode("utf-8", "replace"), re.M))


@pytest.mark.parametrize("file", SHELF, ids=lambda file: file.stem)
def test_a_mistake_is_named_where_it_is(file):
    head = expected(source := file.read_bytes())
    line, column = map(int, head["at"].split(":"))
    with pytest.raises(ProjectError) as caught:
        project_of(parse_document(source, file.name), "net", Path())
    mistake = caught.value
    assert mistake.where == Place(file.name, line, column)
    assert mistake.hint == head.get("hint", "")
    if head["error"].endswith("…"):
        assert mistake.what.startswith(head["error"].removesuffix("…"))
    else:
        assert mistake.what == head["error"]


def test_the_shelf_is_not_empty():
    assert len(SHELF) > 30
