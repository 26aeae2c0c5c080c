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
  const prog = { id: 0, tag: '' };
  t.deepEqual(shown, [
    {
      ...{ dev: 'eth1', parent: 'ingress', protocol: 'all', pref: 5, kind: 'bpf' },
      options: { handle: '0x1', bpf_name: 'tke_fast', 'direct-action': true, prog },
    },
  ]);
});

test('renderFiltersJson: a block that links share is no link', (t) => {
  const shared = { ...filterNamed('x'), ifindex: 0xffffffff, parent: 22 };
  const traffic = { qdiscs: known([]), policies: known([]), filters: known([shared]) };
  t.is(renderFiltersJson({ traffic }, NAMES, VIEW)?.[0]?.['block'], 22);
  t.regex(scriptOf(known([shared])), /^# left out: filter block 22 /m);
});

test('renderIpScript: the flowtable is a document of its own, which may fail', (t) => {
  const flowtable = 'table inet tke_eni_flows {\n\tflowtable ft {\n\t\tdevices = { a, b }\n\t}\n}\n';
  const facts = { ...NOTHING, unfiltered: NOTHING };
  const nft = 'table inet tke_eni {\n}\n';
  const options = { topics: [], hasStandIns: false, isUnfiltered: false, nft, flowtable };
  const script = renderIpScript(facts, NAMES, options);
  t.true(script.indexOf('table inet tke_eni {') < script.indexOf("END_OF_NFT\nnft -f - <<'END_OF_FLOWTABLE' ||"));
  t.regex(script, /^add flowtable inet tke_eni_flows ft \{ hook ingress priority 0; devices = \{ "a", "b" \}; \}$/m);
  t.is(script.match(/devices = /g)?.length, 1);
});
