import test from 'ava';
import { openIpNames } from '../../../../cli/commands/dump/open-ip-names.ts';
import { renderFiltersJson } from '../../../../cli/commands/dump/render-filters.ts';
import { renderIpScript } from '../../../../cli/commands/dump/render-ip-script.ts';
import { known, unknown } from '../../../../inspection/node/known.ts';
import type { TrafficFacts } from '../../../../inspection/node/node-facts.ts';
import { ByteWriter } from '../../../../netlink/byte-writer.ts';
import { BPF_FILTER, TRAFFIC_FILTER } from '../../../../netlink/traffic-filter-message.ts';
import { filterMessageOf } from '../../../../netlink/traffic-filter-request.ts';

const NAMES = openIpNames('/nonexistent', new Map([[7, 'eth1']]));
const NOTHING = { links: [], addresses: [], routes: [], rules: [], neighs: [] };
const VIEW = { isDetailed: false, isOneTable: false };

/** A filter as the kernel lists it. */
function filterNamed(name: string) {
  const place = { ifindex: 7, direction: 'ingress', priority: 5, handle: 1 } as const;
  const writer = new ByteWriter(4096);
  BPF_FILTER.write(writer, filterMessageOf({ ...place, program: { fd: 3, name } }));
  return TRAFFIC_FILTER.decode(writer.written());
}

function scriptOf(filters: TrafficFacts['filters']): string {
  const facts = { ...NOTHING, unfiltered: NOTHING };
  return renderIpScript(facts, NAMES, { topics: [], hasStandIns: false, isUnfiltered: false, filters });
}

test('renderFilterLines: a program’s name cannot become a line of the script', (t) => {
  const lines = scriptOf(known([filterNamed('a\nreboot'), filterNamed('\u001b[2J')])).split('\n');
  t.is(lines.filter((line) => line.includes('filter dev eth1 ingress pref 5 bpf')).length, 2);
  t.deepEqual(
    lines.filter((line) => line !== '' && !line.startsWith('#')),
    ['set -e'],
  );
  t.false(lines.join('').includes('\u001b'));
});

test('renderFilterLines: says why filters are not shown', (t) => {
  const filters = unknown('traffic filters can be read by root only', 'run as root');
  t.regex(scriptOf(filters), /^# traffic filters are left out: traffic filters can be read by root only$/m);
});

test('renderFiltersJson: is null when filters cannot be read, and leaves out the chain that the kernel lists beside', (t) => {
  const { options: _none, ...chain } = filterNamed('x');
  const traffic = { qdiscs: known([]), policies: known([]) };
  const filters = known([chain, filterNamed('tke_fast')]);
  t.is(renderFiltersJson({ traffic: { ...traffic, filters: unknown('no', 'try') } }, NAMES, VIEW), null);
  const shown = renderFiltersJson({ traffic: { ...traffic, filters } }, NAMES, VIEW);
  t.deepEqual(shown, [
    {
      ...{ dev: 'eth1', parent: 'ingress', pref: 5, kind: 'bpf', handle: '0x1', bpf_name: 'tke_fast' },
      ...{ 'direct-action': true, prog: { id: 0, tag: '' } },
    },
  ]);
});
