import test from 'ava';
import { buildVerdicts, renderVerdicts } from '../../../../cli/commands/diff/build-verdicts.ts';
import {
  differencesDocument,
  renderDifferences,
  renderScript,
} from '../../../../cli/commands/diff/render-differences.ts';
import { renderRepair } from '../../../../cli/commands/repair/render-repair.ts';
import type { Repair } from '../../../../cli/commands/repair/repair.ts';
import { compareNode, type NodeSnapshot } from '../../../../inspection/judge/compare-node.ts';
import type { NodeDifferences } from '../../../../inspection/judge/difference.ts';
import { healthySight } from '../../../inspection/judge/sight-fixture.ts';
import { matchesGolden } from '../../../support/golden.ts';

/** A node with something of each kind: ours on the host, ours in a Pod, foreign, and not to be judged. */
function brokenSight(): NodeSnapshot {
  const sight = healthySight();
  const [pod, ...others] = sight.pods;
  if (pod === undefined) throw new Error('the fixture has Pods');
  const rule = { unknown: [], family: 2, tos: 0, action: 1, flags: 0, priority: 100, table: 254, protocol: 3 };
  const route = { unknown: [], family: 2, tos: 0, protocol: 3, scope: 0, type: 1, flags: 0, table: 254, oif: 2 };
  return {
    ...sight,
    host: {
      ...sight.host,
      rules: sight.host.rules.filter(({ priority }) => priority !== 512),
      sysctls: new Map(sight.host.sysctls).set('net.ipv4.conf.eth5.rp_filter', '1'),
    },
    facts: {
      ...sight.facts,
      host: { ...sight.facts.host, rules: [{ ...rule, priority: 0, table: 255 }, rule], routes: [route] },
    },
    pods: [{ ...pod, observed: { ...pod.observed, neighs: [] } }, ...others],
    unread: [{ what: 'inside of Pod c999/eth0', why: 'its namespace is gone', next: 'DEL will follow' }],
  };
}

const SIGHT = brokenSight();
const FOUND: NodeDifferences = compareNode(SIGHT);
const MENDED: NodeDifferences = {
  ...FOUND,
  changes: [],
  differences: FOUND.differences.filter(({ changes }) => changes.length === 0),
};
const REPAIR: Repair = {
  isDryRun: false,
  writer: 'agent',
  changes: ['sysctl -w net.ipv4.conf.eth5.rp_filter=2', 'ip -4 rule add pref 512 lookup 3999 proto 84'],
  failed: [{ line: 'ip link set dev eth6 up', error: 'EBUSY: device or resource busy' }],
  held: ['ip route replace 10.0.5.10/32 dev eni5x10 table 3999 proto 84 scope link'],
  left: MENDED,
};

for (const width of [80, 160]) {
  const layout = { width, isColored: false };
  test(`renderDifferences: fits ${width} columns, but for lines that are to be copied`, (t) => {
    const text = renderDifferences(FOUND, 'never said', layout);
    const [table = ''] = text.split('\n\n');
    t.true(table.split('\n').every((line) => line.length <= width));
    matchesGolden(t, import.meta.url, `diff-${width}.txt`, text);
  });

  test(`renderVerdicts: fits ${width} columns`, (t) => {
    const text = renderVerdicts(buildVerdicts(SIGHT, FOUND), layout);
    t.true(text.split('\n').every((line) => line.length <= width));
    matchesGolden(t, import.meta.url, `check-${width}.txt`, text);
  });
}

test('renderRepair: says what failed, what is held, what is left and whose it is', (t) => {
  matchesGolden(t, import.meta.url, 'repair.txt', renderRepair(REPAIR, false, { width: 80, isColored: false }));
  const dry = { ...REPAIR, isDryRun: true, failed: [], held: [], left: FOUND };
  matchesGolden(t, import.meta.url, 'dry-run.txt', renderRepair(dry, false, { width: 80, isColored: false }));
});

test('renderScript: prints commands, and everything else as comments', (t) => {
  const lines = renderScript(FOUND).trimEnd().split('\n');
  t.true(
    lines.every((line) => /^(# |ip |sysctl |nft |nsenter )/.test(line)),
    lines.join('\n'),
  );
  t.is(lines.filter((line) => !line.startsWith('# ')).length, FOUND.changes.length);
  const repair = renderRepair({ ...REPAIR, isDryRun: true }, true, { width: 80, isColored: true });
  t.true(
    repair.split('\n').every((line) => line === '' || /^(# |ip |sysctl )/.test(line)),
    repair,
  );
});

test('differencesDocument: has all that is shown, and lines instead of operations', (t) => {
  const document = JSON.parse(JSON.stringify(differencesDocument(FOUND, false)));
  t.is(document.equal, false);
  t.is(document.differences.length, FOUND.differences.length);
  t.is(document.changes.length, FOUND.changes.length);
  t.deepEqual(document.unjudged, FOUND.unjudged);
  t.true(document.differences.every(({ mend }: { readonly mend: unknown }) => Array.isArray(mend)));
});
