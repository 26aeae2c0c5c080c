import test from 'ava';
import { addressesOfEnis, buildBlocks } from '../../../../cli/commands/pool/build-blocks.ts';
import { buildJournalPool } from '../../../../cli/commands/pool/build-journal-pool.ts';
import type { AddressUse, AddressView } from '../../../../cli/commands/pool/pool-view.ts';
import { decideReadiness } from '../../../../cli/commands/status/decide-readiness.ts';
import { JOURNAL_SAMPLE, LEASE_SAMPLE } from '../../agent/samples.ts';

const CIDR = '172.20.0.0/29';
const address = (last: number, use: AddressUse, cidr = CIDR): AddressView => ({
  ...{ ip: `172.20.0.${last}`, family: 4, eniId: `pod-cidr:${cidr}`, use, assignmentId: '' },
});
const ofEni: AddressView = { ...address(9, 'free'), ip: '10.0.0.9', eniId: 'eni-1' };

test('buildBlocks: counts what is in use, free and cooling; a former block has none free', (t) => {
  const former = '172.20.9.0/29';
  const addresses = [
    address(2, 'in-use'),
    address(3, 'cooling'),
    address(4, 'releasing'),
    address(12, 'in-use', former),
    ofEni,
  ];
  t.deepEqual(buildBlocks(addresses, [CIDR, 'fd00::/64']), [
    { cidr: CIDR, isCurrent: true, total: 5, inUse: 1, cooling: 1, held: 1, free: 2 },
    { cidr: former, isCurrent: false, total: 5, inUse: 1, cooling: 0, held: 0, free: 0 },
  ]);
  t.deepEqual(addressesOfEnis(addresses), [ofEni]);
  t.deepEqual(buildBlocks([ofEni], []), []);
});

test('buildJournalPool: an address of a block lacks no supply', (t) => {
  const eniId = `pod-cidr:${CIDR}`;
  const addresses = [{ ip: '172.20.0.2', family: 4, eniId, assignmentId: '' }] as const;
  const lease = { ...LEASE_SAMPLE, eniId, addresses, block: { cidr: CIDR, wiring: 'bridge' } } as const;
  const view = buildJournalPool({ ...JOURNAL_SAMPLE, leases: [lease] }, [], 0, [CIDR]);
  t.like(
    view.addresses.find(({ ip }) => ip === '172.20.0.2'),
    { use: 'in-use', isUnlisted: undefined },
  );
  t.like(view.blocks?.[0], { cidr: CIDR, inUse: 1, free: 4 });
});

test('decideReadiness: where Pods are on the bridge by default, the block decides', (t) => {
  const bridge = {
    ...{ defaultNetwork: 'tke-bridge', podCidrs: [CIDR], formerCidrs: [], addresses: 5, inUse: 0, problem: '' },
    ...{ masquerade: true, masqueradeWhy: '', wiring: 'bridge' },
  };
  const ready = (used: number, cidrs: readonly string[] = [CIDR]): string | undefined => {
    const addresses = Array.from({ length: used }, (_, index) => address(2 + index, 'in-use'));
    const blocks = buildBlocks(addresses, cidrs);
    const pool = { source: 'agent', nodeName: 'n', addresses, enis: [], blocks, supplyProblem: '' } as const;
    return decideReadiness({ summary: { status: undefined, bridge }, pool })?.text;
  };
  t.is(ready(4), 'yes');
  t.is(ready(5), `full: each of the 5 addresses of podCIDR ${CIDR} is in use`);
  t.is(ready(0, []), 'no: the node has no podCIDR with addresses for Pods');
});
