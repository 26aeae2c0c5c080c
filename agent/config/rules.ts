import { clientRateRule } from '../../kube/connection-options.ts';
import { type Rule, refused } from '../../runtime/settings/rule.ts';
import { CILIUM_PLUGIN } from './chained-plugins.ts';

const OF_CILIUM_NODE = { flag: 'supply-source', is: ['cilium-node'] } as const;
const IS_UPLINKS = { flag: 'role', is: ['uplinks'] } as const;
const ON_BRIDGE = { flag: 'default-network', is: ['tke-bridge'] } as const;
/** Addresses that are not in the pool of a CiliumNode. */
const WHY_CILIUM_NODE = 'as Pods get addresses of the CiliumNode (--supply-source=cilium-node)';
const WHY_UPLINKS = 'as --role=uplinks wires no Pods';
// Marks are set by the group of a Pod's link, and links of others have none of ours.
const MARKS = 'marks packets by links of ours';

/** Combinations of settings that the agent refuses. */
export const AGENT_RULES: readonly Rule[] = [
  refused('force-reuse-after', 'at most --add-wait, {limit} ms', { sum: ['force-reuse-after'], above: 'add-wait' }),
  refused('role', `full, ${WHY_CILIUM_NODE}`, OF_CILIUM_NODE, IS_UPLINKS),
  refused('default-network', `tke-route-eni, ${WHY_CILIUM_NODE}`, OF_CILIUM_NODE, ON_BRIDGE),
  refused(
    'reserve-node-addresses',
    'false without --supply-source=cilium-node',
    { flag: 'supply-source', isNot: OF_CILIUM_NODE.is },
    { flag: 'reserve-node-addresses', is: ['true'] },
  ),
  refused('rule-mode', `per-pod or auto, ${WHY_UPLINKS}: compact ${MARKS}`, IS_UPLINKS, {
    flag: 'rule-mode',
    is: ['compact'],
  }),
  refused('egress', `eni, ${WHY_UPLINKS}: node ${MARKS}`, IS_UPLINKS, { flag: 'egress', is: ['node'] }),
  refused('default-network', `tke-route-eni, ${WHY_UPLINKS}`, IS_UPLINKS, ON_BRIDGE),
  refused(
    'default-network',
    'tke-route-eni, as --chained-plugins has cilium-cni, which cannot be chained to Pods on a bridge',
    { flag: 'chained-plugins', hasItem: `^${CILIUM_PLUGIN}$` },
    ON_BRIDGE,
  ),
  refused('listen-address', 'another address than --metrics-address', {
    flag: 'listen-address',
    isSameAs: 'metrics-address',
  }),
  clientRateRule(),
];
