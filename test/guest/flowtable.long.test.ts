// Long because it boots an emulated machine: the kernel of this one may have no flowtables.
import test from 'ava';
import { createTempDir } from '../support/temp-dir.ts';
import { findGuestKernel, runGuest } from './run-guest.ts';

const guest = findGuestKernel();
const GUEST_MS = 8 * 60_000;
const BOTH = [true, true];

if (guest === undefined) {
  test.skip('a flowtable in a guest (set GUEST_KERNEL to a vmlinuz and GUEST_MODULES to the folder of its modules)', () => {});
} else {
  test('a flowtable in a guest: follows a flow of a Pod, ends with its table and its link, and leaves nothing', async (t) => {
    t.timeout(GUEST_MS + 60_000);
    const folder = createTempDir('guest');
    t.teardown(folder.close);
    const { console, reports, code } = await runGuest(guest, 'test/guest/flowtable-scene.ts', folder.path, GUEST_MS);
    t.is(code, 0, console);
    const seen = new Map(reports.map((one) => [one['name'], one['seen']]));
    t.is(seen.get('try'), '');
    t.deepEqual(seen.get('first'), ['flowtable'], 'devices of Pods');
    t.deepEqual(seen.get('second'), [], 'the plan is idempotent');
    t.deepEqual(seen.get('new'), { exchange: BOTH, isOffloaded: false });
    t.deepEqual(seen.get('assured'), { exchange: [...BOTH, ...BOTH], isOffloaded: true });
    t.deepEqual(seen.get('forged'), { forged: false, own: true });
    t.deepEqual(seen.get('denied'), { exchange: BOTH }, 'a rule of others holds for new flows only');
    t.deepEqual(seen.get('ended'), { exchange: [false, true] }, 'it denies one direction');
    t.deepEqual(seen.get('allowed'), { exchange: [...BOTH, ...BOTH], isOffloaded: true });
    t.like(
      seen.get('many'),
      { operations: [], foreign: 1, overruns: 0 },
      'only the deletion of the table of others is not ours',
    );
    t.like(seen.get('before'), { isOffloaded: true });
    t.deepEqual(seen.get('deleted'), { isOffloaded: false, isDevice: false });
    t.notRegex(String(seen.get('left')), /tke_eni_flows/);
  });
}
