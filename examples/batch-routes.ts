/** Adds a thousand routes with few system calls and looks at what failed: `node examples/batch-routes.ts`. */
import type { Request } from '../netlink/request.ts';
import { openRtnetlinkIn } from '../netlink/rtnetlink.ts';
import { inOwnNetns } from './own-netns.ts';

await inOwnNetns((netns) => {
  using rtnl = openRtnetlinkIn(netns);
  const oif = rtnl.link.add({ kind: 'veth', ifname: 'v0', up: true, peer: { ifname: 'v1' } });
  const requests: Request[] = Array.from({ length: 1000 }, (_, i) => ({
    object: 'route',
    verb: 'add',
    // Every hundredth is there twice, so the kernel refuses it.
    spec: { dst: `10.1.${(i - (i % 100 === 99 ? 1 : 0)) >> 8}.${(i - (i % 100 === 99 ? 1 : 0)) & 255}/32`, oif },
  }));
  const outcomes = rtnl.execute(requests);
  console.log('added:', outcomes.filter(({ kind }) => kind === 'ok').length);
  for (const outcome of outcomes) {
    if (outcome.kind === 'error') {
      console.log(outcome.error.message);
    }
  }
});
