"""Custom plugins: loaded from files, modules and entry points, or refused in one line."""

from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from longshore.config import registry
from longshore.config.registry import known_points, load_plugins, register
from longshore.errors import UserError

SCORE = """
    from longshore.framework import score_plugin

    @score_plugin(weight=3)
    def fast_disks(pod, node):
        return 100
    """
CLASS = """
    class Licenses:
        name = "Licenses"

        def reserve(self, state, pod, node): ...
        def unreserve(self, state, pod, node): ...
    """
HANDLE: Any = object()


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(text: str, name: str = "mine.py") -> str:
    Path(name).write_text(dedent(text).lstrip())
    return name


def problem(*sources: str) -> str:
    with pytest.raises(UserError) as caught:
        load_plugins(sources)
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_the_plugins_of_a_file_are_its_decorated_functions_and_its_classes() -> None:
    plugins = load_plugins([write(dedent(SCORE) + dedent(CLASS))])
    assert known_points(plugins) == {"FastDisks": {"score"}, "Licenses": {"reserve"}}
    assert (plugins["FastDisks"].weight, plugins["Licenses"].weight) == (3, 1)
    assert plugins["Licenses"].source == "mine.py"


def test_imported_and_private_classes_of_a_file_are_not_its_plugins() -> None:
    write(CLASS, "theirs.py")
    text = """
        from longshore.plugins import NodeName
        from longshore.framework import Status, filter_plugin

        class _Base:
            def filter_node(self, state, pod, node): ...

        class Mine(_Base):
            name = "Mine"
        """
    assert load_plugins([write(text)]).keys() == {"Mine"}


def test_an_attribute_of_a_module_is_a_plugin(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write(SCORE, "installed_plugins.py")
    monkeypatch.syspath_prepend(tmp_path)
    plugins = load_plugins(["installed_plugins:fast_disks"])
    assert plugins["FastDisks"].source == "installed_plugins:fast_disks"


def test_entry_points_of_installed_packages_are_plugins(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write(CLASS, "package_with_plugins.py")
    monkeypatch.syspath_prepend(tmp_path)
    point = EntryPoint("Licenses", "package_with_plugins:Licenses", registry.GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda *, group: EntryPoints([point]).select(group=group))
    assert known_points(load_plugins()) == {"Licenses": {"reserve"}}


def test_a_plugin_given_twice_is_loaded_once(tmp_path: Path) -> None:
    write(SCORE)
    assert load_plugins(["mine.py", "./mine.py", str(tmp_path / "mine.py")]).keys() == {"FastDisks"}


def test_a_class_gets_the_arguments_that_its_constructor_takes() -> None:
    text = """
        class Nothing:
            name = "Nothing"
            def permit(self, state, pod, node): ...

        class Arguments(Nothing):
            name = "Arguments"
            def __init__(self, args): self.args = args

        class Both(Nothing):
            name = "Both"
            def __init__(self, *, handle, args, more=5): self.args, self.handle = args, handle

        class Any(Nothing):
            name = "Any"
            def __init__(self, *args, **others): self.args = args, others
        """
    made = {name: factory({"a": 1}, HANDLE) for name, factory in load_plugins([write(text)]).items()}
    assert {name: vars(plugin) for name, plugin in made.items()} == {
        "Nothing": {},
        "Arguments": {"args": {"a": 1}},
        "Both": {"args": {"a": 1}, "handle": HANDLE},
        "Any": {"args": ((), {})},
    }


def test_a_class_without_arguments_in_the_configuration_gets_an_empty_mapping() -> None:
    class Mine:
        name = "Mine"

        def __init__(self, args: Any) -> None:
            self.size = args.get("size", 5)

        def permit(self, state: Any, pod: Any, node: Any) -> None: ...

    made: Any = register(Mine)(None, HANDLE)
    assert made.size == 5


def test_a_missing_file_is_reported() -> None:
    assert problem("none.py") == "cannot read the plugins in none.py: no such file"


def test_a_syntax_error_in_a_file_is_reported_with_its_line() -> None:
    assert problem(write("x = 1\ndef broken(:\n")) == "mine.py:2: invalid syntax"


def test_a_failed_import_in_a_file_is_reported_with_its_line() -> None:
    text = problem(write("import os\nimport nothing_of_this_name\n"))
    assert text == "mine.py:2: ModuleNotFoundError: No module named 'nothing_of_this_name'"


def test_an_exception_in_a_file_is_reported_with_the_line_of_the_file() -> None:
    text = """
        import json

        def read():
            return json.loads("{\\n")

        settings = read()
        """
    assert problem(write(text)).startswith("mine.py:4: JSONDecodeError: Expecting property name")


def test_a_file_that_calls_exit_is_reported() -> None:
    assert problem(write("import sys\nsys.exit('no')\n")) == "mine.py:2: SystemExit: no"


def test_a_function_with_the_wrong_parameters_is_reported() -> None:
    text = "from longshore.framework import filter_plugin\n@filter_plugin\ndef f(pod): ...\n"
    said = "f must take two arguments: a pod, and a node or nodes"
    assert problem(write(text)) == f"mine.py:2: TypeError: {said}"


def test_a_file_without_a_plugin_is_refused() -> None:
    assert problem(write("class Helper: ...\n")).startswith(
        "mine.py: the file has no plugin: a plugin is a class with"
    )


def test_two_plugins_with_the_same_name_are_refused() -> None:
    write(SCORE, "a.py")
    write("import os\nimport sys" + dedent(SCORE), "b.py")
    assert problem("a.py", "b.py") == "b.py:5: a.py:3 has a plugin FastDisks too: rename one of them"


def test_a_class_without_a_name_is_refused() -> None:
    text = problem(write("class Mine:\n    def permit(self, state, pod, node): ...\n"))
    assert text.startswith('mine.py:1: Mine has no name: give it one, as in name = "Mine"')


def test_a_plugin_with_the_name_of_a_default_plugin_is_refused() -> None:
    text = problem(write(CLASS.replace('"Licenses"', '"NodeName"')))
    assert text == "mine.py:1: NodeName is the name of a default plugin: choose another name"


def test_a_plugin_can_have_the_name_of_a_default_plugin_that_is_missing_here() -> None:
    assert "GangScheduling" in load_plugins([write(CLASS.replace('"Licenses"', '"GangScheduling"'))])


def test_an_invalid_weight_of_a_plugin_is_refused() -> None:
    text = problem(write(CLASS.replace('= "Licenses"', '= "Licenses"; weight = 0')))
    assert text == "mine.py:1: the weight of Licenses must be an integer of at least 1, not 0"


def test_a_constructor_with_other_required_arguments_is_refused() -> None:
    text = CLASS + "    def __init__(self, size): ...\n"
    said = problem(write(text))
    assert said.startswith("mine.py:1: Licenses cannot be made: its constructor requires 'size'")


def test_an_exception_in_a_constructor_is_reported() -> None:
    text = CLASS + "    def __init__(self, args): self.size = args['size']\n"
    plugin = load_plugins([write(text)])["Licenses"]
    with pytest.raises(UserError) as caught:
        plugin({}, HANDLE)
    assert str(caught.value) == "mine.py:1: Licenses cannot be made: KeyError: 'size'"


def test_a_source_that_is_neither_file_nor_attribute_is_refused() -> None:
    said = "is not a plugin: specify the path of a .py file, or module:attribute"
    assert problem("some-thing") == f"'some-thing' {said}"


def test_a_missing_module_is_reported() -> None:
    said = problem("no_such_module:Mine")
    assert said == "no_such_module:Mine: ModuleNotFoundError: No module named 'no_such_module'"


def test_a_missing_attribute_is_reported() -> None:
    assert problem("json:Mine") == "json:Mine: json has no Mine"


def test_an_attribute_that_is_not_a_plugin_is_refused() -> None:
    assert "JSONDecoder is not a plugin: a plugin is a class with a name" in problem("json:JSONDecoder")
