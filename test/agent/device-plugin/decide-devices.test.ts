import test from 'ava';
import fc from 'fast-check';
import {
  countDevices,
  type Device,
  type DeviceSupply,
  decideDevices,
} from '../../../agent/device-plugin/decide-devices.ts';
import { assertLaw } from '../../support/law.ts';

const NOTHING: DeviceSupply = { quota: undefined, allocatable: undefined, assigned: 0, inUse: 0, stranded: 0 };

const counts = test.macro((t, supply: Partial<DeviceSupply>, total: number, unhealthy: number) => {
  t.deepEqual(countDevices({ ...NOTHING, ...supply }), { total, unhealthy });
});

test('countDevices: is the quota when subnets do not limit it', counts, { quota: 27 }, 27, 0);
test('countDevices: is what the subnets give when that is less', counts, { quota: 27, allocatable: 4 }, 4, 0);
test('countDevices: is the quota when the subnets would give more', counts, { quota: 9, allocatable: 40 }, 9, 0);
test('countDevices: is nothing when there is nothing', counts, { quota: 9, allocatable: 0 }, 0, 0);
test('countDevices: never falls below what is in use', counts, { quota: 9, allocatable: 2, inUse: 5 }, 5, 0);
test('countDevices: keeps what is in use when the quota falls below', counts, { quota: 3, inUse: 5 }, 5, 0);
test('countDevices: is what is assigned when nobody says more', counts, { assigned: 6 }, 6, 0);
test('countDevices: is what the subnets give without a quota', counts, { assigned: 6, allocatable: 8 }, 8, 0);
test('countDevices: counts stranded addresses as unhealthy', counts, { quota: 9, inUse: 2, stranded: 3 }, 9, 3);
test('countDevices: keeps those in use healthy', counts, { quota: 9, inUse: 7, stranded: 5 }, 9, 2);

const choose = test.macro(
  (
    t,
    given: { total: number; unhealthy?: number; previous?: readonly string[]; held?: readonly string[] },
    want: readonly string[],
  ) => {
    const got = decideDevices({
      prefix: 'e',
      count: { total: given.total, unhealthy: given.unhealthy ?? 0 },
      previous: (given.previous ?? []).map(deviceOf),
      allocated: new Set(given.held),
    });
    t.deepEqual(
      got.map(({ id, isHealthy }) => (isHealthy ? id : `${id}!`)),
      want,
    );
  },
);

test('decideDevices: begins with the lowest ids', choose, { total: 3 }, ['e-0', 'e-1', 'e-2']);
test('decideDevices: begins with what Pods hold', choose, { total: 3, held: ['e-7'] }, ['e-0', 'e-1', 'e-7']);
test(
  'decideDevices: drops the highest free ids first',
  choose,
  { total: 2, previous: ['e-0', 'e-1', 'e-2', 'e-3'], held: ['e-3'] },
  ['e-0', 'e-3'],
);
test('decideDevices: drops the highest when nobody knows', choose, { total: 1, previous: ['e-0', 'e-1'] }, ['e-0']);
test('decideDevices: fills the lowest gap', choose, { total: 4, previous: ['e-0', 'e-3', 'e-9'] }, [
  'e-0',
  'e-1',
  'e-3',
  'e-9',
]);
test(
  "decideDevices: keeps another plugin's id while a Pod holds it",
  choose,
  { total: 2, previous: [], held: ['eni-abc'] },
  ['e-0', 'eni-abc'],
);
test('decideDevices: drops that id when the Pod is gone', choose, { total: 1, previous: ['e-0', 'x'] }, ['e-0']);
test('decideDevices: makes the highest free ids unhealthy', choose, { total: 4, unhealthy: 2, held: ['e-3'] }, [
  'e-0',
  'e-1!',
  'e-2!',
  'e-3',
]);
test(
  'decideDevices: keeps the same ids unhealthy',
  choose,
  { total: 4, unhealthy: 1, previous: ['e-0', 'e-1!', 'e-2', 'e-3'] },
  ['e-0', 'e-1!', 'e-2', 'e-3'],
);

const number = fc.nat(40);
const id = fc.oneof(
  number.map((n) => `e-${n}`),
  fc.constantFrom('other-1', 'eni-ip', 'e-01'),
);
const devices = fc
  .uniqueArray(fc.record({ id, isHealthy: fc.boolean() }), { selector: (device) => device.id, maxLength: 30 })
  .map((list): readonly Device[] => list);
const supply = fc.record({
  quota: fc.option(number, { nil: undefined }),
  allocatable: fc.option(number, { nil: undefined }),
  assigned: number,
  inUse: number,
  stranded: number,
});
const scene = fc.record({ previous: devices, held: fc.uniqueArray(id).map((ids) => new Set(ids)), supply });

test('decideDevices: keeps its laws whatever comes', async (t) => {
  await assertLaw(
    t,
    (t) =>
      fc.property(scene, ({ previous, held: allocated, supply: given }) => {
        const count = countDevices(given);
        const got = decideDevices({ prefix: 'e', count, previous, allocated });
        const ids = new Set(got.map((device) => device.id));
        const known = new Set(previous.map((device) => device.id));
        const isAnyFree = got.some((device) => !allocated.has(device.id));
        t.true(count.total >= given.inUse, 'never below in use');
        t.is(ids.size, count.total, 'as many as counted, none twice');
        t.is(got.filter(({ isHealthy }) => !isHealthy).length, count.unhealthy);
        if (isAnyFree)
          t.true(
            [...allocated].every((one) => ids.has(one)),
            'no held id goes while a free one is there',
          );
        const freeHealthy = got.some((device) => device.isHealthy && !allocated.has(device.id));
        const sickHeld = got.some((device) => !device.isHealthy && allocated.has(device.id));
        t.false(freeHealthy && sickHeld, 'no held id is unhealthy while a free one is healthy');
        const isNew = got.some((device) => !known.has(device.id) && !allocated.has(device.id));
        const isDropped = [...known].some((one) => !ids.has(one));
        t.false(isNew && isDropped, 'ids that kubelet knows are not traded for new ones');
        t.deepEqual(
          decideDevices({ prefix: 'e', count, previous: got, allocated }),
          got,
          'the same again says the same',
        );
      }),
    { numRuns: 2_000 },
  );
});

function deviceOf(text: string): Device {
  return { id: text.replace('!', ''), isHealthy: !text.endsWith('!') };
}
