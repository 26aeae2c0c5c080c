import test from 'ava';
import fc from 'fast-check';
import {
  MAX_HELD_RECORDS,
  type PodCidrRecord,
  readPodCidrRecord,
  renderPodCidrRecord,
} from '../../crd/pod-cidr-record.ts';
import { assertLaw } from '../support/law.ts';

const RECORD: PodCidrRecord = {
  term: 3,
  clusterCidrs: ['192.168.0.0/20'],
  serviceCidr: '192.168.12.0/22',
  maskSize: 26,
  next: 7,
  taken: [0, 1, 2, 5, 9, 10],
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

test('renderPodCidrRecord: any blocks are read back', async (t) => {
  const blocks = fc.uniqueArray(fc.nat(200));
  await assertLaw(t, (inner) =>
    fc.property(blocks, (list) => {
      const taken = list.toSorted((one, other) => one - other);
      inner.deepEqual(readPodCidrRecord(renderPodCidrRecord({ ...RECORD, taken }))?.taken, taken);
    }),
  );
});

test('renderPodCidrRecord: fits into a ConfigMap whatever is held', (t) => {
  const blocks = Array.from({ length: 65_536 }, (_, block) => block);
  const name = 'n'.repeat(63);
  const held = blocks.map((block) => ({ block, freedAt: '2026-03-01T12:00:00.000Z', node: name, machineID: name }));
  const data = renderPodCidrRecord({ ...RECORD, taken: blocks.filter((block) => block % 2 === 0), held });
  t.is(readPodCidrRecord(data)?.held.length, MAX_HELD_RECORDS);
  const bytes = Object.values(data).reduce((sum, text) => sum + text.length, 0);
  t.true(bytes < 1_048_576, `${bytes} bytes`);
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

test('readPodCidrRecord: leaves out holds that it cannot read', (t) => {
  const data = {
    ...renderPodCidrRecord(RECORD),
    held: '[{"block":"5"},7,{"block":6,"freedAt":"then"}]',
    waiting: '[]',
  };
  t.deepEqual(readPodCidrRecord(data)?.held, [{ block: 6, freedAt: 'then' }]);
  t.deepEqual(readPodCidrRecord(data)?.waiting, { count: 0, nodes: [] });
});
