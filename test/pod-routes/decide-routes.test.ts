import test from 'ava';
import type { VpcRoute } from '../../cloud/cloud.ts';
import { decideNetworkCondition } from '../../pod-routes/decide-node-networks.ts';
import { decideRoutes, type RouteNode, type RouteOwnership, routeDescription } from '../../pod-routes/decide-routes.ts';

const CLUSTER = 'cls-a';
const OURS = routeDescription(CLUSTER);

const node = (name: string, podCidrs: readonly string[], internalIp?: string): RouteNode => {
  const createdAt = `2026-01-01T00:00:0${name.slice(1)}Z`;
  return { name, createdAt, podCidrs, ...(internalIp === undefined ? {} : { internalIp }) };
};
const route = (routeId: string, cidr: string, gatewayIp: string, description = OURS): VpcRoute => {
  return { routeId, cidr, gatewayIp, description };
};

type Row = {
  readonly title: string;
  readonly nodes: readonly RouteNode[];
  readonly routes: readonly VpcRoute[];
  /** The plan in short. */
  readonly plan: readonly string[];
  /** Default: network. */
  readonly ownership?: RouteOwnership;
};

const N1 = node('n1', ['172.16.1.0/24'], '10.0.0.1');
const N2 = node('n2', ['172.16.2.0/24'], '10.0.0.2');

const ROWS: readonly Row[] = [
  { title: 'a network without a route', nodes: [N1], routes: [], plan: ['create 172.16.1.0/24 10.0.0.1'] },
  {
    title: 'a right one, of ipamd or of a person',
    nodes: [N1, N2],
    routes: [route('gr-1', '172.16.1.0/24', '10.0.0.1'), route('gr-2', '172.16.2.0/24', '10.0.0.2', 'by hand')],
    plan: ['right 172.16.1.0/24', 'right 172.16.2.0/24'],
  },
  {
    title: 'one to another address',
    nodes: [N1],
    routes: [route('gr-1', '172.16.1.0/24', '10.0.0.9')],
    plan: ['move gr-1 10.0.0.1'],
  },
  {
    title: 'two to one network: the right one stays, whichever it is',
    nodes: [N1],
    routes: [route('gr-1', '172.16.1.0/24', '10.0.0.9'), route('gr-2', '172.16.1.0/24', '10.0.0.1')],
    plan: ['right 172.16.1.0/24', 'remove gr-1 surplus'],
  },
  {
    title: 'two wrong ones: one moves, one goes',
    nodes: [N1],
    routes: [route('gr-2', '172.16.1.0/24', '10.0.0.9'), route('gr-1', '172.16.1.0/24', '10.0.0.8')],
    plan: ['move gr-1 10.0.0.1', 'remove gr-2 surplus'],
  },
  {
    title: 'no Node has the network, and none the address',
    nodes: [N2],
    routes: [route('gr-1', '172.16.1.0/24', '10.0.0.1'), route('gr-2', '172.16.2.0/24', '10.0.0.2')],
    plan: ['right 172.16.2.0/24', 'remove gr-1 gone'],
  },
  {
    title: 'the Node has another network now',
    nodes: [node('n1', ['172.16.7.0/24'], '10.0.0.1')],
    routes: [route('gr-1', '172.16.1.0/24', '10.0.0.1')],
    plan: ['create 172.16.7.0/24 10.0.0.1', 'remove gr-1 moved'],
  },
  {
    title: 'the Node has no network yet: it may get the same again',
    nodes: [node('n1', [], '10.0.0.1')],
    routes: [route('gr-1', '172.16.1.0/24', '10.0.0.1')],
    plan: [],
  },
  {
    title: 'a network beside those of the cluster, and one that holds one of them, are not looked at',
    nodes: [],
    routes: [route('gr-1', '192.168.0.0/24', '10.0.0.1'), route('gr-2', '172.0.0.0/8', '10.0.0.1')],
    plan: [],
  },
  {
    title: 'one of another cluster stays, and its network is not given a second route',
    nodes: [N1],
    routes: [
      route('gr-1', '172.16.1.0/24', '10.0.0.9', routeDescription('cls-b')),
      route('gr-2', '172.16.5.0/24', '10.0.0.9', routeDescription('cls-b')),
    ],
    plan: [
      'n1: the VPC leads 172.16.1.0/24 to 10.0.0.9 for cluster cls-b (route gr-1); two clusters must not share a network of Pods',
    ],
  },
  {
    title: 'two Nodes with one network: that of the route has it, else the older',
    nodes: [node('n3', ['172.16.1.0/24'], '10.0.0.3'), N1, node('n4', ['172.16.2.0/24'], '10.0.0.4'), N2],
    routes: [route('gr-1', '172.16.1.0/24', '10.0.0.3')],
    plan: [
      'create 172.16.2.0/24 10.0.0.2',
      'right 172.16.1.0/24',
      'n1: podCIDR 172.16.1.0/24 is that of node n3 too; it leads there',
      'n4: podCIDR 172.16.2.0/24 is that of node n2 too; it leads there',
    ],
  },
  {
    title: 'two Nodes whose networks overlap: that of the route has its own, else the older',
    nodes: [node('n1', ['172.16.1.0/25'], '10.0.0.1'), node('n2', ['172.16.1.0/24'], '10.0.0.2')],
    routes: [],
    plan: [
      'create 172.16.1.0/25 10.0.0.1',
      'n2: podCIDR 172.16.1.0/24 overlaps 172.16.1.0/25 of node n1; delete one of the two Nodes, so that it gets another',
    ],
  },
  {
    title: 'of networks that overlap the one with a route stays',
    nodes: [node('n1', ['172.16.1.0/25'], '10.0.0.1'), node('n2', ['172.16.1.0/24'], '10.0.0.2')],
    routes: [route('gr-1', '172.16.1.0/24', '10.0.0.2')],
    plan: [
      'right 172.16.1.0/24',
      'n1: podCIDR 172.16.1.0/25 overlaps 172.16.1.0/24 of node n2; delete one of the two Nodes, so that it gets another',
    ],
  },
  {
    title: 'by mark: a route without one that leads to the node is enough, and is not touched',
    ownership: 'mark',
    nodes: [N1],
    routes: [route('gr-1', '172.16.1.0/24', '10.0.0.1', 'by hand'), route('gr-2', '172.16.1.0/24', '10.0.0.9')],
    plan: ['right 172.16.1.0/24', 'remove gr-2 surplus'],
  },
  {
    title: 'by mark: a route without one that leads elsewhere stays, and is told',
    ownership: 'mark',
    nodes: [N1],
    routes: [route('gr-1', '172.16.1.0/24', '10.0.0.9', ''), route('gr-2', '172.16.9.0/24', '10.0.0.9', '')],
    plan: [
      'n1: the VPC leads 172.16.1.0/24 to 10.0.0.9 by route gr-1, which is none of this cluster; delete that route, or the Node so that it gets another podCIDR',
    ],
  },
  {
    title: 'a disabled one leads nowhere, and no second one is made beside it',
    nodes: [N1],
    routes: [{ ...route('gr-1', '172.16.1.0/24', '10.0.0.1'), isDisabled: true }],
    plan: ['n1: route gr-1 to 172.16.1.0/24 is disabled; enable it, or delete it so that another is made'],
  },
  {
    title: 'nor does a disabled one of others, or one that led elsewhere; beside a right one it does not count',
    nodes: [N1, N2],
    routes: [
      { ...route('gr-1', '172.16.1.0/24', '10.0.0.9', 'by hand'), isDisabled: true },
      { ...route('gr-2', '172.16.2.0/24', '10.0.0.9', 'by hand'), isDisabled: true },
      route('gr-3', '172.16.2.0/24', '10.0.0.2'),
    ],
    plan: [
      'right 172.16.2.0/24',
      'n1: route gr-1 to 172.16.1.0/24 is disabled; enable it, or delete it so that another is made',
    ],
  },
  {
    title: 'IPv6 has no routes, and is no fault beside IPv4',
    nodes: [node('n1', ['172.16.1.0/24', 'fd00:1::/64'], '10.0.0.1'), node('n2', ['fd00:2::/64'], '10.0.0.2')],
    routes: [],
    plan: ['create 172.16.1.0/24 10.0.0.1'],
  },
  {
    title: 'what cannot be led anywhere is told',
    nodes: [
      node('n1', ['172.16.1.0/24']),
      node('n2', ['nonsense'], '10.0.0.2'),
      node('n3', ['10.9.0.0/24'], '10.0.0.3'),
    ],
    routes: [],
    plan: [
      'n1: podCIDR 172.16.1.0/24 leads nowhere: the Node has no IPv4 address of type InternalIP',
      'n2: podCIDR "nonsense" is no network',
      'n3: podCIDR 10.9.0.0/24 is in no network of --cluster-cidr, 172.16.0.0/16; add it there, or delete the Node so that it gets another',
    ],
  },
];

for (const { title, nodes, routes, plan, ownership = 'network' } of ROWS) {
  test(`decideRoutes: ${title}`, (t) => {
    const decided = decideRoutes({ clusterCidrs: ['172.16.0.0/16'], clusterId: CLUSTER, ownership, nodes, routes });
    t.deepEqual(
      [
        ...decided.create.map(({ cidr, gatewayIp }) => `create ${cidr} ${gatewayIp}`),
        ...decided.move.map((one) => `move ${one.route.routeId} ${one.gatewayIp}`),
        ...decided.right.map(({ cidr }) => `right ${cidr}`),
        ...decided.remove.map((one) => `remove ${one.route.routeId} ${one.why}`),
        ...decided.faults.map((one) => `${one.node}: ${one.message}`),
      ],
      plan,
    );
  });
}

test('decideNetworkCondition: is written when the status differs, as the route controller does', (t) => {
  const at = '2026-01-01T00:00:00Z';
  const statusOf = (status: string | undefined, isRouted: boolean) => {
    const current = status === undefined ? undefined : { status, reason: 'Other' };
    const [condition] = decideNetworkCondition(current, isRouted, at)?.status.conditions ?? [];
    return condition === undefined ? 'none' : `${condition['status']} ${condition['reason']}: ${condition['message']}`;
  };
  t.is(statusOf(undefined, true), 'False RouteCreated: RouteController created a route');
  t.is(statusOf('True', true), 'False RouteCreated: RouteController created a route');
  t.is(statusOf('Unknown', false), 'True NoRouteCreated: RouteController failed to create a route');
  t.is(statusOf('False', true), 'none');
  t.is(statusOf('True', false), 'none');
});
