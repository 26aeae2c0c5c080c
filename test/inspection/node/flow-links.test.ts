import test from 'ava';
import { flowLinksOf } from '../../../inspection/node/read-nft-facts.ts';

/** As nft 1.0.6 lists it on a node with Debian's kernel 6.1: `nft -j list ruleset`, without the rules. */
const CAPTURED = [
  { table: { family: 'inet', name: 'tke_eni_flows', handle: 4 } },
  {
    flowtable: {
      ...{ family: 'inet', name: 'ft', table: 'tke_eni_flows', handle: 2, hook: 'ingress', prio: 0 },
      dev: ['eni6923d320adb', 'eni7a66f3416cd', 'eth0', 'eth5', 'eth6'],
    },
  },
  {
    chain: {
      ...{ family: 'inet', table: 'tke_eni_flows', name: 'forward', handle: 1, type: 'filter', hook: 'forward' },
      ...{ prio: 10, policy: 'accept' },
    },
  },
];

const table = (family: string, name: string, dev?: unknown) => [
  ...CAPTURED.slice(0, 1),
  {
    flowtable: {
      family,
      name: 'ft',
      table: name,
      handle: 2,
      hook: 'ingress',
      prio: 0,
      ...(dev === undefined ? {} : { dev }),
    },
  },
];

const CASES = {
  'of a node with two Pods': [CAPTURED, ['eni6923d320adb', 'eni7a66f3416cd', 'eth0', 'eth5', 'eth6']],
  'one link is a text': [table('inet', 'tke_eni_flows', 'eth0'), ['eth0']],
  'no link': [table('inet', 'tke_eni_flows'), []],
  'a table of others': [table('inet', 'flows', ['eth0']), undefined],
  'another family': [table('ip', 'tke_eni_flows', ['eth0']), undefined],
  'our table without a flowtable': [CAPTURED.slice(0, 1), undefined],
  'no tables': [[], undefined],
} as const;

for (const [name, [objects, links]] of Object.entries(CASES)) {
  test(`flowLinksOf: ${name}`, (t) => {
    t.deepEqual(flowLinksOf(objects), links);
  });
}
