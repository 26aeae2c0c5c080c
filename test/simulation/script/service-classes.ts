import type { Fault } from '../../../sim/vpc/api/faults.ts';
import { TAMPERING } from '../standins/balancer-vandals.ts';
import { between, type Draw } from '../streams.ts';
import { API_ACTIONS, below, drawCloudFault, drawFate, type FaultClass, LEADER_FATES, oneOf } from './fault-class.ts';

const NAMES: readonly string[] = ['a', 'b'];
/** The one that keeps its load balancer: a move leaves nothing on one that lost its tags but what nobody may change there. */
const LASTING = 'b';
const INGRESSES: readonly string[] = ['alone', 'shop', 'site'];
/** Ingresses lead to port 80. */
const PORTS: readonly (readonly number[])[] = [[80], [80, 81]];
const RANGES: readonly (readonly string[])[] = [[], [], ['10.0.0.0/8'], ['192.0.2.0/24']];
const PATHS: readonly string[] = ['/', '/a'];

/** Calls by which load balancers are made, changed and deleted. */
const CALLS: readonly string[] = [
  ...['CreateLoadBalancer', 'DeleteLoadBalancer', 'CreateListener', 'ModifyListener', 'DeleteLoadBalancerListeners'],
  ...['BatchRegisterTargets', 'BatchModifyTargetWeight', 'BatchDeregisterTargets', 'CreateRule', 'DeleteRule'],
  ...['CreateSecurityGroup', 'ModifySecurityGroupPolicies', 'SetLoadBalancerSecurityGroups'],
];
const LEADER_CALLS: readonly string[] = [...CALLS, 'patch services', 'patch nodeeniconfigs'];
const LOOKS: readonly Fault[] = [{ kind: 'stale', ms: 20_000 }, { kind: 'partial' }];
const CLIENT = 'ccm-*';

function drawMs(draw: Draw, range: readonly [number, number]): number {
  return Math.round(between(draw, range));
}

/** Services, Ingresses and their Pods, and what goes wrong with their controller and their load balancers. */
export const SERVICE_CLASSES: readonly FaultClass[] = [
  {
    ...{ name: 'Services', rate: 2, share: 1, isOf: 'ccm' },
    draw: (draw) => {
      const name = oneOf(draw, NAMES);
      if (draw() < 0.2) return [{ kind: 'end service', name }];
      const [app, ports, ranges] = [draw() < 0.8 ? name : oneOf(draw, NAMES), oneOf(draw, PORTS), oneOf(draw, RANGES)];
      const [isDirect, isInternal] = [draw() < 0.8, draw() < 0.2];
      return [{ kind: 'service', name, app, ports, ranges, isDirect, ...(name !== LASTING && { isInternal }) }];
    },
  },
  {
    ...{ name: 'Pods of Services', rate: 3, share: 1, isOf: 'ccm' },
    draw: (draw, { nodes }) => {
      const [app, node, isGated] = [oneOf(draw, NAMES), below(draw, nodes), draw() < 0.5];
      const name = `${app}-${below(draw, 3)}`;
      return [
        { kind: 'pod', name, node, app, ...(isGated && { isGated }) },
        { kind: 'end', name, node, afterMs: drawMs(draw, [5_000, 120_000]) },
      ];
    },
  },
  {
    ...{ name: 'Ingresses', rate: 1.5, isOf: 'ccm' },
    draw: (draw) => {
      const name = oneOf(draw, INGRESSES);
      if (draw() < 0.3) return [{ kind: 'end ingress', name }];
      const [service, path] = [oneOf(draw, NAMES), oneOf(draw, PATHS)];
      const kind = {
        ...(name !== 'alone' && { isGrouped: true as const }),
        ...(draw() < 0.15 && { isOfOthers: true as const }),
      };
      return [{ kind: 'ingress', name, service, path, ...kind }];
    },
  },
  {
    ...{ name: 'unwell Pods', rate: 1, isOf: 'ccm' },
    draw: (draw) => [
      { kind: 'unwell', name: `${oneOf(draw, NAMES)}-${below(draw, 3)}`, ms: drawMs(draw, [1_000, 60_000]) },
    ],
  },
  {
    ...{ name: 'closed Nodes', rate: 0.3, isOf: 'ccm' },
    draw: (draw, { nodes }) => [{ kind: 'close', node: below(draw, nodes), ms: drawMs(draw, [1_000, 90_000]) }],
  },
  {
    ...{ name: 'hands on load balancers', rate: 0.5, isOf: 'ccm' },
    draw: (draw) => [{ kind: 'tamper', service: oneOf(draw, NAMES), what: oneOf(draw, TAMPERING) }],
  },
  {
    ...{ name: 'lost tags', rate: 0.2, isOf: 'ccm' },
    draw: (draw) => [{ kind: 'untag', service: LASTING, ms: drawMs(draw, [5_000, 120_000]) }],
  },
  { name: 'calls for load balancers', rate: 3, isOf: 'ccm', draw: (draw) => [drawCloudFault(draw, CALLS)] },
  {
    ...{ name: 'answers about load balancers', rate: 1, isOf: 'ccm' },
    draw: (draw) =>
      draw() < 0.2
        ? [{ kind: 'cloud', fault: { kind: 'refuse-one' }, calls: 'Batch*', times: 1 }]
        : [{ kind: 'cloud', fault: oneOf(draw, LOOKS), calls: 'Describe*', times: 1 + below(draw, 3) }],
  },
  {
    ...{ name: 'requests of cloud-controller-manager', rate: 2, isOf: 'ccm' },
    draw: (draw) => {
      const [action, times] = [oneOf(draw, API_ACTIONS), 1 + below(draw, 3)];
      return [{ kind: 'api', client: CLIENT, verbs: ['update', 'patch', 'create'], action, times }];
    },
  },
  {
    ...{ name: 'watches of cloud-controller-manager', rate: 0.4, isOf: 'ccm' },
    draw: (draw) =>
      draw() < 0.5
        ? [{ kind: 'cut', client: CLIENT }]
        : [{ kind: 'partition', client: CLIENT, ms: drawMs(draw, [2_000, 60_000]) }],
  },
  {
    ...{ name: 'leaders of cloud-controller-manager', rate: 0.6, isOf: 'ccm' },
    draw: (draw) => [drawFate(draw, 'ccm')],
  },
  {
    ...{ name: 'moments of cloud-controller-manager', rate: 1, isOf: 'ccm' },
    draw: (draw) => [{ kind: 'moment', whom: 'ccm', call: oneOf(draw, LEADER_CALLS), what: oneOf(draw, LEADER_FATES) }],
  },
  {
    ...{ name: 'clocks of cloud-controller-manager', rate: 0.1, isOf: 'ccm' },
    draw: (draw) => [
      { kind: 'clock', machine: oneOf(draw, ['ccm-a', 'ccm-b']), ms: drawMs(draw, [-3_600_000, 3_600_000]) },
    ],
  },
];
