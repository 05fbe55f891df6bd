"""The dialects a project may speak: one vendor's tool each, by the tool's name.

DIALECTS are our own; in ALL_DIALECTS those that installed packages add are looked up as well.
"""

from collections.abc import Callable, Iterator, Mapping

from npumake import plugins
from npumake.late import when_used
from npumake.project.vendor import Dialect, Dialects

with when_used(
    "npumake.dialects.drobotics.dialect",
    "npumake.dialects.edgefirst.dialect",
    "npumake.dialects.horizon.dialect",
    "npumake.dialects.synaptics.dialect",
):
    from npumake.dialects.drobotics import dialect as drobotics
    from npumake.dialects.edgefirst import dialect as edgefirst
    from npumake.dialects.horizon import dialect as horizon
    from npumake.dialects.synaptics import dialect as synaptics

DIALECTS: Dialects = {
    "ara2": lambda: edgefirst.ARA2,
    "hb_compile": lambda: horizon.HB_COMPILE,
    "hb_mapper": lambda: drobotics.HB_MAPPER,
    "synap": lambda: synaptics.SYNAP,
}


class _WithPlugins(Mapping[str, Callable[[], Dialect]]):
    """Installed packages are asked only for a name that is not in `own`, or for all names."""

    def __init__(self, own: Dialects) -> None:
        self._own = own

    def __getitem__(self, name: str) -> Callable[[], Dialect]:
        if name in self._own:
            return self._own[name]
        plugin = plugins.plugin(plugins.DIALECTS, name)
        if plugin is None:
            raise KeyError(name)
        return lambda: _loaded(plugin)

    def __iter__(self) -> Iterator[str]:
        yield from self._own
        yield from sorted({*plugins.plugin_names(plugins.DIALECTS)} - {*self._own})

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _loaded(plugin: plugins.Plugin) -> Dialect:
    """Raises ProjectError for what is no Dialect."""
    dialect = plugin.load()
    if not isinstance(dialect, Dialect):
        raise plugin.error(f"has no Dialect in `{plugin.value}`")
    return dialect


ALL_DIALECTS: Dialects = _WithPlugins(DIALECTS)
