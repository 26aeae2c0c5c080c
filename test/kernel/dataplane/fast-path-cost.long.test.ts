// Long: makes 1,000 pairs of links, and prints what the fast path's filters cost a pass.
import { randomBytes } from 'node:crypto';
import test from 'ava';
import { openHostKernel } from '../../../agent/repair/host-kernel.ts';
import { EMPTY_STATE, type FilterState, type HostState } from '../../../dataplane/desired.ts';
import { diffHost } from '../../../dataplane/diff.ts';
import { openFlowPrograms } from '../../../dataplane/fast-path/flow-programs.ts';
import { openNft } from '../../../dataplane/nft.ts';
import { linkFilters } from '../../../dataplane/plan-fast-path.ts';
import { createNetns, deleteNetns } from '../../../netlink/netns.ts';
import { openRtnetlinkIn } from '../../../netlink/rtnetlink.ts';
import { openSysctl } from '../../../sysctl/sysctl.ts';

const PODS = 1_000;
/** Far more than a pass may take; what it takes is printed. */
const LONGEST_PASS_MS = 5_000;

test('filters of 1,000 Pods: a pass that attaches them, one that reads all, one that knows, one after one change', async (t) => {
  const names = ['', '-far'].map((suffix) => `tke-test-${randomBytes(4).toString('hex')}${suffix}`);
  const [host, far] = names.map(createNetns);
  if (host === undefined || far === undefined) return t.fail();
  try {
    using flows = openFlowPrograms();
    using rtnetlink = openRtnetlinkIn(host);
    const filters = Array.from({ length: PODS }, (_, at): readonly FilterState[] => {
      const ifname = `eni${String(at).padStart(11, '0')}`;
      const peer = { ifname: `p${at}`, netns: far };
      return linkFilters(rtnetlink.link.add({ kind: 'veth', ifname, up: true, peer }), ifname);
    }).flat();
    const desired: HostState = { ...EMPTY_STATE, filters };
    const sysctl = openSysctl(host);
    const kernel = openHostKernel({ rtnetlink, sysctl, nft: openNft({ netnsPath: host.path }), flows });
    const pass = async (what: string, expected: number): Promise<void> => {
      const startMs = performance.now();
      const { operations } = diffHost(desired, kernel.observe(desired, {}));
      const readMs = performance.now();
      t.deepEqual(await kernel.apply(operations, () => {}), []);
      const endMs = performance.now();
      t.is(operations.length, expected);
      t.log(`${what}: read and compare ${(readMs - startMs).toFixed(1)} ms, apply ${(endMs - readMs).toFixed(1)} ms`);
      t.true(endMs - startMs < LONGEST_PASS_MS);
    };
    await pass('attach all', 2 * PODS);
    kernel.invalidateFilters();
    await pass('read all', 0);
    await pass('nothing was notified', 0);
    const [first] = filters;
    if (first === undefined) return t.fail();
    rtnetlink.execute([{ object: 'qdisc', verb: 'delete', spec: { ifindex: first.ifindex, kind: 'clsact' } }]);
    kernel.invalidateFilters(first.ifindex);
    await pass('one discipline was deleted', 2);
  } finally {
    host.close();
    far.close();
    for (const name of names) deleteNetns(name);
  }
});
