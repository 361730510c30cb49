"""Problems of the file as YAML, before its content is checked."""

import pytest
from tests.config.configurations import HEAD, configuration, loaded, problems

from longshore.config import InvalidConfiguration, parse


def refused(text: str) -> tuple[str, ...]:
    with pytest.raises(InvalidConfiguration) as caught:
        parse(text, source="file.yaml")
    assert "\n" not in str(caught.value)
    return caught.value.problems


@pytest.mark.parametrize("text", ["", "\n", "# nothing\n", "---\n", "---\n---\n"])
def test_an_empty_file_is_refused(text: str) -> None:
    assert refused(text) == ("the file is empty; it must have apiVersion, kind and the configuration",)


def test_a_syntax_error_is_reported_with_line_and_column() -> None:
    assert refused("a: 1\nb: [1, 2\nc: 3\n") == (
        "line 3, column 2: not YAML: expected ',' or ']', but got ':'",
    )


def test_a_tab_as_indentation_is_refused() -> None:
    (problem,) = refused("profiles:\n\t- schedulerName: a\n")
    assert problem.startswith("line 2, column 1: not YAML: ")


def test_a_control_character_is_refused() -> None:
    assert refused("a: b\nc: \x00\n") == (
        "line 2, column 4: not YAML: a character that may not be in a text file",
    )


def test_an_escape_without_a_character_is_refused() -> None:
    assert refused('a: "\\UFFFFFFFF"')[0].startswith("not YAML: ")


def test_a_second_document_is_refused() -> None:
    assert refused(HEAD + "---\na: 1\n") == ("line 4, column 1: a second document; keep one in the file",)


def test_separators_around_the_only_document_are_ignored() -> None:
    assert configuration("---\n").parallelism == 16
    assert parse(f"---\n{HEAD}", source="file.yaml").warnings == ()


def test_a_duplicate_key_is_reported_with_both_lines() -> None:
    assert problems(
        "parallelism: 4\nprofiles:\n- schedulerName: a\n  schedulerName: b\nparallelism: 5\n"
    ) == (
        "profiles[0].schedulerName: given twice, in lines 5 and 6; keep one of them",
        "parallelism: given twice, in lines 3 and 7; keep one of them",
    )


@pytest.mark.parametrize(
    ("text", "what"), [("- a", "a list"), ("5", "the number 5"), ("hello", 'the text "hello"')]
)
def test_a_document_that_is_not_a_mapping_is_refused(text: str, what: str) -> None:
    assert refused(text) == (f"must be a KubeSchedulerConfiguration, found {what}",)


@pytest.mark.parametrize("text", ["a: &x [*x]", "a: &x {b: *x}"])
def test_a_value_that_contains_itself_is_refused(text: str) -> None:
    (problem,) = refused(text)
    assert problem.endswith("refers to itself")


def test_very_deep_nesting_is_refused() -> None:
    assert refused("[" * 5000) == ("not a configuration: nested too deeply",)


@pytest.mark.parametrize("text", ["a: !ours 3", "a: !!set {b, c}", "a: !ours [1]", "a: !!binary aGk="])
def test_a_tag_is_refused(text: str) -> None:
    (problem,) = refused(text)
    assert "is not supported" in problem


def test_a_key_that_is_not_a_string_is_refused() -> None:
    assert refused("? [a, b]\n: c\n") == ("line 1, column 3: a key must be a text",)


def test_a_tag_that_contradicts_its_value_is_refused() -> None:
    assert refused("a: !!int three") == ('line 1, column 4: "three" is not a number',)


def test_anchors_and_merges_are_expanded() -> None:
    profiles = configuration(
        """
        profiles:
        - &first
          schedulerName: a
          percentageOfNodesToScore: 40
        - <<: *first
          schedulerName: b
        - <<: [{schedulerName: c}, *first]
        """
    ).profiles
    assert [(p.scheduler_name, p.percentage_of_nodes_to_score) for p in profiles] == [
        ("a", 40),
        ("b", 40),
        ("c", 40),
    ]


def test_a_merge_of_something_other_than_a_mapping_is_refused() -> None:
    assert refused("<<: 5") == ("line 1, column 5: << needs a mapping, or a list of mappings",)


def test_a_file_in_json_is_read_too() -> None:
    text = '{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}'
    assert parse(text, source="file.json") == loaded("")


@pytest.mark.parametrize(
    ("written", "number"),
    [
        ("12", 12),
        ("0x10", 16),
        ("0o17", 15),
        ("017", 15),
        ("0b101", 5),
        ("1_000", 1000),
        ("5.0", 5),
        ("1e2", 100),
    ],
)
def test_integers_are_read_in_all_notations_of_yaml(written: str, number: int) -> None:
    assert configuration(f"parallelism: {written}").parallelism == number


@pytest.mark.parametrize("written", ["1:30", "2020-01-01", "1.5", ".inf", "1e999", "'4'", "=", "yes"])
def test_a_value_that_is_not_an_integer_is_refused(written: str) -> None:
    (problem,) = problems(f"parallelism: {written}")
    assert problem.startswith("parallelism: must be a whole number of at least 1, found ")
