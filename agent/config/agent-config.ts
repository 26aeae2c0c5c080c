import type { Faults } from '../../runtime/decode.ts';
import { readSettings, type SettingsInput, type SettingsOutcome } from '../../runtime/settings/read-settings.ts';
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

/** Adds faults of settings that only the manifests give. */
function checkTogether(config: AgentConfig, faults: Faults): void {
  if (config.supplySource !== 'file' && config.nodeName === '') {
    const why = `as --supply-source is ${config.supplySource}`;
    faults.add('--node-name', `the name of this node, ${why}; or NODE_NAME`, undefined);
  }
}
