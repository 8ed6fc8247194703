"""Small templates for the corners of Jinja2 that chat templates use."""

VARIABLES = {
    "s": "  Hello World  ", "t": "a,b,,c", "e": "", "u": "naïve 東京 🐘", "w": "\x1c edge \x1f", "n": 7, "z": 0, "f": 1.5,
    "one": 1.0, "big": 1e16, "tiny": 1e-7, "no": None, "yes": True, "false": False,
    "list": [3, 1, 2], "mixed": [1, "two", None, True, 2.5, ["x"], {"k": "v"}], "empty": [],
    "map": {"b": 1, "a": {"x": [1, 2]}, "items": "shadow", "ü": "<&>'\""},
    "people": [{"name": "Bo", "age": 3, "ok": True}, {"name": "Al", "age": 5}, {"name": "Cy", "age": 3, "ok": False}],
    "tool": {"type": "function", "function": {"name": "f", "parameters": {"properties": {}, "required": []}}},
    "lines": "one\ntwo\r\nthree\n",
}

EXPRESSIONS = [
    # printing values
    "{{ no }}|{{ yes }}|{{ false }}|{{ f }}|{{ one }}|{{ n }}|{{ missing }}|{{ big }}|{{ tiny }}",
    "{{ list }}|{{ mixed }}|{{ map }}|{{ empty }}|{{ {} }}",
    "{{ 'x' ~ no ~ yes ~ n ~ one ~ list }}",
    "{{ no | string }}|{{ yes | string }}|{{ list | string }}|{{ one | string }}",
    "{{ (1, 2) }}|{{ [1, 2] + [3] }}|{{ 'a' + 'b' }}|{{ 'ab' * 3 }}|{{ [0] * 2 }}",
    "{{ 7 / 2 }}|{{ 7 // 2 }}|{{ 7 % 3 }}|{{ -7 // 2 }}|{{ -7 % 3 }}|{{ 2 ** 5 }}|{{ 6 / 2 }}|{{ 1 + 0.5 }}",
    # tojson
    "{{ map | tojson }}", "{{ map | tojson(indent=2) }}", "{{ mixed | tojson(indent=4) }}", "{{ tool | tojson(indent=4) }}",
    "{{ map | tojson(ensure_ascii=True) }}", "{{ map | tojson(sort_keys=True) }}", "{{ u | tojson }}|{{ u | tojson(true) }}",
    "{{ map | tojson(separators=(',', ':')) }}", "{{ map | tojson(indent=2, separators=(',', ' = ')) }}",
    "{{ [1.0, 1e16, 1e-7, 0.1, 100000.0, 123456789.125, -0.0] | tojson }}", "{{ empty | tojson(indent=2) }}{{ {} | tojson(indent=2) }}",
    "{{ 'a\"b\\\\c/\\t\\x01' | tojson }}", "{{ missing | tojson }}", "{{ {1: 2, none: 3, true: 4} | tojson }}", "{{ map | tojson(indent='--') }}",
    "{{ big | tojson }}|{{ tiny | tojson }}|{{ one | tojson }}|{{ no | tojson }}|{{ 'x' | tojson }}", "{{ (1, 'a') | tojson }}",
    # filters
    "[{{ s | trim }}]|[{{ w | trim }}]|[{{ 'xxaxx' | trim('x') }}]", "{{ s | length }}|{{ list | length }}|{{ map | length }}|{{ u | length }}|{{ u | count }}",
    "{{ list | join('-') }}|{{ people | map(attribute='name') | join(', ') }}|{{ mixed | join('/') }}|{{ list | join }}",
    "{{ people | selectattr('ok') | map(attribute='name') | list }}", "{{ people | rejectattr('ok') | map(attribute='name') | list }}",
    "{{ people | selectattr('age', 'equalto', 3) | map(attribute='name') | list | tojson }}", "{{ people | selectattr('ok', 'defined') | list | length }}",
    "{{ people | rejectattr('age', '==', 3) | list | length }}", "{{ list | map('string') | join('+') }}", "{{ mixed | select('string') | list }}|{{ mixed | reject('none') | list | length }}",
    "{{ missing | default('d') }}|{{ e | default('d') }}|{{ e | default('d', true) }}|{{ no | default('d') }}|{{ missing | d }}|{{ e | default('d', boolean=true) }}",
    "{{ map | items | list | length }}|{% for k, v in map | items %}{{ k }}={{ v }};{% endfor %}", "{% for k, v in map | dictsort %}{{ k }};{% endfor %}",
    "{{ s | upper }}|{{ s | lower }}|{{ 'hello world' | title }}|{{ 'hELLO' | capitalize }}|{{ \"it's o'neil\" | title }}", "{{ list | sort }}|{{ list | sort(reverse=true) }}|{{ list | reverse | list }}|{{ 'abc' | reverse }}",
    "{{ list | first }}|{{ list | last }}|{{ e | first }}|{{ list | min }}|{{ list | max }}|{{ list | sum }}", "{{ [1, 2, 1, 3, 2] | unique | list }}|{{ 'a\nb\n\nc' | indent(2) }}|{{ 'a\nb' | indent(2, true) }}|{{ 'a\nb' | indent }}",
    "{{ 'aXbXc' | replace('X', '-') }}|{{ 'aXbXc' | replace('X', '-', 1) }}|{{ '42' | int + 1 }}|{{ 'x' | int }}|{{ '1.5' | float }}|{{ 3.7 | int }}|{{ 2.567 | round(2) }}|{{ 2.5 | round }}|{{ -3 | abs }}",
    "{{ s | safe }}|{{ '<b>' | e }}|{{ '<b>' | escape }}", "{{ 'a b c' | list | length }}|{{ map | list }}|{{ e | list }}", "{{ [[1, 2], [3]] | sum(start=[]) }}", "{{ 'a-b' | upper | replace('-', '_') | lower }}",
    "{% filter upper %}abc {{ n }}{% endfilter %}", "{{ people | groupby('age') | map('first') | list }}", "{{ list | batch(2) | list }}|{{ 'x%sy%d' | format('A', 3) }}", "{{ people | sort(attribute='name') | map(attribute='name') | join }}", "{{ people | map(attribute='ok', default='?') | join(',') }}",
    # tests
    "{{ s is string }}{{ n is string }}{{ list is sequence }}{{ s is sequence }}{{ map is sequence }}{{ n is sequence }}{{ no is sequence }}", "{{ s is iterable }}{{ list is iterable }}{{ map is iterable }}{{ n is iterable }}{{ no is iterable }}{{ missing is iterable }}",
    "{{ map is mapping }}{{ list is mapping }}{{ s is mapping }}", "{{ n is number }}{{ yes is number }}{{ f is number }}{{ s is number }}{{ n is integer }}{{ yes is integer }}{{ f is float }}{{ n is float }}", "{{ yes is boolean }}{{ n is boolean }}{{ yes is true }}{{ false is false }}{{ n is true }}{{ 1 is true }}", "{{ no is none }}{{ missing is none }}{{ no is defined }}{{ missing is defined }}{{ missing is undefined }}{{ map.zzz is defined }}",
    "{{ 3 is odd }}{{ 4 is even }}{{ 6 is divisibleby 3 }}{{ 'a' is in 'abc' }}{{ 1 is eq 1 }}{{ 'A' is upper }}{{ 'a' is lower }}", "{{ 'a' in 'abc' }}{{ 'b' in map }}{{ 3 in list }}{{ 'z' not in t }}{{ not yes }}{{ 'x' in e }}{{ '' in s }}",
    # methods
    "[{{ s.strip() }}][{{ s.lstrip() }}][{{ s.rstrip() }}][{{ w.strip() }}][{{ 'xxaxx'.strip('x') }}][{{ '\n\na\n'.lstrip('\n') }}]", "{{ t.split(',') }}|{{ s.split() }}|{{ t.split(',', 1) }}|{{ t.split(',')[-1] }}|{{ t.rsplit(',', 1) }}|{{ e.split() }}|{{ e.split(',') }}|{{ ' a  b '.split(' ') }}|{{ w.split() }}|{{ t.split(',', maxsplit=2) }}|{{ ' a b  c '.split(none, 1) }}|{{ ' a b  c '.rsplit(none, 1) }}",
    "{{ lines.splitlines() }}|{{ 'a\x0bb\x1cc\u2028d'.splitlines() }}|{{ lines.splitlines(true) }}", "{{ 'abc'.startswith('ab') }}{{ 'abc'.endswith('bc') }}{{ 'abc'.startswith(('x', 'a')) }}{{ 'abc'.endswith(('x', 'y')) }}", "{{ 'abc'.upper() }}{{ 'ABC'.lower() }}{{ 'hello world'.title() }}{{ 'hELLO'.capitalize() }}", "{{ 'banana'.replace('an', 'AN') }}|{{ 'banana'.replace('a', 'o', 2) }}|{{ 'banana'.count('an') }}|{{ 'banana'.find('n') }}|{{ 'banana'.rfind('n') }}|{{ 'banana'.find('z') }}|{{ u.find('京') }}",
    "{{ '-'.join(['a', 'b']) }}|{{ 'k=v=w'.partition('=') }}|{{ 'k=v=w'.rpartition('=') }}|{{ 'prefix'.removeprefix('pre') }}|{{ 'prefix'.removesuffix('fix') }}", "{{ '12'.isdigit() }}{{ 'a1'.isalnum() }}{{ 'ab'.isalpha() }}{{ ' '.isspace() }}{{ ''.isspace() }}{{ 'aB'.islower() }}{{ 'AB'.isupper() }}",
    "{% for k, v in map.items() %}{{ k }}={{ v }};{% endfor %}|{% for k in map.keys() %}{{ k }},{% endfor %}|{% for v in map.values() %}{{ v }},{% endfor %}", "{{ map.get('b') }}|{{ map.get('zz') }}|{{ map.get('zz', 'd') }}|{{ map['b'] }}|{{ map['zz'] }}|{{ map.a.x[1] }}|{{ map['items'] }}", "{{ 'x {} {}'.format(1, 'y') }}|{{ '{a}'.format(a=2) }}", "{{ list.index(1) }}", "{{ list.append(4) }}", "{{ list.count(1) }}|{{ 'a-b'.split('-', 0) }}",
    # indexing and slices
    "{{ list[0] }}{{ list[-1] }}{{ list[1:] }}{{ list[:-1] }}{{ list[::-1] }}{{ list[::2] }}{{ list[5:] }}{{ list[-2:] }}{{ list[-1:0:-1] }}", "{{ s[2:7] }}|{{ u[0] }}|{{ u[-1] }}|{{ u[::-1] }}|{{ u[6:8] }}|{{ 'abc'[1] }}|{{ list[9] }}", "{{ missing.x }}", "{{ no.x }}|", "{{ n.x }}|", "{{ map.zz.x }}", "{{ list[0:2][1] }}|{{ (list + [9])[-1] }}",
    # conditions
    "{{ 'a' if yes }}|{{ 'a' if false }}|{{ 'a' if false else 'b' }}|{{ ('x' if false) is defined }}", "{{ no or 'd' }}|{{ e or 'd' }}|{{ yes and 'x' }}|{{ list and 'l' }}|{{ empty or 'E' }}|{{ z or 'Z' }}|{{ missing or 'M' }}", "{{ 1 < 2 < 3 }}|{{ 'a' < 'b' }}|{{ 1 == 1.0 }}|{{ '1' == 1 }}|{{ [1] == [1] }}|{{ true == 1 }}|{{ no == none }}", "{% if no %}a{% elif e %}b{% elif empty %}c{% elif map %}d{% else %}e{% endif %}", "{% if missing %}a{% else %}b{% endif %}{% if not missing %}c{% endif %}",
    # loops
    "{% for x in list %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.revindex }}{{ loop.revindex0 }};{% endfor %}", "{% for x in list %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }};{% endfor %}", "{% for x in empty %}x{% else %}none{% endfor %}", "{% for x in list if x > 1 %}{{ x }}{{ loop.index }}{% endfor %}", "{% for x in list %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}|{% for x in list %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% endfor %}", "{% for x in range(3) %}{{ x }}{% endfor %}{{ range(1, 7, 2) | list }}{{ range(3, 0, -1) | list }}", "{% for a, b in [[1, 2], [3, 4]] %}{{ a + b }},{% endfor %}", "{% for p in people recursive %}{{ p.name }}{% endfor %}{% for c in 'abc' %}[{{ c }}]{% endfor %}", "{% for x in list %}{{ loop.cycle('o', 'e') }}{% endfor %}{% for x in [1, 1, 2] %}{{ loop.changed(x) }}{% endfor %}", "{% for x in missing %}a{% else %}b{% endfor %}", "{% for x in map %}{{ x }},{% endfor %}",
    # scopes
    "{% set x = 1 %}{% for i in list %}{% set x = i %}{% endfor %}{{ x }}", "{% set ns = namespace(x=1, y='a') %}{% for i in list %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}{{ ns.y }}", "{% set x %}block {{ n }}{% endset %}[{{ x }}]{% set y | upper %}abc{% endset %}{{ y }}", "{% set a, b = 1, 2 %}{{ a }}{{ b }}", "{% if yes %}{% set q = 5 %}{% endif %}{{ q }}", "{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}{{ a }}",
    "{% macro m(a, b=2) %}<{{ a }},{{ b }}>{% endmacro %}{{ m(1) }}{{ m(1, b=3) }}{{ m(a='x') }}", "{% macro m() %}[{{ caller() }}]{% endmacro %}{% call m() %}in{% endcall %}", "{% macro tree(x) %}{{ x }}{% if x > 0 %}{{ tree(x - 1) }}{% endif %}{% endmacro %}{{ tree(3) }}", "{% macro m(x) %}{{ x }}|{{ n }}{% endmacro %}{% set r = m('q') %}{{ r | trim }}", "{% set d = dict(a=1, b=2) %}{{ d.a }}{{ d | tojson }}", "{% generation %}{% set inner = 3 %}{{ inner }}{% endgeneration %}|{{ inner }}", "{% for i in list %}{% generation %}{{ loop.index }}{{ i }}{% endgeneration %}{% endfor %}",
    # white space
    "a\n  {% if yes %}\n  b\n  {% endif %}\nc\n", "a {%- if yes -%} b {%- endif -%} c", "a\n{{ n }}\nb\n\n", "  {% set x = 1 %}  \nq", "x\r\ny{% if yes %}\r\nz{% endif %}\r\n", "a{# comment #}b\n{# c #}\nd", "  {#- c -#}  x", "{%+ if yes %}a{% endif +%}\nb", "a\n    {%- for i in list %}\n    {{- i }}\n    {%- endfor %}\nb", "{% raw %}{{ x }}{% generation %}{% endraw %}", "\t{% if yes %}x{% endif %}\n\ty", "{{ 'a\\nb\\t\\x41\\u00e9\\'q' }}{{ \"d\\\"q\" }}", "{{- '\n' }}x{{ '  ' -}}   y",
    # errors
    "{{ raise_exception('no ' + 'way') }}", "{{ list.pop() }}", "{{ missing() }}", "{{ s | nosuchfilter }}", "{% if yes %}", "{{ 1 + 'a' }}", "{{ 1 / 0 }}", "{{ strftime_now is defined }}{{ raise_exception is defined }}",
    "{{ ''.__class__ }}|", "{{ cycler is defined }}{{ joiner is defined }}{% set j = joiner('; ') %}{% for x in list %}{{ j() }}{{ x }}{% endfor %}",
    "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}",
]
