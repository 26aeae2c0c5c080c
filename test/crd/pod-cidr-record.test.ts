import test from 'ava';
import fc from 'fast-check';
import { type PodCidrRecord, readPodCidrRecord, renderPodCidrRecord } from '../../crd/pod-cidr-record.ts';
import { assertLaw } from '../support/law.ts';

const RECORD: PodCidrRecord = {
  term: 3,
  clusterCidrs: ['192.168.0.0/20'],
  serviceCidr: '192.168.12.0/22',
  maskSize: 26,
  next: 7,
  taken: [0, 1, 2, 5, 9, 10],
  owners: [
    { block: 0, node: 'n0', machineID: 'ins-0000' },
    { block: 9, node: 'n9', machineID: 'metal://rack 9' },
  ],
  held: [{ block: 5, freedAt: '2026-03-01T12:00:00.000Z', node: 'n5', machineID: 'ins-5' }],
  blocks: { total: 64, reserved: 16, used: 5, held: 1, free: 42 },
  waiting: { count: 1, nodes: ['n7'] },
  stopped: '',
};

test('renderPodCidrRecord: is readable by people, and read back as it was', (t) => {
  const data = renderPodCidrRecord(RECORD);
  t.is(data['taken'], '0-2,5,9-10');
  t.is(data['next'], '7');
  t.deepEqual(readPodCidrRecord(data), RECORD);
});

/** What the release before owners wrote of the same state. */
const WITHOUT_OWNERS = {
  term: '3',
  settings: '{"clusterCIDRs":["192.168.0.0/20"],"serviceCIDR":"192.168.12.0/22","maskSize":26}',
  next: '7',
  taken: '0-2,5,9-10',
  held: '[{"block":5,"freedAt":"2026-03-01T12:00:00.000Z","node":"n5","machineID":"ins-5"}]',
  blocks: '{"total":64,"reserved":16,"used":5,"held":1,"free":42}',
  waiting: '{"count":1,"nodes":["n7"]}',
  stopped: '',
};

test('renderPodCidrRecord: a release before owners finds all that it reads as it wrote it', (t) => {
  const { owners, ...rest } = renderPodCidrRecord(RECORD);
  t.deepEqual(rest, WITHOUT_OWNERS);
  t.is(owners, '[[0,"n0","ins-0000"],[9,"n9","metal://rack 9"]]');
});

test('readPodCidrRecord: reads what a release before owners wrote', (t) => {
  t.deepEqual(readPodCidrRecord(WITHOUT_OWNERS), { ...RECORD, owners: [] });
});

test('renderPodCidrRecord: any blocks are read back', async (t) => {
  const blocks = fc.uniqueArray(fc.nat(200));
  await assertLaw(t, (inner) =>
    fc.property(blocks, (list) => {
      const taken = list.toSorted((one, other) => one - other);
      inner.deepEqual(readPodCidrRecord(renderPodCidrRecord({ ...RECORD, taken }))?.taken, taken);
    }),
  );
});

const fits = test.macro((t, node: string, machineID: string, want: { owners: number; held: number }) => {
  const blocks = Array.from({ length: 65_536 }, (_, block) => block);
  const owners = blocks.map((block) => ({ block, node, machineID }));
  const held = owners.map((owner) => ({ ...owner, freedAt: '2026-03-01T12:00:00.000Z' }));
  const data = renderPodCidrRecord({ ...RECORD, taken: blocks.filter((block) => block % 2 === 0), owners, held });
  const read = readPodCidrRecord(data);
  t.deepEqual({ owners: read?.owners.length, held: read?.held.length }, want);
  t.deepEqual(read?.held[0], held[0]);
  const bytes = Object.values(data).reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  t.true(bytes < 1_048_576, `${bytes} bytes`);
});
const USUAL = ['10.128.100.123', 'ins-a1b2c3d4'] as const;
test('renderPodCidrRecord: fits into a ConfigMap whatever is held', fits, ...USUAL, { owners: 10_517, held: 3_987 });
const LONG = ['n'.repeat(253), 'é'.repeat(500)] as const;
test('renderPodCidrRecord: fits into a ConfigMap with long names', fits, ...LONG, { owners: 323, held: 308 });

test('renderPodCidrRecord: an item that is too long takes the place of no other', (t) => {
  const [first, last] = RECORD.owners;
  const owners = [{ block: 5, node: 'n5', machineID: 'm'.repeat(1_000_000) }, first, last].filter(
    (one) => one !== undefined,
  );
  t.deepEqual(readPodCidrRecord(renderPodCidrRecord({ ...RECORD, owners }))?.owners, RECORD.owners);
});

const broken = test.macro((t, change: Readonly<Record<string, string | undefined>> | undefined) => {
  t.is(readPodCidrRecord(change === undefined ? undefined : { ...renderPodCidrRecord(RECORD), ...change }), undefined);
});
test('readPodCidrRecord: no data', broken, undefined);
test('readPodCidrRecord: blocks that are none', broken, { taken: 'all' });
test('readPodCidrRecord: a range without an end', broken, { taken: '0-' });
test('readPodCidrRecord: more blocks than any cluster has', broken, { taken: '0-999999999' });
test('readPodCidrRecord: many ranges', broken, { taken: '0-1048575,0-1048575' });
test('readPodCidrRecord: settings that are no JSON', broken, { settings: '{' });
test('readPodCidrRecord: a term that is no number', broken, { term: '-1' });

test('readPodCidrRecord: leaves out holds and owners that it cannot read', (t) => {
  const data = {
    ...renderPodCidrRecord(RECORD),
    owners: '[["5","n5","ins-5"],[6,"n6"],7,{},[8,"n8","ins-8"]]',
    held: '[{"block":"5"},7,{"block":6,"freedAt":"then"}]',
    waiting: '[]',
  };
  t.deepEqual(readPodCidrRecord(data)?.held, [{ block: 6, freedAt: 'then' }]);
  t.deepEqual(readPodCidrRecord(data)?.owners, [{ block: 8, node: 'n8', machineID: 'ins-8' }]);
  t.deepEqual(readPodCidrRecord({ ...data, owners: '{' })?.owners, []);
  t.deepEqual(readPodCidrRecord(data)?.waiting, { count: 0, nodes: [] });
});
