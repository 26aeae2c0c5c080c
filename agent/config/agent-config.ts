import { checkClientRate } from '../../kube/connection-options.ts';
import type { Faults } from '../../runtime/decode.ts';
import { readSettings, type SettingsInput, type SettingsOutcome } from '../../runtime/settings/read-settings.ts';
import { hasCilium } from './chained-plugins.ts';
import { AGENT_PROGRAM, type AgentConfig } from './options.ts';

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

/** Adds faults of settings that are valid alone but not together. */
function checkTogether(config: AgentConfig, faults: Faults): void {
  if (config.forceReuseAfterMs > config.addWaitMs) {
    faults.add('--force-reuse-after', `at most --add-wait, ${config.addWaitMs} ms`, config.forceReuseAfterMs);
  }
  if (config.listenAddress !== '' && config.listenAddress === config.metricsAddress) {
    faults.add('--listen-address', 'another address than --metrics-address', config.listenAddress);
  }
  if (config.supplySource !== 'file' && config.nodeName === '') {
    const why = `as --supply-source is ${config.supplySource}`;
    faults.add('--node-name', `the name of this node, ${why}; or NODE_NAME`, undefined);
  }
  if (config.supplySource === 'cilium-node') checkCiliumNode(config, faults);
  else if (config.reserveNodeAddresses)
    faults.add('--reserve-node-addresses', 'false without --supply-source=cilium-node', true);
  if (config.role === 'uplinks') checkUplinks(config, faults);
  if (hasCilium(config.chainedPlugins) && config.defaultNetwork === 'tke-bridge') {
    const expected = 'tke-route-eni, as --chained-plugins has cilium-cni, which cannot be chained to Pods on a bridge';
    faults.add('--default-network', expected, config.defaultNetwork);
  }
  checkClientRate(config, faults);
}

/** Adds faults of settings for addresses that are not in the pool of a CiliumNode. */
function checkCiliumNode({ role, defaultNetwork }: AgentConfig, faults: Faults): void {
  const why = 'as Pods get addresses of the CiliumNode (--supply-source=cilium-node)';
  if (role === 'uplinks') faults.add('--role', `full, ${why}`, role);
  if (defaultNetwork === 'tke-bridge') faults.add('--default-network', `tke-route-eni, ${why}`, defaultNetwork);
}

/** Adds faults of settings that say how Pods are wired: with this role another program wires them. */
function checkUplinks({ ruleMode, egress, defaultNetwork }: AgentConfig, faults: Faults): void {
  const why = 'as --role=uplinks wires no Pods';
  if (ruleMode === 'compact') {
    // Marks are set by the group of a Pod's link, and links of others have none of ours.
    faults.add('--rule-mode', `per-pod or auto, ${why}: compact marks packets by links of ours`, ruleMode);
  }
  if (egress === 'node') faults.add('--egress', `eni, ${why}: node marks packets by links of ours`, egress);
  if (defaultNetwork === 'tke-bridge') faults.add('--default-network', `tke-route-eni, ${why}`, defaultNetwork);
}
