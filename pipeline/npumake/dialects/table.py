"""The dialects of a project, by the name of the vendor's tool.

DIALECTS holds the built-in ones; ALL_DIALECTS adds those of installed packages.
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
    """Loads entry points only for a name that is not built in, or to list all names."""

    def __init__(self, dialects: Dialects) -> None:
        self._own = dialects

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
    """Raises ProjectError if the entry point is not a Dialect."""
    dialect = plugin.load()
    if not isinstance(dialect, Dialect):
        raise plugin.error(f"has no Dialect in `{plugin.value}`")
    return dialect


ALL_DIALECTS: Dialects = _WithPlugins(DIALECTS)
