import { readFileSync } from 'node:fs';
import test, { type ExecutionContext } from 'ava';
import { renderMermaid } from '../../../../cli/commands/graph/render-mermaid.ts';
import { brokenNode, drawingOf, HOSTILE_NAMES } from './drawing-fixture.ts';
import { nodeFixture } from './node-fixture.ts';

// The golden text was drawn by mermaid 11 in a browser; so were hostile names and 200 Pods. The grammar below is the part
// of Mermaid's that we write, and no more.

const LABEL = String.raw`"(?:[\p{L}\p{N} .,:/=+·…_-]|#\d+;|<br/>)*"`;
const NAME = 'n\\d+|g\\d+pods';
const LINES = [
  String.raw`  subgraph g\d+\[${LABEL}\]`,
  '    direction LR',
  '  end',
  String.raw`  style g\d+ [a-z0-9:#, -]+`,
  String.raw`    (?:${NAME})\[${LABEL}\]:::[a-z]+`,
  `  (?:${NAME}) --- (?:${NAME})`,
  String.raw`  (?:${NAME}) ==>(?:\|${LABEL}\|)? (?:${NAME})`,
  String.raw`  linkStyle \d+(?:,\d+)* [a-z0-9:#, -]+`,
  '  classDef [a-z]+ [a-z0-9:#, -]+',
].map((line) => new RegExp(`^${line}$`, 'u'));

function isMermaid(t: ExecutionContext, text: string): void {
  const [fence, title, end, kind, ...lines] = text.trimEnd().split('\n');
  t.deepEqual([fence, end, kind], ['---', '---', 'flowchart LR']);
  t.notThrows(() => JSON.parse(title?.replace(/^title: /, '') ?? ''));
  t.deepEqual(
    lines.filter((line) => !LINES.some((known) => known.test(line))),
    [],
  );
  const made = new Set(lines.flatMap((line) => /^ {4}(\w+)\[/.exec(line)?.[1] ?? []));
  const used = lines.flatMap((line) => /^ {2}(\w+) (?:---|==>)(?:\|.*\|)? (\w+)$/.exec(line)?.slice(1) ?? []);
  t.deepEqual(
    used.filter((name) => !made.has(name)),
    [],
    'every edge joins boxes that there are',
  );
  const edges = lines.filter((line) => /^ {2}\w+ (?:---|==>)/.test(line)).length;
  const styled = lines.flatMap((line) => /^ {2}linkStyle ([\d,]+)/.exec(line)?.[1]?.split(',') ?? []);
  t.deepEqual(
    styled.filter((index) => Number(index) >= edges),
    [],
    'every style is of an edge that there is',
  );
  t.is(lines.filter((line) => line.startsWith('  subgraph')).length, lines.filter((line) => line === '  end').length);
}

test('renderMermaid: draws a node with a broken path', (t) => {
  const graph = drawingOf(brokenNode());
  const text = renderMermaid(graph, graph.paths.slice(0, 2));
  isMermaid(t, text);
  t.is(text, readFileSync(new URL('broken-node.mmd', import.meta.url), 'utf8'));
});

test('renderMermaid: names stay names', (t) => {
  const facts = nodeFixture({
    enis: 1,
    podsPerEni: HOSTILE_NAMES.length,
    podName: (index) => HOSTILE_NAMES[index] ?? '',
  });
  const graph = drawingOf(facts);
  isMermaid(t, renderMermaid({ ...graph, title: HOSTILE_NAMES.join(' ') }, graph.paths));
});

test('renderMermaid: one box stands for the Pods of a full node, and the one that is asked about is drawn', (t) => {
  const graph = drawingOf(nodeFixture({ enis: 8, podsPerEni: 25 }));
  const text = renderMermaid(graph, graph.paths.slice(0, 2));
  isMermaid(t, text);
  t.is(text.match(/:::pod$/gm)?.length, 9);
  t.regex(text, /default\/web-0<br\/>/);
  t.regex(text, /g1pods\["24 Pods"\]/);
});

test('renderMermaid: broken Pods of a full node are drawn each', (t) => {
  const facts = nodeFixture({ enis: 8, podsPerEni: 25 });
  const rules = facts.host.rules.filter(({ priority, table }) => priority !== 1536 || table !== 4003);
  const text = renderMermaid(drawingOf({ ...facts, host: { ...facts.host, rules } }), []);
  t.is(text.match(/default\/web-\d+<br\/>[^\n]*:::broken$/gm)?.length, 25);
});
