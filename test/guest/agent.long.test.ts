// Long because it boots an emulated machine: the kernel of this one may have no flowtables.
import { join } from 'node:path';
import test from 'ava';
import { buildExecutables } from '../../tools/build.ts';
import { DIST_BIN_DIR, hasLauncher, LAUNCHER_PATH } from '../support/executables.ts';
import { createTempDir } from '../support/temp-dir.ts';
import { GUEST_PROGRAMS } from './guest-programs.ts';
import { findGuestKernel, runGuest } from './run-guest.ts';

const guest = findGuestKernel();
const GUEST_MS = 8 * 60_000;
/** The primary interface and the ENI. */
const LINKS = ['eth0', 'eth5'];

if (guest === undefined || !hasLauncher) {
  test.skip('an agent with a flowtable in a guest (set GUEST_KERNEL and GUEST_MODULES; needs a C compiler)', () => {});
} else {
  test('an agent with a flowtable in a guest: a flow of a Pod is followed, ends with a rule of others, and nothing is left', async (t) => {
    t.timeout(GUEST_MS + 60_000);
    await buildExecutables(['tke-route-eni', 'tke-eni-agent']);
    const folder = createTempDir('guest');
    t.teardown(folder.close);
    const more = {
      [GUEST_PROGRAMS.agent]: join(DIST_BIN_DIR, 'tke-eni-agent'),
      [GUEST_PROGRAMS.addon]: join(DIST_BIN_DIR, 'ffi-rs.node'),
      [GUEST_PROGRAMS.plugin]: LAUNCHER_PATH,
    };
    const files = { script: 'test/guest/agent-scene.ts', more };
    const { console, reports, code } = await runGuest(guest, files, folder.path, GUEST_MS);
    t.is(code, 0, console);
    const seen = new Map(reports.map((one) => [one['name'], one['seen']]));
    t.deepEqual(seen.get('started'), LINKS, 'connection tracking was not loaded before');
    t.deepEqual(seen.get('added'), { before: LINKS }, 'the link of a new Pod comes after its ADD');
    t.deepEqual(seen.get('deleted'), { exitCode: 0, links: LINKS, isOffloaded: false });
    t.deepEqual(seen.get('stopped'), LINKS, 'packets go on without an agent');
    t.is(seen.get('uninstalled'), '', 'no table');
  });
}
