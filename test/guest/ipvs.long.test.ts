// Long because it boots an emulated machine: the kernel of this one may have no IPVS.
import test from 'ava';
import { createTempDir } from '../support/temp-dir.ts';
import { findGuestKernel, runGuest } from './run-guest.ts';

const guest = findGuestKernel();
const GUEST_MS = 8 * 60_000;
const MODES = ['compact', 'per-pod', 'egress by the node', 'flowtable'];
const WAYS = ['Pod to a Pod of another node', 'IPv6', 'Pod to a Pod of its node', 'node to a Pod', 'node port'];
/** UDP and TCP, both directions, first and once the flow is assured. */
const ALL = Array.from({ length: 8 }, () => true);

if (guest === undefined) {
  test.skip('Services of IPVS in a guest (set GUEST_KERNEL to a vmlinuz and GUEST_MODULES to the folder of its modules)', () => {});
} else {
  test('Services of IPVS in a guest: packets of a Pod leave by its ENI, in each mode', async (t) => {
    t.timeout(GUEST_MS + 60_000);
    const folder = createTempDir('guest');
    t.teardown(folder.close);
    const files = { script: 'test/guest/ipvs-scene.ts', more: { '/bin/ipvsadm': '/usr/sbin/ipvsadm' } };
    const { console, reports, code } = await runGuest(guest, files, folder.path, GUEST_MS);
    t.is(code, 0, console);
    const seen = Object.fromEntries(reports.map((one) => [one['name'], one['seen']]));
    const expected = Object.fromEntries(WAYS.map((way) => [way, ALL]));
    t.deepEqual(seen, Object.fromEntries(MODES.map((mode) => [mode, expected])));
  });
}
