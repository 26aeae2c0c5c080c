import { clientRateRule } from '../../kube/connection-options.ts';
import type { Faults } from '../../runtime/decode.ts';
import type { SettingsProgram } from '../../runtime/settings/option.ts';
import { readSettings, type SettingsInput, type SettingsOutcome } from '../../runtime/settings/read-settings.ts';
import { type Rule, refused } from '../../runtime/settings/rule.ts';
import { CILIUM_PLUGIN } from './chained-plugins.ts';
import { type AgentConfig, OPTIONS } from './options.ts';

/**
 * Reads the agent's settings. The only I/O is `readFile`.
 * @throws ConfigError with every fault of flags, variables and file; exit with `EX_CONFIG` then.
 */
export function readAgentConfig(input: SettingsInput): SettingsOutcome<AgentConfig> {
  return readSettings(AGENT_PROGRAM, { ...input, env: withNodeName(input.env) }, checkTogether);
}

/** Takes the node's name from NODE_NAME too, which manifests usually fill from `spec.nodeName`. */
function withNodeName(env: SettingsInput['env']): SettingsInput['env'] {
  const nodeName = env['NODE_NAME'];
  return nodeName === undefined ? env : { TKE_ENI_NODE_NAME: nodeName, ...env };
}

/** Adds faults of settings that only the manifests give. */
function checkTogether(config: AgentConfig, faults: Faults): void {
  if (config.supplySource !== 'file' && config.nodeName === '') {
    const why = `as --supply-source is ${config.supplySource}`;
    faults.add('--node-name', `the name of this node, ${why}; or NODE_NAME`, undefined);
  }
}

const OF_CILIUM_NODE = { flag: 'supply-source', is: ['cilium-node'] } as const;
const IS_UPLINKS = { flag: 'role', is: ['uplinks'] } as const;
const ON_BRIDGE = { flag: 'default-network', is: ['tke-bridge'] } as const;
/** Addresses that are not in the pool of a CiliumNode. */
const WHY_CILIUM_NODE = 'as Pods get addresses of the CiliumNode (--supply-source=cilium-node)';
const WHY_UPLINKS = 'as --role=uplinks wires no Pods';
// Marks are set by the group of a Pod's link, and links of others have none of ours.
const MARKS = 'marks packets by links of ours';

/** Combinations of settings that the agent refuses. */
const RULES: readonly Rule[] = [
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

/** Name, settings and example of the agent's program, for help, docs and the reader of settings. */
export const AGENT_PROGRAM: SettingsProgram<typeof OPTIONS> = {
  name: 'tke-eni-agent',
  options: OPTIONS,
  rules: RULES,
  source: 'agent/config/options.ts',
  example: { flag: 'ip-cooldown', text: '60s' },
};
