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
/** UDP and TCP, both directions. */
const ALL = [true, true, true, true];

if (guest === undefined || !hasLauncher) {
  test.skip('an agent with a flowtable in a guest (set GUEST_KERNEL and GUEST_MODULES; needs a C compiler)', () => {});
} else {
  test('an agent with a flowtable in a guest: flows of a Pod are followed, end with a rule of others, and go on without it', async (t) => {
    t.timeout(GUEST_MS + 60_000);
    await buildExecutables(['tke-route-eni', 'tke-eni-agent', 'tke-eni']);
    const folder = createTempDir('guest');
    t.teardown(folder.close);
    const more = {
      [GUEST_PROGRAMS.agent]: join(DIST_BIN_DIR, 'tke-eni-agent'),
      [GUEST_PROGRAMS.cli]: join(DIST_BIN_DIR, 'tke-eni'),
      [GUEST_PROGRAMS.addon]: join(DIST_BIN_DIR, 'ffi-rs.node'),
      [GUEST_PROGRAMS.plugin]: LAUNCHER_PATH,
    };
    const files = { script: 'test/guest/agent-scene.ts', more };
    const { console, reports, code } = await runGuest(guest, files, folder.path, GUEST_MS);
    t.is(code, 0, console);
    const seen = new Map(reports.map((one) => [one['name'], one['seen']]));
    t.deepEqual(seen.get('started'), LINKS, 'connection tracking was not loaded before');
    t.deepEqual(seen.get('added'), LINKS, 'the link of a new Pod comes after its ADD');
    const [fromPod, links, toPod] = seen.get('explained') as readonly string[];
    t.regex(fromPod ?? '', /fast path: the flowtable follows flows from eni\w+ to eth5$/);
    t.regex(links ?? '', /links in the flowtable: eni\w+, eth5, eth0$/);
    t.regex(toPod ?? '', /fast path: the flowtable follows flows from eth5 to eni\w+$/);
    t.deepEqual(seen.get('dumped'), seen.get('followed'), 'a script makes the flowtable again');
    const killed = seen.get('killed') as readonly string[];
    t.is(killed.length, LINKS.length + 1, 'the flowtable stays without an agent');
    const off = { exchange: ALL, isOffloaded: [false, false], links: 'no flowtable', beLiberal: '0' };
    t.deepEqual(seen.get('off'), off, 'flows go on without the flowtable');
    t.is(seen.get('deleted'), 0);
    t.is(seen.get('uninstalled'), '', 'no table');
  });
}
