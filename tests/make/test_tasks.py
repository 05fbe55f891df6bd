"""doit's tasks: what of them goes from one process to another."""

from multiprocessing.reduction import ForkingPickler

from npumake.make.tasks import LocalMeta


def test_what_a_build_remembers_is_not_sent_between_processes():
    """A finished task is sent while the next runs: a dict that grows then would never arrive."""
    sent = ForkingPickler.dumps(LocalMeta(build=lambda: "not to be pickled"))
    assert ForkingPickler.loads(sent) == {}
