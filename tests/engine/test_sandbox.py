"""Templates of strangers: what real ones use works, bombs fail at once and clearly."""

import re

import pytest

from engine import sandbox
from engine.chat import ChatTemplate, Marker
from engine.model_config import ModelError
from engine.sandbox import TemplateError

CHAT = [{"role": "user", "content": "e2e4"}, {"role": "assistant", "content": "e7e5"}]
DOUBLE = "{% set ns = namespace(a='x') %}{% for i in range(60) %}{% set ns.a = BODY %}{% endfor %}"


def render(source: str) -> str:
    template = ChatTemplate({"default": source}, {}, Marker(["<s>"]), "MODEL")
    return template.render(CHAT).text


@pytest.mark.parametrize(
    "source",
    [
        "{% for i in range(100001) %}x{% endfor %}",
        "{% for i in range(90000) %}{% for j in range(90000) %}{% endfor %}{% endfor %}",
        "{{ 'x' * 10**9 }}",
        "{{ [1] * 10**9 }}",
        "{{ 2 ** (10 ** 9) }}",
        "{{ 10 ** 9999 * 10 ** 9999 * 10 ** 9999 }}",
        "{{ 'x'|center(10**9) }}",
        "{{ 'x'.ljust(10**9) }}",
        "{{ '%1000000000d' % 1 }}",
        "{{ '%*d' % (10**9, 1) }}",
        "{{ '%1000000000d'|format(1) }}",
        "{{ '{:1000000000}'.format(1) }}",
        "{{ '{:{}}'.format(1, 10**9) }}",
        "{{ ('x' * 10000).replace('', 'y' * 10000) }}",
        "{{ ('x' * 10000)|replace('x', 'y' * 10000) }}",
        "{{ ('x' * 100000).join(range(1000)|list) }}",
        "{{ range(1000)|join('x' * 100000) }}",
        "{{ ('\n' * 100000)|indent(1000) }}",
        "{{ [1]|batch(10**9, 'x')|list }}",
        "{{ range(90000)|map('center', 9999)|join }}",
        DOUBLE.replace("BODY", "ns.a ~ ns.a") + "{{ ns.a|length }}",
        DOUBLE.replace("BODY", "ns.a + ns.a") + "{{ ns.a|length }}",
        DOUBLE.replace("BODY", "[ns.a, ns.a]") + "{{ ns.a }}",
        DOUBLE.replace("BODY", "[ns.a, ns.a]") + "{{ ns.a|tojson }}",
        DOUBLE.replace("BODY", "[ns.a, ns.a]|string"),
        "{% macro f(n) %}{{ f(n) }}{{ f(n) }}{% endmacro %}{{ f(1) }}",
        "{% macro f(n) %}{% if n %}{{ f(n - 1) ~ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}",
        "{% set x = 'y' * 1000000 %}{% for i in range(90000) %}{{ x }}{% endfor %}",
        "{% set x %}{% for i in range(90000) %}{{ 'y' * 100000 }}{% endfor %}{% endset %}",
        "{% for a in [[1]] recursive %}{{ loop([[1], [1]]) }}{{ loop([[1]]) }}{% endfor %}",
    ],
)
def test_bombs_are_refused(source: str) -> None:
    with pytest.raises((TemplateError, ModelError)) as caught:
        render(source)
    assert "\n" not in str(caught.value)
    assert "MODEL" in str(caught.value)


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ messages.__class__.__base__.__subclasses__() }}",
        "{{ messages.append(1) }}",
        "{{ messages[0].update(a=1) }}",
        "{{ raise_exception.__globals__.os }}",
        "{{ cycler.__init__.__globals__ }}",
        "{{ '{0.__class__.__init__.__globals__}'.format(messages) }}",
        "{% set ns = namespace() %}{% set ns._x = 1 %}",
        "{% include 'secret' %}",
        "{% import 'os' as os %}",
        "{{ nothing.at.all }}",
    ],
)
def test_escapes_are_refused(source: str) -> None:
    with pytest.raises(TemplateError, match="MODEL"):
        render(source)


@pytest.mark.parametrize("source", ["{% for %}", "{{ 'x' ", "{% endfor %}", "{{" + "(" * 9000])
def test_wrong_templates_are_refused_when_loaded(source: str) -> None:
    with pytest.raises(ModelError, match="chat template of MODEL") as caught:
        ChatTemplate({"default": source}, {}, Marker([]), "MODEL")
    assert "\n" not in str(caught.value)


def test_a_template_of_many_characters_is_refused() -> None:
    with pytest.raises(ModelError, match="more than 262144 characters"):
        ChatTemplate({"default": "x" * (sandbox.MAX_SOURCE + 1)}, {}, Marker([]), "MODEL")


def test_a_slow_template_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "MAX_SECONDS", 0.0)
    with pytest.raises(TemplateError, match=re.escape("more than 0 seconds")):
        render(
            "{% for i in range(900) %}{{ i }}{% for j in range(9) %}{{ j }}{% endfor %}{% endfor %}"
        )


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("{% for m in messages %}{{ loop.index }}{{ loop.last }}{% endfor %}", "1False2True"),
        ("{% for m in messages[::-1] %}{{ m.role }},{% endfor %}", "assistant,user,"),
        ("{% for k, v in messages[0].items() %}{{ k ~ '=' ~ v }};{% endfor %}",
         "role=user;content=e2e4;"),
        ("{{ messages|map(attribute='content')|join('-') }}", "e2e4-e7e5"),
        ("{{ messages|selectattr('role', 'equalto', 'user')|list|length }}", "1"),
        ("{{ messages[0].content|join }}{{ 'ab'|join('-') }}", "e2e4a-b"),
        ("{% for m in messages %}{% if loop.first %}{% continue %}{% endif %}{{ m.role }}"
         "{% break %}{% endfor %}", "assistant"),
        ("{% generation %}{{ messages[0].role }}{% endgeneration %}", "user"),
        ("{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}"
         "{% endfor %}{{ ns.n }}", "2"),
        ("{{ {'가': [1, '<b>']}|tojson }}", '{"가": [1, "<b>"]}'),
        ("{{ {'가': 1}|tojson(ensure_ascii=True) }}", '{"\\uac00": 1}'),
        ("{{ [1, 2]|tojson(indent=2) }}", "[\n  1,\n  2\n]"),
        ("{{ '%s-%05.1f' % ('a', 2.5) }}{{ '{:>4}'.format('b') }}", "a-002.5   b"),
        ("{{ 'x' * 3 + 'y' }}{{ 7 % 4 }}{{ 2 ** 10 }}", "xxxy31024"),
        ("{{ 'a</t>b'.split('</t>')[-1].strip() }}", "b"),
        ("{% macro f(n) %}{{ n }}{% if n %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}",
         "3210"),
        ("{% for a in [[1, [2]]] recursive %}{% if a is iterable %}{{ loop(a) }}{% else %}{{ a }}"
         "{% endif %}{% endfor %}", "12"),
        ("{{ dict(a=1).a }}{{ strftime_now('%Y')|length }}", "14"),
        ("  {% if true %}\n  x\n  {% endif %}\ny", "  x\ny"),
        ("{{ 'ab\ncd'|indent(2) }}", "ab\n  cd"),
        ("{{ messages[0].missing is defined }}{{ messages[0].missing }}", "False"),
    ],
)  # fmt: skip
def test_what_templates_use_works(source: str, text: str) -> None:
    assert render(source) == text
