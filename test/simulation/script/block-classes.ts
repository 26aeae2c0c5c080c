import { below, drawCloudFault, type FaultClass } from './fault-class.ts';

/** Nodes get blocks of addresses from ipamd, and the VPC routes to them; machines come and go. */
export const BLOCKS = 'blocks';

/** Flags of ipamd for that: one of the blocks is a subnet's, and there are eight others. */
export const BLOCK_FLAGS: readonly string[] = [
  ...['--allocate-node-cidrs=true', '--cluster-cidr=10.2.0.0/24,192.168.0.0/21', '--node-cidr-mask-size=24'],
  '--gr-routes=ipamd',
];

const ROUTE_CALLS: readonly string[] = ['CreateGlobalRoutes', 'DeleteGlobalRoutes', 'DescribeGlobalRoutes'];

/** Nodes with blocks, and what goes wrong with the calls for their routes. */
export const BLOCK_CLASSES: readonly FaultClass[] = [
  {
    ...{ name: BLOCKS, rate: 0.5, share: 0.25 },
    draw: (draw, { nodes }) => (draw() < 0.6 ? [{ kind: 'join' }] : [{ kind: 'leave', node: below(draw, nodes + 2) }]),
  },
  { name: 'calls for routes', rate: 2, isOf: 'blocks', draw: (draw) => [drawCloudFault(draw, ROUTE_CALLS)] },
];
